/* sim_clusters.c - nodes of a cluster, on a network, disks and clocks that fail.
 *
 *     sim_clusters              60 seeds, as TAP
 *     sim_clusters FIRST N      N seeds from FIRST on
 *     sim_clusters -v SEED      one seed, with what the nodes log
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void print_sums(const struct sim_sums *s)
{
    const struct {
        const char *what;
        uint64_t n;
    } all[] = {{"runs", s->runs},
               {"nodes killed", s->kills},
               {"nodes that ended while they saved", s->crashes},
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
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        printf("# %llu %s\n", (unsigned long long)all[i].n, all[i].what);
}

static int one(struct sim_sums *sums, const char *seed)
{
    const char *failure = sim_clusters_run(strtoull(seed, NULL, 10), sums, trace);
    printf("# %s\n", failure != NULL ? failure : "passed");
    return failure != NULL;
}

int main(int argc, char **argv)
{
    struct sim_sums sums = {0};
    const struct seeds seeds = {.n = SEEDS, .in_line = A_LINE, .run = run, .ctx = &sums};
    unsigned n = 0;
    bool all;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3 && strcmp(argv[1], "-v") == 0)
        return one(&sums, argv[2]);
    if (argc == 3) {
        all = seeds_some(&seeds, strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
        print_sums(&sums);
        return all ? 0 : 1;
    }
    all = seeds_all(&seeds, &n);
    bool enough = sums.elections > SEEDS && sums.crashes > SEEDS && sums.saves_failed > SEEDS &&
                  sums.partitions > SEEDS && sums.losses > SEEDS && sums.moves > SEEDS / 10 &&
                  sums.takeovers > 0 && sums.migrations > 0;
    printf("%s %u - there were enough failovers and faults\n", enough ? "ok" : "not ok", ++n);
    print_sums(&sums);
    printf("1..%u\n", n);
    return all && enough ? 0 : 1;
}
