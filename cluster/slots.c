#include "cluster/slots.h"

void cluster_slots_add_range(struct cluster_slots *slots, unsigned first, unsigned last)
{
    for (unsigned slot = first; slot <= last; slot++)
        cluster_slots_add(slots, slot);
}

unsigned cluster_slots_count(const struct cluster_slots *slots)
{
    unsigned n = 0;
    for (size_t i = 0; i < sizeof slots->bits; i++)
        n += (unsigned)__builtin_popcount(slots->bits[i]);
    return n;
}

bool cluster_slots_next_range(const struct cluster_slots *slots, unsigned from, unsigned *ret_first,
                              unsigned *ret_last)
{
    unsigned first = from;
    while (first < RD_HASH_SLOTS && !cluster_slots_has(slots, first))
        first++;
    if (first >= RD_HASH_SLOTS)
        return false;
    unsigned last = first;
    while (last + 1 < RD_HASH_SLOTS && cluster_slots_has(slots, last + 1))
        last++;
    *ret_first = first;
    *ret_last = last;
    return true;
}
