/* archives.h - histories of an archive: a master, the disk of its archiver, repositories, and runs
 * of archive, backup, prune, verify and restore beside each other, from a seed.
 *
 * Segments of the stream are merged, by the archiver and by other processes at once, some of which
 * have lost their lock.
 *
 * Calls of repositories fail, before or after they took effect, and objects appear later; processes
 * die between any two calls, and the power of the archiver's machine fails. Another process may run
 * between any two calls of the archiver. Again and again everything is read without faults:
 *
 *  1. every set that is listed as good is restored to the bytes that its source had, and stays
 *     until a rule allows its removal;
 *  2. a segment is removed from the disk only if every repository has its bytes;
 *  3. from each set that is stored on, up to where the archiver reported everything as stored,
 *     every offset is restored to the data that the master had there;
 *  4. `verify` finds no damage in a good set or in the stream;
 *  5. merging removes no moment from those that can be restored.
 */
#ifndef TESTS_SIM_ARCHIVES_H
#define TESTS_SIM_ARCHIVES_H

#include <stdint.h>

struct sim_archives {
    uint64_t histories, commands, lives, deaths, power_failures, full_syncs, turns, segments,
        removed, sets, prunes, between, faults, late, delayed, restores, moments, verified, merges,
        merged, parts_removed, locks_broken, catalogued;
};

/* NULL, or what was wrong. Valid until the next call. */
const char *sim_archives_run(uint64_t seed, struct sim_archives *sums);

#endif
