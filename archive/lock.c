#include "archive/lock.h"

#include "base/buf.h"

#include <stdio.h>

/* Reads the line of the owner; empty if the lock does not exist. */
static bool read_owner(struct archive_store *store, const char *name, char ret[ARCHIVE_OWNER_MAX],
                       struct rd_err *err)
{
    struct archive_object object;
    struct rd_buf text = {0};
    ret[0] = '\0';
    if (!store->ops->stat(store, name, &object, err))
        return false;
    if (!object.there)
        return true;
    bool ok = archive_store_read(store, name, ARCHIVE_OWNER_MAX - 1, &text, err);
    if (ok)
        snprintf(ret, ARCHIVE_OWNER_MAX, "%.*s", (int)text.len,
                 text.len > 0 ? (const char *)text.ptr : "");
    rd_buf_done(&text);
    return ok;
}

/* An owner without a name has removed its lock meanwhile. */
static bool locked(const char *name, const char *owner, struct rd_err *err)
{
    char quoted[ARCHIVE_OWNER_MAX];
    rd_err_quote(quoted, sizeof quoted, rd_slice_str(owner));
    rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "locked by %s",
               owner[0] != '\0' ? quoted : "another process");
    rd_err_origin(err, name);
    return false;
}

bool archive_lock_take(struct archive_lock *lock, struct archive_store *store, const char *name,
                       const char *owner, bool (*gone)(const char *owner), struct rd_err *err)
{
    char has[ARCHIVE_OWNER_MAX];
    struct rd_err refused = {0};
    if (!read_owner(store, name, has, err))
        return false;
    bool ours = strcmp(has, owner) == 0; /* the connection was lost after the lock was written */
    if (has[0] != '\0' && !ours && (gone == NULL || !gone(has)))
        return locked(name, has, err);
    if (has[0] != '\0' && !ours && !store->ops->remove(store, name, err))
        return false;
    bool written = ours || archive_store_write(store, name, rd_slice_str(owner), &refused);
    if (!written && !archive_store_exists(&refused)) {
        rd_err_adopt(err, &refused);
        return false;
    }
    if (!read_owner(store, name, has, err))
        return false;
    if (!written || strcmp(has, owner) != 0)
        return locked(name, has, err);
    lock->held = true;
    snprintf(lock->name, sizeof lock->name, "%s", name);
    snprintf(lock->owner, sizeof lock->owner, "%s", owner);
    return true;
}

void archive_lock_drop(struct archive_lock *lock, struct archive_store *store)
{
    char has[ARCHIVE_OWNER_MAX];
    if (lock->held && read_owner(store, lock->name, has, NULL) && strcmp(has, lock->owner) == 0)
        store->ops->remove(store, lock->name, NULL);
    lock->held = false;
}
