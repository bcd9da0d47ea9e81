/* live.h - reads the data of a server into a spooled snapshot.
 *
 * Keys are found with SCAN and read with DUMP, many at a time. The replies are written as records
 * of a snapshot into a spool (spool.h), which can be read repeatedly. So memory does not grow with
 * the data; the disk space is that of a snapshot.
 *
 *     struct live_opts opts = {.target = &target, .filter = &filter};
 *     struct live_result result;
 *     if (!live_read(cli, &opts, &spool, &result, &err))
 *         ...
 *     spool_source(&spool, target.name, &src, &err);
 *
 * The data may change during the read. A value and its expiry are of the same moment, or the key is
 * read again; but two keys may be of different moments. New keys may be missed, and deleted keys
 * are omitted. A key that was read twice has two records; the later one is valid.
 *
 * The bytes in transit are bounded: after long replies, fewer keys are requested at a time, down to
 * one. No string is held in memory as a whole.
 */
#ifndef TOOLS_LIVE_H
#define TOOLS_LIVE_H

#include "tools/cli/filter.h"
#include "tools/peer.h"
#include "tools/input/spool.h"

struct live_opts {
    const struct peer_target *target; /* one database if it names one, else all */
    const struct filter *filter;      /* applied to databases and names before values are read */
    bool functions;                   /* read them too */
};

struct live_result {
    uint64_t keys;     /* records that were written */
    uint64_t gone;     /* keys that SCAN returned and that did not exist any more */
    uint64_t changing; /* keys whose expiry changed at each read */
    uint64_t unknown;  /* keys of unknown types: omitted */
    char first_unknown[RD_ERR_TEXT_MAX];
    bool rough;             /* expiries are counted from PTTL and may be off by LIVE_ROUGH_MS */
    bool no_functions;      /* the server has none, or does not allow reading them */
    bool functions_refused; /* the second of these */
};

enum { LIVE_ROUGH_MS = 1000 };

/* The spool must be empty. Fails with the peer's errors (peer_hint()). */
bool live_read(struct cli *cli, const struct live_opts *opts, struct spool *spool,
               struct live_result *ret, struct rd_err *err);

#endif
