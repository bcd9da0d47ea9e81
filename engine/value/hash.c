#include "engine/value/hash.h"

#include "engine/digest.h"
#include "engine/hash.h"
#include "engine/mem.h"
#include "engine/value/hash_impl.h"

struct engine_value engine_hash_new(void)
{
    struct engine_value v = {.type = ENGINE_HASH, .encoding = ENGINE_LISTPACK};
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_HASH);
    v.u.lp = engine_lp_new(0);
    engine_mem_leave(before);
    return v;
}

static bool is_table(const struct engine_value *v)
{
    return v->encoding == ENGINE_HASHTABLE;
}

static struct engine_field *table_find(const struct engine_value *v, struct rd_slice field)
{
    return engine_table_find(&v->u.hash->fields, field);
}

bool engine_hash_get(const struct engine_value *v, struct rd_slice field, struct rd_slice *ret,
                     char tmp[RD_NUM_I64_MAX])
{
    if (is_table(v)) {
        const struct engine_field *f = table_find(v, field);
        if (f != NULL)
            *ret = rd_slice(f->bytes + f->name_len, f->value_len);
        return f != NULL;
    }
    uint8_t *p = engine_hash_pack_find(v, field);
    if (p != NULL)
        *ret = engine_lp_item_text(engine_lp_get(engine_hash_after(p)), tmp);
    return p != NULL;
}

bool engine_hash_has(const struct engine_value *v, struct rd_slice field)
{
    return is_table(v) ? table_find(v, field) != NULL : engine_hash_pack_find(v, field) != NULL;
}

/* ---- changes ---- */

static void become_table(struct engine_value *v)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_HASH);
    engine_hash_pack_to_table(v);
    engine_mem_leave(before);
}

void engine_hash_prepare(struct engine_value *v, size_t n, const struct rd_slice *texts,
                         const struct engine_config *config)
{
    size_t sum = 0;
    bool too_long = false;
    if (is_table(v))
        return;
    for (size_t i = 0; i < n; i++) {
        too_long |= texts[i].len > config->hash_max_listpack_value;
        sum += texts[i].len;
    }
    if (too_long || !engine_lp_fits(v->u.lp, sum))
        become_table(v);
}

static bool pack_set(struct engine_value *v, struct rd_slice field, struct rd_slice value,
                     enum engine_hash_mode mode, const struct engine_config *config)
{
    bool is_new = engine_hash_pack_set(v, field, value, mode);
    if (engine_hash_count(v) > config->hash_max_listpack_entries)
        engine_hash_pack_to_table(v);
    return is_new;
}

bool engine_hash_set(struct engine_value *v, struct rd_slice field, struct rd_slice value,
                     enum engine_hash_mode mode, const struct engine_config *config)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_HASH);
    struct rd_slice texts[] = {field, value};
    engine_hash_prepare(v, 2, texts, config);
    bool is_new = is_table(v) ? engine_hash_table_set(v->u.hash, field, value, mode)
                              : pack_set(v, field, value, mode, config);
    engine_mem_leave(before);
    return is_new;
}

static bool pack_delete(struct engine_value *v, struct rd_slice field)
{
    uint8_t *p = engine_hash_pack_find(v, field);
    if (p != NULL)
        engine_hash_pack_delete(v, p);
    return p != NULL;
}

bool engine_hash_delete(struct engine_value *v, struct rd_slice field)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_HASH);
    bool deleted = is_table(v) ? engine_hash_table_delete(v->u.hash, field) : pack_delete(v, field);
    engine_mem_leave(before);
    return deleted;
}

uint64_t engine_hash_count(const struct engine_value *v)
{
    return is_table(v) ? engine_table_count(&v->u.hash->fields)
                       : engine_lp_count(v->u.lp) / engine_hash_width(v);
}

void engine_hash_random(const struct engine_value *v, uint64_t random, struct engine_hash_pair *ret)
{
    if (is_table(v)) {
        engine_table_step(&v->u.hash->fields, 1);
        engine_field_pair(engine_table_random(&v->u.hash->fields, random), ret);
        return;
    }
    long index = (long)engine_hash_below(random, engine_hash_count(v));
    engine_hash_pack_pair(v, engine_lp_at(v->u.lp, index * (long)engine_hash_width(v)), ret);
}

/* ---- all fields ---- */

void engine_hash_iter_begin(struct engine_hash_iter *it, const struct engine_value *v)
{
    it->v = v;
    if (is_table(v))
        engine_table_iter_begin(&it->table, &v->u.hash->fields);
    else
        it->next = engine_lp_first(v->u.lp);
}

bool engine_hash_iter_next(struct engine_hash_iter *it, struct engine_hash_pair *ret)
{
    if (is_table(it->v)) {
        const struct engine_field *f = engine_table_iter_next(&it->table);
        if (f != NULL)
            engine_field_pair(f, ret);
        return f != NULL;
    }
    if (it->next == NULL)
        return false;
    engine_hash_pack_pair(it->v, it->next, ret);
    it->next = engine_hash_pack_next(it->v, it->next);
    return true;
}

void engine_hash_iter_end(struct engine_hash_iter *it)
{
    if (is_table(it->v))
        engine_table_iter_end(&it->table);
}

/* ---- expiry ---- */

bool engine_hash_get_expire(const struct engine_value *v, struct rd_slice field, int64_t *ret)
{
    struct engine_hash_pair pair;
    const struct engine_field *f = is_table(v) ? table_find(v, field) : NULL;
    uint8_t *p = is_table(v) ? NULL : engine_hash_pack_find(v, field);
    if (f != NULL)
        engine_field_pair(f, &pair);
    else if (p != NULL)
        engine_hash_pack_pair(v, p, &pair);
    else
        return false;
    *ret = pair.expire_ms;
    return true;
}

static void pack_expire(struct engine_value *v, struct rd_slice field, int64_t expire_ms)
{
    bool expires = expire_ms != ENGINE_HASH_NO_EXPIRE;
    if (!engine_hash_is_triples(v) && !expires)
        return;
    if (!engine_hash_is_triples(v))
        engine_hash_pack_to_triples(v);
    engine_hash_pack_expire(v, engine_hash_pack_find(v, field), expire_ms);
}

void engine_hash_expire(struct engine_value *v, struct rd_slice field, int64_t expire_ms)
{
    enum { TIMES_MAX = 16 /* upper limit of the bytes of a time in a listpack */ };
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_HASH);
    if (!is_table(v) && !engine_lp_fits(v->u.lp, TIMES_MAX * engine_hash_count(v)))
        engine_hash_pack_to_table(v);
    if (is_table(v))
        engine_hash_table_expire(v->u.hash, table_find(v, field), expire_ms);
    else
        pack_expire(v, field, expire_ms);
    engine_mem_leave(before);
}

int64_t engine_hash_next_expire(const struct engine_value *v)
{
    struct engine_hash_pair first;
    if (is_table(v))
        return v->u.hash->n_expiring > 0 ? v->u.hash->next_ms : ENGINE_HASH_NO_EXPIRE;
    uint8_t *p = engine_hash_is_triples(v) ? engine_lp_first(v->u.lp) : NULL;
    if (p == NULL)
        return ENGINE_HASH_NO_EXPIRE;
    engine_hash_pack_pair(v, p, &first);
    return first.expire_ms;
}

bool engine_hash_is_triples(const struct engine_value *v)
{
    return v->encoding == ENGINE_LISTPACK && v->len == ENGINE_HASH_TRIPLES;
}

uint64_t engine_hash_expire_due(struct engine_value *v, int64_t now_ms, engine_hash_due_fn fn,
                                void *ctx)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_HASH);
    uint64_t n = 0;
    if (is_table(v))
        n = engine_hash_table_expire_due(v->u.hash, now_ms, fn, ctx);
    else if (engine_hash_is_triples(v))
        n = engine_hash_pack_expire_due(v, now_ms, fn, ctx);
    engine_mem_leave(before);
    return n;
}

uint64_t engine_hash_expire_some(struct engine_value *v, int64_t now_ms, size_t n_buckets,
                                 engine_hash_due_fn fn, void *ctx, struct engine_hash_pass *ret)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_HASH);
    if (is_table(v)) {
        engine_hash_table_expire_some(v->u.hash, now_ms, n_buckets, fn, ctx, ret);
    } else {
        ret->n_seen = engine_hash_count(v);
        ret->n_taken = engine_hash_expire_due(v, now_ms, fn, ctx);
        ret->whole = true;
    }
    engine_mem_leave(before);
    return ret->n_taken;
}

/* ---- operations of the type ---- */

static void hash_free(struct engine_value *v)
{
    engine_hash_file_abort(v);
    if (!is_table(v))
        engine_lp_free(v->u.lp);
    else if (v->u.hash != NULL)
        engine_hash_table_free(v->u.hash);
}

static void hash_dup(struct engine_value *ret, const struct engine_value *v)
{
    if (is_table(v))
        engine_hash_table_dup(ret, v->u.hash);
    else
        ret->u.lp = engine_lp_dup(v->u.lp);
}

static size_t hash_effort(const struct engine_value *v)
{
    return is_table(v) ? engine_table_count(&v->u.hash->fields) : 1;
}

/* Like servers, counts expired fields that still exist. */
static void hash_digest(const struct engine_value *v, uint8_t sum[20])
{
    struct engine_hash_iter it;
    struct engine_hash_pair pair;
    engine_hash_iter_begin(&it, v);
    while (engine_hash_iter_next(&it, &pair)) {
        uint8_t each[ENGINE_DIGEST] = {0};
        engine_digest_mix(each, pair.field);
        engine_digest_mix(each, pair.value);
        if (pair.expire_ms != ENGINE_HASH_NO_EXPIRE)
            engine_digest_xor(each, rd_slice_str("!!hexpire!!"));
        engine_digest_xor(sum, rd_slice(each, sizeof each));
    }
    engine_hash_iter_end(&it);
}

static struct engine_table *hash_table(const struct engine_value *v)
{
    return v->encoding == ENGINE_HASHTABLE ? &v->u.hash->fields : NULL;
}

const struct engine_type_ops engine_hash_ops = {
    .free = hash_free,
    .dup = hash_dup,
    .count = engine_hash_count,
    .effort = hash_effort,
    .next_expire = engine_hash_next_expire,
    .table = hash_table,
    .digest = hash_digest,
    .load = engine_hash_file_load,
    .save = engine_hash_file_save,
};
