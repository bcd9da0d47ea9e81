/* extract_impl.h - private to extract*.c. */
#ifndef BACKUP_EXTRACT_IMPL_H
#define BACKUP_EXTRACT_IMPL_H

#include "backup/extract.h"

/* Fetches a whole segment, and verifies it. RD_ERR_CORRUPT, BACKUP_REASON_INDEX. */
bool backup_extract_fetch(struct backup_extract *x, struct backup_extract_file *file,
                          struct segment_in *ret, struct rd_err *err);
/* Stores a segment that was fetched. */
bool backup_extract_keep(struct backup_extract *x, struct backup_extract_file *file,
                         const struct segment_in *in, struct rd_err *err);

/* Derives the key of a sealed object, which is not read yet, if that is not known. */
void backup_extract_learn_key(struct backup_extract *x, struct rd_src *object);

/* Gives a file its index from the repository or from the folder of indexes: index.keys_len is 0 if
 * there is none that is right. Fails with RD_ERR_MEMORY, or if the spool cannot be written. */
bool backup_extract_find_index(struct backup_extract *x, struct backup_extract_file *file,
                               struct rd_err *err);
/* Makes the index of a segment that was fetched, and keeps it. If that is not possible, there is
 * none. */
void backup_extract_make_index(struct backup_extract *x, struct backup_extract_file *file,
                               struct segment_in *in);

#endif
