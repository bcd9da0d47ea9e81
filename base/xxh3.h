/* xxh3.h - the hashes XXH3, of 64 and of 128 bits, with the default secret and seed 0.
 *
 * Redis 8.4 names strings by them (DIGEST, SET IFDEQ) and Redis 8.6 the entries of streams (XADD
 * IDMPAUTO). They do not protect against chosen input.
 *
 * Source: the specification of xxHash, doc/xxhash_spec.md of its authors.
 * Cost: linear, about 10 GB/s.
 */
#ifndef BASE_XXH3_H
#define BASE_XXH3_H

#include "base/slice.h"

struct rd_xxh3_128 {
    uint64_t low, high;
};

uint64_t rd_xxh3_64(struct rd_slice bytes);
struct rd_xxh3_128 rd_xxh3_128(struct rd_slice bytes);

#endif
