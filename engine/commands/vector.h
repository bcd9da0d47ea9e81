/* vector.h - the commands about vector sets, from Redis 8.0 on. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_VECTOR_H
#define ENGINE_COMMANDS_VECTOR_H

/* clang-format off */
#define ENGINE_TABLE_VECTOR(CMD, BOX, SUB, END)                                                    \
    CMD(vadd, "vadd", VECTOR, ENGINE, -5, WRITE | DENYOOM | LATER_VERSION, 0, "8.0.0",             \
        "Adds an element with its vector to a vector set, or replaces the vector",                 \
        "O(log(N)), N elements",                                                                   \
        KEY(1, RW | UPDATE)                                                                        \
        ARGS("key@0 [REDUCE dim:integer] format(FP32 | VALUES num:integer) vector:string "         \
             "element:string [CAS] [quantization(NOQUANT | Q8 | BIN)] [EF ef:integer] "            \
             "[SETATTR attributes:string] [M numlinks:integer]")                                   \
        LEVELS(REDIS_8_0 | REDIS_8_6))                                                             \
    CMD(vcard, "vcard", VECTOR, ENGINE, 2, READONLY | FAST | LATER_VERSION, 0, "8.0.0",            \
        "Returns the number of elements of a vector set", "O(1)",                                  \
        KEY(1, RO) ARGS("key@0")                                                                   \
        LEVELS(REDIS_8_0 | REDIS_8_6))                                                             \
    CMD(vdim, "vdim", VECTOR, ENGINE, 2, READONLY | FAST | LATER_VERSION, 0, "8.0.0",              \
        "Returns the dimension of the vectors of a vector set", "O(1)",                            \
        KEY(1, RO) ARGS("key@0")                                                                   \
        LEVELS(REDIS_8_0 | REDIS_8_6))                                                             \
    CMD(vemb, "vemb", VECTOR, ENGINE, -3, READONLY | FAST | LATER_VERSION, 0, "8.0.0",             \
        "Returns the vector of an element", "O(1)",                                                \
        KEY(1, RO | ACCESS) ARGS("key@0 element:string [RAW]")                                     \
        LEVELS(REDIS_8_0 | REDIS_8_6))                                                             \
    CMD(vgetattr, "vgetattr", VECTOR, ENGINE, 3, READONLY | FAST | LATER_VERSION, 0, "8.0.0",      \
        "Returns the attributes of an element", "O(1)",                                            \
        KEY(1, RO | ACCESS) ARGS("key@0 element:string")                                           \
        LEVELS(REDIS_8_0 | REDIS_8_6))                                                             \
    CMD(vinfo, "vinfo", VECTOR, ENGINE, 2, READONLY | FAST | LATER_VERSION, 0, "8.0.0",            \
        "Returns properties of a vector set", "O(1)",                                              \
        KEY(1, RO) ARGS("key@0")                                                                   \
        LEVELS(REDIS_8_0 | REDIS_8_6))                                                             \
    CMD(vismember, "vismember", VECTOR, ENGINE, 3, READONLY | FAST | LATER_VERSION, 0, "8.0.0",    \
        "Reports whether a vector set has an element", "O(1)",                                     \
        KEY(1, RO) ARGS("key@0 element:string")                                                    \
        LEVELS(REDIS_8_0 | REDIS_8_6))                                                             \
    CMD(vlinks, "vlinks", VECTOR, ENGINE, -3, READONLY | FAST | LATER_VERSION, 0, "8.0.0",         \
        "Returns the neighbours of an element in the graph, layer by layer", "O(1)",               \
        KEY(1, RO | ACCESS) ARGS("key@0 element:string [WITHSCORES]")                              \
        LEVELS(REDIS_8_0 | REDIS_8_6))                                                             \
    CMD(vrandmember, "vrandmember", VECTOR, ENGINE, -2, READONLY | LATER_VERSION, 0, "8.0.0",      \
        "Returns random elements of a vector set", "O(N), N elements in the reply",                \
        KEY(1, RO | ACCESS) ARGS("key@0 [count:integer]")                                          \
        LEVELS(REDIS_8_0 | REDIS_8_6))                                                             \
    CMD(vrange, "vrange", VECTOR, ENGINE, -4, READONLY | LATER_VERSION, 0, "8.4.0",                \
        "Returns the elements of a lexicographical range of names",                                \
        "O(N*log(N)), N elements",                                                                 \
        KEY(1, RO | ACCESS) ARGS("key@0 start:string end:string [count:integer]")                  \
        LEVELS(REDIS_8_6))                                                                         \
    CMD(vrem, "vrem", VECTOR, ENGINE, 3, WRITE | LATER_VERSION, 0, "8.0.0",                        \
        "Removes an element from a vector set", "O(log(N)), N elements",                           \
        KEY(1, RW | DELETE) ARGS("key@0 element:string")                                           \
        LEVELS(REDIS_8_0 | REDIS_8_6))                                                             \
    CMD(vsetattr, "vsetattr", VECTOR, ENGINE, 4, WRITE | FAST | LATER_VERSION, 0, "8.0.0",         \
        "Sets or removes the attributes of an element", "O(1)",                                    \
        KEY(1, RW | UPDATE) ARGS("key@0 element:string attributes:string")                         \
        LEVELS(REDIS_8_0 | REDIS_8_6))                                                             \
    CMD(vsim, "vsim", VECTOR, ENGINE, -4, READONLY | LATER_VERSION, 0, "8.0.0",                    \
        "Returns the elements whose vectors are most similar to a vector or an element",           \
        "O(N), N elements",                                                                        \
        KEY(1, RO | ACCESS)                                                                        \
        ARGS("key@0 format(ELE | FP32 | VALUES num:integer) vector-or-element:string "             \
             "[WITHSCORES] [WITHATTRIBS] [COUNT count:integer] [EPSILON delta:double] "            \
             "[EF ef:integer] [FILTER expression:string] [FILTER-EF effort:integer] [TRUTH] "      \
             "[NOTHREAD]")                                                                         \
        LEVELS(REDIS_8_0 | REDIS_8_6))
/* clang-format on */

#endif
