/* connection.h - the commands about the connection. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_CONNECTION_H
#define ENGINE_COMMANDS_CONNECTION_H

/* clang-format off */
#define ENGINE_TABLE_CONNECTION(CMD, BOX, SUB, END)                                                \
    CMD(auth, "auth", CONNECTION, SERVER, -2,                                                      \
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY, A_CONNECTION, "1.0.0",           \
        "Authenticates the connection with a password", "O(N), N passwords of the user",           \
        HISTORY("6.0.0 the name of a user before the password")                                    \
        ARGS("[username{6.0.0}] password")                                                         \
        LEVELS(SENTINEL))                                                                          \
    BOX(client, "client", CONNECTION, SERVER, -2, 0, 0, "2.4.0",                                   \
        "Groups the commands for client connections", "by subcommand",                             \
        LEVELS(SENTINEL))                                                                          \
    SUB(client, caching, "client|caching", CONNECTION, SERVER, 3, NOSCRIPT | LOADING | STALE,      \
        A_CONNECTION, "6.0.0",                                                                     \
        "Chooses whether the keys of the next command are tracked", "O(1)",                        \
        ARGS("mode(YES | NO)"))                                                                    \
    SUB(client, getname, "client|getname", CONNECTION, SERVER, 2, NOSCRIPT | LOADING | STALE,      \
        A_CONNECTION, "2.6.9",                                                                     \
        "Returns the name of this connection", "O(1)",)                                            \
    SUB(client, getredir, "client|getredir", CONNECTION, SERVER, 2, NOSCRIPT | LOADING | STALE,    \
        A_CONNECTION, "6.0.0",                                                                     \
        "Returns the ID of the client that receives the invalidation messages", "O(1)",)           \
    SUB(client, help, "client|help", CONNECTION, SERVER, 2, LOADING | STALE, A_CONNECTION,         \
        "5.0.0",                                                                                   \
        "Lists the subcommands of CLIENT", "O(1)",)                                                \
    SUB(client, id, "client|id", CONNECTION, SERVER, 2, NOSCRIPT | LOADING | STALE, A_CONNECTION,  \
        "5.0.0",                                                                                   \
        "Returns the ID of this connection", "O(1)",)                                              \
    SUB(client, info, "client|info", CONNECTION, SERVER, 2, NOSCRIPT | LOADING | STALE,            \
        A_CONNECTION, "6.2.0",                                                                     \
        "Describes this connection in one line", "O(1)",                                           \
        TIPS("nondeterministic_output"))                                                           \
    SUB(client, kill, "client|kill", CONNECTION, SERVER, -3, ADMIN | NOSCRIPT | LOADING | STALE,   \
        A_CONNECTION, "2.4.0",                                                                     \
        "Closes the connections that match a filter", "O(N), N clients",                           \
        HISTORY("2.8.12 filters by name; 2.8.12 ID; 3.2.0 TYPE master; 5.0.0 TYPE replica, "       \
                "which was slave; 6.2.0 LADDR")                                                    \
        ARGS("filter('ip:port'{until 2.8.12} | new-format([ID client-id:integer{2.8.12}] | "       \
             "[TYPE normal_master_slave_pubsub(NORMAL | MASTER{3.2.0} | SLAVE | REPLICA{5.0.0} "   \
             "| PUBSUB){2.8.12}] | [USER username] | [ADDR 'ip:port'] | [LADDR "                   \
             "'ip:port'{6.2.0}] | [SKIPME yes/no])...)"))                                          \
    SUB(client, list, "client|list", CONNECTION, SERVER, -2, ADMIN | NOSCRIPT | LOADING | STALE,   \
        A_CONNECTION, "2.4.0",                                                                     \
        "Lists the connections, one line each", "O(N), N clients",                                 \
        TIPS("nondeterministic_output")                                                            \
        HISTORY("2.8.12 field id; 5.0.0 TYPE; 6.0.0 field user; 6.2.0 fields argv-mem, tot-mem, "  \
                "laddr, redir, and ID; 7.0.0 fields resp, multi-mem, rbs, rbp; 7.0.3 field "       \
                "ssub")                                                                            \
        ARGS("[TYPE normal_master_replica_pubsub(NORMAL | MASTER | REPLICA | PUBSUB){5.0.0}] "     \
             "[ID id(client-id:integer...){6.2.0}]"))                                              \
    SUB(client, no_evict, "client|no-evict", CONNECTION, SERVER, 3,                                \
        ADMIN | NOSCRIPT | LOADING | STALE, A_CONNECTION, "7.0.0",                                 \
        "Exempts this connection from client eviction", "O(1)",                                    \
        ARGS("enabled(ON | OFF)"))                                                                 \
    SUB(client, pause, "client|pause", CONNECTION, SERVER, -3,                                     \
        ADMIN | NOSCRIPT | LOADING | STALE, A_CONNECTION, "2.9.50",                                \
        "Suspends client commands for a given time", "O(1)",                                       \
        HISTORY("6.2.0 a mode: WRITE or ALL") ARGS("timeout:integer [mode(WRITE | ALL){6.2.0}]"))  \
    SUB(client, reply, "client|reply", CONNECTION, SERVER, 3, NOSCRIPT | LOADING | STALE,          \
        A_CONNECTION, "3.2.0",                                                                     \
        "Turns replies to this connection on or off", "O(1)",                                      \
        ARGS("on_off_skip(ON | OFF | SKIP)"))                                                      \
    SUB(client, setname, "client|setname", CONNECTION, SERVER, 3, NOSCRIPT | LOADING | STALE,      \
        A_CONNECTION, "2.6.9",                                                                     \
        "Names this connection", "O(1)",                                                           \
        ARGS("connection-name"))                                                                   \
    SUB(client, tracking, "client|tracking", CONNECTION, SERVER, -3, NOSCRIPT | LOADING | STALE,   \
        A_CONNECTION, "6.0.0",                                                                     \
        "Turns client-side cache tracking on or off",                                              \
        "O(1); O(N) with N prefixes",                                                              \
        ARGS("status(ON | OFF) [REDIRECT client-id:integer] [PREFIX prefix...+] [BCAST] [OPTIN] "  \
             "[OPTOUT] [NOLOOP]"))                                                                 \
    SUB(client, trackinginfo, "client|trackinginfo", CONNECTION, SERVER, 2,                        \
        NOSCRIPT | LOADING | STALE, A_CONNECTION, "6.2.0",                                         \
        "Reports how keys are tracked for this connection", "O(1)",)                               \
    SUB(client, unblock, "client|unblock", CONNECTION, SERVER, -3,                                 \
        ADMIN | NOSCRIPT | LOADING | STALE, A_CONNECTION, "5.0.0",                                 \
        "Wakes a client that is waiting in a blocking command", "O(log(N)), N clients",            \
        ARGS("client-id:integer [timeout_error(TIMEOUT | ERROR)]"))                                \
    SUB(client, unpause, "client|unpause", CONNECTION, SERVER, 2,                                  \
        ADMIN | NOSCRIPT | LOADING | STALE, A_CONNECTION, "6.2.0",                                 \
        "Ends a pause that CLIENT PAUSE started", "O(N), N paused clients",)                       \
    END(client)                                                                                    \
    CMD(echo, "echo", CONNECTION, ENGINE, 2, LOADING | STALE | FAST, A_CONNECTION, "1.0.0",        \
        "Returns its argument", "O(1)",                                                            \
        ARGS("message"))                                                                           \
    CMD(hello, "hello", CONNECTION, SERVER, -1,                                                    \
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY, A_CONNECTION, "6.0.0",           \
        "Selects the protocol version; can also authenticate and set a name", "O(1)",              \
        HISTORY("6.2.0 the version may be left out")                                               \
        ARGS("[arguments(protover:integer [AUTH username_password(username password)] [SETNAME "   \
             "clientname])]")                                                                      \
        LEVELS(SENTINEL))                                                                          \
    CMD(ping, "ping", CONNECTION, ENGINE, -1, FAST | IN_PUBSUB | REPORTS_DISK, A_CONNECTION,       \
        "1.0.0",                                                                                   \
        "Returns PONG, or its argument if there is one", "O(1)",                                   \
        TIPS("request_policy:all_shards response_policy:all_succeeded") ARGS("[message]")          \
        LEVELS(SENTINEL))                                                                          \
    CMD(quit, "quit", CONNECTION, SERVER, -1,                                                      \
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY | AT_ONCE | ENDS_MULTI |          \
        IN_PUBSUB, A_CONNECTION, "1.0.0",                                                          \
        "Closes the connection", "O(1)",)                                                          \
    CMD(reset, "reset", CONNECTION, SERVER, 1,                                                     \
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY | AT_ONCE | ENDS_MULTI |          \
        IN_PUBSUB, A_CONNECTION, "6.2.0",                                                          \
        "Resets the connection to the state of a new one", "O(1)",)                                \
    CMD(select, "select", CONNECTION, ENGINE, 2, LOADING | STALE | FAST, A_CONNECTION, "1.0.0",    \
        "Selects the database of the connection", "O(1)",                                          \
        ARGS("index:integer"))
/* clang-format on */

#endif
