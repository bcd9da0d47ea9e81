/* store.h - the storage for the objects of a repository.
 *
 * A store holds objects under names such as "nightly/sets/20261123T013445Z-1f2e3d4c/dump.rdb". It
 * offers what a folder, an SFTP server and an S3 bucket have in common: an object appears
 * completely or not at all, never changes, and can be read, listed and removed.
 *
 *     struct archive_store *store;
 *     struct rd_sink *sink;
 *     if (!archive_store_open_posix(&store, "/var/backups/redis", true, &err) ||
 *         !store->ops->put(store, "nightly/sets/1/dump.rdb", &sink, &err))
 *         ...
 *     ... rd_sink_write(sink, ...) ... rd_sink_close(sink, &err);
 *     archive_store_close(store);
 *
 * Components of names consist of letters, digits and the characters - _ . and do not begin with a
 * dot; callers check other names with archive_name_ok().
 *
 * Errors: RD_ERR_IO of a folder and RD_ERR_PROTOCOL of a server; RD_ERR_LOCKED; RD_ERR_USAGE if an
 * object that is put already exists.
 */
#ifndef ARCHIVE_STORE_H
#define ARCHIVE_STORE_H

#include "base/err.h"
#include "base/sink.h"
#include "base/src.h"

enum { ARCHIVE_NAME_MAX = 320, ARCHIVE_OWNER_MAX = 160 };

struct archive_store;

struct archive_object {
    bool there;
    uint64_t size;
};

struct archive_store_ops {
    /* A new object. It exists, and is durable, when the sink is closed. */
    bool (*put)(struct archive_store *store, const char *name, struct rd_sink **ret,
                struct rd_err *err);
    /* The bytes of an object. A missing object may be reported only with the first byte. */
    bool (*get)(struct archive_store *store, const char *name, struct rd_src **ret,
                struct rd_err *err);
    bool (*stat)(struct archive_store *store, const char *name, struct archive_object *ret,
                 struct rd_err *err);
    /* Calls each(arg, name) for all objects whose names begin with folder and a slash, in any
     * order, also for the remains of an interrupted put. It must not change the store. A folder
     * that does not exist is empty. */
    bool (*list)(struct archive_store *store, const char *folder,
                 void (*each)(void *arg, const char *name, uint64_t size), void *arg,
                 struct rd_err *err);
    /* An object that does not exist counts as removed. */
    bool (*remove)(struct archive_store *store, const char *name, struct rd_err *err);
    /* Removes the empty folders in a folder; NULL: the store has no folders. */
    void (*tidy)(struct archive_store *store, const char *folder);
    /* Takes the lock `name` for `owner`, a line of text without control characters. RD_ERR_LOCKED
     * names the owner that has it. The lock is held until unlock() or the end of the process. */
    bool (*lock)(struct archive_store *store, const char *name, const char *owner,
                 struct rd_err *err);
    void (*unlock)(struct archive_store *store);
    void (*close)(struct archive_store *store);
};

/* The first member of a driver's struct. */
struct archive_store {
    const struct archive_store_ops *ops;
    char origin[RD_ERR_TEXT_MAX]; /* for messages */
};

/* A folder. create: it is created if only its last component is missing. Files have the mode 0600,
 * folders 0700. The lock is a flock(), which the system releases if the process is killed. */
bool archive_store_open_posix(struct archive_store **ret, const char *path, bool create,
                              struct rd_err *err);

/* NULL is allowed. */
void archive_store_close(struct archive_store *store);

/* Reads a whole small object, at most `max` bytes (RD_ERR_LIMIT), and appends it to *ret. */
struct rd_buf;
bool archive_store_read(struct archive_store *store, const char *name, size_t max,
                        struct rd_buf *ret, struct rd_err *err);
bool archive_store_write(struct archive_store *store, const char *name, struct rd_slice bytes,
                         struct rd_err *err);

/* One component of a name, of at most 100 bytes. */
bool archive_name_ok(const char *name);

#endif
