/* sweep.h - removes the chunks that no set of a target needs.
 *
 *     struct chunks_usage usage;     // chunks/usage.h
 *     ...
 *     struct chunks_sweep sweep = {.repo = repo, .usage = &usage, .sets = &sets, ...};
 *     chunks_sweep(&sweep, &err);
 *
 * A pack that no set needs is marked first (TARGET/chunks/NAME.doomed). It is removed by a sweep
 * that finds it unneeded at least `grace_ms` later. A pack that is mostly waste is rewritten:
 * what is needed is copied to a new pack, and TARGET/chunks/NAME.moved says where it is
 * from then on. A sweep that is interrupted leaves nothing that the next one does not finish.
 */
#ifndef CHUNKS_SWEEP_H
#define CHUNKS_SWEEP_H

#include "chunks/usage.h"

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
