/* rebuild.h - the manifest that a server would have had, from the files that are there.
 *
 *     struct aof_rebuild plan;
 *     aof_rebuild_init(&plan);
 *     if (!aof_rebuild_plan(&plan, found, n_found, "appendonly.aof", old, &err))
 *         ...
 *     for (i = 0; i < plan.n_notes; i++)
 *         ... plan.notes[i]: what is done with a file, and why ...
 *     aof_manifest_write(&plan.manifest, sink);
 *     aof_rebuild_done(&plan);
 *
 * Making the plan is pure: it looks at a listing and changes nothing. The base is the newest that
 * is sound; the incremental files that belong after it follow in the order of their numbers; what
 * is older becomes history. Which incremental files are older than the base is told, in this order,
 * by the readable lines of the old manifest, by time annotations beside the time at which the base
 * was saved, and by the numbers, which servers raise together.
 *
 * A server deletes the files that the manifest calls history. What is only doubtful is therefore
 * left out of the manifest, where no server touches it.
 */
#ifndef AOF_REBUILD_H
#define AOF_REBUILD_H

#include "aof/manifest.h"

/* One file of the folder, and what was seen of it. */
struct aof_found {
    const char *name;
    uint64_t size;
    enum aof_content content;
    bool sound;              /* it could be read to its end */
    int64_t first_s, last_s; /* of its time annotations, or AOF_NO_TIME */
    int64_t saved_s;         /* a snapshot's own time, or AOF_NO_TIME */
};

enum aof_use {
    AOF_USE_BASE,
    AOF_USE_INCR,
    AOF_USE_HISTORY,
    AOF_USE_NONE,   /* stays in the folder, not in the manifest */
    AOF_USE_MISSING /* no file: a number is left out, or a name of the old manifest is not there */
};

struct aof_rebuild_note {
    char name[AOF_NAME_MAX + 1];
    enum aof_use use;
    bool doubtful; /* somebody should look */
    char why[160];
};

struct aof_rebuild {
    struct aof_manifest manifest;
    struct aof_rebuild_note *notes;
    size_t n_notes, cap_notes;
    bool doubtful; /* a note is */
};

RD_API void aof_rebuild_init(struct aof_rebuild *plan);
RD_API void aof_rebuild_done(struct aof_rebuild *plan);

/* old: what could be read of the manifest that is there; may be NULL or empty. RD_ERR_CORRUPT where
 * no file of the log was found. O(n log n). */
RD_API bool aof_rebuild_plan(struct aof_rebuild *plan, const struct aof_found *files, size_t n,
                             const char *prefix, const struct aof_manifest *old,
                             struct rd_err *err);

RD_API const char *aof_use_word(enum aof_use use);

#endif
