/* merge.h - makes larger segments of the small ones of a stream in a repository, and removes these.
 *
 *     struct backup_merge m;
 *     if (!backup_merge_init(&m, target, &err))
 *         ...
 *     if (m.on && !backup_merge_run(&m, &open, i, "prune", &err))
 *         ...
 *     ... m.n_made, m.n_removed ...
 *     backup_merge_done(&m);
 *
 * Levels: the numbers of the segments are divided into groups of 16, of 256 and of 4096. When all
 * of a group is in the repository, its segments become one, and then those of the larger group
 * (repl/capture_merge.h). So a command is rewritten at most three times. A group that would be
 * larger than `segment-size` is halved until its parts are not. Segments are not joined
 *
 *   - over an interruption, the end of a chapter, or a clock that was set back: the names of
 *     segments then show the same outages as before (archive/moments.h);
 *   - over the position of a set, so that the names show from where on a moment is known;
 *   - unless they are sealed as the new one is, by the present format: what was not proved does not
 *     become so.
 *
 * Order of what is done. The parts are read and verified, and the new segment is compared with them
 * command by command. It is written, read again and compared by size and digest. Its index of keys
 * follows. Parts are removed only
 *
 *   - if a new listing shows the segment that contains them,
 *   - if that has been in the store for `merge-grace`, by the clock of the store, so that a restore
 *     that has listed the parts can end,
 *   - and after that segment was read once more to its end.
 *
 * So everything is in the repository at every moment. Where a segment and its parts are listed
 * both, readers use one of them (archive/stream.h). Two processes that merge at once do no harm
 * either: they make segments of the same groups, and only what a larger segment contains is
 * removed.
 *
 * Threads: the caller's, and those that read ahead. Lock: ARCHIVE_LOCK_MERGE, while it runs.
 * Memory: the listing; temporary files of twice `segment-size`.
 */
#ifndef BACKUP_MERGE_H
#define BACKUP_MERGE_H

#include "archive/key_index.h"
#include "backup/open.h"

enum { BACKUP_MERGE_BASE = 16, BACKUP_MERGE_LEVELS = 3, BACKUP_MERGE_KEYS = BACKUP_RING + 8 };

/* The position of a set in a stream. */
struct backup_merge_cut {
    char id[ARCHIVE_ID_MAX];
    char replid[REPL_REPLID_LEN + 1];
    uint64_t offset;
};

struct backup_merge {
    /* Set by backup_merge_init(). */
    bool on; /* the setting `merge` */
    const struct backup_target *target;
    uint64_t grace_ms, max_bytes;
    enum archive_compression compression;
    int level;
    bool index;
    unsigned base; /* BACKUP_MERGE_BASE */

    /* Set by the caller; may be NULL. */
    const atomic_bool *cancel; /* ends between two segments, without an error */
    int64_t (*now_ms)(void);   /* Unix time; only to ask the store less often */

    /* Results, which add up. */
    bool locked;              /* of the last call: another process merges */
    uint64_t n_made, n_parts; /* segments that were made, and of how many */
    uint64_t n_removed;       /* segments of which others have the contents */
    uint64_t bytes_made, bytes_removed;
    uint64_t n_waiting;    /* of the last call: parts that stay for now */
    uint64_t n_refused;    /* of the last call: groups that should be merged, and cannot be */
    struct rd_err refused; /* the first reason */

    /* Private. */
    struct archive_repo repo;
    const struct rd_seal_key *key;
    struct rd_seal_ring ring; /* of the keys, and of those that the passphrase gave */
    struct rd_seal_key known[BACKUP_MERGE_KEYS];
    struct backup_merge_cut *cuts; /* of the sets that were read, by id */
    size_t n_cuts;
    struct backup_merge_cut *places; /* the same, by history and offset */
    bool knows_sets;                 /* the next call need not list them */
    bool idle;                       /* the next call has nothing to do */
};

/* RD_ERR_USAGE: a setting is wrong. */
bool backup_merge_init(struct backup_merge *ret, const struct backup_target *target,
                       struct rd_err *err);

/* Before backup_merge_run() by someone who has listed the stream, which was not changed since, and
 * the sets, and holds the lock of the sets: the next call does not list the sets again, and does
 * nothing if there is nothing to do. Sets with why[k] == 0 are gone; NULL: all are there. */
bool backup_merge_know(struct backup_merge *m, struct backup_open *open,
                       const struct archive_sets *sets, const unsigned *why,
                       struct archive_stream *stream, struct rd_err *err);

/* One pass over the stream in repository i of `open`, which was opened with keys. `tool` is named
 * in the lock. */
bool backup_merge_run(struct backup_merge *m, struct backup_open *open, size_t i, const char *tool,
                      struct rd_err *err);

/* A zeroed struct is allowed. */
void backup_merge_done(struct backup_merge *m);

#endif
