/* stream_file.c - loading and saving of streams. Nodes are adopted unchanged. A node that is too
 * long for one event arrives by entry and is rebuilt without its deleted entries. */
#include "engine/value/stream.h"

#include "engine/value/stream_idmp.h"
#include "engine/value/stream_node.h"
#include "rdb/writer.h"

struct engine_stream_loading {
    /* The entry whose strings are arriving. */
    struct rdb_stream_id id;
    uint64_t strings_left;
    struct engine_pieces pieces;
    uint8_t *bytes; /* number of strings so far */
    size_t n_bytes, cap_bytes;
    size_t *lens;
    size_t n_lens, cap_lens;
    bool apart; /* the last node was built from single entries */

    /* The parts after the entries. */
    struct engine_stream_group *group;
    struct engine_stream_consumer *consumer;
    uint64_t n_owned;
    bool derive_read; /* the file's version has no entries_read */
    struct engine_stream_producer *producer;
};

void engine_stream_loading_free(struct engine_stream_loading *loading)
{
    if (loading == NULL)
        return;
    engine_pieces_done(&loading->pieces);
    engine_free(loading->bytes);
    engine_free(loading->lens);
    engine_free(loading);
}

static bool corrupt(const struct rdb_event *ev, struct rd_err *err, const char *what)
{
    return rd_err_set(err, RD_ERR_CORRUPT, ev->offset, "%s", what);
}

static bool corrupt_for(const struct rdb_event *ev, struct rd_err *err, enum rdb_reason id,
                        const char *what)
{
    const struct rd_err_reason reason = {.id = id};
    return rd_err_set_reason(err, RD_ERR_CORRUPT, ev->offset, reason, "%s", what);
}

/* ---- entries ---- */

static bool load_node(struct engine_stream *stream, const struct rdb_event *ev, struct rd_err *err)
{
    bool is_new;
    uint8_t **node = engine_stream_map_add(&stream->nodes, ev->packed.node, &is_new);
    if (!is_new)
        return corrupt(ev, err, "two stream nodes with the same ID");
    *node = engine_lp_from(ev->packed.blob);
    stream->length += ev->packed.count;
    stream->loading->apart = false;
    return true;
}

static void *more(void *block, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap)
        return block;
    *cap = need + need / 2;
    return engine_realloc(block, *cap * size);
}

static void keep_string(struct engine_stream_loading *l, struct rd_slice text)
{
    l->bytes = more(l->bytes, &l->cap_bytes, l->n_bytes + text.len, 1);
    l->lens = more(l->lens, &l->cap_lens, l->n_lens + 1, sizeof l->lens[0]);
    if (text.len > 0)
        memcpy(l->bytes + l->n_bytes, text.ptr, text.len);
    l->n_bytes += text.len;
    l->lens[l->n_lens++] = text.len;
}

/* The entry is complete. The first entry of a node in the file starts a new node. */
static void add_entry(struct engine_stream *stream, const struct engine_config *config)
{
    struct engine_stream_loading *l = stream->loading;
    struct engine_config own = *config;
    struct rd_slice *pairs = engine_alloc((l->n_lens + 1) * sizeof *pairs);
    const uint8_t *p = l->bytes;
    for (size_t i = 0; i < l->n_lens; i++) {
        pairs[i] = rd_slice(p, l->lens[i]);
        p += l->lens[i];
    }
    if (!l->apart)
        own.stream_node_max_bytes = 1;
    engine_stream_append(stream, &own, l->id, l->n_lens / 2, pairs);
    l->apart = true;
    engine_free(pairs);
}

static bool begin_entry(struct engine_stream *stream, const struct rdb_event *ev,
                        const struct engine_config *config, struct rd_err *err)
{
    struct engine_stream_loading *l = stream->loading;
    struct rdb_stream_id last = engine_stream_edge(stream, false, true);
    if (stream->nodes.count > 0 && rdb_stream_id_cmp(ev->entry.id, last) <= 0)
        return corrupt(ev, err, "stream entry ID not greater than the previous one");
    if (ev->entry.n_fields > UINT32_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, ev->offset, "stream entry with more than 2^32 fields");
    l->id = ev->entry.id;
    l->strings_left = 2 * ev->entry.n_fields;
    l->n_bytes = l->n_lens = 0;
    if (l->strings_left == 0)
        add_entry(stream, config);
    return true;
}

static bool load_string(struct engine_stream *stream, const struct rdb_event *ev,
                        const struct engine_config *config, struct rd_err *err)
{
    struct engine_stream_loading *l = stream->loading;
    struct rd_slice text;
    if (ev->elem.str.first && !ev->elem.str.is_int &&
        ev->elem.str.total > ENGINE_STREAM_ENTRY_MAX - l->n_bytes)
        return rd_err_set(err, RD_ERR_LIMIT, ev->offset, "stream entry larger than 1 GiB");
    if (!engine_pieces_take(&l->pieces, &ev->elem.str, &text))
        return true;
    keep_string(l, text);
    if (--l->strings_left == 0)
        add_entry(stream, config);
    return true;
}

/* A last ID lower than an entry's would let XADD add an entry before others. */
static void load_summary(struct engine_stream *stream, const struct rdb_event *ev)
{
    struct rdb_stream_id edge = engine_stream_edge(stream, false, false);
    stream->last_id = ev->stream.last_id;
    if (rdb_stream_id_cmp(edge, stream->last_id) > 0)
        stream->last_id = edge;
    stream->loading->derive_read = !ev->stream.has_offsets;
    if (ev->stream.has_offsets) {
        stream->first_id = ev->stream.first_id;
        stream->max_deleted_id = ev->stream.max_deleted_id;
        stream->entries_added = ev->stream.entries_added;
    } else {
        stream->first_id = engine_stream_edge(stream, true, false);
        stream->max_deleted_id = ENGINE_STREAM_ID_ZERO;
        stream->entries_added = stream->length;
    }
}

/* ---- groups ---- */

static bool end_group(const struct engine_stream_loading *l, const struct rdb_event *ev,
                      struct rd_err *err)
{
    if (l->group != NULL && l->n_owned != l->group->pending.count)
        return corrupt(ev, err, "group with pending entries that no consumer owns");
    return true;
}

static bool load_group(struct engine_stream *stream, const struct rdb_event *ev, struct rd_err *err)
{
    struct engine_stream_loading *l = stream->loading;
    if (!end_group(l, ev, err))
        return false;
    int64_t read = l->derive_read ? engine_stream_entries_to(stream, ev->group.last_id)
                                  : (int64_t)ev->group.entries_read;
    l->group = engine_stream_group_add(stream, ev->group.name, ev->group.last_id, read);
    l->consumer = NULL;
    l->n_owned = 0;
    return l->group != NULL || corrupt(ev, err, "duplicate consumer group");
}

static bool load_pending(const struct engine_stream_loading *l, const struct rdb_event *ev,
                         struct rd_err *err)
{
    bool is_new;
    struct engine_stream_pending *pending =
        engine_stream_map_add(&l->group->pending, ev->pending.id, &is_new);
    pending->delivery_ms = ev->pending.delivery_ms;
    pending->delivery_count = ev->pending.delivery_count;
    return is_new || corrupt_for(ev, err, RDB_REASON_PENDING_TWICE, "duplicate pending entry");
}

static bool load_consumer(struct engine_stream_loading *l, const struct rdb_event *ev,
                          struct rd_err *err)
{
    l->consumer = engine_stream_consumer_add(l->group, ev->consumer.name, ev->consumer.seen_ms);
    if (l->consumer == NULL)
        return corrupt_for(ev, err, RDB_REASON_CONSUMER_TWICE, "duplicate consumer");
    l->consumer->active_ms = ev->consumer.active_ms;
    return true;
}

static bool load_owned(struct engine_stream_loading *l, const struct rdb_event *ev,
                       struct rd_err *err)
{
    bool is_new;
    struct engine_stream_pending *pending = engine_stream_pending_find(l->group, ev->id);
    if (pending == NULL || pending->consumer != NULL)
        return corrupt(ev, err, "consumer with an entry that is not pending or has another owner");
    pending->consumer = l->consumer;
    engine_stream_map_add(&l->consumer->pending, ev->id, &is_new);
    l->n_owned++;
    return true;
}

/* ---- idempotent entries ---- */

static bool load_idmp(struct engine_stream *stream, const struct rdb_event *ev)
{
    struct engine_stream_idmp *idmp = engine_stream_idmp(stream);
    if (ev->kind == RDB_IDMP) {
        idmp->duration_s = ev->idmp.duration;
        idmp->max_entries = ev->idmp.max_size;
    } else {
        idmp->added = ev->idmp_end.added;
        idmp->duplicates = ev->idmp_end.duplicates;
    }
    return true;
}

static bool load_producer(struct engine_stream *stream, const struct rdb_event *ev,
                          struct rd_err *err)
{
    struct engine_stream_idmp *idmp = engine_stream_idmp(stream);
    if (engine_stream_name_find(&idmp->producers, ev->producer.name) != NULL)
        return corrupt(ev, err, "duplicate producer");
    stream->loading->producer = engine_stream_producer(idmp, ev->producer.name);
    return true;
}

static bool load_produced(struct engine_stream *stream, const struct rdb_event *ev,
                          struct rd_err *err)
{
    struct rdb_stream_id id;
    struct engine_stream_producer *producer = stream->loading->producer;
    if (engine_stream_produced_find(producer, ev->produced.name, &id))
        return corrupt(ev, err, "duplicate entry of a producer");
    engine_stream_produced_add(stream->idmp, producer, ev->produced.name, ev->produced.id);
    return true;
}

/* ---- loading ---- */

static bool unsupported(const struct rdb_event *ev, struct rd_err *err, const char *what)
{
    return rd_err_set(err, RD_ERR_UNSUPPORTED, ev->offset, "%s", what);
}

static bool load_event(struct engine_stream *stream, const struct rdb_event *ev,
                       const struct engine_config *config, struct rd_err *err)
{
    struct engine_stream_loading *l = stream->loading;
    switch (ev->kind) {
    case RDB_PACKED:
        return load_node(stream, ev, err);
    case RDB_ENTRY:
        return begin_entry(stream, ev, config, err);
    case RDB_ELEM:
        return load_string(stream, ev, config, err);
    case RDB_STREAM:
        load_summary(stream, ev);
        return true;
    case RDB_GROUP:
        return load_group(stream, ev, err);
    case RDB_PENDING:
        return load_pending(l, ev, err);
    case RDB_CONSUMER:
        return load_consumer(l, ev, err);
    case RDB_OWNED:
        return load_owned(l, ev, err);
    case RDB_NACKED:
        return unsupported(ev, err, "streams with NACKed entries are not supported");
    case RDB_IDMP:
    case RDB_IDMP_END:
        return load_idmp(stream, ev);
    case RDB_PRODUCER:
        return load_producer(stream, ev, err);
    case RDB_PRODUCED:
        return load_produced(stream, ev, err);
    case RDB_VALUE_END:
        return end_group(l, ev, err);
    default:
        return true; /* notes */
    }
}

bool engine_stream_load(struct engine_value *v, const struct rdb_event *ev,
                        const struct engine_config *config, struct rd_err *err)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_STREAM);
    bool ok = true;
    if (ev->kind == RDB_VALUE) {
        *v = engine_stream_value();
        v->u.stream->loading = engine_calloc(1, sizeof *v->u.stream->loading);
    } else {
        ok = load_event(v->u.stream, ev, config, err);
    }
    if (ev->kind == RDB_VALUE_END) {
        engine_stream_loading_free(v->u.stream->loading);
        v->u.stream->loading = NULL;
    }
    engine_mem_leave(before);
    return ok;
}

/* ---- saving ---- */

static struct rdb_event event(enum rdb_event_kind kind)
{
    return (struct rdb_event){.kind = kind, .inner = RD_NO_OFFSET};
}

static bool save_begin(const struct engine_stream *stream, struct rdb_writer *w, struct rd_err *err)
{
    struct rdb_event ev = event(RDB_VALUE);
    ev.value.type = rdb_type_get(stream->idmp == NULL ? RDB_TYPE_STREAM_LISTPACKS_2
                                                      : RDB_TYPE_STREAM_LISTPACKS_4);
    ev.value.count = stream->length;
    ev.value.nodes = stream->nodes.count;
    ev.value.min_expire_ms = RDB_NO_EXPIRE;
    return rdb_writer_put(w, &ev, err);
}

static bool save_nodes(const struct engine_stream *stream, struct rdb_writer *w, struct rd_err *err)
{
    struct engine_stream_map_pos pos;
    for (bool any = engine_stream_map_first(&stream->nodes, &pos); any;
         any = engine_stream_map_next(&stream->nodes, &pos)) {
        uint8_t *lp = *(uint8_t **)engine_stream_map_at(&stream->nodes, pos);
        struct rdb_event ev = event(RDB_PACKED);
        ev.packed.codec = RDB_LISTPACK;
        ev.packed.blob = rd_slice(lp, engine_lp_bytes(lp));
        ev.packed.count = (uint64_t)node_num(node_first(lp));
        ev.packed.node = engine_stream_map_id(&stream->nodes, pos);
        if (!rdb_writer_put(w, &ev, err))
            return false;
    }
    return true;
}

static bool save_summary(const struct engine_stream *stream, struct rdb_writer *w,
                         struct rd_err *err)
{
    struct rdb_event ev = event(RDB_STREAM);
    ev.stream.length = stream->length;
    ev.stream.last_id = stream->last_id;
    ev.stream.first_id = stream->first_id;
    ev.stream.max_deleted_id = stream->max_deleted_id;
    ev.stream.entries_added = stream->entries_added;
    ev.stream.has_offsets = true;
    ev.stream.n_groups = stream->groups.n;
    return rdb_writer_put(w, &ev, err);
}

static bool save_pending(const struct engine_stream_group *group, struct rdb_writer *w,
                         struct rd_err *err)
{
    struct engine_stream_map_pos pos;
    for (bool any = engine_stream_map_first(&group->pending, &pos); any;
         any = engine_stream_map_next(&group->pending, &pos)) {
        const struct engine_stream_pending *pending = engine_stream_map_at(&group->pending, pos);
        struct rdb_event ev = event(RDB_PENDING);
        ev.pending.id = engine_stream_map_id(&group->pending, pos);
        ev.pending.delivery_ms = pending->delivery_ms;
        ev.pending.delivery_count = pending->delivery_count;
        if (!rdb_writer_put(w, &ev, err))
            return false;
    }
    return true;
}

static bool save_consumer(const struct engine_stream_consumer *consumer, struct rdb_writer *w,
                          struct rd_err *err)
{
    struct engine_stream_map_pos pos;
    struct rdb_event ev = event(RDB_CONSUMER);
    ev.consumer.name = consumer->name;
    ev.consumer.seen_ms = consumer->seen_ms;
    ev.consumer.active_ms = consumer->active_ms;
    ev.consumer.n_owned = consumer->pending.count;
    if (!rdb_writer_put(w, &ev, err))
        return false;
    for (bool any = engine_stream_map_first(&consumer->pending, &pos); any;
         any = engine_stream_map_next(&consumer->pending, &pos)) {
        ev = event(RDB_OWNED);
        ev.id = engine_stream_map_id(&consumer->pending, pos);
        if (!rdb_writer_put(w, &ev, err))
            return false;
    }
    return true;
}

static bool save_group(const struct engine_stream_group *group, struct rdb_writer *w,
                       struct rd_err *err)
{
    struct rdb_event ev = event(RDB_GROUP);
    ev.group.name = group->name;
    ev.group.last_id = group->last_id;
    ev.group.entries_read = (uint64_t)group->entries_read;
    ev.group.n_pending = group->pending.count;
    if (!rdb_writer_put(w, &ev, err) || !save_pending(group, w, err))
        return false;
    for (size_t i = 0; i < group->consumers.n; i++)
        if (!save_consumer(engine_stream_consumer_at(group, i), w, err))
            return false;
    return true;
}

static bool save_producer(const struct engine_stream_producer *producer, struct rdb_writer *w,
                          struct rd_err *err)
{
    struct rdb_event ev = event(RDB_PRODUCER);
    ev.producer.name = producer->name;
    ev.producer.n_ids = producer->n;
    if (!rdb_writer_put(w, &ev, err))
        return false;
    for (size_t i = 0; i < producer->n; i++) {
        ev = event(RDB_PRODUCED);
        ev.produced.name = rd_slice(producer->list[i].name, producer->list[i].len);
        ev.produced.id = producer->list[i].id;
        if (!rdb_writer_put(w, &ev, err))
            return false;
    }
    return true;
}

static bool save_idmp(const struct engine_stream_idmp *idmp, struct rdb_writer *w,
                      struct rd_err *err)
{
    struct rdb_event begin = event(RDB_IDMP), end = event(RDB_IDMP_END);
    if (idmp == NULL)
        return true;
    begin.idmp.duration = idmp->duration_s;
    begin.idmp.max_size = idmp->max_entries;
    begin.idmp.n_producers = idmp->producers.n;
    end.idmp_end.added = idmp->added;
    end.idmp_end.duplicates = idmp->duplicates;
    if (!rdb_writer_put(w, &begin, err))
        return false;
    for (size_t i = 0; i < idmp->producers.n; i++)
        if (!save_producer(idmp->producers.items[i], w, err))
            return false;
    return rdb_writer_put(w, &end, err);
}

bool engine_stream_save(const struct engine_value *v, struct rdb_writer *w, struct rd_err *err)
{
    const struct engine_stream *stream = v->u.stream;
    if (!save_begin(stream, w, err) || !save_nodes(stream, w, err) || !save_summary(stream, w, err))
        return false;
    for (size_t i = 0; i < stream->groups.n; i++)
        if (!save_group(engine_stream_group_at(stream, i), w, err))
            return false;
    struct rdb_event ev = event(RDB_VALUE_END);
    return save_idmp(stream->idmp, w, err) && rdb_writer_put(w, &ev, err);
}
