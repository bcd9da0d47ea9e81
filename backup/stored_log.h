/* stored_log.h - the data of a log that a set contains, as a snapshot.
 *
 *     struct backup_stored_log log = {.watch = watch, .repo = repo, .set = set, .ring = ring,
 *                                     .now_ms = now_ms};
 *     if (!backup_stored_log_save(&log, sink, &err))
 *         ...
 *     ... log.counts ...
 *
 * The files are read from the repository and their commands run on an engine, which is then saved.
 */
#ifndef BACKUP_STORED_LOG_H
#define BACKUP_STORED_LOG_H

#include "archive/repo.h"
#include "base/watch.h"
#include "rebuild/data.h"

struct backup_stored_log {
    /* Set by the caller; borrowed. */
    const struct rd_watch *watch;
    struct archive_repo *repo;
    const struct archive_set *set; /* proved */
    const struct rd_seal_ring *ring;
    int64_t now_ms;    /* of commands without a time */
    bool keep_unknown; /* see struct rebuild_data */
    /* Set by this library, also after a failure. */
    struct rebuild_counts counts;
    enum rebuild_advice advice;
};

/* Does not close the sink. RD_ERR_CORRUPT: the set is not a log. RD_ERR_UNSUPPORTED: the engine
 * does not know a command. */
bool backup_stored_log_save(struct backup_stored_log *log, struct rd_sink *out, struct rd_err *err);

/* A file of a set by the name that it has in the server; NULL: there is none. */
const struct archive_file *backup_stored_file(const struct archive_manifest *m, const char *name);

#endif
