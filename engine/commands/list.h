/* list.h - the commands about lists. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_LIST_H
#define ENGINE_COMMANDS_LIST_H

/* clang-format off */
#define ENGINE_TABLE_LIST(CMD, BOX, SUB, END)                                                      \
    CMD(blmove, "blmove", LIST, ENGINE, 6, WRITE | DENYOOM | NOSCRIPT | BLOCKING, A_LIST,          \
        "6.2.0",                                                                                   \
        "Moves an element between lists, or waits for one", "O(1)",                                \
        KEYS(1, 2, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), RW | ACCESS | DELETE)                                  \
             SPEC(INDEX(2), RANGE(0, 1, 0), RW | INSERT))                                          \
        ARGS("source@0 destination@1 wherefrom(LEFT | RIGHT) whereto(LEFT | RIGHT) "               \
             "timeout:double"))                                                                    \
    CMD(blmpop, "blmpop", LIST, ENGINE, -5, WRITE | BLOCKING | MOVABLE_KEYS, A_LIST, "7.0.0",      \
        "Pops elements from the first list that is not empty, or waits",                           \
        "O(N+M), N keys, M elements returned",                                                     \
        KEYS(0, 0, 0, SPEC(INDEX(2), KEYNUM(0, 1, 1), RW | ACCESS | DELETE))                       \
        ARGS("timeout:double numkeys:integer key@0... where(LEFT | RIGHT) [COUNT count:integer]")) \
    CMD(blpop, "blpop", LIST, ENGINE, -3, WRITE | NOSCRIPT | BLOCKING, A_LIST, "2.0.0",            \
        "Pops the first element of a list, or waits for one", "O(N), N keys",                      \
        KEYS(1, -2, 1, SPEC(INDEX(1), RANGE(-2, 1, 0), RW | ACCESS | DELETE))                      \
        HISTORY("6.0.0 the timeout may have a fraction") ARGS("key@0... timeout:double"))          \
    CMD(brpop, "brpop", LIST, ENGINE, -3, WRITE | NOSCRIPT | BLOCKING, A_LIST, "2.0.0",            \
        "Pops the last element of a list, or waits for one", "O(N), N keys",                       \
        KEYS(1, -2, 1, SPEC(INDEX(1), RANGE(-2, 1, 0), RW | ACCESS | DELETE))                      \
        HISTORY("6.0.0 the timeout may have a fraction") ARGS("key@0... timeout:double"))          \
    CMD(brpoplpush, "brpoplpush", LIST, ENGINE, 4, WRITE | DENYOOM | NOSCRIPT | BLOCKING, A_LIST,  \
        "2.2.0",                                                                                   \
        "Moves the last element of a list to the head of another, or waits", "O(1)",               \
        KEYS(1, 2, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), RW | ACCESS | DELETE)                                  \
             SPEC(INDEX(2), RANGE(0, 1, 0), RW | INSERT))                                          \
        DEPRECATED("6.2.0", "BLMOVE with RIGHT and LEFT")                                          \
        HISTORY("6.0.0 the timeout may have a fraction")                                           \
        ARGS("source@0 destination@1 timeout:double"))                                             \
    CMD(lindex, "lindex", LIST, ENGINE, 3, READONLY, A_LIST, "1.0.0",                              \
        "Returns the element of a list at an index", "O(N), N elements before the index",          \
        KEY(1, RO | ACCESS) ARGS("key@0 index:integer"))                                           \
    CMD(linsert, "linsert", LIST, ENGINE, 5, WRITE | DENYOOM, A_LIST, "2.2.0",                     \
        "Inserts an element before or after another element of a list",                            \
        "O(N), N elements before the pivot",                                                       \
        KEY(1, RW | INSERT) ARGS("key@0 where(BEFORE | AFTER) pivot element"))                     \
    CMD(llen, "llen", LIST, ENGINE, 2, READONLY | FAST, A_LIST, "1.0.0",                           \
        "Counts the elements of a list", "O(1)",                                                   \
        KEY(1, RO) ARGS("key@0"))                                                                  \
    CMD(lmove, "lmove", LIST, ENGINE, 5, WRITE | DENYOOM, A_LIST, "6.2.0",                         \
        "Moves an element from one end of a list to one end of another", "O(1)",                   \
        KEYS(1, 2, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), RW | ACCESS | DELETE)                                  \
             SPEC(INDEX(2), RANGE(0, 1, 0), RW | INSERT))                                          \
        ARGS("source@0 destination@1 wherefrom(LEFT | RIGHT) whereto(LEFT | RIGHT)"))              \
    CMD(lmovem, "lmovem", LIST, ENGINE, -5, WRITE | DENYOOM | LATER_VERSION, A_LIST, "8.10.0",     \
        "Moves elements from one list to another", "O(N), N elements",                             \
        KEYS(1, 2, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), RW | ACCESS | DELETE)                                  \
             SPEC(INDEX(2), RANGE(0, 1, 0), RW | INSERT))                                          \
        ARGS("source@0 destination@1 wherefrom(LEFT | RIGHT) whereto(LEFT | RIGHT) "               \
             "[how-many(selector(COUNT count:integer | EXACTLY count:integer) "                    \
             "order(OBO | BULK))]"))                                                               \
    CMD(lmpop, "lmpop", LIST, ENGINE, -4, WRITE | MOVABLE_KEYS, A_LIST, "7.0.0",                   \
        "Pops elements from the first list that is not empty",                                     \
        "O(N+M), N keys, M elements returned",                                                     \
        KEYS(0, 0, 0, SPEC(INDEX(1), KEYNUM(0, 1, 1), RW | ACCESS | DELETE))                       \
        ARGS("numkeys:integer key@0... where(LEFT | RIGHT) [COUNT count:integer]"))                \
    CMD(lpop, "lpop", LIST, ENGINE, -2, WRITE | FAST, A_LIST, "1.0.0",                             \
        "Pops elements from the head of a list", "O(N), N elements returned",                      \
        KEY(1, RW | ACCESS | DELETE) HISTORY("6.2.0 a count")                                      \
        ARGS("key@0 [count:integer{6.2.0}]"))                                                      \
    CMD(lpos, "lpos", LIST, ENGINE, -3, READONLY, A_LIST, "6.0.6",                                 \
        "Returns the indexes of matching elements of a list", "O(N), N elements compared",         \
        KEY(1, RO | ACCESS)                                                                        \
        ARGS("key@0 element [RANK rank:integer] [COUNT num-matches:integer] [MAXLEN "              \
             "len:integer]"))                                                                      \
    CMD(lpush, "lpush", LIST, ENGINE, -3, WRITE | DENYOOM | FAST, A_LIST, "1.0.0",                 \
        "Inserts elements at the head of a list", "O(N), N elements added",                        \
        KEY(1, RW | INSERT) HISTORY("2.4.0 several elements") ARGS("key@0 element..."))            \
    CMD(lpushx, "lpushx", LIST, ENGINE, -3, WRITE | DENYOOM | FAST, A_LIST, "2.2.0",               \
        "Inserts elements at the head of a list if the list exists", "O(N), N elements added",     \
        KEY(1, RW | INSERT) HISTORY("4.0.0 several elements") ARGS("key@0 element..."))            \
    CMD(lrange, "lrange", LIST, ENGINE, 4, READONLY, A_LIST, "1.0.0",                              \
        "Returns a range of elements of a list",                                                   \
        "O(S+N), S elements before the range, N returned",                                         \
        KEY(1, RO | ACCESS) ARGS("key@0 start:integer stop:integer"))                              \
    CMD(lrem, "lrem", LIST, ENGINE, 4, WRITE, A_LIST, "1.0.0",                                     \
        "Removes the elements of a list that equal a value",                                       \
        "O(N+M), N elements of the list, M removed",                                               \
        KEY(1, RW | DELETE) ARGS("key@0 count:integer element"))                                   \
    CMD(lset, "lset", LIST, ENGINE, 4, WRITE | DENYOOM, A_LIST, "1.0.0",                           \
        "Replaces the element of a list at an index",                                              \
        "O(N), N elements before the index; O(1) at the ends",                                     \
        KEY(1, RW | UPDATE) ARGS("key@0 index:integer element"))                                   \
    CMD(ltrim, "ltrim", LIST, ENGINE, 4, WRITE, A_LIST, "1.0.0",                                   \
        "Trims a list to a range of its elements", "O(N), N elements removed",                     \
        KEY(1, RW | DELETE) ARGS("key@0 start:integer stop:integer"))                              \
    CMD(rpop, "rpop", LIST, ENGINE, -2, WRITE | FAST, A_LIST, "1.0.0",                             \
        "Pops elements from the tail of a list", "O(N), N elements returned",                      \
        KEY(1, RW | ACCESS | DELETE) HISTORY("6.2.0 a count")                                      \
        ARGS("key@0 [count:integer{6.2.0}]"))                                                      \
    CMD(rpoplpush, "rpoplpush", LIST, ENGINE, 3, WRITE | DENYOOM, A_LIST, "1.2.0",                 \
        "Moves the last element of a list to the head of another", "O(1)",                         \
        KEYS(1, 2, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), RW | ACCESS | DELETE)                                  \
             SPEC(INDEX(2), RANGE(0, 1, 0), RW | INSERT))                                          \
        DEPRECATED("6.2.0", "LMOVE with RIGHT and LEFT") ARGS("source@0 destination@1"))           \
    CMD(rpush, "rpush", LIST, ENGINE, -3, WRITE | DENYOOM | FAST, A_LIST, "1.0.0",                 \
        "Appends elements to a list", "O(N), N elements added",                                    \
        KEY(1, RW | INSERT) HISTORY("2.4.0 several elements") ARGS("key@0 element..."))            \
    CMD(rpushx, "rpushx", LIST, ENGINE, -3, WRITE | DENYOOM | FAST, A_LIST, "2.2.0",               \
        "Appends elements to a list if the list exists", "O(N), N elements added",                 \
        KEY(1, RW | INSERT) HISTORY("4.0.0 several elements") ARGS("key@0 element..."))
/* clang-format on */

#endif
