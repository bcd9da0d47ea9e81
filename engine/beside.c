/* A second data set, which is loaded while the first one is used. */
#include "engine/engine.h"

#include "engine/block.h"
#include "engine/state_impl.h"
#include "engine/trash_impl.h"
#include "engine/watch.h"

struct engine *engine_new_beside(const struct engine *e)
{
    return engine_new(&(struct engine_opts){.table_seed = e->seed, .config = &e->config});
}

static void swap_dbs(struct engine *e, struct engine *beside, const struct engine_env *env)
{
    struct engine_session session = {.engine = e};
    struct engine_reply reply = {.off = true};
    struct engine_effects fx = {.off = true};
    struct engine_call call;
    engine_call_init(&call, e, &session, env, &reply, &fx);
    for (unsigned i = 0; i < e->n_dbs; i++) {
        struct engine_db *db = e->dbs[i];
        engine_watch_replaced(&call, db, beside->dbs[i]);
        engine_db_swap(db, beside->dbs[i]);
        engine_block_signal_db(e, db);
    }
    engine_effects_done(&fx);
}

static void swap_functions(struct engine *e, struct engine *beside)
{
    struct engine_extra *old = e->extra;
    e->extra = beside->extra;
    beside->extra = old;
    engine_scripts_outdated(e);
}

void engine_adopt(struct engine *e, struct engine *beside, const struct engine_env *env)
{
    struct engine_scope scope = engine_enter(e);
    engine_mem.kind = ENGINE_MEM_KEYS;
    swap_dbs(e, beside, env);
    swap_functions(e, beside);
    engine_own_expires_forget(e);
    engine_leave(e, scope);
    engine_hold_tables(e, e->tables_held);
    engine_report_flush(e);
    engine_discard(e, beside);
}

/* What was counted for `beside` counts for `e` from here on, and is freed there. */
void engine_discard(struct engine *e, struct engine *beside)
{
    for (int i = 0; i < ENGINE_MEM_KINDS; i++)
        e->mem.bytes[i] += beside->mem.bytes[i];
    struct engine_scope scope = engine_enter(e);
    engine_mem.kind = ENGINE_MEM_KEYS;
    for (unsigned i = 0; i < beside->n_dbs; i++)
        engine_trash_db(e, beside->dbs[i], true);
    engine_delete(beside);
    engine_leave(e, scope);
}
