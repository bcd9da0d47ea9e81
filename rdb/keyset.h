/* keyset.h - private to rdb/: the set of keys that salvage has kept, in bounded memory and with
 * immediate answers.
 *
 * Stores the 64-bit hashes of (database, name) of the first RDB_KEYSET_MAX keys; later keys are
 * compared only with those. See rdb/keylog.h for an answer at the end.
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
    uint64_t lost; /* keys that were not stored, because there were too many */
};

enum rdb_keyset_status { RDB_KEYSET_NEW, RDB_KEYSET_KNOWN, RDB_KEYSET_LOST, RDB_KEYSET_FAIL };

/* Never 0. */
uint64_t rdb_keyset_hash(const struct rdb_hash_key *key, uint64_t db, struct rd_slice name);

/* A zeroed struct is an empty set. KNOWN: *ret is the key with the same hash; the caller must
 * compare the names: see rdb/name_match.h. LOST: not in the set, and not stored. FAIL: out of
 * memory. */
enum rdb_keyset_status rdb_keyset_add(struct rdb_keyset *set, const struct rdb_keyset_slot *key,
                                      struct rdb_keyset_slot *ret, struct rd_err *err);
void rdb_keyset_done(struct rdb_keyset *set);

#endif
