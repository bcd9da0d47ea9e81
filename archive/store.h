/* store.h - the storage for the objects of a repository.
 *
 * A store holds objects under names such as "nightly/sets/20261123T013445Z-1f2e3d4c/dump.rdb". It
 * offers what a folder, a server (SFTP, WebDAV), an S3 bucket and a container of Azure have in
 * common: an object appears completely or not at all, never changes, and can be read, listed and
 * removed.
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
 * Errors: RD_ERR_IO of a folder and RD_ERR_PROTOCOL of a server; RD_ERR_LOCKED. What became of an
 * object that was put is a reason (ARCHIVE_REASON_…), never a code.
 */
#ifndef ARCHIVE_STORE_H
#define ARCHIVE_STORE_H

#include "base/err.h"
#include "base/sink.h"
#include "base/src.h"

enum {
    ARCHIVE_NAME_MAX = 320,
    ARCHIVE_OWNER_MAX = 160,
    ARCHIVE_STORE_SHA256 = 32,
    ARCHIVE_VERSION_MAX = 64
};

/* Reasons of errors (rd_err_reason.id): MISSING of get, the others of put. */
enum archive_reason {
    ARCHIVE_REASON_EXISTS = 401, /* the store has an object with this name */
    ARCHIVE_REASON_UNKNOWN,      /* its answer was lost: the store may have the object, or
                                    get it later */
    ARCHIVE_REASON_FOREIGN,      /* the store has an object in the place of another one, and that
                                    will not change by trying again */
    ARCHIVE_REASON_MISSING       /* the store has no object with this name */
};

struct archive_store;
struct rd_buf;

struct archive_object {
    bool there;
    uint64_t size;
};

/* An object of a listing. */
struct archive_listed {
    const char *name;
    uint64_t size;
    /* A word of the store for the bytes of the object, which changes when they are replaced, such
     * as the ETag of S3: visible characters of ASCII, fewer than ARCHIVE_VERSION_MAX. NULL: the
     * store has none. */
    const char *version;
};

typedef void archive_each_fn(void *arg, const struct archive_listed *object);

struct archive_store_ops {
    bool remote; /* each call takes the time of a request */
    bool shared; /* several threads may call get(), range() and stat() at once */
    /* put itself compares an object that exists: the same bytes are a success. */
    bool settles;
    /* A new object. It exists, and is durable, when the sink is closed. An existing one is not
     * replaced: ARCHIVE_REASON_EXISTS. Use archive_store_put(), which also settles
     * ARCHIVE_REASON_UNKNOWN. */
    bool (*put)(struct archive_store *store, const char *name, struct rd_sink **ret,
                struct rd_err *err);
    /* The bytes of an object. A missing object may be reported only with the first byte. */
    bool (*get)(struct archive_store *store, const char *name, struct rd_src **ret,
                struct rd_err *err);
    /* Appends exactly these bytes of an object. NULL: objects are read from their beginning. */
    bool (*range)(struct archive_store *store, const char *name, uint64_t offset, size_t len,
                  struct rd_buf *ret, struct rd_err *err);
    bool (*stat)(struct archive_store *store, const char *name, struct archive_object *ret,
                 struct rd_err *err);
    /* Calls each(arg, object) for all objects whose names begin with folder and a slash, in any
     * order, also for the remains of an interrupted put. It must not change the store. A folder
     * that does not exist is empty. */
    bool (*list)(struct archive_store *store, const char *folder, archive_each_fn *each, void *arg,
                 struct rd_err *err);
    /* An object that does not exist counts as removed. */
    bool (*remove)(struct archive_store *store, const char *name, struct rd_err *err);
    /* Removes what interrupted puts have left in a folder and list() does not show, as far as the
     * store allows it. The folder must be locked. NULL: there is nothing of this kind. */
    void (*clean)(struct archive_store *store, const char *folder);
    /* Removes the empty folders in a folder; NULL: the store has no folders. */
    void (*tidy)(struct archive_store *store, const char *folder);
    /* A lock of the system; NULL: there is none, and archive/lock.h makes one of objects. Takes the
     * lock `name` for `owner`, a line of text without control characters. RD_ERR_LOCKED names the
     * owner that has it. The lock is held until unlock() or the end of the process. */
    bool (*lock)(struct archive_store *store, const char *name, const char *owner,
                 struct rd_err *err);
    /* False: it is not held, or its file is not the one that others would lock. */
    bool (*held)(struct archive_store *store, struct rd_err *err);
    void (*unlock)(struct archive_store *store);
    /* Whether a process has the lock, and its line of text. */
    bool (*lock_owner)(struct archive_store *store, const char *name, char ret[ARCHIVE_OWNER_MAX],
                       bool *ret_held, struct rd_err *err);
    /* The age of an object, by the clock of the store. False: not known. NULL: never known. */
    bool (*age)(struct archive_store *store, const char *name, int64_t *ret_ms, struct rd_err *err);
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

/* Puts a new object. If the store already has an object with this name, or its answer was lost, the
 * object is read and compared by size and digest: the same bytes are a success. Otherwise it fails
 * with ARCHIVE_REASON_EXISTS: the object has other bytes; or ARCHIVE_REASON_UNKNOWN: it cannot be
 * compared, or it is not there yet. */
bool archive_store_put(struct archive_store *store, const char *name, struct rd_sink **ret,
                       struct rd_err *err);

/* Whether the error means that the store has another object with the name. */
bool archive_store_exists(const struct rd_err *err);
/* Whether the error means that the store may have stored the object, or may still do so. */
bool archive_store_is_unknown(const struct rd_err *err);
/* Whether the error means that the store has no object with the name. A file of another kind that
 * does not exist, such as one of the spool, is not meant. */
bool archive_store_is_missing(const struct rd_err *err);
/* For drivers; they return false. `name` is the origin of the error. */
bool archive_store_set_exists(struct rd_err *err, const char *name);
bool archive_store_set_missing(struct rd_err *err, const char *name);
/* Adds ARCHIVE_REASON_UNKNOWN to an error, unless it has a reason. */
bool archive_store_set_unknown(struct rd_err *err);

struct archive_store_sum {
    uint64_t bytes;
    uint8_t sha256[ARCHIVE_STORE_SHA256];
};

bool archive_store_same(const struct archive_store_sum *a, const struct archive_store_sum *b);

enum archive_store_proof {
    ARCHIVE_STORE_SAME,   /* it has the object, with these bytes */
    ARCHIVE_STORE_OTHER,  /* it has an object with other bytes */
    ARCHIVE_STORE_ABSENT, /* it has no object with the name */
    ARCHIVE_STORE_OPAQUE, /* it gave an object, which is damaged, forged or sealed with a key that
                             is not there; see err. Only of archive_segment_prove() */
    ARCHIVE_STORE_FAILED  /* it cannot be known; see err */
};

/* Reads the object and compares it. */
enum archive_store_proof archive_store_prove(struct archive_store *store, const char *name,
                                             const struct archive_store_sum *want,
                                             struct rd_err *err);
/* Whether the store shows an object of at least this size, which it is said to have stored: the
 * answer may have come from what is between. */
bool archive_store_keeps(struct archive_store *store, const char *name, uint64_t bytes,
                         struct rd_err *err);
/* Reads all bytes of a source, which is not closed. */
bool archive_store_sum_src(struct rd_src *src, struct archive_store_sum *ret, struct rd_err *err);

/* Reads a whole small object, at most `max` bytes (RD_ERR_LIMIT), and appends it to *ret. */
bool archive_store_read(struct archive_store *store, const char *name, size_t max,
                        struct rd_buf *ret, struct rd_err *err);
/* Appends a part of an object to *ret: exactly the bytes from `offset` to `offset + len`, len > 0.
 * RD_ERR_TRUNCATED: the object ends before. On failure *ret is unchanged. */
bool archive_store_range(struct archive_store *store, const char *name, uint64_t offset, size_t len,
                         struct rd_buf *ret, struct rd_err *err);
/* archive_store_put() with these bytes. */
bool archive_store_write(struct archive_store *store, const char *name, struct rd_slice bytes,
                         struct rd_err *err);

/* One component of a name, of at most 100 bytes. */
bool archive_name_ok(const char *name);

#endif
