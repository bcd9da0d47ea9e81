/* bitmap.h - the commands about bits of strings. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_BITMAP_H
#define ENGINE_COMMANDS_BITMAP_H

/* clang-format off */
#define ENGINE_TABLE_BITMAP(CMD, BOX, SUB, END)                                                    \
    CMD(bitcount, "bitcount", BITMAP, ENGINE, -2, READONLY, A_BITMAP, "2.6.0",                     \
        "Counts the bits that are set in a string or in a range of it",                            \
        "O(N), N bytes in the range",                                                              \
        KEY(1, RO | ACCESS) HISTORY("7.0.0 BYTE, BIT")                                             \
        ARGS("key@0 [index(start:integer end:integer [index_unit(BYTE | BIT){7.0.0}])]"))          \
    CMD(bitfield, "bitfield", BITMAP, ENGINE, -2, WRITE | DENYOOM, A_BITMAP, "3.2.0",              \
        "Reads, writes and increments integers of any width packed into a string",                 \
        "O(1) per operation",                                                                      \
        KEY_NOTED(1, RW | ACCESS | UPDATE | VARIABLE, "depends on the operations")                 \
        ARGS("key@0 [operation(GET encoding_offset(encoding offset:integer) | write([OVERFLOW "    \
             "wrap_sat_fail(WRAP | SAT | FAIL)] write_operation(SET "                              \
             "encoding_offset_value(encoding offset:integer value:integer) | INCRBY "              \
             "encoding_offset_increment(encoding offset:integer increment:integer))))...]"))       \
    CMD(bitfield_ro, "bitfield_ro", BITMAP, ENGINE, -2, READONLY | FAST, A_BITMAP, "6.0.0",        \
        "Reads integers of any width packed into a string", "O(1) per operation",                  \
        KEY(1, RO | ACCESS) ARGS("key@0 [GET encoding_offset(encoding offset:integer)...+]"))      \
    CMD(bitop, "bitop", BITMAP, ENGINE, -4, WRITE | DENYOOM, A_BITMAP, "2.6.0",                    \
        "Combines strings bit by bit (AND, OR, XOR, NOT) into a destination",                      \
        "O(N), N bytes of the longest source",                                                     \
        KEYS(2, -1, 1,                                                                             \
             SPEC(INDEX(2), RANGE(0, 1, 0), OW | UPDATE)                                           \
             SPEC(INDEX(3), RANGE(-1, 1, 0), RO | ACCESS))                                         \
        ARGS("operation destkey@0 key@1..."))                                                      \
    CMD(bitpos, "bitpos", BITMAP, ENGINE, -3, READONLY, A_BITMAP, "2.8.7",                         \
        "Finds the first bit that is 0 or 1 in a string", "O(N), N bytes in the range",            \
        KEY(1, RO | ACCESS) HISTORY("7.0.0 BYTE, BIT")                                             \
        ARGS("key@0 bit:integer [index(start:integer [end_index(end:integer [index_unit(BYTE | "   \
             "BIT){7.0.0}])])]"))                                                                  \
    CMD(getbit, "getbit", BITMAP, ENGINE, 3, READONLY | FAST, A_BITMAP, "2.2.0",                   \
        "Returns one bit of a string", "O(1)",                                                     \
        KEY(1, RO | ACCESS) ARGS("key@0 offset:integer"))                                          \
    CMD(setbit, "setbit", BITMAP, ENGINE, 4, WRITE | DENYOOM, A_BITMAP, "2.2.0",                   \
        "Sets one bit of a string and returns its previous value", "O(1)",                         \
        KEY(1, RW | ACCESS | UPDATE) ARGS("key@0 offset:integer value:integer"))
/* clang-format on */

#endif
