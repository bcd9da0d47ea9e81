/* state_impl.h - the engine's own state; private to engine/.
 */
#ifndef ENGINE_STATE_IMPL_H
#define ENGINE_STATE_IMPL_H

#include "engine/call.h"
#include "engine/evict.h"

struct engine_block_state;
struct engine_scripts;     /* engine/script/run_impl.h */
struct engine_own_expires; /* engine/own_expires.c */
struct engine_extra;       /* records of a snapshot other than keys; snapshot.c */

void engine_extra_free(struct engine_extra *extra); /* NULL is allowed */

struct engine {
    struct engine_config config;
    struct engine_db **dbs; /* config.databases of them */
    unsigned n_dbs;
    uint64_t seed;
    uint64_t random[4];
    struct engine_stats stats;
    struct engine_hooks hooks;
    struct engine_listener *listeners; /* the first began first */
    struct engine_mem mem;             /* memory of the data set */
    struct engine_block_state *block;
    struct engine_extra *extra;
    struct engine_scripts *scripts;         /* NULL: none were used so far */
    struct engine_own_expires *own_expires; /* NULL: none */
    unsigned next_expire_db;                /* where the expire cycle resumes */
    unsigned next_evict_db;
    struct engine_victims victims;
    unsigned depth;        /* set by engine_enter() */
    uint64_t n_trashed;    /* how often the trash hook was used */
    uint64_t other_memory; /* bytes of the caller that count for maxmemory, at the last eviction */
    bool tables_held;      /* engine_hold_tables() */
    bool had_producers;    /* a stream may have settings for producers */
    uint64_t vector_sets;  /* that were given a number */
};

/* All keys of a database were removed: reports it to the listeners. */
void engine_report_flush(struct engine *e);

/* Encloses all changes of the data set, so that their bytes are counted for this engine. Can be
 * nested. */
struct engine_scope {
    struct engine_mem before;
};

struct engine_scope engine_enter(struct engine *e);
void engine_leave(struct engine *e, struct engine_scope scope);

void engine_scripts_free(struct engine_scripts *scripts); /* NULL is allowed */

/* The libraries of functions were changed as data: they must be compiled again. */
void engine_scripts_outdated(struct engine *e);

/* For a second thread, which engine_enter() does not cover: the value of engine_table_seed(). */
void engine_table_use_seed(uint64_t seed);

/* Prepares a call without a command: the expire cycle, eviction, serving. */
void engine_call_init(struct engine_call *call, struct engine *e, struct engine_session *s,
                      const struct engine_env *env, struct engine_reply *reply,
                      struct engine_effects *fx);

/* Runs one command, whether or not the session is in MULTI; only_key may be NULL. */
enum engine_status engine_call_run(struct engine *e, const struct engine_request *request,
                                   const struct engine_env *env, const struct rd_slice *only_key);

/* Runs a command of a queue or of a script, which may be one of the server (engine_hooks.foreign),
 * and reports that it ran. */
void engine_call_run_any(struct engine *e, const struct engine_request *request,
                         const struct engine_env *env);

/* The key is expired, and this engine must remove it. */
bool engine_call_due(const struct engine_call *call, const struct engine_entry *entry);

/* Removes an expired key: event "expired", effect DEL or UNLINK before all others. A call that
 * keeps such keys leaves it; treat it as missing in either case. */
void engine_call_expire_now(struct engine_call *call, struct engine_entry *entry);

/* Removes expired fields of a hash from n_buckets of its table. Events and effects are those of a
 * command that finds them. The last field removes the entry. */
struct engine_hash_pass;
void engine_call_expire_fields(struct engine_call *call, struct engine_entry *entry,
                               size_t n_buckets, struct engine_hash_pass *ret);

#endif
