/* keylog.h - private to rdb/: finds keys that a snapshot has twice, in bounded memory and without
 * waiting for memory.
 *
 * A filter of a few MiB tells at once that nearly every key is new. The others are suspects;
 * whether one of them was there before is found at the end, in a log of all hashes, which goes to a
 * spool where it grows over 1.5 million. See rdb/keyset.h for who must know at once.
 */
#ifndef RDB_KEYLOG_H
#define RDB_KEYLOG_H

#include "base/buf.h"
#include "base/err.h"
#include "rdb/check.h"
#include "rdb/hash.h"

enum { RDB_KEYLOG_NAME_MAX = 64, RDB_KEYLOG_SUSPECTS_MAX = 1 << 16 };

/* A key whose hash the filter had. */
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
    uint64_t *filter;
    struct rd_buf log;      /* hashes in memory */
    struct rd_buf suspects; /* struct rdb_suspect */
    uint64_t spooled;       /* hashes in the spool, before those in memory */
    uint64_t lost;          /* keys that cannot be compared any more */
    const struct rdb_spool *spool;
};

bool rdb_keylog_init(struct rdb_keylog *log, const struct rdb_spool *spool, const uint64_t seed[2],
                     struct rd_err *err);

/* The hash of a key; its place in the filter is fetched meanwhile. */
uint64_t rdb_keylog_begin(const struct rdb_keylog *log, uint64_t db, struct rd_slice name);

/* Adds the key. True: it may be there already, and suspect is to be told with rdb_keylog_suspect().
 */
bool rdb_keylog_add(struct rdb_keylog *log, uint64_t hash, bool *ret_suspect, struct rd_err *err);
bool rdb_keylog_suspect(struct rdb_keylog *log, const struct rdb_suspect *suspect,
                        struct rd_err *err);

/* Calls found() for every suspect that was there before, in the order they came. */
bool rdb_keylog_finish(struct rdb_keylog *log,
                       void (*found)(void *ctx, const struct rdb_suspect *suspect), void *ctx,
                       struct rd_err *err);
void rdb_keylog_done(struct rdb_keylog *log);

#endif
