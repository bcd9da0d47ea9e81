#include "rdb/write/write.h"

/* A quicklist is a number of nodes, each an encoding of several elements or one large element.
 *
 *     type 14   nodes, then each: a string that holds a ziplist
 *     type 18   nodes, then each: 1 and the element as a string, or 2 and a string that holds a
 *               listpack
 *
 * Nodes are counted before the first, so all of them wait in the spool. */

enum { SINCE_LISTPACK = 10, SINCE_PLAIN = 12 };

/* The estimate of servers for the overhead of an element when they fill a node. */
static size_t overhead(enum rdb_codec codec, size_t len)
{
    enum { LISTPACK_ESTIMATE = 8 };
    if (codec == RDB_LISTPACK)
        return LISTPACK_ESTIMATE;
    size_t before = len < 254 ? 1 : 5;
    return before + (len < 64 ? 1 : len < 16384 ? 2 : 5);
}

/* An element that is so large that it is a node without a listpack. */
static bool is_plain(const struct rdb_writer *w, uint64_t len)
{
    if (w->list.type != RDB_TYPE_LIST_QUICKLIST_2)
        return false;
    return rdb_write_has(w, SINCE_PLAIN) ? len > NODE_BYTES_MAX : len > 1 << 30;
}

static bool put_container(struct rdb_writer *w, unsigned container)
{
    w->list.n_nodes++;
    return w->list.type != RDB_TYPE_LIST_QUICKLIST_2 || rdb_put_len(w->body.sink, container);
}

static bool put_node(struct rdb_writer *w, unsigned container, struct rd_slice bytes)
{
    return put_container(w, container) && rdb_put_string(&w->put, w->body.sink, bytes);
}

static bool flush(struct rdb_writer *w)
{
    struct rdb_list *l = &w->list;
    if (!l->open)
        return true;
    l->open = false;
    return rdb_packer_end(&l->packer) && put_node(w, RDB_NODE_PACKED, rd_buf_slice(&l->node));
}

static bool has_room(const struct rdb_list *l, size_t len)
{
    return rdb_packer_size(&l->packer) + len + overhead(l->codec, len) <= NODE_BYTES_MAX;
}

bool rdb_list_add(struct rdb_writer *w, struct rd_slice text)
{
    struct rdb_list *l = &w->list;
    if (l->open && !has_room(l, text.len) && !flush(w))
        return false;
    if (is_plain(w, text.len))
        return flush(w) && put_node(w, RDB_NODE_PLAIN, text);
    if (!l->open) {
        rd_buf_reset(&l->node);
        if (!rdb_packer_begin(&l->packer, l->codec, &l->node))
            return false;
        l->open = true;
    }
    if (!rdb_packer_has_room(&l->packer, text.len))
        return rdb_write_unsupported(w, "list element of 4 GiB");
    return rdb_packer_add(&l->packer, text);
}

/* The first bytes of an element that is too long to be collected: writes the header of its node. */
static bool begin_long(struct rdb_writer *w)
{
    struct rdb_list *l = &w->list;
    uint64_t len = w->pieces.total;
    l->around = (struct rdb_packer_around){0};
    if (!flush(w))
        return false;
    if (is_plain(w, len))
        return put_container(w, RDB_NODE_PLAIN) && rdb_put_len(w->body.sink, len);
    if (!rdb_packer_around(&l->around, l->codec, len))
        return rdb_write_unsupported(w, "list element of 4 GiB");
    return put_container(w, RDB_NODE_PACKED) &&
           rdb_put_len(w->body.sink, l->around.head_len + len + l->around.tail_len) &&
           rd_sink_write(w->body.sink, l->around.head, l->around.head_len);
}

static bool long_piece(struct rdb_writer *w, enum rdb_piece_status st, struct rd_slice text)
{
    const struct rdb_packer_around *around = &w->list.around;
    if (st == PIECE_FIRST && !begin_long(w))
        return false;
    if (!rd_sink_write(w->body.sink, text.ptr, text.len))
        return false;
    return st != PIECE_LAST || rd_sink_write(w->body.sink, around->tail, around->tail_len);
}

bool rdb_list_begin(struct rdb_writer *w)
{
    struct rdb_list *l = &w->list;
    bool listpack = rdb_write_has(w, SINCE_LISTPACK);
    l->type = listpack ? RDB_TYPE_LIST_QUICKLIST_2 : RDB_TYPE_LIST_QUICKLIST;
    l->codec = listpack ? RDB_LISTPACK : RDB_ZIPLIST;
    l->n_nodes = 0;
    l->open = false;
    return rdb_spool_begin(w, &w->body);
}

bool rdb_list_elem(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (ev->kind != RDB_ELEM || ev->elem.role != RDB_ROLE_ELEMENT)
        return rdb_write_misuse(w, "an element does not fit its list");
    struct rd_slice text = {0};
    enum rdb_piece_status st = rdb_write_piece(w, &ev->elem.str, PIECES_HELD_MAX, &text);
    switch (st) {
    case PIECE_FAIL:
    case PIECE_HELD:
        return st == PIECE_HELD;
    case PIECE_WHOLE:
        return rdb_list_add(w, text);
    case PIECE_FIRST:
    case PIECE_NEXT:
    case PIECE_LAST:
        break;
    }
    return long_piece(w, st, text);
}

/* Ziplist nodes stay ziplists for targets that also have listpacks, as long as the list has no
 * other nodes. */
static void choose_type(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_list *l = &w->list;
    if (l->n_nodes == 0 && !l->open && !ev->packed.plain && ev->packed.codec == RDB_ZIPLIST) {
        l->type = RDB_TYPE_LIST_QUICKLIST;
        l->codec = RDB_ZIPLIST;
    }
}

bool rdb_list_packed(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_list *l = &w->list;
    if (w->pieces.open)
        return rdb_write_misuse(w, "the list element before is incomplete");
    choose_type(w, ev);
    if (ev->packed.plain) {
        if (l->type == RDB_TYPE_LIST_QUICKLIST_2)
            return flush(w) && put_node(w, RDB_NODE_PLAIN, ev->packed.blob);
        return rdb_list_add(w, ev->packed.blob);
    }
    if (ev->packed.codec != l->codec)
        return rdb_write_unpack(w, ev);
    return flush(w) && put_node(w, RDB_NODE_PACKED, ev->packed.blob);
}

bool rdb_list_end(struct rdb_writer *w)
{
    struct rdb_list *l = &w->list;
    return flush(w) && rdb_write_prefix(w, l->type) && rdb_put_len(w->out, l->n_nodes) &&
           rdb_spool_move(&w->body, w->out);
}
