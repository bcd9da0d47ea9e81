/* sim_archives.c - archives, their disks and repositories, and everything that works on them.
 *
 *     sim_archives              five hundred seeds, as TAP
 *     sim_archives FIRST N      N seeds from FIRST on
 */
#include "tests/sim/archives.h"
#include "tests/sim/seeds.h"

enum { SEEDS = 500, A_LINE = 50 };

static const char *run(void *ctx, uint64_t seed)
{
    return sim_archives_run(seed, ctx);
}

static void print(const void *ctx)
{
    const struct sim_archives *s = ctx;
    const struct seeds_sum all[] = {{"histories", s->histories},
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
                                    {"verified repositories", s->verified},
                                    {"merges", s->merges},
                                    {"segments merged", s->merged},
                                    {"segments removed after that", s->parts_removed},
                                    {"locks broken", s->locks_broken},
                                    {"manifests from the catalogue", s->catalogued}};
    seeds_print(all, sizeof all / sizeof *all);
}

static bool is_enough(const void *ctx)
{
    const struct sim_archives *s = ctx;
    return s->deaths > SEEDS && s->power_failures > SEEDS && s->removed > SEEDS &&
           s->sets > SEEDS && s->prunes > SEEDS && s->between > SEEDS / 4 && s->late > SEEDS &&
           s->delayed > 0 && s->moments > SEEDS && s->merged > SEEDS && s->parts_removed > SEEDS &&
           s->locks_broken > SEEDS / 20 && s->catalogued > SEEDS;
}

SEEDS_MAIN(struct sim_archives, .enough = "sets, faults and deaths")
