/* hll.h - the commands about HyperLogLogs. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_HLL_H
#define ENGINE_COMMANDS_HLL_H

/* clang-format off */
#define ENGINE_TABLE_HLL(CMD, BOX, SUB, END)                                                       \
    CMD(pfadd, "pfadd", HLL, ENGINE, -2, WRITE | DENYOOM | FAST, A_HLL, "2.8.9",                   \
        "Adds elements to a HyperLogLog", "O(1) per element",                                      \
        KEY(1, RW | INSERT) ARGS("key@0 [element...]"))                                            \
    CMD(pfcount, "pfcount", HLL, ENGINE, -2, READONLY | MAY_REPLICATE, A_HLL, "2.8.9",             \
        "Estimates the number of distinct elements in HyperLogLogs",                               \
        "O(1) for one key; O(N) for N keys, with a large constant",                                \
        KEYS(1, -1, 1,                                                                             \
             NOTED(INDEX(1), RANGE(-1, 1, 0), RW | ACCESS,                                         \
                   "RW: it may cache the count in the value"))                                     \
        ARGS("key@0..."))                                                                          \
    CMD(pfdebug, "pfdebug", HLL, ENGINE, 3, WRITE | DENYOOM | ADMIN, A_HLL, "2.8.9",               \
        "Shows or changes the internals of a HyperLogLog, for tests", "N/A",                       \
        KEY(2, RW | ACCESS) SYSCMD ARGS("subcommand key@0"))                                       \
    CMD(pfmerge, "pfmerge", HLL, ENGINE, -2, WRITE | DENYOOM, A_HLL, "2.8.9",                      \
        "Merges HyperLogLogs into a destination", "O(N), N sources, with a large constant",        \
        KEYS(1, -1, 1,                                                                             \
             SPEC(INDEX(1), RANGE(0, 1, 0), RW | ACCESS | INSERT)                                  \
             SPEC(INDEX(2), RANGE(-1, 1, 0), RO | ACCESS))                                         \
        ARGS("destkey@0 sourcekey@1..."))                                                          \
    CMD(pfselftest, "pfselftest", HLL, ENGINE, 1, ADMIN, A_HLL, "2.8.9",                           \
        "Tests the HyperLogLog code of the server", "N/A",                                         \
        SYSCMD)
/* clang-format on */

#endif
