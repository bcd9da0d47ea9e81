/* The operations of the type; see engine_type_ops in value.h. */

#include "engine/value/zset.h"

#include "engine/digest.h"
#include "engine/value/zip.h"
#include "rdb/writer.h"

#include <math.h>

enum { QUEUE_FROM = 1000 /* members waiting to be added to the table */ };

/* The state of loading a set that is large or whose members do not arrive in one string. */
struct engine_zset_loading {
    struct engine_pieces pieces;
    struct engine_table_queue queue; /* the nodes are in the list already */
    bool queued;
    bool packed;
};

static void loading_done(struct engine_zset *zset)
{
    if (zset->loading == NULL)
        return;
    engine_pieces_done(&zset->loading->pieces);
    engine_scratch_free(zset->loading);
    zset->loading = NULL;
}

static void zset_ops_free(struct engine_value *v)
{
    if (v->encoding != ENGINE_SKIPLIST) {
        engine_lp_free(v->u.lp);
        return;
    }
    if (v->u.zset == NULL)
        return;
    loading_done(v->u.zset);
    engine_table_done(&v->u.zset->members);
    engine_skiplist_done(&v->u.zset->list);
    engine_free(v->u.zset);
}

static void zset_ops_dup(struct engine_value *ret, const struct engine_value *v)
{
    if (v->encoding != ENGINE_SKIPLIST) {
        ret->u.lp = engine_lp_dup(v->u.lp);
        return;
    }
    const struct engine_skiplist *list = &v->u.zset->list;
    ret->u = engine_zset_new_skiplist().u;
    engine_table_reserve(&ret->u.zset->members, list->count);
    for (const struct engine_skiplist_node *node = list->last; node != NULL; node = node->back)
        engine_zset_push(ret, node->score, engine_skiplist_member(node));
}

static size_t zset_ops_effort(const struct engine_value *v)
{
    return v->encoding == ENGINE_SKIPLIST ? v->u.zset->list.count : 1;
}

static void zset_ops_digest(const struct engine_value *v, uint8_t sum[20])
{
    struct engine_zset_cursor at;
    for (bool is = engine_zset_at(v, 0, &at); is; is = engine_zset_next(&at)) {
        char score[ENGINE_ZSET_SCORE_MAX];
        uint8_t pair[ENGINE_DIGEST] = {0};
        size_t len = engine_zset_put_score(score, engine_zset_score_at(&at));
        engine_digest_mix(pair, engine_zset_member(&at));
        engine_digest_mix(pair, rd_slice(score, len));
        engine_digest_xor(sum, rd_slice(pair, sizeof pair));
    }
}

/* ---- from snapshots ---- */

static bool is_packed(const struct rdb_type *type)
{
    return type->id == RDB_TYPE_ZSET_LISTPACK || type->id == RDB_TYPE_ZSET_ZIPLIST;
}

static struct engine_zset_loading *loading_of(struct engine_value *v)
{
    bool packed = v->encoding != ENGINE_SKIPLIST;
    if (packed)
        *v = engine_zset_new_skiplist();
    struct engine_zset *zset = v->u.zset;
    if (zset->loading == NULL) {
        zset->loading = engine_scratch_alloc(sizeof *zset->loading);
        *zset->loading = (struct engine_zset_loading){.packed = packed};
    }
    return zset->loading;
}

static void load_begin(struct engine_value *v, const struct rdb_event *ev)
{
    enum { RESERVE_MAX = 1 << 28 };
    uint64_t n = ev->value.count;
    *v = (struct engine_value){.type = ENGINE_ZSET, .encoding = ENGINE_LISTPACK, .lru = v->lru};
    if (is_packed(ev->value.type))
        return;
    *v = engine_zset_new_skiplist();
    if (n == RDB_UNKNOWN)
        return;
    engine_table_reserve(&v->u.zset->members, n < RESERVE_MAX ? (size_t)n : RESERVE_MAX);
    if (n >= QUEUE_FROM)
        loading_of(v)->queued = true;
}

static bool duplicate(const struct rdb_event *ev, struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_CORRUPT, ev->offset, "duplicate member");
}

static bool load_member(struct engine_value *v, struct rd_slice member, const struct rdb_event *ev,
                        struct rd_err *err)
{
    struct engine_table_slot slot;
    struct engine_zset *zset = v->u.zset;
    if (isnan(ev->elem.score))
        return rd_err_set(err, RD_ERR_CORRUPT, ev->offset, "score that is not a number");
    if (zset->loading != NULL && zset->loading->queued) {
        void *node = engine_skiplist_insert(&zset->list, ev->elem.score, member);
        return engine_table_queue_add(&zset->members, &zset->loading->queue, node) == NULL ||
               duplicate(ev, err);
    }
    if (engine_table_find_or_slot(&zset->members, member, &slot) == NULL) {
        engine_table_add_at(&zset->members, &slot,
                            engine_skiplist_insert(&zset->list, ev->elem.score, member));
        return true;
    }
    /* Servers do not look for duplicates in a packed encoding either. */
    return (zset->loading != NULL && zset->loading->packed) || duplicate(ev, err);
}

static bool load_elem(struct engine_value *v, const struct rdb_event *ev, struct rd_err *err)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice member;
    const struct rdb_string *str = &ev->elem.str;
    bool whole = str->first && !str->more;
    if (str->total > UINT32_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, ev->offset, "member larger than 4 GiB");
    if (!whole || v->encoding != ENGINE_SKIPLIST) {
        struct engine_zset_loading *loading = loading_of(v);
        if (!engine_pieces_take(&loading->pieces, str, &member))
            return true;
        return load_member(v, member, ev, err);
    }
    member = rdb_string_bytes(str, tmp);
    return load_member(v, member, ev, err);
}

static void load_packed(struct engine_value *v, const struct rdb_event *ev)
{
    struct engine_zip zip;
    struct engine_lp_item item;
    char tmp[RD_NUM_I64_MAX];
    zset_ops_free(v);
    v->encoding = ENGINE_LISTPACK;
    if (ev->packed.codec == RDB_LISTPACK) {
        v->u.lp = engine_lp_from(ev->packed.blob);
        return;
    }
    v->u.lp = engine_lp_new(ev->packed.blob.len);
    engine_zip_begin(&zip, ev->packed.codec, ev->packed.blob);
    while (engine_zip_next(&zip, &item))
        engine_lp_append(&v->u.lp, engine_lp_item_text(item, tmp));
    engine_lp_shrink(&v->u.lp);
}

static bool load_end(struct engine_value *v, const struct engine_config *config)
{
    size_t n = (size_t)engine_zset_count(v);
    if (v->encoding != ENGINE_SKIPLIST) {
        if (n > config->zset_max_listpack_entries)
            engine_zset_become_skiplist(v, n);
        return true;
    }
    struct engine_zset *zset = v->u.zset;
    if (zset->loading != NULL &&
        engine_table_queue_end(&zset->members, &zset->loading->queue) != NULL)
        return false;
    /* For a set that was packed in the file, only the number of members decides. */
    struct engine_config any_length = *config;
    if (zset->loading != NULL && zset->loading->packed)
        any_length.zset_max_listpack_value = SIZE_MAX;
    loading_done(zset);
    engine_zset_settle(v, &any_length);
    return true;
}

static bool zset_ops_load(struct engine_value *v, const struct rdb_event *ev,
                          const struct engine_config *config, struct rd_err *err)
{
    switch (ev->kind) {
    case RDB_VALUE:
        load_begin(v, ev);
        return true;
    case RDB_ELEM:
        return load_elem(v, ev, err);
    case RDB_PACKED:
        load_packed(v, ev);
        return true;
    case RDB_VALUE_END:
        if (v->encoding != ENGINE_SKIPLIST && v->u.lp == NULL)
            v->u.lp = engine_lp_new(0);
        return load_end(v, config) || duplicate(ev, err);
    default:
        return true;
    }
}

/* ---- to snapshots ---- */

static bool save_begin(struct rdb_writer *w, unsigned type, uint64_t count, struct rd_err *err)
{
    struct rdb_event ev = {.kind = RDB_VALUE, .inner = RD_NO_OFFSET};
    ev.value.type = rdb_type_get(type);
    ev.value.count = count;
    ev.value.nodes = RDB_UNKNOWN;
    ev.value.min_expire_ms = RDB_NO_EXPIRE;
    return rdb_writer_put(w, &ev, err);
}

static bool save_lp(const struct engine_value *v, struct rdb_writer *w, struct rd_err *err)
{
    struct rdb_event ev = {.kind = RDB_PACKED, .inner = RD_NO_OFFSET};
    ev.packed.codec = RDB_LISTPACK;
    ev.packed.blob = rd_slice(v->u.lp, engine_lp_bytes(v->u.lp));
    ev.packed.count = engine_zset_count(v);
    return save_begin(w, RDB_TYPE_ZSET_LISTPACK, ev.packed.count, err) &&
           rdb_writer_put(w, &ev, err);
}

/* From the last to the first, as servers do, because that is the fastest order to load. */
static bool save_list(const struct engine_skiplist *list, struct rdb_writer *w, struct rd_err *err)
{
    struct rdb_event ev = {.kind = RDB_ELEM, .inner = RD_NO_OFFSET};
    ev.elem.role = RDB_ROLE_MEMBER;
    ev.elem.expire_ms = RDB_NO_EXPIRE;
    if (!save_begin(w, RDB_TYPE_ZSET_2, list->count, err))
        return false;
    for (const struct engine_skiplist_node *node = list->last; node != NULL; node = node->back) {
        struct rd_slice member = engine_skiplist_member(node);
        ev.elem.str = (struct rdb_string){
            .ptr = member.ptr, .len = member.len, .total = member.len, .first = true};
        ev.elem.score = node->score;
        if (!rdb_writer_put(w, &ev, err))
            return false;
    }
    return true;
}

static bool zset_ops_save(const struct engine_value *v, struct rdb_writer *w, struct rd_err *err)
{
    struct rdb_event end = {.kind = RDB_VALUE_END, .inner = RD_NO_OFFSET};
    bool ok =
        v->encoding == ENGINE_SKIPLIST ? save_list(&v->u.zset->list, w, err) : save_lp(v, w, err);
    return ok && rdb_writer_put(w, &end, err);
}

static struct engine_table *zset_ops_table(const struct engine_value *v)
{
    return v->encoding == ENGINE_SKIPLIST ? &v->u.zset->members : NULL;
}

const struct engine_type_ops engine_zset_ops = {
    .free = zset_ops_free,
    .dup = zset_ops_dup,
    .count = engine_zset_count,
    .effort = zset_ops_effort,
    .table = zset_ops_table,
    .digest = zset_ops_digest,
    .load = zset_ops_load,
    .save = zset_ops_save,
};
