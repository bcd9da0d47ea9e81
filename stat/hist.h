/* hist.h - a histogram in a table of fixed size.
 *
 *     struct stat_hist h = {0};
 *     stat_hist_add(&h, 17, 1);
 *     median = stat_hist_at(&h, 0.5);
 *
 * Values below 64 have a slot each. Larger values share 32 slots between two powers of two, so that
 * a quantile is at most 1/32 (3.2 %) above the true value.
 */
#ifndef STAT_HIST_H
#define STAT_HIST_H

#include <stddef.h>
#include <stdint.h>

enum { STAT_HIST_EXACT = 64, STAT_HIST_STEPS = 32, STAT_HIST_SLOTS = 64 + 58 * 32 };

struct stat_hist {
    uint64_t n;
    uint64_t max;
    uint64_t slots[STAT_HIST_SLOTS];
};

static inline size_t stat_hist_slot(uint64_t value)
{
    if (value < STAT_HIST_EXACT)
        return (size_t)value;
    unsigned top = 63u - (unsigned)__builtin_clzll(value);
    return STAT_HIST_EXACT + (top - 6) * STAT_HIST_STEPS + ((size_t)(value >> (top - 5)) & 31);
}

/* Adds the value `weight` times. */
static inline void stat_hist_add(struct stat_hist *hist, uint64_t value, uint64_t weight)
{
    hist->n += weight;
    hist->slots[stat_hist_slot(value)] += weight;
    hist->max = value > hist->max ? value : hist->max;
}

/* Returns the quantile: the smallest value that at least a share (0 to 1) of all values does not
 * exceed; 0 if there are none. O(slots). */
uint64_t stat_hist_at(const struct stat_hist *hist, double share);

void stat_hist_merge(struct stat_hist *into, const struct stat_hist *from);

#endif
