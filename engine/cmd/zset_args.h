/* zset_args.h - private to the sorted set and geo commands: arguments, and storing results.
 */
#ifndef ENGINE_CMD_ZSET_ARGS_H
#define ENGINE_CMD_ZSET_ARGS_H

#include "engine/call.h"
#include "engine/value/zset.h"

/* A score, weight or coordinate: engine_arg_f64(), plus other forms of strtod() (hexadecimal, more
 * than 512 characters). */
bool engine_zset_arg_f64(struct engine_call *call, struct rd_slice arg, double *ret,
                         const char *error);

/* "(1.5", "-inf" …, or if lex "[abc", "(abc", "-", "+". False: the error was replied. The texts of
 * *ret are borrowed from the arguments. */
bool engine_zset_arg_range(struct engine_call *call, bool lex, struct rd_slice min,
                           struct rd_slice max, struct engine_zset_range *ret);

/* Takes ownership of the result and stores it under the key, or deletes the key if the result is
 * empty. `n` is the number of changes. */
void engine_zset_store(struct engine_call *call, struct rd_slice key, struct engine_value *result,
                       const char *event, uint64_t n);

/* Deletes the key if it exists, even an expired one: event "del", 1 change. */
void engine_zset_store_nothing(struct engine_call *call, struct rd_slice key);

/* After members were removed from a key (a slice that outlives it): sends the event with n changes,
 * and deletes the key of an empty set with "del". Does nothing if n is 0. */
void engine_zset_taken(struct engine_call *call, struct engine_entry *entry, struct rd_slice key,
                       const char *event, uint64_t n);

#endif
