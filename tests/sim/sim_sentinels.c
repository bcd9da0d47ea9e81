/* sim_sentinels.c - Sentinels with masters and replicas, on a network and clocks that fail.
 *
 *     sim_sentinels              120 seeds, as TAP
 *     sim_sentinels FIRST N      N seeds from FIRST on
 *     sim_sentinels -v SEED      one seed, with all events
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void print_sums(const struct sim_sentinels *s)
{
    const struct {
        const char *what;
        uint64_t n;
    } all[] = {{"runs", s->runs},
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
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        printf("# %llu %s\n", (unsigned long long)all[i].n, all[i].what);
}

static int one(struct sim_sentinels *sums, const char *seed)
{
    const char *failure = sim_sentinels_trace(strtoull(seed, NULL, 10), sums, trace);
    printf("# %s\n", failure != NULL ? failure : "passed");
    return failure != NULL;
}

int main(int argc, char **argv)
{
    struct sim_sentinels sums = {0};
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
    bool enough = sums.failovers > SEEDS / 2 && sums.crashes > SEEDS && sums.saves_failed > SEEDS &&
                  sums.tilts > SEEDS && sums.partitions > SEEDS && sums.losses > SEEDS &&
                  sums.calm > SEEDS / 10;
    printf("%s %u - there were enough failovers and faults\n", enough ? "ok" : "not ok", ++n);
    print_sums(&sums);
    printf("1..%u\n", n);
    return all && enough ? 0 : 1;
}
