/* Streams: an XADD for each entry, then the metadata of the stream, then its groups.
 *
 * In a snapshot a group's pending entries precede the consumers, each of which lists the ids it
 * owns: they are kept until then. From 7.0 on XCLAIM silently ignores an entry that is not in the
 * stream; so the ids of the entries are kept, to detect such pending entries.
 *
 * If the pending ids were given in advance, each deleted one is added as an entry. The metadata of
 * the stream is then set after them, because adding and deleting entries changes it. */
#include "rdb/commands/commands_impl.h"

#include "base/mem.h"
#include "rdb/omission_impl.h"

#include <stdlib.h>

enum { SINCE_OFFSETS = 10, SINCE_CREATECONSUMER = 10 };

static const struct rdb_stream_id lowest_id = {0, 1};

/* ---- the ids of the entries ---- */

static void add_varint(struct rd_buf *buf, uint64_t v)
{
    while (v >= 0x80) {
        buf->ptr[buf->len++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    buf->ptr[buf->len++] = (uint8_t)v;
}

static bool add_id(struct cmd_ids *ids, struct rdb_stream_id id)
{
    ids->full |= ids->bytes.len >= CMD_IDS_MAX || rdb_stream_id_cmp(id, ids->last) <= 0;
    if (ids->full)
        return true;
    if (!rdb_cmd_room(&ids->bytes, 20))
        return false;
    uint64_t step = id.ms - ids->last.ms;
    add_varint(&ids->bytes, step);
    add_varint(&ids->bytes, step == 0 ? id.seq - ids->last.seq : id.seq);
    ids->last = id;
    return true;
}

static uint64_t get_varint(const struct cmd_ids *ids, size_t *at)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = ids->bytes.ptr[(*at)++];
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return v;
    }
}

static bool next_id(const struct cmd_ids *ids, struct cmd_ids_cursor *cursor)
{
    if (cursor->at == ids->bytes.len)
        return false;
    uint64_t step = get_varint(ids, &cursor->at), seq = get_varint(ids, &cursor->at);
    cursor->id.seq = step == 0 ? cursor->id.seq + seq : seq;
    cursor->id.ms += step;
    return true;
}

/* Whether the stream has the entry, as far as is known. Ask in ascending order of IDs, or the
 * cursor goes back. */
static bool has_entry(struct cmd_stream *st, struct rdb_stream_id id)
{
    struct cmd_ids_cursor *cursor = &st->cursor;
    if (rdb_stream_id_cmp(id, st->ids.last) > 0)
        return st->ids.full;
    if (rdb_stream_id_cmp(id, cursor->id) < 0)
        *cursor = (struct cmd_ids_cursor){0};
    while (rdb_stream_id_cmp(cursor->id, id) < 0)
        if (!next_id(&st->ids, cursor))
            return false;
    return rdb_stream_id_cmp(cursor->id, id) == 0;
}

/* ---- deleted entries ---- */

bool rdb_commands_wants_pending(const struct rdb_commands *c)
{
    return c->state == CMD_KEY && c->type->kind == RDB_KIND_STREAM && rdb_cmd_has(c, SINCE_OFFSETS);
}

bool rdb_cmd_stream_announce(struct rdb_commands *c, const struct rdb_stream_id *ids, size_t n)
{
    struct cmd_announced *announced = &c->stream.announced;
    if (!rdb_commands_wants_pending(c))
        return rdb_cmd_misuse(c, "pending entries follow the key of a stream");
    if (n > announced->cap) {
        struct rdb_stream_id *more =
            n > SIZE_MAX / sizeof *more ? NULL : rd_alloc(n * sizeof *more);
        if (more == NULL)
            return false;
        rd_free(announced->ids);
        announced->ids = more;
        announced->cap = n;
    }
    if (n > 0)
        memcpy(announced->ids, ids, n * sizeof *ids);
    announced->n = n;
    return true;
}

/* Announced pending IDs below an ID whose entry did not arrive. */
static bool make_gone(struct rdb_commands *c, struct rdb_stream_id below)
{
    struct cmd_stream *st = &c->stream;
    struct cmd_announced *announced = &st->announced;
    while (announced->next < announced->n &&
           rdb_stream_id_cmp(announced->ids[announced->next], below) < 0) {
        struct rdb_stream_id id = announced->ids[announced->next++];
        if (rdb_stream_id_cmp(id, st->top_id) <= 0)
            continue;
        st->top_id = id;
        announced->ids[announced->n_made++] = id;
        if (!rdb_cmd_flush(c, CMD_FLUSH) || !add_id(&st->ids, id) ||
            !rdb_cmd_head_key(c, 5, CMD_VERB4("XADD")) || !rdb_cmd_bulk_id(&c->out, id) ||
            !rdb_cmd_bulk_str(&c->out, "x") || !rdb_cmd_bulk_str(&c->out, "y"))
            return false;
    }
    return true;
}

static bool delete_made(struct rdb_commands *c)
{
    const struct cmd_announced *announced = &c->stream.announced;
    size_t most = c->opts.max_elems;
    for (size_t i = 0; i < announced->n_made; i++) {
        size_t left = announced->n_made - i;
        if (i % most == 0 &&
            !rdb_cmd_head_key(c, 2 + (left < most ? left : most), CMD_VERB4("XDEL")))
            return false;
        if (!rdb_cmd_bulk_id(&c->out, announced->ids[i]))
            return false;
    }
    return true;
}

/* ---- entries ---- */

void rdb_cmd_stream_begin(struct rdb_commands *c)
{
    struct cmd_stream *st = &c->stream;
    st->announced.n_made = st->announced.next = 0;
    st->n_entries = st->strings_left = 0;
    st->first_id = st->top_id = (struct rdb_stream_id){0};
    st->skips = false;
    st->ids.last = (struct rdb_stream_id){0};
    st->ids.full = false;
    rd_buf_reset(&st->ids.bytes);
    rd_buf_reset(&st->group);
    rd_buf_reset(&st->consumer);
    st->n_pending = 0;
}

/* The name in a bulk string. */
static struct rd_slice bulk_name(const struct rd_buf *bulk)
{
    const uint8_t *eol = bulk->len > 0 ? memchr(bulk->ptr, '\n', bulk->len) : NULL;
    if (eol == NULL)
        return (struct rd_slice){0};
    return rd_slice(eol + 1, bulk->len - (size_t)(eol + 1 - bulk->ptr) - 2);
}

/* Data that no command creates: entries out of order, and pending entries that were deleted. */
static bool refuse_id(struct rdb_commands *c, enum rdb_omitted what, const char *name,
                      struct rdb_stream_id id)
{
    char text[2 * RD_NUM_I64_MAX + 1];
    size_t len = rd_num_put_u64(text, id.ms);
    text[len++] = '-';
    len += rd_num_put_u64(text + len, id.seq);
    struct cmd_refusal r = {.what = what, .name = name, .element = rd_slice(text, len)};
    if (what == RDB_OMITTED_PENDING)
        r.group = bulk_name(&c->stream.group);
    return rdb_cmd_refuse(c, &r);
}

/* ret_skips: it is omitted. */
static bool begin_entry(struct rdb_commands *c, struct rdb_stream_id id, uint64_t n_fields,
                        bool *ret_skips)
{
    struct cmd_stream *st = &c->stream;
    if (RD_UNLIKELY(st->announced.next < st->announced.n) && !make_gone(c, id))
        return false;
    bool ascends = rdb_stream_id_cmp(id, st->top_id) > 0;
    *ret_skips = n_fields == 0 || n_fields > SIZE_MAX / 4 || !ascends;
    if (*ret_skips)
        return refuse_id(c, RDB_OMITTED_ELEMENT,
                         ascends ? "an entry without fields" : "an entry out of order", id);
    st->top_id = id;
    if (st->n_entries++ == 0)
        st->first_id = id;
    return rdb_cmd_flush(c, CMD_FLUSH) && add_id(&st->ids, id) &&
           rdb_cmd_head_key(c, 3 + 2 * (size_t)n_fields, CMD_VERB4("XADD")) &&
           rdb_cmd_bulk_id(&c->out, id);
}

static bool put_entry(struct rdb_commands *c, const struct rdb_event *ev)
{
    struct cmd_stream *st = &c->stream;
    st->strings_left = 2 * ev->entry.n_fields;
    return begin_entry(c, ev->entry.id, ev->entry.n_fields, &st->skips);
}

bool rdb_cmd_stream_entry(struct rdb_commands *c, struct rdb_stream_id id,
                          const struct rdb_text *texts, size_t n)
{
    char digits[RD_NUM_I64_MAX];
    bool skips;
    if (!begin_entry(c, id, n / 2, &skips))
        return false;
    for (size_t i = 0; i < n && !skips; i++)
        if (!rdb_cmd_bulk(&c->out, rdb_cmd_text(&texts[i], digits)))
            return false;
    return true;
}

static bool put_string(struct rdb_commands *c, const struct rdb_event *ev)
{
    bool ends;
    if (c->stream.strings_left == 0)
        return rdb_cmd_misuse(c, "a string outside the entries of a stream");
    if (c->stream.skips)
        ends = !ev->elem.str.more;
    else if (!rdb_cmd_piece(c, &ev->elem.str, &ends))
        return false;
    c->stream.strings_left -= ends;
    return true;
}

/* ---- the stream ---- */

/* A stream can only be created by adding an entry, which is trimmed at once. */
static bool make_empty(struct rdb_commands *c)
{
    struct rd_buf *out = &c->out;
    return rdb_cmd_head_key(c, 7, CMD_VERB4("XADD")) && rdb_cmd_bulk_str(out, "MAXLEN") &&
           rdb_cmd_bulk_str(out, "0") && rdb_cmd_bulk_str(out, "0-1") &&
           rdb_cmd_bulk_str(out, "x") && rdb_cmd_bulk_str(out, "y");
}

/* Old formats have neither value; servers derive them when they load such a file. */
static void keep_about(struct cmd_stream *st, const struct rdb_event *ev)
{
    st->last_id = ev->stream.last_id;
    st->length = ev->stream.length;
    st->has_offsets = ev->stream.has_offsets;
    st->entries_added = st->length;
    st->max_deleted_id = (struct rdb_stream_id){0};
    if (!st->has_offsets)
        return;
    st->max_deleted_id = ev->stream.max_deleted_id;
    if (ev->stream.entries_added > st->length)
        st->entries_added = ev->stream.entries_added;
}

static bool set_id(struct rdb_commands *c)
{
    const struct cmd_stream *st = &c->stream;
    struct rd_buf *out = &c->out;
    bool offsets = rdb_cmd_has(c, SINCE_OFFSETS);
    if (!rdb_cmd_head_key(c, offsets ? 7 : 3, CMD_VERB6("XSETID")) ||
        !rdb_cmd_bulk_id(out, st->last_id))
        return false;
    return !offsets ||
           (rdb_cmd_bulk_str(out, "ENTRIESADDED") && rdb_cmd_bulk_u64(out, st->entries_added) &&
            rdb_cmd_bulk_str(out, "MAXDELETEDID") && rdb_cmd_bulk_id(out, st->max_deleted_id));
}

/* An ID must be less than the following ones; the last one may be that of a pending entry. */
static bool make_last_gone(struct rdb_commands *c)
{
    struct rdb_stream_id above = c->stream.last_id;
    if (above.seq < UINT64_MAX)
        above.seq++;
    else if (above.ms < UINT64_MAX)
        above = (struct rdb_stream_id){above.ms + 1, 0};
    return make_gone(c, above);
}

static bool put_stream(struct rdb_commands *c, const struct rdb_event *ev)
{
    struct cmd_stream *st = &c->stream;
    keep_about(st, ev);
    if (!make_last_gone(c) || (st->n_entries == 0 && st->announced.n_made == 0 && !make_empty(c)))
        return false;
    return st->announced.n_made > 0 || set_id(c);
}

/* "No greatest deleted ID" cannot be set: the lowest ID is used in its place. */
static bool unmake(struct rdb_commands *c)
{
    struct cmd_stream *st = &c->stream;
    if (st->announced.n_made == 0)
        return true;
    if (rdb_stream_id_cmp(st->max_deleted_id, lowest_id) < 0)
        st->max_deleted_id = lowest_id;
    return delete_made(c) && set_id(c);
}

/* ---- groups ---- */

/* The value that servers from 7.0 on assume for entries_read when they load a format without it. */
static uint64_t estimate_read(const struct cmd_stream *st, struct rdb_stream_id id)
{
    if (st->entries_added == 0)
        return 0;
    int to_last = rdb_stream_id_cmp(id, st->last_id);
    if (to_last == 0 || (to_last < 0 && st->length == 0))
        return st->entries_added;
    if (to_last > 0)
        return RDB_UNKNOWN;
    int to_first = rdb_stream_id_cmp(id, st->first_id);
    if (to_first < 0)
        return st->entries_added - st->length;
    return to_first == 0 ? st->entries_added - st->length + 1 : RDB_UNKNOWN;
}

/* Before 6.2, a consumer that owns nothing is created by reading its pending entries. Servers from
 * 5.0 to 6.2 write the same RDB version. */
static bool read_nothing(struct rdb_commands *c)
{
    struct cmd_stream *st = &c->stream;
    struct rd_buf *out = &c->out;
    return rdb_cmd_head(out, 7, "$10\r\nXREADGROUP\r\n") && rdb_cmd_bulk_str(out, "GROUP") &&
           rdb_cmd_add(out, &st->group) && rdb_cmd_add(out, &st->consumer) &&
           rdb_cmd_bulk_str(out, "STREAMS") && rdb_cmd_add(out, &c->key) &&
           rdb_cmd_bulk_str(out, "0");
}

static bool end_consumer(struct rdb_commands *c)
{
    struct cmd_stream *st = &c->stream;
    struct rd_buf *out = &c->out;
    if (st->consumer.len == 0)
        return true;
    if (!st->consumer_made && !rdb_cmd_has(c, SINCE_CREATECONSUMER) && !read_nothing(c))
        return false;
    if (!st->consumer_made && rdb_cmd_has(c, SINCE_CREATECONSUMER) &&
        (!rdb_cmd_head(out, 5, CMD_VERB6("XGROUP")) || !rdb_cmd_bulk_str(out, "CREATECONSUMER") ||
         !rdb_cmd_add(out, &c->key) || !rdb_cmd_add(out, &st->group) ||
         !rdb_cmd_add(out, &st->consumer)))
        return false;
    rd_buf_reset(&st->consumer);
    return true;
}

static bool put_group(struct rdb_commands *c, const struct rdb_event *ev)
{
    struct cmd_stream *st = &c->stream;
    struct rd_buf *out = &c->out;
    uint64_t read = st->has_offsets ? ev->group.entries_read : estimate_read(st, ev->group.last_id);
    bool offsets = rdb_cmd_has(c, SINCE_OFFSETS) && read != RDB_UNKNOWN;
    if (!end_consumer(c))
        return false;
    rd_buf_reset(&st->group);
    st->n_pending = 0;
    st->sorted = true;
    st->cursor = (struct cmd_ids_cursor){0};
    if (!rdb_cmd_bulk(&st->group, ev->group.name) ||
        !rdb_cmd_head(out, offsets ? 7 : 5, CMD_VERB6("XGROUP")) ||
        !rdb_cmd_bulk_str(out, "CREATE") || !rdb_cmd_add(out, &c->key) ||
        !rdb_cmd_add(out, &st->group) || !rdb_cmd_bulk_id(out, ev->group.last_id))
        return false;
    return !offsets || (rdb_cmd_bulk_str(out, "ENTRIESREAD") && rdb_cmd_bulk_u64(out, read));
}

static bool grow_pending(struct cmd_stream *st)
{
    if (st->n_pending < st->cap_pending)
        return true;
    size_t cap = st->cap_pending == 0 ? 64 : st->cap_pending * 2;
    void *more = cap > SIZE_MAX / 2 / sizeof *st->pending
                     ? NULL
                     : rd_realloc(st->pending, cap * sizeof *st->pending);
    if (more == NULL)
        return false;
    st->pending = more;
    st->cap_pending = cap;
    return true;
}

static bool keep_pending(struct rdb_commands *c, const struct rdb_event *ev)
{
    struct cmd_stream *st = &c->stream;
    if (!grow_pending(st))
        return false;
    struct cmd_pending *p = &st->pending[st->n_pending];
    *p = (struct cmd_pending){
        .id = ev->pending.id,
        .delivery_ms = ev->pending.delivery_ms,
        .delivery_count = ev->pending.delivery_count,
        .gone = rdb_cmd_has(c, SINCE_OFFSETS) && !has_entry(st, ev->pending.id),
    };
    if (st->n_pending > 0 && rdb_stream_id_cmp(p[-1].id, p->id) >= 0)
        st->sorted = false;
    st->n_pending++;
    return !p->gone || refuse_id(c, RDB_OMITTED_PENDING,
                                 "a pending entry that is no longer in its stream", p->id);
}

static bool put_consumer(struct rdb_commands *c, const struct rdb_event *ev)
{
    struct cmd_stream *st = &c->stream;
    if (!end_consumer(c))
        return false;
    st->consumer_made = false;
    return rdb_cmd_bulk(&st->consumer, ev->consumer.name) && rdb_cmd_flush(c, CMD_FLUSH);
}

static int compare_pending(const void *a, const void *b)
{
    const struct cmd_pending *x = a, *y = b;
    return rdb_stream_id_cmp(x->id, y->id);
}

static const struct cmd_pending *find_pending(struct cmd_stream *st, struct rdb_stream_id id)
{
    struct cmd_pending wanted = {.id = id};
    if (st->n_pending == 0)
        return NULL;
    if (!st->sorted)
        qsort(st->pending, st->n_pending, sizeof *st->pending, compare_pending);
    st->sorted = true;
    return bsearch(&wanted, st->pending, st->n_pending, sizeof *st->pending, compare_pending);
}

static bool put_owned(struct rdb_commands *c, struct rdb_stream_id id)
{
    struct cmd_stream *st = &c->stream;
    struct rd_buf *out = &c->out;
    const struct cmd_pending *p = find_pending(st, id);
    if (p == NULL || p->gone)
        return true;
    st->consumer_made = true;
    return rdb_cmd_head_key(c, 12, CMD_VERB6("XCLAIM")) && rdb_cmd_add(out, &st->group) &&
           rdb_cmd_add(out, &st->consumer) && rdb_cmd_bulk_str(out, "0") &&
           rdb_cmd_bulk_id(out, id) && rdb_cmd_bulk_str(out, "TIME") &&
           rdb_cmd_bulk_i64(out, p->delivery_ms) && rdb_cmd_bulk_str(out, "RETRYCOUNT") &&
           rdb_cmd_bulk_u64(out, p->delivery_count) && rdb_cmd_bulk_str(out, "JUSTID") &&
           rdb_cmd_bulk_str(out, "FORCE") && rdb_cmd_flush(c, CMD_FLUSH);
}

bool rdb_cmd_stream_event(struct rdb_commands *c, const struct rdb_event *ev)
{
    switch ((int)ev->kind) {
    case RDB_ELEM:
        return put_string(c, ev);
    case RDB_ENTRY:
        return put_entry(c, ev);
    case RDB_STREAM:
        return put_stream(c, ev);
    case RDB_GROUP:
        return put_group(c, ev);
    case RDB_PENDING:
        return keep_pending(c, ev);
    case RDB_CONSUMER:
        return put_consumer(c, ev);
    case RDB_OWNED:
        return put_owned(c, ev->id);
    case RDB_NACKED:
        return refuse_id(c, RDB_OMITTED_PENDING, "a pending entry without a consumer", ev->id);
    case RDB_PRODUCER:
        return rdb_cmd_refuse(c, &(struct cmd_refusal){.what = RDB_OMITTED_PRODUCER,
                                                       .name = "a producer of a stream",
                                                       .element = ev->producer.name});
    case RDB_IDMP:
        return rdb_idmp_is_default(ev) ||
               rdb_cmd_refuse(c, &(struct cmd_refusal){.what = RDB_OMITTED_STREAM_SETTINGS,
                                                       .name = "settings of idempotent entries"});
    case RDB_IDMP_END:
    case RDB_PRODUCED:
        return true;
    default:
        return rdb_cmd_misuse(c, "an event that does not belong to a stream");
    }
}

bool rdb_cmd_stream_end(struct rdb_commands *c)
{
    return end_consumer(c) && unmake(c) && rdb_cmd_flush(c, CMD_FLUSH);
}

void rdb_cmd_stream_done(struct rdb_commands *c)
{
    struct cmd_stream *st = &c->stream;
    rd_buf_done(&st->ids.bytes);
    rd_buf_done(&st->group);
    rd_buf_done(&st->consumer);
    rd_free(st->pending);
    rd_free(st->announced.ids);
}
