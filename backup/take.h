/* take.h - one set, from the lock to the manifest.
 */
#ifndef BACKUP_TAKE_H
#define BACKUP_TAKE_H

#include "backup/set.h"

enum { BACKUP_CHUNKS_LEVEL = 1 /* of zstd, unless the target says another */ };

/* Applies the target's settings for compression. RD_ERR_USAGE. */
bool backup_settings(const struct backup_target *target, struct backup_set *set,
                     struct rd_err *err);
/* Who takes a set, and how its files are read: `read` writes them with backup_set_file_begin(). */
struct backup_job {
    const char *tool; /* named in the lock */
    bool (*read)(void *ctx, struct backup_set *set, struct rd_err *err);
    void *ctx;
};

/* Locks the repositories, removes the remains of interrupted backups, and writes a set. After a
 * failure nothing of it is left. */
bool backup_take(const struct rd_watch *watch, const struct backup_job *job, struct backup_set *set,
                 struct rd_err *err);

/* The errors of what follows a set. code RD_ERR_OK: none. */
struct backup_after {
    struct rd_err prune, metrics, hook;
    struct rd_err heartbeat; /* not a failure of the backup: the service notices its absence */
};

/* What the target asks for after backup_take(), whether that succeeded (failed is NULL) or not:
 * removes the sets that no rule keeps, and writes the figures, runs the hook and sends the
 * heartbeat. Errors do not undo the set. */
void backup_after(const struct backup_target *target, const struct backup_set *set,
                  const struct rd_err *failed, struct backup_after *ret);

#endif
