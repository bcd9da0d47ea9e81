/* Streams: written as the only key of a snapshot, whose value is then extracted.
 *
 * Entries are passed to the writer as they arrive. Groups are kept until the end of the stream,
 * because their number precedes them in the file, and pending entries are assigned to owners. */
#include "base/mem.h"
#include "rdb/reader.h"
#include "rdb/writer.h"
#include "data/ndjson_read_impl.h"

#include <stdlib.h>

enum { VERSION_1 = 9, VERSION_2 = 10, VERSION_3 = 11, VERSION_4 = 13, ID_TEXT = 44 };

/* A part of ndjson_groups.names. */
struct span {
    size_t at;
    size_t len;
};

struct pending {
    struct rdb_stream_id id;
    int64_t delivery_ms;
    uint64_t delivery_count;
    struct span consumer;
    size_t next; /* of the same consumer in the group; SIZE_MAX: none */
};

struct consumer {
    struct span name;
    int64_t seen_ms;
    int64_t active_ms;
    uint64_t n_owned;
    size_t first; /* of its pending entries in the group; SIZE_MAX: none */
};

struct group {
    struct span name;
    struct rdb_stream_id last_id;
    uint64_t entries_read;
    size_t pending, n_pending;     /* index of the first in ndjson_groups.pending */
    size_t consumers, n_consumers; /* … */
};

/* A producer of idempotent entries, and one of its ids. */
struct producer {
    struct span name;
    size_t ids, n_ids; /* index of the first in ndjson_groups.produced */
};

struct produced {
    struct span name;
    struct rdb_stream_id id;
};

/* What a line says about a stream. Missing parts are derived from the entries. */
struct stream_fields {
    struct rdb_event ev;
    bool length, last_id, first_id, entries_added;
    bool idmp; /* it has settings of idempotent entries */
    uint64_t duration, max_size, ids_added, duplicates;
    uint64_t n_entries;
    struct rdb_stream_id first, last;
};

struct ndjson_groups {
    struct rdb_writer *writer;
    struct rd_buf names;
    struct rd_buf groups;    /* struct group */
    struct rd_buf pending;   /* struct pending */
    struct rd_buf consumers; /* struct consumer */
    struct rd_buf producers; /* struct producer */
    struct rd_buf produced;  /* struct produced */
    struct rd_buf order;     /* size_t: consumers by name */
    struct rd_buf texts;     /* of one entry */
    struct rd_buf lens;      /* size_t, of them */
};

void ndjson_read_stream_done(struct ndjson_reader *r)
{
    struct ndjson_groups *g = r->groups;
    if (g == NULL)
        return;
    struct rd_buf *bufs[] = {&g->names,    &g->groups, &g->pending, &g->consumers, &g->producers,
                             &g->produced, &g->order,  &g->texts,   &g->lens};
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++)
        rd_buf_done(bufs[i]);
    rdb_writer_free(g->writer);
    rd_free(g);
    r->groups = NULL;
}

static bool add(struct ndjson_reader *r, struct rd_buf *buf, const void *item, size_t size)
{
    return rd_buf_add(buf, item, size) || rd_err_nomem(&r->err, size);
}

static bool put(struct ndjson_reader *r, const struct rdb_event *ev)
{
    return rdb_writer_put(r->groups->writer, ev, &r->err);
}

/* Reads the members of an object: calls read() with the name of each. */
static bool read_members(struct ndjson_reader *r,
                         bool (*read)(struct ndjson_reader *r, const char *name, void *ctx),
                         void *ctx)
{
    char name[NDJSON_WORD];
    if (!json_expect(&r->in, '{'))
        return false;
    if (json_take(&r->in, '}'))
        return true;
    do
        if (!json_word(&r->in, name, sizeof name) || !json_expect(&r->in, ':') ||
            !read(r, name, ctx))
            return false;
    while (json_take(&r->in, ','));
    return json_expect(&r->in, '}');
}

/* Reads an array: calls read() for each item. */
static bool read_items(struct ndjson_reader *r, bool (*read)(struct ndjson_reader *r, void *ctx),
                       void *ctx)
{
    if (!json_expect(&r->in, '['))
        return false;
    if (json_take(&r->in, ']'))
        return true;
    do
        if (!read(r, ctx))
            return false;
    while (json_take(&r->in, ','));
    return json_expect(&r->in, ']');
}

static bool unknown(struct ndjson_reader *r)
{
    return json_fail(&r->in, "unknown member");
}

static bool read_null(struct ndjson_reader *r)
{
    return json_expect(&r->in, 'n') && json_expect(&r->in, 'u') && json_expect(&r->in, 'l') &&
           json_expect(&r->in, 'l');
}

static bool read_id(struct ndjson_reader *r, struct rdb_stream_id *ret)
{
    char text[ID_TEXT];
    if (!json_word(&r->in, text, sizeof text))
        return false;
    const char *dash = strchr(text, '-');
    return (dash != NULL && rd_num_get_u64(rd_slice(text, (size_t)(dash - text)), &ret->ms) &&
            rd_num_get_u64(rd_slice_str(dash + 1), &ret->seq)) ||
           json_fail(&r->in, "stream id expected");
}

static bool read_span(struct ndjson_reader *r, struct span *ret)
{
    ret->at = r->groups->names.len;
    if (!ndjson_read_name(r, r->opts.strings, &r->groups->names))
        return false;
    ret->len = r->groups->names.len - ret->at;
    return true;
}

static struct rd_slice text_of(const struct ndjson_groups *g, struct span span)
{
    return rd_slice(g->names.ptr + span.at, span.len);
}

/* ---- entries ---- */

static bool read_text(struct ndjson_reader *r)
{
    struct ndjson_groups *g = r->groups;
    size_t from = g->texts.len;
    bool more = true;
    if (!json_expect(&r->in, '"'))
        return false;
    while (more) {
        size_t len;
        if (!rd_buf_reserve(&g->texts, 256))
            return rd_err_nomem(&r->err, 256);
        if (!json_piece(&r->in, r->opts.strings, g->texts.ptr + g->texts.len,
                        g->texts.cap - g->texts.len, &len, &more))
            return false;
        g->texts.len += len;
    }
    size_t len = g->texts.len - from;
    return add(r, &g->lens, &len, sizeof len);
}

static bool read_pair(struct ndjson_reader *r, void *ctx)
{
    (void)ctx;
    return json_expect(&r->in, '[') && read_text(r) && json_expect(&r->in, ',') && read_text(r) &&
           json_expect(&r->in, ']');
}

static bool read_entry_member(struct ndjson_reader *r, const char *name, void *ctx)
{
    if (strcmp(name, "id") == 0)
        return read_id(r, ctx);
    return strcmp(name, "fields") == 0 ? read_items(r, read_pair, NULL) : unknown(r);
}

static bool put_entry(struct ndjson_reader *r, struct rdb_stream_id id)
{
    struct ndjson_groups *g = r->groups;
    const size_t *lens = (const size_t *)(const void *)g->lens.ptr;
    size_t n = g->lens.len / sizeof *lens, at = 0;
    struct rdb_event ev = {.kind = RDB_ENTRY};
    ev.entry.id = id;
    ev.entry.n_fields = n / 2;
    if (!put(r, &ev))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct rdb_event elem = {.kind = RDB_ELEM};
        elem.elem.role = i % 2 == 0 ? RDB_ROLE_FIELD : RDB_ROLE_VALUE;
        elem.elem.expire_ms = RDB_NO_EXPIRE;
        elem.elem.str = (struct rdb_string){
            .ptr = g->texts.ptr + at, .len = lens[i], .total = lens[i], .first = true};
        at += lens[i];
        if (!put(r, &elem))
            return false;
    }
    return true;
}

static bool read_entry(struct ndjson_reader *r, void *ctx)
{
    struct stream_fields *fields = ctx;
    struct rdb_stream_id id = {0};
    rd_buf_reset(&r->groups->texts);
    rd_buf_reset(&r->groups->lens);
    if (!read_members(r, read_entry_member, &id))
        return false;
    if (fields->n_entries++ == 0)
        fields->first = id;
    fields->last = id;
    return put_entry(r, id);
}

/* ---- groups ---- */

static bool read_pending_member(struct ndjson_reader *r, const char *name, void *ctx)
{
    struct pending *p = ctx;
    if (strcmp(name, "id") == 0)
        return read_id(r, &p->id);
    if (strcmp(name, "delivery_ms") == 0)
        return json_i64(&r->in, &p->delivery_ms);
    if (strcmp(name, "delivery_count") == 0)
        return json_u64(&r->in, &p->delivery_count);
    if (strcmp(name, "consumer") != 0)
        return unknown(r);
    return read_span(r, &p->consumer);
}

/* Consecutive entries usually have the same consumer, so its name is looked up once. */
static bool read_pending(struct ndjson_reader *r, void *ctx)
{
    struct ndjson_groups *g = r->groups;
    struct group *group = ctx;
    struct pending p = {.consumer.at = SIZE_MAX};
    if (!read_members(r, read_pending_member, &p))
        return false;
    if (p.consumer.at == SIZE_MAX)
        return json_fail(&r->in, "pending entry without consumer");
    if (group->n_pending++ > 0) {
        const struct pending *last =
            (const struct pending *)(const void *)(g->pending.ptr + g->pending.len) - 1;
        if (rd_slice_eq(text_of(g, last->consumer), text_of(g, p.consumer))) {
            g->names.len = p.consumer.at;
            p.consumer = last->consumer;
        }
    }
    return add(r, &g->pending, &p, sizeof p);
}

static bool read_consumer_member(struct ndjson_reader *r, const char *name, void *ctx)
{
    struct consumer *c = ctx;
    if (strcmp(name, "name") == 0)
        return read_span(r, &c->name);
    if (strcmp(name, "seen_ms") == 0)
        return json_i64(&r->in, &c->seen_ms);
    return strcmp(name, "active_ms") == 0 ? json_i64(&r->in, &c->active_ms) : unknown(r);
}

static bool read_consumer(struct ndjson_reader *r, void *ctx)
{
    struct group *group = ctx;
    struct consumer c = {.active_ms = RDB_NO_EXPIRE, .first = SIZE_MAX};
    group->n_consumers++;
    return read_members(r, read_consumer_member, &c) && add(r, &r->groups->consumers, &c, sizeof c);
}

static bool read_group_member(struct ndjson_reader *r, const char *name, void *ctx)
{
    struct group *group = ctx;
    if (strcmp(name, "name") == 0)
        return read_span(r, &group->name);
    if (strcmp(name, "last_id") == 0)
        return read_id(r, &group->last_id);
    if (strcmp(name, "entries_read") == 0)
        return json_peek(&r->in) == 'n' ? read_null(r) : json_u64(&r->in, &group->entries_read);
    if (strcmp(name, "pending") == 0)
        return read_items(r, read_pending, group);
    return strcmp(name, "consumers") == 0 ? read_items(r, read_consumer, group) : unknown(r);
}

struct by_name {
    struct rd_slice name;
    size_t index;
};

static int compare_names(const void *a, const void *b)
{
    const struct by_name *x = a, *y = b;
    size_t n = x->name.len < y->name.len ? x->name.len : y->name.len;
    int order = n == 0 ? 0 : memcmp(x->name.ptr, y->name.ptr, n);
    return order != 0 ? order : (x->name.len > y->name.len) - (x->name.len < y->name.len);
}

static bool sort_consumers(struct ndjson_reader *r, const struct group *group)
{
    struct ndjson_groups *g = r->groups;
    struct consumer *c = (struct consumer *)(void *)g->consumers.ptr + group->consumers;
    rd_buf_reset(&g->order);
    for (size_t i = 0; i < group->n_consumers; i++) {
        struct by_name item = {text_of(g, c[i].name), i};
        if (!add(r, &g->order, &item, sizeof item))
            return false;
    }
    if (group->n_consumers > 0)
        qsort(g->order.ptr, group->n_consumers, sizeof(struct by_name), compare_names);
    return true;
}

/* Assigns each pending entry to its owner, from the last to the first, so that the lists are in
 * order. */
static bool assign(struct ndjson_reader *r, const struct group *group)
{
    struct ndjson_groups *g = r->groups;
    if (group->n_pending == 0)
        return true;
    if (!sort_consumers(r, group))
        return false;
    struct pending *p = (struct pending *)(void *)g->pending.ptr + group->pending;
    struct consumer *c = (struct consumer *)(void *)g->consumers.ptr + group->consumers;
    for (size_t i = group->n_pending; i-- > 0;) {
        struct by_name wanted = {text_of(g, p[i].consumer), 0};
        const struct by_name *found = NULL;
        if (group->n_consumers > 0)
            found =
                bsearch(&wanted, g->order.ptr, group->n_consumers, sizeof wanted, compare_names);
        if (found == NULL)
            return json_fail(&r->in, "pending entry of a consumer that is not in the group");
        p[i].next = c[found->index].first;
        c[found->index].first = i;
        c[found->index].n_owned++;
    }
    return true;
}

static bool read_group(struct ndjson_reader *r, void *ctx)
{
    struct ndjson_groups *g = r->groups;
    struct group group = {
        .entries_read = RDB_UNKNOWN,
        .pending = g->pending.len / sizeof(struct pending),
        .consumers = g->consumers.len / sizeof(struct consumer),
    };
    (void)ctx;
    return read_members(r, read_group_member, &group) && assign(r, &group) &&
           add(r, &g->groups, &group, sizeof group);
}

/* ---- writing groups ---- */

static bool put_owned(struct ndjson_reader *r, const struct group *group, size_t first)
{
    const struct pending *p =
        (const struct pending *)(const void *)r->groups->pending.ptr + group->pending;
    for (size_t i = first; i != SIZE_MAX; i = p[i].next) {
        struct rdb_event ev = {.kind = RDB_OWNED, .id = p[i].id};
        if (!put(r, &ev))
            return false;
    }
    return true;
}

static bool put_consumer(struct ndjson_reader *r, const struct group *group, size_t i)
{
    const struct ndjson_groups *g = r->groups;
    const struct consumer *c =
        (const struct consumer *)(const void *)g->consumers.ptr + group->consumers + i;
    struct rdb_event ev = {.kind = RDB_CONSUMER};
    ev.consumer.name = text_of(g, c->name);
    ev.consumer.seen_ms = c->seen_ms;
    ev.consumer.active_ms = c->active_ms;
    ev.consumer.n_owned = c->n_owned;
    return put(r, &ev) && put_owned(r, group, c->first);
}

static bool put_group(struct ndjson_reader *r, const struct group *group)
{
    const struct ndjson_groups *g = r->groups;
    const struct pending *p = (const struct pending *)(const void *)g->pending.ptr;
    struct rdb_event ev = {.kind = RDB_GROUP};
    ev.group.name = text_of(g, group->name);
    ev.group.last_id = group->last_id;
    ev.group.entries_read = group->entries_read;
    ev.group.n_pending = group->n_pending;
    if (!put(r, &ev))
        return false;
    for (size_t i = 0; i < group->n_pending; i++) {
        const struct pending *one = &p[group->pending + i];
        struct rdb_event pending = {.kind = RDB_PENDING};
        pending.pending.id = one->id;
        pending.pending.delivery_ms = one->delivery_ms;
        pending.pending.delivery_count = one->delivery_count;
        if (!put(r, &pending))
            return false;
    }
    for (size_t i = 0; i < group->n_consumers; i++)
        if (!put_consumer(r, group, i))
            return false;
    return true;
}

/* ---- idempotent entries ---- */

/* [name, id] */
static bool read_produced(struct ndjson_reader *r, void *ctx)
{
    struct producer *producer = ctx;
    struct produced id;
    producer->n_ids++;
    return json_expect(&r->in, '[') && read_span(r, &id.name) && json_expect(&r->in, ',') &&
           read_id(r, &id.id) && json_expect(&r->in, ']') &&
           add(r, &r->groups->produced, &id, sizeof id);
}

static bool read_producer_member(struct ndjson_reader *r, const char *name, void *ctx)
{
    struct producer *producer = ctx;
    if (strcmp(name, "name") == 0)
        return read_span(r, &producer->name);
    return strcmp(name, "ids") == 0 ? read_items(r, read_produced, producer) : unknown(r);
}

static bool read_producer(struct ndjson_reader *r, void *ctx)
{
    struct ndjson_groups *g = r->groups;
    struct producer producer = {.ids = g->produced.len / sizeof(struct produced)};
    (void)ctx;
    return read_members(r, read_producer_member, &producer) &&
           add(r, &g->producers, &producer, sizeof producer);
}

static bool read_idmp_member(struct ndjson_reader *r, const char *name, void *ctx)
{
    struct stream_fields *fields = ctx;
    if (strcmp(name, "duration") == 0)
        return json_u64(&r->in, &fields->duration);
    if (strcmp(name, "max_size") == 0)
        return json_u64(&r->in, &fields->max_size);
    if (strcmp(name, "iids_added") == 0)
        return json_u64(&r->in, &fields->ids_added);
    if (strcmp(name, "iids_duplicates") == 0)
        return json_u64(&r->in, &fields->duplicates);
    return strcmp(name, "producers") == 0 ? read_items(r, read_producer, NULL) : unknown(r);
}

static bool put_producer(struct ndjson_reader *r, const struct producer *producer)
{
    const struct ndjson_groups *g = r->groups;
    const struct produced *ids = (const struct produced *)(const void *)g->produced.ptr;
    struct rdb_event ev = {.kind = RDB_PRODUCER};
    ev.producer.name = text_of(g, producer->name);
    ev.producer.n_ids = producer->n_ids;
    if (!put(r, &ev))
        return false;
    for (size_t i = 0; i < producer->n_ids; i++) {
        struct rdb_event id = {.kind = RDB_PRODUCED};
        id.produced.name = text_of(g, ids[producer->ids + i].name);
        id.produced.id = ids[producer->ids + i].id;
        if (!put(r, &id))
            return false;
    }
    return true;
}

static bool put_idmp(struct ndjson_reader *r, const struct stream_fields *fields)
{
    const struct ndjson_groups *g = r->groups;
    const struct producer *producers = (const struct producer *)(const void *)g->producers.ptr;
    struct rdb_event ev = {.kind = RDB_IDMP};
    if (r->type->id != RDB_TYPE_STREAM_LISTPACKS_4)
        return !fields->idmp || json_fail(&r->in, "idmp in a stream of another encoding");
    ev.idmp.duration = fields->duration;
    ev.idmp.max_size = fields->max_size;
    ev.idmp.n_producers = g->producers.len / sizeof *producers;
    if (!put(r, &ev))
        return false;
    for (size_t i = 0; i < g->producers.len / sizeof *producers; i++)
        if (!put_producer(r, &producers[i]))
            return false;
    ev = (struct rdb_event){.kind = RDB_IDMP_END};
    ev.idmp_end.added = fields->ids_added;
    ev.idmp_end.duplicates = fields->duplicates;
    return put(r, &ev);
}

/* ---- the stream ---- */

static bool read_stream_member(struct ndjson_reader *r, const char *name, void *ctx)
{
    struct stream_fields *fields = ctx;
    struct rdb_event *ev = &fields->ev;
    if (strcmp(name, "entries") == 0)
        return read_items(r, read_entry, fields);
    if (strcmp(name, "groups") == 0)
        return read_items(r, read_group, NULL);
    if (strcmp(name, "length") == 0)
        return fields->length = json_u64(&r->in, &ev->stream.length);
    if (strcmp(name, "last_id") == 0)
        return fields->last_id = read_id(r, &ev->stream.last_id);
    if (strcmp(name, "max_deleted_id") == 0)
        return read_id(r, &ev->stream.max_deleted_id);
    if (strcmp(name, "entries_added") == 0)
        return fields->entries_added = json_u64(&r->in, &ev->stream.entries_added);
    if (strcmp(name, "first_id") == 0)
        return fields->first_id = read_id(r, &ev->stream.first_id);
    if (strcmp(name, "idmp") == 0)
        return fields->idmp = read_members(r, read_idmp_member, fields);
    return unknown(r);
}

/* Fills in optional members from the entries. */
static void complete(struct stream_fields *fields)
{
    struct rdb_event *ev = &fields->ev;
    if (!fields->length)
        ev->stream.length = fields->n_entries;
    if (!fields->last_id)
        ev->stream.last_id = fields->last;
    if (!fields->first_id)
        ev->stream.first_id = fields->first;
    if (!fields->entries_added)
        ev->stream.entries_added = ev->stream.length;
}

static bool begin(struct ndjson_reader *r, int version)
{
    struct rdb_writer_opts opts =
        RDB_WRITER_OPTS(.dialect = RDB_REDIS, .version = version, .compress = true);
    struct ndjson_groups *g = r->groups;
    struct rd_sink *to;
    struct rdb_event key = {.kind = RDB_KEY}, value = {.kind = RDB_VALUE};
    struct rd_buf *bufs[] = {&g->names,     &g->groups,    &g->pending,
                             &g->consumers, &g->producers, &g->produced};
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++)
        rd_buf_reset(bufs[i]);
    rdb_writer_free(g->writer);
    g->writer = NULL;
    key.key.name = rd_buf_slice(&r->key);
    key.key.type = value.value.type = r->type;
    key.key.expire_ms = RDB_NO_EXPIRE;
    key.key.idle_s = key.key.freq = RDB_UNKNOWN;
    value.value.count = value.value.nodes = RDB_UNKNOWN;
    value.value.min_expire_ms = RDB_NO_EXPIRE;
    return stage_begin(&r->plain, &to, &r->err) && rdb_writer_new(&g->writer, to, &opts, &r->err) &&
           put(r, &key) && put(r, &value);
}

/* Extracts the value from the snapshot that was written. */
static bool take_value(struct ndjson_reader *r)
{
    struct rd_src *src;
    struct rd_sink *to;
    struct rdb_reader *reader;
    struct rdb_event ev;
    if (!stage_source(&r->plain, -1, &src, &r->err))
        return false;
    bool ok = rdb_reader_new(&reader, src, NULL, &r->err);
    if (ok) {
        enum rdb_status status;
        do
            status = rdb_reader_next(reader, &ev);
        while (status == RDB_EVENT && ev.kind != RDB_KEY);
        ok = status == RDB_EVENT && stage_begin(&r->value, &to, &r->err) &&
             rdb_reader_copy_value(reader, to) == RDB_EVENT && stage_end(&r->value, &r->err);
        if (!ok)
            rd_err_adopt(&r->err, rdb_reader_err(reader));
        rdb_reader_free(reader);
    }
    rd_src_close(src);
    return ok;
}

static int version_of(const struct rdb_type *type)
{
    return type->id == RDB_TYPE_STREAM_LISTPACKS     ? VERSION_1
           : type->id == RDB_TYPE_STREAM_LISTPACKS_2 ? VERSION_2
           : type->id == RDB_TYPE_STREAM_LISTPACKS_3 ? VERSION_3
                                                     : VERSION_4;
}

bool ndjson_read_stream(struct ndjson_reader *r)
{
    struct stream_fields fields = {.ev.kind = RDB_STREAM};
    struct rdb_event end = {.kind = RDB_VALUE_END};
    if (r->groups == NULL && (r->groups = rd_calloc(1, sizeof *r->groups)) == NULL)
        return rd_err_nomem(&r->err, sizeof *r->groups);
    r->type = r->encoding != NULL ? r->encoding : rdb_type_get(RDB_TYPE_STREAM_LISTPACKS_3);
    if (!begin(r, version_of(r->type)) || !read_members(r, read_stream_member, &fields))
        return false;
    complete(&fields);
    fields.ev.stream.has_offsets = r->type->id != RDB_TYPE_STREAM_LISTPACKS;
    struct ndjson_groups *g = r->groups;
    const struct group *groups = (const struct group *)(const void *)g->groups.ptr;
    fields.ev.stream.n_groups = g->groups.len / sizeof *groups;
    if (!put(r, &fields.ev))
        return false;
    for (size_t i = 0; i < fields.ev.stream.n_groups; i++)
        if (!put_group(r, &groups[i]))
            return false;
    return put_idmp(r, &fields) && put(r, &end) && rdb_writer_end(g->writer, &r->err) &&
           stage_end(&r->plain, &r->err) && take_value(r);
}
