/* slots.h - a set of hash slots.
 *
 *     struct cluster_slots slots = {0};
 *     unsigned first, last = 0;
 *     cluster_slots_add_range(&slots, 0, 5460);
 *     for (unsigned at = 0; cluster_slots_next_range(&slots, at, &first, &last); at = last + 1)
 *         printf("%u-%u\n", first, last);
 *
 * A slot is a number from 0 to RD_HASH_SLOTS - 1. Bit n of the set, which is bit n % 8 of byte n /
 * 8, belongs to slot n, as in the messages between nodes (cluster.h of Redis 7.0:
 * clusterMsg.myslots).
 *
 * Threads: one thread at a time uses a set. Ownership: a set owns no memory; a zeroed one is empty,
 * and `=` copies it. Errors: nothing here fails. Cost: a slot takes constant time; a count or a
 * range is linear in the number of slots.
 */
#ifndef CLUSTER_SLOTS_H
#define CLUSTER_SLOTS_H

#include "base/crc16.h"

enum { CLUSTER_SLOTS_BYTES = RD_HASH_SLOTS / 8 };

struct cluster_slots {
    uint8_t bits[CLUSTER_SLOTS_BYTES];
};

static inline bool cluster_slots_has(const struct cluster_slots *slots, unsigned slot)
{
    return (slots->bits[slot / 8] >> (slot % 8) & 1) != 0;
}

static inline void cluster_slots_add(struct cluster_slots *slots, unsigned slot)
{
    slots->bits[slot / 8] |= (uint8_t)(1U << (slot % 8));
}

static inline void cluster_slots_remove(struct cluster_slots *slots, unsigned slot)
{
    slots->bits[slot / 8] &= (uint8_t) ~(1U << (slot % 8));
}

/* Both ends are included. */
void cluster_slots_add_range(struct cluster_slots *slots, unsigned first, unsigned last);

unsigned cluster_slots_count(const struct cluster_slots *slots);

/* Finds the first range of slots that begins at `from` or later. False: there is none. */
bool cluster_slots_next_range(const struct cluster_slots *slots, unsigned from, unsigned *ret_first,
                              unsigned *ret_last);

#endif
