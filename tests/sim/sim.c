/* sim.c - replication on a virtual network and clock.
 *
 *     sim              a thousand seeds, as TAP
 *     sim FIRST N      N seeds from FIRST on
 */
#include <stdio.h>

#include "tests/sim/scenario.h"
#include "tests/sim/seeds.h"

enum { SEEDS = 1000, A_LINE = 100 /* seeds of one TAP line */, ENOUGH_CUTS = 300 };

static const char *run(void *ctx, uint64_t seed)
{
    return sim_run(seed, NULL, 0, ctx);
}

static void print(const void *ctx)
{
    const struct sim_sums *s = ctx;
    printf("# %llu partial syncs, %llu full ones, %llu of them because ids were forgotten; "
           "%llu acknowledged writes\n",
           (unsigned long long)s->partial, (unsigned long long)s->full,
           (unsigned long long)s->unknown_id, (unsigned long long)s->safe);
}

static bool cut_everywhere(void *ctx, unsigned *n_lines)
{
    uint64_t n_cuts;
    const char *failure = sim_cut_everywhere(ctx, &n_cuts);
    if (failure != NULL)
        printf("# after %llu bytes: %s\n", (unsigned long long)n_cuts - 1, failure);
    bool ok = failure == NULL && n_cuts > ENOUGH_CUTS;
    printf("%s %u - a cut after each of %llu bytes\n", ok ? "ok" : "not ok", ++*n_lines,
           (unsigned long long)n_cuts);
    return ok;
}

static bool is_enough(const void *ctx)
{
    const struct sim_sums *s = ctx;
    return s->partial > SEEDS && s->full > SEEDS && s->safe > SEEDS;
}

SEEDS_MAIN(struct sim_sums, .more = cut_everywhere, .enough = "syncs and acknowledged writes")
