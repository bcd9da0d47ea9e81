#include "engine/own_expires.h"

#include "engine/state_impl.h"

enum {
    VISIT_US_TENTHS = 10, /* the cost of a visit in tenths of a microsecond */
    ALIVE_MAX = 3         /* after more keys that are not due yet, the rest can wait */
};

struct own_key {
    uint64_t dbs; /* bit n: database n */
    uint32_t len;
    uint8_t name[];
};

struct engine_own_expires {
    struct engine_table keys; /* of struct own_key */
    uint64_t cursor;
};

static struct rd_slice own_name(const void *item)
{
    const struct own_key *own = item;
    return rd_slice(own->name, own->len);
}

static const struct engine_table_type own_keys = {.name = own_name};

static void free_key(void *ctx, void *item)
{
    (void)ctx;
    engine_free(item);
}

void engine_own_expires_free(struct engine_own_expires *own)
{
    if (own == NULL)
        return;
    engine_table_drain(&own->keys, free_key, NULL);
    engine_table_done(&own->keys);
    engine_free(own);
}

static struct engine_own_expires *own_expires_of(struct engine *e)
{
    if (e->own_expires == NULL) {
        e->own_expires = engine_calloc(1, sizeof *e->own_expires);
        engine_table_init(&e->own_expires->keys, &own_keys, e->seed);
    }
    return e->own_expires;
}

void engine_own_expires_add(struct engine *e, const struct engine_db *db, struct rd_slice key)
{
    if (db->id >= ENGINE_OWN_DBS)
        return;
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_KEYS);
    struct engine_own_expires *own = own_expires_of(e);
    struct engine_table_slot slot;
    struct own_key *item = engine_table_find_or_slot(&own->keys, key, &slot);
    if (item == NULL) {
        item = engine_alloc(sizeof *item + key.len);
        item->dbs = 0;
        item->len = (uint32_t)key.len;
        memcpy(item->name, key.ptr, key.len);
        engine_table_add_at(&own->keys, &slot, item);
    }
    item->dbs |= UINT64_C(1) << db->id;
    engine_mem_leave(before);
}

uint64_t engine_own_expires_count(const struct engine *e)
{
    return e->own_expires != NULL ? engine_table_count(&e->own_expires->keys) : 0;
}

void engine_own_expires_forget(struct engine *e)
{
    struct engine_scope scope = engine_enter(e);
    engine_own_expires_free(e->own_expires);
    e->own_expires = NULL;
    engine_leave(e, scope);
}

/* ---- the cycle ---- */

struct visit {
    struct engine_call *call;
    unsigned n_alive;
    uint64_t cost;
};

/* Whether the key still has an expiry in this database that has not come. */
static bool is_alive(struct visit *visit, struct rd_slice key)
{
    struct engine_entry *entry = engine_db_find(visit->call->db, key);
    if (entry == NULL || entry->expire_ms == ENGINE_NO_EXPIRE)
        return false;
    if (!engine_call_due(visit->call, entry))
        return true;
    visit->cost += VISIT_US_TENTHS * engine_value_effort(&entry->value);
    engine_call_expire_now(visit->call, entry);
    return false;
}

static void look(void *ctx, void *item)
{
    struct visit *visit = ctx;
    struct engine *e = visit->call->engine;
    struct own_key *own = item;
    uint64_t left = 0;
    for (unsigned i = 0; i < ENGINE_OWN_DBS && i < e->n_dbs; i++) {
        uint64_t bit = UINT64_C(1) << i;
        visit->call->db = e->dbs[i];
        if ((own->dbs & bit) != 0 && is_alive(visit, own_name(own)))
            left |= bit;
    }
    visit->cost += VISIT_US_TENTHS;
    visit->n_alive += left != 0;
    own->dbs = left;
    if (left != 0)
        return;
    engine_table_remove(&e->own_expires->keys, own_name(own));
    engine_free(own);
}

void engine_own_expires_cycle(struct engine *e, const struct engine_env *env, uint64_t budget_us,
                              struct engine_effects *fx)
{
    struct engine_session session = {.engine = e};
    struct engine_reply reply = {.off = true};
    struct engine_own_expires *own = e->own_expires;
    struct engine_call call;
    engine_effects_reset(fx);
    if (own == NULL)
        return;
    struct engine_scope scope = engine_enter(e);
    engine_mem.kind = ENGINE_MEM_KEYS;
    engine_call_init(&call, e, &session, env, &reply, fx);
    struct visit visit = {.call = &call};
    while (engine_table_count(&own->keys) > 0 && visit.n_alive <= ALIVE_MAX &&
           visit.cost < budget_us * 10) {
        own->cursor = engine_table_scan(&own->keys, own->cursor, look, &visit);
        visit.cost++;
    }
    engine_leave(e, scope);
}
