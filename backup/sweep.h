/* sweep.h - removes the chunks that no set of a repository needs any more.
 */
#ifndef BACKUP_SWEEP_H
#define BACKUP_SWEEP_H

#include "backup/open.h"
#include "backup/prune.h"

struct backup_sweep {
    size_t n_doomed, n_removed, n_rewritten; /* packs: see chunks/sweep.h */
    uint64_t bytes_removed;
};

/* After backup_prune_run() with this plan, under the lock. A key that is not given is a warning:
 * what sets need is not known then, and nothing is removed. */
bool backup_sweep(const struct rd_watch *watch, struct backup_open *open, size_t i,
                  struct backup_prune *plan, int64_t now_ms, struct backup_sweep *ret,
                  struct rd_err *err);

#endif
