/* Hashes as listpacks: (field, value)* or, with expiries, (field, value, time)* in the order of
 * times. Fields without expiry have the time 0 and are at the end. */
#include "engine/mem.h"
#include "engine/value/hash_impl.h"

static bool is_triples(const struct engine_value *v)
{
    return v->len == ENGINE_HASH_TRIPLES;
}

uint8_t *engine_hash_pack_find(const struct engine_value *v, struct rd_slice field)
{
    uint8_t *lp = v->u.lp;
    return engine_lp_find(lp, engine_lp_first(lp), field, engine_hash_width(v) - 1);
}

static int64_t time_at(uint8_t *p)
{
    return engine_lp_get(engine_hash_after(engine_hash_after(p))).num;
}

void engine_hash_pack_pair(const struct engine_value *v, uint8_t *p, struct engine_hash_pair *ret)
{
    ret->field = engine_lp_item_text(engine_lp_get(p), ret->tmp[0]);
    ret->value = engine_lp_item_text(engine_lp_get(engine_hash_after(p)), ret->tmp[1]);
    ret->expire_ms = ENGINE_HASH_NO_EXPIRE;
    if (is_triples(v) && time_at(p) != 0)
        ret->expire_ms = time_at(p);
}

/* The first field that expires later than this, or never; NULL: none. */
static uint8_t *place_of(const struct engine_value *v, int64_t expire_ms)
{
    uint8_t *p = engine_lp_first(v->u.lp);
    while (p != NULL && time_at(p) != 0 && time_at(p) <= expire_ms)
        p = engine_hash_pack_next(v, p);
    return p;
}

static void insert_triple(struct engine_value *v, uint8_t *p, const struct engine_hash_pair *pair)
{
    p = engine_lp_insert(&v->u.lp, p, pair->field, false);
    p = engine_lp_insert(&v->u.lp, p, pair->value, true);
    engine_lp_insert_int(&v->u.lp, p, pair->expire_ms, true);
}

void engine_hash_pack_add(struct engine_value *v, const struct engine_hash_pair *pair)
{
    bool expires = pair->expire_ms != ENGINE_HASH_NO_EXPIRE;
    uint8_t *place = expires ? place_of(v, pair->expire_ms) : NULL;
    if (place != NULL) {
        insert_triple(v, place, pair);
        return;
    }
    engine_lp_append(&v->u.lp, pair->field);
    engine_lp_append(&v->u.lp, pair->value);
    if (is_triples(v))
        engine_lp_append_int(&v->u.lp, expires ? pair->expire_ms : 0);
}

void engine_hash_pack_delete(struct engine_value *v, uint8_t *p)
{
    engine_lp_delete_range(&v->u.lp, p, engine_hash_width(v));
}

bool engine_hash_pack_set(struct engine_value *v, struct rd_slice field, struct rd_slice value,
                          enum engine_hash_mode mode)
{
    struct engine_hash_pair pair = {
        .field = field, .value = value, .expire_ms = ENGINE_HASH_NO_EXPIRE};
    uint8_t *p = engine_hash_pack_find(v, field);
    if (p != NULL && is_triples(v) && time_at(p) != 0 && mode == ENGINE_HASH_REPLACE) {
        engine_hash_pack_delete(v, p);
        engine_hash_pack_add(v, &pair);
    } else if (p != NULL) {
        engine_lp_replace(&v->u.lp, engine_hash_after(p), value);
    } else {
        engine_hash_pack_add(v, &pair);
    }
    return p == NULL;
}

/* A copy of a text that must stay valid while the listpack changes. */
static struct rd_slice copy_text(struct rd_slice text, uint8_t *block)
{
    if (text.len > 0)
        memcpy(block, text.ptr, text.len);
    return rd_slice(block, text.len);
}

void engine_hash_pack_expire(struct engine_value *v, uint8_t *p, int64_t expire_ms)
{
    struct engine_hash_pair pair;
    engine_hash_pack_pair(v, p, &pair);
    uint8_t *block = engine_scratch_alloc(pair.field.len + pair.value.len);
    pair.field = copy_text(pair.field, block);
    pair.value = copy_text(pair.value, block + pair.field.len);
    pair.expire_ms = expire_ms;
    engine_hash_pack_delete(v, p);
    engine_hash_pack_add(v, &pair);
    engine_scratch_free(block);
}

void engine_hash_pack_to_triples(struct engine_value *v)
{
    uint8_t *pairs = v->u.lp;
    uint8_t *lp = engine_lp_new(engine_lp_bytes(pairs) + engine_lp_count(pairs));
    char tmp[RD_NUM_I64_MAX];
    bool is_value = false;
    for (uint8_t *p = engine_lp_first(pairs); p != NULL; p = engine_lp_next(p)) {
        engine_lp_append(&lp, engine_lp_item_text(engine_lp_get(p), tmp));
        if (is_value)
            engine_lp_append_int(&lp, 0);
        is_value = !is_value;
    }
    engine_lp_free(pairs);
    v->u.lp = lp;
    v->len = ENGINE_HASH_TRIPLES;
}

uint64_t engine_hash_pack_expire_due(struct engine_value *v, int64_t now_ms, engine_hash_due_fn fn,
                                     void *ctx)
{
    struct engine_hash_pair pair;
    uint64_t n = 0;
    uint8_t *p = engine_lp_first(v->u.lp);
    for (; p != NULL && time_at(p) != 0 && time_at(p) < now_ms; n++) {
        engine_hash_pack_pair(v, p, &pair);
        fn(ctx, pair.field);
        p = engine_hash_pack_next(v, p);
    }
    if (n > 0)
        engine_lp_delete_range(&v->u.lp, engine_lp_first(v->u.lp), 3 * n);
    return n;
}

bool engine_hash_pack_to_table(struct engine_value *v)
{
    struct engine_value table = *v;
    struct engine_hash_pair pair;
    struct engine_hash_iter it;
    bool good = true;
    engine_hash_table_make(&table, engine_hash_count(v) + 1);
    engine_hash_iter_begin(&it, v);
    while (engine_hash_iter_next(&it, &pair))
        good &= engine_hash_table_add(table.u.hash, &pair);
    engine_hash_iter_end(&it);
    engine_lp_free(v->u.lp);
    *v = table;
    return good;
}
