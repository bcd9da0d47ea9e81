/* set.h - the commands about sets. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_SET_H
#define ENGINE_COMMANDS_SET_H

/* clang-format off */
#define ENGINE_TABLE_SET(CMD, BOX, SUB, END)                                                       \
    CMD(sadd, "sadd", SET, ENGINE, -3, WRITE | DENYOOM | FAST, A_SET, "1.0.0",                     \
        "Adds members to a set", "O(N), N members added",                                          \
        KEY(1, RW | INSERT) HISTORY("2.4.0 several members") ARGS("key@0 member..."))              \
    CMD(scard, "scard", SET, ENGINE, 2, READONLY | FAST, A_SET, "1.0.0",                           \
        "Counts the members of a set", "O(1)",                                                     \
        KEY(1, RO) ARGS("key@0"))                                                                  \
    CMD(sdiff, "sdiff", SET, ENGINE, -2, READONLY, A_SET, "1.0.0",                                 \
        "Returns the members of the first set that are in none of the others",                     \
        "O(N), N members of all sets",                                                             \
        KEYS_FROM(1, RO | ACCESS) TIPS("nondeterministic_output_order") ARGS("key@0..."))          \
    CMD(sdiffstore, "sdiffstore", SET, ENGINE, -3, WRITE | DENYOOM, A_SET, "1.0.0",                \
        "Stores the members of the first set that are in none of the others",                      \
        "O(N), N members of all sets",                                                             \
        KEYS(1, -1, 1,                                                                             \
             SPEC(INDEX(1), RANGE(0, 1, 0), OW | UPDATE)                                           \
             SPEC(INDEX(2), RANGE(-1, 1, 0), RO | ACCESS))                                         \
        ARGS("destination@0 key@1..."))                                                            \
    CMD(sinter, "sinter", SET, ENGINE, -2, READONLY, A_SET, "1.0.0",                               \
        "Returns the members that all sets have in common",                                        \
        "O(N*M), N members of the smallest set, M sets",                                           \
        KEYS_FROM(1, RO | ACCESS) TIPS("nondeterministic_output_order") ARGS("key@0..."))          \
    CMD(sintercard, "sintercard", SET, ENGINE, -3, READONLY | MOVABLE_KEYS, A_SET, "7.0.0",        \
        "Counts the members that all sets have in common",                                         \
        "O(N*M), N members of the smallest set, M sets",                                           \
        KEYS(0, 0, 0, SPEC(INDEX(1), KEYNUM(0, 1, 1), RO | ACCESS))                                \
        ARGS("numkeys:integer key@0... [LIMIT limit:integer]"))                                    \
    CMD(sinterstore, "sinterstore", SET, ENGINE, -3, WRITE | DENYOOM, A_SET, "1.0.0",              \
        "Stores the members that all sets have in common",                                         \
        "O(N*M), N members of the smallest set, M sets",                                           \
        KEYS(1, -1, 1,                                                                             \
             SPEC(INDEX(1), RANGE(0, 1, 0), RW | UPDATE)                                           \
             SPEC(INDEX(2), RANGE(-1, 1, 0), RO | ACCESS))                                         \
        ARGS("destination@0 key@1..."))                                                            \
    CMD(sismember, "sismember", SET, ENGINE, 3, READONLY | FAST, A_SET, "1.0.0",                   \
        "Reports whether a set has a member", "O(1)",                                              \
        KEY(1, RO) ARGS("key@0 member"))                                                           \
    CMD(smembers, "smembers", SET, ENGINE, 2, READONLY, A_SET, "1.0.0",                            \
        "Returns the members of a set", "O(N), N members",                                         \
        KEY(1, RO | ACCESS) TIPS("nondeterministic_output_order") ARGS("key@0"))                   \
    CMD(smismember, "smismember", SET, ENGINE, -3, READONLY | FAST, A_SET, "6.2.0",                \
        "Reports for each member whether a set has it", "O(N), N members requested",               \
        KEY(1, RO | ACCESS) ARGS("key@0 member..."))                                               \
    CMD(smove, "smove", SET, ENGINE, 4, WRITE | FAST, A_SET, "1.0.0",                              \
        "Moves a member from one set to another", "O(1)",                                          \
        KEYS(1, 2, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), RW | ACCESS | DELETE)                                  \
             SPEC(INDEX(2), RANGE(0, 1, 0), RW | INSERT))                                          \
        ARGS("source@0 destination@1 member"))                                                     \
    CMD(spop, "spop", SET, ENGINE, -2, WRITE | FAST, A_SET, "1.0.0",                               \
        "Removes and returns random members of a set", "O(N), N members returned",                 \
        KEY(1, RW | ACCESS | DELETE) TIPS("nondeterministic_output") HISTORY("3.2.0 a count")      \
        ARGS("key@0 [count:integer{3.2.0}]"))                                                      \
    CMD(srandmember, "srandmember", SET, ENGINE, -2, READONLY, A_SET, "1.0.0",                     \
        "Returns random members of a set", "O(N), N members returned",                             \
        KEY(1, RO | ACCESS) TIPS("nondeterministic_output") HISTORY("2.6.0 a count")               \
        ARGS("key@0 [count:integer{2.6.0}]"))                                                      \
    CMD(srem, "srem", SET, ENGINE, -3, WRITE | FAST, A_SET, "1.0.0",                               \
        "Removes members of a set", "O(N), N members to remove",                                   \
        KEY(1, RW | DELETE) HISTORY("2.4.0 several members") ARGS("key@0 member..."))              \
    CMD(sscan, "sscan", SET, ENGINE, -3, READONLY, A_SET, "2.8.0",                                 \
        "Iterates over the members of a set, a few per call",                                      \
        "O(1) per call, O(N) for all N members",                                                   \
        KEY(1, RO | ACCESS) TIPS("nondeterministic_output")                                        \
        ARGS("key@0 cursor:integer [MATCH pattern:pattern] [COUNT count:integer]"))                \
    CMD(sunion, "sunion", SET, ENGINE, -2, READONLY, A_SET, "1.0.0",                               \
        "Returns the members of any of the sets", "O(N), N members of all sets",                   \
        KEYS_FROM(1, RO | ACCESS) TIPS("nondeterministic_output_order") ARGS("key@0..."))          \
    CMD(sunionstore, "sunionstore", SET, ENGINE, -3, WRITE | DENYOOM, A_SET, "1.0.0",              \
        "Stores the members of any of the sets", "O(N), N members of all sets",                    \
        KEYS(1, -1, 1,                                                                             \
             SPEC(INDEX(1), RANGE(0, 1, 0), OW | UPDATE)                                           \
             SPEC(INDEX(2), RANGE(-1, 1, 0), RO | ACCESS))                                         \
        ARGS("destination@0 key@1..."))
/* clang-format on */

#endif
