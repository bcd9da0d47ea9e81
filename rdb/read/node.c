/* node.c - the entries of a stream, packed in the listpacks of its nodes.
 *
 *     live deleted n-fields field*n-fields 0                                   the node's first
 * entry { flags ms-diff seq-diff [n-fields] { [field] value }* lp-count }*       entries
 *
 * flags: 1 deleted, 2 same fields as the node's (then n-fields and field are left out). lp-count is
 * how many listpack entries the stream entry takes, itself not counted.
 */
#include "rdb/read/reader_impl.h"

enum { FLAG_DELETED = 1, FLAG_SAME_FIELDS = 2 };

static int bad(struct rdb_reader *r, const char *why)
{
    r->walk.pack.bad = 0;
    r->walk.pack.why = why;
    return rdb_packed_bad(r);
}

static bool gives(const struct rdb_reader *r)
{
    return r->detail == RDB_DETAIL_ELEMENTS || (r->detail == RDB_DETAIL_PACKED && !r->walk.whole);
}

static bool live(const struct rdb_read_node *n)
{
    return (n->flags & FLAG_DELETED) == 0;
}

static bool is_string_phase(enum node_phase phase)
{
    return phase == NODE_FIELD || phase == NODE_OWN_FIELD || phase == NODE_VALUE;
}

/* A shared name: its length or, for an integer, all ones; then the bytes. */
static int keep_shared(struct rdb_reader *r, const struct rdb_pack_entry *e)
{
    struct rdb_read_node *n = &r->node;
    uint8_t head[12];
    if (n->shared.len + e->len > FIELDS_MAX)
        return rdb_read_fail(r, RD_ERR_LIMIT, r->feed.off, "field names of a stream node too long");
    rd_put_le32(head, e->is_int ? UINT32_MAX : (uint32_t)e->len);
    rd_put_le64(head + 4, (uint64_t)e->num);
    if (!rd_buf_add(&n->shared, head, e->is_int ? 12 : 4) ||
        !rd_buf_add(&n->shared, e->str, (size_t)e->len))
        return rdb_read_nomem(r, (size_t)e->len);
    return STEP_ON;
}

static void give_shared(struct rdb_reader *r, struct rdb_event *ev)
{
    struct rdb_read_node *n = &r->node;
    const uint8_t *p = n->shared.ptr + n->shared_at;
    uint32_t len = rd_get_le32(p);
    *ev = (struct rdb_event){.kind = RDB_ELEM, .offset = r->feed.off, .inner = r->walk.pack.pos};
    ev->elem.role = RDB_ROLE_FIELD;
    ev->elem.expire_ms = RDB_NO_EXPIRE;
    ev->elem.str.first = true;
    if (len == UINT32_MAX) {
        ev->elem.str.is_int = true;
        ev->elem.str.num = (int64_t)rd_get_le64(p + 4);
        n->shared_at += 12;
    } else {
        ev->elem.str.ptr = p + 4;
        ev->elem.str.len = len;
        ev->elem.str.total = len;
        n->shared_at += 4 + (size_t)len;
    }
    n->give_field = false;
}

static void give_entry(struct rdb_reader *r, struct rdb_event *ev)
{
    ev->kind = RDB_ENTRY;
    ev->offset = r->feed.off;
    ev->inner = r->node.entry_at;
    ev->raw = rd_slice(NULL, 0);
    ev->entry.id = r->node.id;
    ev->entry.n_fields = r->node.n_fields;
}

static void check_order(struct rdb_reader *r)
{
    struct stream *s = &r->stream;
    struct rdb_read_node *n = &r->node;
    if (s->any && rdb_stream_id_cmp(n->id, s->last) <= 0)
        rdb_read_note(r, RDB_NOTE_ENTRY_ORDER, r->feed.off, r->walk.pack.pos, r->n_elems,
                      "stream entry whose id is not greater than the one before");
    s->any = true;
    s->last = n->id;
}

/* The number of fields is known: the strings of the entry come next. */
static int begin_strings(struct rdb_reader *r, struct rdb_event *ev)
{
    struct rdb_read_node *n = &r->node;
    bool same = (n->flags & FLAG_SAME_FIELDS) != 0;
    n->i = 0;
    n->shared_at = 0;
    n->give_field = same;
    n->phase = n->n_fields == 0 ? NODE_LP_COUNT : same ? NODE_VALUE : NODE_OWN_FIELD;
    if (!gives(r) || !live(n))
        return STEP_ON;
    give_entry(r, ev);
    return RDB_EVENT;
}

static int end_entry(struct rdb_reader *r, int64_t lp_count)
{
    struct rdb_read_node *n = &r->node;
    uint64_t expect = (n->flags & FLAG_SAME_FIELDS) != 0 ? n->n_fields + 3 : 2 * n->n_fields + 4;
    if ((uint64_t)lp_count != expect)
        return bad(r, "stream entry whose length is not that of its fields");
    if (live(n)) {
        n->seen_live++;
        r->n_elems++;
        r->stream.live++;
    } else {
        n->seen_deleted++;
    }
    n->phase = NODE_FLAGS;
    return STEP_ON;
}

/* A number in the header of the node or of an entry. It has been consumed. */
static int number(struct rdb_reader *r, int64_t num, struct rdb_event *ev)
{
    struct rdb_read_node *n = &r->node;
    switch (n->phase) {
    case NODE_COUNT:
        n->live = (uint64_t)num;
        n->phase = NODE_DELETED;
        return STEP_ON;
    case NODE_DELETED:
        n->deleted = (uint64_t)num;
        n->phase = NODE_N_FIELDS;
        return STEP_ON;
    case NODE_N_FIELDS:
        n->n_shared = (uint64_t)num;
        n->i = 0;
        n->phase = num == 0 ? NODE_ZERO : NODE_FIELD;
        return num < 0 ? bad(r, "negative number of fields") : STEP_ON;
    case NODE_ZERO:
        n->phase = NODE_FLAGS;
        return num != 0 ? bad(r, "stream node whose first entry does not end with 0") : STEP_ON;
    case NODE_FLAGS:
        n->flags = num;
        n->phase = NODE_MS;
        return STEP_ON;
    case NODE_MS:
        n->id.ms = n->base.ms + (uint64_t)num;
        n->phase = NODE_SEQ;
        return STEP_ON;
    case NODE_SEQ:
        n->id.seq = n->base.seq + (uint64_t)num;
        check_order(r);
        n->n_fields = n->n_shared;
        n->phase = NODE_OWN_N;
        return (n->flags & FLAG_SAME_FIELDS) != 0 ? begin_strings(r, ev) : STEP_ON;
    case NODE_OWN_N:
        n->n_fields = (uint64_t)num;
        return num < 0 ? bad(r, "negative number of fields") : begin_strings(r, ev);
    case NODE_LP_COUNT:
        return end_entry(r, num);
    case NODE_FIELD:
    case NODE_OWN_FIELD:
    case NODE_VALUE:
        break;
    }
    return STEP_ON;
}

/* Advances after a string was returned or skipped. */
static void next_string(struct rdb_read_node *n)
{
    if (n->phase == NODE_OWN_FIELD) {
        n->phase = NODE_VALUE;
        return;
    }
    n->i++;
    if (n->phase == NODE_FIELD) {
        if (n->i == n->n_shared)
            n->phase = NODE_ZERO;
        return;
    }
    bool same = (n->flags & FLAG_SAME_FIELDS) != 0;
    n->give_field = same;
    n->phase = n->i == n->n_fields ? NODE_LP_COUNT : same ? NODE_VALUE : NODE_OWN_FIELD;
}

static void string_event(struct rdb_reader *r, struct rdb_event *ev)
{
    ev->kind = RDB_ELEM;
    ev->offset = r->feed.off;
    ev->inner = r->walk.pack.pos;
    ev->raw = rd_slice(NULL, 0);
    ev->elem.role = r->node.phase == NODE_VALUE ? RDB_ROLE_VALUE : RDB_ROLE_FIELD;
    ev->elem.expire_ms = RDB_NO_EXPIRE;
}

/* A string longer than a piece. */
static int long_string(struct rdb_reader *r, struct rdb_event *ev)
{
    struct rdb_read_walk *w = &r->walk;
    struct feed *f = &r->feed;
    const struct rdb_pack_entry *e = &w->long_entry;
    if (r->node.phase == NODE_FIELD)
        return rdb_read_fail(r, RD_ERR_LIMIT, f->off, "field name of a stream node too long");
    size_t n = 0;
    bool last = false;
    int st = rdb_walk_long(r, &n, &last);
    if (st != STEP_ON)
        return st;
    string_event(r, ev);
    ev->elem.str = (struct rdb_string){
        .ptr = f->p, .len = n, .total = e->len, .first = w->long_left == e->len, .more = !last};
    w->long_left -= n;
    bool give = gives(r) && live(&r->node);
    if (last) {
        if (!rdb_pack_pass(&w->pack, e, f->p + n))
            return rdb_packed_bad(r);
        f->p += n + e->tail;
        w->long_open = false;
        next_string(&r->node);
    } else {
        f->p += n;
    }
    return give ? RDB_EVENT : STEP_ON;
}

static int short_string(struct rdb_reader *r, const struct rdb_pack_entry *e, struct rdb_event *ev)
{
    struct rdb_read_node *n = &r->node;
    bool give = gives(r) && live(n) && n->phase != NODE_FIELD;
    if (n->phase == NODE_FIELD && gives(r)) {
        int st = keep_shared(r, e);
        if (st != STEP_ON)
            return st;
    }
    string_event(r, ev);
    if (give)
        ev->elem.str = (struct rdb_string){.ptr = e->str,
                                           .len = (size_t)e->len,
                                           .total = e->len,
                                           .num = e->num,
                                           .is_int = e->is_int,
                                           .first = true};
    int st = rdb_walk_pass(r, e);
    if (st != STEP_ON)
        return st;
    next_string(n);
    return give ? RDB_EVENT : STEP_ON;
}

static int end_node(struct rdb_reader *r)
{
    struct rdb_read_node *n = &r->node;
    if (n->phase != NODE_FLAGS)
        return bad(r, "stream node that ends inside an entry");
    if (n->live != n->seen_live || n->deleted != n->seen_deleted)
        return bad(r, "stream node whose counts are not those of its entries");
    return RDB_END;
}

/* One listpack entry. */
static int step(struct rdb_reader *r, struct rdb_event *ev)
{
    struct rdb_read_walk *w = &r->walk;
    struct rdb_read_node *n = &r->node;
    if (w->long_open)
        return long_string(r, ev);
    if (n->phase == NODE_VALUE && n->give_field && gives(r) && live(n)) {
        give_shared(r, ev);
        return RDB_EVENT;
    }
    if (n->phase == NODE_FLAGS)
        n->entry_at = w->pack.pos;
    struct rdb_pack_entry e;
    int st = rdb_walk_entry(r, &e);
    if (st == STEP_ON)
        return is_string_phase(n->phase) ? long_string(r, ev)
                                         : bad(r, "a string where a number should be");
    if (st == RDB_END)
        return end_node(r);
    if (st != RDB_EVENT)
        return st;
    if (is_string_phase(n->phase))
        return short_string(r, &e, ev);
    if (!e.is_int)
        return bad(r, "a string where a number should be");
    st = rdb_walk_pass(r, &e);
    return st == STEP_ON ? number(r, e.num, ev) : st;
}

int rdb_node_run(struct rdb_reader *r, struct rdb_event *ev)
{
    int st;
    do {
        if (r->node.phase == NODE_FLAGS && !gives(r))
            rdb_skim_node(r);
        st = step(r, ev);
    } while (st == STEP_ON && !r->note_set);
    if (st != RDB_END)
        return st;
    r->walk.active = false;
    bool packed = r->detail == RDB_DETAIL_PACKED && r->walk.whole;
    rdb_feed_end(r);
    if (!packed)
        return RDB_END;
    *ev = (struct rdb_event){.kind = RDB_PACKED, .offset = r->feed.off, .inner = RD_NO_OFFSET};
    ev->packed.codec = RDB_LISTPACK;
    ev->packed.blob = rd_slice(r->feed.end - r->walk.pack.size, (size_t)r->walk.pack.size);
    ev->packed.count = r->node.seen_live;
    ev->packed.node = r->node.base;
    r->pc++;
    return RDB_EVENT;
}
