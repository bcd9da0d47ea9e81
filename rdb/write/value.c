#include "rdb/write/write.h"

#include "rdb/modules.h"

enum { SINCE_MODULE = 8, SINCE_STREAM = 9, SINCE_QUICKLIST = 7 };

static bool begin_string(struct rdb_writer *w)
{
    w->had_string = false;
    return rdb_write_prefix(w, RDB_TYPE_STRING);
}

static bool begin_list(struct rdb_writer *w)
{
    if (rdb_write_has(w, SINCE_QUICKLIST))
        return rdb_list_begin(w);
    rdb_collection_begin(w);
    return true;
}

static bool begin_stream(struct rdb_writer *w)
{
    if (!rdb_write_has(w, SINCE_STREAM))
        return rdb_write_refuse_key(w, "stream");
    return rdb_stream_begin(w);
}

/* Values of the first module format say nothing about their own structure. */
static bool begin_module(struct rdb_writer *w, uint64_t id)
{
    if (!rdb_write_has_module(w, id))
        return rdb_write_refuse_key_of_server(w, "vector set");
    if (!rdb_write_has(w, SINCE_MODULE) || w->source->id != RDB_TYPE_MODULE_2)
        return rdb_write_refuse_key(w, "module value");
    w->vectors.converts = false;
    if (id == RDB_MODULE_VECTORS && w->opts.server == RDB_SERVER_REDIS_8_0)
        rdb_write_vectors_begin(w);
    return rdb_write_prefix(w, RDB_TYPE_MODULE_2) && rdb_put_len(w->out, id);
}

static bool begin_paths(struct rdb_writer *w)
{
    const struct rdb_type *type = rdb_type_get(RDB_TYPE_PATH_HASH);
    bool has = w->opts.dialect == RDB_VALKEY && rdb_write_has(w, type->since);
    return has ? rdb_paths_begin(w) : rdb_write_refuse_key(w, "path hash");
}

bool rdb_write_value_begin(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (ev->kind != RDB_VALUE)
        return rdb_write_misuse(w, "a key has no value");
    if (ev->value.type == NULL || ev->value.type->kind != w->key.type->kind)
        return rdb_write_misuse(w, "a value is not of its key's type");
    w->state = WRITE_VALUE;
    w->source = ev->value.type;
    w->count = ev->value.count;
    w->min_expire_ms = ev->value.min_expire_ms;
    if (w->opts.version < ELEMENT_VERSION_MIN)
        return rdb_write_refuse_key(w, "value that is not copied");
    switch (w->source->kind) {
    case RDB_KIND_STRING:
        return begin_string(w);
    case RDB_KIND_LIST:
        return begin_list(w);
    case RDB_KIND_SET:
    case RDB_KIND_ZSET:
    case RDB_KIND_HASH:
        if (w->source->id == RDB_TYPE_PATH_HASH)
            return begin_paths(w);
        rdb_collection_begin(w);
        return true;
    case RDB_KIND_STREAM:
        return begin_stream(w);
    case RDB_KIND_MODULE:
        return begin_module(w, ev->value.module_id);
    case RDB_KIND_ARRAY:
        break;
    }
    return rdb_write_refuse_key(w, "array");
}

static bool string_event(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (ev->kind != RDB_ELEM || ev->elem.role != RDB_ROLE_STRING || w->had_string)
        return rdb_write_misuse(w, "a string value has one string");
    return rdb_write_string(w, w->out, &ev->elem.str, &w->had_string);
}

static bool list_event(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (!rdb_write_has(w, SINCE_QUICKLIST))
        return rdb_collection_elem(w, ev);
    return ev->kind == RDB_PACKED ? rdb_list_packed(w, ev) : rdb_list_elem(w, ev);
}

static bool module_event(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (ev->kind != RDB_MODULE_ITEM)
        return rdb_write_misuse(w, "a module value contains only items");
    return w->vectors.converts ? rdb_write_vectors_item(w, ev) : rdb_write_item(w, w->out, ev);
}

static bool end_module(struct rdb_writer *w)
{
    return (!w->vectors.converts || rdb_write_vectors_end(w)) &&
           rdb_put_len(w->out, RDB_MODULE_END);
}

static bool body_event(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (w->source->id == RDB_TYPE_PATH_HASH)
        return rdb_paths_elem(w, ev);
    switch ((int)w->source->kind) {
    case RDB_KIND_STRING:
        return string_event(w, ev);
    case RDB_KIND_LIST:
        return list_event(w, ev);
    case RDB_KIND_STREAM:
        return rdb_stream_event(w, ev);
    case RDB_KIND_MODULE:
        return module_event(w, ev);
    default:
        return rdb_collection_elem(w, ev);
    }
}

static bool end_value(struct rdb_writer *w)
{
    if (w->pieces.open)
        return rdb_write_misuse(w, "a value ends in the middle of a string");
    if (w->source->id == RDB_TYPE_PATH_HASH)
        return rdb_paths_end(w);
    switch ((int)w->source->kind) {
    case RDB_KIND_STRING:
        return w->had_string || rdb_write_misuse(w, "a string value has no string");
    case RDB_KIND_LIST:
        return rdb_write_has(w, SINCE_QUICKLIST) ? rdb_list_end(w) : rdb_collection_end(w);
    case RDB_KIND_STREAM:
        return rdb_stream_end(w);
    case RDB_KIND_MODULE:
        return end_module(w);
    default:
        return rdb_collection_end(w);
    }
}

static bool in_body(enum rdb_event_kind kind)
{
    return kind >= RDB_ELEM && kind <= RDB_MODULE_ITEM;
}

bool rdb_write_value(struct rdb_writer *w, const struct rdb_event *ev)
{
    bool ends = ev->kind == RDB_VALUE_END;
    if (!ends && !in_body(ev->kind))
        return rdb_write_misuse(w, "the value before is incomplete");
    if (w->state == WRITE_VALUE && !(ends ? end_value(w) : body_event(w, ev)))
        return false;
    if (ends)
        w->state = WRITE_RECORDS;
    return true;
}
