/* SipHash-2-4-128: two rounds for each word of eight bytes, four and four at the end. The last word
 * holds the bytes that are left over and, on top, the length modulo 256. */
#include "base/siphash.h"

#include "base/endian.h"

static inline uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static inline void round_once(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static inline void take_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    round_once(v);
    round_once(v);
    v[0] ^= word;
}

static uint64_t last_rounds(uint64_t v[4])
{
    for (int i = 0; i < 4; i++)
        round_once(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void rd_siphash_begin(struct rd_siphash *hash, const uint8_t key[RD_SIPHASH_KEY])
{
    uint64_t k0 = rd_get_le64(key), k1 = rd_get_le64(key + 8);
    *hash = (struct rd_siphash){.v = {
                                    k0 ^ 0x736f6d6570736575,
                                    k1 ^ 0x646f72616e646f6d ^ 0xee,
                                    k0 ^ 0x6c7967656e657261,
                                    k1 ^ 0x7465646279746573,
                                }};
}

/* Fewer than eight bytes as a word; the first byte is in the low bits. */
static uint64_t get_short(const uint8_t *p, size_t len)
{
    uint64_t word = 0;
    for (size_t i = 0; i < len; i++)
        word |= (uint64_t)p[i] << 8 * i;
    return word;
}

void rd_siphash_add(struct rd_siphash *hash, const void *ptr, size_t len)
{
    const uint8_t *p = ptr;
    size_t held = hash->len % 8;
    hash->len += len;
    if (held > 0) {
        size_t n = len < 8 - held ? len : 8 - held;
        hash->tail |= get_short(p, n) << 8 * held;
        p += n;
        len -= n;
        if (held + n < 8)
            return;
        take_word(hash->v, hash->tail);
    }
    for (; len >= 8; p += 8, len -= 8)
        take_word(hash->v, rd_get_le64(p));
    hash->tail = get_short(p, len);
}

void rd_siphash_add_u64(struct rd_siphash *hash, uint64_t number)
{
    uint8_t bytes[8];
    rd_put_le64(bytes, number);
    rd_siphash_add(hash, bytes, sizeof bytes);
}

struct rd_hash128 rd_siphash_end(struct rd_siphash *hash)
{
    struct rd_hash128 sum;
    take_word(hash->v, hash->tail | hash->len << 56);
    hash->v[2] ^= 0xee;
    sum.lo = last_rounds(hash->v);
    hash->v[1] ^= 0xdd;
    sum.hi = last_rounds(hash->v);
    return sum;
}

void rd_hash128_put(uint8_t dst[RD_HASH128_LEN], struct rd_hash128 hash)
{
    rd_put_le64(dst, hash.lo);
    rd_put_le64(dst + 8, hash.hi);
}

struct rd_hash128 rd_hash128_get(const uint8_t src[RD_HASH128_LEN])
{
    return (struct rd_hash128){.lo = rd_get_le64(src), .hi = rd_get_le64(src + 8)};
}
