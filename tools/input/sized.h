/* sized.h - which keys of a snapshot a filter wants, where it also asks for the size of the value.
 *
 * How many bytes a value takes is known after it only. With --min-size a second reader, over a
 * source of its own, goes ahead of the first to the end of each value that is in question. So
 * memory does not grow with the value, and the first reader sees the file as it would without a
 * filter.
 *
 *     struct sized sized = {0};
 *     if (!sized_begin(&sized, &filter, cli, path, &spool, &src, &err))
 *         ...
 *     while (rdb_reader_next(reader, &ev) == RDB_EVENT)
 *         if (ev.kind == RDB_KEY) {
 *             if (!sized_wants(&sized, &ev, &wanted, &err))
 *                 ...
 *             if (!wanted)
 *                 rdb_reader_skip_value(reader);
 *         }
 *     sized_end(&sized);
 *
 * Without --min-size none of this happens: the filter alone answers.
 */
#ifndef TOOLS_INPUT_SIZED_H
#define TOOLS_INPUT_SIZED_H

#include "rdb/reader.h"
#include "tools/cli/filter.h"
#include "tools/input/spool.h"

struct sized {
    const struct filter *filter;
    const char *path;
    const struct spool *spool;
    struct rd_src *src; /* the second one; NULL: not needed yet */
    struct rdb_reader *reader;
};

/* Before anything of *src is consumed; it was opened from path, or over the spool where that holds
 * something. What cannot be opened a second time is set aside in the spool if need be, and *src is
 * replaced then. Filter, path and spool are borrowed. */
bool sized_begin(struct sized *sized, const struct filter *filter, struct cli *cli,
                 const char *path, struct spool *spool, struct rd_src **src, struct rd_err *err);

/* Sets aside what is left of *src, which is closed, and gives a source over that. */
bool sized_set_aside(struct cli *cli, const char *path, struct spool *spool, struct rd_src **src,
                     struct rd_err *err);

/* Whether a key is wanted; ev is its KEY event. Keys are asked about in the order of the file.
 * False where the file cannot be read as far as the end of the value. */
bool sized_wants(struct sized *sized, const struct rdb_event *ev, bool *ret, struct rd_err *err);

/* Afterwards the file may be read again from its beginning. A zeroed struct is allowed. */
void sized_end(struct sized *sized);

#endif
