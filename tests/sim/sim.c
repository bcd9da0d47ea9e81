/* sim.c - replication on a virtual network and clock.
 *
 *     sim              a thousand seeds, as TAP
 *     sim FIRST N      N seeds from FIRST on
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/scenario.h"
#include "tests/sim/seeds.h"

enum { SEEDS = 1000, A_LINE = 100 /* seeds of one TAP line */, ENOUGH_CUTS = 300 };

static const char *run(void *ctx, uint64_t seed)
{
    return sim_run(seed, NULL, 0, ctx);
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
    const struct seeds seeds = {.n = SEEDS, .in_line = A_LINE, .run = run, .ctx = &sums};
    unsigned n = 0;
    bool all;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3) {
        all = seeds_some(&seeds, strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
        print_sums(&sums);
        return all ? 0 : 1;
    }
    all = seeds_all(&seeds, &n);
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
