/* hash.h - a seeded 64-bit hash of bytes, for tables.
 *
 *     uint64_t hash = engine_hash(name.ptr, name.len, seed);
 *
 * SipHash-1-3 by Aumasson and Bernstein, with a 128-bit key derived from the seed. Without the
 * seed, clients cannot choose names that collide, nor derive it from the order in which SCAN
 * returns keys. The hash is not for signatures or files.
 *
 * All 64 bits are good: use the low ones for a position and the high ones for a tag.
 */
#ifndef ENGINE_HASH_H
#define ENGINE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/endian.h"

struct engine_hash_product {
    uint64_t lo;
    uint64_t hi;
};

static inline struct engine_hash_product engine_hash_multiply(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (struct engine_hash_product){.lo = (uint64_t)product, .hi = (uint64_t)(product >> 64)};
#else
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t cross = ah * bl + (al * bl >> 32);
    uint64_t middle = al * bh + (uint32_t)cross;
    return (struct engine_hash_product){.lo = a * b,
                                        .hi = ah * bh + (cross >> 32) + (middle >> 32)};
#endif
}

static inline uint64_t engine_hash_fold(uint64_t a, uint64_t b)
{
    struct engine_hash_product product = engine_hash_multiply(a, b);
    return product.lo ^ product.hi;
}

/* Maps `random`, 64 random bits, to a number below n. */
static inline uint64_t engine_hash_below(uint64_t random, uint64_t n)
{
    return engine_hash_multiply(random, n).hi;
}

struct engine_hash_state {
    uint64_t a, b, c, d;
};

static inline uint64_t engine_hash_turn(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

static inline void engine_hash_round(struct engine_hash_state *s)
{
    s->a += s->b;
    s->c += s->d;
    s->b = engine_hash_turn(s->b, 13) ^ s->a;
    s->d = engine_hash_turn(s->d, 16) ^ s->c;
    s->a = engine_hash_turn(s->a, 32) + s->d;
    s->c += s->b;
    s->b = engine_hash_turn(s->b, 17) ^ s->c;
    s->d = engine_hash_turn(s->d, 21) ^ s->a;
    s->c = engine_hash_turn(s->c, 32);
}

static inline void engine_hash_word(struct engine_hash_state *s, uint64_t word)
{
    s->d ^= word;
    engine_hash_round(s);
    s->a ^= word;
}

/* The last bytes, fewer than eight, below the low byte of the length. They are loaded in two halves
 * that may overlap. */
static inline uint64_t engine_hash_tail(const uint8_t *p, size_t len)
{
    size_t n = len & 7;
    uint64_t word = (uint64_t)len << 56;
    if (n >= 4)
        return word | rd_get_le32(p) | (uint64_t)rd_get_le32(p + n - 4) << (8 * n - 32);
    if (n > 0)
        word |=
            (uint64_t)p[0] | (uint64_t)p[n / 2] << (n / 2 * 8) | (uint64_t)p[n - 1] << (8 * n - 8);
    return word;
}

/* SipHash-1-3 with the key (k0, k1). */
static inline uint64_t engine_siphash(const void *ptr, size_t len, uint64_t k0, uint64_t k1)
{
    const uint8_t *p = ptr;
    struct engine_hash_state s = {.a = k0 ^ 0x736f6d6570736575,
                                  .b = k1 ^ 0x646f72616e646f6d,
                                  .c = k0 ^ 0x6c7967656e657261,
                                  .d = k1 ^ 0x7465646279746573};
    for (size_t left = len / 8; left > 0; left--, p += 8)
        engine_hash_word(&s, rd_get_le64(p));
    engine_hash_word(&s, engine_hash_tail(p, len));
    s.c ^= 0xff;
    engine_hash_round(&s);
    engine_hash_round(&s);
    engine_hash_round(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

static inline uint64_t engine_hash(const void *ptr, size_t len, uint64_t seed)
{
    return engine_siphash(ptr, len, seed, seed * 0xd1b54a32d192ed03);
}

#endif
