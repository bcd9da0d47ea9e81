/* state.h - the engine's own state; private to engine/.
 */
#ifndef ENGINE_STATE_H
#define ENGINE_STATE_H

#include "engine/call.h"
#include "engine/evict.h"

struct engine_block_state;
struct engine_extra; /* what a snapshot held that is no key; snapshot.c */

void engine_extra_free(struct engine_extra *extra); /* NULL is allowed */

struct engine {
    struct engine_config config;
    struct engine_db **dbs; /* config.databases of them */
    unsigned n_dbs;
    uint64_t seed;
    uint64_t random[4];
    struct engine_stats stats;
    struct engine_hooks hooks;
    struct engine_mem mem; /* what the data set takes */
    struct engine_block_state *block;
    struct engine_extra *extra;
    unsigned next_expire_db; /* where the expire cycle continues */
    unsigned next_evict_db;
    struct engine_victims victims;
    unsigned depth;     /* of engine_enter() */
    uint64_t n_trashed; /* times that something went to hooks.trash */
};

/* Around everything that changes the data set, so that its bytes are counted for this engine. They
 * nest. */
struct engine_scope {
    struct engine_mem before;
};

struct engine_scope engine_enter(struct engine *e);
void engine_leave(struct engine *e, struct engine_scope scope);

/* For a second thread, which engine_enter() knows nothing of: what engine_table_seed() gives. */
void engine_table_use_seed(uint64_t seed);

/* Prepares a call of no particular command: the expire cycle, evicting, serving. */
void engine_call_init(struct engine_call *call, struct engine *e, struct engine_session *s,
                      const struct engine_env *env, struct engine_reply *reply,
                      struct engine_effects *fx);

/* Runs one command, whether or not the session is in MULTI; only_key may be NULL. */
enum engine_status engine_call_run(struct engine *e, struct engine_session *s,
                                   const struct engine_command *command, size_t argc,
                                   const struct rd_slice *argv, const struct engine_env *env,
                                   const struct rd_slice *only_key, struct engine_reply *reply,
                                   struct engine_effects *fx);

/* The key is due, and it is this engine's turn to take it out. */
bool engine_call_due(const struct engine_call *call, const struct engine_entry *entry);

/* Takes out a key that is due: event "expired", effect DEL or UNLINK before everything else. A call
 * that keeps them leaves it; it is to be treated as gone all the same. */
void engine_call_expire_now(struct engine_call *call, struct engine_entry *entry);

/* Takes fields of a hash out that are due, looking at n_buckets of a table: events and effects are
 * those of a command that comes upon them. With the last field the entry goes. */
struct engine_hash_pass;
void engine_call_expire_fields(struct engine_call *call, struct engine_entry *entry,
                               size_t n_buckets, struct engine_hash_pass *ret);

#endif
