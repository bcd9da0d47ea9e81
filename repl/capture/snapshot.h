/* snapshot.h - verifies the checksum of a snapshot. */
#ifndef REPL_CAPTURE_SNAPSHOT_H
#define REPL_CAPTURE_SNAPSHOT_H

#include "base/err.h"
#include "rdb/event.h"

/* Checks any event of the snapshot. RD_ERR_CHECKSUM: it is the trailer, and its checksum does not
 * match. */
bool repl_capture_snapshot_sum(const struct rdb_event *event, struct rd_err *err);

#endif
