/* sim_backups.c - backups over repositories that fail.
 *
 *     sim_backups              five hundred seeds, as TAP
 *     sim_backups FIRST N      N seeds from FIRST on
 */
#include "tests/sim/backups.h"
#include "tests/sim/seeds.h"

enum { SEEDS = 500, A_LINE = 50 };

static const char *run(void *ctx, uint64_t seed)
{
    return sim_backups_run(seed, ctx);
}

static void print(const void *ctx)
{
    const struct sim_backups *s = ctx;
    const struct seeds_sum all[] = {{"histories", s->histories},
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
                                    {"packs rewritten", s->packs_rewritten},
                                    {"manifests from the catalogue", s->catalogued}};
    seeds_print(all, sizeof all / sizeof *all);
}

static bool is_enough(const void *ctx)
{
    const struct sim_backups *s = ctx;
    return s->taken > SEEDS && s->failed > SEEDS && s->prunes_failed > 0 && s->late > SEEDS &&
           s->short_lists > SEEDS && s->deaths > SEEDS && s->packs_removed > SEEDS / 2 &&
           s->packs_rewritten > 0 && s->catalogued > SEEDS;
}

SEEDS_MAIN(struct sim_backups, .enough = "backups, faults and deaths")
