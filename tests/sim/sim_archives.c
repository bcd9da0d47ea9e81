/* sim_archives.c - archives, their disks and repositories, and everything that works on them.
 *
 *     sim_archives              five hundred seeds, as TAP
 *     sim_archives FIRST N      N seeds from FIRST on
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/archives.h"
#include "tests/sim/seeds.h"

enum { SEEDS = 500, A_LINE = 50 };

static const char *run(void *ctx, uint64_t seed)
{
    return sim_archives_run(seed, ctx);
}

static void print_sums(const struct sim_archives *s)
{
    const struct {
        const char *what;
        uint64_t n;
    } all[] = {{"histories", s->histories},
               {"commands", s->commands},
               {"runs of archive", s->lives},
               {"deaths", s->deaths},
               {"power failures", s->power_failures},
               {"full synchronizations", s->full_syncs},
               {"turns", s->turns},
               {"segments closed", s->segments},
               {"segments removed from the disk", s->removed},
               {"sets", s->sets},
               {"prunes", s->prunes},
               {"processes between two calls", s->between},
               {"calls failed", s->faults},
               {"of them took effect", s->late},
               {"objects that appeared later", s->delayed},
               {"restores", s->restores},
               {"of them to a moment", s->moments},
               {"verified repositories", s->verified}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        printf("# %llu %s\n", (unsigned long long)all[i].n, all[i].what);
}

int main(int argc, char **argv)
{
    struct sim_archives sums = {0};
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
    bool enough = sums.deaths > SEEDS && sums.power_failures > SEEDS && sums.removed > SEEDS &&
                  sums.sets > SEEDS && sums.prunes > SEEDS && sums.between > SEEDS / 4 &&
                  sums.late > SEEDS && sums.delayed > 0 && sums.moments > SEEDS;
    printf("%s %u - there were enough sets, faults and deaths\n", enough ? "ok" : "not ok", ++n);
    print_sums(&sums);
    printf("1..%u\n", n);
    return all && enough ? 0 : 1;
}
