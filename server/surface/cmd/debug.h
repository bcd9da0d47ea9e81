/* debug.h - shared by the files of DEBUG: handlers by subcommand.
 */
#ifndef SERVER_SURFACE_CMD_DEBUG_H
#define SERVER_SURFACE_CMD_DEBUG_H

#include "server/session/dispatch/dispatch.h"

struct cmd_debug_sub {
    const char *name;
    size_t min_args, max_args; /* including DEBUG and the name; max 0: no limit */
    dispatch_fn run;
};

/* Each array ends with a NULL name. */
extern const struct cmd_debug_sub cmd_debug_crash_subs[];
extern const struct cmd_debug_sub cmd_debug_keys_subs[];

void cmd_debug_protocol(struct dispatch_call *call);

#endif
