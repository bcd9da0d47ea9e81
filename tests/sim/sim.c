/* sim.c - replication on a virtual network and clock.
 *
 *     sim              a thousand seeds, as TAP
 *     sim FIRST N      N seeds from FIRST on
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/scenario.h"

enum { SEEDS = 1000, A_LINE = 100 /* seeds of one TAP line */, ENOUGH_CUTS = 300 };

/* False: failed; the reason was printed. */
static bool run_some(uint64_t first, uint64_t n, struct sim_sums *sums)
{
    bool ok = true;
    for (uint64_t seed = first; seed < first + n; seed++) {
        const char *failure = sim_run(seed, NULL, 0, sums);
        if (failure != NULL)
            printf("# seed %llu: %s\n", (unsigned long long)seed, failure);
        ok &= failure == NULL;
    }
    return ok;
}

static void print_sums(const struct sim_sums *s)
{
    printf("# %llu partial syncs, %llu full ones, %llu of them because ids were forgotten; "
           "%llu acknowledged writes\n",
           (unsigned long long)s->partial, (unsigned long long)s->full,
           (unsigned long long)s->unknown_id, (unsigned long long)s->safe);
}

int main(int argc, char **argv)
{
    struct sim_sums sums = {0};
    unsigned n = 0;
    bool all = true;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3) {
        all = run_some(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10), &sums);
        print_sums(&sums);
        return all ? 0 : 1;
    }
    for (uint64_t first = 0; first < SEEDS; first += A_LINE) {
        bool ok = run_some(first, A_LINE, &sums);
        all &= ok;
        printf("%s %u - seeds %llu to %llu\n", ok ? "ok" : "not ok", ++n, (unsigned long long)first,
               (unsigned long long)first + A_LINE - 1);
    }
    uint64_t n_cuts;
    const char *failure = sim_cut_everywhere(&sums, &n_cuts);
    if (failure != NULL)
        printf("# after %llu bytes: %s\n", (unsigned long long)n_cuts - 1, failure);
    all &= failure == NULL && n_cuts > ENOUGH_CUTS;
    printf("%s %u - a cut after each of %llu bytes\n", all ? "ok" : "not ok", ++n,
           (unsigned long long)n_cuts);
    bool enough = sums.partial > SEEDS && sums.full > SEEDS && sums.safe > SEEDS;
    printf("%s %u - there were enough syncs and acknowledged writes\n", enough ? "ok" : "not ok",
           ++n);
    print_sums(&sums);
    printf("1..%u\n", n);
    return all && enough ? 0 : 1;
}
