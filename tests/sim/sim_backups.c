/* sim_backups.c - backups over repositories that fail.
 *
 *     sim_backups              five hundred seeds, as TAP
 *     sim_backups FIRST N      N seeds from FIRST on
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/backups.h"
#include "tests/sim/seeds.h"

enum { SEEDS = 500, A_LINE = 50 };

static const char *run(void *ctx, uint64_t seed)
{
    return sim_backups_run(seed, ctx);
}

static void print_sums(const struct sim_backups *s)
{
    const struct {
        const char *what;
        uint64_t n;
    } all[] = {{"histories", s->histories},
               {"sets taken", s->taken},
               {"backups failed", s->failed},
               {"prunes", s->pruned},
               {"prunes failed", s->prunes_failed},
               {"calls failed", s->faults},
               {"of them took effect", s->late},
               {"short lists", s->short_lists},
               {"deaths", s->deaths},
               {"sets read in full", s->proved},
               {"packs removed", s->packs_removed},
               {"packs rewritten", s->packs_rewritten}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        printf("# %llu %s\n", (unsigned long long)all[i].n, all[i].what);
}

int main(int argc, char **argv)
{
    struct sim_backups sums = {0};
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
    bool enough = sums.taken > SEEDS && sums.failed > SEEDS && sums.prunes_failed > 0 &&
                  sums.late > SEEDS && sums.short_lists > SEEDS && sums.deaths > SEEDS &&
                  sums.packs_removed > SEEDS / 2 && sums.packs_rewritten > 0;
    printf("%s %u - there were enough backups, faults and deaths\n", enough ? "ok" : "not ok", ++n);
    print_sums(&sums);
    printf("1..%u\n", n);
    return all && enough ? 0 : 1;
}
