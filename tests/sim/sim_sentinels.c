/* sim_sentinels.c - Sentinels with masters and replicas, on a network and clocks that fail.
 *
 *     sim_sentinels              120 seeds, as TAP
 *     sim_sentinels FIRST N      N seeds from FIRST on
 *     sim_sentinels -v SEED      one seed, with all events
 */
#include <stdio.h>

#include "tests/sim/seeds.h"
#include "tests/sim/sentinels.h"

enum { SEEDS = 120, A_LINE = 20 };

static const char *run(void *ctx, uint64_t seed)
{
    return sim_sentinels_run(seed, ctx);
}

static void trace(const struct sim_run *r, int host, const struct sentinel_action *a)
{
    printf("# %8lld sentinel %d: %s %s\n", (long long)r->now_ms, host - r->n_servers, a->name,
           a->text);
}

static void print(const void *ctx)
{
    const struct sim_sentinels *s = ctx;
    const struct seeds_sum all[] = {{"runs", s->runs},
                                    {"of them with kills of masters only", s->calm},
                                    {"hosts killed", s->kills},
                                    {"leaders elected", s->elections},
                                    {"votes", s->votes},
                                    {"replicas chosen", s->choices},
                                    {"replicas promoted", s->failovers},
                                    {"Sentinels that ended while they saved", s->crashes},
                                    {"saves that failed", s->saves_failed},
                                    {"times in TILT", s->tilts},
                                    {"partitions", s->partitions},
                                    {"connections lost", s->losses}};
    seeds_print(all, sizeof all / sizeof *all);
}

static const char *run_traced(void *ctx, uint64_t seed)
{
    return sim_sentinels_trace(seed, ctx, trace);
}

static bool is_enough(const void *ctx)
{
    const struct sim_sentinels *s = ctx;
    return s->failovers > SEEDS / 2 && s->crashes > SEEDS && s->saves_failed > SEEDS &&
           s->tilts > SEEDS && s->partitions > SEEDS && s->losses > SEEDS && s->calm > SEEDS / 10;
}

SEEDS_MAIN(struct sim_sentinels, .trace = run_traced, .enough = "failovers and faults")
