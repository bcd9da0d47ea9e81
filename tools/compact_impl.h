/* compact_impl.h - private to compact*.c.
 *
 *     compact.c           what is a log; logs; in the place of a snapshot
 *     compact_capture.c   captures
 *     compact_apply.c     the engine: snapshots and commands into it, and a snapshot out of it
 */
#ifndef TOOLS_COMPACT_IMPL_H
#define TOOLS_COMPACT_IMPL_H

#include "aof/reader.h"
#include "aof/timeline.h"
#include "base/prefault.h"
#include "engine/db.h"
#include "engine/session.h"
#include "engine/snapshot.h"
#include "tools/check_aof/priv.h"
#include "tools/compact.h"
#include "tools/cli/log_place.h"
#include "tools/input/stream_in.h"

struct compact_run {
    struct cli *cli;
    const struct compact_opts *opts;
    struct compact_result *result;
    struct aof_job job;
    struct aof_manifest manifest;
    struct aof_reader *reader;
    struct stream_in capture;
    struct engine *engine;
    struct rd_prefault *ahead;
    struct engine_session session;
    struct engine_db_ahead keys_ahead;
    struct engine_reply reply;
    struct engine_effects effects;
    int64_t now_us;
    bool has_until;
    struct log_place until;
    struct log_place skips[COMPACT_SKIPS_MAX]; /* without a file: numbers of commands */
    bool stopped;
    struct aof_timeline line; /* with until_ms, of a log */
    bool behind_snapshot;     /* the last event was a snapshot */
    uint64_t end;             /* of the longest file that was read */
};

/* One command, and where it stands. */
struct compact_step {
    const struct resp_command *command;
    const char *name; /* of the file or folder */
    uint64_t offset;
    int64_t now_us;
};

/* compact_apply.c */
void compact_begin(struct compact_run *run);
void compact_end(struct compact_run *run);
bool compact_load(struct compact_run *run, struct rdb_reader *snapshot, const char *name,
                  int64_t *ret_saved_s, struct rd_err *err);
bool compact_apply(struct compact_run *run, const struct compact_step *step, struct rd_err *err);
bool compact_save(struct compact_run *run, struct rd_sink *out, struct rd_err *err);

/* RD_ERR_USAGE where commands that were to be left out did not come. */
bool compact_check_skips(const struct compact_run *run, struct rd_err *err);

/* compact_capture.c: reads a capture up to the place or time that is wanted. */
bool compact_read_capture(struct compact_run *run, const char *path, struct rd_err *err);

#endif
