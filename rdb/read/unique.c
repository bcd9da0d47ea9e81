/* unique.c - a set of hashes that finds duplicate members of a collection.
 *
 * duplicate.c compares two members with the same hash. */
#include "rdb/read/reader_impl.h"

enum { SLOTS_MIN = 64, SLOTS_FIRST = 1 << 14, SLOTS_MAX = 1 << 19 };

static bool resize(struct unique *u, size_t cap)
{
    if (cap > u->cap) {
        uint64_t *slots = rd_calloc(cap, sizeof *slots);
        if (slots == NULL)
            return false;
        rd_free(u->slots);
        u->slots = slots;
        u->cap = cap;
    } else {
        memset(u->slots, 0, cap * sizeof *u->slots);
    }
    u->mask = cap - 1;
    u->limit = cap / 4 * 3;
    return true;
}

bool rdb_unique_begin(struct unique *u, uint64_t n)
{
    size_t cap = SLOTS_MIN;
    if (n != RDB_UNKNOWN)
        while (cap < SLOTS_MAX && cap < 2 * n && cap < SLOTS_FIRST)
            cap *= 2;
    u->used = 0;
    u->full = false;
    u->proved = false;
    u->expected = n;
    return resize(u, cap);
}

/* After growing once, the table gets the size for the declared number of members. */
static size_t larger(const struct unique *u, size_t cap)
{
    size_t want = 4 * cap;
    while (u->expected != RDB_UNKNOWN && want < SLOTS_MAX && want < 2 * u->expected)
        want *= 2;
    return want < SLOTS_MAX ? want : SLOTS_MAX;
}

static bool grow(struct unique *u)
{
    size_t old_cap = u->mask + 1;
    uint64_t *old = rd_alloc(old_cap * sizeof *old);
    if (old == NULL)
        return false;
    memcpy(old, u->slots, old_cap * sizeof *old);
    bool ok = resize(u, larger(u, old_cap));
    if (ok) {
        u->used = 0;
        for (size_t i = 0; i < old_cap; i++)
            if (old[i] != 0)
                rdb_unique_insert(u, old[i]);
    }
    rd_free(old);
    return ok;
}

bool rdb_unique_add_slow(struct unique *u, uint64_t hash)
{
    if (!u->full)
        u->full = u->mask + 1 >= SLOTS_MAX || !grow(u);
    return u->full || rdb_unique_insert(u, hash);
}

void rdb_unique_done(struct unique *u)
{
    rd_free(u->slots);
    *u = (struct unique){0};
}
