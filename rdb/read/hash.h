/* hash.h - 64-bit hashes of names and members, to find what is there twice.
 *
 * Not keyed: whoever knows the function can choose names that collide, and then sees a duplicate
 * reported that is none. Small enough to stand where they are called, so that the hashes of several
 * members are computed side by side.
 */
#ifndef RDB_READ_HASH_H
#define RDB_READ_HASH_H

#include "base/endian.h"
#include "base/num.h"
#include "base/slice.h"

#define RDB_HASH_SALT_0 0x9fb21c651e98df25u
#define RDB_HASH_SALT_1 0xd1342543de82ef95u
#define RDB_HASH_SALT_2 0xc2b2ae3d27d4eb4fu

static inline uint64_t rdb_hash_mix(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t rdb_hash_load_short(const uint8_t *p, size_t len)
{
    if (len >= 4)
        return (uint64_t)rd_get_le32(p) << 32 | rd_get_le32(p + len - 4);
    return len == 0 ? 0 : (uint64_t)p[0] << 16 | (uint64_t)p[len / 2] << 8 | p[len - 1];
}

static inline uint64_t rdb_hash_bytes(const uint8_t *p, size_t len)
{
    uint64_t h = RDB_HASH_SALT_0 ^ len * RDB_HASH_SALT_1;
    while (len > 16) {
        h = rdb_hash_mix(rd_get_le64(p) ^ h, rd_get_le64(p + 8) ^ RDB_HASH_SALT_2);
        p += 16;
        len -= 16;
    }
    uint64_t a = len > 8 ? rd_get_le64(p) : rdb_hash_load_short(p, len);
    uint64_t b = len > 8 ? rd_get_le64(p + len - 8) : 0;
    return rdb_hash_mix(rdb_hash_mix(a ^ RDB_HASH_SALT_1, b ^ h), RDB_HASH_SALT_2 ^ len);
}

static inline uint64_t rdb_hash_int(int64_t num)
{
    return rdb_hash_mix((uint64_t)num ^ RDB_HASH_SALT_2, RDB_HASH_SALT_1) * RDB_HASH_SALT_0 + 1;
}

static inline bool rdb_hash_is_digit(uint8_t byte)
{
    return (uint8_t)(byte - '0') <= 9;
}

/* Of a member: integers and the text of the same integer have the same hash. */
static inline uint64_t rdb_hash_member(const uint8_t *p, size_t len)
{
    int64_t num;
    if (len > 0 && len <= RD_NUM_I64_MAX && (p[0] == '-' || rdb_hash_is_digit(p[0])) &&
        rdb_hash_is_digit(p[len - 1]) && rd_num_get_i64(rd_slice(p, len), &num))
        return rdb_hash_int(num);
    return rdb_hash_bytes(p, len);
}

#endif
