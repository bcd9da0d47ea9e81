/* sentinel.h - the commands that only a Sentinel has. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_SENTINEL_H
#define ENGINE_COMMANDS_SENTINEL_H

/* clang-format off */
#define ENGINE_TABLE_SENTINEL(CMD, BOX, SUB, END)                                                  \
    BOX(sentinel, "sentinel", SENTINEL, SERVER, -2, ADMIN | LATER_VERSION, 0, "2.8.4",             \
        "Groups the commands of a Sentinel", "by subcommand",                                      \
        LEVELS(SENTINEL))                                                                          \
    SUB(sentinel, ckquorum, "sentinel|ckquorum",                                                   \
        SENTINEL, SERVER, 3, ADMIN | LATER_VERSION, 0, "2.8.4",                                    \
        "Reports whether enough Sentinels can be reached for a failover", "O(N), N Sentinels",     \
        ARGS("master-name") LEVELS(SENTINEL))                                                      \
    SUB(sentinel, config, "sentinel|config",                                                       \
        SENTINEL, SERVER, -3, ADMIN | LATER_VERSION, 0, "6.2.0",                                   \
        "Returns or sets a parameter of the Sentinel", "O(1)",                                     \
        ARGS("parameter...") LEVELS(SENTINEL))                                                     \
    SUB(sentinel, debug, "sentinel|debug",                                                         \
        SENTINEL, SERVER, -2, ADMIN | LATER_VERSION, 0, "7.0.0",                                   \
        "Returns or changes the periods of the Sentinel", "O(N), N periods",                       \
        ARGS("[parameter...]") LEVELS(SENTINEL))                                                   \
    SUB(sentinel, failover, "sentinel|failover",                                                   \
        SENTINEL, SERVER, 3, ADMIN | LATER_VERSION, 0, "2.8.4",                                    \
        "Fails over a master without asking other Sentinels", "O(N), N replicas",                  \
        ARGS("master-name") LEVELS(SENTINEL))                                                      \
    SUB(sentinel, flushconfig, "sentinel|flushconfig",                                             \
        SENTINEL, SERVER, 2, ADMIN | LATER_VERSION, 0, "2.8.4",                                    \
        "Writes the configuration file", "O(N), N masters, replicas and Sentinels",                \
        LEVELS(SENTINEL))                                                                          \
    SUB(sentinel, get_master_addr_by_name, "sentinel|get-master-addr-by-name",                     \
        SENTINEL, SERVER, 3, ADMIN | LATER_VERSION, 0, "2.8.4",                                    \
        "Returns the address of a master", "O(N), N masters",                                      \
        ARGS("master-name") LEVELS(SENTINEL))                                                      \
    SUB(sentinel, help, "sentinel|help",                                                           \
        SENTINEL, SERVER, 2, LOADING | STALE | LATER_VERSION, 0, "2.8.4",                          \
        "Lists the subcommands of SENTINEL", "O(1)",                                               \
        LEVELS(SENTINEL))                                                                          \
    SUB(sentinel, info_cache, "sentinel|info-cache",                                               \
        SENTINEL, SERVER, -3, ADMIN | LATER_VERSION, 0, "3.2.0",                                   \
        "Returns the last INFO of masters and their replicas", "O(N), N masters and replicas",     \
        ARGS("master-name...") LEVELS(SENTINEL))                                                   \
    SUB(sentinel, is_master_down_by_addr, "sentinel|is-master-down-by-addr",                       \
        SENTINEL, SERVER, 6, ADMIN | LATER_VERSION, 0, "2.8.4",                                    \
        "Reports whether a master cannot be reached, and votes for a leader", "O(N), N masters",   \
        ARGS("ip port:integer current-epoch:integer runid") LEVELS(SENTINEL))                      \
    SUB(sentinel, master, "sentinel|master",                                                       \
        SENTINEL, SERVER, 3, ADMIN | LATER_VERSION, 0, "2.8.4",                                    \
        "Returns the state of a master", "O(N), N masters",                                        \
        ARGS("master-name") LEVELS(SENTINEL))                                                      \
    SUB(sentinel, masters, "sentinel|masters",                                                     \
        SENTINEL, SERVER, 2, ADMIN | LATER_VERSION, 0, "2.8.4",                                    \
        "Returns the state of all masters", "O(N), N masters",                                     \
        LEVELS(SENTINEL))                                                                          \
    SUB(sentinel, monitor, "sentinel|monitor",                                                     \
        SENTINEL, SERVER, 6, ADMIN | LATER_VERSION, 0, "2.8.4",                                    \
        "Begins to monitor a master", "O(N), N masters",                                           \
        ARGS("name ip port:integer quorum:integer") LEVELS(SENTINEL))                              \
    SUB(sentinel, myid, "sentinel|myid",                                                           \
        SENTINEL, SERVER, 2, ADMIN | LATER_VERSION, 0, "6.2.0",                                    \
        "Returns the ID of the Sentinel", "O(1)",                                                  \
        LEVELS(SENTINEL))                                                                          \
    SUB(sentinel, pending_scripts, "sentinel|pending-scripts",                                     \
        SENTINEL, SERVER, 2, ADMIN | LATER_VERSION, 0, "2.8.4",                                    \
        "Returns the scripts that run or wait", "O(N), N scripts",                                 \
        LEVELS(SENTINEL))                                                                          \
    SUB(sentinel, remove, "sentinel|remove",                                                       \
        SENTINEL, SERVER, 3, ADMIN | LATER_VERSION, 0, "2.8.4",                                    \
        "Stops monitoring a master", "O(N), N masters",                                            \
        ARGS("master-name") LEVELS(SENTINEL))                                                      \
    SUB(sentinel, replicas, "sentinel|replicas",                                                   \
        SENTINEL, SERVER, 3, ADMIN | LATER_VERSION, 0, "5.0.0",                                    \
        "Returns the state of the replicas of a master", "O(N), N replicas",                       \
        ARGS("master-name") LEVELS(SENTINEL))                                                      \
    SUB(sentinel, reset, "sentinel|reset",                                                         \
        SENTINEL, SERVER, 3, ADMIN | LATER_VERSION, 0, "2.8.4",                                    \
        "Forgets what is known of masters by a pattern", "O(N), N masters",                        \
        ARGS("pattern") LEVELS(SENTINEL))                                                          \
    SUB(sentinel, sentinels, "sentinel|sentinels",                                                 \
        SENTINEL, SERVER, 3, ADMIN | LATER_VERSION, 0, "2.8.4",                                    \
        "Returns the state of the other Sentinels of a master", "O(N), N Sentinels",               \
        ARGS("master-name") LEVELS(SENTINEL))                                                      \
    SUB(sentinel, set, "sentinel|set",                                                             \
        SENTINEL, SERVER, -5, ADMIN | LATER_VERSION, 0, "2.8.4",                                   \
        "Sets options of a master", "O(N), N options",                                             \
        ARGS("master-name option-value(option value)...") LEVELS(SENTINEL))                        \
    SUB(sentinel, simulate_failure, "sentinel|simulate-failure",                                   \
        SENTINEL, SERVER, -3, ADMIN | LATER_VERSION, 0, "3.2.0",                                   \
        "Ends the process at a step of a failover", "O(1)",                                        \
        ARGS("mode...") LEVELS(SENTINEL))                                                          \
    SUB(sentinel, slaves, "sentinel|slaves",                                                       \
        SENTINEL, SERVER, 3, ADMIN | LATER_VERSION, 0, "2.8.0",                                    \
        "Returns the state of the replicas of a master", "O(N), N replicas",                       \
        DEPRECATED("5.0.0", "SENTINEL REPLICAS") ARGS("master-name") LEVELS(SENTINEL))             \
    END(sentinel)
/* clang-format on */

#endif
