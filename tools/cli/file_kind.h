/* file_kind.h - recognises files that are not snapshots by their first bytes.
 *
 *     const struct file_kind *kind = file_kind_of(head);
 *     if (kind != NULL)
 *         ... it is `kind->name`, not a snapshot ...
 */
#ifndef TOOLS_CLI_FILE_KIND_H
#define TOOLS_CLI_FILE_KIND_H

#include "base/buf.h"
#include "rdb/foreign.h"

/* The number of bytes that file_kind_of() reads. With fewer it recognises fewer kinds. With more it
 * also recognises a snapshot after text. */
enum { FILE_KIND_HEAD = 512, FILE_KIND_LOOK = 64 << 10 };

struct file_kind {
    const char *word;    /* a stable word, for JSON */
    const char *name;    /* "a tar archive" */
    const char *hint;    /* how to handle it; or NULL */
    const char *readers; /* tools that read it, each between spaces; or NULL */
};

/* Returns the kind of a file that begins with these bytes, after decompression; NULL for a
 * snapshot, damaged or not, and for unrecognised files. A reply to DUMP is recognised only if the
 * bytes are the whole file. */
const struct file_kind *file_kind_of(struct rd_slice head);

/* NULL: none. */
const struct file_kind *file_kind_of_foreign(enum rdb_foreign foreign);

#endif
