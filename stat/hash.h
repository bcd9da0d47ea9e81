/* hash.h - the hash of the tables of prefixes and patterns. Their size is bounded, so names that
 * were chosen to collide cost time in proportion to it at most.
 */
#ifndef STAT_HASH_H
#define STAT_HASH_H

#include <stdint.h>
#include <string.h>

static inline uint64_t stat_hash_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Continues a hash over more bytes. The result depends on how the bytes are split. */
static inline uint64_t stat_hash_more(uint64_t hash, const uint8_t *p, size_t len)
{
    uint64_t word;
    for (; len > 8; p += 8, len -= 8) {
        memcpy(&word, p, 8);
        hash = stat_hash_mix(hash, word);
    }
    word = len;
    for (size_t i = 0; i < len; i++)
        word = word << 8 | p[i];
    return stat_hash_mix(hash, word);
}

#endif
