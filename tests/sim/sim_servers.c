/* sim_servers.c - whole servers that replicate, on a network, disks and a clock that fail.
 *
 *     sim_servers              24 seeds, as TAP
 *     sim_servers FIRST N      N seeds from FIRST on
 *     sim_servers -v SEED      one seed, with what happens and the logs of the servers
 */
#include "tests/sim/seeds.h"
#include "tests/sim/servers.h"

enum { SEEDS = 24, A_LINE = 4 };

static const char *run(void *ctx, uint64_t seed)
{
    return sim_servers_run(seed, ctx);
}

static const char *run_traced(void *ctx, uint64_t seed)
{
    return sim_servers_trace(seed, ctx);
}

static void print(const void *ctx)
{
    const struct sim_servers *s = ctx;
    const struct seeds_sum all[] = {{"runs", s->runs},
                                    {"commands with a reply", s->commands},
                                    {"commands without one", s->lost},
                                    {"servers killed", s->kills},
                                    {"servers killed in an operation on a file", s->disk_kills},
                                    {"servers stopped", s->stops},
                                    {"cuts of the network", s->cuts},
                                    {"losses of connections", s->resets},
                                    {"promotions", s->promotions},
                                    {"FAILOVER", s->failovers},
                                    {"children", s->children},
                                    {"children killed", s->children_killed},
                                    {"full disks", s->disks_full},
                                    {"full syncs", s->full_syncs},
                                    {"partial syncs", s->partial_syncs},
                                    {"places at which two servers were compared", s->places}};
    seeds_print(all, sizeof all / sizeof *all);
}

static bool is_enough(const void *ctx)
{
    const struct sim_servers *s = ctx;
    return s->kills > SEEDS / 2 && s->disk_kills > SEEDS / 4 && s->stops > SEEDS / 4 &&
           s->cuts > SEEDS && s->resets > SEEDS / 2 && s->promotions > 0 && s->failovers > 0 &&
           s->children_killed > SEEDS / 2 && s->full_syncs > SEEDS && s->partial_syncs > 0 &&
           s->places > 50 * SEEDS;
}

SEEDS_MAIN(struct sim_servers, .trace = run_traced, .enough = "replicas and faults")
