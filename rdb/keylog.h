/* keylog.h - private to rdb/: finds duplicate keys in a snapshot, in bounded memory and without
 * cache misses in the main loop.
 *
 * A Bloom filter of a few MiB shows at once that nearly all keys are new. The other keys are
 * suspects. A log of all hashes confirms or clears them at the end; it goes to a spool when it
 * exceeds 1.5 million hashes. See rdb/keyset.h for an immediate answer.
 */
#ifndef RDB_KEYLOG_H
#define RDB_KEYLOG_H

#include "base/buf.h"
#include "base/err.h"
#include "rdb/check.h"
#include "rdb/hash.h"

enum { RDB_KEYLOG_NAME_MAX = 64, RDB_KEYLOG_SUSPECTS_MAX = 1 << 16 };

/* A key whose hash was in the filter already. */
struct rdb_suspect {
    uint64_t hash;
    uint64_t offset; /* of its record */
    uint64_t db;
    uint64_t name_len;
    const struct rdb_type *type;
    uint8_t name[RDB_KEYLOG_NAME_MAX]; /* its first bytes */
};

struct rdb_keylog {
    struct rdb_hash_key key;
    uint64_t *filter; /* in `block`, at the beginning of a huge page */
    void *block;
    bool huge;              /* huge pages were asked for */
    struct rd_buf log;      /* hashes in memory */
    struct rd_buf suspects; /* struct rdb_suspect */
    uint64_t spooled;       /* hashes in the spool, before those in memory */
    uint64_t lost;          /* keys that can no longer be compared */
    const struct rdb_spool *spool;
};

bool rdb_keylog_init(struct rdb_keylog *log, const struct rdb_spool *spool, const uint64_t seed[2],
                     struct rd_err *err);

uint64_t rdb_keylog_hash(const struct rdb_keylog *log, uint64_t db, struct rd_slice name);

/* Adds n keys, whose hashes are set. Many at once are faster: the memory of the filter is then
 * prefetched, and backed by huge pages where the system has them. */
bool rdb_keylog_add(struct rdb_keylog *log, const struct rdb_suspect *keys, size_t n,
                    struct rd_err *err);

/* Calls found() for every confirmed suspect, in the order in which they were added. */
bool rdb_keylog_finish(struct rdb_keylog *log,
                       void (*found)(void *ctx, const struct rdb_suspect *suspect), void *ctx,
                       struct rd_err *err);
void rdb_keylog_done(struct rdb_keylog *log);

#endif
