/* stream_map.h - what lies under ids of streams, in their order: nodes, and entries that are
 * pending.
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
 * A zeroed map with its width set is empty and has no block of the heap. Ids and what lies under
 * them are in chunks of up to ENGINE_STREAM_CHUNK, and the chunks in an ordered array. Finding
 * takes O(log n); adding after the last one, and removing the first or last one, amortized
 * constant time. Elsewhere a chunk is moved in part, and once for many such changes the n / 64
 * places of the array.
 *
 * Positions, and pointers to what lies under an id, are void after the map was changed.
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
    struct rdb_stream_id ids[]; /* cap of them; then as many times the width */
};

struct engine_stream_run {
    struct rdb_stream_id low; /* at most the first id, more than the last one of the run before */
    struct engine_stream_chunk *chunk;
};

struct engine_stream_map {
    struct engine_stream_run *runs; /* those from `first` on are in use */
    size_t first;
    size_t n_runs;
    size_t cap;
    uint64_t count;
    size_t width; /* bytes under an id: a multiple of 8, or 0 */
};

struct engine_stream_map_pos {
    size_t run;
    size_t slot;
};

void engine_stream_map_done(struct engine_stream_map *map);

/* What lies under the ids is copied as bytes. */
void engine_stream_map_dup(struct engine_stream_map *ret, const struct engine_stream_map *map);

/* False: there is none. _ge: the first that is not less; _le: the last that is not greater. */
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

/* What lies under the id there: width bytes. */
static inline void *engine_stream_map_at(const struct engine_stream_map *map,
                                         struct engine_stream_map_pos pos)
{
    struct engine_stream_chunk *c = map->runs[map->first + pos.run].chunk;
    return (uint8_t *)(c->ids + c->cap) + (c->start + pos.slot) * map->width;
}

/* NULL: there is no such id. */
void *engine_stream_map_find(const struct engine_stream_map *map, struct rdb_stream_id id);

/* What lies under the id; zeros where it was not there. */
void *engine_stream_map_add(struct engine_stream_map *map, struct rdb_stream_id id,
                            bool *ret_is_new);

void engine_stream_map_remove(struct engine_stream_map *map, struct engine_stream_map_pos pos);

/* False: there is no such id. */
bool engine_stream_map_drop(struct engine_stream_map *map, struct rdb_stream_id id);

#endif
