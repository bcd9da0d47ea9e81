/* lock.h - a lock for stores that have none: an object that names its owner; private to archive/.
 *
 * The owner writes the object, which fails where it is there, and reads it back: of two that write
 * at once one finds the other's line and gives up. A lock whose owner is gone is removed by the
 * next one.
 */
#ifndef ARCHIVE_LOCK_H
#define ARCHIVE_LOCK_H

#include "archive/store.h"

struct archive_lock {
    bool held;
    char name[ARCHIVE_NAME_MAX];
    char owner[ARCHIVE_OWNER_MAX];
};

/* `gone` returns whether an owner has certainly ended. It may be NULL. */
bool archive_lock_take(struct archive_lock *lock, struct archive_store *store, const char *name,
                       const char *owner, bool (*gone)(const char *owner), struct rd_err *err);
void archive_lock_drop(struct archive_lock *lock, struct archive_store *store);

#endif
