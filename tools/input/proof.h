/* proof.h - for tools that copy values verbatim and write a new checksum.
 *
 *     if (!proof_keep(cli, path, &spool, &src, &err)) ...             // before the first byte
 *     if (ev.kind == RDB_TRAILER && !proof_check(cli, path, &spool, src, &ev, &err)) ...
 *
 * A checksum promises that the values are sound. If the input has one that matches, nothing needs
 * to be done. If it has none (it was disabled, or the version has none), the whole input is checked
 * as check-rdb does before the output is completed.
 */
#ifndef TOOLS_INPUT_PROOF_H
#define TOOLS_INPUT_PROOF_H

#include "rdb/event.h"
#include "tools/cli/cli.h"
#include "data/spool.h"

/* Copies input that cannot be opened a second time, and then replaces *src. */
bool proof_keep(struct cli *cli, const char *path, struct spool *spool, struct rd_src **src,
                struct rd_err *err);

/* Call in the TRAILER event. spool was filled by proof_keep() or snapshot_in_open(), or is empty.
 * src is the input; if it is used, its position is restored. */
bool proof_check(struct cli *cli, const char *path, const struct spool *spool, struct rd_src *src,
                 const struct rdb_event *trailer, struct rd_err *err);

#endif
