/* prune.h - selects the sets to remove, for `redoubt prune` and for a backup that prunes.
 */
#ifndef TOOLS_PRUNE_PRUNE_H
#define TOOLS_PRUNE_PRUNE_H

#include "archive/stream.h"
#include "tools/vault/vault.h"

struct prune_plan {
    struct archive_sets sets;
    unsigned *why; /* of each set: see archive/retain.h; 0: to be removed */
    size_t n_gone, n_kept, n_leftovers;
    uint64_t bytes_gone; /* to be removed, with the segments */
    struct archive_stream stream;
    bool *needed; /* of each segment: a remaining set needs it */
    size_t n_segments_gone;
};

/* Reads the sets of a repository and applies the rules at this time. */
bool prune_plan(struct archive_repo *repo, const struct archive_retention *rules, int64_t now_ms,
                struct prune_plan *ret, struct rd_err *err);
/* Removes the sets that the plan selects, under the lock. *ret_n counts the sets. */
bool prune_run(struct archive_repo *repo, const struct prune_plan *plan, size_t *ret_n,
               struct rd_err *err);
/* Removes only the remains of interrupted backups, under the lock. */
bool prune_leftovers(struct archive_repo *repo, const struct archive_sets *sets,
                     struct rd_err *err);
void prune_done(struct prune_plan *plan);

/* The rules of a target. */
bool prune_rules(const struct vault_target *target, struct archive_retention *ret,
                 struct rd_err *err);

#endif
