#include "rdb/keyset.h"

#include "base/mem.h"

enum { SLOTS_FIRST = 1 << 12 };

uint64_t rdb_keyset_hash(const struct rdb_hash_key *key, uint64_t db, struct rd_slice name)
{
    uint64_t hash = rdb_hash_bytes(key, name.ptr, name.len) + db * 0x9e3779b97f4a7c15u;
    return hash == 0 ? 1 : hash;
}

/* The slot of the hash, or the free slot for it. */
static struct rdb_keyset_slot *find(struct rdb_keyset_slot *slots, size_t mask, uint64_t hash)
{
    size_t i = (hash >> 20) & mask;
    while (slots[i].hash != 0 && slots[i].hash != hash)
        i = (i + 1) & mask;
    return &slots[i];
}

static bool grow(struct rdb_keyset *set)
{
    size_t n = set->slots == NULL ? SLOTS_FIRST : 4 * (set->mask + 1);
    if (n > 2 * RDB_KEYSET_MAX)
        n = 2 * RDB_KEYSET_MAX;
    struct rdb_keyset_slot *slots = rd_calloc(n, sizeof *slots);
    if (slots == NULL)
        return false;
    for (size_t i = 0; set->slots != NULL && i <= set->mask; i++)
        if (set->slots[i].hash != 0)
            *find(slots, n - 1, set->slots[i].hash) = set->slots[i];
    rd_free(set->slots);
    set->slots = slots;
    set->mask = n - 1;
    return true;
}

enum rdb_keyset_status rdb_keyset_add(struct rdb_keyset *set, const struct rdb_keyset_slot *key,
                                      struct rdb_keyset_slot *ret, struct rd_err *err)
{
    bool full = set->used >= RDB_KEYSET_MAX;
    if (!full && (set->slots == NULL || set->used > set->mask / 2) && !grow(set)) {
        rd_err_nomem(err, RDB_KEYSET_MAX);
        return RDB_KEYSET_FAIL;
    }
    struct rdb_keyset_slot *slot = find(set->slots, set->mask, key->hash);
    if (slot->hash != 0) {
        *ret = *slot;
        return RDB_KEYSET_KNOWN;
    }
    if (full) {
        set->lost++;
        return RDB_KEYSET_LOST;
    }
    *slot = *key;
    set->used++;
    return RDB_KEYSET_NEW;
}

void rdb_keyset_done(struct rdb_keyset *set)
{
    rd_free(set->slots);
    *set = (struct rdb_keyset){0};
}
