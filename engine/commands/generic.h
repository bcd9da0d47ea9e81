/* generic.h - the commands about keys of any type. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_GENERIC_H
#define ENGINE_COMMANDS_GENERIC_H

/* clang-format off */
#define ENGINE_TABLE_GENERIC(CMD, BOX, SUB, END)                                                   \
    CMD(copy, "copy", GENERIC, ENGINE, -3, WRITE | DENYOOM, A_KEYSPACE, "6.2.0",                   \
        "Copies a value to another key", "O(N), N elements; O(1) for a string",                    \
        KEYS(1, 2, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), RO | ACCESS)                                           \
             SPEC(INDEX(2), RANGE(0, 1, 0), OW | UPDATE))                                          \
        ARGS("source@0 destination@1 [DB destination-db:integer] [REPLACE]"))                      \
    CMD(del, "del", GENERIC, ENGINE, -2, WRITE, A_KEYSPACE, "1.0.0",                               \
        "Deletes keys", "O(N), N keys and the elements they hold",                                 \
        KEYS_FROM(1, RM | DELETE) TIPS("request_policy:multi_shard response_policy:agg_sum")       \
        ARGS("key@0..."))                                                                          \
    CMD(dump, "dump", GENERIC, ENGINE, 2, READONLY, A_KEYSPACE, "2.6.0",                           \
        "Returns a value in serialized form", "O(N), N bytes of the result",                       \
        KEY(1, RO | ACCESS) TIPS("nondeterministic_output") ARGS("key@0"))                         \
    CMD(exists, "exists", GENERIC, ENGINE, -2, READONLY | FAST, A_KEYSPACE, "1.0.0",               \
        "Counts the given keys that exist", "O(N), N keys",                                        \
        KEYS_FROM(1, RO) TIPS("request_policy:multi_shard response_policy:agg_sum")                \
        HISTORY("3.0.3 several keys") ARGS("key@0..."))                                            \
    CMD(expire, "expire", GENERIC, ENGINE, -3, WRITE | FAST, A_KEYSPACE, "1.0.0",                  \
        "Makes a key expire after a number of seconds", "O(1)",                                    \
        KEY(1, RW | UPDATE) HISTORY("7.0.0 NX, XX, GT, LT")                                        \
        ARGS("key@0 seconds:integer [condition(NX | XX | GT | LT){7.0.0}]"))                       \
    CMD(expireat, "expireat", GENERIC, ENGINE, -3, WRITE | FAST, A_KEYSPACE, "1.2.0",              \
        "Makes a key expire at a Unix time in seconds", "O(1)",                                    \
        KEY(1, RW | UPDATE) HISTORY("7.0.0 NX, XX, GT, LT")                                        \
        ARGS("key@0 unix-time-seconds:unix-time [condition(NX | XX | GT | LT){7.0.0}]"))           \
    CMD(expiretime, "expiretime", GENERIC, ENGINE, 2, READONLY | FAST, A_KEYSPACE, "7.0.0",        \
        "Returns the Unix time in seconds at which a key expires", "O(1)",                         \
        KEY(1, RO | ACCESS) ARGS("key@0"))                                                         \
    CMD(keys, "keys", GENERIC, ENGINE, 2, READONLY, A_KEYSPACE | A_DANGEROUS, "1.0.0",             \
        "Lists the keys whose names match a pattern", "O(N), N keys of the database",              \
        TIPS("request_policy:all_shards nondeterministic_output_order") ARGS("pattern:pattern"))   \
    CMD(migrate, "migrate", GENERIC, SERVER, -6, WRITE | MOVABLE_KEYS, A_KEYSPACE | A_DANGEROUS,   \
        "2.6.0",                                                                                   \
        "Moves or copies keys to another server", "O(N), N bytes moved",                           \
        KEYS(3, 3, 1,                                                                              \
             SPEC(INDEX(3), RANGE(0, 1, 0), RW | ACCESS | DELETE)                                  \
             SPEC(KEYWORD("KEYS", -2), RANGE(-1, 1, 0), RW | ACCESS | DELETE | INCOMPLETE))        \
        TIPS("nondeterministic_output")                                                            \
        HISTORY("3.0.0 COPY, REPLACE; 3.0.6 KEYS; 4.0.7 AUTH; 6.0.0 AUTH2")                        \
        ARGS("host port:integer key_or_empty_string(key@0 | ''=empty_string) "                     \
             "destination-db:integer timeout:integer [COPY{3.0.0}] [REPLACE{3.0.0}] "              \
             "[authentication([AUTH password{4.0.7}] | [AUTH2 username_password(username "         \
             "password){6.0.0}])] [KEYS key@1...{3.0.6}]"))                                        \
    CMD(move, "move", GENERIC, ENGINE, 3, WRITE | FAST, A_KEYSPACE, "1.0.0",                       \
        "Moves a key to another database", "O(1)",                                                 \
        KEY(1, RW | ACCESS | UPDATE) ARGS("key@0 db:integer"))                                     \
    BOX(object, "object", GENERIC, ENGINE_BOX, -2, 0, 0, "2.2.3",                                  \
        "Groups the commands that show how a value is stored", "by subcommand",)                   \
    SUB(object, encoding, "object|encoding", GENERIC, ENGINE, 3, READONLY, A_KEYSPACE, "2.2.3",    \
        "Returns the name of a value's encoding", "O(1)",                                          \
        KEY(2, RO) TIPS("nondeterministic_output") ARGS("key@0"))                                  \
    SUB(object, freq, "object|freq", GENERIC, ENGINE, 3, READONLY, A_KEYSPACE, "4.0.0",            \
        "Returns the LFU counter of a key", "O(1)",                                                \
        KEY(2, RO) TIPS("nondeterministic_output") ARGS("key@0"))                                  \
    SUB(object, help, "object|help", GENERIC, ENGINE, 2, LOADING | STALE, A_KEYSPACE, "6.2.0",     \
        "Lists the subcommands of OBJECT", "O(1)",)                                                \
    SUB(object, idletime, "object|idletime", GENERIC, ENGINE, 3, READONLY, A_KEYSPACE, "2.2.3",    \
        "Returns the number of seconds since a key was last used", "O(1)",                         \
        KEY(2, RO) TIPS("nondeterministic_output") ARGS("key@0"))                                  \
    SUB(object, refcount, "object|refcount", GENERIC, ENGINE, 3, READONLY, A_KEYSPACE, "2.2.3",    \
        "Returns the number of references to a value", "O(1)",                                     \
        KEY(2, RO) TIPS("nondeterministic_output") ARGS("key@0"))                                  \
    END(object)                                                                                    \
    CMD(persist, "persist", GENERIC, ENGINE, 2, WRITE | FAST, A_KEYSPACE, "2.2.0",                 \
        "Removes the expiry of a key", "O(1)",                                                     \
        KEY(1, RW | UPDATE) ARGS("key@0"))                                                         \
    CMD(pexpire, "pexpire", GENERIC, ENGINE, -3, WRITE | FAST, A_KEYSPACE, "2.6.0",                \
        "Makes a key expire after a number of milliseconds", "O(1)",                               \
        KEY(1, RW | UPDATE) HISTORY("7.0.0 NX, XX, GT, LT")                                        \
        ARGS("key@0 milliseconds:integer [condition(NX | XX | GT | LT){7.0.0}]"))                  \
    CMD(pexpireat, "pexpireat", GENERIC, ENGINE, -3, WRITE | FAST, A_KEYSPACE, "2.6.0",            \
        "Makes a key expire at a Unix time in milliseconds", "O(1)",                               \
        KEY(1, RW | UPDATE) HISTORY("7.0.0 NX, XX, GT, LT")                                        \
        ARGS("key@0 unix-time-milliseconds:unix-time [condition(NX | XX | GT | LT){7.0.0}]"))      \
    CMD(pexpiretime, "pexpiretime", GENERIC, ENGINE, 2, READONLY | FAST, A_KEYSPACE, "7.0.0",      \
        "Returns the Unix time in milliseconds at which a key expires", "O(1)",                    \
        KEY(1, RO | ACCESS) ARGS("key@0"))                                                         \
    CMD(pttl, "pttl", GENERIC, ENGINE, 2, READONLY | FAST, A_KEYSPACE, "2.6.0",                    \
        "Returns the time to live of a key in milliseconds", "O(1)",                               \
        KEY(1, RO | ACCESS) TIPS("nondeterministic_output")                                        \
        HISTORY("2.8.0 -2 if the key does not exist") ARGS("key@0"))                               \
    CMD(randomkey, "randomkey", GENERIC, ENGINE, 1, READONLY, A_KEYSPACE, "1.0.0",                 \
        "Returns the name of a random key", "O(1)",                                                \
        TIPS("request_policy:all_shards nondeterministic_output"))                                 \
    CMD(rename, "rename", GENERIC, ENGINE, 3, WRITE, A_KEYSPACE, "1.0.0",                          \
        "Renames a key and replaces an existing one",                                              \
        "O(1), plus the cost of deleting the replaced value",                                      \
        KEYS(1, 2, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), RW | ACCESS | DELETE)                                  \
             SPEC(INDEX(2), RANGE(0, 1, 0), OW | UPDATE))                                          \
        ARGS("key@0 newkey@1"))                                                                    \
    CMD(renamenx, "renamenx", GENERIC, ENGINE, 3, WRITE | FAST, A_KEYSPACE, "1.0.0",               \
        "Renames a key unless the new name exists", "O(1)",                                        \
        KEYS(1, 2, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), RW | ACCESS | DELETE)                                  \
             SPEC(INDEX(2), RANGE(0, 1, 0), OW | INSERT))                                          \
        HISTORY("3.2.0 both names may be the same") ARGS("key@0 newkey@1"))                        \
    CMD(restore, "restore", GENERIC, ENGINE, -4, WRITE | DENYOOM, A_KEYSPACE | A_DANGEROUS,        \
        "2.6.0",                                                                                   \
        "Creates a key from the output of DUMP", "O(N), O(N*log(N)) for a sorted set, N elements", \
        KEY(1, OW | UPDATE) HISTORY("3.0.0 REPLACE; 5.0.0 ABSTTL; 5.0.0 IDLETIME, FREQ")           \
        ARGS("key@0 ttl:integer serialized-value [REPLACE{3.0.0}] [ABSTTL{5.0.0}] [IDLETIME "      \
             "seconds:integer{5.0.0}] [FREQ frequency:integer{5.0.0}]"))                           \
    CMD(scan, "scan", GENERIC, ENGINE, -2, READONLY, A_KEYSPACE, "2.8.0",                          \
        "Iterates over the keys, a few per call", "O(1) per call, O(N) for all N keys",            \
        TIPS("nondeterministic_output request_policy:special") HISTORY("6.0.0 TYPE")               \
        ARGS("cursor:integer [MATCH pattern:pattern] [COUNT count:integer] [TYPE type{6.0.0}]"))   \
    CMD(sort, "sort", GENERIC, ENGINE, -2, WRITE | DENYOOM | MOVABLE_KEYS,                         \
        A_SET | A_ZSET | A_LIST | A_DANGEROUS, "1.0.0",                                            \
        "Sorts a list, set or sorted set, and optionally stores the result",                       \
        "O(N+M*log(M)), N elements, M returned",                                                   \
        KEYS(1, 1, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), RO | ACCESS)                                           \
             UNKNOWN(RO | ACCESS, "BY and GET read keys whose names come from the elements")       \
             UNKNOWN(OW | UPDATE, "STORE may be at any position"))                                 \
        ARGS("key@0 [BY pattern:pattern@1] [LIMIT offset_count(offset:integer count:integer)] "    \
             "[GET pattern:pattern@1...+] [order(ASC | DESC)] [ALPHA=sorting] [STORE "             \
             "destination@2]"))                                                                    \
    CMD(sort_ro, "sort_ro", GENERIC, ENGINE, -2, READONLY | MOVABLE_KEYS,                          \
        A_SET | A_ZSET | A_LIST | A_DANGEROUS, "7.0.0",                                            \
        "Sorts a list, set or sorted set without storing anything",                                \
        "O(N+M*log(M)), N elements, M returned",                                                   \
        KEYS(1, 1, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), RO | ACCESS)                                           \
             UNKNOWN(RO | ACCESS, "BY and GET read keys whose names come from the elements"))      \
        ARGS("key@0 [BY pattern:pattern@1] [LIMIT offset_count(offset:integer count:integer)] "    \
             "[GET pattern:pattern@1...+] [order(ASC | DESC)] [ALPHA=sorting]"))                   \
    CMD(touch, "touch", GENERIC, ENGINE, -2, READONLY | FAST, A_KEYSPACE, "3.2.1",                 \
        "Marks keys as recently used and counts those that exist", "O(N), N keys",                 \
        KEYS_FROM(1, RO) TIPS("request_policy:multi_shard response_policy:agg_sum")                \
        ARGS("key@0..."))                                                                          \
    CMD(ttl, "ttl", GENERIC, ENGINE, 2, READONLY | FAST, A_KEYSPACE, "1.0.0",                      \
        "Returns the time to live of a key in seconds", "O(1)",                                    \
        KEY(1, RO | ACCESS) TIPS("nondeterministic_output")                                        \
        HISTORY("2.8.0 -2 if the key does not exist") ARGS("key@0"))                               \
    CMD(type, "type", GENERIC, ENGINE, 2, READONLY | FAST, A_KEYSPACE, "1.0.0",                    \
        "Returns the type of a value", "O(1)",                                                     \
        KEY(1, RO) ARGS("key@0"))                                                                  \
    CMD(unlink, "unlink", GENERIC, ENGINE, -2, WRITE | FAST, A_KEYSPACE, "4.0.0",                  \
        "Deletes keys and frees their values in the background",                                   \
        "O(N), N keys; a background thread frees the memory",                                      \
        KEYS_FROM(1, RM | DELETE) TIPS("request_policy:multi_shard response_policy:agg_sum")       \
        ARGS("key@0..."))                                                                          \
    CMD(wait, "wait", GENERIC, SERVER, 3, NOSCRIPT, A_CONNECTION, "3.0.0",                         \
        "Waits until replicas have received the writes of this connection", "O(1)",                \
        TIPS("request_policy:all_shards response_policy:agg_min")                                  \
        ARGS("numreplicas:integer timeout:integer"))
/* clang-format on */

#endif
