/* sim_backups.c - backups over repositories that fail.
 *
 *     sim_backups              five hundred seeds, as TAP
 *     sim_backups FIRST N      N seeds from FIRST on
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/backups.h"

enum { SEEDS = 500, A_LINE = 50 };

static bool run_some(uint64_t first, uint64_t n, struct sim_backups *sums)
{
    bool ok = true;
    for (uint64_t seed = first; seed < first + n; seed++) {
        const char *failure = sim_backups_run(seed, sums);
        if (failure != NULL)
            printf("# seed %llu: %s\n", (unsigned long long)seed, failure);
        ok &= failure == NULL;
    }
    return ok;
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
               {"sets read in full", s->proved}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        printf("# %llu %s\n", (unsigned long long)all[i].n, all[i].what);
}

int main(int argc, char **argv)
{
    struct sim_backups sums = {0};
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
    bool enough = sums.taken > SEEDS && sums.failed > SEEDS && sums.prunes_failed > 0 &&
                  sums.late > SEEDS && sums.short_lists > SEEDS && sums.deaths > SEEDS;
    printf("%s %u - there were enough backups, faults and deaths\n", enough ? "ok" : "not ok", ++n);
    print_sums(&sums);
    printf("1..%u\n", n);
    return all && enough ? 0 : 1;
}
