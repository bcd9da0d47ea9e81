/* spool_file.h - a file of a spool as a source.
 *
 *     struct rd_src *src;
 *     if (!backup_spool_file_open(&src, &fs, "00000001-1500.rdb", path, &err))
 *         ...
 *
 * Everything in a spool is accessed through its struct rd_fs, so that simulations have it in
 * memory.
 */
#ifndef BACKUP_SPOOL_FILE_H
#define BACKUP_SPOOL_FILE_H

#include "base/fs.h"
#include "base/src.h"

/* origin: the path, for errors. The calls of the file system are borrowed. */
bool backup_spool_file_open(struct rd_src **ret, const struct rd_fs *spool, const char *name,
                            const char *origin, struct rd_err *err);

#endif
