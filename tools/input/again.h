/* again.h - a snapshot that is read more than once.
 *
 * A file is simply read again. What comes through a pipe, or out of a decompressor, is set aside
 * without a name (spool.h) while it is read first.
 *
 *     struct again in = {0};
 *     if (!again_open(&in, cli, path, &log, &filter, &err))
 *         ...
 *     while (rdb_reader_next(in.reader, &ev) == RDB_EVENT)
 *         ...
 *     if (!again_rewind(&in, &err) ...           // from the beginning, as a whole file
 *     if (!again_seek(&in, record, db, &ev, &err) ...   // or: the KEY event of one record
 *     again_close(&in);
 *
 * It reads by element; values may be skipped or copied with the reader. Which keys are wanted,
 * sized_wants(&in.sized, …) tells in a pass over the whole.
 */
#ifndef TOOLS_INPUT_AGAIN_H
#define TOOLS_INPUT_AGAIN_H

#include "rdb/reader.h"
#include "tools/cli/cli.h"
#include "tools/compact.h"
#include "tools/live.h"
#include "tools/input/sized.h"

struct again {
    struct cli *cli;
    const struct compact_opts *log; /* NULL: of a server */
    struct rd_src *src;
    struct spool spool;
    struct rdb_reader *reader;
    struct sized sized;
    enum rdb_dialect dialect; /* of what the first bytes said, already when it is opened */
    int version;
};

/* path may be "-"; a log becomes the snapshot that it amounts to (compact.h). RD_ERR_UNSUPPORTED,
 * with a hint, where it is lines of JSON; a server's URL too. log and filter are borrowed. */
bool again_open(struct again *in, struct cli *cli, const char *path, const struct compact_opts *log,
                const struct filter *filter, struct rd_err *err);

/* The same of a server, whose data is set aside first (live.h). opts and filter are borrowed. */
bool again_open_server(struct again *in, struct cli *cli, const struct live_opts *opts,
                       struct live_result *result, struct rd_err *err);

/* From the first byte, for a pass over the whole; progress is shown under `what`. */
bool again_rewind(struct again *in, const char *what, struct rd_err *err);

/* Reads as far as the KEY event of the record at an offset (key.record); its value comes next. */
bool again_seek(struct again *in, uint64_t record, uint64_t db, struct rdb_event *ret,
                struct rd_err *err);

/* For `return again_fail(…)`: the reader's error, with the file's name. */
bool again_fail(const struct again *in, struct rd_err *err);

/* compact_check_end(), in the TRAILER event of a pass over the whole. */
bool again_check_end(struct again *in, const struct rdb_event *ev, struct rd_err *err);

/* A zeroed struct is allowed. */
void again_close(struct again *in);

#endif
