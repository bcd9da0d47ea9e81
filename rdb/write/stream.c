#include "rdb/write/write.h"

#include "base/endian.h"

/* A stream is a number of nodes, then what group.c writes. A node is a string of 16 bytes, its id
 * (ms and sequence, big-endian), and a listpack:
 *
 *     entries  deleted  fields  name*  0           the names are those of the first entry
 *     flags  ms  seq  value*  size                 an entry with the same fields (flag 2); its id
 * is relative to the node's flags  ms  seq  fields  { name value }*  size      any other
 *
 * where size is the number of elements of the entry before it. */

enum { SINCE_OFFSETS = 10, SINCE_ACTIVE_TIME = 11, SINCE_PRODUCERS = 13, SINCE_NACKED = 14 };
enum { SAME_FIELDS = 2, COUNT_AT = 6 };

static bool add_text(struct rdb_texts *texts, struct rd_slice text)
{
    return rd_buf_add(&texts->buf, &text.len, sizeof text.len) &&
           rd_buf_add(&texts->buf, text.ptr, text.len);
}

static struct rd_slice next_text(const struct rdb_texts *texts, size_t *at)
{
    size_t len;
    memcpy(&len, texts->buf.ptr + *at, sizeof len);
    struct rd_slice text = rd_slice(texts->buf.ptr + *at + sizeof len, len);
    *at += sizeof len + len;
    return text;
}

static bool put_node(struct rdb_writer *w, struct rdb_stream_id id, struct rd_slice listpack)
{
    uint8_t key[16];
    rd_put_be64(key, id.ms);
    rd_put_be64(key + 8, id.seq);
    w->stream.n_nodes++;
    return rdb_put_raw(w->body.sink, rd_slice(key, sizeof key)) &&
           rdb_put_string(&w->put, w->body.sink, listpack);
}

static bool flush(struct rdb_writer *w)
{
    struct rdb_stream_writer *s = &w->stream;
    if (!s->node_open)
        return true;
    s->node_open = false;
    /* At most STREAM_NODE_ENTRIES, a number that takes one byte. */
    s->node.ptr[COUNT_AT] = (uint8_t)s->node_entries;
    return rdb_packer_end(&s->packer) && put_node(w, s->node_id, rd_buf_slice(&s->node));
}

/* The node begins with the names of its first entry's fields. */
static bool begin_node(struct rdb_writer *w)
{
    struct rdb_stream_writer *s = &w->stream;
    struct rdb_packer *packer = &s->packer;
    s->node_open = true;
    s->node_id = s->entry_id;
    s->node_entries = 0;
    s->master_count = s->entry_fields;
    rd_buf_reset(&s->node);
    rd_buf_reset(&s->master.buf);
    if (!rdb_packer_begin(packer, RDB_LISTPACK, &s->node) || !rdb_packer_add_i64(packer, 0) ||
        !rdb_packer_add_i64(packer, 0) || !rdb_packer_add_i64(packer, (int64_t)s->entry_fields))
        return false;
    for (size_t at = 0; at < s->entry.buf.len;) {
        struct rd_slice name = next_text(&s->entry, &at);
        next_text(&s->entry, &at);
        if (!add_text(&s->master, name) || !rdb_packer_add(packer, name))
            return false;
    }
    return rdb_packer_add_i64(packer, 0);
}

static bool same_fields(const struct rdb_stream_writer *s)
{
    if (s->entry_fields != s->master_count)
        return false;
    size_t in_entry = 0, in_master = 0;
    while (in_entry < s->entry.buf.len) {
        struct rd_slice name = next_text(&s->entry, &in_entry);
        next_text(&s->entry, &in_entry);
        if (!rd_slice_eq(name, next_text(&s->master, &in_master)))
            return false;
    }
    return true;
}

static bool add_fields(struct rdb_stream_writer *s, bool same)
{
    for (size_t at = 0; at < s->entry.buf.len;) {
        struct rd_slice name = next_text(&s->entry, &at);
        struct rd_slice value = next_text(&s->entry, &at);
        if (!same && !rdb_packer_add(&s->packer, name))
            return false;
        if (!rdb_packer_add(&s->packer, value))
            return false;
    }
    return true;
}

static bool add_entry(struct rdb_stream_writer *s)
{
    struct rdb_packer *packer = &s->packer;
    bool same = same_fields(s);
    uint64_t n = s->entry_fields;
    s->node_entries++;
    return rdb_packer_add_i64(packer, same ? SAME_FIELDS : 0) &&
           rdb_packer_add_i64(packer, (int64_t)(s->entry_id.ms - s->node_id.ms)) &&
           rdb_packer_add_i64(packer, (int64_t)(s->entry_id.seq - s->node_id.seq)) &&
           (same || rdb_packer_add_i64(packer, (int64_t)n)) && add_fields(s, same) &&
           rdb_packer_add_i64(packer, (int64_t)(same ? n + 3 : 2 * n + 4));
}

static bool end_entry(struct rdb_writer *w)
{
    struct rdb_stream_writer *s = &w->stream;
    s->entry_open = false;
    bool full = s->node_open && (s->node_entries >= STREAM_NODE_ENTRIES ||
                                 s->node.len + 1 + s->entry_bytes >= STREAM_NODE_BYTES);
    if (full && !flush(w))
        return false;
    return (s->node_open || begin_node(w)) && add_entry(s);
}

static bool begin_entry(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_stream_writer *s = &w->stream;
    if (ev->entry.n_fields > INT64_MAX / 4)
        return rdb_write_misuse(w, "a stream entry has more fields than bytes exist");
    s->entry_open = true;
    s->entry_id = ev->entry.id;
    s->entry_fields = ev->entry.n_fields;
    s->texts_left = 2 * ev->entry.n_fields;
    s->entry_bytes = 0;
    rd_buf_reset(&s->entry.buf);
    return s->texts_left > 0 || end_entry(w);
}

static bool entry_text(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_stream_writer *s = &w->stream;
    enum rdb_role role = s->texts_left % 2 == 0 ? RDB_ROLE_FIELD : RDB_ROLE_VALUE;
    if (!s->entry_open || ev->elem.role != role)
        return rdb_write_misuse(w, "a string does not fit its stream entry");
    struct rd_slice text = {0};
    enum rdb_piece_status st = rdb_write_piece(w, &ev->elem.str, STREAM_ENTRY_MAX, &text);
    if (st == PIECE_HELD || st == PIECE_FAIL)
        return st == PIECE_HELD;
    if (st != PIECE_WHOLE || text.len > STREAM_ENTRY_MAX - s->entry_bytes)
        return rdb_write_unsupported(w, "stream entry of 1 GiB");
    s->entry_bytes += text.len;
    s->texts_left--;
    return add_text(&s->entry, text) && (s->texts_left > 0 || end_entry(w));
}

static bool packed(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (ev->packed.codec != RDB_LISTPACK || ev->packed.plain)
        return rdb_write_misuse(w, "a stream's node is a listpack");
    return flush(w) && put_node(w, ev->packed.node, ev->packed.blob);
}

/* Servers read the types of older versions. The newest two are written only for what needs them. */
static enum rdb_type_id choose_type(const struct rdb_writer *w)
{
    enum rdb_type_id from = w->source->id;
    bool redis = w->opts.dialect == RDB_REDIS;
    if (redis && rdb_write_has(w, SINCE_NACKED) && from == RDB_TYPE_STREAM_LISTPACKS_5)
        return RDB_TYPE_STREAM_LISTPACKS_5;
    if (redis && rdb_write_has(w, SINCE_PRODUCERS) &&
        (from == RDB_TYPE_STREAM_LISTPACKS_4 || from == RDB_TYPE_STREAM_LISTPACKS_5))
        return RDB_TYPE_STREAM_LISTPACKS_4;
    if (rdb_write_has(w, SINCE_ACTIVE_TIME))
        return RDB_TYPE_STREAM_LISTPACKS_3;
    return rdb_write_has(w, SINCE_OFFSETS) ? RDB_TYPE_STREAM_LISTPACKS_2
                                           : RDB_TYPE_STREAM_LISTPACKS;
}

bool rdb_stream_begin(struct rdb_writer *w)
{
    struct rdb_stream_writer *s = &w->stream;
    s->type = choose_type(w);
    s->idmp_done = false;
    s->n_nodes = 0;
    s->tail_begun = false;
    s->producers = false;
    s->node_open = false;
    s->entry_open = false;
    s->group_open = false;
    s->groups_left = 0;
    return rdb_spool_begin(w, &w->body);
}

bool rdb_stream_event(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_stream_writer *s = &w->stream;
    if (s->tail_begun)
        return rdb_group_event(w, ev);
    if (ev->kind == RDB_ELEM)
        return entry_text(w, ev);
    if (s->entry_open)
        return rdb_write_misuse(w, "a stream entry lacks strings");
    switch ((int)ev->kind) {
    case RDB_ENTRY:
        return begin_entry(w, ev);
    case RDB_PACKED:
        return packed(w, ev);
    case RDB_STREAM:
        return flush(w) && rdb_group_begin(w, ev);
    default:
        return rdb_write_misuse(w, "a stream's groups come after its entries");
    }
}

bool rdb_stream_end(struct rdb_writer *w)
{
    struct rdb_stream_writer *s = &w->stream;
    if (s->entry_open || !s->tail_begun)
        return rdb_write_misuse(w, "a stream ends before its summary");
    return rdb_group_end(w);
}
