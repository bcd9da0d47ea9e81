/* hash.h - private to rdb/: keyed 64-bit hashes of names and members, to find duplicates.
 *
 * The key comes from a random seed that the tools choose for each run, so that an attacker cannot
 * prepare names that collide. Equal hashes only make a candidate: the bytes are compared before a
 * duplicate is reported: see rdb/name_match.h, rdb/read/duplicate.c. The functions are inline so
 * that the processor can compute the hashes of several members in parallel.
 */
#ifndef RDB_HASH_H
#define RDB_HASH_H

#include "base/endian.h"
#include "base/num.h"
#include "base/slice.h"

struct rdb_hash_key {
    uint64_t k[4];
};

static inline uint64_t rdb_hash_mix(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Derives four odd words from a seed of two words. */
static inline struct rdb_hash_key rdb_hash_key(const uint64_t seed[2])
{
    struct rdb_hash_key key;
    for (unsigned i = 0; i < 4; i++) {
        uint64_t z = seed[i & 1] + (i + 1) * 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        key.k[i] = (z ^ z >> 31) | 1;
    }
    return key;
}

static inline uint64_t rdb_hash_load_short(const uint8_t *p, size_t len)
{
    if (len >= 4)
        return (uint64_t)rd_get_le32(p) << 32 | rd_get_le32(p + len - 4);
    return len == 0 ? 0 : (uint64_t)p[0] << 16 | (uint64_t)p[len / 2] << 8 | p[len - 1];
}

static inline uint64_t rdb_hash_bytes(const struct rdb_hash_key *key, const uint8_t *p, size_t len)
{
    uint64_t h = key->k[0] ^ len * key->k[1];
    while (len > 16) {
        h = rdb_hash_mix(rd_get_le64(p) ^ h, rd_get_le64(p + 8) ^ key->k[2]);
        p += 16;
        len -= 16;
    }
    uint64_t a = len > 8 ? rd_get_le64(p) : rdb_hash_load_short(p, len);
    uint64_t b = len > 8 ? rd_get_le64(p + len - 8) : 0;
    return rdb_hash_mix(rdb_hash_mix(a ^ key->k[1], b ^ h) ^ key->k[3], key->k[2] ^ len);
}

static inline uint64_t rdb_hash_int(const struct rdb_hash_key *key, int64_t num)
{
    return rdb_hash_mix(rdb_hash_mix((uint64_t)num ^ key->k[2], key->k[1]) ^ key->k[3], key->k[0]);
}

static inline bool rdb_hash_is_digit(uint8_t byte)
{
    return (uint8_t)(byte - '0') <= 9;
}

/* Of a member: integers and the text of the same integer have the same hash. */
static inline uint64_t rdb_hash_member(const struct rdb_hash_key *key, const uint8_t *p, size_t len)
{
    int64_t num;
    if (len > 0 && len <= RD_NUM_I64_MAX && (p[0] == '-' || rdb_hash_is_digit(p[0])) &&
        rdb_hash_is_digit(p[len - 1]) && rd_num_get_i64(rd_slice(p, len), &num))
        return rdb_hash_int(key, num);
    return rdb_hash_bytes(key, p, len);
}

#endif
