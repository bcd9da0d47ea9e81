#include "stat/hist.h"

/* Returns the largest value that a slot counts. */
static uint64_t slot_end(size_t slot)
{
    if (slot < STAT_HIST_EXACT)
        return slot;
    size_t above = slot - STAT_HIST_EXACT;
    unsigned shift = (unsigned)(above / STAT_HIST_STEPS) + 1;
    uint64_t step = STAT_HIST_STEPS + above % STAT_HIST_STEPS;
    return (step << shift) + ((UINT64_C(1) << shift) - 1);
}

uint64_t stat_hist_at(const struct stat_hist *hist, double share)
{
    double want = share * (double)hist->n;
    uint64_t seen = 0;
    for (size_t i = 0; i < STAT_HIST_SLOTS; i++) {
        seen += hist->slots[i];
        if (seen > 0 && (double)seen >= want)
            return slot_end(i) < hist->max ? slot_end(i) : hist->max;
    }
    return hist->max;
}

void stat_hist_merge(struct stat_hist *into, const struct stat_hist *from)
{
    into->n += from->n;
    into->max = from->max > into->max ? from->max : into->max;
    for (size_t i = 0; i < STAT_HIST_SLOTS; i++)
        into->slots[i] += from->slots[i];
}
