/* scripting.h - the commands about scripts and functions. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_SCRIPTING_H
#define ENGINE_COMMANDS_SCRIPTING_H

/* clang-format off */
#define ENGINE_TABLE_SCRIPTING(CMD, BOX, SUB, END)                                                 \
    CMD(eval, "eval", SCRIPTING, ENGINE, -3,                                                       \
        NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLE_KEYS | MAY_REPLICATE,        \
        A_SCRIPTING, "2.6.0",                                                                      \
        "Runs a Lua script", "by script",                                                          \
        KEYS(0, 0, 0,                                                                              \
             NOTED(INDEX(2), KEYNUM(0, 1, 1), RW | ACCESS | UPDATE,                                \
                   "the script may use them in any way"))                                          \
        ARGS("script numkeys:integer [key@0...] [arg...]"))                                        \
    CMD(eval_ro, "eval_ro", SCRIPTING, ENGINE, -3,                                                 \
        READONLY | NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLE_KEYS,             \
        A_SCRIPTING, "7.0.0",                                                                      \
        "Runs a read-only Lua script", "by script",                                                \
        KEYS(0, 0, 0,                                                                              \
             NOTED(INDEX(2), KEYNUM(0, 1, 1), RO | ACCESS,                                         \
                   "the script may read them in any way"))                                         \
        ARGS("script numkeys:integer [key@0...] [arg...]"))                                        \
    CMD(evalsha, "evalsha", SCRIPTING, ENGINE, -3,                                                 \
        NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLE_KEYS | MAY_REPLICATE,        \
        A_SCRIPTING, "2.6.0",                                                                      \
        "Runs a cached Lua script, given its SHA-1", "by script",                                  \
        KEYS(0, 0, 0, SPEC(INDEX(2), KEYNUM(0, 1, 1), RW | ACCESS | UPDATE))                       \
        ARGS("sha1 numkeys:integer [key@0...] [arg...]"))                                          \
    CMD(evalsha_ro, "evalsha_ro", SCRIPTING, ENGINE, -3,                                           \
        READONLY | NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLE_KEYS,             \
        A_SCRIPTING, "7.0.0",                                                                      \
        "Runs a cached read-only Lua script", "by script",                                         \
        KEYS(0, 0, 0, SPEC(INDEX(2), KEYNUM(0, 1, 1), RO | ACCESS))                                \
        ARGS("sha1 numkeys:integer [key@0...] [arg...]"))                                          \
    CMD(fcall, "fcall", SCRIPTING, ENGINE, -3,                                                     \
        NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLE_KEYS | MAY_REPLICATE,        \
        A_SCRIPTING, "7.0.0",                                                                      \
        "Calls a library function", "by function",                                                 \
        KEYS(0, 0, 0,                                                                              \
             NOTED(INDEX(2), KEYNUM(0, 1, 1), RW | ACCESS | UPDATE,                                \
                   "the script may use them in any way"))                                          \
        ARGS("function numkeys:integer [key@0...] [arg...]"))                                      \
    CMD(fcall_ro, "fcall_ro", SCRIPTING, ENGINE, -3,                                               \
        READONLY | NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLE_KEYS,             \
        A_SCRIPTING, "7.0.0",                                                                      \
        "Calls a read-only library function", "by function",                                       \
        KEYS(0, 0, 0,                                                                              \
             NOTED(INDEX(2), KEYNUM(0, 1, 1), RO | ACCESS,                                         \
                   "the script may read them in any way"))                                         \
        ARGS("function numkeys:integer [key@0...] [arg...]"))                                      \
    BOX(function, "function", SCRIPTING, ENGINE_BOX, -2, 0, 0, "7.0.0",                            \
        "Groups the commands that manage function libraries", "by subcommand",)                    \
    SUB(function, delete, "function|delete", SCRIPTING, ENGINE, 3, WRITE | NOSCRIPT, A_SCRIPTING,  \
        "7.0.0",                                                                                   \
        "Deletes a library and its functions", "O(1)",                                             \
        TIPS("request_policy:all_shards response_policy:all_succeeded") ARGS("library-name"))      \
    SUB(function, dump, "function|dump", SCRIPTING, ENGINE, 2, NOSCRIPT, A_SCRIPTING, "7.0.0",     \
        "Returns all libraries in serialized form", "O(N), N functions",)                          \
    SUB(function, flush, "function|flush", SCRIPTING, ENGINE, -2, WRITE | NOSCRIPT, A_SCRIPTING,   \
        "7.0.0",                                                                                   \
        "Deletes all libraries", "O(N), N functions",                                              \
        TIPS("request_policy:all_shards response_policy:all_succeeded")                            \
        ARGS("[async(ASYNC | SYNC)]"))                                                             \
    SUB(function, help, "function|help", SCRIPTING, SERVER, 2, LOADING | STALE | NO_DATA,          \
        A_SCRIPTING, "7.0.0",                                                                      \
        "Lists the subcommands of FUNCTION", "O(1)",)                                              \
    SUB(function, kill, "function|kill", SCRIPTING, ENGINE, 2, NOSCRIPT | ALLOW_BUSY, A_SCRIPTING, \
        "7.0.0",                                                                                   \
        "Stops the running function", "O(1)",                                                      \
        TIPS("request_policy:all_shards response_policy:one_succeeded"))                           \
    SUB(function, list, "function|list", SCRIPTING, ENGINE, -2, NOSCRIPT, A_SCRIPTING, "7.0.0",    \
        "Describes the libraries and their functions", "O(N), N functions",                        \
        TIPS("nondeterministic_output_order")                                                      \
        ARGS("[LIBRARYNAME library-name-pattern] [WITHCODE]"))                                     \
    SUB(function, load, "function|load", SCRIPTING, ENGINE, -3, WRITE | DENYOOM | NOSCRIPT,        \
        A_SCRIPTING, "7.0.0",                                                                      \
        "Creates a library from source code", "O(1), plus the time to compile",                    \
        TIPS("request_policy:all_shards response_policy:all_succeeded")                            \
        ARGS("[REPLACE] function-code"))                                                           \
    SUB(function, restore, "function|restore", SCRIPTING, ENGINE, -3, WRITE | DENYOOM | NOSCRIPT,  \
        A_SCRIPTING, "7.0.0",                                                                      \
        "Creates libraries from the output of FUNCTION DUMP", "O(N), N functions restored",        \
        TIPS("request_policy:all_shards response_policy:all_succeeded")                            \
        ARGS("serialized-value [policy(FLUSH | APPEND | REPLACE)]"))                               \
    SUB(function, stats, "function|stats", SCRIPTING, ENGINE, 2, NOSCRIPT | ALLOW_BUSY,            \
        A_SCRIPTING, "7.0.0",                                                                      \
        "Describes the running function and the script engines", "O(1)",                           \
        TIPS("nondeterministic_output request_policy:all_shards response_policy:special"))         \
    END(function)                                                                                  \
    BOX(script, "script", SCRIPTING, ENGINE_BOX, -2, 0, 0, "2.6.0",                                \
        "Groups the commands that manage cached Lua scripts", "by subcommand",)                    \
    SUB(script, debug, "script|debug", SCRIPTING, SERVER, 3, NOSCRIPT | NO_DATA, A_SCRIPTING,      \
        "3.2.0",                                                                                   \
        "Sets the debug mode for the next scripts", "O(1)",                                        \
        ARGS("mode(YES | SYNC | NO)"))                                                             \
    SUB(script, exists, "script|exists", SCRIPTING, ENGINE, -3, NOSCRIPT, A_SCRIPTING, "2.6.0",    \
        "Reports which scripts are cached", "O(N), N scripts requested",                           \
        TIPS("request_policy:all_shards response_policy:agg_logical_and") ARGS("sha1..."))         \
    SUB(script, flush, "script|flush", SCRIPTING, ENGINE, -2, NOSCRIPT, A_SCRIPTING, "2.6.0",      \
        "Clears the script cache", "O(N), N cached scripts",                                       \
        TIPS("request_policy:all_nodes response_policy:all_succeeded")                             \
        HISTORY("6.2.0 ASYNC, SYNC") ARGS("[async(ASYNC | SYNC){6.2.0}]"))                         \
    SUB(script, help, "script|help", SCRIPTING, SERVER, 2, LOADING | STALE | NO_DATA, A_SCRIPTING, \
        "5.0.0",                                                                                   \
        "Lists the subcommands of SCRIPT", "O(1)",)                                                \
    SUB(script, kill, "script|kill", SCRIPTING, ENGINE, 2, NOSCRIPT | ALLOW_BUSY, A_SCRIPTING,     \
        "2.6.0",                                                                                   \
        "Stops the running script", "O(1)",                                                        \
        TIPS("request_policy:all_shards response_policy:one_succeeded"))                           \
    SUB(script, load, "script|load", SCRIPTING, ENGINE, 3, NOSCRIPT | STALE, A_SCRIPTING, "2.6.0", \
        "Caches a script and returns its SHA-1", "O(N), N bytes of source",                        \
        TIPS("request_policy:all_nodes response_policy:all_succeeded") ARGS("script"))             \
    END(script)
/* clang-format on */

#endif
