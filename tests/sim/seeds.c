#include "tests/sim/seeds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool run_some(const struct seeds *seeds, uint64_t first, uint64_t n)
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

static bool run_one(const struct seeds *seeds, uint64_t seed)
{
    const char *failure = seeds->trace(seeds->ctx, seed);
    printf("# %s\n", failure != NULL ? failure : "passed");
    return failure == NULL;
}

static bool run_all(const struct seeds *seeds)
{
    unsigned n_lines = 0;
    bool all = true;
    for (uint64_t first = 0; first < seeds->n; first += seeds->in_line) {
        bool ok = run_some(seeds, first, seeds->in_line);
        all &= ok;
        printf("%s %u - seeds %" PRIu64 " to %" PRIu64 "\n", ok ? "ok" : "not ok", ++n_lines, first,
               first + seeds->in_line - 1);
    }
    all &= seeds->more == NULL || seeds->more(seeds->ctx, &n_lines);
    bool enough = seeds->is_enough(seeds->ctx);
    printf("%s %u - there were enough %s\n", enough ? "ok" : "not ok", ++n_lines, seeds->enough);
    seeds->print(seeds->ctx);
    printf("1..%u\n", n_lines);
    return all && enough;
}

int seeds_main(const struct seeds *seeds, int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3 && seeds->trace != NULL && strcmp(argv[1], "-v") == 0)
        return run_one(seeds, strtoull(argv[2], NULL, 10)) ? 0 : 1;
    if (argc != 3)
        return run_all(seeds) ? 0 : 1;
    bool ok = run_some(seeds, strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
    seeds->print(seeds->ctx);
    return ok ? 0 : 1;
}

void seeds_print(const struct seeds_sum *sums, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("# %" PRIu64 " %s\n", sums[i].n, sums[i].what);
}
