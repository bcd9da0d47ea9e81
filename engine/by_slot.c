#include "engine/by_slot.h"

#include "engine/state_impl.h"

/* ---- the tables ---- */

struct engine_by_slot *engine_by_slot_new(const struct engine_table_type *type, uint64_t seed)
{
    struct engine_by_slot *by = engine_alloc(sizeof *by);
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++)
        engine_table_init(&by->slots[slot], type, seed);
    return by;
}

void engine_by_slot_clear(struct engine_by_slot *by)
{
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++)
        engine_table_done(&by->slots[slot]);
}

void engine_by_slot_free(struct engine_by_slot *by)
{
    if (by == NULL)
        return;
    engine_by_slot_clear(by);
    engine_free(by);
}

static struct engine_table *table_of(struct engine_by_slot *by, const struct engine_entry *entry)
{
    return &by->slots[rd_hash_slot(engine_entry_key(entry))];
}

void engine_by_slot_add(struct engine_by_slot *by, struct engine_entry *entry)
{
    engine_table_add(table_of(by, entry), entry);
}

void engine_by_slot_remove(struct engine_by_slot *by, const struct engine_entry *entry)
{
    engine_table_remove(table_of(by, entry), engine_entry_key(entry));
}

void engine_by_slot_replace(struct engine_by_slot *by, const struct engine_entry *old,
                            struct engine_entry *moved)
{
    engine_table_replace(table_of(by, moved), old, moved);
}

/* ---- for servers ---- */

static struct engine_table *slot_of(const struct engine *e, unsigned slot)
{
    struct engine_by_slot *by = e->dbs[0]->by_slot;
    return by != NULL ? &by->slots[slot] : NULL;
}

uint64_t engine_by_slot_count(const struct engine *e, unsigned slot)
{
    const struct engine_table *table = slot_of(e, slot);
    return table != NULL ? engine_table_count(table) : 0;
}

uint64_t engine_by_slot_each(struct engine *e, unsigned slot, uint64_t max, engine_by_slot_fn fn,
                             void *ctx)
{
    struct engine_table *table = slot_of(e, slot);
    struct engine_table_iter it;
    uint64_t n = 0;
    if (table == NULL)
        return 0;
    engine_table_iter_begin(&it, table);
    for (struct engine_entry *entry; n < max && (entry = engine_table_iter_next(&it)) != NULL; n++)
        fn(ctx, engine_entry_key(entry));
    engine_table_iter_end(&it);
    return n;
}

static void delete_one(struct engine_call *call, struct engine_entry *entry)
{
    const struct rd_slice key = engine_entry_key(entry);
    const struct rd_slice argv[] = {
        rd_slice_str(call->config->lazyfree_lazy_server_del ? "UNLINK" : "DEL"), key};
    if (!call->fx->off)
        engine_effects_add(call->fx, 0, 2, argv);
    engine_touch(call, key, 1);
    engine_call_delete(call, entry);
}

uint64_t engine_by_slot_delete(struct engine *e, unsigned slot, const struct engine_env *env,
                               struct engine_effects *fx)
{
    struct engine_table *table = slot_of(e, slot);
    struct engine_session session = {.engine = e};
    struct engine_reply reply = {.off = true};
    struct engine_table_iter it;
    struct engine_call call;
    if (table == NULL)
        return 0;
    struct engine_scope scope = engine_enter(e);
    engine_mem.kind = ENGINE_MEM_KEYS;
    engine_call_init(&call, e, &session, env, &reply, fx);
    engine_table_iter_begin(&it, table);
    for (struct engine_entry *entry; (entry = engine_table_iter_next(&it)) != NULL;)
        delete_one(&call, entry);
    engine_table_iter_end(&it);
    e->stats.dirty += call.dirty;
    engine_leave(e, scope);
    return call.dirty;
}
