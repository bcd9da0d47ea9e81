/* proof.h - for tools that copy values verbatim and write a new checksum.
 *
 *     if (!proof_keep(watch, path, &spool, &src, &err)) ...             // before the first byte
 *     if (ev.kind == RDB_TRAILER && !proof_check(watch, path, &spool, src, &ev, &err)) ...
 *
 * A checksum promises that the values are sound. If the input has one that matches, nothing needs
 * to be done. If it has none (it was disabled, or the version has none), the whole input is checked
 * as check-rdb does before the output is completed.
 */
#ifndef JOBS_PROOF_H
#define JOBS_PROOF_H

#include "base/watch.h"
#include "data/spool.h"
#include "rdb/event.h"

/* Copies input that cannot be opened a second time, and then replaces *src. */
bool proof_keep(const struct rd_watch *watch, const char *path, struct spool *spool,
                struct rd_src **src, struct rd_err *err);

/* Call in the TRAILER event. spool was filled by proof_keep() or snapshot_in_open(), or is empty.
 * src is the input; if it is used, its position is restored. */
bool proof_check(const struct rd_watch *watch, const char *path, const struct spool *spool,
                 struct rd_src *src, const struct rdb_event *trailer, struct rd_err *err);

#endif
