/* sweep.h - which chunks the sets of a target need, and the removal of the others.
 *
 *     struct chunks_usage usage;
 *     if (!chunks_usage_read(&usage, repo, &sets, NULL, NULL, &err))
 *         ... a set says what it needs in a recipe that cannot be read: nothing can be removed ...
 *     struct chunks_sweep sweep = {.repo = repo, .usage = &usage, .sets = &sets, ...};
 *     chunks_sweep(&sweep, &err);
 *     chunks_usage_done(&usage);
 *
 * A pack that no set needs is marked first (TARGET/chunks/NAME.doomed). It is removed by a sweep
 * that finds it unneeded at least `grace_ms` later. A pack that is mostly waste is rewritten:
 * what is needed is copied to a new pack, and TARGET/chunks/NAME.moved says where it is
 * from then on. A sweep that is interrupted leaves nothing that the next one does not finish.
 */
#ifndef CHUNKS_SWEEP_H
#define CHUNKS_SWEEP_H

#include "archive/repo.h"

struct chunks_used; /* a blob that a set needs */

struct chunks_usage {
    struct chunks_used *used; /* by name, in a table with free places */
    size_t n_used, n_slots;
    uint8_t (*keys)[32]; /* of the lineages */
    size_t n_keys;
    struct chunks_inventory *inventory;
    struct chunks_names *names; /* of packs */
    uint64_t *only;             /* of each set: bytes that only this one needs */
    uint64_t *total;            /* of each set: bytes that it needs */
    uint64_t bytes;             /* of all packs */
    size_t n_files;             /* that are stored as chunks */
};

/* Reads the recipes of all sets but those of `without` (NULL: none). RD_ERR_USAGE: a key is not
 * given. Other errors: a manifest or a recipe cannot be read; if `unreadable` is not NULL, it is
 * set for the set instead. */
bool chunks_usage_read(struct chunks_usage *ret, struct archive_repo *repo,
                       struct archive_sets *sets, const bool *without, bool *unreadable,
                       struct rd_err *err);
void chunks_usage_done(struct chunks_usage *usage);

struct chunks_sweep {
    struct archive_repo *repo; /* locked */
    const struct chunks_usage *usage;
    const struct archive_sets *sets;
    const struct rd_seal_key *key; /* of new objects; NULL: not sealed */
    bool (*random)(void *ret, size_t size, struct rd_err *err);
    int64_t now_ms, grace_ms;

    size_t n_doomed, n_removed, n_rewritten; /* out: packs */
    uint64_t bytes_removed, bytes_rewritten;
};

bool chunks_sweep(struct chunks_sweep *sweep, struct rd_err *err);

/* Removes what interrupted writers of packs have left, under the lock: parts of objects. Packs that
 * are whole are left to chunks_sweep(). */
bool chunks_clean(struct archive_repo *repo, struct rd_err *err);

#endif
