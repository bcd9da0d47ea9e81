/* lock.h - a lock for stores without locks: an object that names its owner; private to archive/.
 *
 * The owner writes the object, which fails if it exists, and reads it back: if two processes write
 * at the same time, one of them finds the line of the other and gives up. The next process removes
 * a lock whose owner has ended.
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
