/* replay.h - runs a set and the stream after it on an engine, up to the moment of a plan.
 *
 *     struct rebuild_data data;
 *     rebuild_data_begin(&data, now_us);
 *     ok = backup_replay(&plan, &data, &err) && rebuild_data_save(&data, out, &err);
 *     rebuild_data_end(&data);
 */
#ifndef BACKUP_REPLAY_H
#define BACKUP_REPLAY_H

#include "backup/plan.h"
#include "rebuild/data.h"

/* Every segment is verified while it is read. RD_ERR_CORRUPT: the stream does not reach the moment,
 * or is not that of the base. */
bool backup_replay(const struct backup_plan *plan, struct rebuild_data *data, struct rd_err *err);

#endif
