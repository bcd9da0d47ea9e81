/* keys.h - reads the keys of a running server into a spool, as a snapshot (client/live.h).
 *
 *     struct client_live_opts opts = {.target = &target, .functions = true};
 *     struct client_live_result result = {0};
 *     struct spool spool = {0};
 *     if (capture_keys_read(watch, &opts, &spool, &result, &err) &&
 *         spool_source(&spool, target.name, &src, &err))
 *         ...
 *     spool_done(&spool);
 *
 * Errors: those of client_live_read() and of the spool.
 */
#ifndef CAPTURE_KEYS_H
#define CAPTURE_KEYS_H

#include "base/watch.h"
#include "client/live.h"
#include "data/spool.h"

/* The spool must be empty. The progress of watch, which may be NULL, is the size of the spool. */
bool capture_keys_read(const struct rd_watch *watch, const struct client_live_opts *opts,
                       struct spool *spool, struct client_live_result *ret, struct rd_err *err);

#endif
