#include "engine/debug.h"

#include "engine/call.h"
#include "engine/intset.h"
#include "engine/state_impl.h"
#include "engine/table_impl.h"
#include "engine/value/hash.h"
#include "engine/value/list.h"
#include "engine/value/module.h"
#include "engine/value/set.h"
#include "engine/value/stream.h"
#include "engine/value/vectors.h"
#include "engine/value/zset.h"
#include "engine/watch.h"
#include "rdb/writer.h"

#include <stdio.h>

/* The table's share of an item: engine/table.h gives 13 to 19 bytes. */
enum { SLOT_BYTES = 16 };

/* ---- memory ---- */

/* n elements, of which `seen` were measured, with `bytes` in total. */
static uint64_t extrapolate(uint64_t bytes, uint64_t seen, uint64_t n)
{
    return seen == 0 || seen == n ? bytes : (uint64_t)((double)bytes / (double)seen * (double)n);
}

static uint64_t table_memory(const struct engine_table *t, size_t samples)
{
    struct engine_table_iter it;
    uint64_t bytes = 0, seen = 0;
    union { /* iterating only pauses and resumes the table */
        const struct engine_table *given;
        struct engine_table *iterated;
    } table = {.given = t};
    engine_table_iter_begin(&it, table.iterated);
    for (const void *item; (item = engine_table_iter_next(&it)) != NULL;) {
        bytes += engine_usable(item);
        if (++seen == samples)
            break;
    }
    engine_table_iter_end(&it);
    return engine_table_bytes(t) + extrapolate(bytes, seen, engine_table_count(t));
}

static uint64_t list_memory(const struct engine_list *list, size_t samples)
{
    uint64_t bytes = 0, seen = 0, n = 0;
    const struct engine_list_node *node = &list->head;
    do {
        n++;
        if (samples == 0 || seen < samples) {
            bytes += engine_usable(node->is_plain ? (const void *)node->plain : node->lp);
            bytes += node != &list->head ? engine_usable(node) : 0;
            seen++;
        }
        node = node->next;
    } while (node != &list->head);
    return engine_usable(list) + extrapolate(bytes, seen, n);
}

static uint64_t map_memory(const struct engine_stream_map *map)
{
    return map->cap * sizeof *map->runs + map->count * (sizeof(struct rdb_stream_id) + map->width);
}

static uint64_t stream_memory(const struct engine_stream *stream, size_t samples)
{
    uint64_t bytes = 0, seen = 0;
    struct engine_stream_map_pos pos;
    for (bool any = engine_stream_map_ge(&stream->nodes, ENGINE_STREAM_ID_ZERO, &pos); any;
         any = engine_stream_map_next(&stream->nodes, &pos)) {
        uint8_t *lp;
        memcpy(&lp, engine_stream_map_at(&stream->nodes, pos), sizeof lp);
        bytes += engine_usable(lp);
        if (++seen == samples)
            break;
    }
    uint64_t sum = engine_usable(stream) + map_memory(&stream->nodes) +
                   extrapolate(bytes, seen, stream->nodes.count);
    for (size_t i = 0; i < stream->groups.n; i++) {
        const struct engine_stream_group *group = engine_stream_group_at(stream, i);
        sum += engine_usable(group) + map_memory(&group->pending);
        for (size_t k = 0; k < group->consumers.n; k++) {
            const struct engine_stream_consumer *c = engine_stream_consumer_at(group, k);
            sum += engine_usable(c) + map_memory(&c->pending);
        }
    }
    return sum;
}

static uint64_t vectors_memory(const struct engine_vectors *set, size_t samples)
{
    uint64_t bytes = 0, seen = 0;
    for (const struct vector_node *node = set->graph.first;
         node != NULL && (samples == 0 || seen < samples); node = node->next, seen++) {
        bytes += engine_usable(node) + engine_usable(node->quants) + engine_usable(node->name) +
                 engine_usable(node->attributes);
        for (uint32_t i = 0; i <= node->level; i++)
            bytes += engine_usable(node->layers[i].links);
    }
    return engine_usable(set) + engine_usable(set->projection) +
           engine_table_bytes(&set->elements) + extrapolate(bytes, seen, set->graph.n);
}

static uint64_t value_memory(const struct engine_value *v, size_t samples)
{
    switch (v->encoding) {
    case ENGINE_RAW:
        return engine_usable(v->u.bytes);
    case ENGINE_LISTPACK:
        return engine_usable(v->u.lp);
    case ENGINE_INTSET:
        return engine_usable(v->u.intset);
    case ENGINE_QUICKLIST:
        return list_memory(v->u.list, samples);
    case ENGINE_HASHTABLE:
        return v->type == ENGINE_SET
                   ? engine_usable(v->u.set) + table_memory(&v->u.set->members, samples)
                   : engine_usable(v->u.hash) + table_memory(&v->u.hash->fields, samples);
    case ENGINE_SKIPLIST:
        return engine_usable(v->u.zset) + table_memory(&v->u.zset->members, samples);
    case ENGINE_STREAM_NODES:
        return stream_memory(v->u.stream, samples);
    case ENGINE_OPAQUE:
        return engine_usable(v->u.opaque) + v->u.opaque->cap;
    case ENGINE_VECTORS:
        return vectors_memory(v->u.vectors, samples);
    default:
        return 0; /* stored in the entry */
    }
}

uint64_t engine_debug_memory(const struct engine_entry *entry, size_t samples)
{
    return engine_usable(entry) + SLOT_BYTES + value_memory(&entry->value, samples);
}

/* ---- bytes in a snapshot ---- */

/* The bytes before the value: magic, version, type, an empty key name. */
static bool put_begin(struct rdb_writer *w, const struct engine_value *v)
{
    struct rdb_event header = {.kind = RDB_HEADER, .inner = RD_NO_OFFSET};
    header.header.dialect = RDB_REDIS;
    header.header.version = 10;
    struct rdb_event key = {.kind = RDB_KEY, .inner = RD_NO_OFFSET};
    key.key.type = engine_value_in_files(v);
    key.key.expire_ms = RDB_NO_EXPIRE;
    key.key.idle_s = RDB_UNKNOWN;
    key.key.freq = RDB_UNKNOWN;
    return rdb_writer_put(w, &header, NULL) && rdb_writer_put(w, &key, NULL);
}

uint64_t engine_debug_saved(const struct engine_value *v)
{
    const struct rdb_writer_opts opts =
        RDB_WRITER_OPTS(.dialect = RDB_REDIS, .version = 10, .compress = true, .no_checksum = true);
    struct rd_buf bytes = {0};
    struct rd_sink *sink;
    struct rdb_writer *w;
    if (!rd_sink_open_buf(&sink, &bytes, NULL, NULL))
        return 0;
    if (rdb_writer_new(&w, sink, &opts, NULL)) {
        if (put_begin(w, v))
            engine_type_ops(v->type)->save(v, w, NULL);
        rdb_writer_free(w);
    }
    rd_sink_close(sink, NULL);
    uint64_t len = bytes.len;
    rd_buf_done(&bytes);
    return len > RDB_MAGIC_LEN + 2 ? len - RDB_MAGIC_LEN - 2 : 0;
}

/* ---- lists and tables ---- */

bool engine_debug_list(const struct engine_value *v, struct engine_debug_list *ret)
{
    if (v->encoding != ENGINE_QUICKLIST)
        return false;
    const struct engine_list_node *node = &v->u.list->head;
    *ret = (struct engine_debug_list){.nodes = engine_list_nodes(v->u.list),
                                      .count = engine_list_count(v->u.list),
                                      .fill = node->fill};
    do {
        if (node->is_plain)
            ret->bytes += node->plain->len;
        else if (node->lp != NULL)
            ret->bytes += engine_lp_bytes(node->lp);
        node = node->next;
    } while (node != &v->u.list->head);
    return true;
}

static void count_chain(struct engine_debug_array *ret, const struct engine_bucket *b)
{
    uint64_t n = 0;
    for (; b != NULL; b = bucket_child(b))
        n += bucket_count(b);
    ret->count += n;
    ret->used += n > 0;
    if (n > ret->longest)
        ret->longest = n;
    ret->of_length[n < ENGINE_DEBUG_LENGTHS ? n : ENGINE_DEBUG_LENGTHS - 1]++;
}

bool engine_debug_array(const struct engine_table *t, unsigned which,
                        struct engine_debug_array *ret)
{
    const struct engine_table_array *a = &t->arrays[which];
    *ret = (struct engine_debug_array){.buckets = array_buckets(a), .room = array_room(a)};
    for (uint64_t i = 0; i < ret->buckets; i++)
        count_chain(ret, which == 0 && i < t->moved ? NULL : array_at(a, i));
    return a->root != NULL;
}

/* ---- keys for tests ---- */

static void put_text(struct rd_buf *out, struct rd_slice begin, uint64_t n)
{
    rd_buf_reset(out);
    rd_buf_add(out, begin.ptr, begin.len);
    rd_buf_printf(out, ":%llu", (unsigned long long)n);
}

void engine_debug_populate(struct engine *e, unsigned id, struct rd_slice prefix, uint64_t n,
                           size_t size)
{
    struct engine_db *db = e->dbs[id];
    struct rd_buf key = {0}, value = {0};
    struct engine_scope scope = engine_enter(e);
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_KEYS);
    for (uint64_t i = 0; i < n; i++) {
        put_text(&key, prefix, i);
        if (engine_db_find(db, rd_buf_slice(&key)) != NULL)
            continue;
        put_text(&value, rd_slice_str("value"), i);
        if (size > 0 && size <= value.len) {
            value.len = size;
        } else if (size > 0 && rd_buf_reserve(&value, size - value.len)) {
            memset(value.ptr + value.len, 0, size - value.len);
            value.len = size;
        }
        engine_db_set_string(db, NULL, rd_buf_slice(&key), rd_buf_slice(&value));
        engine_watch_touch(db, rd_buf_slice(&key));
    }
    engine_mem_leave(before);
    engine_leave(e, scope);
    rd_buf_done(&key);
    rd_buf_done(&value);
}

void engine_debug_list_plain_min(size_t bytes)
{
    engine_list_set_plain_min(bytes);
}
