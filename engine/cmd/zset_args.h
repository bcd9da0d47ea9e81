/* zset_args.h - private to the commands of sorted sets and of geo: arguments, and storing results.
 */
#ifndef ENGINE_CMD_ZSET_ARGS_H
#define ENGINE_CMD_ZSET_ARGS_H

#include "engine/call.h"
#include "engine/value/zset.h"

/* A score, weight or coordinate: engine_arg_f64(), and what strtod() takes beyond (hexadecimal,
 * more than 512 characters). */
bool engine_zset_arg_f64(struct engine_call *call, struct rd_slice arg, double *ret,
                         const char *error);

/* "(1.5", "-inf" …, or "[abc", "(abc", "-", "+" where lex. False: the error was answered. The texts
 * of *ret are borrowed from the arguments. */
bool engine_zset_arg_range(struct engine_call *call, bool lex, struct rd_slice min,
                           struct rd_slice max, struct engine_zset_range *ret);

/* Stores the result (taken) under the key, or deletes the key where the result is empty. `n` is by
 * how much the data set changed. */
void engine_zset_store(struct engine_call *call, struct rd_slice key, struct engine_value *result,
                       const char *event, uint64_t n);

/* Deletes the key if it is there, also when it is due: event "del", a change of 1. */
void engine_zset_store_nothing(struct engine_call *call, struct rd_slice key);

/* After members were taken out of a key (a slice that outlives it): the key of an empty set goes.
 * The event of taking them out follows with n changes, then "del". Nothing where n is 0. */
void engine_zset_taken(struct engine_call *call, struct engine_entry *entry, struct rd_slice key,
                       const char *event, uint64_t n);

/* ZADD and what is made of it: argv as that of ZADD, which need not be the call's. */
void engine_zset_run_add(struct engine_call *call, size_t argc, const struct rd_slice *argv,
                         bool incr);

#endif
