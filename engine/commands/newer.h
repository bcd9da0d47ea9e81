/* newer.h - commands of servers after 7.0 that the engine does not run: where their keys are, for
 * logs and streams that contain them. See engine/commands/table.h for the format.
 *
 * The arity of commands that no server could be asked about is a lower bound.
 */
#ifndef ENGINE_COMMANDS_NEWER_H
#define ENGINE_COMMANDS_NEWER_H

/* clang-format off */
#define ENGINE_TABLE_NEWER(CMD, BOX, SUB, END)                                                     \
    CMD(ardel, "ardel", ARRAY, LATER, -3, WRITE | FAST | LATER_VERSION, 0, "8.8.0",                \
        "Deletes elements of an array", "O(N), N elements",                                        \
        KEY(1, RW | DELETE))                                                                       \
    CMD(ardelrange, "ardelrange", ARRAY, LATER, -4, WRITE | LATER_VERSION, 0, "8.8.0",             \
        "Deletes ranges of elements of an array", "O(N), N elements",                              \
        KEY(1, RW | DELETE))                                                                       \
    CMD(arinsert, "arinsert", ARRAY, LATER, -3,                                                    \
        WRITE | DENYOOM | FAST | LATER_VERSION, 0, "8.8.0",                                        \
        "Adds elements at the insertion point of an array", "O(N), N elements",                    \
        KEY(1, RW | UPDATE))                                                                       \
    CMD(armset, "armset", ARRAY, LATER, -4, WRITE | DENYOOM | FAST | LATER_VERSION, 0, "8.8.0",    \
        "Sets elements of an array at several indexes", "O(N), N elements",                        \
        KEY(1, RW | UPDATE))                                                                       \
    CMD(arring, "arring", ARRAY, LATER, -4, WRITE | DENYOOM | FAST | LATER_VERSION, 0, "8.8.0",    \
        "Adds elements to an array that is used as a ring", "O(N), N elements",                    \
        KEY(1, RW | UPDATE))                                                                       \
    CMD(arseek, "arseek", ARRAY, LATER, 3, WRITE | FAST | LATER_VERSION, 0, "8.8.0",               \
        "Moves the insertion point of an array", "O(N), N elements",                               \
        KEY(1, RW | UPDATE))                                                                       \
    CMD(arset, "arset", ARRAY, LATER, -4, WRITE | DENYOOM | FAST | LATER_VERSION, 0, "8.8.0",      \
        "Sets elements of an array from an index on", "O(N), N elements",                          \
        KEY(1, RW | UPDATE))                                                                       \
    BOX(bitmap, "bitmap", BITMAP, LATER, -2, LATER_VERSION, 0, "8.12.0",                           \
        "Groups the commands about representations of bitmaps", "by subcommand",)                  \
    SUB(bitmap, convert, "bitmap|convert", BITMAP, LATER, -3,                                      \
        WRITE | DENYOOM | LATER_VERSION, A_BITMAP, "8.12.0",                                       \
        "Changes how a bitmap is stored", "O(N), N bytes", KEY(2, RW | UPDATE))                    \
    END(bitmap)                                                                                    \
    BOX(bless, "bless", GENERIC, LATER, -2, LATER_VERSION, 0, "8.12.0",                            \
        "Groups the commands about keys that are not evicted", "by subcommand",)                   \
    SUB(bless, set, "bless|set", GENERIC, LATER, -3, WRITE | FAST | LATER_VERSION,                 \
        A_KEYSPACE, "8.12.0",                                                                      \
        "Protects a key from eviction", "O(1)", KEY(2, RW))                                        \
    END(bless)                                                                                     \
    CMD(blmovem, "blmovem", LIST, LATER, -6,                                                       \
        WRITE | DENYOOM | NOSCRIPT | BLOCKING | LATER_VERSION, A_LIST, "8.10.0",                   \
        "Moves elements between lists, or waits for them", "O(N), N elements",                     \
        KEYS(1, 2, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), RW | ACCESS | DELETE)                                  \
             SPEC(INDEX(2), RANGE(0, 1, 0), RW | INSERT)))                                         \
    CMD(bzmove, "bzmove", ZSET, LATER, -5,                                                         \
        WRITE | DENYOOM | NOSCRIPT | BLOCKING | LATER_VERSION, A_ZSET, "8.12.0",                   \
        "Moves members between sorted sets, or waits for them", "O(N), N members",                 \
        KEYS(1, 2, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), RW | ACCESS | DELETE)                                  \
             SPEC(INDEX(2), RANGE(0, 1, 0), RW | INSERT)))                                         \
    CMD(phdel, "phdel", HASH, LATER, -3, WRITE | FAST | LATER_VERSION, A_HASH, "9.2.0",            \
        "Deletes fields or paths of a path hash", "O(N), N fields",                                \
        KEY(1, RW | DELETE))                                                                       \
    CMD(phdelpath, "phdelpath", HASH, LATER, -3, WRITE | LATER_VERSION, A_HASH, "9.2.0",           \
        "Deletes paths of a path hash", "O(N), N fields",                                          \
        KEY(1, RW | DELETE))                                                                       \
    CMD(phdelprefix, "phdelprefix", HASH, LATER, -3, WRITE | LATER_VERSION, A_HASH, "9.2.0",       \
        "Deletes the paths of a path hash that begin with a prefix", "O(N), N fields",             \
        KEY(1, RW | DELETE))                                                                       \
    CMD(phmset, "phmset", HASH, LATER, -7, WRITE | DENYOOM | LATER_VERSION, A_HASH, "9.2.0",       \
        "Sets fields of several paths in a path hash", "O(N), N fields",                           \
        KEY(1, RW | UPDATE))                                                                       \
    CMD(phset, "phset", HASH, LATER, -7, WRITE | DENYOOM | FAST | LATER_VERSION, A_HASH, "9.2.0",  \
        "Sets fields of a path in a path hash", "O(N), N fields",                                  \
        KEY(1, RW | UPDATE))                                                                       \
    CMD(sexpire, "sexpire", SET, LATER, -5,                                                        \
        WRITE | DENYOOM | FAST | LATER_VERSION, A_SET, "8.12.0",                                   \
        "Makes members of a set expire", "O(N), N members",                                        \
        KEY(1, RW | UPDATE))                                                                       \
    CMD(sexpireat, "sexpireat", SET, LATER, -5,                                                    \
        WRITE | DENYOOM | FAST | LATER_VERSION, A_SET, "8.12.0",                                   \
        "Makes members of a set expire", "O(N), N members",                                        \
        KEY(1, RW | UPDATE))                                                                       \
    CMD(spersist, "spersist", SET, LATER, -4, WRITE | FAST | LATER_VERSION, A_SET, "8.12.0",       \
        "Removes the expiry of members of a set", "O(N), N members",                               \
        KEY(1, RW | UPDATE))                                                                       \
    CMD(spexpire, "spexpire", SET, LATER, -5,                                                      \
        WRITE | DENYOOM | FAST | LATER_VERSION, A_SET, "8.12.0",                                   \
        "Makes members of a set expire, in milliseconds", "O(N), N members",                       \
        KEY(1, RW | UPDATE))                                                                       \
    CMD(spexpireat, "spexpireat", SET, LATER, -5,                                                  \
        WRITE | DENYOOM | FAST | LATER_VERSION, A_SET, "8.12.0",                                   \
        "Makes members of a set expire, in milliseconds", "O(N), N members",                       \
        KEY(1, RW | UPDATE))                                                                       \
    CMD(xnack, "xnack", STREAM, LATER, -7, WRITE | FAST | LATER_VERSION, A_STREAM, "8.8.0",        \
        "Gives pending entries back to their group", "O(N), N entries",                            \
        KEY(1, RW | UPDATE))
/* clang-format on */

#endif
