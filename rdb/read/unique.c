/* unique.c - a set of hashes, to find members that a collection has twice.
 *
 * Sixty-four bits are taken for the member itself: among a million members two share a hash with a
 * chance of one in thirty million.
 */
#include "rdb/read/priv.h"

enum { SLOTS_MIN = 64, SLOTS_MAX = 1 << 19 };

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
        while (cap < SLOTS_MAX && cap < 2 * n && cap < (1 << 14))
            cap *= 2;
    u->used = 0;
    u->full = false;
    return resize(u, cap);
}

static bool grow(struct unique *u)
{
    size_t old_cap = u->mask + 1;
    uint64_t *old = rd_alloc(old_cap * sizeof *old);
    if (old == NULL)
        return false;
    memcpy(old, u->slots, old_cap * sizeof *old);
    bool ok = resize(u, old_cap * 4 < SLOTS_MAX ? old_cap * 4 : SLOTS_MAX);
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

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static const uint64_t salt[3] = {0x9fb21c651e98df25u, 0xd1342543de82ef95u, 0xc2b2ae3d27d4eb4fu};

static inline uint64_t load_short(const uint8_t *p, size_t len)
{
    if (len >= 4)
        return (uint64_t)rd_get_le32(p) << 32 | rd_get_le32(p + len - 4);
    return len == 0 ? 0 : (uint64_t)p[0] << 16 | (uint64_t)p[len / 2] << 8 | p[len - 1];
}

uint64_t rdb_hash_bytes(const uint8_t *p, size_t len)
{
    uint64_t h = salt[0] ^ len * salt[1];
    while (len > 16) {
        h = mix(rd_get_le64(p) ^ h, rd_get_le64(p + 8) ^ salt[2]);
        p += 16;
        len -= 16;
    }
    uint64_t a = len > 8 ? rd_get_le64(p) : load_short(p, len);
    uint64_t b = len > 8 ? rd_get_le64(p + len - 8) : 0;
    return mix(mix(a ^ salt[1], b ^ h), salt[2] ^ len);
}

uint64_t rdb_hash_int(int64_t num)
{
    return mix((uint64_t)num ^ salt[2], salt[1]) * salt[0] + 1;
}

uint64_t rdb_hash_member(const uint8_t *p, size_t len)
{
    int64_t num;
    if (len > 0 && len <= RD_NUM_I64_MAX && (p[0] == '-' || (p[0] >= '0' && p[0] <= '9')) &&
        rd_num_get_i64(rd_slice(p, len), &num))
        return rdb_hash_int(num);
    return rdb_hash_bytes(p, len);
}
