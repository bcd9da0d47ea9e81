/* Hashes as tables: each field is one block with its name, value and expiry. */
#include "base/copy.h"
#include "engine/call.h"
#include "engine/value/hash_impl.h"

enum { EXPIRE_BYTES = 8, SMALL_MAX = 64 /* blocks that never shrink */ };

static struct rd_slice field_name(const void *item)
{
    const struct engine_field *f = item;
    return rd_slice(f->bytes, f->name_len);
}

static const struct engine_table_type field_table = {.name = field_name};

static int64_t field_expire(const struct engine_field *f)
{
    int64_t expire_ms = ENGINE_HASH_NO_EXPIRE;
    if (f->expires)
        memcpy(&expire_ms, f->bytes + f->name_len + f->value_len, sizeof expire_ms);
    return expire_ms;
}

static void field_put_expire(struct engine_field *f, int64_t expire_ms)
{
    if (f->expires)
        memcpy(f->bytes + f->name_len + f->value_len, &expire_ms, sizeof expire_ms);
}

static size_t field_size(size_t name_len, size_t value_len, bool expires)
{
    return sizeof(struct engine_field) + name_len + value_len + (expires ? EXPIRE_BYTES : 0);
}

void engine_field_pair(const struct engine_field *f, struct engine_hash_pair *ret)
{
    ret->field = field_name(f);
    ret->value = rd_slice(f->bytes + f->name_len, f->value_len);
    ret->expire_ms = field_expire(f);
}

static struct engine_field *field_new(struct rd_slice name, struct rd_slice value,
                                      int64_t expire_ms)
{
    bool expires = expire_ms != ENGINE_HASH_NO_EXPIRE;
    struct engine_field *f = engine_alloc(field_size(name.len, value.len, expires));
    f->name_len = name.len & INT32_MAX;
    f->expires = expires;
    f->value_len = (uint32_t)value.len;
    rd_copy_short(f->bytes, name.ptr, name.len);
    rd_copy_short(f->bytes + name.len, value.ptr, value.len);
    field_put_expire(f, expire_ms);
    return f;
}

/* Reallocates the block if its size does not fit. */
static struct engine_field *resize(struct engine_hash *h, struct engine_field *f, size_t size)
{
    size_t usable = engine_usable(f);
    if (size <= usable && (usable <= SMALL_MAX || size >= usable / 2))
        return f;
    const struct engine_field *old = f;
    f = engine_realloc(f, size);
    if (f != old)
        engine_table_replace(&h->fields, old, f);
    return f;
}

static void rewrite(struct engine_hash *h, struct engine_field *f, struct rd_slice value,
                    bool keep_expire)
{
    int64_t expire_ms = field_expire(f);
    bool expires = keep_expire && f->expires;
    f = resize(h, f, field_size(f->name_len, value.len, expires));
    h->n_expiring -= f->expires && !expires;
    f->expires = expires;
    f->value_len = (uint32_t)value.len;
    rd_copy_short(f->bytes + f->name_len, value.ptr, value.len);
    field_put_expire(f, expire_ms);
}

void engine_hash_table_make(struct engine_value *v, uint64_t n)
{
    enum { RESERVE_MAX = 1 << 30 };
    v->u.hash = engine_calloc(1, sizeof *v->u.hash);
    v->type = ENGINE_HASH;
    v->encoding = ENGINE_HASHTABLE;
    v->len = ENGINE_HASH_PLAIN;
    engine_table_init(&v->u.hash->fields, &field_table, engine_table_seed());
    engine_table_reserve(&v->u.hash->fields, n < RESERVE_MAX ? n : RESERVE_MAX);
}

static void free_field(void *ctx, void *item)
{
    (void)ctx;
    engine_free(item);
}

void engine_hash_table_free(struct engine_hash *h)
{
    engine_table_drain(&h->fields, free_field, NULL);
    engine_free(h);
}

void engine_hash_table_dup(struct engine_value *ret, struct engine_hash *h)
{
    struct engine_table_iter it;
    struct engine_hash_pair pair;
    engine_hash_table_make(ret, engine_table_count(&h->fields));
    ret->u.hash->n_expiring = h->n_expiring;
    ret->u.hash->next_ms = h->next_ms;
    engine_table_iter_begin(&it, &h->fields);
    for (void *item; (item = engine_table_iter_next(&it)) != NULL;) {
        engine_field_pair(item, &pair);
        engine_table_add(&ret->u.hash->fields, field_new(pair.field, pair.value, pair.expire_ms));
    }
    engine_table_iter_end(&it);
}

bool engine_hash_table_set(struct engine_hash *h, struct rd_slice field, struct rd_slice value,
                           enum engine_hash_mode mode)
{
    struct engine_table_slot slot;
    struct engine_field *f = engine_table_find_or_slot(&h->fields, field, &slot);
    if (f != NULL) {
        rewrite(h, f, value, mode == ENGINE_HASH_KEEP_EXPIRE);
        return false;
    }
    engine_table_add_at(&h->fields, &slot, field_new(field, value, ENGINE_HASH_NO_EXPIRE));
    return true;
}

static void note_expire(struct engine_hash *h, int64_t expire_ms)
{
    if (h->n_expiring == 0 || expire_ms < h->next_ms)
        h->next_ms = expire_ms;
    if (expire_ms < h->pass_next_ms)
        h->pass_next_ms = expire_ms;
    h->n_expiring++;
}

bool engine_hash_table_add(struct engine_hash *h, const struct engine_hash_pair *pair)
{
    struct engine_table_slot slot;
    if (engine_table_find_or_slot(&h->fields, pair->field, &slot) != NULL)
        return false;
    engine_table_add_at(&h->fields, &slot, field_new(pair->field, pair->value, pair->expire_ms));
    if (pair->expire_ms != ENGINE_HASH_NO_EXPIRE)
        note_expire(h, pair->expire_ms);
    return true;
}

bool engine_hash_table_queue(struct engine_hash *h, struct engine_table_queue *q,
                             const struct engine_hash_pair *pair)
{
    struct engine_field *twice;
    if (pair == NULL) {
        twice = engine_table_queue_end(&h->fields, q);
    } else {
        struct engine_field *f = field_new(pair->field, pair->value, pair->expire_ms);
        twice = engine_table_queue_add(&h->fields, q, f);
        if (pair->expire_ms != ENGINE_HASH_NO_EXPIRE)
            note_expire(h, pair->expire_ms);
    }
    if (twice != NULL)
        h->n_expiring -= twice->expires;
    engine_free(twice);
    return twice == NULL;
}

bool engine_hash_table_delete(struct engine_hash *h, struct rd_slice field)
{
    struct engine_field *f = engine_table_remove(&h->fields, field);
    if (f == NULL)
        return false;
    h->n_expiring -= f->expires;
    engine_free(f);
    return true;
}

void engine_hash_table_expire(struct engine_hash *h, struct engine_field *f, int64_t expire_ms)
{
    bool expires = expire_ms != ENGINE_HASH_NO_EXPIRE;
    if (expires != f->expires)
        f = resize(h, f, field_size(f->name_len, f->value_len, expires));
    h->n_expiring -= f->expires;
    f->expires = expires;
    field_put_expire(f, expire_ms);
    if (expires)
        note_expire(h, expire_ms);
}

uint64_t engine_hash_table_expire_due(struct engine_hash *h, int64_t now_ms, engine_hash_due_fn fn,
                                      void *ctx)
{
    struct engine_table_iter it;
    uint64_t n = 0;
    int64_t next_ms = INT64_MAX;
    engine_table_iter_begin(&it, &h->fields);
    for (struct engine_field *f; (f = engine_table_iter_next(&it)) != NULL;) {
        int64_t expire_ms = field_expire(f);
        if (!f->expires)
            continue;
        if (expire_ms < now_ms) {
            fn(ctx, field_name(f));
            engine_hash_table_delete(h, field_name(f));
            n++;
        } else if (expire_ms < next_ms) {
            next_ms = expire_ms;
        }
    }
    engine_table_iter_end(&it);
    h->next_ms = next_ms;
    return n;
}

struct pass {
    struct engine_hash *h;
    int64_t now_ms;
    engine_hash_due_fn fn;
    void *ctx;
    struct engine_hash_pass *ret;
};

static void pass_field(void *ctx, void *item)
{
    struct pass *pass = ctx;
    struct engine_field *f = item;
    int64_t expire_ms = field_expire(f);
    pass->ret->n_seen++;
    if (!f->expires)
        return;
    if (expire_ms < pass->now_ms) {
        pass->fn(pass->ctx, field_name(f));
        engine_hash_table_delete(pass->h, field_name(f));
        pass->ret->n_taken++;
    } else if (expire_ms < pass->h->pass_next_ms) {
        pass->h->pass_next_ms = expire_ms;
    }
}

void engine_hash_table_expire_some(struct engine_hash *h, int64_t now_ms, size_t n_buckets,
                                   engine_hash_due_fn fn, void *ctx, struct engine_hash_pass *ret)
{
    struct pass pass = {.h = h, .now_ms = now_ms, .fn = fn, .ctx = ctx, .ret = ret};
    *ret = (struct engine_hash_pass){0};
    if (h->pass_cursor == 0)
        h->pass_next_ms = INT64_MAX;
    for (size_t i = 0; i < n_buckets && !ret->whole; i++) {
        h->pass_cursor = engine_table_scan(&h->fields, h->pass_cursor, pass_field, &pass);
        ret->whole = h->pass_cursor == 0;
    }
    if (ret->whole)
        h->next_ms = h->pass_next_ms;
}
