#include "tests/sim/faults.h"

#include "tests/support/chance.h"

void faults_make_one(const struct fault *faults, size_t n, uint64_t *random, void *run)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += faults[i].weight;
    uint64_t drawn = chance_below(random, sum);
    while (drawn >= faults->weight)
        drawn -= faults++->weight;
    faults->make(run);
}
