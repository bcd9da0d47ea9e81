/* read_all.h - reads a snapshot to its end, with its bytes arriving in many ways.
 *
 *     struct event_text text = {0};
 *     struct way way = {WAY_PUSH, 7};
 *     struct rd_err err = read_all(bytes, &way, &opts, &text);
 */
#ifndef TESTS_RDB_READ_ALL_H
#define TESTS_RDB_READ_ALL_H

#include "rdb/reader.h"
#include "tests/rdb/event_text.h"

enum way_kind {
    WAY_MEMORY,
    WAY_TRICKLE,    /* reads of `size` bytes through a window of 4 KiB */
    WAY_WINDOW,     /* a window of `size` bytes */
    WAY_PUSH,       /* `size` bytes are pushed whenever the reader wants more */
    WAY_PUSH_EAGER, /* ... and after every event */
    WAY_PUSH_OPEN   /* all is pushed, and the end is never reported */
};

struct way {
    enum way_kind kind;
    size_t size;
};

/* The error that ended it: RD_ERR_OK at the end of the snapshot; RD_ERR_CANCELLED, which no reader
 * gives, where a WAY_PUSH_OPEN ended with RDB_MORE. text may be NULL. Aborts when the reader cannot
 * be made or does not come to an end. */
struct rd_err read_all(struct rd_slice file, const struct way *way,
                       const struct rdb_reader_opts *opts, struct event_text *text);

/* A source of that kind; one that is pushed to is empty. */
struct rd_src *way_open(const struct way *way, struct rd_slice file);

#endif
