/* Loads hashes from snapshots and saves them. Packed values are adopted unchanged if they are
 * listpacks. While the elements of other encodings arrive, v points to a struct loader and v->len
 * is LOADING. */
#include "base/copy.h"
#include "engine/listpack.h"
#include "engine/mem.h"
#include "engine/value/hash_impl.h"
#include "engine/value/zip.h"
#include "rdb/writer.h"

struct loader {
    struct engine_value value; /* the hash so far */
    struct engine_pieces pieces;
    uint8_t *field; /* the name whose value has not arrived yet */
    size_t field_len;
    size_t field_cap;
    bool was_packed;
    struct engine_table_queue *queue; /* of a value that is a table from the start, or NULL */
};

static struct loader *loader_of(const struct engine_value *v)
{
    return (struct loader *)(void *)v->u.bytes;
}

static bool is_loading(const struct engine_value *v)
{
    return v->len == ENGINE_HASH_LOADING;
}

static void load_begin(struct engine_value *v, uint64_t count, const struct engine_config *config)
{
    struct loader *load = engine_calloc(1, sizeof *load);
    load->value = engine_hash_new();
    if (count != RDB_UNKNOWN && count > config->hash_max_listpack_entries) {
        engine_lp_free(load->value.u.lp);
        engine_hash_table_make(&load->value, count);
        load->queue = engine_scratch_alloc(sizeof *load->queue);
        *load->queue = (struct engine_table_queue){0};
    }
    v->u.bytes = (uint8_t *)load;
    v->encoding = ENGINE_HASHTABLE;
    v->len = ENGINE_HASH_LOADING;
}

/* A packed value that is too long for one event arrives by element. Elements of a zipmap count with
 * their length; others stay packed whatever their length. */
static void load_begin_packed(struct engine_value *v, const struct engine_config *config)
{
    bool is_map = v->len == ENGINE_HASH_ZIPMAP;
    load_begin(v, RDB_UNKNOWN, config);
    loader_of(v)->was_packed = !is_map;
}

/* False: a duplicate field. */
static bool load_end(struct engine_value *v)
{
    struct loader *load = loader_of(v);
    bool good = true;
    while (load->queue != NULL && !engine_hash_table_queue(load->value.u.hash, load->queue, NULL))
        good = false;
    engine_scratch_free(load->queue);
    engine_pieces_done(&load->pieces);
    engine_free(load->field);
    v->u = load->value.u;
    v->len = load->value.len;
    v->encoding = load->value.encoding;
    engine_free(load);
    return good;
}

void engine_hash_file_abort(struct engine_value *v)
{
    if (is_loading(v))
        load_end(v);
}

static bool bad_time(const struct rdb_event *ev, struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_CORRUPT, ev->offset, "field with an invalid expiry time");
}

static bool duplicate(const struct rdb_event *ev, struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_CORRUPT, ev->offset, "duplicate field in a hash");
}

/* ---- element by element ---- */

static void keep_field(struct loader *load, struct rd_slice text)
{
    if (text.len > load->field_cap || load->field == NULL) {
        load->field_cap = text.len + 32;
        load->field = engine_realloc(load->field, load->field_cap);
    }
    rd_copy_short(load->field, text.ptr, text.len);
    load->field_len = text.len;
}

/* As in servers, a text that is too long for a listpack makes the value a table, unless it comes
 * from a packed encoding. False: a duplicate field. */
static bool add_pair(struct loader *load, const struct engine_hash_pair *pair,
                     const struct engine_config *config)
{
    struct engine_value *v = &load->value;
    struct rd_slice texts[] = {pair->field, pair->value};
    if (load->queue != NULL)
        return engine_hash_table_queue(v->u.hash, load->queue, pair);
    if (!load->was_packed)
        engine_hash_prepare(v, 2, texts, config);
    if (v->encoding == ENGINE_LISTPACK && engine_hash_count(v) >= config->hash_max_listpack_entries)
        engine_hash_pack_to_table(v);
    if (v->encoding == ENGINE_HASHTABLE)
        return engine_hash_table_add(v->u.hash, pair);
    if (engine_hash_pack_find(v, pair->field) != NULL)
        return false;
    if (pair->expire_ms != ENGINE_HASH_NO_EXPIRE && !engine_hash_is_triples(v))
        engine_hash_pack_to_triples(v);
    engine_hash_pack_add(v, pair);
    return true;
}

static bool time_ok(int64_t expire_ms)
{
    return expire_ms > 0 && expire_ms <= ENGINE_HASH_EXPIRE_MAX;
}

static bool load_value(struct loader *load, const struct rdb_event *ev, struct rd_slice text,
                       const struct engine_config *config, struct rd_err *err)
{
    struct engine_hash_pair pair = {.field = rd_slice(load->field, load->field_len),
                                    .value = text,
                                    .expire_ms = ev->elem.expire_ms};
    if (pair.expire_ms != ENGINE_HASH_NO_EXPIRE && !time_ok(pair.expire_ms))
        return bad_time(ev, err);
    return add_pair(load, &pair, config) || duplicate(ev, err);
}

static bool load_elem(struct loader *load, const struct rdb_event *ev,
                      const struct engine_config *config, struct rd_err *err)
{
    bool is_field = ev->elem.role == RDB_ROLE_FIELD;
    struct rd_slice text;
    if (ev->elem.str.total > (is_field ? INT32_MAX : UINT32_MAX))
        return rd_err_set(err, RD_ERR_LIMIT, ev->offset, "field or value too long");
    if (!engine_pieces_take(&load->pieces, &ev->elem.str, &text))
        return true;
    if (!is_field)
        return load_value(load, ev, text, config, err);
    keep_field(load, text);
    return true;
}

/* ---- packed ---- */

static bool load_zip(struct engine_value *v, const struct rdb_event *ev,
                     const struct engine_config *config, struct rd_err *err)
{
    struct engine_zip zip;
    struct engine_lp_item name, value;
    struct engine_hash_pair pair = {.expire_ms = ENGINE_HASH_NO_EXPIRE};
    bool is_map = ev->packed.codec == RDB_ZIPMAP;
    size_t longest = 0;
    *v = engine_hash_new();
    engine_zip_begin(&zip, ev->packed.codec, ev->packed.blob);
    while (engine_zip_next(&zip, &name) && engine_zip_next(&zip, &value)) {
        pair.field = engine_lp_item_text(name, pair.tmp[0]);
        pair.value = engine_lp_item_text(value, pair.tmp[1]);
        if (engine_hash_pack_find(v, pair.field) != NULL)
            return duplicate(ev, err);
        engine_hash_pack_add(v, &pair);
        longest = pair.field.len > longest ? pair.field.len : longest;
        longest = pair.value.len > longest ? pair.value.len : longest;
    }
    if (engine_hash_count(v) > config->hash_max_listpack_entries ||
        (is_map && longest > config->hash_max_listpack_value))
        engine_hash_pack_to_table(v);
    else
        engine_lp_shrink(&v->u.lp);
    return true;
}

/* Whether every third entry is a time, in ascending order. */
static bool check_times(uint8_t *lp, bool *ret_in_order)
{
    int64_t before = 0;
    unsigned i = 0;
    *ret_in_order = true;
    for (uint8_t *p = engine_lp_first(lp); p != NULL; p = engine_lp_next(p)) {
        struct engine_lp_item item = engine_lp_get(p);
        if (i++ % 3 != 2)
            continue;
        if (!item.is_num || (item.num != 0 && !time_ok(item.num)))
            return false;
        int64_t time = item.num == 0 ? INT64_MAX : item.num;
        *ret_in_order &= time >= before;
        before = time;
    }
    return i % 3 == 0;
}

static void sort_triples(struct engine_value *v)
{
    struct engine_value sorted = *v;
    struct engine_hash_iter it;
    struct engine_hash_pair pair;
    sorted.u.lp = engine_lp_new(engine_lp_bytes(v->u.lp));
    engine_hash_iter_begin(&it, v);
    while (engine_hash_iter_next(&it, &pair))
        engine_hash_pack_add(&sorted, &pair);
    engine_hash_iter_end(&it);
    engine_lp_free(v->u.lp);
    *v = sorted;
}

static bool check_triples(struct engine_value *v, const struct rdb_event *ev, struct rd_err *err)
{
    bool in_order;
    if (!check_times(v->u.lp, &in_order))
        return bad_time(ev, err);
    if (!in_order)
        sort_triples(v);
    return true;
}

static bool load_listpack(struct engine_value *v, const struct rdb_event *ev,
                          const struct engine_config *config, struct rd_err *err)
{
    v->u.lp = engine_lp_from(ev->packed.blob);
    if (engine_lp_count(v->u.lp) % engine_hash_width(v) != 0)
        return rd_err_set(err, RD_ERR_CORRUPT, ev->offset, "field without a value");
    if (v->len == ENGINE_HASH_TRIPLES && !check_triples(v, ev, err))
        return false;
    return engine_hash_count(v) <= config->hash_max_listpack_entries ||
           engine_hash_pack_to_table(v) || duplicate(ev, err);
}

static bool load_packed(struct engine_value *v, const struct rdb_event *ev,
                        const struct engine_config *config, struct rd_err *err)
{
    if (ev->packed.codec == RDB_LISTPACK)
        return load_listpack(v, ev, config, err);
    return load_zip(v, ev, config, err);
}

/* ---- events ---- */

static void value_begins(struct engine_value *v, const struct rdb_event *ev,
                         const struct engine_config *config)
{
    v->type = ENGINE_HASH;
    v->encoding = ENGINE_LISTPACK;
    switch ((int)ev->value.type->id) {
    case RDB_TYPE_HASH_LISTPACK_EX:
    case RDB_TYPE_HASH_LISTPACK_EX_PRE_GA:
        v->len = ENGINE_HASH_TRIPLES;
        break;
    case RDB_TYPE_HASH_ZIPMAP:
        v->len = ENGINE_HASH_ZIPMAP;
        break;
    case RDB_TYPE_HASH_LISTPACK:
    case RDB_TYPE_HASH_ZIPLIST:
        break;
    default:
        load_begin(v, ev->value.count, config);
    }
}

static bool value_ends(struct engine_value *v, const struct rdb_event *ev, struct rd_err *err)
{
    if (is_loading(v))
        return load_end(v) || duplicate(ev, err);
    if (v->u.lp == NULL)
        *v = engine_hash_new();
    return true;
}

bool engine_hash_file_load(struct engine_value *v, const struct rdb_event *ev,
                           const struct engine_config *config, struct rd_err *err)
{
    switch ((int)ev->kind) {
    case RDB_VALUE:
        value_begins(v, ev, config);
        return true;
    case RDB_PACKED:
        return load_packed(v, ev, config, err);
    case RDB_ELEM:
        if (!is_loading(v))
            load_begin_packed(v, config);
        return load_elem(loader_of(v), ev, config, err);
    case RDB_VALUE_END:
        return value_ends(v, ev, err);
    default:
        return true;
    }
}

/* ---- saving ---- */

static struct rdb_event elem_event(enum rdb_role role, struct rd_slice text)
{
    struct rdb_event ev = {.kind = RDB_ELEM, .inner = RD_NO_OFFSET};
    ev.elem.role = role;
    ev.elem.expire_ms = RDB_NO_EXPIRE;
    ev.elem.str.ptr = text.ptr;
    ev.elem.str.len = text.len;
    ev.elem.str.total = text.len;
    ev.elem.str.first = true;
    return ev;
}

static bool save_pairs(const struct engine_value *v, struct rdb_writer *w, struct rd_err *err)
{
    struct engine_hash_iter it;
    struct engine_hash_pair pair;
    bool good = true;
    engine_hash_iter_begin(&it, v);
    while (good && engine_hash_iter_next(&it, &pair)) {
        struct rdb_event field = elem_event(RDB_ROLE_FIELD, pair.field);
        struct rdb_event value = elem_event(RDB_ROLE_VALUE, pair.value);
        value.elem.expire_ms = pair.expire_ms;
        good = rdb_writer_put(w, &field, err) && rdb_writer_put(w, &value, err);
    }
    engine_hash_iter_end(&it);
    return good;
}

static bool save_packed(const struct engine_value *v, struct rdb_writer *w, struct rd_err *err)
{
    struct rdb_event ev = {.kind = RDB_PACKED, .inner = RD_NO_OFFSET};
    ev.packed.codec = RDB_LISTPACK;
    ev.packed.blob = rd_slice(v->u.lp, engine_lp_bytes(v->u.lp));
    ev.packed.count = engine_lp_count(v->u.lp);
    return rdb_writer_put(w, &ev, err);
}

/* Times are omitted if no field expires, so that every version can read the hash. */
static enum rdb_type_id type_of(const struct engine_value *v)
{
    bool expires = engine_hash_next_expire(v) != ENGINE_HASH_NO_EXPIRE;
    if (v->encoding == ENGINE_HASHTABLE)
        return expires ? RDB_TYPE_HASH_METADATA : RDB_TYPE_HASH;
    if (!engine_hash_is_triples(v))
        return RDB_TYPE_HASH_LISTPACK;
    return expires ? RDB_TYPE_HASH_LISTPACK_EX : RDB_TYPE_HASH;
}

bool engine_hash_file_save(const struct engine_value *v, struct rdb_writer *w, struct rd_err *err)
{
    enum rdb_type_id type = type_of(v);
    bool packed = type == RDB_TYPE_HASH_LISTPACK || type == RDB_TYPE_HASH_LISTPACK_EX;
    struct rdb_event begin = {.kind = RDB_VALUE, .inner = RD_NO_OFFSET};
    begin.value.type = rdb_type_get(type);
    begin.value.count = engine_hash_count(v);
    begin.value.nodes = RDB_UNKNOWN;
    begin.value.min_expire_ms = engine_hash_next_expire(v);
    struct rdb_event end = {.kind = RDB_VALUE_END, .inner = RD_NO_OFFSET};
    return rdb_writer_put(w, &begin, err) &&
           (packed ? save_packed(v, w, err) : save_pairs(v, w, err)) &&
           rdb_writer_put(w, &end, err);
}
