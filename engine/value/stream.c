#include "engine/value/stream.h"

#include "engine/digest.h"
#include "engine/value/stream_idmp.h"
#include "engine/value/stream_node.h"

/* ---- ids ---- */

size_t engine_stream_id_text(char dst[ENGINE_STREAM_ID_MAX], struct rdb_stream_id id)
{
    size_t len = rd_num_put_u64(dst, id.ms);
    dst[len++] = '-';
    return len + rd_num_put_u64(dst + len, id.seq);
}

bool engine_stream_id_up(struct rdb_stream_id *id)
{
    return ++id->seq != 0 || ++id->ms != 0;
}

bool engine_stream_id_down(struct rdb_stream_id *id)
{
    return id->seq-- != 0 || id->ms-- != 0;
}

/* ---- creating and freeing ---- */

struct engine_value engine_stream_value(void)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_STREAM);
    struct engine_stream *stream = engine_calloc(1, sizeof *stream);
    stream->nodes.width = sizeof(uint8_t *);
    engine_mem_leave(before);
    return (struct engine_value){
        .u.stream = stream, .type = ENGINE_STREAM, .encoding = ENGINE_STREAM_NODES};
}

static uint8_t **node_at(const struct engine_stream *stream, struct engine_stream_map_pos pos)
{
    return engine_stream_map_at(&stream->nodes, pos);
}

void engine_stream_free(struct engine_stream *stream)
{
    struct engine_stream_map_pos pos;
    for (bool any = engine_stream_map_first(&stream->nodes, &pos); any;
         any = engine_stream_map_next(&stream->nodes, &pos))
        engine_lp_free(*node_at(stream, pos));
    engine_stream_map_done(&stream->nodes);
    while (stream->groups.n > 0)
        engine_stream_group_remove(stream, stream->groups.items[stream->groups.n - 1]);
    engine_free(stream->groups.items);
    engine_stream_idmp_free(stream->idmp);
    engine_stream_loading_free(stream->loading);
    engine_free(stream);
}

static void dup_group(struct engine_stream *stream, const struct engine_stream_group *group)
{
    struct engine_stream_group *copy =
        engine_stream_group_add(stream, group->name, group->last_id, group->entries_read);
    engine_stream_map_dup(&copy->pending, &group->pending);
    for (size_t i = 0; i < group->consumers.n; i++) {
        const struct engine_stream_consumer *from = engine_stream_consumer_at(group, i);
        struct engine_stream_consumer *to =
            engine_stream_consumer_add(copy, from->name, from->seen_ms);
        struct engine_stream_map_pos pos;
        to->active_ms = from->active_ms;
        engine_stream_map_dup(&to->pending, &from->pending);
        for (bool any = engine_stream_map_first(&to->pending, &pos); any;
             any = engine_stream_map_next(&to->pending, &pos))
            engine_stream_pending_find(copy, engine_stream_map_id(&to->pending, pos))->consumer =
                to;
    }
}

struct engine_stream *engine_stream_dup(const struct engine_stream *stream)
{
    struct engine_stream *copy = engine_alloc(sizeof *copy);
    struct engine_stream_map_pos pos;
    *copy = *stream;
    copy->groups = (struct engine_stream_names){0};
    copy->loading = NULL;
    copy->idmp = engine_stream_idmp_dup(stream->idmp);
    engine_stream_map_dup(&copy->nodes, &stream->nodes);
    for (bool any = engine_stream_map_first(&copy->nodes, &pos); any;
         any = engine_stream_map_next(&copy->nodes, &pos))
        *node_at(copy, pos) = engine_lp_dup(*node_at(copy, pos));
    for (size_t i = 0; i < stream->groups.n; i++)
        dup_group(copy, engine_stream_group_at(stream, i));
    return copy;
}

/* ---- adding ---- */

static size_t text_bytes(size_t n_fields, const struct rd_slice *pairs)
{
    size_t len = 0;
    for (size_t i = 0; i < 2 * n_fields; i++)
        len += pairs[i].len;
    return len;
}

static bool is_full(const struct engine_config *config, uint8_t *lp, size_t more)
{
    size_t max = config->stream_node_max_bytes;
    if (max == 0 || max > ENGINE_LP_SAFE_MAX)
        max = ENGINE_LP_SAFE_MAX;
    if (engine_lp_bytes(lp) + more >= max)
        return true;
    uint8_t *p = node_first(lp);
    return config->stream_node_max_entries > 0 &&
           node_num(p) + node_num(node_after(p)) >= (int64_t)config->stream_node_max_entries;
}

/* p: the number of the node's fields. */
static bool has_fields(uint8_t *p, size_t n_fields, const struct rd_slice *pairs)
{
    if (node_num(p) != (int64_t)n_fields)
        return false;
    for (size_t i = 0; i < n_fields; i++) {
        p = node_after(p);
        if (!engine_lp_item_eq(engine_lp_get(p), pairs[2 * i]))
            return false;
    }
    return true;
}

/* Starts a node whose field names are those of its first entry. */
static uint8_t *node_new(size_t reserve, size_t n_fields, const struct rd_slice *pairs)
{
    uint8_t *lp = engine_lp_new(reserve);
    engine_lp_append_int(&lp, 1);
    engine_lp_append_int(&lp, 0);
    engine_lp_append_int(&lp, (int64_t)n_fields);
    for (size_t i = 0; i < n_fields; i++)
        engine_lp_append(&lp, pairs[2 * i]);
    engine_lp_append_int(&lp, 0);
    return lp;
}

/* The most bytes of an entry. */
static size_t entry_room(bool same, size_t n_fields, const struct rd_slice *pairs)
{
    size_t room = (same ? 4 : 5) * ENGINE_LP_TAIL_INT;
    for (size_t i = 0; i < n_fields; i++) {
        if (!same)
            room += engine_lp_tail_room(pairs[2 * i]);
        room += engine_lp_tail_room(pairs[2 * i + 1]);
    }
    return room;
}

static void append_entry(uint8_t **lp, bool same, struct rdb_stream_id delta, size_t n_fields,
                         const struct rd_slice *pairs)
{
    struct engine_lp_tail tail;
    if (!engine_lp_tail_begin(&tail, lp, entry_room(same, n_fields, pairs)))
        return;
    engine_lp_tail_add_int(&tail, same ? ENGINE_STREAM_SAME_FIELDS : 0);
    engine_lp_tail_add_int(&tail, (int64_t)delta.ms);
    engine_lp_tail_add_int(&tail, (int64_t)delta.seq);
    if (!same)
        engine_lp_tail_add_int(&tail, (int64_t)n_fields);
    for (size_t i = 0; i < n_fields; i++) {
        if (!same)
            engine_lp_tail_add(&tail, pairs[2 * i]);
        engine_lp_tail_add(&tail, pairs[2 * i + 1]);
    }
    engine_lp_tail_add_int(&tail, (int64_t)(same ? n_fields + 3 : 2 * n_fields + 4));
    engine_lp_tail_end(&tail);
}

/* The last node, if it has room. A node without room is complete; the next one is likely to become
 * as large. */
static uint8_t **open_node(struct engine_stream *stream, const struct engine_config *config,
                           size_t more, struct rdb_stream_id *ret_id, size_t *ret_reserve)
{
    struct engine_stream_map_pos pos;
    *ret_reserve = 0;
    if (!engine_stream_map_last(&stream->nodes, &pos))
        return NULL;
    uint8_t **node = node_at(stream, pos);
    *ret_id = engine_stream_map_id(&stream->nodes, pos);
    if (!is_full(config, *node, more))
        return node;
    engine_lp_shrink(node);
    *ret_reserve = engine_lp_bytes(*node) <= 4096 ? engine_lp_bytes(*node) : 4096;
    return NULL;
}

void engine_stream_append(struct engine_stream *stream, const struct engine_config *config,
                          struct rdb_stream_id id, size_t n_fields, const struct rd_slice *pairs)
{
    bool same = true;
    size_t reserve;
    struct rdb_stream_id node_id = id;
    uint8_t **node = open_node(stream, config, text_bytes(n_fields, pairs), &node_id, &reserve);
    if (node == NULL) {
        node_id = id;
        node = engine_stream_map_add(&stream->nodes, id, &same);
        *node = node_new(reserve, n_fields, pairs);
    } else {
        uint8_t *p = node_first(*node);
        p = node_after(engine_lp_replace_int(node, p, node_num(p) + 1));
        same = has_fields(node_after(p), n_fields, pairs);
    }
    struct rdb_stream_id delta = {id.ms - node_id.ms, id.seq - node_id.seq};
    append_entry(node, same, delta, n_fields, pairs);
    stream->length++;
    stream->entries_added++;
    stream->last_id = id;
    if (stream->length == 1)
        stream->first_id = id;
}

/* ---- operations of the type ---- */

static void free_value(struct engine_value *v)
{
    if (v->u.stream != NULL)
        engine_stream_free(v->u.stream);
}

static void dup_value(struct engine_value *ret, const struct engine_value *v)
{
    ret->u.stream = engine_stream_dup(v->u.stream);
}

static uint64_t count_value(const struct engine_value *v)
{
    return v->u.stream->length;
}

/* One group is measured for all. */
static size_t effort_of(const struct engine_value *v)
{
    const struct engine_stream *stream = v->u.stream;
    uint64_t effort = stream->nodes.count;
    if (stream->groups.n > 0)
        effort += stream->groups.n * (1 + engine_stream_group_at(stream, 0)->pending.count);
    return (size_t)effort;
}

static void mix_item(uint8_t sum[20], struct engine_lp_item item)
{
    char tmp[RD_NUM_I64_MAX];
    engine_digest_mix(sum, engine_lp_item_text(item, tmp));
}

static void digest_value(const struct engine_value *v, uint8_t sum[20])
{
    struct engine_stream_iter it;
    engine_stream_iter_begin(&it, v->u.stream, ENGINE_STREAM_ID_ZERO, ENGINE_STREAM_ID_LAST, false);
    while (engine_stream_iter_next(&it)) {
        char id[ENGINE_STREAM_ID_MAX];
        size_t len = engine_stream_id_text(id, it.id);
        *(char *)memchr(id, '-', len) = '.';
        engine_digest_mix(sum, rd_slice(id, len));
        for (uint64_t i = 0; i < it.n_fields; i++) {
            struct engine_lp_item field, value;
            engine_stream_iter_field(&it, &field, &value);
            mix_item(sum, field);
            mix_item(sum, value);
        }
    }
}

const struct engine_type_ops engine_stream_ops = {
    .free = free_value,
    .dup = dup_value,
    .count = count_value,
    .effort = effort_of,
    .digest = digest_value,
    .load = engine_stream_load,
    .save = engine_stream_save,
};
