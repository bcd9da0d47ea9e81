/* heartbeat.h - a request to a monitoring service, which raises an alarm when none arrives.
 */
#ifndef BACKUP_HEARTBEAT_H
#define BACKUP_HEARTBEAT_H

#include "backup/config.h"

/* Requests the URL for a success or a failure, if the target has one. */
bool backup_heartbeat(const struct backup_target *target, bool good, struct rd_err *err);

#endif
