/* cluster.h - the commands about a cluster. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_CLUSTER_H
#define ENGINE_COMMANDS_CLUSTER_H

/* clang-format off */
#define ENGINE_TABLE_CLUSTER(CMD, BOX, SUB, END)                                                   \
    CMD(asking, "asking", CLUSTER, LATER, 1, FAST, A_CONNECTION, "3.0.0",                          \
        "Allows the next command to use a slot that is being imported", "O(1)",)                   \
    BOX(cluster, "cluster", CLUSTER, LATER, -2, 0, 0, "3.0.0",                                     \
        "Groups the commands that manage and describe a cluster", "by subcommand",)                \
    SUB(cluster, addslots, "cluster|addslots", CLUSTER, LATER, -3,                                 \
        ADMIN | STALE | NO_ASYNC_LOADING, 0, "3.0.0",                                              \
        "Makes this node the owner of hash slots", "O(N), N slots",                                \
        ARGS("slot:integer..."))                                                                   \
    SUB(cluster, addslotsrange, "cluster|addslotsrange", CLUSTER, LATER, -4,                       \
        ADMIN | STALE | NO_ASYNC_LOADING, 0, "7.0.0",                                              \
        "Makes this node the owner of ranges of hash slots", "O(N), N slots",                      \
        ARGS("start-slot_end-slot(start-slot:integer end-slot:integer)..."))                       \
    SUB(cluster, bumpepoch, "cluster|bumpepoch", CLUSTER, LATER, 2,                                \
        ADMIN | STALE | NO_ASYNC_LOADING, 0, "3.0.0",                                              \
        "Raises the configuration epoch of this node", "O(1)",                                     \
        TIPS("nondeterministic_output"))                                                           \
    SUB(cluster, count_failure_reports, "cluster|count-failure-reports", CLUSTER, LATER, 3,        \
        ADMIN | STALE, 0, "3.0.0",                                                                 \
        "Counts the nodes that report another node as failing", "O(N), N reports",                 \
        TIPS("nondeterministic_output") ARGS("node-id"))                                           \
    SUB(cluster, countkeysinslot, "cluster|countkeysinslot", CLUSTER, LATER, 3, STALE, 0,          \
        "3.0.0",                                                                                   \
        "Counts the keys of this node in a hash slot", "O(1)",                                     \
        ARGS("slot:integer"))                                                                      \
    SUB(cluster, delslots, "cluster|delslots", CLUSTER, LATER, -3,                                 \
        ADMIN | STALE | NO_ASYNC_LOADING, 0, "3.0.0",                                              \
        "Forgets which node owns hash slots", "O(N), N slots",                                     \
        ARGS("slot:integer..."))                                                                   \
    SUB(cluster, delslotsrange, "cluster|delslotsrange", CLUSTER, LATER, -4,                       \
        ADMIN | STALE | NO_ASYNC_LOADING, 0, "7.0.0",                                              \
        "Forgets which node owns ranges of hash slots", "O(N), N slots",                           \
        ARGS("start-slot_end-slot(start-slot:integer end-slot:integer)..."))                       \
    SUB(cluster, failover, "cluster|failover", CLUSTER, LATER, -2,                                 \
        ADMIN | STALE | NO_ASYNC_LOADING, 0, "3.0.0",                                              \
        "Promotes a replica in place of its master", "O(1)",                                       \
        ARGS("[options(FORCE | TAKEOVER)]"))                                                       \
    SUB(cluster, flushslot, "cluster|flushslot", CLUSTER, ENGINE, -3,                              \
        WRITE | ADMIN | NO_ASYNC_LOADING | LATER_VERSION, 0, "9.0.0",                              \
        "Deletes the keys of a hash slot", "O(N), N keys",                                         \
        ARGS("slot:integer [flush-type(ASYNC | SYNC)]") LEVELS(VALKEY_9_1))                        \
    SUB(cluster, flushslots, "cluster|flushslots", CLUSTER, LATER, 2,                              \
        ADMIN | STALE | NO_ASYNC_LOADING, 0, "3.0.0",                                              \
        "Removes all slot information from this node", "O(1)",)                                    \
    SUB(cluster, forget, "cluster|forget", CLUSTER, LATER, 3, ADMIN | STALE | NO_ASYNC_LOADING,    \
        0, "3.0.0",                                                                                \
        "Removes a node from the list of known nodes", "O(1)",                                     \
        ARGS("node-id"))                                                                           \
    SUB(cluster, getkeysinslot, "cluster|getkeysinslot", CLUSTER, LATER, 4, STALE, 0, "3.0.0",     \
        "Lists keys in a hash slot of this node", "O(N), N keys requested",                        \
        TIPS("nondeterministic_output") ARGS("slot:integer count:integer"))                        \
    SUB(cluster, help, "cluster|help", CLUSTER, LATER, 2, LOADING | STALE, 0, "5.0.0",             \
        "Lists the subcommands of CLUSTER", "O(1)",)                                               \
    SUB(cluster, info, "cluster|info", CLUSTER, LATER, 2, STALE, 0, "3.0.0",                       \
        "Returns the state of the cluster as this node sees it", "O(1)",                           \
        TIPS("nondeterministic_output"))                                                           \
    SUB(cluster, keyslot, "cluster|keyslot", CLUSTER, LATER, 3, STALE, 0, "3.0.0",                 \
        "Returns the hash slot of a key", "O(N), N bytes of the key",                              \
        ARGS("key"))                                                                               \
    SUB(cluster, links, "cluster|links", CLUSTER, LATER, 2, STALE, 0, "7.0.0",                     \
        "Lists the bus connections from and to the other nodes", "O(N), N nodes",                  \
        TIPS("nondeterministic_output"))                                                           \
    SUB(cluster, meet, "cluster|meet", CLUSTER, LATER, -4, ADMIN | STALE | NO_ASYNC_LOADING, 0,    \
        "3.0.0",                                                                                   \
        "Introduces another node to this one", "O(1)",                                             \
        HISTORY("4.0.0 the port of the bus")                                                       \
        ARGS("ip port:integer [cluster_bus_port:integer{4.0.0}]"))                                 \
    SUB(cluster, myid, "cluster|myid", CLUSTER, LATER, 2, STALE, 0, "3.0.0",                       \
        "Returns the ID of this node", "O(1)",)                                                    \
    SUB(cluster, nodes, "cluster|nodes", CLUSTER, LATER, 2, STALE, 0, "3.0.0",                     \
        "Returns the cluster configuration, one line per node", "O(N), N nodes",                   \
        TIPS("nondeterministic_output"))                                                           \
    SUB(cluster, replicas, "cluster|replicas", CLUSTER, LATER, 3, ADMIN | STALE, 0, "5.0.0",       \
        "Lists the replicas of a master", "O(N), N replicas",                                      \
        TIPS("nondeterministic_output") ARGS("node-id"))                                           \
    SUB(cluster, replicate, "cluster|replicate", CLUSTER, LATER, 3,                                \
        ADMIN | STALE | NO_ASYNC_LOADING, 0, "3.0.0",                                              \
        "Makes this node a replica of another", "O(1)",                                            \
        ARGS("node-id"))                                                                           \
    SUB(cluster, reset, "cluster|reset", CLUSTER, LATER, -2, ADMIN | NOSCRIPT | STALE, 0,          \
        "3.0.0",                                                                                   \
        "Removes this node from its cluster and clears its state",                                 \
        "O(N), N known nodes; may empty the dataset",                                              \
        ARGS("[hard_soft(HARD | SOFT)]"))                                                          \
    SUB(cluster, saveconfig, "cluster|saveconfig", CLUSTER, LATER, 2,                              \
        ADMIN | STALE | NO_ASYNC_LOADING, 0, "3.0.0",                                              \
        "Writes the cluster configuration file immediately", "O(1)",)                              \
    SUB(cluster, set_config_epoch, "cluster|set-config-epoch", CLUSTER, LATER, 3,                  \
        ADMIN | STALE | NO_ASYNC_LOADING, 0, "3.0.0",                                              \
        "Sets the configuration epoch of a new node", "O(1)",                                      \
        ARGS("config-epoch:integer"))                                                              \
    SUB(cluster, setslot, "cluster|setslot", CLUSTER, LATER, -4,                                   \
        ADMIN | STALE | NO_ASYNC_LOADING, 0, "3.0.0",                                              \
        "Changes the owner of a hash slot or the state of its migration", "O(1)",                  \
        ARGS("slot:integer subcommand(IMPORTING node-id | MIGRATING node-id | NODE node-id | "     \
             "STABLE)"))                                                                           \
    SUB(cluster, shards, "cluster|shards", CLUSTER, LATER, 2, STALE, 0, "7.0.0",                   \
        "Lists the shards with their slots and nodes", "O(N), N nodes",                            \
        TIPS("nondeterministic_output"))                                                           \
    SUB(cluster, slaves, "cluster|slaves", CLUSTER, LATER, 3, ADMIN | STALE, 0, "3.0.0",           \
        "Lists the replicas of a master (old name)", "O(N), N replicas",                           \
        TIPS("nondeterministic_output") DEPRECATED("5.0.0", "CLUSTER REPLICAS") ARGS("node-id"))   \
    SUB(cluster, slots, "cluster|slots", CLUSTER, LATER, 2, STALE, 0, "3.0.0",                     \
        "Lists ranges of slots and the nodes that serve them", "O(N), N nodes",                    \
        TIPS("nondeterministic_output") DEPRECATED("7.0.0", "CLUSTER SHARDS")                      \
        HISTORY("4.0.0 IDs of nodes; 7.0.0 other addresses of nodes"))                             \
    SUB(cluster, syncslots, "cluster|syncslots", CLUSTER, LATER, -3,                               \
        ADMIN | STALE | NO_ASYNC_LOADING | LATER_VERSION, 0, "8.4.0",                              \
        "Tells another node how far a migration of slots is", NULL,                                \
        SYSCMD ARGS("arg..."))                                                                     \
    END(cluster)                                                                                   \
    CMD(readonly, "readonly", CLUSTER, LATER, 1, LOADING | STALE | FAST, A_CONNECTION, "3.0.0",    \
        "Allows this connection to read from a cluster replica", "O(1)",)                          \
    CMD(readwrite, "readwrite", CLUSTER, LATER, 1, LOADING | STALE | FAST, A_CONNECTION, "3.0.0",  \
        "Ends the read-only mode that READONLY started", "O(1)",)
/* clang-format on */

#endif
