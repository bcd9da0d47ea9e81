#include "tests/sim/seeds.h"

#include <inttypes.h>
#include <stdio.h>

bool seeds_some(const struct seeds *seeds, uint64_t first, uint64_t n)
{
    bool ok = true;
    for (uint64_t seed = first; seed < first + n; seed++) {
        const char *failure = seeds->run(seeds->ctx, seed);
        if (failure != NULL)
            printf("# seed %" PRIu64 ": %s\n", seed, failure);
        ok &= failure == NULL;
    }
    return ok;
}

bool seeds_all(const struct seeds *seeds, unsigned *ret_lines)
{
    bool all = true;
    *ret_lines = 0;
    for (uint64_t first = 0; first < seeds->n; first += seeds->in_line) {
        bool ok = seeds_some(seeds, first, seeds->in_line);
        all &= ok;
        printf("%s %u - seeds %" PRIu64 " to %" PRIu64 "\n", ok ? "ok" : "not ok", ++*ret_lines,
               first, first + seeds->in_line - 1);
    }
    return all;
}
