/* input.h - what a job reads: a snapshot in a file, or what the caller makes of a path.
 *
 *     const struct job_input input = {.path = "dump.rdb"};
 *     struct spool spool = {0};
 *     struct rd_src *src;
 *     if (!job_input_open(&input, watch, &spool, &src, &err))
 *         ...
 *     ... read events; at the TRAILER: job_input_check_end() ...
 *     job_input_close(watch, src, &spool);
 *
 * The programs of the suite read logs, captures and servers, too (tools/input/snapshot_in.h): their
 * ops put the snapshot of it into the spool. The watch sees the progress; a source lives until
 * rd_watch_end().
 *
 * Threads: an input is borrowed, and its ops are called by the thread that calls these functions.
 */
#ifndef JOBS_INPUT_H
#define JOBS_INPUT_H

#include "base/watch.h"
#include "data/spool.h"
#include "rdb/event.h"

struct job_input_ops {
    /* Opens the path, or puts a snapshot into the spool and opens that, and begins the progress. */
    bool (*open)(const void *ctx, const char *path, struct spool *spool, struct rd_src **ret,
                 struct rd_err *err);
    /* At the TRAILER: whether the checksum matches, and what follows the snapshot may be there. */
    bool (*check_end)(const void *ctx, struct rd_src *src, const struct rdb_event *trailer,
                      struct rd_err *err);
};

struct job_input {
    const char *path;                /* "-": standard input. Also the name in errors */
    const struct job_input_ops *ops; /* NULL: a snapshot in a file; what follows it is not read */
    bool names_errors; /* open() sets the origin of its errors itself, where there is one */
    const void *ctx;
};

/* The spool must outlive the source. Decompresses. */
bool job_input_open(const struct job_input *in, const struct rd_watch *watch, struct spool *spool,
                    struct rd_src **ret, struct rd_err *err);

/* RD_ERR_CHECKSUM on a mismatch (zero: there is no checksum), and the errors of the ops. */
bool job_input_check_end(const struct job_input *in, struct rd_src *src,
                         const struct rdb_event *trailer, struct rd_err *err);

/* Also after a failure: src may be NULL, and the spool empty. */
void job_input_close(const struct rd_watch *watch, struct rd_src *src, struct spool *spool);

#endif
