/* rebuild_impl.h - private to rebuild/.
 *
 *     data.c      the engine: snapshots and commands into it, and a snapshot out of it
 *     knows.c     whether a command can be replayed, without replaying it
 *     line.c      the keys of a command line
 *     log.c       logs
 *     capture.c   captures
 *     place.c     positions as text
 *     stream.c    opens a capture and finds positions in it
 *     unknown.c   the keys whose values are not known
 */
#ifndef REBUILD_REBUILD_IMPL_H
#define REBUILD_REBUILD_IMPL_H

#include "aof/reader.h"
#include "aof/timeline.h"
#include "rebuild/place.h"
#include "rebuild/rebuild.h"
#include "rebuild/stream.h"

struct rebuild_run {
    const struct rebuild_opts *opts;
    struct rebuild_data data;
    const struct rebuild_log *log;
    struct aof_reader *reader;
    struct rebuild_stream capture;
    bool has_until;
    struct rebuild_place until;
    struct rebuild_place skips[REBUILD_SKIPS_MAX]; /* without a file: numbers of commands */
    bool stopped;
    bool ended_early;
    bool unrecorded;          /* of a capture, with until_ms */
    struct aof_timeline line; /* with until_ms, of a log */
    bool after_snapshot;      /* the last event was a snapshot */
    uint64_t end;             /* of the longest file that was read */
};

/* RD_ERR_USAGE if commands to skip were not found. */
bool rebuild_check_skips(const struct rebuild_run *run, struct rd_err *err);

/* capture.c: reads a capture up to the offset or time. */
bool rebuild_read_capture(struct rebuild_run *run, const char *path, struct rd_err *err);

#endif
