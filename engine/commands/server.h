/* server.h - the commands about the server and the dataset. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_SERVER_H
#define ENGINE_COMMANDS_SERVER_H

/* clang-format off */
#define ENGINE_TABLE_SERVER(CMD, BOX, SUB, END)                                                    \
    BOX(acl, "acl", SERVER, SERVER, -2, 0, 0, "6.0.0",                                             \
        "Groups the commands that manage users and their rights", "by subcommand",                 \
        LEVELS(SENTINEL))                                                                          \
    SUB(acl, cat, "acl|cat", SERVER, SERVER, -2, NOSCRIPT | LOADING | STALE, 0, "6.0.0",           \
        "Lists the command categories, or the commands of one category", "O(1)",                   \
        ARGS("[categoryname]"))                                                                    \
    SUB(acl, deluser, "acl|deluser", SERVER, SERVER, -3, ADMIN | NOSCRIPT | LOADING | STALE, 0,    \
        "6.0.0",                                                                                   \
        "Deletes users and closes their connections", "O(N), N users deleted",                     \
        ARGS("username..."))                                                                       \
    SUB(acl, dryrun, "acl|dryrun", SERVER, SERVER, -4, ADMIN | NOSCRIPT | LOADING | STALE, 0,      \
        "7.0.0",                                                                                   \
        "Reports whether a user may run a command, without running it", "O(1)",                    \
        ARGS("username command [arg...]"))                                                         \
    SUB(acl, genpass, "acl|genpass", SERVER, SERVER, -2, NOSCRIPT | LOADING | STALE, 0, "6.0.0",   \
        "Returns random hexadecimal digits for use as a password", "O(1)",                         \
        ARGS("[bits:integer]"))                                                                    \
    SUB(acl, getuser, "acl|getuser", SERVER, SERVER, 3, ADMIN | NOSCRIPT | LOADING | STALE, 0,     \
        "6.0.0",                                                                                   \
        "Returns the rights of one user", "O(N), N rules of the user",                             \
        HISTORY("6.2.0 rights to channels; 7.0.0 selectors, keys and channels are shown as "       \
                "rules")                                                                           \
        ARGS("username"))                                                                          \
    SUB(acl, help, "acl|help", SERVER, SERVER, 2, LOADING | STALE, 0, "6.0.0",                     \
        "Lists the subcommands of ACL", "O(1)",)                                                   \
    SUB(acl, list, "acl|list", SERVER, SERVER, 2, ADMIN | NOSCRIPT | LOADING | STALE, 0, "6.0.0",  \
        "Returns all users as lines of an ACL file", "O(N), N users",)                             \
    SUB(acl, load, "acl|load", SERVER, SERVER, 2, ADMIN | NOSCRIPT | LOADING | STALE, 0, "6.0.0",  \
        "Reloads the ACL file", "O(N), N users",)                                                  \
    SUB(acl, log, "acl|log", SERVER, SERVER, -2, ADMIN | NOSCRIPT | LOADING | STALE, 0, "6.0.0",   \
        "Shows or clears the log of refused commands and logins", "O(N), N entries shown",         \
        ARGS("[operation(count:integer | RESET)]"))                                                \
    SUB(acl, save, "acl|save", SERVER, SERVER, 2, ADMIN | NOSCRIPT | LOADING | STALE, 0, "6.0.0",  \
        "Writes all users to the ACL file", "O(N), N users",)                                      \
    SUB(acl, setuser, "acl|setuser", SERVER, SERVER, -3, ADMIN | NOSCRIPT | LOADING | STALE, 0,    \
        "6.0.0",                                                                                   \
        "Creates a user or changes the rights of one", "O(N), N rules given",                      \
        HISTORY("6.2.0 rights to channels; 7.0.0 selectors, and rights to read or write keys")     \
        ARGS("username [rule...]"))                                                                \
    SUB(acl, users, "acl|users", SERVER, SERVER, 2, ADMIN | NOSCRIPT | LOADING | STALE, 0,         \
        "6.0.0",                                                                                   \
        "Lists the names of all users", "O(N), N users",)                                          \
    SUB(acl, whoami, "acl|whoami", SERVER, SERVER, 2, NOSCRIPT | LOADING | STALE, 0, "6.0.0",      \
        "Returns the name of the user of this connection", "O(1)",)                                \
    END(acl)                                                                                       \
    CMD(bgrewriteaof, "bgrewriteaof", SERVER, SERVER, 1, ADMIN | NOSCRIPT | NO_ASYNC_LOADING, 0,   \
        "1.0.0",                                                                                   \
        "Rewrites the append only file in the background", "O(1); a child process does the work",) \
    CMD(bgsave, "bgsave", SERVER, SERVER, -1, ADMIN | NOSCRIPT | NO_ASYNC_LOADING, 0, "1.0.0",     \
        "Writes a snapshot in the background", "O(1); a child process does the work",              \
        HISTORY("3.2.2 SCHEDULE") ARGS("[SCHEDULE{3.2.2}]"))                                       \
    BOX(command, "command", SERVER, ENGINE, -1, LOADING | STALE, A_CONNECTION, "2.8.13",           \
        "Describes all commands", "O(N), N commands",                                              \
        TIPS("nondeterministic_output_order")                                                      \
        LEVELS(SENTINEL))                                                                          \
    SUB(command, count, "command|count", SERVER, ENGINE, 2, LOADING | STALE, A_CONNECTION,         \
        "2.8.13",                                                                                  \
        "Counts the commands", "O(1)",)                                                            \
    SUB(command, docs, "command|docs", SERVER, ENGINE, -2, LOADING | STALE, A_CONNECTION,          \
        "7.0.0",                                                                                   \
        "Returns machine-readable documentation of commands", "O(N), N commands requested",        \
        TIPS("nondeterministic_output_order") ARGS("[command-name...]"))                           \
    SUB(command, getkeys, "command|getkeys", SERVER, ENGINE, -4, LOADING | STALE,                  \
        A_CONNECTION, "2.8.13",                                                                    \
        "Lists the keys in a command line", "O(N), N arguments",)                                  \
    SUB(command, getkeysandflags, "command|getkeysandflags", SERVER, ENGINE, -4,                   \
        LOADING | STALE, A_CONNECTION, "7.0.0",                                                    \
        "Lists the keys in a command line and how the command uses them", "O(N), N arguments",)    \
    SUB(command, help, "command|help", SERVER, ENGINE, 2, LOADING | STALE, A_CONNECTION,           \
        "5.0.0",                                                                                   \
        "Lists the subcommands of COMMAND", "O(1)",)                                               \
    SUB(command, info, "command|info", SERVER, ENGINE, -2, LOADING | STALE, A_CONNECTION,          \
        "2.8.13",                                                                                  \
        "Describes some commands, or all", "O(N), N commands requested",                           \
        TIPS("nondeterministic_output_order") HISTORY("7.0.0 no name means all commands")          \
        ARGS("[command-name...]"))                                                                 \
    SUB(command, list, "command|list", SERVER, ENGINE, -2, LOADING | STALE, A_CONNECTION,          \
        "7.0.0",                                                                                   \
        "Lists the names of the commands, or of those that match a filter", "O(N), N commands",    \
        TIPS("nondeterministic_output_order")                                                      \
        ARGS("[FILTERBY filterby(MODULE module-name | ACLCAT category | PATTERN "                  \
             "pattern:pattern)]"))                                                                 \
    END(command)                                                                                   \
    BOX(config, "config", SERVER, SERVER, -2, 0, 0, "2.0.0",                                       \
        "Groups the commands that read and change the configuration", "by subcommand",)            \
    SUB(config, get, "config|get", SERVER, SERVER, -3, ADMIN | NOSCRIPT | LOADING | STALE, 0,      \
        "2.0.0",                                                                                   \
        "Returns the parameters whose names match patterns", "O(N), N patterns",                   \
        HISTORY("7.0.0 several patterns") ARGS("parameter(parameter)..."))                         \
    SUB(config, help, "config|help", SERVER, SERVER, 2, LOADING | STALE, 0, "5.0.0",               \
        "Lists the subcommands of CONFIG", "O(1)",)                                                \
    SUB(config, resetstat, "config|resetstat", SERVER, SERVER, 2,                                  \
        ADMIN | NOSCRIPT | LOADING | STALE, 0, "2.0.0",                                            \
        "Resets the counters that INFO shows", "O(1)",)                                            \
    SUB(config, rewrite, "config|rewrite", SERVER, SERVER, 2, ADMIN | NOSCRIPT | LOADING | STALE,  \
        0, "2.8.0",                                                                                \
        "Writes the current parameters to the configuration file", "O(1)",)                        \
    SUB(config, set, "config|set", SERVER, SERVER, -4, ADMIN | NOSCRIPT | LOADING | STALE, 0,      \
        "2.0.0",                                                                                   \
        "Changes parameters while the server runs", "O(N), N parameters",                          \
        TIPS("request_policy:all_nodes response_policy:all_succeeded")                             \
        HISTORY("7.0.0 several parameters") ARGS("parameter_value(parameter value)..."))           \
    END(config)                                                                                    \
    CMD(dbsize, "dbsize", SERVER, ENGINE, 1, READONLY | FAST, A_KEYSPACE, "1.0.0",                 \
        "Counts the keys of the database", "O(1)",                                                 \
        TIPS("request_policy:all_shards response_policy:agg_sum"))                                 \
    CMD(debug, "debug", SERVER, SERVER, -2, ADMIN | NOSCRIPT | LOADING | STALE | PROTECTED, 0,     \
        "1.0.0",                                                                                   \
        "Groups the commands for testing the server", "by subcommand",                             \
        SYSCMD)                                                                                    \
    CMD(failover, "failover", SERVER, SERVER, -1, ADMIN | NOSCRIPT | STALE, 0, "6.2.0",            \
        "Transfers the master role to a replica", "O(1)",                                          \
        ARGS("[TO target(host port:integer [FORCE])] [ABORT] [TIMEOUT milliseconds:integer]"))     \
    CMD(flushall, "flushall", SERVER, ENGINE, -1, WRITE, A_KEYSPACE | A_DANGEROUS, "1.0.0",        \
        "Deletes the keys of every database", "O(N), N keys of all databases",                     \
        TIPS("request_policy:all_shards response_policy:all_succeeded")                            \
        HISTORY("4.0.0 ASYNC; 6.2.0 SYNC") ARGS("[async(ASYNC{4.0.0} | SYNC{6.2.0})]"))            \
    CMD(flushdb, "flushdb", SERVER, ENGINE, -1, WRITE, A_KEYSPACE | A_DANGEROUS, "1.0.0",          \
        "Deletes the keys of the database", "O(N), N keys of the database",                        \
        TIPS("request_policy:all_shards response_policy:all_succeeded")                            \
        HISTORY("4.0.0 ASYNC; 6.2.0 SYNC") ARGS("[async(ASYNC{4.0.0} | SYNC{6.2.0})]"))            \
    CMD(info, "info", SERVER, SERVER, -1, LOADING | STALE, A_DANGEROUS, "1.0.0",                   \
        "Returns the state and the counters of the server as text", "O(1)",                        \
        TIPS("nondeterministic_output request_policy:all_shards response_policy:special")          \
        HISTORY("7.0.0 several sections") ARGS("[section...]")                                     \
        LEVELS(SENTINEL))                                                                          \
    CMD(lastsave, "lastsave", SERVER, SERVER, 1, LOADING | STALE | FAST, A_ADMIN | A_DANGEROUS,    \
        "1.0.0",                                                                                   \
        "Returns the Unix time of the last successful snapshot", "O(1)",                           \
        TIPS("nondeterministic_output"))                                                           \
    BOX(latency, "latency", SERVER, SERVER, -2, 0, 0, "2.8.13",                                    \
        "Groups the commands that report latency spikes", "by subcommand",)                        \
    SUB(latency, doctor, "latency|doctor", SERVER, SERVER, 2, ADMIN | NOSCRIPT | LOADING | STALE,  \
        0, "2.8.13",                                                                               \
        "Explains latency spikes and their possible causes", "O(1)",                               \
        TIPS("nondeterministic_output request_policy:all_nodes response_policy:special"))          \
    SUB(latency, graph, "latency|graph", SERVER, SERVER, 3, ADMIN | NOSCRIPT | LOADING | STALE,    \
        0, "2.8.13",                                                                               \
        "Draws the latency spikes of one event as text", "O(1)",                                   \
        TIPS("nondeterministic_output request_policy:all_nodes response_policy:special")           \
        ARGS("event"))                                                                             \
    SUB(latency, help, "latency|help", SERVER, SERVER, 2, LOADING | STALE, 0, "2.8.13",            \
        "Lists the subcommands of LATENCY", "O(1)",)                                               \
    SUB(latency, histogram, "latency|histogram", SERVER, SERVER, -2,                               \
        ADMIN | NOSCRIPT | LOADING | STALE, 0, "7.0.0",                                            \
        "Returns the latency distribution of commands", "O(N), N commands with records",           \
        TIPS("nondeterministic_output request_policy:all_nodes response_policy:special")           \
        ARGS("[command...]"))                                                                      \
    SUB(latency, history, "latency|history", SERVER, SERVER, 3,                                    \
        ADMIN | NOSCRIPT | LOADING | STALE, 0, "2.8.13",                                           \
        "Returns the times and durations of the spikes of one event", "O(1)",                      \
        TIPS("nondeterministic_output request_policy:all_nodes response_policy:special")           \
        ARGS("event"))                                                                             \
    SUB(latency, latest, "latency|latest", SERVER, SERVER, 2, ADMIN | NOSCRIPT | LOADING | STALE,  \
        0, "2.8.13",                                                                               \
        "Returns the latest latency spike of each event", "O(1)",                                  \
        TIPS("nondeterministic_output request_policy:all_nodes response_policy:special"))          \
    SUB(latency, reset, "latency|reset", SERVER, SERVER, -2, ADMIN | NOSCRIPT | LOADING | STALE,   \
        0, "2.8.13",                                                                               \
        "Deletes the recorded latency spikes", "O(1)",                                             \
        TIPS("request_policy:all_nodes response_policy:all_succeeded") ARGS("[event...]"))         \
    END(latency)                                                                                   \
    CMD(lolwut, "lolwut", SERVER, SERVER, -1, READONLY | FAST, 0, "5.0.0",                         \
        "Draws a picture and shows the version", NULL,                                             \
        ARGS("[VERSION version:integer]"))                                                         \
    BOX(memory, "memory", SERVER, SERVER, -2, 0, 0, "4.0.0",                                       \
        "Groups the commands that report memory usage", "by subcommand",)                          \
    SUB(memory, doctor, "memory|doctor", SERVER, SERVER, 2, 0, 0, "4.0.0",                         \
        "Explains problems with memory usage", "O(1)",                                             \
        TIPS("nondeterministic_output request_policy:all_shards response_policy:special"))         \
    SUB(memory, help, "memory|help", SERVER, SERVER, 2, LOADING | STALE, 0, "4.0.0",               \
        "Lists the subcommands of MEMORY", "O(1)",)                                                \
    SUB(memory, malloc_stats, "memory|malloc-stats", SERVER, SERVER, 2, 0, 0, "4.0.0",             \
        "Returns the statistics of the allocator", "O(N), N parts of the allocator",               \
        TIPS("nondeterministic_output request_policy:all_shards response_policy:special"))         \
    SUB(memory, purge, "memory|purge", SERVER, SERVER, 2, 0, 0, "4.0.0",                           \
        "Asks the allocator to release unused pages", "O(N), N bytes of the allocator",            \
        TIPS("request_policy:all_shards response_policy:all_succeeded"))                           \
    SUB(memory, stats, "memory|stats", SERVER, SERVER, 2, 0, 0, "4.0.0",                           \
        "Returns figures about memory usage", "O(1)",                                              \
        TIPS("nondeterministic_output request_policy:all_shards response_policy:special"))         \
    SUB(memory, usage, "memory|usage", SERVER, SERVER, -3, READONLY, 0, "4.0.0",                   \
        "Estimates the memory that a key uses, in bytes", "O(N), N elements sampled",              \
        KEY(2, RO) ARGS("key@0 [SAMPLES count:integer]"))                                          \
    END(memory)                                                                                    \
    BOX(module, "module", SERVER, LATER, -2, 0, 0, "4.0.0",                                        \
        "Groups the commands that manage modules", "by subcommand",)                               \
    SUB(module, help, "module|help", SERVER, LATER, 2, LOADING | STALE, 0, "5.0.0",                \
        "Lists the subcommands of MODULE", "O(1)",)                                                \
    SUB(module, list, "module|list", SERVER, LATER, 2, ADMIN | NOSCRIPT, 0, "4.0.0",               \
        "Lists the modules that are loaded", "O(N), N modules",                                    \
        TIPS("nondeterministic_output_order"))                                                     \
    SUB(module, load, "module|load", SERVER, LATER, -3, ADMIN | NOSCRIPT | NO_ASYNC_LOADING |      \
        PROTECTED, 0,                                                                              \
        "4.0.0",                                                                                   \
        "Loads a module", "O(1)",                                                                  \
        ARGS("path [arg...]"))                                                                     \
    SUB(module, loadex, "module|loadex", SERVER, LATER, -3, ADMIN | NOSCRIPT | NO_ASYNC_LOADING |  \
        PROTECTED,                                                                                 \
        0, "7.0.0",                                                                                \
        "Loads a module and sets its parameters", "O(1)",                                          \
        ARGS("path [CONFIG configs(name value)...+] [ARGS args(arg)...]"))                         \
    SUB(module, unload, "module|unload", SERVER, LATER, 3, ADMIN | NOSCRIPT | NO_ASYNC_LOADING |   \
        PROTECTED,                                                                                 \
        0, "4.0.0",                                                                                \
        "Unloads a module", "O(1)",                                                                \
        ARGS("name"))                                                                              \
    END(module)                                                                                    \
    CMD(monitor, "monitor", SERVER, SERVER, 1, ADMIN | NOSCRIPT | LOADING | STALE, 0, "1.0.0",     \
        "Shows each command while the server runs it", NULL,)                                      \
    CMD(psync, "psync", SERVER, SERVER, -3, ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI, 0,     \
        "2.8.0",                                                                                   \
        "Requests the replication stream, from an offset if possible", NULL,                       \
        ARGS("replicationid offset:integer"))                                                      \
    CMD(replconf, "replconf", SERVER, SERVER, -1,                                                  \
        ADMIN | NOSCRIPT | LOADING | STALE | ALLOW_BUSY | NO_DATA, 0, "3.0.0",                     \
        "Sends information about a replica to its master", "O(1)",                                 \
        SYSCMD)                                                                                    \
    CMD(replicaof, "replicaof", SERVER, SERVER, 3, ADMIN | NOSCRIPT | STALE | NO_ASYNC_LOADING,    \
        0, "5.0.0",                                                                                \
        "Makes the server a replica of another, or a master again", "O(1)",                        \
        ARGS("args(host-port(host port:integer) | no-one(NO ONE))"))                               \
    CMD(restore_asking, "restore-asking", SERVER, ENGINE, -4, WRITE | DENYOOM | ASKING,            \
        A_KEYSPACE | A_DANGEROUS, "3.0.0",                                                         \
        "Creates a key from the output of DUMP in a slot being imported",                          \
        "O(N), O(N*log(N)) for a sorted set, N elements",                                          \
        KEY(1, OW | UPDATE) SYSCMD HISTORY("3.0.0 REPLACE; 5.0.0 ABSTTL; 5.0.0 IDLETIME, FREQ")    \
        ARGS("key@0 ttl:integer serialized-value [REPLACE{3.0.0}] [ABSTTL{5.0.0}] [IDLETIME "      \
             "seconds:integer{5.0.0}] [FREQ frequency:integer{5.0.0}]"))                           \
    CMD(role, "role", SERVER, SERVER, 1, NOSCRIPT | LOADING | STALE | FAST,                        \
        A_ADMIN | A_DANGEROUS, "2.8.12",                                                           \
        "Returns the replication role of the server", "O(1)",                                      \
        LEVELS(SENTINEL))                                                                          \
    CMD(save, "save", SERVER, SERVER, 1,                                                           \
        ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI | NO_DATA, 0, "1.0.0",                      \
        "Writes a snapshot and blocks all clients meanwhile", "O(N), N keys of all databases",)    \
    CMD(shutdown, "shutdown", SERVER, SERVER, -1,                                                  \
        ADMIN | NOSCRIPT | LOADING | STALE | NO_MULTI | ALLOW_BUSY, 0, "1.0.0",                    \
        "Stops the server, with or without saving first",                                          \
        "O(N), N keys of all databases, if it saves",                                              \
        HISTORY("7.0.0 NOW, FORCE, ABORT")                                                         \
        ARGS("[nosave_save(NOSAVE | SAVE)] [NOW{7.0.0}] [FORCE{7.0.0}] [ABORT{7.0.0}]")            \
        LEVELS(SENTINEL))                                                                          \
    CMD(slaveof, "slaveof", SERVER, SERVER, 3, ADMIN | NOSCRIPT | STALE | NO_ASYNC_LOADING, 0,     \
        "1.0.0",                                                                                   \
        "Makes the server a replica of another (old name of REPLICAOF)", "O(1)",                   \
        DEPRECATED("5.0.0", "REPLICAOF")                                                           \
        ARGS("args(host-port(host port:integer) | no-one(NO ONE))"))                               \
    BOX(slowlog, "slowlog", SERVER, SERVER, -2, 0, 0, "2.2.12",                                    \
        "Groups the commands for the slow log", "by subcommand",)                                  \
    SUB(slowlog, get, "slowlog|get", SERVER, SERVER, -2, ADMIN | LOADING | STALE, 0, "2.2.12",     \
        "Returns entries of the slow log, newest first", "O(N), N entries returned",               \
        TIPS("request_policy:all_nodes nondeterministic_output")                                   \
        HISTORY("4.0.0 address and name of the client") ARGS("[count:integer]"))                   \
    SUB(slowlog, help, "slowlog|help", SERVER, SERVER, 2, LOADING | STALE, 0, "6.2.0",             \
        "Lists the subcommands of SLOWLOG", "O(1)",)                                               \
    SUB(slowlog, len, "slowlog|len", SERVER, SERVER, 2, ADMIN | LOADING | STALE, 0, "2.2.12",      \
        "Counts the entries of the slow log", "O(1)",                                              \
        TIPS("request_policy:all_nodes response_policy:agg_sum nondeterministic_output"))          \
    SUB(slowlog, reset, "slowlog|reset", SERVER, SERVER, 2, ADMIN | LOADING | STALE, 0, "2.2.12",  \
        "Empties the slow log", "O(N), N entries",                                                 \
        TIPS("request_policy:all_nodes response_policy:all_succeeded"))                            \
    END(slowlog)                                                                                   \
    CMD(swapdb, "swapdb", SERVER, ENGINE, 3, WRITE | FAST, A_KEYSPACE | A_DANGEROUS, "4.0.0",      \
        "Exchanges the contents of two databases",                                                 \
        "O(N), N clients that watch or wait for keys of either",                                   \
        ARGS("index1:integer index2:integer"))                                                     \
    CMD(sync, "sync", SERVER, SERVER, 1, ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI, 0,        \
        "1.0.0",                                                                                   \
        "Requests a snapshot and the stream after it (old form of PSYNC)", NULL,)                  \
    CMD(time, "time", SERVER, ENGINE, 1, LOADING | STALE | FAST, 0, "2.6.0",                       \
        "Returns the server time in seconds and microseconds", "O(1)",                             \
        TIPS("nondeterministic_output"))                                                           \
    CMD(trimslots, "trimslots", SERVER, ENGINE, -5, WRITE | LATER_VERSION,                         \
        A_KEYSPACE | A_DANGEROUS, "8.4.0",                                                         \
        "Deletes the keys of ranges of hash slots", "O(N), N keys",                                \
        SYSCMD                                                                                     \
        ARGS("RANGES numranges:integer start-slot_end-slot(start-slot:integer "                    \
             "end-slot:integer)...")                                                               \
        LEVELS(REDIS_8_6))
/* clang-format on */

#endif
