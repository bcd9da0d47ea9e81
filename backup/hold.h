/* hold.h - a lock of a repository, with the thread that renews it.
 */
#ifndef BACKUP_HOLD_H
#define BACKUP_HOLD_H

#include <pthread.h>
#include <stdatomic.h>

#include "archive/lock.h"
#include "backup/config.h"

/* The thread has a store of its own, because the
 * other one may be busy for minutes. */
struct backup_hold {
    struct archive_lock lock;
    const struct backup_target *target;
    const char *where;
    bool inited, running;
    bool refused; /* backup_lock() gave up, because another run has it */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    atomic_bool stop;
};

/* `tool` is named in the lock. */
bool backup_hold_init(struct backup_hold *hold, const struct backup_target *target,
                      const char *where, enum archive_lock_kind kind, const char *tool,
                      struct rd_err *err);
/* One attempt; see archive_lock_try(). Then the lock is renewed until the drop. */
bool backup_hold_try(struct backup_hold *hold, struct archive_store *store, struct rd_err *err);
void backup_hold_drop(struct backup_hold *hold, struct archive_store *store);
void backup_hold_done(struct backup_hold *hold);

#endif
