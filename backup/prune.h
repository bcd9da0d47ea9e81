/* prune.h - selects and removes the sets that no rule keeps.
 */
#ifndef BACKUP_PRUNE_H
#define BACKUP_PRUNE_H

#include "archive/key_index.h"
#include "archive/retain.h"
#include "archive/stream.h"
#include "backup/config.h"
#include "base/watch.h"

struct backup_prune {
    struct archive_sets sets;
    unsigned *why; /* of each set: see archive/retain.h; 0: to be removed */
    size_t n_gone, n_kept, n_leftovers;
    size_t n_unproved;   /* sets not sealed with a key that is given: kept, and not counted */
    uint64_t bytes_gone; /* to be removed, with the segments */
    struct archive_stream stream;
    bool *needed; /* of each segment: a remaining set needs it */
    size_t n_segments_gone;
    struct archive_key_indexes indexes; /* of the segments, and some without a segment */
};

/* Reads the sets of a repository and applies the rules at this time. */
bool backup_prune_plan(struct archive_repo *repo, const struct archive_retention *rules,
                       int64_t now_ms, struct backup_prune *ret, struct rd_err *err);
/* Removes the sets that the plan selects, under the lock. *ret_n counts the sets. */
bool backup_prune_run(struct archive_repo *repo, const struct backup_prune *plan, size_t *ret_n,
                      struct rd_err *err);
/* Removes only the remains of interrupted backups, under the lock. */
bool backup_prune_leftovers(struct archive_repo *repo, const struct archive_sets *sets,
                            struct rd_err *err);
void backup_prune_done(struct backup_prune *plan);

/* Keeps a set from now on (on), or applies the rules to it again, under the lock. RD_ERR_USAGE: the
 * repository has no such set; see archive_sets_find(). */
bool backup_prune_pin(const struct rd_watch *watch, struct archive_repo *repo, const char *id,
                      bool on, int64_t now_ms, struct rd_err *err);

/* The rules of a target. */
bool backup_prune_rules(const struct backup_target *target, struct archive_retention *ret,
                        struct rd_err *err);

#endif
