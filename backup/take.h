/* take.h - one set, from the lock to the manifest.
 */
#ifndef BACKUP_TAKE_H
#define BACKUP_TAKE_H

#include "backup/set.h"

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
/* If the target says so, removes the sets that no rule keeps. */
bool backup_prune_after(const struct backup_target *target, struct backup_open *open,
                        struct rd_err *err);

#endif
