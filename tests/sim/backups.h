/* backups.h - histories of backups and prunes over repositories that fail, from a seed.
 *
 * Each step takes a set or prunes, while calls fail and processes die. After each step the
 * repositories are read without faults, and
 *
 *  1. every set that is listed as good gives the bytes that its source had;
 *  2. every set that was reported as stored is listed as good, until a rule allows its removal;
 *  3. a backup without faults leaves nothing of the interrupted ones.
 *
 * With odd seeds, sets are snapshots that are stored as chunks, and prune also removes chunks that
 * no set needs.
 */
#ifndef TESTS_SIM_BACKUPS_H
#define TESTS_SIM_BACKUPS_H

#include <stdint.h>

struct sim_backups {
    uint64_t histories, taken, failed, pruned, prunes_failed, faults, late, short_lists, deaths,
        proved, packs_removed, packs_rewritten, catalogued;
};

/* NULL, or what was wrong. Valid until the next call. */
const char *sim_backups_run(uint64_t seed, struct sim_backups *sums);

#endif
