/* call.h - what a command is given, and what it may do.
 *
 *     void engine_cmd_strlen(struct engine_call *call)
 *     {
 *         struct engine_entry *entry;
 *         if (!engine_call_read(call, call->argv[1], ENGINE_STRING, &entry))
 *             return;                                     // WRONGTYPE was answered
 *         engine_reply_int(call->reply, entry ? (int64_t)engine_string_len(&entry->value) : 0);
 *     }
 *
 * The rules, so that effects, WATCH and events come out right:
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
 * argv and what lies in it is borrowed. Entries move when their key is stored again.
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
    struct engine_db *db; /* the session's */
    const struct engine_config *config;
    const struct engine_command *command;
    size_t argc;
    const struct rd_slice *argv;
    struct engine_reply *reply;
    int64_t now_us;
    int64_t now_ms;
    uint64_t dirty; /* changes this command made */

    /* Blocking commands look only at this key, when it is set: engine_serve(). */
    const struct rd_slice *only_key;
    bool may_block; /* false in a transaction: answer as if time were over */

    /* Private to call.c and engine.c. */
    bool want_effects;
    bool keeps_due;   /* config.standstill, and it is no write */
    bool own_effect;  /* the command is its own effect, if dirty */
    bool copy_effect; /* argv does not outlive the call */
    struct engine_effects *fx;
    enum engine_status status;
};

/* ---- keys ----
 *
 * A key that is due is taken out first (and its DEL is an effect), unless the session replays. */

/* *ret: the entry, or NULL where there is no such key. False: it holds another type; WRONGTYPE was
 * answered. _read counts hits and misses; both note the access. */
bool engine_call_read(struct engine_call *call, struct rd_slice key, enum engine_type type,
                      struct engine_entry **ret);
bool engine_call_write(struct engine_call *call, struct rd_slice key, enum engine_type type,
                       struct engine_entry **ret);

/* The same for any type; NULL: there is no such key. */
struct engine_entry *engine_call_find_read(struct engine_call *call, struct rd_slice key);
struct engine_entry *engine_call_find_write(struct engine_call *call, struct rd_slice key);

/* As find_read, but the time of access stays: EXISTS, TTL. */
struct engine_entry *engine_call_look(struct engine_call *call, struct rd_slice key);

/* Neither counts nor notes the access: DEBUG. */
struct engine_entry *engine_call_peek(struct engine_call *call, struct rd_slice key);

/* The key's type is another one: answers WRONGTYPE and returns false. entry may be NULL. */
bool engine_call_type_ok(struct engine_call *call, const struct engine_entry *entry,
                         enum engine_type type);

/* Stores a value (moved) under a key that call found absent / under any key. engine_call_set
 * removes the expiry unless keep_ttl. Waiting sessions are told. */
struct engine_entry *engine_call_add(struct engine_call *call, struct rd_slice key,
                                     struct engine_value *value);
struct engine_entry *engine_call_set(struct engine_call *call, struct rd_slice key,
                                     struct engine_value *value, bool keep_ttl);

/* SET's way for strings; entry is what find_write gave (may be NULL). Keeps the expiry. */
struct engine_entry *engine_call_set_string(struct engine_call *call, struct engine_entry *entry,
                                            struct rd_slice key, struct rd_slice text);

/* Takes the key out and frees its value. The key slice may be the entry's own. */
void engine_call_delete(struct engine_call *call, struct engine_entry *entry);

/* The same, where another setting than lazyfree-lazy-server-del says whether the value may be freed
 * on another thread. */
void engine_call_delete_as(struct engine_call *call, struct engine_entry *entry, bool lazy);

/* True: there was one (not due). Says nothing: the caller does. */
bool engine_call_delete_key(struct engine_call *call, struct rd_slice key, bool lazy);

void engine_call_expire(struct engine_call *call, struct engine_entry *entry, int64_t expire_ms);

/* Parts of a stored value have got an expiry. */
void engine_call_note_parts(struct engine_call *call, struct engine_entry *entry);

/* Something was put into a key that sessions may wait for (XADD to a stream that exists, say;
 * engine_call_add and _set do it by themselves). */
void engine_call_signal(struct engine_call *call, struct rd_slice key);

/* Another database of the same engine; NULL: there is none. */
struct engine_db *engine_call_db(struct engine_call *call, int64_t id);

/* All of the above work on call->db: a command for two databases (COPY, MOVE) sets it for a while.
 */

/* ---- what changed ---- */

/* The key was changed by n changes (dirty += n): watchers and caches are told, and the event is
 * given where notify-keyspace-events asks for it. */
void engine_changed(struct engine_call *call, enum engine_notify class, const char *event,
                    struct rd_slice key, uint64_t n);

/* The parts of it: an event alone; a change without event. */
void engine_notify(struct engine_call *call, enum engine_notify class, const char *event,
                   struct rd_slice key);
void engine_touch(struct engine_call *call, struct rd_slice key, uint64_t n);

/* ---- effects ---- */

/* Instead of the command itself. Called several times: all of them, in this order. */
/* Whether argv[0] is the command's name in the table, in upper or lower case: rename-command may
 * have given it another. Logs hold the names of the table, so that they can be read everywhere. */
bool engine_call_has_own_name(const struct engine_call *call);

/* An effect with the name of the table instead of argv[0]. */
void engine_call_add_renamed(struct engine_call *call, unsigned db, size_t argc,
                             const struct rd_slice *argv);

void engine_effect(struct engine_call *call, size_t argc, const struct rd_slice *argv);

/* Besides the command itself, which comes last, as servers have it. */
void engine_effect_also(struct engine_call *call, size_t argc, const struct rd_slice *argv);

/* The command has no effect of its own even though it is dirty. */
void engine_effect_none(struct engine_call *call);

/* False: nobody asks for effects; arguments for them need not be made. */
static inline bool engine_effects_wanted(const struct engine_call *call)
{
    return call->want_effects;
}

/* ---- arguments; each answers its error and returns false ---- */

/* "ERR value is not an integer or out of range", or error instead of it when not NULL. */
bool engine_arg_i64(struct engine_call *call, struct rd_slice arg, int64_t *ret, const char *error);
/* The same, with bounds: out of them the answer is error, or the text above. */
bool engine_arg_range(struct engine_call *call, struct rd_slice arg, int64_t min, int64_t max,
                      int64_t *ret, const char *error);
/* The range of an int: "ERR value is out of range, value must between …". */
bool engine_arg_int(struct engine_call *call, struct rd_slice arg, int64_t *ret);
/* "ERR value is out of range, must be positive" below 0, as for counts of LPOP. */
bool engine_arg_positive(struct engine_call *call, struct rd_slice arg, int64_t *ret,
                         const char *error);
/* "ERR value is not a valid float". */
bool engine_arg_f64(struct engine_call *call, struct rd_slice arg, double *ret, const char *error);
/* A timeout of a blocking command, in seconds with fractions (or in ms): absolute time in us, or
 * INT64_MAX for 0. "ERR timeout is not a float or out of range", "ERR timeout is negative", … */
bool engine_arg_timeout(struct engine_call *call, struct rd_slice arg, bool in_ms,
                        int64_t *ret_deadline_us);

/* Case-insensitive. */
bool engine_arg_is(struct rd_slice arg, const char *word);

void engine_reply_wrong_type(struct engine_call *call);  /* WRONGTYPE … */
void engine_reply_syntax(struct engine_call *call);      /* ERR syntax error */
void engine_reply_no_key(struct engine_call *call);      /* ERR no such key */
void engine_reply_wrong_arity(struct engine_call *call); /* ERR wrong number of arguments for … */
/* ERR unknown subcommand or wrong number of arguments for … Try … HELP: options that a subcommand
 * lacks. */
void engine_reply_unknown_subcommand(struct engine_call *call);
/* XINFO HELP and friends: the lines as simple strings, in the frame of all HELP answers. */
void engine_reply_help(struct engine_call *call, const char *const *lines);

/* ---- chance ---- */

uint64_t engine_random(struct engine_call *call);
/* Fair, below n (n > 0). */
uint64_t engine_random_below(struct engine_call *call, uint64_t n);
/* The seed for a table that a value makes. */
uint64_t engine_table_seed(void);

/* ---- waiting ---- */

/* The session waits until one of the keys has something of this type, or the deadline (unix time in
 * us, INT64_MAX: never). The command gives no answer and no effect now. Called again by
 * engine_serve() it sees only_key; if it calls engine_block() once more, the session continues
 * waiting. Not called when !call->may_block. */
void engine_block(struct engine_call *call, enum engine_type type, size_t n_keys,
                  const struct rd_slice *keys, int64_t deadline_us);

#endif
