/* proof.h - for tools that copy values as the bytes they are and write a checksum of their own.
 *
 *     if (!proof_keep(cli, path, &spool, &src, &err)) ...             // before the first byte
 *     if (ev.kind == RDB_TRAILER && !proof_check(cli, path, &spool, src, &ev, &err)) ...
 *
 * The new checksum says that the values are sound. Where the old one says so, nothing is to be
 * done. Where there is none (it was switched off, or the version has none), the whole input is
 * checked, as check-rdb does, before the output gets its end.
 */
#ifndef TOOLS_INPUT_PROOF_H
#define TOOLS_INPUT_PROOF_H

#include "rdb/event.h"
#include "tools/cli/cli.h"
#include "tools/input/spool.h"

/* Sets aside what cannot be opened a second time; *src is replaced then. */
bool proof_keep(struct cli *cli, const char *path, struct spool *spool, struct rd_src **src,
                struct rd_err *err);

/* In the TRAILER event. spool is what proof_keep() or compact_open_in() filled, or empty; src is
 * the input, which is only used, and left where it was, for standard input that can seek. */
bool proof_check(struct cli *cli, const char *path, const struct spool *spool, struct rd_src *src,
                 const struct rdb_event *trailer, struct rd_err *err);

#endif
