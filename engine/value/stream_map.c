#include "engine/value/stream_map.h"

#include "engine/mem.h"

enum { CHUNK_MIN = 2, RUNS_MIN = 1 };

static struct engine_stream_run *run_at(const struct engine_stream_map *map, size_t i)
{
    return &map->runs[map->first + i];
}

static uint8_t *under(const struct engine_stream_map *map, struct engine_stream_chunk *c,
                      size_t slot)
{
    return (uint8_t *)(c->ids + c->cap) + (c->start + slot) * map->width;
}

static size_t chunk_size(const struct engine_stream_map *map, size_t cap)
{
    return sizeof(struct engine_stream_chunk) + cap * (sizeof(struct rdb_stream_id) + map->width);
}

static struct engine_stream_chunk *chunk_new(const struct engine_stream_map *map, size_t cap)
{
    struct engine_stream_chunk *c = engine_alloc(chunk_size(map, cap));
    *c = (struct engine_stream_chunk){.cap = (uint16_t)cap};
    return c;
}

/* Appends to dst, which has room. */
static void append(const struct engine_stream_map *map, struct engine_stream_chunk *dst,
                   struct engine_stream_chunk *src, size_t from, size_t n)
{
    memcpy(dst->ids + dst->start + dst->n, src->ids + src->start + from, n * sizeof src->ids[0]);
    if (map->width > 0)
        memcpy(under(map, dst, dst->n), under(map, src, from), n * map->width);
    dst->n = (uint16_t)(dst->n + n);
}

/* Moves the content to a chunk of another size. */
static struct engine_stream_chunk *chunk_resize(const struct engine_stream_map *map,
                                                struct engine_stream_chunk *c, size_t cap)
{
    struct engine_stream_chunk *other = chunk_new(map, cap);
    append(map, other, c, 0, c->n);
    engine_free(c);
    return other;
}

/* ---- the array of runs ---- */

static void make_runs(struct engine_stream_map *map)
{
    if (map->first + map->n_runs < map->cap)
        return;
    if (map->first > map->cap / 2) {
        memmove(map->runs, map->runs + map->first, map->n_runs * sizeof map->runs[0]);
    } else {
        size_t cap = map->n_runs < RUNS_MIN ? RUNS_MIN : 2 * map->n_runs;
        struct engine_stream_run *runs = engine_alloc(cap * sizeof runs[0]);
        if (map->n_runs > 0)
            memcpy(runs, run_at(map, 0), map->n_runs * sizeof runs[0]);
        engine_free(map->runs);
        map->runs = runs;
        map->cap = cap;
    }
    map->first = 0;
}

static struct engine_stream_run *insert_run(struct engine_stream_map *map, size_t i,
                                            struct rdb_stream_id low,
                                            struct engine_stream_chunk *chunk)
{
    make_runs(map);
    struct engine_stream_run *run = run_at(map, i);
    memmove(run + 1, run, (map->n_runs - i) * sizeof *run);
    *run = (struct engine_stream_run){.low = low, .chunk = chunk};
    map->n_runs++;
    return run;
}

static void remove_run(struct engine_stream_map *map, size_t i)
{
    struct engine_stream_run *run = run_at(map, i);
    engine_free(run->chunk);
    map->n_runs--;
    if (i == 0)
        map->first++;
    else
        memmove(run, run + 1, (map->n_runs - i) * sizeof *run);
    if (map->n_runs == 0) {
        engine_free(map->runs);
        map->runs = NULL;
        map->first = map->cap = 0;
    }
}

/* ---- positions ---- */

/* The run that contains or would contain this ID; the map is not empty. */
static size_t find_run(const struct engine_stream_map *map, struct rdb_stream_id id)
{
    const struct engine_stream_run *runs = map->runs + map->first;
    size_t low = 0, high = map->n_runs;
    if (rdb_stream_id_cmp(runs[high - 1].low, id) <= 0)
        return high - 1;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (rdb_stream_id_cmp(runs[mid].low, id) <= 0)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* The first slot whose ID is not less. */
static size_t find_slot(const struct engine_stream_chunk *c, struct rdb_stream_id id)
{
    const struct rdb_stream_id *ids = c->ids + c->start;
    size_t low = 0, high = c->n;
    if (rdb_stream_id_cmp(ids[high - 1], id) < 0)
        return high;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (rdb_stream_id_cmp(ids[mid], id) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool is_at(const struct engine_stream_chunk *c, size_t slot, struct rdb_stream_id id)
{
    return slot < c->n && rdb_stream_id_cmp(c->ids[c->start + slot], id) == 0;
}

bool engine_stream_map_first(const struct engine_stream_map *map, struct engine_stream_map_pos *ret)
{
    *ret = (struct engine_stream_map_pos){0, 0};
    return map->count > 0;
}

bool engine_stream_map_last(const struct engine_stream_map *map, struct engine_stream_map_pos *ret)
{
    if (map->count == 0)
        return false;
    ret->run = map->n_runs - 1;
    ret->slot = run_at(map, ret->run)->chunk->n - 1u;
    return true;
}

bool engine_stream_map_ge(const struct engine_stream_map *map, struct rdb_stream_id id,
                          struct engine_stream_map_pos *ret)
{
    if (map->count == 0)
        return false;
    ret->run = find_run(map, id);
    const struct engine_stream_chunk *c = run_at(map, ret->run)->chunk;
    ret->slot = find_slot(c, id);
    if (ret->slot < c->n)
        return true;
    ret->run++;
    ret->slot = 0;
    return ret->run < map->n_runs;
}

bool engine_stream_map_le(const struct engine_stream_map *map, struct rdb_stream_id id,
                          struct engine_stream_map_pos *ret)
{
    if (map->count == 0)
        return false;
    ret->run = find_run(map, id);
    const struct engine_stream_chunk *c = run_at(map, ret->run)->chunk;
    ret->slot = find_slot(c, id);
    return is_at(c, ret->slot, id) || engine_stream_map_prev(map, ret);
}

bool engine_stream_map_next(const struct engine_stream_map *map, struct engine_stream_map_pos *pos)
{
    if (++pos->slot < run_at(map, pos->run)->chunk->n)
        return true;
    pos->run++;
    pos->slot = 0;
    return pos->run < map->n_runs;
}

bool engine_stream_map_prev(const struct engine_stream_map *map, struct engine_stream_map_pos *pos)
{
    if (pos->slot-- > 0)
        return true;
    if (pos->run-- == 0)
        return false;
    pos->slot = run_at(map, pos->run)->chunk->n - 1u;
    return true;
}

void *engine_stream_map_find(const struct engine_stream_map *map, struct rdb_stream_id id)
{
    if (map->count == 0)
        return NULL;
    struct engine_stream_chunk *c = run_at(map, find_run(map, id))->chunk;
    size_t slot = find_slot(c, id);
    return is_at(c, slot, id) ? under(map, c, slot) : NULL;
}

/* ---- adding ---- */

static void shift(const struct engine_stream_map *map, struct engine_stream_chunk *c, size_t to,
                  size_t from, size_t n)
{
    uint8_t *bytes = (uint8_t *)(c->ids + c->cap);
    memmove(c->ids + to, c->ids + from, n * sizeof c->ids[0]);
    memmove(bytes + to * map->width, bytes + from * map->width, n * map->width);
}

/* Inserts into a chunk that is not full. */
static void *insert_at(const struct engine_stream_map *map, struct engine_stream_chunk *c,
                       size_t slot, struct rdb_stream_id id)
{
    if (c->start > 0 && slot < c->n / 2u) {
        c->start--;
        shift(map, c, c->start, c->start + 1u, slot);
    } else {
        if (c->start + c->n == c->cap) {
            shift(map, c, 0, c->start, c->n);
            c->start = 0;
        }
        shift(map, c, c->start + slot + 1, c->start + slot, c->n - slot);
    }
    c->n++;
    c->ids[c->start + slot] = id;
    uint8_t *bytes = under(map, c, slot);
    memset(bytes, 0, map->width);
    return bytes;
}

/* Moves the upper half of a full chunk to a new one. */
static void split(struct engine_stream_map *map, size_t run)
{
    struct engine_stream_chunk *left = run_at(map, run)->chunk;
    struct engine_stream_chunk *right = chunk_new(map, ENGINE_STREAM_CHUNK);
    size_t keep = left->n / 2;
    append(map, right, left, keep, left->n - keep);
    left->n = (uint16_t)keep;
    insert_run(map, run + 1, right->ids[0], right);
}

/* Adds the last ID, in a chunk of its own. */
static void *add_chunk(struct engine_stream_map *map, struct rdb_stream_id id)
{
    enum { TAIL = 16 };
    struct engine_stream_chunk *c = chunk_new(map, map->n_runs == 0 ? CHUNK_MIN : TAIL);
    insert_run(map, map->n_runs, id, c);
    return insert_at(map, c, 0, id);
}

void *engine_stream_map_add(struct engine_stream_map *map, struct rdb_stream_id id,
                            bool *ret_is_new)
{
    *ret_is_new = true;
    if (map->count == 0) {
        map->count = 1;
        return add_chunk(map, id);
    }
    size_t i = find_run(map, id);
    struct engine_stream_run *run = run_at(map, i);
    size_t slot = find_slot(run->chunk, id);
    if (is_at(run->chunk, slot, id)) {
        *ret_is_new = false;
        return under(map, run->chunk, slot);
    }
    map->count++;
    if (run->chunk->n == run->chunk->cap) {
        if (run->chunk->cap < ENGINE_STREAM_CHUNK) {
            size_t cap = 2 * (size_t)run->chunk->cap;
            run->chunk = chunk_resize(map, run->chunk,
                                      cap < ENGINE_STREAM_CHUNK ? cap : ENGINE_STREAM_CHUNK);
        } else if (slot == run->chunk->n && i + 1 == map->n_runs) {
            return add_chunk(map, id);
        } else {
            split(map, i);
            i += slot > run_at(map, i)->chunk->n;
            run = run_at(map, i);
            slot = find_slot(run->chunk, id);
        }
    }
    if (rdb_stream_id_cmp(id, run->low) < 0)
        run->low = id;
    return insert_at(map, run->chunk, slot, id);
}

/* ---- removing ---- */

static bool merge(struct engine_stream_map *map, size_t left, size_t right)
{
    struct engine_stream_chunk *a = run_at(map, left)->chunk;
    struct engine_stream_chunk *b = run_at(map, right)->chunk;
    if (a->n + b->n > ENGINE_STREAM_CHUNK / 2)
        return false;
    struct engine_stream_chunk *both = chunk_new(map, ENGINE_STREAM_CHUNK);
    append(map, both, a, 0, a->n);
    append(map, both, b, 0, b->n);
    engine_free(a);
    run_at(map, left)->chunk = both;
    remove_run(map, right);
    return true;
}

/* Merges a chunk that has shrunk with a neighbour, or reduces its size. */
static void thin(struct engine_stream_map *map, size_t i)
{
    struct engine_stream_run *run = run_at(map, i);
    if (run->chunk->n > run->chunk->cap / 4 || run->chunk->cap <= CHUNK_MIN)
        return;
    if (i + 1 < map->n_runs && merge(map, i, i + 1))
        return;
    if (i > 0 && merge(map, i - 1, i))
        return;
    run->chunk = chunk_resize(map, run->chunk, run->chunk->cap / 2);
}

void engine_stream_map_remove(struct engine_stream_map *map, struct engine_stream_map_pos pos)
{
    struct engine_stream_chunk *c = run_at(map, pos.run)->chunk;
    map->count--;
    if (c->n == 1) {
        remove_run(map, pos.run);
        return;
    }
    if (pos.slot < c->n / 2u) {
        shift(map, c, c->start + 1u, c->start, pos.slot);
        c->start++;
    } else {
        shift(map, c, c->start + pos.slot, c->start + pos.slot + 1, c->n - pos.slot - 1);
    }
    c->n--;
    thin(map, pos.run);
}

bool engine_stream_map_drop(struct engine_stream_map *map, struct rdb_stream_id id)
{
    struct engine_stream_map_pos pos;
    if (!engine_stream_map_ge(map, id, &pos) ||
        rdb_stream_id_cmp(engine_stream_map_id(map, pos), id) != 0)
        return false;
    engine_stream_map_remove(map, pos);
    return true;
}

/* ---- creating and freeing ---- */

void engine_stream_map_done(struct engine_stream_map *map)
{
    for (size_t i = 0; i < map->n_runs; i++)
        engine_free(run_at(map, i)->chunk);
    engine_free(map->runs);
    *map = (struct engine_stream_map){.width = map->width};
}

void engine_stream_map_dup(struct engine_stream_map *ret, const struct engine_stream_map *map)
{
    *ret = (struct engine_stream_map){.width = map->width};
    for (size_t i = 0; i < map->n_runs; i++) {
        const struct engine_stream_run *run = run_at(map, i);
        struct engine_stream_chunk *c = chunk_new(map, run->chunk->n);
        append(map, c, run->chunk, 0, run->chunk->n);
        insert_run(ret, i, run->low, c);
    }
    ret->count = map->count;
}
