/* open.h - the repositories of a target, open.
 *
 *     for (size_t i = 0; i < config.n_targets; i++)
 *         if (!backup_open(&config.targets[i], BACKUP_READ, &open, &err))
 *             ...
 *         backup_close(&open);
 */
#ifndef BACKUP_OPEN_H
#define BACKUP_OPEN_H

#include "archive/repo.h"
#include "backup/hold.h"
#include "backup/keys.h"

enum backup_mode {
    BACKUP_LIST,  /* keys are not needed: who watches backups need not be able to read them */
    BACKUP_JUDGE, /* with keys if there are any and they can be read */
    BACKUP_READ,
    BACKUP_WRITE
};

/* How a repository is opened again; private. */
struct backup_again {
    const struct backup_target *target;
    const char *where;
    struct archive_parallel parallel;
};

struct backup_open {
    const struct backup_target *target;
    struct archive_store *stores[BACKUP_STORES];
    struct archive_repo repos[BACKUP_STORES];
    struct rd_err errs[BACKUP_STORES]; /* set: this one failed, and is left out */
    struct backup_hold holds[BACKUP_STORES];
    struct backup_again agains[BACKUP_STORES];
    size_t n;
    struct backup_keys keys;
    struct rd_err keys_err; /* of BACKUP_JUDGE: why keys were not read */
};

/* Opens keys (with BACKUP_LIST only a key file that can be read) and all repositories, which use
 * these keys to verify signatures: *ret must not be moved. A repository that cannot be opened has
 * its error in errs and no store; with BACKUP_WRITE that is a failure unless another can be opened.
 */
bool backup_open(const struct backup_target *target, enum backup_mode mode, struct backup_open *ret,
                 struct rd_err *err);
void backup_close(struct backup_open *open);

/* True if repository i was opened; otherwise adopts its error. */
bool backup_is_open(const struct backup_open *open, size_t i, struct rd_err *err);

/* Locks repository i; `tool` is named in the lock. If another process has the lock, waits for it as
 * long as the target says, or until the watch is cancelled. It waits longer for a lock whose holder
 * may have ended: until that one renews it, or it expires. */
bool backup_lock(const struct rd_watch *watch, struct backup_open *open, size_t i, const char *tool,
                 struct rd_err *err);

/* Gives the repositories whose locks were lost their errors. */
void backup_find_lost(struct backup_open *open);
/* If a lock was lost, that is the reason of a failure: another run may have removed objects. */
void backup_explain_lost(struct backup_open *open, struct rd_err *err);

/* archive_catalogue_update(), under the lock. A failure is a warning: it costs only time. */
void backup_catalogue(const struct rd_watch *watch, struct archive_repo *repo,
                      const struct archive_sets *sets);

/* archive_repo_list(), with a note about sets that were removed meanwhile. */
bool backup_list(const struct rd_watch *watch, struct archive_repo *repo, struct archive_sets *ret,
                 struct rd_err *err);

#endif
