/* stream_group.c - the groups of a stream, their consumers and pending entries. */
#include "base/copy.h"
#include "engine/value/stream.h"

/* ---- named objects ---- */

static struct rd_slice name_of(const void *item)
{
    return *(const struct rd_slice *)item;
}

/* The first one whose name is not less than the given name. */
static size_t name_place(const struct engine_stream_names *names, struct rd_slice name)
{
    size_t low = 0, high = names->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (rd_slice_cmp(name_of(names->items[mid]), name) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool has_name(const struct engine_stream_names *names, size_t at, struct rd_slice name)
{
    return at < names->n && rd_slice_eq(name_of(names->items[at]), name);
}

void *engine_stream_name_find(const struct engine_stream_names *names, struct rd_slice name)
{
    size_t at = name_place(names, name);
    return has_name(names, at, name) ? names->items[at] : NULL;
}

void *engine_stream_name_add(struct engine_stream_names *names, size_t size, struct rd_slice name)
{
    size_t at = name_place(names, name);
    if (has_name(names, at, name))
        return NULL;
    if (names->n == names->cap) {
        names->cap = names->cap == 0 ? 1 : 2 * names->cap;
        names->items = engine_realloc(names->items, names->cap * sizeof names->items[0]);
    }
    uint8_t *item = engine_alloc(size + name.len);
    struct rd_slice kept = rd_slice(item + size, name.len);
    memset(item, 0, size);
    rd_copy_short(item + size, name.ptr, name.len);
    memcpy(item, &kept, sizeof kept);
    memmove(names->items + at + 1, names->items + at, (names->n - at) * sizeof names->items[0]);
    names->items[at] = item;
    names->n++;
    return item;
}

static void name_remove(struct engine_stream_names *names, struct rd_slice name)
{
    size_t at = name_place(names, name);
    engine_free(names->items[at]);
    names->n--;
    memmove(names->items + at, names->items + at + 1, (names->n - at) * sizeof names->items[0]);
}

/* ---- groups and consumers ---- */

struct engine_stream_group *engine_stream_group_add(struct engine_stream *stream,
                                                    struct rd_slice name,
                                                    struct rdb_stream_id last_id,
                                                    int64_t entries_read)
{
    struct engine_stream_group *group =
        engine_stream_name_add(&stream->groups, sizeof *group, name);
    if (group == NULL)
        return NULL;
    group->last_id = last_id;
    group->entries_read = entries_read;
    group->pending.width = sizeof(struct engine_stream_pending);
    return group;
}

struct engine_stream_consumer *engine_stream_consumer_add(struct engine_stream_group *group,
                                                          struct rd_slice name, int64_t seen_ms)
{
    struct engine_stream_consumer *consumer =
        engine_stream_name_add(&group->consumers, sizeof *consumer, name);
    if (consumer != NULL) {
        consumer->seen_ms = seen_ms;
        consumer->active_ms = RDB_NO_EXPIRE;
    }
    return consumer;
}

void engine_stream_group_remove(struct engine_stream *stream, struct engine_stream_group *group)
{
    for (size_t i = 0; i < group->consumers.n; i++) {
        struct engine_stream_consumer *consumer = group->consumers.items[i];
        engine_stream_map_done(&consumer->pending);
        engine_free(consumer);
    }
    engine_free(group->consumers.items);
    engine_stream_map_done(&group->pending);
    name_remove(&stream->groups, group->name);
}

void engine_stream_consumer_remove(struct engine_stream_group *group,
                                   struct engine_stream_consumer *consumer)
{
    struct engine_stream_map_pos pos;
    for (bool any = engine_stream_map_first(&consumer->pending, &pos); any;
         any = engine_stream_map_next(&consumer->pending, &pos))
        engine_stream_map_drop(&group->pending, engine_stream_map_id(&consumer->pending, pos));
    engine_stream_map_done(&consumer->pending);
    name_remove(&group->consumers, consumer->name);
}

/* ---- pending entries ---- */

struct engine_stream_pending *engine_stream_pending_give(struct engine_stream_group *group,
                                                         struct rdb_stream_id id,
                                                         struct engine_stream_consumer *consumer)
{
    bool is_new;
    struct engine_stream_pending *pending = engine_stream_map_add(&group->pending, id, &is_new);
    if (pending->consumer == consumer)
        return pending;
    if (pending->consumer != NULL)
        engine_stream_map_drop(&pending->consumer->pending, id);
    engine_stream_map_add(&consumer->pending, id, &is_new);
    pending->consumer = consumer;
    return pending;
}

bool engine_stream_pending_drop(struct engine_stream_group *group, struct rdb_stream_id id)
{
    struct engine_stream_map_pos pos;
    if (!engine_stream_map_ge(&group->pending, id, &pos) ||
        rdb_stream_id_cmp(engine_stream_map_id(&group->pending, pos), id) != 0)
        return false;
    const struct engine_stream_pending *pending = engine_stream_map_at(&group->pending, pos);
    if (pending->consumer != NULL)
        engine_stream_map_drop(&pending->consumer->pending, id);
    engine_stream_map_remove(&group->pending, pos);
    return true;
}

static bool is_referenced(const struct engine_stream *stream, struct rdb_stream_id id)
{
    for (size_t i = 0; i < stream->groups.n; i++) {
        struct engine_stream_group *group = engine_stream_group_at(stream, i);
        if (rdb_stream_id_cmp(group->last_id, id) < 0 ||
            engine_stream_pending_find(group, id) != NULL)
            return true;
    }
    return false;
}

bool engine_stream_may_remove(struct engine_stream *stream, struct rdb_stream_id id,
                              enum engine_stream_refs refs)
{
    if (refs == ENGINE_STREAM_ACKED)
        return !is_referenced(stream, id);
    for (size_t i = 0; refs == ENGINE_STREAM_DROP_REFS && i < stream->groups.n; i++)
        engine_stream_pending_drop(engine_stream_group_at(stream, i), id);
    return true;
}

/* ---- the progress of a group ---- */

int64_t engine_stream_entries_to(const struct engine_stream *stream, struct rdb_stream_id id)
{
    int from_last = rdb_stream_id_cmp(id, stream->last_id);
    int from_first = rdb_stream_id_cmp(id, stream->first_id);
    uint64_t added = stream->entries_added;
    if (added == 0)
        return 0;
    if (from_last == 0 || (stream->length == 0 && from_last < 0))
        return (int64_t)added;
    bool whole = engine_stream_id_is_zero(stream->max_deleted_id) ||
                 rdb_stream_id_cmp(stream->max_deleted_id, stream->first_id) < 0;
    if (from_last > 0 || from_first > 0 || !whole)
        return ENGINE_STREAM_UNREAD;
    return (int64_t)(added - stream->length + (from_first == 0));
}

bool engine_stream_gaps_from(const struct engine_stream *stream, struct rdb_stream_id from)
{
    return stream->length > 0 && !engine_stream_id_is_zero(stream->max_deleted_id) &&
           rdb_stream_id_cmp(stream->first_id, stream->max_deleted_id) <= 0 &&
           rdb_stream_id_cmp(from, stream->max_deleted_id) <= 0;
}

bool engine_stream_lag(const struct engine_stream *stream, const struct engine_stream_group *group,
                       int64_t *ret)
{
    int64_t read = group->entries_read;
    if (stream->entries_added == 0) {
        *ret = 0;
        return true;
    }
    if (read == ENGINE_STREAM_UNREAD || engine_stream_gaps_from(stream, group->last_id))
        read = engine_stream_entries_to(stream, group->last_id);
    if (read == ENGINE_STREAM_UNREAD)
        return false;
    *ret = (int64_t)(stream->entries_added - (uint64_t)read);
    return true;
}
