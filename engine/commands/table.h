/* table.h - the table of commands, which engine/command.c and engine/cmd/cmd.h expand.
 *
 * The entries are in the other headers of this folder, one header per group, in alphabetical
 * order. Commands of newer servers and of modules that the engine does not run are in newer.h and
 * modules.h. An entry:
 *
 *     CMD(getdel, "getdel", STRING, ENGINE, 2, WRITE | FAST, A_STRING, "6.2.0",
 *         "Returns the string at a key and deletes the key", "O(1)",
 *         KEY(1, RW | ACCESS | DELETE) ARGS("key@0"))
 *
 *     identifier, name      engine_cmd_getdel() runs it
 *     group                 of ENGINE_GROUPS
 *     owner                 ENGINE, SERVER or LATER; and of the engine's:
 *                           ENGINE_BOX      a container of subcommands, not itself a command
 *     arity                 includes the name; negative: a minimum
 *     flags                 of ENGINE_CMD_FLAGS, without prefix; 0: none
 *     categories            of ENGINE_ACL_CATEGORIES, with prefix A_; 0: those that the flags imply
 *     version               first version with the command
 *     summary, complexity   in words; complexity may be NULL
 *     optional parts        any of the following, in this order, without commas between them
 *
 * Flags imply categories: WRITE write, READONLY read (not with scripting), ADMIN admin and
 * dangerous, PUBSUB pubsub, BLOCKING blocking, FAST fast, and no FAST slow.
 *
 *     KEY(1, RO | ACCESS)                     argument 1 is a key
 *     KEY_NOTED(1, RO, "because")             with a note
 *     KEYS_FROM(1, RO)                        argument 1 and all later ones
 *     KEYS(first, last, step, specs)          a simple range, then specs without commas
 *     TIPS("request_policy:all_shards")       hints for cluster clients
 *     SYSCMD                                  not for users
 *     DEPRECATED("6.2.0", "SET with GET")     since, and the replacement
 *     HISTORY("6.0.0 KEEPTTL; 6.2.0 GET")     additions, by version
 *     ARGS("key@0 [count:integer]")           in the grammar of engine/command_args.h
 *     LEVELS(REDIS_8_6 | VALKEY_9_1)          with LATER_VERSION: which servers have it
 *     LEVELS(SENTINEL)                        a Sentinel has it, and its subcommands; with
 *                                             LATER_VERSION, nothing else has it. SENTINEL is
 *                                             added at run time: server/surface/watch/table.c
 *
 * A spec gives the start of the search, the way to find the keys from there, and their use. The
 * numbers are those of struct engine_key_spec:
 *
 *     SPEC(INDEX(2), KEYNUM(0, 1, 1), RO)
 *     SPEC(KEYWORD("STORE", 6), RANGE(0, 1, 0), OW)
 *     NOTED(INDEX(1), RANGE(0, 1, 0), RO, "because")
 *     UNKNOWN(RO, "because")
 *
 * A container is a BOX; its SUBs follow, and END(identifier). A SUB is like a CMD and names its
 * container first: SUB(config, get, "config|get", ...) is run by engine_cmd_config_get().
 */
#ifndef ENGINE_COMMANDS_TABLE_H
#define ENGINE_COMMANDS_TABLE_H

#include "engine/commands/bitmap.h"
#include "engine/commands/cluster.h"
#include "engine/commands/connection.h"
#include "engine/commands/generic.h"
#include "engine/commands/geo.h"
#include "engine/commands/hash.h"
#include "engine/commands/hll.h"
#include "engine/commands/list.h"
#include "engine/commands/modules.h"
#include "engine/commands/newer.h"
#include "engine/commands/pubsub.h"
#include "engine/commands/scripting.h"
#include "engine/commands/server.h"
#include "engine/commands/set.h"
#include "engine/commands/stream.h"
#include "engine/commands/string.h"
#include "engine/commands/transactions.h"
#include "engine/commands/vector.h"
#include "engine/commands/zset.h"

/* CMD, BOX, SUB and END are macros, one for each kind of entry. */
#define ENGINE_COMMANDS(CMD, BOX, SUB, END)                                                        \
    ENGINE_TABLE_STRING(CMD, BOX, SUB, END)                                                        \
    ENGINE_TABLE_LIST(CMD, BOX, SUB, END)                                                          \
    ENGINE_TABLE_SET(CMD, BOX, SUB, END)                                                           \
    ENGINE_TABLE_HASH(CMD, BOX, SUB, END)                                                          \
    ENGINE_TABLE_ZSET(CMD, BOX, SUB, END)                                                          \
    ENGINE_TABLE_GEO(CMD, BOX, SUB, END)                                                           \
    ENGINE_TABLE_STREAM(CMD, BOX, SUB, END)                                                        \
    ENGINE_TABLE_BITMAP(CMD, BOX, SUB, END)                                                        \
    ENGINE_TABLE_HLL(CMD, BOX, SUB, END)                                                           \
    ENGINE_TABLE_VECTOR(CMD, BOX, SUB, END)                                                        \
    ENGINE_TABLE_GENERIC(CMD, BOX, SUB, END)                                                       \
    ENGINE_TABLE_TRANSACTIONS(CMD, BOX, SUB, END)                                                  \
    ENGINE_TABLE_CONNECTION(CMD, BOX, SUB, END)                                                    \
    ENGINE_TABLE_PUBSUB(CMD, BOX, SUB, END)                                                        \
    ENGINE_TABLE_SCRIPTING(CMD, BOX, SUB, END)                                                     \
    ENGINE_TABLE_SERVER(CMD, BOX, SUB, END)                                                        \
    ENGINE_TABLE_CLUSTER(CMD, BOX, SUB, END)                                                       \
    ENGINE_TABLE_NEWER(CMD, BOX, SUB, END)                                                         \
    ENGINE_TABLE_MODULES(CMD, BOX, SUB, END)

#endif
