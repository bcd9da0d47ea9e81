/* again.h - a snapshot that is read more than once.
 *
 * A file is read again. Input from a pipe or a decompressor is copied to a spool (spool.h) when it
 * is read for the first time.
 *
 *     struct again in = {0};
 *     if (!again_open(&in, watch, &input, &filter, &err))
 *         ...
 *     while (rdb_reader_next(in.reader, &ev) == RDB_EVENT)
 *         ...
 *     if (!again_rewind(&in, what, &err)) ...             // from the beginning, as a whole file
 *     if (!again_seek(&in, record, db, &ev, &err)) ...    // or: the KEY event of one record
 *     again_close(&in);
 *
 * The reader returns elements; values may also be skipped or copied with it. When the whole file is
 * read, sized_wants(&in.sized, …) applies the filter.
 */
#ifndef JOBS_AGAIN_H
#define JOBS_AGAIN_H

#include "jobs/input.h"
#include "jobs/sized.h"
#include "rdb/reader.h"

struct again {
    const struct rd_watch *watch;
    const struct job_input *input;
    struct rd_src *src;
    struct spool spool;
    struct rdb_reader *reader;
    struct sized sized;
    enum rdb_dialect dialect; /* from the header, set when the file is opened */
    int version;
};

/* RD_ERR_UNSUPPORTED, with a hint, for JSON. Watch, input and filter are borrowed. */
bool again_open(struct again *in, const struct rd_watch *watch, const struct job_input *input,
                const struct filter *filter, struct rd_err *err);

/* Starts again at the first byte, to read the whole file; progress is shown under `what`. */
bool again_rewind(struct again *in, const char *what, struct rd_err *err);

/* Reads up to the KEY event of the record at an offset (key.record); its value comes next. */
bool again_seek(struct again *in, uint64_t record, uint64_t db, struct rdb_event *ret,
                struct rd_err *err);

/* For `return again_fail(…)`: the reader's error, with the name of the file. */
bool again_fail(const struct again *in, struct rd_err *err);

/* job_input_check_end() for the TRAILER event when the whole file is read. */
bool again_check_end(struct again *in, const struct rdb_event *ev, struct rd_err *err);

/* A zeroed struct is allowed. */
void again_close(struct again *in);

#endif
