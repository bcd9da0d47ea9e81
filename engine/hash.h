/* hash.h - a seeded hash of bytes, 64 bits, for tables.
 *
 *     uint64_t hash = engine_hash(name.ptr, name.len, seed);
 *
 * Words of eight bytes are masked with secrets that are made of the seed, multiplied in pairs to
 * 128 bits, and both halves of the product are folded into one word. Every factor holds a secret or
 * a product of secrets: who does not know the seed can neither bring a factor to zero nor choose
 * names that collide. It is no hash for signatures, and not for files: its values depend on the
 * byte order of the machine.
 *
 * All 64 bits are good: take the low ones for a position and the high ones for a tag. Up to 16
 * bytes take two multiplications, up to 32 three; then 32 bytes a round.
 */
#ifndef ENGINE_HASH_H
#define ENGINE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

/* `random`, of 64 random bits, as a number below n. */
static inline uint64_t engine_hash_below(uint64_t random, uint64_t n)
{
    return engine_hash_multiply(random, n).hi;
}

static inline uint64_t engine_hash_load8(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

static inline uint64_t engine_hash_load4(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* The seed's multiples differ in ways that cannot be told without it, where seeds that differ by
 * constants would let names be chosen whose products cancel out. */
struct engine_hash_secrets {
    uint64_t a, b, c, d;
};

static inline struct engine_hash_secrets engine_hash_secrets(uint64_t seed)
{
    uint64_t s = seed ^ 0x6a5d39eae116586d;
    return (struct engine_hash_secrets){.a = s,
                                        .b = s * 0xd1b54a32d192ed03,
                                        .c = s * 0xabc98388fb8fac03,
                                        .d = s * 0x8cb92ba72f3d8dd7};
}

/* 17 bytes and more: everything but what the last 16 bytes, which may overlap, add. */
static inline uint64_t engine_hash_blocks(const uint8_t *p, size_t len,
                                          const struct engine_hash_secrets *s)
{
    if (len <= 32)
        return engine_hash_fold(engine_hash_load8(p) ^ s->a, engine_hash_load8(p + 8) ^ s->b);
    uint64_t one = s->c, two = s->d;
    for (; len > 32; len -= 32, p += 32) {
        one = engine_hash_fold(engine_hash_load8(p) ^ one, engine_hash_load8(p + 8) ^ s->a);
        two = engine_hash_fold(engine_hash_load8(p + 16) ^ two, engine_hash_load8(p + 24) ^ s->b);
    }
    /* 1 to 32 bytes are left; those that end it are the last 32 of all. */
    p = p + len - 32;
    one = engine_hash_fold(engine_hash_load8(p) ^ one, engine_hash_load8(p + 8) ^ s->a);
    return one ^ engine_hash_fold(two, s->c);
}

static inline uint64_t engine_hash(const void *ptr, size_t len, uint64_t seed)
{
    const uint8_t *p = ptr;
    struct engine_hash_secrets s = engine_hash_secrets(seed);
    uint64_t one, two;
    if (len > 16) {
        uint64_t blocks = engine_hash_blocks(p, len, &s);
        one = engine_hash_load8(p + len - 16) ^ blocks ^ s.c;
        two = engine_hash_load8(p + len - 8) ^ s.d;
    } else if (len >= 8) {
        one = engine_hash_load8(p) ^ s.a;
        two = engine_hash_load8(p + len - 8) ^ s.b;
    } else if (len >= 4) {
        one = engine_hash_load4(p) ^ s.a;
        two = engine_hash_load4(p + len - 4) ^ s.b;
    } else {
        one = s.a;
        if (len > 0)
            one ^= (uint64_t)p[0] << 16 | (uint64_t)p[len / 2] << 8 | p[len - 1];
        two = s.b;
    }
    return engine_hash_fold(engine_hash_fold(one, two) ^ s.c, s.d ^ len);
}

#endif
