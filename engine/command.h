/* command.h - the command table: the commands of Redis 7.0.15 and a few later ones.
 *
 *     const struct engine_command *cmd = engine_command_resolve(argv, argc);
 *     if (cmd == NULL)                              // unknown command or subcommand
 *         ...
 *     if (!engine_command_arity_ok(cmd, argc))      // wrong number of arguments
 *         ...
 *     if (cmd->flags & ENGINE_CMD_WRITE)
 *         ...
 *     struct engine_key keys[16];
 *     size_t n;
 *     if (engine_command_keys(cmd, argv, argc, keys, 16, &n) == ENGINE_KEYS_OK)
 *         for (size_t i = 0; i < n && i < 16; i++)
 *             ... argv[keys[i].index] ...
 *
 * The table is text for maintainers: engine/commands/. It is constant, has static storage, and all
 * threads can read it at any time. A program can add commands, which are found, listed, counted and
 * allowed like those of the table from then on; see engine_command_add().
 *
 * Commands have two levels. A container ("config") has subcommands ("config|get"), which are
 * commands themselves: argv[0] and argv[1] name them, and their arity counts both.
 */
#ifndef ENGINE_COMMAND_H
#define ENGINE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "engine/config.h"

struct engine_call;

/* Name, bit, word in replies of COMMAND. NULL: never shown. The order is that of the replies. */
#define ENGINE_CMD_FLAGS(X)                                                                        \
    X(WRITE, 0, "write")                                                                           \
    X(READONLY, 1, "readonly")                                                                     \
    X(DENYOOM, 2, "denyoom") /* refused if memory is short */                                      \
    X(ADMIN, 3, "admin")                                                                           \
    X(PUBSUB, 4, "pubsub")                                                                         \
    X(NOSCRIPT, 5, "noscript")                                                                     \
    X(BLOCKING, 6, "blocking")                                                                     \
    X(LOADING, 7, "loading") /* allowed while a dataset is loaded */                               \
    X(STALE, 8, "stale")     /* allowed on a replica without a link to its master */               \
    X(SKIP_MONITOR, 9, "skip_monitor")                                                             \
    X(SKIP_SLOWLOG, 10, "skip_slowlog")                                                            \
    X(ASKING, 11, "asking") /* runs as if ASKING had been sent */                                  \
    X(FAST, 12, "fast")                                                                            \
    X(NO_AUTH, 13, "no_auth")                                                                      \
    X(MAY_REPLICATE, 14, NULL) /* not a write, but replicas may need it */                         \
    X(NO_MANDATORY_KEYS, 15, "no_mandatory_keys")                                                  \
    X(NO_ASYNC_LOADING, 16, "no_async_loading")                                                    \
    X(NO_MULTI, 17, "no_multi")                                                                    \
    X(ALLOW_BUSY, 18, "allow_busy")    /* allowed while a script runs for too long */              \
    X(MOVABLE_KEYS, 19, "movablekeys") /* first, last and step do not cover all keys */            \
    X(LATER_VERSION, 20, NULL)         /* unknown to 7.0.15: COMMAND does not list it */           \
    X(AT_ONCE, 21, NULL)               /* in MULTI, runs instead of being queued */                \
    X(RUNS_QUEUE, 22, NULL)            /* EXEC: does what its queue does */                        \
    X(ENDS_MULTI, 23, NULL)            /* drops the queue, so it is allowed if memory is short */  \
    X(IN_PUBSUB, 24, NULL)             /* allowed in the pub/sub mode of RESP2 */                  \
    X(REPORTS_DISK, 25, NULL) /* refused after a disk error, although it is not a write */         \
    X(PROTECTED, 26, NULL)    /* allowed by enable-debug-command and the like */                   \
    X(NO_DATA, 27, NULL)      /* of the server, and without effect on its data */

enum engine_cmd_flag {
#define X(name, bit, word) ENGINE_CMD_##name = 1 << (bit),
    ENGINE_CMD_FLAGS(X)
#undef X
};

/* The categories of ACL rules, in the order of ACL CAT. */
#define ENGINE_ACL_CATEGORIES(X)                                                                   \
    X(KEYSPACE, 0, "keyspace")                                                                     \
    X(READ, 1, "read")                                                                             \
    X(WRITE, 2, "write")                                                                           \
    X(SET, 3, "set")                                                                               \
    X(ZSET, 4, "sortedset")                                                                        \
    X(LIST, 5, "list")                                                                             \
    X(HASH, 6, "hash")                                                                             \
    X(STRING, 7, "string")                                                                         \
    X(BITMAP, 8, "bitmap")                                                                         \
    X(HLL, 9, "hyperloglog")                                                                       \
    X(GEO, 10, "geo")                                                                              \
    X(STREAM, 11, "stream")                                                                        \
    X(PUBSUB, 12, "pubsub")                                                                        \
    X(ADMIN, 13, "admin")                                                                          \
    X(FAST, 14, "fast")                                                                            \
    X(SLOW, 15, "slow")                                                                            \
    X(BLOCKING, 16, "blocking")                                                                    \
    X(DANGEROUS, 17, "dangerous")                                                                  \
    X(CONNECTION, 18, "connection")                                                                \
    X(TRANSACTION, 19, "transaction")                                                              \
    X(SCRIPTING, 20, "scripting")

enum engine_acl {
#define X(name, bit, word) ENGINE_ACL_##name = 1 << (bit),
    ENGINE_ACL_CATEGORIES(X)
#undef X
};

#define ENGINE_GROUPS(X)                                                                           \
    X(STRING, "string")                                                                            \
    X(LIST, "list")                                                                                \
    X(SET, "set")                                                                                  \
    X(HASH, "hash")                                                                                \
    X(ZSET, "sorted-set")                                                                          \
    X(GEO, "geo")                                                                                  \
    X(STREAM, "stream")                                                                            \
    X(BITMAP, "bitmap")                                                                            \
    X(HLL, "hyperloglog")                                                                          \
    X(GENERIC, "generic")                                                                          \
    X(TRANSACTIONS, "transactions")                                                                \
    X(CONNECTION, "connection")                                                                    \
    X(PUBSUB, "pubsub")                                                                            \
    X(SCRIPTING, "scripting")                                                                      \
    X(SERVER, "server")                                                                            \
    X(CLUSTER, "cluster")                                                                          \
    X(SENTINEL, "sentinel")                                                                        \
    X(ARRAY, "array")                                                                              \
    X(VECTOR, "vector_set")                                                                        \
    X(MODULE, "module")

enum engine_group {
#define X(name, word) ENGINE_GROUP_##name,
    ENGINE_GROUPS(X)
#undef X
        ENGINE_GROUP_COUNT
};

enum engine_owner {
    ENGINE_OWNER_ENGINE, /* the data set and its commands: run is set, except for containers */
    ENGINE_OWNER_SERVER, /* clients, persistence, replication, configuration: run is NULL */
    ENGINE_OWNER_LATER   /* not implemented so far: clusters, and commands of newer servers and of
                            modules, of which only the keys are known */
};

/* ---- where the keys are ---- */

/* The use of a key. RO, RW, OW (overwrites without reading) and RM (removes without reading)
 * concern the key as a whole; access, insert, update and delete concern the user's data in it. */
#define ENGINE_KEY_FLAGS(X)                                                                        \
    X(RO, 0, "RO")                                                                                 \
    X(RW, 1, "RW")                                                                                 \
    X(OW, 2, "OW")                                                                                 \
    X(RM, 3, "RM")                                                                                 \
    X(ACCESS, 4, "access")                                                                         \
    X(UPDATE, 5, "update")                                                                         \
    X(INSERT, 6, "insert")                                                                         \
    X(DELETE, 7, "delete")                                                                         \
    X(NOT_KEY, 8, "not_key")          /* routed like a key but not a key, such as a channel */     \
    X(INCOMPLETE, 9, "incomplete")    /* the spec can miss keys */                                 \
    X(VARIABLE, 10, "variable_flags") /* the arguments decide which flags apply */

enum engine_key_flag {
#define X(name, bit, word) ENGINE_KEY_##name = 1 << (bit),
    ENGINE_KEY_FLAGS(X)
#undef X
};

enum engine_begin { ENGINE_BEGIN_INDEX, ENGINE_BEGIN_KEYWORD, ENGINE_BEGIN_UNKNOWN };
enum engine_find { ENGINE_FIND_RANGE, ENGINE_FIND_KEYNUM, ENGINE_FIND_UNKNOWN };

/* One way to find keys: the start of the search, and which arguments from there on are keys. */
struct engine_key_spec {
    const char *keyword; /* KEYWORD: the keys follow this word */
    const char *note;    /* or NULL */
    uint16_t flags;
    uint8_t begin;
    uint8_t find;
    int16_t pos;   /* INDEX: the argument; KEYWORD: search from here, < 0: backwards from the end */
    int16_t last;  /* RANGE: the last key, from the first; < 0: from the end of the arguments */
    int16_t limit; /* RANGE, last < 0: 2: only the first half of the arguments, … */
    int16_t step;  /* RANGE, KEYNUM: distance of keys */
    int16_t key_num; /* KEYNUM: position of the number of keys, relative to the start */
    int16_t first;   /* KEYNUM: position of the first key, relative to the start */
};

/* ---- the command ---- */

struct engine_command {
    void (*run)(struct engine_call *call); /* NULL: not run by the engine, or a container */
    const char *name;                      /* lower case: "get", "config|get" */
    uint64_t flags;                        /* enum engine_cmd_flag */
    uint32_t acl;                          /* enum engine_acl, including implied ones */
    int16_t arity;                         /* including the name; < 0: at least -arity */
    int16_t first_key; /* the keys as a simple range; 0: none, or not a simple range */
    int16_t last_key;  /* < 0: from the end */
    int16_t key_step;
    uint16_t id;         /* below ENGINE_COMMAND_IDS, in table order */
    uint8_t name_len;    /* of name */
    uint8_t own_name_at; /* start of the last part of name: "get" of "config|get" */
    uint8_t group;       /* enum engine_group */
    uint8_t owner;       /* enum engine_owner */
    uint8_t levels;      /* enum engine_level: the servers that have it, besides those of 7.0
                          * without LATER_VERSION */
    uint8_t n_key_specs;
    uint8_t n_subcommands;
    const struct engine_key_spec *key_specs;
    const struct engine_command *container;   /* of a subcommand; NULL */
    const struct engine_command *subcommands; /* of a container; NULL */

    /* Documentation. Each but since and summary may be NULL. */
    const char *since;
    const char *summary;
    const char *complexity;
    const char *args;             /* the grammar of engine/command_args.h */
    const char *tips;             /* "request_policy:all_shards …", separated by blanks */
    const char *history;          /* "6.0.0 addition; 7.0.0 …" */
    const char *deprecated_since; /* version */
    const char *replaced_by;      /* replacement */
    bool syscmd;                  /* internal: for servers and tests */
};

/* The command of this name, case-insensitive, or NULL. Does not find subcommands: "config|get" is
 * unknown. O(1). */
const struct engine_command *engine_command_find(struct rd_slice name);

/* The subcommand of a container, or NULL. O(1). */
const struct engine_command *engine_command_find_sub(const struct engine_command *container,
                                                     struct rd_slice name);

/* By one name: "get", "config" or "config|get". */
const struct engine_command *engine_command_find_path(struct rd_slice path);

/* The command that a command line runs: a subcommand if argv[0] is a container and argv[1] exists.
 * NULL: unknown; engine_command_find() shows whether only the subcommand is unknown. */
const struct engine_command *engine_command_resolve(const struct rd_slice *argv, size_t argc);

static inline bool engine_command_arity_ok(const struct engine_command *cmd, size_t argc)
{
    return cmd->arity >= 0 ? argc == (size_t)cmd->arity : argc >= (size_t)-cmd->arity;
}

/* Whether clients of a server of this level may use the command. */
static inline bool engine_command_at_level(const struct engine_command *cmd,
                                           enum engine_level level)
{
    bool later = (cmd->flags & ENGINE_CMD_LATER_VERSION) != 0;
    if (level != ENGINE_LEVEL_SENTINEL)
        return !later || (cmd->levels & level) != 0;
    return (cmd->levels & level) != 0 ||
           (!later && cmd->container != NULL && (cmd->container->levels & level) != 0);
}

/* Whether it cannot change keys: commands about messages, connections, scripts, the files of a
 * server or the slots of a cluster. */
bool engine_command_has_no_data(const struct engine_command *cmd);

/* Iterates over the table, containers before their subcommands, including later commands, and then
 * over what was added:
 *
 *     for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;)
 */
const struct engine_command *engine_command_next(const struct engine_command *cmd);

enum { ENGINE_COMMAND_IDS = 768 }; /* for arrays by engine_command.id */

/* ---- commands that are added at run time ----
 *
 *     static const struct engine_command row = {ENGINE_ROW(…)};     // engine/command_row.h
 *     const struct engine_command *near = engine_command_add(&row, 1, &err);
 *     if (near == NULL)
 *         ...
 *     engine_command_remove(near);
 *
 * They are those of the process, like the table. Which servers have one is said by its levels, and
 * by who registers a handler for it if its owner is the server (dispatch_register()).
 *
 * One thread adds and removes; others may look up commands meanwhile. */

/* Adds a command, or a container and its subcommands: rows[0] is "name", the others are "name|sub".
 * The caller fills them as ENGINE_ROW() does; the id, and what containers and subcommands have of
 * each other, are set here. What the rows point to, except names, is borrowed until the command is
 * removed. Who adds the same names again gets the same command, which then needs to be removed as
 * often. NULL: RD_ERR_USAGE (a name is taken, or is not 1 to 24 printable characters in lower
 * case), or RD_ERR_LIMIT (there are more than about 280 names). O(n). */
const struct engine_command *engine_command_add(const struct engine_command *rows, size_t n,
                                                struct rd_err *err);

/* Once the command that engine_command_add() returned was removed as often as it was added, it is
 * not found any more. Its name and id stay valid, and no other command gets them; what a queue of
 * MULTI has of it answers that it is unknown. No engine runs it meanwhile. */
void engine_command_remove(const struct engine_command *command);

/* Words of a bit (0, 1, …) or group; NULL: no such bit, or not shown. */
const char *engine_cmd_flag_name(unsigned bit);
const char *engine_acl_name(unsigned bit);
const char *engine_key_flag_name(unsigned bit);
const char *engine_group_name(enum engine_group group);

/* The bit of a category, or 0. */
uint32_t engine_acl_find(struct rd_slice name);

/* ---- keys of a command line ---- */

struct engine_key {
    size_t index;   /* index into argv */
    uint16_t flags; /* enum engine_key_flag */
};

enum engine_keys_status {
    ENGINE_KEYS_OK,
    ENGINE_KEYS_NONE,   /* the command has no key arguments */
    ENGINE_KEYS_ARITY,  /* wrong number of arguments */
    ENGINE_KEYS_INVALID /* invalid arguments, such as a "numkeys" that is too large */
};

/* The keys of a command line, as for COMMAND GETKEYSANDFLAGS: the flags of SET and BITFIELD are
 * those for these arguments. *ret_n is the number of all keys; out receives the first `max` of them
 * (out may be NULL if max is 0). ENGINE_KEYS_OK without keys is possible: EVAL … 0. With every
 * other status *ret_n is 0. O(argc). */
enum engine_keys_status engine_command_keys(const struct engine_command *cmd,
                                            const struct rd_slice *argv, size_t argc,
                                            struct engine_key *out, size_t max, size_t *ret_n);

/* The same for a command line that a server of a later version has accepted: it may be longer than
 * the arity allows, and its options may be unknown here. */
enum engine_keys_status engine_command_keys_accepted(const struct engine_command *cmd,
                                                     const struct rd_slice *argv, size_t argc,
                                                     struct engine_key *out, size_t max,
                                                     size_t *ret_n);

#endif
