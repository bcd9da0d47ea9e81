/* live.h - what a server holds, as a snapshot that is set aside.
 *
 * Keys are found by SCAN and read by DUMP, many in one turn; what comes is written as the records
 * of a snapshot into a spool (spool.h), which the readers of snapshots then read as often as they
 * like. So memory does not grow with the data, and disk takes what a snapshot of it would.
 *
 *     struct live_opts opts = {.target = &target, .filter = &filter};
 *     struct live_result told;
 *     if (!live_read(cli, &opts, &spool, &told, &err))
 *         ...
 *     spool_source(&spool, target.name, &src, &err);
 *
 * A server is not still while it is read. A value is as it was at one moment, and its expiry is
 * that of the same moment or the key is read again; but two keys are of two moments. Keys that come
 * while it is read may be missed, those that go are left out. A key that was read twice stands
 * there twice, the later record last: a reader takes that one.
 *
 * The bytes on the way to us are bounded: after replies that were long, fewer keys are asked for at
 * a time, down to one. No string is held in memory as a whole.
 */
#ifndef TOOLS_LIVE_H
#define TOOLS_LIVE_H

#include "tools/cli/filter.h"
#include "tools/peer.h"
#include "tools/input/spool.h"

struct live_opts {
    const struct peer_target *target; /* one database where it names one, else all */
    const struct filter *filter;      /* what it can tell by database and name is not read */
    bool functions;                   /* read them too */
};

struct live_result {
    uint64_t keys;     /* records that were written */
    uint64_t gone;     /* keys that were named and then were not there */
    uint64_t changing; /* whose expiry never stood still */
    uint64_t unknown;  /* of a type that is not known: left out */
    char first_unknown[RD_ERR_TEXT_MAX];
    bool rough;             /* expiries are counted from PTTL and may be off by LIVE_ROUGH_MS */
    bool no_functions;      /* the server has none, or does not let us read them */
    bool functions_refused; /* the second of these */
};

enum { LIVE_ROUGH_MS = 1000 };

/* The spool must be empty. Fails with the peer's errors (peer_hint()). */
bool live_read(struct cli *cli, const struct live_opts *opts, struct spool *spool,
               struct live_result *ret, struct rd_err *err);

#endif
