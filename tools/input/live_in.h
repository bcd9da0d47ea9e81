/* live_in.h - reads the keys of a server that a filter wants into a spool (capture/keys.h).
 *
 *     struct live_in_opts opts = {.target = &target, .filter = &filter};
 *     struct client_live_result result;
 *     if (!live_in_read(cli, &opts, &spool, &result, &err))
 *         ...
 *     spool_source(&spool, target.name, &src, &err);
 */
#ifndef TOOLS_INPUT_LIVE_IN_H
#define TOOLS_INPUT_LIVE_IN_H

#include "client/live.h"
#include "data/spool.h"
#include "tools/cli/filter.h"

struct live_in_opts {
    const struct client_target *target; /* one database if it names one, else all */
    const struct filter *filter;        /* applied to databases and names before values are read */
    bool functions;                     /* read them too */
};

/* The spool must be empty. Use peer_hint() for the errors of the connection. */
bool live_in_read(struct cli *cli, const struct live_in_opts *opts, struct spool *spool,
                  struct client_live_result *ret, struct rd_err *err);

#endif
