/* rebuild.h - reconstructs a manifest from the files in the folder.
 *
 *     struct aof_rebuild plan;
 *     aof_rebuild_init(&plan);
 *     if (!aof_rebuild_plan(&plan, found, n_found, "appendonly.aof", old, &err))
 *         ...
 *     for (i = 0; i < plan.n_notes; i++)
 *         ... plan.notes[i]: how a file is used, and why ...
 *     aof_manifest_write(&plan.manifest, sink);
 *     aof_rebuild_done(&plan);
 *
 * Planning uses only a listing and changes nothing. The base is the newest sound base file. The
 * incremental files that belong after it follow in the order of their numbers; older files become
 * history. To decide which incremental files are older than the base, the plan uses, in this order,
 * the readable lines of the old manifest, the time annotations compared with the time at which the
 * base was saved, and the numbers, which servers increase together.
 *
 * A server deletes the files that the manifest lists as history. Doubtful files are therefore left
 * out of the manifest, so that no server touches them.
 */
#ifndef AOF_REBUILD_H
#define AOF_REBUILD_H

#include "aof/manifest.h"

/* One file of the folder and its properties. */
struct aof_found {
    const char *name;
    uint64_t size;
    enum aof_content content;
    bool sound;              /* it can be read to its end */
    int64_t first_s, last_s; /* of its time annotations, or AOF_NO_TIME */
    int64_t saved_s;         /* a snapshot's own time, or AOF_NO_TIME */
};

enum aof_use {
    AOF_USE_BASE,
    AOF_USE_INCR,
    AOF_USE_HISTORY,
    AOF_USE_NONE,   /* stays in the folder, not in the manifest */
    AOF_USE_MISSING /* no file: a number is missing, or a file of the old manifest is missing */
};

struct aof_rebuild_note {
    char name[AOF_NAME_MAX + 1];
    enum aof_use use;
    bool doubtful; /* needs a review by the user */
    char why[160];
};

struct aof_rebuild {
    struct aof_manifest manifest;
    struct aof_rebuild_note *notes;
    size_t n_notes, cap_notes;
    bool doubtful; /* at least one note is */
};

void aof_rebuild_init(struct aof_rebuild *plan);
void aof_rebuild_done(struct aof_rebuild *plan);

/* old: the readable part of the existing manifest; may be NULL or empty. RD_ERR_CORRUPT if no file
 * of the log was found. O(n log n). */
bool aof_rebuild_plan(struct aof_rebuild *plan, const struct aof_found *files, size_t n,
                      const char *prefix, const struct aof_manifest *old, struct rd_err *err);

const char *aof_use_word(enum aof_use use);

#endif
