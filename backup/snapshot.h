/* snapshot.h - a snapshot as a file of a set.
 */
#ifndef BACKUP_SNAPSHOT_H
#define BACKUP_SNAPSHOT_H

#include "backup/set.h"

/* Reads a snapshot to its end, checks it and adds it to the set. Updates the counts of the
 * manifest. */
bool backup_snapshot_take(struct backup_set *set, struct rd_src *src, const char *name,
                          struct rd_err *err);

#endif
