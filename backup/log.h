/* log.h - an append-only log on disk, while a server may write it. log.c says how.
 */
#ifndef BACKUP_LOG_H
#define BACKUP_LOG_H

#include "backup/set.h"

/* Reads the log of the folder into the set. */
bool backup_log_read(const struct rd_watch *watch, struct backup_set *set, const char *folder,
                     struct rd_err *err);

/* The manifest of a log in a folder: "appendonly.aof.manifest"; false with err where there is none
 * (*ret_none) or several. */
bool backup_log_find(const char *folder, char ret[ARCHIVE_FILE_NAME_MAX], bool *ret_none,
                     struct rd_err *err);

#endif
