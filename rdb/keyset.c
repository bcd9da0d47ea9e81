#include "rdb/keyset.h"

#include "base/mem.h"
#include "rdb/read/priv.h"

enum { SLOTS_FIRST = 1 << 12, BATCH = 1024 };

struct spooled {
    uint64_t hash;
    uint64_t offset;
};

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

static enum rdb_keyset_status later(struct rdb_keyset *set, uint64_t hash, uint64_t offset,
                                    struct rd_err *err)
{
    if (contains(set, hash))
        return RDB_KEYSET_KNOWN;
    if (set->spool == NULL) {
        set->lost++;
        return RDB_KEYSET_LATER;
    }
    struct spooled item = {hash, offset};
    if (!set->spool->append(set->spool->ctx, &item, sizeof item, err))
        return RDB_KEYSET_FAIL;
    set->spooled++;
    return RDB_KEYSET_LATER;
}

uint64_t rdb_keyset_prefetch(const struct rdb_keyset *set, uint64_t db, struct rd_slice key)
{
    uint64_t hash = rdb_keyset_hash(db, key);
    if (set->slots != NULL)
        __builtin_prefetch(&set->slots[(hash >> 20) & set->mask], 1);
    return hash;
}

enum rdb_keyset_status rdb_keyset_add(struct rdb_keyset *set, uint64_t db, struct rd_slice key,
                                      uint64_t offset, struct rd_err *err)
{
    return rdb_keyset_add_hash(set, rdb_keyset_hash(db, key), offset, err);
}

enum rdb_keyset_status rdb_keyset_add_hash(struct rdb_keyset *set, uint64_t hash, uint64_t offset,
                                           struct rd_err *err)
{
    if (set->used >= RDB_KEYSET_MAX)
        return later(set, hash, offset, err);
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

/* One pass over the spool, looking at the hashes of one part only. */
static bool pass(struct rdb_keyset *set, uint64_t part, uint64_t parts,
                 void (*found)(void *ctx, uint64_t offset), void *ctx, struct rd_err *err)
{
    struct spooled batch[BATCH];
    memset(set->slots, 0, (set->mask + 1) * sizeof *set->slots);
    for (uint64_t at = 0; at < set->spooled; at += BATCH) {
        size_t n = set->spooled - at < BATCH ? (size_t)(set->spooled - at) : BATCH;
        if (!set->spool->read(set->spool->ctx, at * sizeof *batch, batch, n * sizeof *batch, err))
            return false;
        for (size_t i = 0; i < n; i++)
            if (batch[i].hash % parts == part && !insert(set->slots, set->mask, batch[i].hash))
                found(ctx, batch[i].offset);
    }
    return true;
}

bool rdb_keyset_finish(struct rdb_keyset *set, void (*found)(void *ctx, uint64_t offset), void *ctx,
                       struct rd_err *err)
{
    /* Twice as many slots as hashes on the average; what a part may hold above that still fits. */
    uint64_t parts = set->spooled / (RDB_KEYSET_MAX / 2) + 1;
    for (uint64_t part = 0; part < parts && set->spooled > 0; part++)
        if (!pass(set, part, parts, found, ctx, err))
            return false;
    return true;
}

void rdb_keyset_reset(struct rdb_keyset *set)
{
    if (set->slots != NULL)
        memset(set->slots, 0, (set->mask + 1) * sizeof *set->slots);
    set->used = 0;
}

void rdb_keyset_done(struct rdb_keyset *set)
{
    rd_free(set->slots);
    *set = (struct rdb_keyset){0};
}
