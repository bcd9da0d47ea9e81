/* stream_map.h - a map ordered by stream IDs: nodes, and pending entries.
 *
 *     struct engine_stream_map map = {.width = sizeof(struct thing)};
 *     bool is_new;
 *     struct thing *t = engine_stream_map_add(&map, id, &is_new);
 *     struct engine_stream_map_pos pos;
 *     for (bool any = engine_stream_map_ge(&map, id, &pos); any;
 *          any = engine_stream_map_next(&map, &pos))
 *         use(engine_stream_map_id(&map, pos), engine_stream_map_at(&map, pos));
 *     engine_stream_map_done(&map);
 *
 * A zeroed map with its width set is empty and has no heap block. IDs and their values are in
 * chunks of up to ENGINE_STREAM_CHUNK, and the chunks in an ordered array. Lookups take O(log n);
 * adding after the last one, and removing the first or last one, amortized constant time. Other
 * changes move part of a chunk and, once in many changes, the n / 64 places of the array.
 *
 * Positions, and pointers to values, are invalid after a change of the map.
 */
#ifndef ENGINE_VALUE_STREAM_MAP_H
#define ENGINE_VALUE_STREAM_MAP_H

#include "rdb/event.h"

enum { ENGINE_STREAM_CHUNK = 64 };

struct engine_stream_chunk {
    uint16_t start; /* the first place in use */
    uint16_t n;     /* at least 1 */
    uint16_t cap;
    uint16_t unused;
    struct rdb_stream_id ids[]; /* cap IDs; then cap values of `width` bytes */
};

struct engine_stream_run {
    struct rdb_stream_id low; /* at most the first ID, more than the last one of the previous
                               * chunk */
    struct engine_stream_chunk *chunk;
};

struct engine_stream_map {
    struct engine_stream_run *runs; /* those from `first` on are used */
    size_t first;
    size_t n_runs;
    size_t cap;
    uint64_t count;
    size_t width; /* bytes per value: a multiple of 8, or 0 */
};

struct engine_stream_map_pos {
    size_t run;
    size_t slot;
};

void engine_stream_map_done(struct engine_stream_map *map);

/* Values are copied as bytes. */
void engine_stream_map_dup(struct engine_stream_map *ret, const struct engine_stream_map *map);

/* False: not found. _ge: the first that is not less; _le: the last that is not greater. */
bool engine_stream_map_first(const struct engine_stream_map *map,
                             struct engine_stream_map_pos *ret);
bool engine_stream_map_last(const struct engine_stream_map *map, struct engine_stream_map_pos *ret);
bool engine_stream_map_ge(const struct engine_stream_map *map, struct rdb_stream_id id,
                          struct engine_stream_map_pos *ret);
bool engine_stream_map_le(const struct engine_stream_map *map, struct rdb_stream_id id,
                          struct engine_stream_map_pos *ret);
bool engine_stream_map_next(const struct engine_stream_map *map, struct engine_stream_map_pos *pos);
bool engine_stream_map_prev(const struct engine_stream_map *map, struct engine_stream_map_pos *pos);

static inline struct rdb_stream_id engine_stream_map_id(const struct engine_stream_map *map,
                                                        struct engine_stream_map_pos pos)
{
    const struct engine_stream_chunk *c = map->runs[map->first + pos.run].chunk;
    return c->ids[c->start + pos.slot];
}

/* The value at the position: width bytes. */
static inline void *engine_stream_map_at(const struct engine_stream_map *map,
                                         struct engine_stream_map_pos pos)
{
    struct engine_stream_chunk *c = map->runs[map->first + pos.run].chunk;
    return (uint8_t *)(c->ids + c->cap) + (c->start + pos.slot) * map->width;
}

/* NULL: not found. */
void *engine_stream_map_find(const struct engine_stream_map *map, struct rdb_stream_id id);

/* The value of an ID; zeros if it is new. */
void *engine_stream_map_add(struct engine_stream_map *map, struct rdb_stream_id id,
                            bool *ret_is_new);

void engine_stream_map_remove(struct engine_stream_map *map, struct engine_stream_map_pos pos);

/* False: not found. */
bool engine_stream_map_drop(struct engine_stream_map *map, struct rdb_stream_id id);

#endif
