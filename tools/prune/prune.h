/* prune.h - which sets of a repository go, for `redoubt prune` and for a backup that prunes.
 */
#ifndef TOOLS_PRUNE_PRUNE_H
#define TOOLS_PRUNE_PRUNE_H

#include "archive/stream.h"
#include "tools/vault/vault.h"

struct prune_plan {
    struct archive_sets sets;
    unsigned *why; /* of each set: see archive/retain.h; 0: it goes */
    size_t n_gone, n_kept, n_leftovers;
    uint64_t bytes_gone; /* with the segments */
    struct archive_stream stream;
    bool *needed; /* of each segment: a set that stays needs it */
    size_t n_segments_gone;
};

/* The sets of a repository, and what the rules say about them at this time. */
bool prune_plan(struct archive_repo *repo, const struct archive_retention *rules, int64_t now_ms,
                struct prune_plan *ret, struct rd_err *err);
/* Removes what the plan says, under the lock. *ret_n counts the sets. */
bool prune_run(struct archive_repo *repo, const struct prune_plan *plan, size_t *ret_n,
               struct rd_err *err);
/* Removes only what interrupted backups have left, under the lock. */
bool prune_leftovers(struct archive_repo *repo, struct rd_err *err);
void prune_done(struct prune_plan *plan);

/* The rules of a target. */
bool prune_rules(const struct vault_target *target, struct archive_retention *ret,
                 struct rd_err *err);

#endif
