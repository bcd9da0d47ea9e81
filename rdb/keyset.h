/* keyset.h - which keys a snapshot had already, in bounded memory.
 *
 * Keeps 64-bit hashes of (database, name). Up to RDB_KEYSET_MAX of them are in memory; further ones
 * go to a spool with their offsets, and rdb_keyset_finish() compares them all, part by part.
 */
#ifndef RDB_KEYSET_H
#define RDB_KEYSET_H

#include "base/api.h"
#include "base/err.h"
#include "rdb/check.h"

enum { RDB_KEYSET_MAX = 1 << 20 };

struct rdb_keyset {
    uint64_t *slots;
    size_t mask;
    size_t used;
    uint64_t spooled;
    uint64_t lost; /* keys that were not compared, for want of a spool */
    const struct rdb_spool *spool;
};

enum rdb_keyset_status { RDB_KEYSET_NEW, RDB_KEYSET_KNOWN, RDB_KEYSET_LATER, RDB_KEYSET_FAIL };

/* A zeroed struct is an empty set. */
enum rdb_keyset_status rdb_keyset_add(struct rdb_keyset *set, uint64_t db, struct rd_slice key,
                                      uint64_t offset, struct rd_err *err);

/* The same in two steps: the hash, whose place in the set is fetched meanwhile, and later the add.
 */
uint64_t rdb_keyset_prefetch(const struct rdb_keyset *set, uint64_t db, struct rd_slice key);
enum rdb_keyset_status rdb_keyset_add_hash(struct rdb_keyset *set, uint64_t hash, uint64_t offset,
                                           struct rd_err *err);

/* Calls found() with the offset of every spooled key that was there before. */
bool rdb_keyset_finish(struct rdb_keyset *set, void (*found)(void *ctx, uint64_t offset), void *ctx,
                       struct rd_err *err);
void rdb_keyset_reset(struct rdb_keyset *set);
void rdb_keyset_done(struct rdb_keyset *set);

uint64_t rdb_keyset_hash(uint64_t db, struct rd_slice key);

#endif
