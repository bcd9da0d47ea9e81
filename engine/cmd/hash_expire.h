/* hash_expire.h - private to engine/cmd: arguments of the commands for field expiry.
 */
#ifndef ENGINE_CMD_HASH_EXPIRE_H
#define ENGINE_CMD_HASH_EXPIRE_H

#include "engine/cmd/hash_impl.h"

/* The form of a time. */
struct engine_hash_clock {
    bool seconds;  /* or milliseconds */
    bool absolute; /* or relative to now */
};

/* FIELDS n name..., from argv[at] to the end. bad_count is the error for an invalid count. False:
 * an error was replied. */
bool engine_hash_parse_fields(struct engine_call *call, size_t at, const char *bad_count,
                              struct engine_hash_names *ret);

/* *ret: Unix time in ms, 0 to ENGINE_HASH_EXPIRE_MAX. False: an error was replied. */
bool engine_hash_parse_time(struct engine_call *call, struct rd_slice arg,
                            struct engine_hash_clock clock, int64_t *ret);

/* Whether a field with this expiry is removed at once. In a log it is not: its HDEL follows. */
bool engine_hash_past(const struct engine_call *call, int64_t expire_ms);
void engine_hash_delete_effect(struct engine_call *call, struct rd_slice field);

#endif
