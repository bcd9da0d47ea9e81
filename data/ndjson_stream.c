/* Streams: entries, then metadata, then groups.
 *
 * In a file a group's pending entries precede the consumers, and each consumer lists the ids
 * it owns. A line names the owner with each entry, so a group is collected and written at its
 * end.
 */
#include "base/mem.h"
#include "data/ndjson_impl.h"

#include <stdlib.h>

void ndjson_stream_begin(struct ndjson *lines)
{
    struct ndjson_stream *st = &lines->stream;
    st->part = NDJSON_ENTRIES;
    st->n_groups = st->n_nacked = st->n_producers = st->n_produced = 0;
    st->n_pending = st->n_names = 0;
    rd_buf_reset(&st->consumers);
    NDJSON_LIT(lines, "{\"entries\":[");
}

/* Makes room for one more item in an array that doubles its size. */
static bool grow(struct ndjson *lines, void **items, size_t *cap, size_t n, size_t size)
{
    if (n < *cap)
        return true;
    size_t want = *cap == 0 ? 64 : *cap * 2;
    void *more = want > SIZE_MAX / 2 / size ? NULL : rd_realloc(*items, want * size);
    if (more == NULL) {
        lines->nomem = true;
        return false;
    }
    *items = more;
    *cap = want;
    return true;
}

void ndjson_entry_begin(struct ndjson *lines, struct rdb_stream_id id)
{
    if (lines->n_elems++ > 0)
        rd_sink_byte(lines->sink, ',');
    NDJSON_LIT(lines, "{\"id\":");
    ndjson_id(lines, id);
    NDJSON_LIT(lines, ",\"fields\":[");
}

static void put_entry(struct ndjson *lines, const struct rdb_event *ev)
{
    struct ndjson_stream *st = &lines->stream;
    ndjson_entry_begin(lines, ev->entry.id);
    st->pairs_left = ev->entry.n_fields;
    st->pair_started = false;
    if (st->pairs_left == 0)
        NDJSON_LIT(lines, "]}");
}

static bool has_offsets(const struct rdb_type *type)
{
    return type->id != RDB_TYPE_STREAM_LISTPACKS;
}

static void put_about(struct ndjson *lines, const struct rdb_event *ev)
{
    ndjson_put_u64(lines, "],\"length\":", ev->stream.length);
    NDJSON_LIT(lines, ",\"last_id\":");
    ndjson_id(lines, ev->stream.last_id);
    if (ev->stream.has_offsets) {
        NDJSON_LIT(lines, ",\"first_id\":");
        ndjson_id(lines, ev->stream.first_id);
        NDJSON_LIT(lines, ",\"max_deleted_id\":");
        ndjson_id(lines, ev->stream.max_deleted_id);
        ndjson_put_u64(lines, ",\"entries_added\":", ev->stream.entries_added);
    }
    NDJSON_LIT(lines, ",\"groups\":[");
    lines->stream.part = NDJSON_GROUPS;
}

/* ---- groups ---- */

static int compare_pending(const void *a, const void *b)
{
    const struct ndjson_pending *x = a, *y = b;
    return rdb_stream_id_cmp(x->id, y->id);
}

static void add_pending(struct ndjson *lines, const struct rdb_event *ev)
{
    struct ndjson_stream *st = &lines->stream;
    void *items = st->pending;
    if (!grow(lines, &items, &st->cap_pending, st->n_pending, sizeof *st->pending))
        return;
    st->pending = items;
    if (st->n_pending > 0 &&
        rdb_stream_id_cmp(st->pending[st->n_pending - 1].id, ev->pending.id) >= 0)
        st->sorted = false;
    st->pending[st->n_pending++] = (struct ndjson_pending){
        .id = ev->pending.id,
        .delivery_ms = ev->pending.delivery_ms,
        .delivery_count = ev->pending.delivery_count,
        .owner = NDJSON_NO_OWNER,
    };
}

static void add_number(struct ndjson *lines, const char *label, int64_t v)
{
    struct rd_buf *to = &lines->stream.consumers;
    char digits[RD_NUM_I64_MAX];
    size_t len = rd_num_put_i64(digits, v);
    if (!rd_buf_add(to, label, strlen(label)) || !rd_buf_add(to, digits, len))
        lines->nomem = true;
}

static void add_consumer(struct ndjson *lines, const struct rdb_event *ev)
{
    struct ndjson_stream *st = &lines->stream;
    struct rd_buf *to = &st->consumers;
    const char *open = st->n_names == 0 ? "{\"name\":" : ",{\"name\":";
    void *items = st->names;
    if (!grow(lines, &items, &st->cap_names, st->n_names, sizeof *st->names))
        return;
    st->names = items;
    lines->nomem |= !rd_buf_add(to, open, strlen(open));
    size_t at = to->len;
    ndjson_string_to(lines, to, ev->consumer.name);
    st->names[st->n_names++] = (struct ndjson_span){.at = at, .len = to->len - at};
    add_number(lines, ",\"seen_ms\":", ev->consumer.seen_ms);
    if (ev->consumer.active_ms != RDB_NO_EXPIRE)
        add_number(lines, ",\"active_ms\":", ev->consumer.active_ms);
    lines->nomem |= !rd_buf_add_byte(to, '}');
}

/* Servers write pending lists in order of IDs. The list of another writer is sorted first, so that
 * every owner is found in logarithmic time. */
static void add_owned(struct ndjson *lines, struct rdb_stream_id id)
{
    struct ndjson_stream *st = &lines->stream;
    struct ndjson_pending wanted = {.id = id};
    if (st->n_pending == 0 || st->n_names == 0)
        return;
    if (!st->sorted)
        qsort(st->pending, st->n_pending, sizeof *st->pending, compare_pending);
    st->sorted = true;
    struct ndjson_pending *found =
        bsearch(&wanted, st->pending, st->n_pending, sizeof *st->pending, compare_pending);
    if (found != NULL)
        found->owner = st->n_names - 1;
}

static void put_pending(struct ndjson *lines, const struct ndjson_pending *p)
{
    struct ndjson_stream *st = &lines->stream;
    NDJSON_LIT(lines, "{\"id\":");
    ndjson_id(lines, p->id);
    NDJSON_LIT(lines, ",\"consumer\":");
    if (p->owner == NDJSON_NO_OWNER)
        NDJSON_LIT(lines, "null");
    else
        rd_sink_write(lines->sink, st->consumers.ptr + st->names[p->owner].at,
                      st->names[p->owner].len);
    ndjson_put_i64(lines, ",\"delivery_ms\":", p->delivery_ms);
    ndjson_put_u64(lines, ",\"delivery_count\":", p->delivery_count);
    rd_sink_byte(lines->sink, '}');
}

/* Writes the collected data of the group; the object stays open after the consumers. */
static void put_collected(struct ndjson *lines)
{
    struct ndjson_stream *st = &lines->stream;
    if (lines->nomem)
        return;
    for (size_t i = 0; i < st->n_pending; i++) {
        if (i > 0)
            rd_sink_byte(lines->sink, ',');
        put_pending(lines, &st->pending[i]);
    }
    NDJSON_LIT(lines, "],\"consumers\":[");
    rd_sink_write(lines->sink, st->consumers.ptr, st->consumers.len);
    rd_sink_byte(lines->sink, ']');
}

static void put_nacked(struct ndjson *lines, struct rdb_stream_id id)
{
    struct ndjson_stream *st = &lines->stream;
    if (st->part == NDJSON_IN_GROUP) {
        put_collected(lines);
        NDJSON_LIT(lines, ",\"nacked\":[");
        st->part = NDJSON_NACKS;
        st->n_nacked = 0;
    }
    if (st->n_nacked++ > 0)
        rd_sink_byte(lines->sink, ',');
    ndjson_id(lines, id);
}

static void end_group(struct ndjson *lines)
{
    struct ndjson_stream *st = &lines->stream;
    if (st->part == NDJSON_IN_GROUP)
        put_collected(lines);
    else if (st->part == NDJSON_NACKS)
        rd_sink_byte(lines->sink, ']');
    else
        return;
    rd_sink_byte(lines->sink, '}');
    st->part = NDJSON_GROUPS;
}

static void put_group(struct ndjson *lines, const struct rdb_event *ev)
{
    struct ndjson_stream *st = &lines->stream;
    end_group(lines);
    if (st->n_groups++ > 0)
        rd_sink_byte(lines->sink, ',');
    NDJSON_LIT(lines, "{\"name\":");
    ndjson_string(lines, ev->group.name);
    NDJSON_LIT(lines, ",\"last_id\":");
    ndjson_id(lines, ev->group.last_id);
    if (has_offsets(lines->type) && ev->group.entries_read == RDB_UNKNOWN)
        NDJSON_LIT(lines, ",\"entries_read\":null");
    else if (has_offsets(lines->type))
        ndjson_put_u64(lines, ",\"entries_read\":", ev->group.entries_read);
    NDJSON_LIT(lines, ",\"pending\":[");
    st->part = NDJSON_IN_GROUP;
    st->sorted = true;
    st->n_pending = st->n_names = 0;
    rd_buf_reset(&st->consumers);
}

/* ---- idempotent producers, types 26 and 27 ---- */

static void begin_idmp(struct ndjson *lines, const struct rdb_event *ev)
{
    end_group(lines);
    ndjson_put_u64(lines, "],\"idmp\":{\"duration\":", ev->idmp.duration);
    ndjson_put_u64(lines, ",\"max_size\":", ev->idmp.max_size);
    NDJSON_LIT(lines, ",\"producers\":[");
    lines->stream.part = NDJSON_PRODUCERS;
}

static void end_producer(struct ndjson *lines)
{
    if (lines->stream.part == NDJSON_PRODUCED)
        NDJSON_LIT(lines, "]}");
    lines->stream.part = NDJSON_PRODUCERS;
}

static void put_producer(struct ndjson *lines, const struct rdb_event *ev)
{
    struct ndjson_stream *st = &lines->stream;
    end_producer(lines);
    if (st->n_producers++ > 0)
        rd_sink_byte(lines->sink, ',');
    NDJSON_LIT(lines, "{\"name\":");
    ndjson_string(lines, ev->producer.name);
    NDJSON_LIT(lines, ",\"ids\":[");
    st->part = NDJSON_PRODUCED;
    st->n_produced = 0;
}

static void put_produced(struct ndjson *lines, const struct rdb_event *ev)
{
    if (lines->stream.n_produced++ > 0)
        rd_sink_byte(lines->sink, ',');
    rd_sink_byte(lines->sink, '[');
    ndjson_string(lines, ev->produced.name);
    rd_sink_byte(lines->sink, ',');
    ndjson_id(lines, ev->produced.id);
    rd_sink_byte(lines->sink, ']');
}

static void end_idmp(struct ndjson *lines, const struct rdb_event *ev)
{
    end_producer(lines);
    ndjson_put_u64(lines, "],\"iids_added\":", ev->idmp_end.added);
    ndjson_put_u64(lines, ",\"iids_duplicates\":", ev->idmp_end.duplicates);
    rd_sink_byte(lines->sink, '}');
    lines->stream.part = NDJSON_ENDED;
}

/* ---- events ---- */

void ndjson_stream_put(struct ndjson *lines, const struct rdb_event *ev)
{
    if (ev->kind == RDB_ENTRY)
        put_entry(lines, ev);
    else if (ev->kind == RDB_PENDING)
        add_pending(lines, ev);
    else if (ev->kind == RDB_OWNED)
        add_owned(lines, ev->id);
    else if (ev->kind == RDB_CONSUMER)
        add_consumer(lines, ev);
    else if (ev->kind == RDB_GROUP)
        put_group(lines, ev);
    else if (ev->kind == RDB_NACKED)
        put_nacked(lines, ev->id);
    else if (ev->kind == RDB_PRODUCER)
        put_producer(lines, ev);
    else if (ev->kind == RDB_PRODUCED)
        put_produced(lines, ev);
    else if (ev->kind == RDB_IDMP)
        begin_idmp(lines, ev);
    else if (ev->kind == RDB_IDMP_END)
        end_idmp(lines, ev);
    else if (ev->kind == RDB_STREAM)
        put_about(lines, ev);
}

void ndjson_stream_end(struct ndjson *lines)
{
    end_group(lines);
    if (lines->stream.part == NDJSON_GROUPS)
        rd_sink_byte(lines->sink, ']');
    rd_sink_byte(lines->sink, '}');
}
