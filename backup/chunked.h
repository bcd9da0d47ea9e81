/* chunked.h - the files of a set that are stored as chunks: a writer in each repository.
 */
#ifndef BACKUP_CHUNKED_H
#define BACKUP_CHUNKED_H

#include "backup/set.h"
#include "chunks/chunks.h"

struct backup_chunked;

/* Whether the target stores its sets as chunks. RD_ERR_USAGE. */
bool backup_chunked_wanted(const struct backup_target *target, bool *ret, struct rd_err *err);

/* Whether a file of this role is stored so. */
bool backup_chunked_role(const struct backup_set *set, enum archive_role role);

/* A sink for set->file in repository i. */
bool backup_chunked_begin(struct backup_set *set, size_t i, struct rd_sink **ret,
                          struct rd_err *err);
/* set->file was written, and is the next one of the manifest. */
void backup_chunked_end(struct backup_set *set);

/* The manifest for repository i: what its files added differs from one repository to another. */
bool backup_chunked_print(const struct backup_set *set, size_t i, struct rd_buf *ret,
                          struct rd_err *err);
/* The set exists in repository i. What cannot be kept for the next set is in *ret_note. */
void backup_chunked_keep(const struct backup_set *set, size_t i, struct rd_err *ret_note);
void backup_chunked_done(struct backup_set *set);

#endif
