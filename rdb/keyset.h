/* keyset.h - private to rdb/: which keys salvage kept already, told at once and in bounded memory.
 *
 * Keeps the 64-bit hashes of (database, name) of the first RDB_KEYSET_MAX keys; further ones are
 * compared with those only. See rdb/keylog.h for who can wait until the end.
 */
#ifndef RDB_KEYSET_H
#define RDB_KEYSET_H

#include "base/api.h"
#include "base/err.h"
#include "rdb/hash.h"

enum { RDB_KEYSET_MAX = 1 << 20 };

struct rdb_keyset_slot {
    uint64_t hash;   /* 0: free */
    uint64_t record; /* where the key's record begins */
};

struct rdb_keyset {
    struct rdb_keyset_slot *slots;
    size_t mask;
    size_t used;
    uint64_t lost; /* keys that were not kept, because there were too many */
};

enum rdb_keyset_status { RDB_KEYSET_NEW, RDB_KEYSET_KNOWN, RDB_KEYSET_LOST, RDB_KEYSET_FAIL };

/* Never 0. */
uint64_t rdb_keyset_hash(const struct rdb_hash_key *key, uint64_t db, struct rd_slice name);

/* A zeroed struct is an empty set. KNOWN: *ret is the key that has
 * the same hash; its name is to be compared (rdb/twins.h). LOST: not known, and not kept. FAIL:
 * memory is short. */
enum rdb_keyset_status rdb_keyset_add(struct rdb_keyset *set, const struct rdb_keyset_slot *key,
                                      struct rdb_keyset_slot *ret, struct rd_err *err);
void rdb_keyset_done(struct rdb_keyset *set);

#endif
