/* hash.h - the commands about hashes. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_HASH_H
#define ENGINE_COMMANDS_HASH_H

/* clang-format off */
#define ENGINE_TABLE_HASH(CMD, BOX, SUB, END)                                                      \
    CMD(hdel, "hdel", HASH, ENGINE, -3, WRITE | FAST, A_HASH, "2.0.0",                             \
        "Deletes fields of a hash", "O(N), N fields",                                              \
        KEY(1, RW | DELETE) HISTORY("2.4.0 several fields") ARGS("key@0 field..."))                \
    CMD(hexists, "hexists", HASH, ENGINE, 3, READONLY | FAST, A_HASH, "2.0.0",                     \
        "Reports whether a hash has a field", "O(1)",                                              \
        KEY(1, RO) ARGS("key@0 field"))                                                            \
    CMD(hexpire, "hexpire", HASH, ENGINE, -6, WRITE | DENYOOM | FAST | LATER_VERSION, A_HASH,      \
        "7.4.0",                                                                                   \
        "Makes fields of a hash expire after a number of seconds", "O(N), N fields",               \
        KEY(1, RW | UPDATE)                                                                        \
        ARGS("key@0 seconds:integer [condition(NX | XX | GT | LT)] FIELDS "                        \
             "fields(numfields:integer field...)")                                                 \
        LEVELS(REDIS_8_0 | REDIS_8_6 | VALKEY_9_1))                                                \
    CMD(hexpireat, "hexpireat", HASH, ENGINE, -6, WRITE | DENYOOM | FAST | LATER_VERSION, A_HASH,  \
        "7.4.0",                                                                                   \
        "Makes fields of a hash expire at a Unix time in seconds", "O(N), N fields",               \
        KEY(1, RW | UPDATE)                                                                        \
        ARGS("key@0 unix-time-seconds:unix-time [condition(NX | XX | GT | LT)] FIELDS "            \
             "fields(numfields:integer field...)")                                                 \
        LEVELS(REDIS_8_0 | REDIS_8_6 | VALKEY_9_1))                                                \
    CMD(hexpiretime, "hexpiretime", HASH, ENGINE, -5, READONLY | FAST | LATER_VERSION, A_HASH,     \
        "7.4.0",                                                                                   \
        "Returns the Unix times in seconds at which fields of a hash expire", "O(N), N fields",    \
        KEY(1, RO | ACCESS) ARGS("key@0 FIELDS fields(numfields:integer field...)")                \
        LEVELS(REDIS_8_0 | REDIS_8_6 | VALKEY_9_1))                                                \
    CMD(hget, "hget", HASH, ENGINE, 3, READONLY | FAST, A_HASH, "2.0.0",                           \
        "Returns the value of one field of a hash", "O(1)",                                        \
        KEY(1, RO | ACCESS) ARGS("key@0 field"))                                                   \
    CMD(hgetall, "hgetall", HASH, ENGINE, 2, READONLY, A_HASH, "2.0.0",                            \
        "Returns all fields of a hash and their values", "O(N), N fields",                         \
        KEY(1, RO | ACCESS) TIPS("nondeterministic_output_order") ARGS("key@0"))                   \
    CMD(hgetdel, "hgetdel", HASH, ENGINE, -5, WRITE | FAST | LATER_VERSION, A_HASH, "8.0.0",       \
        "Returns the values of fields of a hash and deletes the fields", "O(N), N fields",         \
        KEY(1, RW | ACCESS | DELETE) ARGS("key@0 FIELDS fields(numfields:integer field...)")       \
        LEVELS(REDIS_8_0 | REDIS_8_6 | VALKEY_9_1))                                                \
    CMD(hgetex, "hgetex", HASH, ENGINE, -5, WRITE | FAST | LATER_VERSION, A_HASH, "8.0.0",         \
        "Returns the values of fields of a hash and can change their expiry", "O(N), N fields",    \
        KEY(1, RW | ACCESS | UPDATE)                                                               \
        ARGS("key@0 [expiration(EX seconds:integer | PX milliseconds:integer | EXAT "              \
             "unix-time-seconds:unix-time | PXAT unix-time-milliseconds:unix-time | PERSIST)] "    \
             "FIELDS fields(numfields:integer field...)")                                          \
        LEVELS(REDIS_8_0 | REDIS_8_6 | VALKEY_9_1))                                                \
    CMD(hincrby, "hincrby", HASH, ENGINE, 4, WRITE | DENYOOM | FAST, A_HASH, "2.0.0",              \
        "Adds an integer to the number in a field of a hash", "O(1)",                              \
        KEY(1, RW | ACCESS | UPDATE) ARGS("key@0 field increment:integer"))                        \
    CMD(hincrbyfloat, "hincrbyfloat", HASH, ENGINE, 4, WRITE | DENYOOM | FAST, A_HASH, "2.6.0",    \
        "Adds a floating point number to the number in a field of a hash", "O(1)",                 \
        KEY(1, RW | ACCESS | UPDATE) ARGS("key@0 field increment:double"))                         \
    CMD(hkeys, "hkeys", HASH, ENGINE, 2, READONLY, A_HASH, "2.0.0",                                \
        "Returns the names of all fields of a hash", "O(N), N fields",                             \
        KEY(1, RO | ACCESS) TIPS("nondeterministic_output_order") ARGS("key@0"))                   \
    CMD(hlen, "hlen", HASH, ENGINE, 2, READONLY | FAST, A_HASH, "2.0.0",                           \
        "Counts the fields of a hash", "O(1)",                                                     \
        KEY(1, RO) ARGS("key@0"))                                                                  \
    CMD(hmget, "hmget", HASH, ENGINE, -3, READONLY | FAST, A_HASH, "2.0.0",                        \
        "Returns the values of several fields of a hash", "O(N), N fields requested",              \
        KEY(1, RO | ACCESS) ARGS("key@0 field..."))                                                \
    CMD(hmset, "hmset", HASH, ENGINE, -4, WRITE | DENYOOM | FAST, A_HASH, "2.0.0",                 \
        "Sets several fields of a hash (old form of HSET)", "O(N), N fields set",                  \
        KEY(1, RW | UPDATE) DEPRECATED("4.0.0", "HSET with multiple field-value pairs")            \
        ARGS("key@0 field_value(field value)..."))                                                 \
    CMD(hpersist, "hpersist", HASH, ENGINE, -5, WRITE | FAST | LATER_VERSION, A_HASH, "7.4.0",     \
        "Removes the expiry of fields of a hash", "O(N), N fields",                                \
        KEY(1, RW | UPDATE) ARGS("key@0 FIELDS fields(numfields:integer field...)")                \
        LEVELS(REDIS_8_0 | REDIS_8_6 | VALKEY_9_1))                                                \
    CMD(hpexpire, "hpexpire", HASH, ENGINE, -6, WRITE | DENYOOM | FAST | LATER_VERSION, A_HASH,    \
        "7.4.0",                                                                                   \
        "Makes fields of a hash expire after a number of milliseconds", "O(N), N fields",          \
        KEY(1, RW | UPDATE)                                                                        \
        ARGS("key@0 milliseconds:integer [condition(NX | XX | GT | LT)] FIELDS "                   \
             "fields(numfields:integer field...)")                                                 \
        LEVELS(REDIS_8_0 | REDIS_8_6 | VALKEY_9_1))                                                \
    CMD(hpexpireat, "hpexpireat", HASH, ENGINE, -6, WRITE | DENYOOM | FAST | LATER_VERSION,        \
        A_HASH, "7.4.0",                                                                           \
        "Makes fields of a hash expire at a Unix time in milliseconds", "O(N), N fields",          \
        KEY(1, RW | UPDATE)                                                                        \
        ARGS("key@0 unix-time-milliseconds:unix-time [condition(NX | XX | GT | LT)] FIELDS "       \
             "fields(numfields:integer field...)")                                                 \
        LEVELS(REDIS_8_0 | REDIS_8_6 | VALKEY_9_1))                                                \
    CMD(hpexpiretime, "hpexpiretime", HASH, ENGINE, -5, READONLY | FAST | LATER_VERSION, A_HASH,   \
        "7.4.0",                                                                                   \
        "Returns the Unix times in milliseconds at which fields of a hash expire",                 \
        "O(N), N fields",                                                                          \
        KEY(1, RO | ACCESS) ARGS("key@0 FIELDS fields(numfields:integer field...)")                \
        LEVELS(REDIS_8_0 | REDIS_8_6 | VALKEY_9_1))                                                \
    CMD(hpttl, "hpttl", HASH, ENGINE, -5, READONLY | FAST | LATER_VERSION, A_HASH, "7.4.0",        \
        "Returns the time to live of fields of a hash in milliseconds", "O(N), N fields",          \
        KEY(1, RO | ACCESS) ARGS("key@0 FIELDS fields(numfields:integer field...)")                \
        LEVELS(REDIS_8_0 | REDIS_8_6 | VALKEY_9_1))                                                \
    CMD(hrandfield, "hrandfield", HASH, ENGINE, -2, READONLY, A_HASH, "6.2.0",                     \
        "Returns random fields of a hash", "O(N), N fields returned",                              \
        KEY(1, RO | ACCESS) TIPS("nondeterministic_output")                                        \
        ARGS("key@0 [options(count:integer [WITHVALUES])]"))                                       \
    CMD(hscan, "hscan", HASH, ENGINE, -3, READONLY, A_HASH, "2.8.0",                               \
        "Iterates over the fields of a hash, a few per call",                                      \
        "O(1) per call, O(N) for all N fields",                                                    \
        KEY(1, RO | ACCESS) TIPS("nondeterministic_output")                                        \
        ARGS("key@0 cursor:integer [MATCH pattern:pattern] [COUNT count:integer]"))                \
    CMD(hset, "hset", HASH, ENGINE, -4, WRITE | DENYOOM | FAST, A_HASH, "2.0.0",                   \
        "Sets fields of a hash", "O(N), N fields set",                                             \
        KEY(1, RW | UPDATE) HISTORY("4.0.0 several pairs")                                         \
        ARGS("key@0 field_value(field value)..."))                                                 \
    CMD(hsetex, "hsetex", HASH, ENGINE, -6, WRITE | DENYOOM | FAST | LATER_VERSION, A_HASH,        \
        "8.0.0",                                                                                   \
        "Sets fields of a hash together with their expiry", "O(N), N fields",                      \
        KEY(1, RW | UPDATE)                                                                        \
        ARGS("key@0 [condition(FNX | FXX)] [expiration(EX seconds:integer | PX "                   \
             "milliseconds:integer | EXAT unix-time-seconds:unix-time | PXAT "                     \
             "unix-time-milliseconds:unix-time | KEEPTTL)] FIELDS fields(numfields:integer "       \
             "data(field value)...)")                                                              \
        LEVELS(REDIS_8_0 | REDIS_8_6 | VALKEY_9_1))                                                \
    CMD(hsetnx, "hsetnx", HASH, ENGINE, 4, WRITE | DENYOOM | FAST, A_HASH, "2.0.0",                \
        "Sets a field of a hash unless it exists", "O(1)",                                         \
        KEY(1, RW | INSERT) ARGS("key@0 field value"))                                             \
    CMD(hstrlen, "hstrlen", HASH, ENGINE, 3, READONLY | FAST, A_HASH, "3.2.0",                     \
        "Returns the length of a field's value", "O(1)",                                           \
        KEY(1, RO) ARGS("key@0 field"))                                                            \
    CMD(httl, "httl", HASH, ENGINE, -5, READONLY | FAST | LATER_VERSION, A_HASH, "7.4.0",          \
        "Returns the time to live of fields of a hash in seconds", "O(N), N fields",               \
        KEY(1, RO | ACCESS) ARGS("key@0 FIELDS fields(numfields:integer field...)")                \
        LEVELS(REDIS_8_0 | REDIS_8_6 | VALKEY_9_1))                                                \
    CMD(hvals, "hvals", HASH, ENGINE, 2, READONLY, A_HASH, "2.0.0",                                \
        "Returns the values of all fields of a hash", "O(N), N fields",                            \
        KEY(1, RO | ACCESS) TIPS("nondeterministic_output_order") ARGS("key@0"))
/* clang-format on */

#endif
