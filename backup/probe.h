/* probe.h - whether a backup could read the source of a target.
 */
#ifndef BACKUP_PROBE_H
#define BACKUP_PROBE_H

#include "backup/config.h"

/* Nothing is read, and no server writes a snapshot. */
bool backup_probe(const struct backup_target *target, struct rd_err *err);

#endif
