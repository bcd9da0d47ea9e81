/* sim_clusters.c - nodes of a cluster, on a network, disks and clocks that fail.
 *
 *     sim_clusters              60 seeds, as TAP
 *     sim_clusters FIRST N      N seeds from FIRST on
 *     sim_clusters -v SEED      one seed, with what the nodes log
 */
#include <stdio.h>

#include "tests/sim/clusters.h"
#include "tests/sim/seeds.h"

enum { SEEDS = 60, A_LINE = 10 };

static const char *run(void *ctx, uint64_t seed)
{
    return sim_clusters_run(seed, ctx, NULL);
}

static void trace(const struct sim_cluster *r, int node, const char *text)
{
    printf("# %8lld node %d: %s\n", (long long)r->now_ms, node, text);
}

static void print(const void *ctx)
{
    const struct sim_sums *s = ctx;
    const struct seeds_sum all[] = {{"runs", s->runs},
                                    {"nodes killed", s->kills},
                                    {"nodes that ended while they saved", s->crashes},
                                    {"losses of power", s->powerless},
                                    {"saves that failed", s->saves_failed},
                                    {"partitions", s->partitions},
                                    {"connections lost", s->losses},
                                    {"processes that stood still", s->stalls},
                                    {"clocks set", s->clocks},
                                    {"votes", s->votes},
                                    {"replicas promoted", s->elections},
                                    {"failovers asked for", s->failovers_asked},
                                    {"of them without votes", s->takeovers},
                                    {"slots moved", s->moves},
                                    {"replicas that went to another master", s->migrations},
                                    {"writes acknowledged", s->writes},
                                    {"of them lost with a failed or isolated master", s->lost},
                                    {"of them while two masters accepted", s->doubled},
                                    {"of these in one epoch", s->shared}};
    seeds_print(all, sizeof all / sizeof *all);
}

static const char *run_traced(void *ctx, uint64_t seed)
{
    return sim_clusters_run(seed, ctx, trace);
}

static bool is_enough(const void *ctx)
{
    const struct sim_sums *s = ctx;
    return s->elections > SEEDS && s->crashes > SEEDS && s->powerless > SEEDS / 30 &&
           s->saves_failed > SEEDS && s->partitions > SEEDS && s->losses > SEEDS &&
           s->moves > SEEDS / 10 && s->takeovers > 0 && s->migrations > 0;
}

SEEDS_MAIN(struct sim_sums, .trace = run_traced, .enough = "failovers and faults")
