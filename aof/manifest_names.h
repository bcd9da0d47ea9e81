/* manifest_names.h - an index of the files of a manifest by name.
 *
 *     struct aof_manifest_names names;
 *     if (!aof_manifest_names_init(&names, &manifest, &err))
 *         ...
 *     const struct aof_file *file = aof_manifest_names_find(&names, "appendonly.aof.1.incr.aof");
 *     aof_manifest_names_done(&names);
 *
 * A folder and a manifest may both have a hundred thousand names, and comparing all pairs takes
 * minutes. Building the index takes n log n comparisons, a lookup log n. The manifest is borrowed
 * and must not change while the index is in use.
 */
#ifndef AOF_MANIFEST_NAMES_H
#define AOF_MANIFEST_NAMES_H

#include "aof/manifest.h"

struct aof_manifest_names {
    const struct aof_file **sorted; /* by name; equal names in the order of the manifest */
    size_t n;
};

/* False: RD_ERR_MEMORY; then _done() is not needed. */
bool aof_manifest_names_init(struct aof_manifest_names *names, const struct aof_manifest *m,
                             struct rd_err *err);
void aof_manifest_names_done(struct aof_manifest_names *names);

/* The first file of that name, or NULL. */
const struct aof_file *aof_manifest_names_find(const struct aof_manifest_names *names,
                                               const char *name);

#endif
