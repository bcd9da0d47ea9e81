/* engine.h - a complete data set and its commands, without a server.
 *
 *     struct engine *e = engine_new(&(struct engine_opts){.seed = 1});
 *     struct engine_session s;
 *     engine_session_init(&s, e, ENGINE_CLIENT);
 *     struct engine_env env = {.now_us = now};
 *     struct engine_reply reply = {.proto = 2};
 *     switch (engine_apply(e, &s, argc, argv, &env, &reply, &effects)) {
 *     case ENGINE_OK:      ... reply.buf, effects ...
 *     case ENGINE_BLOCKED: ... no reply yet; engine/block.h ...
 *     case ENGINE_ELSEWHERE: ... a command of the server, or one that is not here ...
 *     }
 *
 * The engine has no socket, no clock and no randomness of its own: each command brings the time,
 * and engine_new() the random seed. The same commands with the same times on engines with the same
 * seed give the same replies, effects and data. One thread at a time may use an engine and its
 * sessions.
 *
 * Commands, replies, errors and effects are those of Redis 7.0.15.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/err.h"
#include "base/resp.h"
#include "engine/config.h"
#include "engine/effects.h"
#include "engine/reply.h"

struct engine;
struct engine_session;
struct engine_command;
struct engine_db;

struct engine_opts {
    uint64_t seed;
    /* Seed of the tables; 0: derived from the other seed. The other seed can be inferred from
     * replies of RANDOMKEY and similar commands, so a server passes two unrelated seeds. */
    uint64_t table_seed;
    const struct engine_config *config; /* copied; NULL: the defaults */
};

/* ---- what happens: listeners ----
 *
 *     p->listener = (struct engine_listener){.touched = on_touched, .ctx = p};
 *     engine_listen(e, &p->listener);
 *     ...
 *     engine_unlisten(e, &p->listener);
 *
 * Any number of listeners hears of each event, in the order in which they began to listen. What has
 * one answer is a hook (below). */

/* Called for each keyspace event that config.notify_keyspace_events selects, such as event
 * "expired" of class ENGINE_NOTIFY_EXPIRED. Must not change the engine. */
typedef void (*engine_notify_fn)(void *ctx, enum engine_notify class, const char *event,
                                 struct rd_slice key, unsigned db);

/* Called for every key that was changed, by a command or because it expired or was evicted. Must
 * not change the engine. */
typedef void (*engine_touched_fn)(void *ctx, struct rd_slice key, unsigned db, bool by_command);

/* Called once when a command removed all keys of a database or of all. Must not change the engine.
 */
typedef void (*engine_flushed_fn)(void *ctx);

/* Called after each command that EXEC or a script ran, for counters of commands. Must not change
 * the engine. */
struct engine_request;
typedef void (*engine_ran_fn)(void *ctx, const struct engine_request *request);

struct engine_listener {
    engine_notify_fn notify; /* each may be NULL */
    engine_touched_fn touched;
    engine_flushed_fn flushed;
    engine_ran_fn ran;
    void *ctx;
    struct engine_listener *next; /* set by engine_listen() */
};

/* The listener is borrowed until engine_unlisten() or engine_delete(). No listener may begin or end
 * while it is called. */
void engine_listen(struct engine *e, struct engine_listener *listener);
void engine_unlisten(struct engine *e, struct engine_listener *listener);

struct engine_env {
    int64_t now_us; /* Unix time in microseconds; may stop, should not go back */
    /* Keys are expired as of this time; 0: now_us. It is the start of the script or transaction
     * that runs the command, so that a key does not vanish between two of its commands. */
    int64_t due_us;
};

enum engine_status {
    ENGINE_OK,       /* replied, perhaps with an error */
    ENGINE_BLOCKED,  /* the session is blocked; engine/block.h */
    ENGINE_ELSEWHERE /* known, but the server's or a later work's: nothing was done or answered. In
                        a transaction such a command is queued, and EXEC calls `foreign` for it. */
};

/* A command line that a session runs, and where its reply and its effects go. It is borrowed during
 * a call. */
struct engine_request {
    struct engine_session *session;
    const struct engine_command *command; /* NULL: unknown; only engine_admit() and
                                             engine_apply_command() take it */
    size_t argc;
    const struct rd_slice *argv;
    struct engine_reply *reply; /* appended to */
    struct engine_effects *fx;
};

struct engine *engine_new(const struct engine_opts *opts);

/* All sessions must be released before. */
void engine_delete(struct engine *e); /* NULL is allowed */

/* Runs one command: looks it up, checks its arity, queues it in MULTI or runs it. argv is borrowed
 * during the call, and by the effects until they are reset. reply and fx must not be NULL; reply is
 * appended to, fx is reset. */
enum engine_status engine_apply(struct engine *e, struct engine_session *s, size_t argc,
                                const struct rd_slice *argv, const struct engine_env *env,
                                struct engine_reply *reply, struct engine_effects *fx);

/* The same if the command was looked up already (NULL if it is unknown). */
enum engine_status engine_apply_command(struct engine *e, const struct engine_request *request,
                                        const struct engine_env *env);

/* Runs a command that engine_admit() (engine/admit.h) admitted, or queues it. The effects must be
 * reset. */
enum engine_status engine_apply_admitted(struct engine *e, const struct engine_request *request,
                                         const struct engine_env *env, bool queue);

/* Runs commands in EXEC that are not the engine's (PUBLISH, CONFIG): the caller replies to them. */
typedef void (*engine_foreign_fn)(void *ctx, const struct engine_request *request);

/* Whether the session may run a queued command now, in EXEC. False: an error was added to the
 * reply. */
typedef bool (*engine_may_fn)(void *ctx, const struct engine_request *request);

/* Whether the session may read every key with this command: SORT with BY or GET. */
typedef bool (*engine_reads_all_fn)(void *ctx, const struct engine_request *request);

/* Takes ownership of memory that is slow to free; engine/trash.h. */
struct engine_trash;
typedef void (*engine_trash_fn)(void *ctx, struct engine_trash *trash);

/* Called when RESTORE refuses a value, with its type and the reason. */
struct rdb_type;
typedef void (*engine_refused_fn)(void *ctx, const struct rdb_type *type, const struct rd_err *err);

/* ---- scripts; engine/script.h ---- */

struct engine_running;
/* Called by a running script, and by a library that is being loaded, after every 100,000 or so
 * instructions; `running` has no caller then. True: ends it. */
typedef bool (*engine_script_tick_fn)(void *ctx, const struct engine_running *running);
/* After each run. */
typedef void (*engine_script_ended_fn)(void *ctx, const struct engine_running *running);
/* Before a run: the error to reply instead, or NULL. Flags: enum engine_script_flag. Sets
 * *ret_out_of_memory if the memory limit is reached. */
typedef const char *(*engine_script_start_fn)(void *ctx, struct engine_session *caller,
                                              unsigned flags, bool *ret_out_of_memory);
/* Before each command of a script: describes who asks and the state of the server, as for a command
 * of the caller. admit->who and admit->script are set and stay. */
struct engine_admit;
typedef void (*engine_script_admit_fn)(void *ctx, const struct engine_session *s,
                                       struct engine_admit *admit);
/* A command of a script was refused (NULL: it is unknown). */
typedef void (*engine_script_refused_fn)(void *ctx, const struct engine_command *command,
                                         const char *error);
/* EVAL, FCALL or a variant begins, before its script is looked up. */
typedef void (*engine_script_command_fn)(void *ctx, const struct engine_request *request);
/* redis.acl_check_cmd(): whether the caller of the script, the session of the request, may run
 * it. The request has no reply. */
typedef bool (*engine_script_permits_fn)(void *ctx, const struct engine_request *request);
/* redis.log(): levels 0 (debug) to 3 (warning). */
typedef void (*engine_script_log_fn)(void *ctx, int level, struct rd_slice text);
/* Unix time in microseconds, for a command of a script or a transaction, which begins later than
 * the script. Without this hook they get the time at which it began. */
typedef int64_t (*engine_clock_fn)(void *ctx);
/* The command of a command line, if clients have other names for commands than the table. */
typedef const struct engine_command *(*engine_resolve_fn)(void *ctx, const struct rd_slice *argv,
                                                          size_t argc);

/* ---- COMMAND ---- */

/* The command or container that clients call by this name, if they have other names for commands
 * than the table. NULL: there is none. */
typedef const struct engine_command *(*engine_named_fn)(void *ctx, struct rd_slice name);
/* Whether clients have a name for this command or container. */
typedef bool (*engine_callable_fn)(void *ctx, const struct engine_command *command);

/* The questions of an engine; each has one answer. */
struct engine_hooks {
    engine_foreign_fn foreign; /* each may be NULL */
    engine_may_fn may;
    engine_reads_all_fn reads_all;
    engine_trash_fn trash;
    engine_refused_fn refused;
    engine_resolve_fn resolve;
    engine_named_fn named;
    engine_callable_fn callable;
    engine_script_tick_fn script_tick;
    engine_script_ended_fn script_ended;
    engine_script_start_fn script_start;
    engine_script_admit_fn script_admit;
    engine_script_refused_fn script_refused;
    engine_script_command_fn script_command;
    engine_script_permits_fn script_permits;
    engine_script_log_fn script_log;
    engine_clock_fn clock;
    void *ctx;
};

void engine_set_hooks(struct engine *e, const struct engine_hooks *hooks);

struct engine_config *engine_config(struct engine *e);      /* can be changed between commands */
struct engine_db *engine_db(struct engine *e, unsigned id); /* NULL: the database does not exist */

struct engine_stats {
    uint64_t commands;
    uint64_t dirty; /* changes since the start */
    uint64_t hits;
    uint64_t misses;
    uint64_t expired;
    uint64_t evicted;
    uint64_t flushes; /* FLUSHALL */
};

const struct engine_stats *engine_stats(const struct engine *e);

/* Resets hits, misses, expired and evicted keys; the counts of commands and changes continue. */
void engine_stats_reset(struct engine *e);

/* Bytes of the data set, in total and by kind (enum engine_mem_kind; may be NULL). */
uint64_t engine_memory(const struct engine *e, uint64_t ret_by_kind[]);

/* ---- a second data set ----
 *
 *     struct engine *beside = engine_new_beside(e);
 *     ... load it while `e` serves clients ...
 *     engine_adopt(e, beside, &env);               or engine_discard(e, beside);
 *
 * Both delete `beside`. Its old or partial data goes to the trash hook of `e`. */

/* An empty data set with the settings, databases and seeds of `e`. */
struct engine *engine_new_beside(const struct engine *e);

/* The keys and functions of `e` are replaced. Watched keys that differ make EXEC fail, caches of
 * clients are flushed, and clients that wait for a key that exists now can be served. */
void engine_adopt(struct engine *e, struct engine *beside, const struct engine_env *env);
void engine_discard(struct engine *e, struct engine *beside);

/* ---- housekeeping, driven from outside ---- */

/* The active expire cycle: removes expired keys for about budget_us (estimated from the work done,
 * without a clock). Adds effects (DEL, UNLINK) to fx. Returns the number of keys. The slow cycle
 * also removes expired hash fields (HDEL), which are not counted. */
uint64_t engine_expire_cycle(struct engine *e, const struct engine_env *env, bool fast,
                             uint64_t budget_us, struct engine_effects *fx);

/* The same on a replica, for the keys whose expiry its own clients set; see engine/own_expires.h.
 * Forget: they are those of a master from here on. */
void engine_own_expires_cycle(struct engine *e, const struct engine_env *env, uint64_t budget_us,
                              struct engine_effects *fx);
uint64_t engine_own_expires_count(const struct engine *e);
void engine_own_expires_forget(struct engine *e);

/* Evicts keys until the data set is within maxmemory minus `extra`, the bytes that the caller does
 * not count. False: not possible (because of the policy, or no more keys to evict). */
bool engine_evict(struct engine *e, const struct engine_env *env, uint64_t extra,
                  struct engine_effects *fx);

/* Continues to move the tables that are being resized: n buckets. */
void engine_resize_step(struct engine *e, unsigned n_buckets);

/* Postpones resizes of the tables of keys while a child shares the memory; see engine_table_hold().
 */
void engine_hold_tables(struct engine *e, bool on);

#endif
