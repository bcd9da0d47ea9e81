/* stream.h - the commands about streams. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_STREAM_H
#define ENGINE_COMMANDS_STREAM_H

/* clang-format off */
#define ENGINE_TABLE_STREAM(CMD, BOX, SUB, END)                                                    \
    CMD(xack, "xack", STREAM, ENGINE, -4, WRITE | FAST, A_STREAM, "5.0.0",                         \
        "Removes entries from the pending list of a consumer group", "O(1) per ID",                \
        KEY(1, RW | UPDATE) ARGS("key@0 group id..."))                                             \
    CMD(xackdel, "xackdel", STREAM, ENGINE, -6, WRITE | FAST | LATER_VERSION, A_STREAM, "8.2.0",   \
        "Acknowledges entries in a group and removes them from the stream", "O(N), N IDs",         \
        KEY(1, RW | UPDATE | DELETE)                                                               \
        ARGS("key@0 group:string [refs(KEEPREF | DELREF | ACKED)] IDS ids(numids:integer "         \
             "id:string...)")                                                                      \
        LEVELS(REDIS_8_6))                                                                         \
    CMD(xadd, "xadd", STREAM, ENGINE, -5, WRITE | DENYOOM | FAST, A_STREAM, "5.0.0",               \
        "Appends an entry to a stream", "O(1); O(N) if it trims N entries",                        \
        KEY_NOTED(1, RW | UPDATE, "UPDATE: it may also trim") TIPS("nondeterministic_output")      \
        HISTORY("6.2.0 NOMKSTREAM, MINID, LIMIT; 7.0.0 IDs whose second part is chosen by the "    \
                "server")                                                                          \
        ARGS("key@0 [NOMKSTREAM{6.2.0}] [trim(strategy(MAXLEN | MINID{6.2.0}) "                    \
             "[operator('='=equal | '~'=approximately)] threshold [LIMIT "                         \
             "count:integer{6.2.0}])] id_or_auto('*'=auto_id | id) field_value(field value)..."))  \
    CMD(xautoclaim, "xautoclaim", STREAM, ENGINE, -6, WRITE | FAST, A_STREAM, "6.2.0",             \
        "Claims entries that other consumers have left pending for a long time",                   \
        "O(N), N pending entries examined",                                                        \
        KEY(1, RW | DELETE) TIPS("nondeterministic_output")                                        \
        HISTORY("7.0.0 the reply names entries that were gone")                                    \
        ARGS("key@0 group consumer min-idle-time start [COUNT count:integer] [JUSTID]"))           \
    CMD(xcfgset, "xcfgset", STREAM, ENGINE, -2, WRITE | FAST | LATER_VERSION, A_STREAM, "8.6.0",   \
        "Sets how long and how much a stream remembers of its producers", "O(1)",                  \
        KEY(1, RW | UPDATE)                                                                        \
        ARGS("key@0 [IDMP-DURATION seconds:integer] [IDMP-MAXSIZE entries:integer]")               \
        LEVELS(REDIS_8_6))                                                                         \
    CMD(xclaim, "xclaim", STREAM, ENGINE, -6, WRITE | FAST, A_STREAM, "5.0.0",                     \
        "Makes a consumer the owner of pending entries", "O(log(N)) per entry, N pending entries", \
        KEY(1, RW | UPDATE) TIPS("nondeterministic_output")                                        \
        ARGS("key@0 group consumer min-idle-time id... [IDLE ms:integer] [TIME "                   \
             "unix-time-milliseconds:unix-time] [RETRYCOUNT count:integer] [FORCE] [JUSTID] "      \
             "[LASTID id]"))                                                                       \
    CMD(xdel, "xdel", STREAM, ENGINE, -3, WRITE | FAST, A_STREAM, "5.0.0",                         \
        "Deletes entries of a stream", "O(1) per entry",                                           \
        KEY(1, RW | DELETE) ARGS("key@0 id..."))                                                   \
    CMD(xdelex, "xdelex", STREAM, ENGINE, -5, WRITE | FAST | LATER_VERSION, A_STREAM, "8.2.0",     \
        "Removes entries, with a choice for the pending entries of groups", "O(N), N IDs",         \
        KEY(1, RW | DELETE)                                                                        \
        ARGS("key@0 [refs(KEEPREF | DELREF | ACKED)] IDS ids(numids:integer id:string...)")        \
        LEVELS(REDIS_8_6))                                                                         \
    BOX(xgroup, "xgroup", STREAM, ENGINE_BOX, -2, 0, 0, "5.0.0",                                   \
        "Groups the commands that manage consumer groups", "by subcommand",)                       \
    SUB(xgroup, create, "xgroup|create", STREAM, ENGINE, -5, WRITE | DENYOOM, A_STREAM, "5.0.0",   \
        "Creates a consumer group", "O(1)",                                                        \
        KEY(2, RW | INSERT) HISTORY("7.0.0 ENTRIESREAD")                                           \
        ARGS("key@0 groupname id(id | '$'=new_id) [MKSTREAM] [ENTRIESREAD entries_read:integer]")) \
    SUB(xgroup, createconsumer, "xgroup|createconsumer", STREAM, ENGINE, 5, WRITE | DENYOOM,       \
        A_STREAM, "6.2.0",                                                                         \
        "Creates a consumer in a group", "O(1)",                                                   \
        KEY(2, RW | INSERT) ARGS("key@0 groupname consumername"))                                  \
    SUB(xgroup, delconsumer, "xgroup|delconsumer", STREAM, ENGINE, 5, WRITE, A_STREAM, "5.0.0",    \
        "Deletes a consumer of a group", "O(N), N pending entries of the consumer",                \
        KEY(2, RW | DELETE) ARGS("key@0 groupname consumername"))                                  \
    SUB(xgroup, destroy, "xgroup|destroy", STREAM, ENGINE, 4, WRITE, A_STREAM, "5.0.0",            \
        "Deletes a consumer group", "O(N), N pending entries of the group",                        \
        KEY(2, RW | DELETE) ARGS("key@0 groupname"))                                               \
    SUB(xgroup, help, "xgroup|help", STREAM, ENGINE, 2, LOADING | STALE, A_STREAM, "5.0.0",        \
        "Lists the subcommands of XGROUP", "O(1)",)                                                \
    SUB(xgroup, setid, "xgroup|setid", STREAM, ENGINE, -5, WRITE, A_STREAM, "5.0.0",               \
        "Sets the last delivered ID of a group", "O(1)",                                           \
        KEY(2, RW | UPDATE) HISTORY("7.0.0 ENTRIESREAD")                                           \
        ARGS("key@0 groupname id(id | '$'=new_id) [ENTRIESREAD entries_read:integer]"))            \
    END(xgroup)                                                                                    \
    BOX(xinfo, "xinfo", STREAM, ENGINE_BOX, -2, 0, 0, "5.0.0",                                     \
        "Groups the commands that describe streams", "by subcommand",)                             \
    SUB(xinfo, consumers, "xinfo|consumers", STREAM, ENGINE, 4, READONLY, A_STREAM, "5.0.0",       \
        "Describes the consumers of a group", "O(N), N consumers",                                 \
        KEY(2, RO | ACCESS) TIPS("nondeterministic_output") ARGS("key@0 groupname"))               \
    SUB(xinfo, groups, "xinfo|groups", STREAM, ENGINE, 3, READONLY, A_STREAM, "5.0.0",             \
        "Describes the consumer groups of a stream", "O(N), N groups",                             \
        KEY(2, RO | ACCESS) HISTORY("7.0.0 entries-read, lag") ARGS("key@0"))                      \
    SUB(xinfo, help, "xinfo|help", STREAM, ENGINE, 2, LOADING | STALE, A_STREAM, "5.0.0",          \
        "Lists the subcommands of XINFO", "O(1)",)                                                 \
    SUB(xinfo, stream, "xinfo|stream", STREAM, ENGINE, -3, READONLY, A_STREAM, "5.0.0",            \
        "Describes a stream", "O(1); with FULL O(N), N entries shown",                             \
        KEY(2, RO | ACCESS)                                                                        \
        HISTORY("6.0.0 FULL; 7.0.0 max-deleted-entry-id, entries-added, "                          \
                "recorded-first-entry-id, entries-read, lag")                                      \
        ARGS("key@0 [FULL full([COUNT count:integer])]"))                                          \
    END(xinfo)                                                                                     \
    CMD(xidmprecord, "xidmprecord", STREAM, ENGINE, 5,                                             \
        WRITE | DENYOOM | FAST | LATER_VERSION, A_STREAM, "8.6.2",                                 \
        "Records that a producer has added an entry", "O(1)",                                      \
        KEY(1, RW | UPDATE) ARGS("key@0 producer:string name:string id:string")                    \
        LEVELS(REDIS_8_6))                                                                         \
    CMD(xlen, "xlen", STREAM, ENGINE, 2, READONLY | FAST, A_STREAM, "5.0.0",                       \
        "Counts the entries of a stream", "O(1)",                                                  \
        KEY(1, RO) ARGS("key@0"))                                                                  \
    CMD(xpending, "xpending", STREAM, ENGINE, -3, READONLY, A_STREAM, "5.0.0",                     \
        "Shows the entries of a group that are delivered but not acknowledged",                    \
        "O(N), N entries returned or skipped because of IDLE",                                     \
        KEY(1, RO | ACCESS) TIPS("nondeterministic_output")                                        \
        HISTORY("6.2.0 IDLE, and IDs may be exclusive")                                            \
        ARGS("key@0 group [filters([IDLE min-idle-time:integer{6.2.0}] start end count:integer "   \
             "[consumer])]"))                                                                      \
    CMD(xrange, "xrange", STREAM, ENGINE, -4, READONLY, A_STREAM, "5.0.0",                         \
        "Returns the entries of a stream between two IDs", "O(N), N entries returned",             \
        KEY(1, RO | ACCESS) HISTORY("6.2.0 IDs may be exclusive")                                  \
        ARGS("key@0 start end [COUNT count:integer]"))                                             \
    CMD(xread, "xread", STREAM, ENGINE, -4, READONLY | BLOCKING | MOVABLE_KEYS, A_STREAM,          \
        "5.0.0",                                                                                   \
        "Returns the entries of streams after given IDs, and can wait",                            \
        "O(N), N entries returned",                                                                \
        KEYS(0, 0, 0, SPEC(KEYWORD("STREAMS", 1), RANGE(-1, 1, 2), RO | ACCESS))                   \
        ARGS("[COUNT count:integer] [BLOCK milliseconds:integer] STREAMS streams(key@0... "        \
             "id...)"))                                                                            \
    CMD(xreadgroup, "xreadgroup", STREAM, ENGINE, -7, WRITE | BLOCKING | MOVABLE_KEYS, A_STREAM,   \
        "5.0.0",                                                                                   \
        "Returns entries of streams to a consumer of a group, and can wait",                       \
        "O(N), N entries returned",                                                                \
        KEYS(0, 0, 0, SPEC(KEYWORD("STREAMS", 4), RANGE(-1, 1, 2), RO | ACCESS))                   \
        ARGS("GROUP group_consumer(group consumer) [COUNT count:integer] [BLOCK "                  \
             "milliseconds:integer] [NOACK] STREAMS streams(key@0... id...)"))                     \
    CMD(xrevrange, "xrevrange", STREAM, ENGINE, -4, READONLY, A_STREAM, "5.0.0",                   \
        "Returns the entries of a stream between two IDs, last first",                             \
        "O(N), N entries returned",                                                                \
        KEY(1, RO | ACCESS) HISTORY("6.2.0 IDs may be exclusive")                                  \
        ARGS("key@0 end start [COUNT count:integer]"))                                             \
    CMD(xsetid, "xsetid", STREAM, ENGINE, -3, WRITE | DENYOOM | FAST, A_STREAM, "5.0.0",           \
        "Sets the last ID and the counters of a stream", "O(1)",                                   \
        KEY(1, RW | UPDATE) HISTORY("7.0.0 ENTRIESADDED, MAXDELETEDID")                            \
        ARGS("key@0 last-id [ENTRIESADDED entries_added:integer{7.0.0}] [MAXDELETEDID "            \
             "max_deleted_entry_id{7.0.0}]"))                                                      \
    CMD(xtrim, "xtrim", STREAM, ENGINE, -4, WRITE, A_STREAM, "5.0.0",                              \
        "Removes the oldest entries of a stream", "O(N), N entries removed",                       \
        KEY(1, RW | DELETE) TIPS("nondeterministic_output") HISTORY("6.2.0 MINID, LIMIT")          \
        ARGS("key@0 trim(strategy(MAXLEN | MINID{6.2.0}) [operator('='=equal | "                   \
             "'~'=approximately)] threshold [LIMIT count:integer{6.2.0}])"))
/* clang-format on */

#endif
