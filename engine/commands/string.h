/* string.h - the commands about strings. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_STRING_H
#define ENGINE_COMMANDS_STRING_H

/* clang-format off */
#define ENGINE_TABLE_STRING(CMD, BOX, SUB, END)                                                    \
    CMD(append, "append", STRING, ENGINE, 3, WRITE | DENYOOM | FAST, A_STRING, "2.0.0",            \
        "Adds bytes to the end of a string", "O(1) amortized",                                     \
        KEY(1, RW | INSERT) ARGS("key@0 value"))                                                   \
    CMD(decr, "decr", STRING, ENGINE, 2, WRITE | DENYOOM | FAST, A_STRING, "1.0.0",                \
        "Subtracts one from the number in a string", "O(1)",                                       \
        KEY(1, RW | ACCESS | UPDATE) ARGS("key@0"))                                                \
    CMD(decrby, "decrby", STRING, ENGINE, 3, WRITE | DENYOOM | FAST, A_STRING, "1.0.0",            \
        "Subtracts an integer from the number in a string", "O(1)",                                \
        KEY(1, RW | ACCESS | UPDATE) ARGS("key@0 decrement:integer"))                              \
    CMD(delex, "delex", STRING, ENGINE, -2, WRITE | FAST | LATER_VERSION, A_STRING, "8.4.0",       \
        "Deletes a key if its string meets a condition", "O(1)",                                   \
        KEY(1, RW | DELETE)                                                                        \
        ARGS("key@0 [condition(IFEQ value | IFNE value | IFDEQ digest:string | IFDNE "             \
             "digest:string)]")                                                                    \
        LEVELS(REDIS_8_6))                                                                         \
    CMD(delifeq, "delifeq", STRING, ENGINE, 3, WRITE | FAST | LATER_VERSION, A_STRING, "9.0.0",    \
        "Deletes a key if it has this string", "O(1)",                                             \
        KEY(1, RM | DELETE) ARGS("key@0 value")                                                    \
        LEVELS(VALKEY_9_1))                                                                        \
    CMD(get, "get", STRING, ENGINE, 2, READONLY | FAST, A_STRING, "1.0.0",                         \
        "Returns the string at a key", "O(1)",                                                     \
        KEY(1, RO | ACCESS) ARGS("key@0"))                                                         \
    CMD(getdel, "getdel", STRING, ENGINE, 2, WRITE | FAST, A_STRING, "6.2.0",                      \
        "Returns the string at a key and deletes the key", "O(1)",                                 \
        KEY(1, RW | ACCESS | DELETE) ARGS("key@0"))                                                \
    CMD(getex, "getex", STRING, ENGINE, -2, WRITE | FAST, A_STRING, "6.2.0",                       \
        "Returns the string at a key and can change its expiry", "O(1)",                           \
        KEY_NOTED(1, RW | ACCESS | UPDATE, "UPDATE: it may change the expiry")                     \
        ARGS("key@0 [expiration(EX seconds:integer | PX milliseconds:integer | EXAT "              \
             "unix-time-seconds:unix-time | PXAT unix-time-milliseconds:unix-time | PERSIST)]"))   \
    CMD(getrange, "getrange", STRING, ENGINE, 4, READONLY, A_STRING, "2.4.0",                      \
        "Returns a part of a string", "O(N), N bytes returned",                                    \
        KEY(1, RO | ACCESS) ARGS("key@0 start:integer end:integer"))                               \
    CMD(getset, "getset", STRING, ENGINE, 3, WRITE | DENYOOM | FAST, A_STRING, "1.0.0",            \
        "Replaces the string at a key and returns the previous one", "O(1)",                       \
        KEY(1, RW | ACCESS | UPDATE) DEPRECATED("6.2.0", "SET with GET") ARGS("key@0 value"))      \
    CMD(incr, "incr", STRING, ENGINE, 2, WRITE | DENYOOM | FAST, A_STRING, "1.0.0",                \
        "Adds one to the number in a string", "O(1)",                                              \
        KEY(1, RW | ACCESS | UPDATE) ARGS("key@0"))                                                \
    CMD(incrby, "incrby", STRING, ENGINE, 3, WRITE | DENYOOM | FAST, A_STRING, "1.0.0",            \
        "Adds an integer to the number in a string", "O(1)",                                       \
        KEY(1, RW | ACCESS | UPDATE) ARGS("key@0 increment:integer"))                              \
    CMD(incrbyfloat, "incrbyfloat", STRING, ENGINE, 3, WRITE | DENYOOM | FAST, A_STRING, "2.6.0",  \
        "Adds a floating point number to the number in a string", "O(1)",                          \
        KEY(1, RW | ACCESS | UPDATE) ARGS("key@0 increment:double"))                               \
    CMD(increx, "increx", STRING, ENGINE, -2,                                                      \
        WRITE | DENYOOM | FAST | LATER_VERSION, A_STRING, "8.8.0",                                 \
        "Adds to a number and sets its bounds and expiry", "O(1)",                                 \
        KEY(1, RW | ACCESS | UPDATE)                                                               \
        ARGS("key@0 [condition(NX | XX)] [expiration(EX seconds:integer | PX "                     \
             "milliseconds:integer | EXAT unix-time-seconds:unix-time | PXAT "                     \
             "unix-time-milliseconds:unix-time | PERSIST)] [ENX] [increment(BYINT "                \
             "increment:integer | BYFLOAT increment:double)] [LBOUND lowerbound:string] "          \
             "[UBOUND upperbound:string] [SATURATE]"))                                             \
    CMD(lcs, "lcs", STRING, ENGINE, -3, READONLY, A_STRING, "7.0.0",                               \
        "Finds the longest common subsequence of two strings",                                     \
        "O(N*M), N and M bytes of the strings",                                                    \
        KEYS(1, 2, 1, SPEC(INDEX(1), RANGE(1, 1, 0), RO | ACCESS))                                 \
        ARGS("key1@0 key2@0 [LEN] [IDX] [MINMATCHLEN len:integer] [WITHMATCHLEN]"))                \
    CMD(mget, "mget", STRING, ENGINE, -2, READONLY | FAST, A_STRING, "1.0.0",                      \
        "Returns the strings at several keys", "O(N), N keys",                                     \
        KEYS_FROM(1, RO | ACCESS) TIPS("request_policy:multi_shard") ARGS("key@0..."))             \
    CMD(mset, "mset", STRING, ENGINE, -3, WRITE | DENYOOM, A_STRING, "1.0.1",                      \
        "Stores strings at several keys", "O(N), N keys",                                          \
        KEYS(1, -1, 2, SPEC(INDEX(1), RANGE(-1, 2, 0), OW | UPDATE))                               \
        TIPS("request_policy:multi_shard response_policy:all_succeeded")                           \
        ARGS("key_value(key@0 value)..."))                                                         \
    CMD(msetex, "msetex", STRING, ENGINE, -4, WRITE | DENYOOM | MOVABLE_KEYS | LATER_VERSION,      \
        A_STRING, "8.4.0",                                                                         \
        "Stores strings with one expiry at several keys, if a condition holds",                    \
        "O(N), N keys",                                                                            \
        KEYS(0, 0, 0, SPEC(INDEX(1), KEYNUM(0, 1, 2), OW | UPDATE))                                \
        TIPS("request_policy:multi_shard response_policy:all_succeeded")                           \
        ARGS("numkeys:integer key_value(key@0 value)... [condition(NX | XX)] [expiration(EX "      \
             "seconds:integer | PX milliseconds:integer | EXAT unix-time-seconds:unix-time | "     \
             "PXAT unix-time-milliseconds:unix-time | KEEPTTL)]")                                  \
        LEVELS(REDIS_8_6 | VALKEY_9_1))                                                            \
    CMD(msetnx, "msetnx", STRING, ENGINE, -3, WRITE | DENYOOM, A_STRING, "1.0.1",                  \
        "Stores strings at several keys unless one of them exists", "O(N), N keys",                \
        KEYS(1, -1, 2, SPEC(INDEX(1), RANGE(-1, 2, 0), OW | INSERT))                               \
        TIPS("request_policy:multi_shard response_policy:agg_min")                                 \
        ARGS("key_value(key@0 value)..."))                                                         \
    CMD(psetex, "psetex", STRING, ENGINE, 4, WRITE | DENYOOM, A_STRING, "2.6.0",                   \
        "Stores a string that expires after a number of milliseconds", "O(1)",                     \
        KEY(1, OW | UPDATE) ARGS("key@0 milliseconds:integer value"))                              \
    CMD(set, "set", STRING, ENGINE, -3, WRITE | DENYOOM, A_STRING, "1.0.0",                        \
        "Stores a string at a key and replaces any other value", "O(1)",                           \
        KEY_NOTED(1, RW | ACCESS | UPDATE | VARIABLE, "ACCESS: with GET only")                     \
        HISTORY("2.6.12 EX, PX, NX, XX; 6.0.0 KEEPTTL; 6.2.0 GET, EXAT, PXAT; 7.0.0 NX together "  \
                "with GET")                                                                        \
        ARGS("key@0 value [condition(NX | XX){2.6.12}] [GET{6.2.0}] [expiration(EX "               \
             "seconds:integer{2.6.12} | PX milliseconds:integer{2.6.12} | EXAT "                   \
             "unix-time-seconds:unix-time{6.2.0} | PXAT unix-time-milliseconds:unix-time{6.2.0} "  \
             "| KEEPTTL{6.0.0})]"))                                                                \
    CMD(setex, "setex", STRING, ENGINE, 4, WRITE | DENYOOM, A_STRING, "2.0.0",                     \
        "Stores a string that expires after a number of seconds", "O(1)",                          \
        KEY(1, OW | UPDATE) ARGS("key@0 seconds:integer value"))                                   \
    CMD(setnx, "setnx", STRING, ENGINE, 3, WRITE | DENYOOM | FAST, A_STRING, "1.0.0",              \
        "Stores a string at a key unless the key exists", "O(1)",                                  \
        KEY(1, OW | INSERT) ARGS("key@0 value"))                                                   \
    CMD(setrange, "setrange", STRING, ENGINE, 4, WRITE | DENYOOM, A_STRING, "2.2.0",               \
        "Overwrites a part of a string", "O(N), N bytes written",                                  \
        KEY(1, RW | UPDATE) ARGS("key@0 offset:integer value"))                                    \
    CMD(strlen, "strlen", STRING, ENGINE, 2, READONLY | FAST, A_STRING, "2.2.0",                   \
        "Returns the length of a string in bytes", "O(1)",                                         \
        KEY(1, RO) ARGS("key@0"))                                                                  \
    CMD(substr, "substr", STRING, ENGINE, 4, READONLY, A_STRING, "1.0.0",                          \
        "Returns a part of a string (old name of GETRANGE)", "O(N), N bytes returned",             \
        KEY(1, RO | ACCESS) DEPRECATED("2.0.0", "GETRANGE")                                        \
        ARGS("key@0 start:integer end:integer"))
/* clang-format on */

#endif
