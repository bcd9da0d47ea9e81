/* file_kind.h - files that are neither snapshots nor damaged ones, by their first bytes.
 *
 *     const struct file_kind *kind = file_kind_of(head);
 *     if (kind != NULL)
 *         ... it is `kind->name`, not a snapshot ...
 */
#ifndef TOOLS_CLI_FILE_KIND_H
#define TOOLS_CLI_FILE_KIND_H

#include "base/buf.h"

/* How many bytes file_kind_of() looks at. With fewer it knows fewer kinds. */
enum { FILE_KIND_HEAD = 512 };

struct file_kind {
    const char *word;    /* a stable word, for JSON */
    const char *name;    /* "a tar archive" */
    const char *hint;    /* what to do with it; or NULL */
    const char *readers; /* tools that read it, each between spaces; or NULL */
};

/* The kind of a file that begins so, after decompression; NULL for a snapshot, damaged or not, and
 * for what is not recognised. */
const struct file_kind *file_kind_of(struct rd_slice head);

#endif
