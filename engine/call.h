/* call.h - the arguments of a command function, and what the function may do.
 *
 *     void engine_cmd_strlen(struct engine_call *call)
 *     {
 *         struct engine_entry *entry;
 *         if (!engine_call_read(call, call->argv[1], ENGINE_STRING, &entry))
 *             return;                                     // WRONGTYPE was answered
 *         engine_reply_int(call->reply, entry ? (int64_t)engine_string_len(&entry->value) : 0);
 *     }
 *
 * Rules that keep effects, WATCH and events correct:
 *
 *  1. Check all arguments before anything is changed.
 *  2. Change data through this header; after a change say engine_changed() (or, where a command is
 *     silent, engine_touch()), once for each key and event, in the order a server has.
 *  3. A collection that became empty: engine_call_delete() it and say engine_changed(GENERIC,
 * "del").
 *  4. A command that changed something (call->dirty > 0) is its own effect, unless it says
 * otherwise with engine_effect() (instead of itself), engine_effect_also() or engine_effect_none().
 *     Whatever depends on time or chance must say otherwise.
 *
 * argv and its bytes are borrowed. Entries move when their key is stored again.
 */
#ifndef ENGINE_CALL_H
#define ENGINE_CALL_H

#include "engine/block.h"
#include "engine/command.h"
#include "engine/db.h"
#include "engine/engine.h"
#include "engine/session.h"

struct engine_call {
    struct engine *engine;
    struct engine_session *session;
    struct engine_db *db; /* database of the session */
    const struct engine_config *config;
    const struct engine_request *request; /* NULL without a command: the expire cycle, eviction */
    const struct engine_command *command; /* of the request, as are argc, argv and reply */
    size_t argc;
    const struct rd_slice *argv;
    struct engine_reply *reply;
    int64_t now_us;
    int64_t now_ms;
    int64_t due_us; /* keys and fields are expired as of this time: struct engine_env */
    int64_t due_ms;
    uint64_t dirty; /* changes made by this command */

    /* If set, blocking commands use this key only: engine_serve(). */
    const struct rd_slice *only_key;
    bool may_block; /* false in a transaction: reply as after a timeout */

    /* Private to call.c and engine.c. */
    bool want_effects;
    bool keeps_due;   /* config.standstill or .replica, and not a write */
    bool own_effect;  /* the command is its own effect if dirty */
    bool copy_effect; /* argv is not valid after the call */
    struct engine_effects *fx;
    enum engine_status status;
};

/* Whether options of servers after 7.0 are known: logs and masters may be of any server. */
static inline bool engine_call_later_options(const struct engine_call *call)
{
    return call->session->role != ENGINE_CLIENT || call->config->level != ENGINE_LEVEL_7_0;
}

/* ---- keys ----
 *
 * These functions remove an expired key first (its DEL is an effect), unless the session
 * replays. */

/* *ret: the entry, or NULL if the key does not exist. False: the key has another type; WRONGTYPE
 * was replied. _read counts hits and misses; both record the access. */
bool engine_call_read(struct engine_call *call, struct rd_slice key, enum engine_type type,
                      struct engine_entry **ret);
bool engine_call_write(struct engine_call *call, struct rd_slice key, enum engine_type type,
                       struct engine_entry **ret);

/* The same for any type; NULL: the key does not exist. */
struct engine_entry *engine_call_find_read(struct engine_call *call, struct rd_slice key);
struct engine_entry *engine_call_find_write(struct engine_call *call, struct rd_slice key);

/* Like find_read, but does not record the access: EXISTS, TTL. */
struct engine_entry *engine_call_look(struct engine_call *call, struct rd_slice key);

/* Neither counts nor records the access: DEBUG. */
struct engine_entry *engine_call_peek(struct engine_call *call, struct rd_slice key);

/* If the key has another type, replies WRONGTYPE and returns false. entry may be NULL. */
bool engine_call_type_ok(struct engine_call *call, const struct engine_entry *entry,
                         enum engine_type type);

/* Stores a value (moved): _add under a key that is absent, _set under any key. engine_call_set
 * removes the expiry unless keep_ttl. Signals blocked sessions. */
struct engine_entry *engine_call_add(struct engine_call *call, struct rd_slice key,
                                     struct engine_value *value);
struct engine_entry *engine_call_set(struct engine_call *call, struct rd_slice key,
                                     struct engine_value *value, bool keep_ttl);

/* Stores a string; entry is the result of find_write (may be NULL). Keeps the expiry. */
struct engine_entry *engine_call_set_string(struct engine_call *call, struct engine_entry *entry,
                                            struct rd_slice key, struct rd_slice text);

/* Removes the key and frees its value. The key slice may be that of the entry. */
void engine_call_delete(struct engine_call *call, struct engine_entry *entry);

/* The same, if another setting than lazyfree-lazy-server-del selects freeing the value in another
 * thread. */
void engine_call_delete_as(struct engine_call *call, struct engine_entry *entry, bool lazy);

/* True: the key existed and was not expired. Makes no event or effect: the caller does. */
bool engine_call_delete_key(struct engine_call *call, struct rd_slice key, bool lazy);

void engine_call_expire(struct engine_call *call, struct engine_entry *entry, int64_t expire_ms);

/* For a command that this one runs: it begins now, and expires keys as of the start of this one. */
struct engine_env engine_call_env(const struct engine_call *call);

/* A key that is given this expiry is removed at once, not stored. A replica and a log leave that to
 * the master. */
static inline bool engine_call_is_past(const struct engine_call *call, int64_t expire_ms)
{
    return expire_ms <= call->now_ms && call->session->role == ENGINE_CLIENT &&
           !call->config->replica;
}

/* Parts of a stored value have received an expiry. */
void engine_call_note_parts(struct engine_call *call, struct engine_entry *entry);

/* A key that sessions may wait for has a new element (such as XADD to an existing stream).
 * engine_call_add and _set do this themselves. */
void engine_call_signal(struct engine_call *call, struct rd_slice key);

/* Another database of the same engine; NULL: it does not exist. */
struct engine_db *engine_call_db(struct engine_call *call, int64_t id);

/* All functions above use call->db: a command for two databases (COPY, MOVE) changes it
 * temporarily.
 */

/* ---- what changed ---- */

/* The key was changed by n changes (dirty += n): signals watchers and caches, and sends the event
 * if notify-keyspace-events selects it. */
void engine_changed(struct engine_call *call, enum engine_notify class, const char *event,
                    struct rd_slice key, uint64_t n);

/* The two parts: an event alone; a change without an event. */
void engine_notify(struct engine_call *call, enum engine_notify class, const char *event,
                   struct rd_slice key);
void engine_touch(struct engine_call *call, struct rd_slice key, uint64_t n);

/* ---- effects ---- */

/* Replaces the command as its effect. Several calls: all of them, in this order. */
/* Whether argv[0] is the name of the command in the table, in any case; rename-command may have
 * changed it. Logs use the names of the table, so that every server can read them. */
bool engine_call_has_own_name(const struct engine_call *call);

/* An effect with the name of the table instead of argv[0]. */
void engine_call_add_renamed(struct engine_call *call, unsigned db, size_t argc,
                             const struct rd_slice *argv);

void engine_effect(struct engine_call *call, size_t argc, const struct rd_slice *argv);

/* An additional effect. The command itself comes last, as in redis-server. */
void engine_effect_also(struct engine_call *call, size_t argc, const struct rd_slice *argv);

/* The command has no effect of its own, even if it is dirty. */
void engine_effect_none(struct engine_call *call);

/* False: effects are not needed, so the command need not build arguments for them. */
static inline bool engine_effects_wanted(const struct engine_call *call)
{
    return call->want_effects;
}

/* ---- arguments; each answers its error and returns false ---- */

/* "ERR value is not an integer or out of range", or `error` if it is not NULL. */
bool engine_arg_i64(struct engine_call *call, struct rd_slice arg, int64_t *ret, const char *error);
/* The same with bounds: outside of them the reply is `error`, or the text above. */
bool engine_arg_range(struct engine_call *call, struct rd_slice arg, int64_t min, int64_t max,
                      int64_t *ret, const char *error);
/* The range of an int: "ERR value is out of range, value must between …". */
bool engine_arg_int(struct engine_call *call, struct rd_slice arg, int64_t *ret);
/* "ERR value is out of range, must be positive" below 0, for example for the count of LPOP. */
bool engine_arg_positive(struct engine_call *call, struct rd_slice arg, int64_t *ret,
                         const char *error);
/* "ERR value is not a valid float". */
bool engine_arg_f64(struct engine_call *call, struct rd_slice arg, double *ret, const char *error);
/* The timeout of a blocking command, in seconds with fractions (or in ms), as absolute time in us;
 * INT64_MAX for 0. "ERR timeout is not a float or out of range", "ERR timeout is negative", … */
bool engine_arg_timeout(struct engine_call *call, struct rd_slice arg, bool in_ms,
                        int64_t *ret_deadline_us);

/* Case-insensitive. */
bool engine_arg_is(struct rd_slice arg, const char *word);

void engine_reply_wrong_type(struct engine_call *call);  /* WRONGTYPE … */
void engine_reply_syntax(struct engine_call *call);      /* ERR syntax error */
void engine_reply_no_key(struct engine_call *call);      /* ERR no such key */
void engine_reply_wrong_arity(struct engine_call *call); /* ERR wrong number of arguments for … */
/* ERR unknown subcommand or wrong number of arguments for … Try … HELP: for options that a
 * subcommand does not have. */
void engine_reply_unknown_subcommand(struct engine_call *call);
/* XINFO HELP and similar: the lines as simple strings, in the usual frame of HELP. */
void engine_reply_help(struct engine_call *call, const char *const *lines);

/* ---- chance ---- */

uint64_t engine_random(struct engine_call *call);
/* A uniform number below n (n > 0). */
uint64_t engine_random_below(struct engine_call *call, uint64_t n);
/* The seed of a table in a value. */
uint64_t engine_table_seed(void);

/* ---- waiting ---- */

/* Blocks the session until one of the keys has a value of this type, or until the deadline (Unix
 * time in us, INT64_MAX: never). The command then makes no reply and no effect. When engine_serve()
 * runs it again, it sees only_key; if it calls engine_block() once more, the session stays blocked.
 * Not allowed if !call->may_block. */
void engine_block(struct engine_call *call, enum engine_type type, size_t n_keys,
                  const struct rd_slice *keys, int64_t deadline_us);

#endif
