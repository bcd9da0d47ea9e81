/* merge_impl.h - private to backup/merge*.c.
 */
#ifndef BACKUP_MERGE_IMPL_H
#define BACKUP_MERGE_IMPL_H

#include "backup/merge.h"

enum { BACKUP_MERGE_PARTS = 64 }; /* of one segment; each takes a temporary file */

/* Makes one segment of `n` that follow each other, stores and proves it; then *ret is that segment
 * and *ret_made is set. It is not set, without an error, if they cannot be merged: they were
 * removed meanwhile, or m->refused says why. False: the repository fails, or there is no memory. */
bool backup_merge_make(struct backup_merge *m, const struct archive_stream *stream, size_t first,
                       size_t n, struct archive_segment *ret, bool *ret_made, struct rd_err *err);

/* Removes what is contained in segments that are old enough. */
bool backup_merge_clear(struct backup_merge *m, struct rd_err *err);

#endif
