/* siphash.h - SipHash-2-4 with a result of 128 bits.
 *
 *     struct rd_siphash hash;
 *     rd_siphash_begin(&hash, key);
 *     rd_siphash_add(&hash, bytes, len);      // in any number of pieces
 *     struct rd_hash128 sum = rd_siphash_end(&hash);
 *
 * A keyed hash by Aumasson and Bernstein. Without the key, an attacker cannot choose inputs that
 * collide; other inputs collide with a probability of 2^-128. It processes about one byte per
 * cycle; short inputs take about thirty nanoseconds. For digests of files see base/digest.h.
 *
 * The sum of hashes of the members of a set, modulo 2^128 (rd_hash128_add), is a hash of the set.
 */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include "base/api.h"
#include "base/slice.h"

enum { RD_SIPHASH_KEY = 16, RD_HASH128_LEN = 16 };

struct rd_hash128 {
    uint64_t lo; /* the first eight bytes of the result, little-endian */
    uint64_t hi;
};

struct rd_siphash {
    uint64_t v[4];
    uint64_t tail; /* bytes of an incomplete word, the first in the low bits */
    uint64_t len;  /* of everything */
};

void rd_siphash_begin(struct rd_siphash *hash, const uint8_t key[RD_SIPHASH_KEY]);
void rd_siphash_add(struct rd_siphash *hash, const void *ptr, size_t len);

/* A number as its eight bytes, little-endian. */
void rd_siphash_add_u64(struct rd_siphash *hash, uint64_t number);

/* Invalidates the state. */
struct rd_hash128 rd_siphash_end(struct rd_siphash *hash);

static inline bool rd_hash128_eq(struct rd_hash128 a, struct rd_hash128 b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

static inline struct rd_hash128 rd_hash128_add(struct rd_hash128 a, struct rd_hash128 b)
{
    struct rd_hash128 sum = {.lo = a.lo + b.lo, .hi = a.hi + b.hi};
    sum.hi += sum.lo < a.lo;
    return sum;
}

/* The sixteen bytes of the result. */
void rd_hash128_put(uint8_t dst[RD_HASH128_LEN], struct rd_hash128 hash);
struct rd_hash128 rd_hash128_get(const uint8_t src[RD_HASH128_LEN]);

#endif
