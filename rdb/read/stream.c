/* stream.c - the parts of a stream other than entries: last ID, groups, pending lists, consumers.
 */
#include "rdb/read/reader_impl.h"

enum { GEN_OFFSETS = 2, GEN_ACTIVE = 3, NODE_KEY_LEN = 16 };

/* Parses and consumes the numbers and names of the step. */
static int parse_all(struct rdb_reader *r, parse_fn parse, uint8_t gen, struct rdb_event *ev)
{
    struct cur c;
    int st = rdb_read_parse(r, parse, gen, ev, &c);
    if (st != STEP_ON)
        return st;
    ev->offset = rdb_read_offset(r);
    ev->inner = RD_NO_OFFSET;
    ev->raw = rd_slice(NULL, 0);
    rdb_read_consume(r, (size_t)(c.p - c.base));
    r->pc++;
    return STEP_ON;
}

static int give_event(const struct rdb_reader *r, struct rdb_event *ev, enum rdb_event_kind kind,
                      int st)
{
    if (st != STEP_ON || !rdb_read_gives(r))
        return st;
    ev->kind = kind;
    return RDB_EVENT;
}

/* Servers refuse groups and consumers of the same name. */
static bool tracks_names(const struct rdb_reader *r)
{
    return rdb_read_checks(r) && r->opts.notes;
}

static bool parse_tail(struct rdb_reader *r, struct cur *c, uint8_t gen, struct rdb_event *ev)
{
    (void)r;
    ev->stream.has_offsets = gen >= GEN_OFFSETS;
    ev->stream.first_id = ev->stream.max_deleted_id = (struct rdb_stream_id){0, 0};
    ev->stream.entries_added = RDB_UNKNOWN;
    if (!rdb_cur_len(c, &ev->stream.length) || !rdb_cur_len_id(c, &ev->stream.last_id))
        return false;
    if (gen >= GEN_OFFSETS && (!rdb_cur_len_id(c, &ev->stream.first_id) ||
                               !rdb_cur_len_id(c, &ev->stream.max_deleted_id) ||
                               !rdb_cur_len(c, &ev->stream.entries_added)))
        return false;
    return rdb_cur_len(c, &ev->stream.n_groups);
}

static int tail_op(struct rdb_reader *r, uint8_t gen, struct rdb_event *ev)
{
    int st = parse_all(r, parse_tail, gen, ev);
    if (st != STEP_ON)
        return st;
    r->loop_count = ev->stream.n_groups;
    if (tracks_names(r) && !rdb_unique_begin(&r->unique, ev->stream.n_groups))
        return rdb_read_nomem(r, 0);
    if (ev->stream.length > 0 && r->stream.n_nodes == 0)
        rdb_read_note(r, RDB_NOTE_NO_NODES, ev->offset, RD_NO_OFFSET, ev->stream.length,
                      "stream with a length but without entries; servers refuse to load it");
    else if (r->detail != RDB_DETAIL_FRAMES && ev->stream.length != r->stream.live)
        rdb_read_note(r, RDB_NOTE_ENTRY_COUNT, ev->offset, RD_NO_OFFSET, ev->stream.length,
                      "stream length that is not the number of its entries");
    if (r->stream.any && rdb_stream_id_cmp(r->stream.last, ev->stream.last_id) > 0 &&
        r->stream.live > 0)
        rdb_read_note(r, RDB_NOTE_ENTRY_ORDER, ev->offset, RD_NO_OFFSET, RDB_UNKNOWN,
                      "stream whose last id is lower than that of an entry");
    return give_event(r, ev, RDB_STREAM, st);
}

static bool parse_group(struct rdb_reader *r, struct cur *c, uint8_t gen, struct rdb_event *ev)
{
    ev->group.entries_read = RDB_UNKNOWN;
    return rdb_cur_str(r, c, &r->text, &ev->group.name) && rdb_cur_len_id(c, &ev->group.last_id) &&
           (gen < GEN_OFFSETS || rdb_cur_len(c, &ev->group.entries_read)) &&
           rdb_cur_len(c, &ev->group.n_pending);
}

static int group_op(struct rdb_reader *r, uint8_t gen, struct rdb_event *ev)
{
    int st = parse_all(r, parse_group, gen, ev);
    if (st != STEP_ON)
        return st;
    r->loop_count = ev->group.n_pending;
    r->stream.group = rdb_hash_bytes(&r->key, ev->group.name.ptr, ev->group.name.len);
    const char *text = "consumer group that the stream already has";
    if (tracks_names(r) && !rdb_unique_add(&r->unique, r->stream.group) &&
        rdb_duplicate_named(r, RDB_GROUP, ev->group.name, ev->offset, &text))
        rdb_read_note(r, RDB_NOTE_DUPLICATE_GROUP, ev->offset, RD_NO_OFFSET, RDB_UNKNOWN, text);
    r->stream.sum_pending = r->stream.sum_owned = 0;
    r->stream.n_pending = r->stream.n_owned = 0;
    return give_event(r, ev, RDB_GROUP, st);
}

static bool parse_pending(struct rdb_reader *r, struct cur *c, uint8_t gen, struct rdb_event *ev)
{
    (void)r;
    (void)gen;
    uint64_t ms;
    if (!rdb_cur_id(c, &ev->pending.id) || !rdb_cur_u64le(c, &ms) ||
        !rdb_cur_len(c, &ev->pending.delivery_count))
        return false;
    ev->pending.delivery_ms = (int64_t)ms;
    return true;
}

static uint64_t hash_id(const struct rdb_reader *r, struct rdb_stream_id id)
{
    uint8_t bytes[16];
    rd_put_le64(bytes, id.ms);
    rd_put_le64(bytes + 8, id.seq);
    return rdb_hash_bytes(&r->key, bytes, sizeof bytes);
}

static int pending_op(struct rdb_reader *r, struct rdb_event *ev)
{
    int st = parse_all(r, parse_pending, 0, ev);
    if (st != STEP_ON)
        return st;
    struct stream *s = &r->stream;
    int order = s->n_pending > 0 ? rdb_stream_id_cmp(ev->pending.id, s->group_last) : 1;
    if (order <= 0)
        rdb_read_note(r, order == 0 ? RDB_NOTE_DUPLICATE_PENDING : RDB_NOTE_ENTRY_ORDER, ev->offset,
                      RD_NO_OFFSET, s->n_pending,
                      "pending entry whose id is not greater than the one before");
    s->group_last = ev->pending.id;
    s->sum_pending += hash_id(r, ev->pending.id);
    s->n_pending++;
    return give_event(r, ev, RDB_PENDING, st);
}

static bool parse_count(struct rdb_reader *r, struct cur *c, uint8_t gen, struct rdb_event *ev)
{
    (void)gen;
    (void)ev;
    return rdb_cur_len(c, &r->loop_count);
}

static bool parse_consumer(struct rdb_reader *r, struct cur *c, uint8_t gen, struct rdb_event *ev)
{
    uint64_t seen;
    uint64_t active = (uint64_t)RDB_NO_EXPIRE;
    if (!rdb_cur_str(r, c, &r->text, &ev->consumer.name) || !rdb_cur_u64le(c, &seen) ||
        (gen >= GEN_ACTIVE && !rdb_cur_u64le(c, &active)) || !rdb_cur_len(c, &ev->consumer.n_owned))
        return false;
    ev->consumer.seen_ms = (int64_t)seen;
    ev->consumer.active_ms = (int64_t)active;
    return true;
}

static int consumer_op(struct rdb_reader *r, uint8_t gen, struct rdb_event *ev)
{
    int st = parse_all(r, parse_consumer, gen, ev);
    if (st != STEP_ON)
        return st;
    r->loop_count = ev->consumer.n_owned;
    uint64_t hash = rdb_hash_bytes(&r->key, ev->consumer.name.ptr, ev->consumer.name.len);
    const char *text = "consumer that the group already has";
    if (tracks_names(r) && !rdb_unique_add(&r->unique, (hash ^ r->stream.group) * 31 + 1) &&
        rdb_duplicate_named(r, RDB_CONSUMER, ev->consumer.name, ev->offset, &text))
        rdb_read_note(r, RDB_NOTE_DUPLICATE_CONSUMER, ev->offset, RD_NO_OFFSET, RDB_UNKNOWN, text);
    return give_event(r, ev, RDB_CONSUMER, st);
}

static bool parse_id(struct rdb_reader *r, struct cur *c, uint8_t gen, struct rdb_event *ev)
{
    (void)r;
    (void)gen;
    return rdb_cur_id(c, &ev->id);
}

static int owned_op(struct rdb_reader *r, enum rdb_event_kind kind, struct rdb_event *ev)
{
    int st = parse_all(r, parse_id, 0, ev);
    if (st != STEP_ON)
        return st;
    r->stream.sum_owned += hash_id(r, ev->id);
    r->stream.n_owned++;
    return give_event(r, ev, kind, st);
}

/* Every pending entry is owned by one consumer. The missing one is not identified: that would take
 * memory proportional to the list. */
static int group_end(struct rdb_reader *r)
{
    const struct stream *s = &r->stream;
    uint64_t off = rdb_read_offset(r);
    if (s->n_owned < s->n_pending)
        rdb_read_note(r, RDB_NOTE_PENDING_OWNER, off, RD_NO_OFFSET, s->n_pending - s->n_owned,
                      "group with pending entries that no consumer owns");
    else if (s->n_owned > s->n_pending || s->sum_owned != s->sum_pending)
        rdb_read_note(r, RDB_NOTE_PENDING_UNKNOWN, off, RD_NO_OFFSET, s->n_owned - s->n_pending,
                      "group with consumers that own entries which are not pending");
    r->pc++;
    return STEP_ON;
}

static bool parse_idmp(struct rdb_reader *r, struct cur *c, uint8_t gen, struct rdb_event *ev)
{
    (void)gen;
    if (!rdb_cur_len(c, &ev->idmp.duration) || !rdb_cur_len(c, &ev->idmp.max_size) ||
        !rdb_cur_len(c, &ev->idmp.n_producers))
        return false;
    r->loop_count = ev->idmp.n_producers;
    return true;
}

static bool parse_idmp_end(struct rdb_reader *r, struct cur *c, uint8_t gen, struct rdb_event *ev)
{
    (void)r;
    (void)gen;
    return rdb_cur_len(c, &ev->idmp_end.added) && rdb_cur_len(c, &ev->idmp_end.duplicates);
}

static bool parse_producer(struct rdb_reader *r, struct cur *c, uint8_t gen, struct rdb_event *ev)
{
    (void)gen;
    return rdb_cur_str(r, c, &r->text, &ev->producer.name) && rdb_cur_len(c, &ev->producer.n_ids);
}

static bool parse_produced(struct rdb_reader *r, struct cur *c, uint8_t gen, struct rdb_event *ev)
{
    (void)gen;
    return rdb_cur_str(r, c, &r->text, &ev->produced.name) && rdb_cur_len_id(c, &ev->produced.id);
}

/* -- nodes -- */

static bool parse_node_key(struct rdb_reader *r, struct cur *c, uint8_t gen, struct rdb_event *ev)
{
    (void)gen;
    (void)ev;
    struct rd_slice key;
    if (!rdb_cur_str(r, c, &r->text, &key))
        return false;
    if (key.len != NODE_KEY_LEN)
        return rdb_cur_refuse(c, c->base, CUR_DAMAGED, "stream node whose key is not an id");
    r->node.base = (struct rdb_stream_id){rd_get_be64(key.ptr), rd_get_be64(key.ptr + 8)};
    return true;
}

/* Servers refuse a stream in which two nodes have the same key. Their order does not matter. */
static void check_node_key(struct rdb_reader *r, uint64_t off)
{
    uint8_t id[NODE_KEY_LEN];
    const char *text = "stream node with the key of an earlier node; servers refuse to load it";
    if (!tracks_names(r))
        return;
    rd_put_be64(id, r->node.base.ms);
    rd_put_be64(id + 8, r->node.base.seq);
    if (!rdb_unique_add(&r->unique, rdb_hash_bytes(&r->key, id, sizeof id)) &&
        rdb_duplicate_named(r, RDB_PACKED, rd_slice(id, sizeof id), off, &text))
        rdb_read_note(r, RDB_NOTE_DUPLICATE_NODE, off, RD_NO_OFFSET, r->n_elems, text);
}

static int node_frames(struct rdb_reader *r)
{
    while (r->tail_due < 2) {
        int st = rdb_read_pass(r, false);
        if (st != STEP_ON)
            return st;
        r->tail_due++;
    }
    r->tail_due = 0;
    r->pc++;
    return STEP_ON;
}

static int node_op(struct rdb_reader *r, struct rdb_event *ev)
{
    if (r->detail == RDB_DETAIL_FRAMES)
        return node_frames(r);
    int st;
    if (!r->walk.active && r->tail_due == 0) {
        st = parse_all(r, parse_node_key, 0, ev);
        if (st != STEP_ON)
            return st;
        r->pc--;
        r->tail_due = 1;
        check_node_key(r, ev->offset);
    }
    if (!r->walk.active) {
        st = rdb_packed_begin(r, RDB_LISTPACK, LAYOUT_STREAM);
        if (st != STEP_ON)
            return st;
        struct rd_buf shared = r->node.shared;
        rd_buf_reset(&shared);
        r->node = (struct rdb_read_node){.base = r->node.base, .shared = shared};
        r->tail_due = 0;
    }
    st = rdb_packed_run(r, ev);
    if (st != RDB_END)
        return st;
    r->pc++;
    return STEP_ON;
}

int rdb_stream_op(struct rdb_reader *r, const struct instr *in, struct rdb_event *ev)
{
    int st;
    switch (in->op) {
    case OP_STREAM_NODE:
        return node_op(r, ev);
    case OP_STREAM_TAIL:
        return tail_op(r, in->arg, ev);
    case OP_GROUP:
        return group_op(r, in->arg, ev);
    case OP_PENDING:
        return pending_op(r, ev);
    case OP_CONSUMERS:
    case OP_NACKS:
        return parse_all(r, parse_count, 0, ev);
    case OP_CONSUMER:
        return consumer_op(r, in->arg, ev);
    case OP_OWNED:
        return owned_op(r, RDB_OWNED, ev);
    case OP_NACKED:
        return owned_op(r, RDB_NACKED, ev);
    case OP_GROUP_END:
        return group_end(r);
    case OP_IDMP:
        return give_event(r, ev, RDB_IDMP, parse_all(r, parse_idmp, 0, ev));
    case OP_IDMP_END:
        return give_event(r, ev, RDB_IDMP_END, parse_all(r, parse_idmp_end, 0, ev));
    case OP_PRODUCER:
        st = parse_all(r, parse_producer, 0, ev);
        r->loop_count = st == STEP_ON ? ev->producer.n_ids : 0;
        return give_event(r, ev, RDB_PRODUCER, st);
    default:
        return give_event(r, ev, RDB_PRODUCED, parse_all(r, parse_produced, 0, ev));
    }
}
