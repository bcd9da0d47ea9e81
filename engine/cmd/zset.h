/* zset.h - ZADD, for commands based on it; private to the sorted set and geo commands.
 */
#ifndef ENGINE_CMD_ZSET_H
#define ENGINE_CMD_ZSET_H

#include "engine/call.h"

/* ZADD and commands based on it: argv as for ZADD, not necessarily that of the call. */
void engine_zset_run_add(struct engine_call *call, size_t argc, const struct rd_slice *argv,
                         bool incr);

#endif
