/* scan.h - a server that refuses replicas, key by key. scan.c says what that means.
 */
#ifndef BACKUP_SCAN_H
#define BACKUP_SCAN_H

#include "backup/set.h"
#include "client/target.h"

/* The manifest records that the keys are of different moments. RD_ERR_UNSUPPORTED: there are keys
 * of an unknown type. */
bool backup_scan_read(const struct rd_watch *watch, struct backup_set *set,
                      const struct client_target *server, struct rd_err *err);

#endif
