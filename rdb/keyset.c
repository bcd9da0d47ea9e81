#include "rdb/keyset.h"

#include "base/mem.h"
#include "rdb/read/priv.h"

enum { SLOTS_FIRST = 1 << 12 };

uint64_t rdb_keyset_hash(uint64_t db, struct rd_slice key)
{
    uint64_t hash = rdb_hash_bytes(key.ptr, key.len) + db * 0x9e3779b97f4a7c15u;
    return hash == 0 ? 1 : hash;
}

/* True: it is new. The slots have room. */
static bool insert(uint64_t *slots, size_t mask, uint64_t hash)
{
    size_t i = (hash >> 20) & mask;
    while (slots[i] != 0) {
        if (slots[i] == hash)
            return false;
        i = (i + 1) & mask;
    }
    slots[i] = hash;
    return true;
}

static bool grow(struct rdb_keyset *set)
{
    size_t n = set->slots == NULL ? SLOTS_FIRST : 4 * (set->mask + 1);
    if (n > 2 * RDB_KEYSET_MAX)
        n = 2 * RDB_KEYSET_MAX;
    uint64_t *slots = rd_calloc(n, sizeof *slots);
    if (slots == NULL)
        return false;
    for (size_t i = 0; set->slots != NULL && i <= set->mask; i++)
        if (set->slots[i] != 0)
            insert(slots, n - 1, set->slots[i]);
    rd_free(set->slots);
    set->slots = slots;
    set->mask = n - 1;
    return true;
}

static bool contains(const struct rdb_keyset *set, uint64_t hash)
{
    for (size_t i = (hash >> 20) & set->mask; set->slots[i] != 0; i = (i + 1) & set->mask)
        if (set->slots[i] == hash)
            return true;
    return false;
}

enum rdb_keyset_status rdb_keyset_add(struct rdb_keyset *set, uint64_t hash, struct rd_err *err)
{
    if (set->used >= RDB_KEYSET_MAX) {
        bool known = contains(set, hash);
        set->lost += !known;
        return known ? RDB_KEYSET_KNOWN : RDB_KEYSET_LOST;
    }
    if (set->slots == NULL || set->used > set->mask / 2) {
        if (!grow(set)) {
            rd_err_nomem(err, RDB_KEYSET_MAX);
            return RDB_KEYSET_FAIL;
        }
    }
    if (!insert(set->slots, set->mask, hash))
        return RDB_KEYSET_KNOWN;
    set->used++;
    return RDB_KEYSET_NEW;
}

void rdb_keyset_done(struct rdb_keyset *set)
{
    rd_free(set->slots);
    *set = (struct rdb_keyset){0};
}
