/* list_file.c - loading and saving of lists, and the operations of the type. Encodings become what
 * they become in a 7.0 server: nodes of quicklists stay nodes, ziplist nodes become listpacks; the
 * elements of a single ziplist or a plain list are pushed one by one. */
#include "engine/value/list.h"

#include "engine/digest.h"
#include "engine/value/zip.h"
#include "rdb/writer.h"

enum {
    LOADING_APART = 1, /* the first node: ziplists are unpacked */
    LOADING_OPEN = 2,  /* the last node: a plain one whose element has more pieces to come */
};

static void push_ziplist(struct engine_list *list, struct rd_slice blob)
{
    struct engine_zip zip;
    struct engine_lp_item item;
    char tmp[RD_NUM_I64_MAX];
    engine_zip_begin(&zip, RDB_ZIPLIST, blob);
    while (engine_zip_next(&zip, &item))
        engine_list_push(list, ENGINE_LIST_TAIL, engine_lp_item_text(item, tmp));
}

static void adopt_ziplist(struct engine_list *list, struct rd_slice blob)
{
    struct engine_zip zip;
    struct engine_lp_item item;
    uint8_t *lp = engine_lp_new(blob.len);
    uint32_t n = 0;
    engine_zip_begin(&zip, RDB_ZIPLIST, blob);
    for (; engine_zip_next(&zip, &item); n++) {
        if (item.is_num)
            engine_lp_append_int(&lp, item.num);
        else
            engine_lp_append(&lp, rd_slice(item.ptr, item.len));
    }
    engine_lp_shrink(&lp);
    engine_list_adopt(list, lp, n);
}

/* ---- loading ---- */

static struct engine_list_plain *plain_new(size_t size, struct rd_slice bytes)
{
    struct engine_list_plain *plain = engine_alloc(sizeof *plain + size);
    plain->len = bytes.len;
    if (bytes.len > 0)
        memcpy(plain->bytes, bytes.ptr, bytes.len);
    return plain;
}

static void load_packed(struct engine_list *list, const struct rdb_event *ev)
{
    struct rd_slice blob = ev->packed.blob;
    if (ev->packed.plain)
        engine_list_adopt_plain(list, plain_new(blob.len, blob));
    else if (ev->packed.codec == RDB_LISTPACK)
        engine_list_adopt(list, engine_lp_from(blob), (uint32_t)ev->packed.count);
    else if ((list->head.loading & LOADING_APART) != 0)
        push_ziplist(list, blob);
    else
        adopt_ziplist(list, blob);
}

/* Appends a piece to the open node. */
static void add_piece(struct engine_list_node *node, struct rd_slice piece)
{
    struct engine_list_plain *plain = node->plain;
    size_t need = sizeof *plain + plain->len + piece.len;
    if (engine_usable(plain) < need)
        plain = engine_realloc(plain, need + need / 2);
    memcpy(plain->bytes + plain->len, piece.ptr, piece.len);
    plain->len += piece.len;
    node->plain = plain;
}

/* The element is complete: stores it. */
static void close_node(struct engine_list *list, struct engine_list_node *node)
{
    struct engine_list_plain *plain = node->plain;
    node->loading &= LOADING_APART;
    node->plain = NULL;
    engine_list_drop(list, node);
    engine_list_push(list, ENGINE_LIST_TAIL, rd_slice(plain->bytes, plain->len));
    engine_free(plain);
}

static bool load_elem(struct engine_list *list, const struct rdb_event *ev, struct rd_err *err)
{
    char tmp[RD_NUM_I64_MAX];
    const struct rdb_string *str = &ev->elem.str;
    struct rd_slice piece = rdb_string_bytes(str, tmp);
    if (!str->is_int && str->total > UINT32_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, ev->offset, "list element larger than 4 GiB");
    if (str->first && !str->more) {
        engine_list_push(list, ENGINE_LIST_TAIL, piece);
        return true;
    }
    struct engine_list_node *node = list->head.prev;
    if (str->first) {
        node = engine_list_adopt_plain(list, plain_new(piece.len, piece));
        node->loading |= LOADING_OPEN;
    } else {
        add_piece(node, piece);
    }
    if (!str->more)
        close_node(list, node);
    return true;
}

static bool list_load(struct engine_value *v, const struct rdb_event *ev,
                      const struct engine_config *config, struct rd_err *err)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_LIST);
    bool ok = true;
    if (ev->kind == RDB_VALUE) {
        *v = engine_list_value(config);
        if (ev->value.type->id == RDB_TYPE_LIST_ZIPLIST)
            v->u.list->head.loading = LOADING_APART;
    } else if (ev->kind == RDB_PACKED) {
        load_packed(v->u.list, ev);
    } else if (ev->kind == RDB_ELEM) {
        ok = load_elem(v->u.list, ev, err);
    } else if (ev->kind == RDB_VALUE_END) {
        v->u.list->head.loading = 0;
    }
    engine_mem_leave(before);
    return ok;
}

/* ---- saving ---- */

static struct rdb_event begin_event(const struct engine_list *list)
{
    struct rdb_event ev = {.kind = RDB_VALUE, .inner = RD_NO_OFFSET};
    ev.value.type = rdb_type_get(RDB_TYPE_LIST_QUICKLIST_2);
    ev.value.count = list->count;
    ev.value.nodes = engine_list_nodes(list);
    ev.value.min_expire_ms = RDB_NO_EXPIRE;
    return ev;
}

static struct rdb_event node_event(const struct engine_list_node *node)
{
    struct rdb_event ev = {.kind = RDB_PACKED, .inner = RD_NO_OFFSET};
    ev.packed.codec = RDB_LISTPACK;
    ev.packed.count = node->n;
    ev.packed.plain = node->is_plain;
    ev.packed.blob = node->is_plain ? rd_slice(node->plain->bytes, node->plain->len)
                                    : rd_slice(node->lp, engine_lp_bytes(node->lp));
    return ev;
}

static bool list_save(const struct engine_value *v, struct rdb_writer *w, struct rd_err *err)
{
    const struct engine_list *list = v->u.list;
    const struct engine_list_node *node = &list->head;
    struct rdb_event ev = begin_event(list);
    if (!rdb_writer_put(w, &ev, err))
        return false;
    for (uint64_t left = list->count; left > 0; node = node->next) {
        left -= node->n;
        ev = node_event(node);
        if (!rdb_writer_put(w, &ev, err))
            return false;
    }
    ev = (struct rdb_event){.kind = RDB_VALUE_END, .inner = RD_NO_OFFSET};
    return rdb_writer_put(w, &ev, err);
}

/* ---- operations of the type ---- */

static void list_free(struct engine_value *v)
{
    engine_list_free(v->u.list);
}

static void list_dup(struct engine_value *ret, const struct engine_value *v)
{
    ret->u.list = engine_list_dup(v->u.list);
}

static uint64_t list_count(const struct engine_value *v)
{
    return v->u.list->count;
}

static size_t list_effort(const struct engine_value *v)
{
    return engine_list_nodes(v->u.list);
}

static void list_digest(const struct engine_value *v, uint8_t sum[20])
{
    struct engine_list_pos pos;
    for (bool any = engine_list_begin(v->u.list, ENGINE_LIST_HEAD, &pos); any;
         any = engine_list_step(&pos, ENGINE_LIST_TAIL)) {
        char tmp[RD_NUM_I64_MAX];
        engine_digest_mix(sum, engine_list_text(&pos, tmp));
    }
}

const struct engine_type_ops engine_list_ops = {
    .free = list_free,
    .dup = list_dup,
    .count = list_count,
    .effort = list_effort,
    .digest = list_digest,
    .load = list_load,
    .save = list_save,
};
