/* cluster.h - all masters of a cluster, as of one moment. cluster.c says how.
 */
#ifndef BACKUP_CLUSTER_H
#define BACKUP_CLUSTER_H

#include "backup/source.h"

bool backup_cluster_read(const struct backup_source *source, struct backup_set *set,
                         const char *url, struct rd_err *err);

#endif
