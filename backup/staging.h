/* staging.h - several files that get their names together.
 *
 *     struct backup_staging staging = {.check = check, .ctx = ctx};
 *     ok = backup_staging_folder(&staging, "data", &err) &&
 *          backup_staging_file(&staging, path, &err) && ... write path ... &&
 *          backup_staging_publish(&staging, &err);
 *     backup_staging_done(&staging, ok);
 *
 * The files of a log, of a cluster, or of several targets wait under other names until all of them
 * are complete. A restore that fails therefore leaves what was there before, and never a mixture of
 * both. The folders that it made for them go again.
 */
#ifndef BACKUP_STAGING_H
#define BACKUP_STAGING_H

#include "backup/config.h"
#include "base/buf.h"

struct backup_staging {
    /* Set by the caller. */
    bool replaces; /* files that exist */
    /* Whether a file may be written: the caller reports that it exists. */
    bool (*check)(void *ctx, const char *path, struct rd_err *err);
    void *ctx;
    /* Private. */
    struct rd_buf staged; /* the names of files that wait for others */
    struct rd_buf made;   /* the folders that were created */
};

/* Creates a folder unless it exists. */
bool backup_staging_folder(struct backup_staging *staging, const char *path, struct rd_err *err);
/* Turns the path of a file into the one under which it waits for the others. */
bool backup_staging_file(struct backup_staging *staging, char path[BACKUP_PATH_MAX],
                         struct rd_err *err);
/* How many files wait. */
size_t backup_staging_count(const struct backup_staging *staging);
/* Removes the files that wait, except the first n. */
void backup_staging_forget(struct backup_staging *staging, size_t n);
/* All files are complete: gives them their names. */
bool backup_staging_publish(struct backup_staging *staging, struct rd_err *err);
/* Removes the files that still wait, and, unless the restore is complete, the folders that were
 * created if they are empty. */
void backup_staging_done(struct backup_staging *staging, bool complete);

#endif
