/* Selects the keys to evict.
 *
 * LRU, LFU and TTL policies sample a few keys of each database at a time and keep the best sixteen
 * candidates by name, so that a choice is based on more keys than one sample.
 */
#include "engine/evict.h"

#include "base/copy.h"
#include "engine/lru.h"
#include "engine/state_impl.h"

enum { SAMPLES_MAX = 64 };

static bool is_volatile(enum engine_policy policy)
{
    return policy >= ENGINE_VOLATILE_LRU;
}

/* The score of a key; larger scores are evicted sooner. */
static uint64_t score(const struct engine_call *call, const struct engine_entry *entry)
{
    if (call->config->maxmemory_policy == ENGINE_VOLATILE_TTL)
        return UINT64_MAX - (uint64_t)entry->expire_ms;
    if (engine_lfu_on(call->config))
        return 255 - engine_lfu_counter(&entry->value, call->config, call->now_ms);
    return engine_lru_idle_ms(&entry->value, call->now_ms);
}

static void forget(struct engine_victims *pool, unsigned at)
{
    engine_scratch_free(pool->list[at].key);
    pool->n--;
    memmove(&pool->list[at], &pool->list[at + 1], (pool->n - at) * sizeof pool->list[0]);
}

void engine_victims_done(struct engine_victims *victims)
{
    while (victims->n > 0)
        forget(victims, victims->n - 1);
}

static bool in_pool(const struct engine_victims *pool, unsigned db, struct rd_slice key)
{
    for (unsigned i = 0; i < pool->n; i++)
        if (pool->list[i].db == db &&
            rd_slice_eq(rd_slice(pool->list[i].key, pool->list[i].key_len), key))
            return true;
    return false;
}

/* Best candidate last. A full pool drops its worst. */
static void offer(struct engine_victims *pool, unsigned db, struct rd_slice key, uint64_t points)
{
    if (in_pool(pool, db, key))
        return;
    if (pool->n == ENGINE_VICTIMS_MAX) {
        if (points <= pool->list[0].points)
            return;
        forget(pool, 0);
    }
    unsigned at = pool->n;
    while (at > 0 && pool->list[at - 1].points > points)
        at--;
    memmove(&pool->list[at + 1], &pool->list[at], (pool->n - at) * sizeof pool->list[0]);
    uint8_t *copy = engine_scratch_alloc(key.len);
    rd_copy_short(copy, key.ptr, key.len);
    pool->list[at] =
        (struct engine_victim){.points = points, .db = db, .key = copy, .key_len = key.len};
    pool->n++;
}

static const struct engine_table *candidates(const struct engine_call *call,
                                             const struct engine_db *db)
{
    return is_volatile(call->config->maxmemory_policy) ? &db->expires : &db->keys;
}

static uint64_t look_at_some(struct engine_call *call, struct engine_victims *pool)
{
    void *items[SAMPLES_MAX];
    uint64_t n_keys = 0;
    size_t samples = (size_t)call->config->maxmemory_samples;
    for (unsigned i = 0; i < call->engine->n_dbs; i++) {
        const struct engine_table *t = candidates(call, call->engine->dbs[i]);
        size_t n = engine_table_sample(t, engine_random(call),
                                       samples < SAMPLES_MAX ? samples : SAMPLES_MAX, items);
        n_keys += engine_table_count(t);
        for (size_t k = 0; k < n; k++)
            offer(pool, i, engine_entry_key(items[k]), score(call, items[k]));
    }
    return n_keys;
}

/* The best candidate that still exists; drops the others before it, and those without an expiry any
 * more. */
static struct engine_entry *best(struct engine_call *call, struct engine_victims *pool)
{
    while (pool->n > 0) {
        const struct engine_victim *v = &pool->list[pool->n - 1];
        call->db = call->engine->dbs[v->db];
        struct engine_entry *entry =
            engine_table_find(candidates(call, call->db), rd_slice(v->key, v->key_len));
        forget(pool, pool->n - 1);
        if (entry != NULL)
            return entry;
    }
    return NULL;
}

static struct engine_entry *choose_by_score(struct engine_call *call)
{
    struct engine_victims *pool = &call->engine->victims;
    while (look_at_some(call, pool) > 0) {
        struct engine_entry *entry = best(call, pool);
        if (entry != NULL)
            return entry;
    }
    return NULL;
}

static struct engine_entry *choose_by_chance(struct engine_call *call)
{
    struct engine *e = call->engine;
    for (unsigned i = 0; i < e->n_dbs; i++) {
        call->db = e->dbs[e->next_evict_db++ % e->n_dbs];
        const struct engine_table *t = candidates(call, call->db);
        if (engine_table_count(t) > 0)
            return engine_table_random(t, engine_random(call));
    }
    return NULL;
}

static struct engine_entry *choose(struct engine_call *call)
{
    switch (call->config->maxmemory_policy) {
    case ENGINE_NOEVICTION:
        return NULL;
    case ENGINE_ALLKEYS_RANDOM:
    case ENGINE_VOLATILE_RANDOM:
        return choose_by_chance(call);
    default:
        return choose_by_score(call);
    }
}

static void evict(struct engine_call *call, struct engine_entry *entry)
{
    struct rd_slice key = engine_entry_key(entry);
    struct rd_slice argv[] = {rd_slice_str(call->config->lazyfree_lazy_eviction ? "UNLINK" : "DEL"),
                              key};
    call->engine->stats.evicted++;
    engine_effect_also(call, 2, argv);
    engine_touch(call, key, 0);
    engine_notify(call, ENGINE_NOTIFY_EVICTED, "evicted", key);
    engine_call_delete_as(call, entry, call->config->lazyfree_lazy_eviction);
}

/* The bytes of the data set, including those of the current call. */
static uint64_t used(struct engine *e, struct engine_scope *scope)
{
    engine_leave(e, *scope);
    *scope = engine_enter(e);
    return engine_memory(e, NULL);
}

bool engine_evict(struct engine *e, const struct engine_env *env, uint64_t extra,
                  struct engine_effects *fx)
{
    if (extra > 0)
        e->other_memory = extra;
    if (e->config.maxmemory == 0 || e->config.standstill ||
        engine_memory(e, NULL) + extra <= e->config.maxmemory)
        return true;
    struct engine_session session = {.engine = e};
    struct engine_reply reply = {.off = true};
    struct engine_call call;
    struct engine_entry *entry = NULL;
    struct engine_scope scope = engine_enter(e);
    engine_call_init(&call, e, &session, env, &reply, fx);
    /* Memory that another thread is freeing still counts for a short time: do not evict a second
     * key for it. */
    uint64_t trashed = e->n_trashed;
    while (used(e, &scope) + extra > e->config.maxmemory && e->n_trashed == trashed &&
           (entry = choose(&call)) != NULL)
        evict(&call, entry);
    bool within = e->n_trashed != trashed || used(e, &scope) + extra <= e->config.maxmemory;
    engine_leave(e, scope);
    return within;
}
