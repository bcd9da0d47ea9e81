/* read.h - reads a snapshot and measures every key.
 *
 *     struct stat_read read = {.src = src, .opts = opts, .filter = &filter};
 *     if (!stat_read_run(&read, &err))
 *         ...
 *     ... read.sum, read.meta ...
 *     stat_read_done(&read);
 *
 * For strings, and for many small collections that are one compressed string, only the header is
 * read: it has the size and the number of elements. The lengths of the elements come from a sample:
 * all of the first STAT_SAMPLE_FROM keys of a kind, then one of STAT_SAMPLE_EVERY, which counts for
 * all of these. Keys that enter a list of the largest keys are always read.
 */
#ifndef STAT_READ_H
#define STAT_READ_H

#include "base/buf.h"
#include "base/watch.h"
#include "rdb/reader.h"
#include "rdb/version.h"
#include "data/filter.h"
#include "stat/memory.h"
#include "stat/sum.h"

enum { STAT_SAMPLE_FROM = 2048, STAT_SAMPLE_EVERY = 16 };

/* The metadata of the file. */
struct stat_meta {
    enum rdb_dialect dialect;
    int version;
    struct rdb_release writer;
    int64_t ctime_s;     /* when it was written; 0: unknown */
    int64_t used_memory; /* of the server; 0: unknown */
    uint64_t functions;
    uint64_t bytes; /* of the file, decompressed */
};

/* Called for every key that passes the filter, in the order of the file. */
typedef bool (*stat_row_fn)(void *ctx, const struct stat_key *key, struct rd_err *err);

struct stat_pass {
    const struct stat_layout *layout;
    struct stat_sum *sum;
    const struct filter *filter;
    struct stat_value value;
    struct stat_key key;
    struct rd_buf name;
    struct stat_hist *lengths; /* counts the element lengths of this value */
    uint64_t weight;           /* number of times that each counts */
    struct stat_hist *aside;   /* counts them until it is known that the key counts; or NULL */
    stat_row_fn row;
    void *row_ctx;
    bool in_value;
};

struct stat_read {
    const struct rd_watch *watch; /* may be NULL */
    struct rd_src *src;           /* borrowed */
    /* Called for the trailer: whether what follows it may be left out. May be NULL. */
    bool (*at_end)(void *ctx, const struct rdb_event *trailer, struct rd_err *err);
    void *ctx;
    struct stat_opts opts;
    const struct filter *filter;      /* borrowed; NULL: all keys */
    bool exact;                       /* do not sample */
    int64_t made_ms;                  /* when the report was made; 0: it does not say so */
    const struct stat_layout *wanted; /* of --for; NULL: of the server that wrote the file */
    stat_row_fn row;                  /* may be NULL */
    void *row_ctx;

    struct stat_meta meta;
    struct stat_sum sum;
    const struct stat_layout *layout;

    /* Private to read.c. */
    struct rdb_reader *reader;
    uint64_t next; /* offset at which the progress is reported again */
    struct stat_pass pass;
    uint64_t n_packed[RDB_KIND_COUNT]; /* keys that may be sampled */
};

/* A damaged file or a checksum mismatch is an error. */
bool stat_read_run(struct stat_read *read, struct rd_err *err);
void stat_read_done(struct stat_read *read);

#endif
