#include "chunks/assemble_impl.h"

#include "base/mem.h"
#include "chunks/bytes_impl.h"

#include <inttypes.h>
#include <unistd.h>

enum {
    LONGS_AHEAD = 64, /* items after a long one in which others are looked for */
    CACHE = 64 * 1024 * 1024,
    SHARE_OF_MEMORY = 4,
    HURRY = 192 /* bytes that are fetched into the cache of the processor */
};

struct chunks_rooms chunks_rooms_usual(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    return (struct chunks_rooms){.cache = CACHE, .map = memory / SHARE_OF_MEMORY};
}

/* ---- what was used last ---- */

static bool lru_init(struct chunks_lru *lru, uint32_t n, uint64_t room)
{
    *lru = (struct chunks_lru){.n = n, .room = room};
    lru->next = rd_calloc((size_t)n + 1, sizeof *lru->next);
    lru->before = rd_calloc((size_t)n + 1, sizeof *lru->before);
    lru->in = rd_calloc((size_t)n + 1, sizeof *lru->in);
    if (lru->next == NULL || lru->before == NULL || lru->in == NULL)
        return false;
    lru->next[n] = lru->before[n] = n;
    return true;
}

static void lru_done(struct chunks_lru *lru)
{
    rd_free(lru->next);
    rd_free(lru->before);
    rd_free(lru->in);
    *lru = (struct chunks_lru){.n = 0};
}

static void lru_unlink(struct chunks_lru *lru, uint32_t i, uint64_t bytes)
{
    lru->next[lru->before[i]] = lru->next[i];
    lru->before[lru->next[i]] = lru->before[i];
    lru->in[i] = false;
    lru->used -= bytes;
}

static void lru_link(struct chunks_lru *lru, uint32_t i, uint64_t bytes)
{
    lru->next[i] = lru->next[lru->n];
    lru->before[i] = lru->n;
    lru->before[lru->next[i]] = i;
    lru->next[lru->n] = i;
    lru->in[i] = true;
    lru->used += bytes;
}

/* True if i was there. Else the oldest ones make room for it: unload() is called for them, unless
 * it is NULL. */
static bool lru_touch(struct chunks_lru *lru, uint32_t i, const struct chunks_chunk *chunks,
                      struct chunks_assembler *a,
                      void (*unload)(struct chunks_assembler *a, uint32_t i))
{
    uint64_t bytes = chunks[i].blob.raw;
    bool was = lru->in[i];
    if (was)
        lru_unlink(lru, i, bytes);
    while (!was && lru->used > 0 && lru->used + bytes > lru->room) {
        uint32_t out = lru->before[lru->n];
        if (unload != NULL)
            unload(a, out);
        lru_unlink(lru, out, chunks[out].blob.raw);
    }
    lru_link(lru, i, bytes);
    return was;
}

/* ---- chunks ---- */

bool chunks_assemble_find(const struct chunks_assembler *a, uint32_t ordinal, size_t *ret,
                          struct rd_err *err)
{
    const struct chunks_recipe *r = a->fetch.recipe;
    if (a->index != NULL && ordinal < r->next_ordinal && a->index[ordinal] > 0) {
        *ret = a->index[ordinal] - 1;
        return true;
    }
    const struct chunks_chunk *chunk = chunks_recipe_find(r, ordinal);
    if (chunk == NULL)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                          "the recipe has no chunk %" PRIu32 ", which the order of the file names",
                          ordinal);
    *ret = (size_t)(chunk - r->chunks);
    return true;
}

/* A table from ordinals to chunks, unless many ordinals are not used any more. */
static void make_index(struct chunks_assembler *a)
{
    const struct chunks_recipe *r = a->fetch.recipe;
    if (r->next_ordinal / 16 > r->n_chunks + 65536)
        return;
    a->index = rd_calloc((size_t)r->next_ordinal + 1, sizeof *a->index);
    for (size_t i = 0; a->index != NULL && i < r->n_chunks; i++)
        a->index[r->chunks[i].ordinal] = (uint32_t)i + 1;
}

static void unload(struct chunks_assembler *a, uint32_t i)
{
    struct chunks_loaded *c = &a->chunks[i];
    if (a->ahead != NULL)
        chunks_ahead_spare(a->ahead, &c->plain);
    rd_buf_done(&c->plain);
    chunks_items_done(&c->items);
    c->loaded = false;
}

bool chunks_assemble_load(struct chunks_assembler *a, size_t index, struct rd_err *err)
{
    struct chunks_loaded *c = &a->chunks[index];
    if (a->flat != NULL && c->loaded)
        return true;
    lru_touch(&a->lru, (uint32_t)index, a->fetch.recipe->chunks, a, unload);
    if (c->loaded)
        return true;
    const struct chunks_chunk *chunk = &a->fetch.recipe->chunks[index];
    if (chunk->blob.kind != CHUNKS_ITEMS)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the order names a piece");
    if (chunks_fetch_blob(&a->fetch, &chunk->blob, &c->plain, err) &&
        chunks_items_parse(&c->items, rd_buf_slice(&c->plain), err)) {
        c->loaded = true;
        return true;
    }
    unload(a, (uint32_t)index);
    return false;
}

bool chunks_assemble_load_or_skip(struct chunks_assembler *a, size_t index, struct rd_err *err)
{
    struct rd_err why = {0};
    if (a->lost != NULL && a->lost[index])
        return true;
    if (chunks_assemble_load(a, index, &why))
        return true;
    if (a->lost != NULL && chunks_fetch_is_lost(&why)) {
        a->lost[index] = true;
        return true;
    }
    rd_err_adopt(err, &why);
    return false;
}

/* ---- the order ---- */

static bool read_orders(struct chunks_assembler *a, struct rd_err *err)
{
    const struct chunks_recipe *r = a->fetch.recipe;
    struct rd_buf plain = {0};
    bool ok = r->orders[0].kind == CHUNKS_ORDER ||
              rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the recipe has no order");
    for (size_t i = 0; ok && i < r->n_orders;) {
        rd_buf_reset(&plain);
        do
            ok = chunks_fetch_blob(&a->fetch, &r->orders[i++], &plain, err);
        while (ok && i < r->n_orders && r->orders[i].kind == CHUNKS_ORDER_PART);
        ok = ok && chunks_order_apply(rd_buf_slice(&plain), &a->places, err);
    }
    rd_buf_done(&plain);
    ok = ok &&
         (a->places.n == r->n_items ||
          rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                     "the order has %zu items, and the recipe %" PRIu64, a->places.n, r->n_items));
    return ok && chunks_places_settle(&a->places, err);
}

/* The chunks in the order in which they are read. */
struct loads {
    uint32_t *at;
    size_t n, limit; /* n > limit: each chunk would be read more than twice on average */
};

static bool count_loads(struct chunks_assembler *a, struct loads *loads, struct rd_err *err)
{
    uint32_t last = UINT32_MAX;
    struct chunks_lru lru;
    bool ok = lru_init(&lru, a->lru.n, a->lru.room) || rd_err_nomem(err, a->lru.n);
    for (size_t i = 0; ok && loads->n <= loads->limit && i < a->places.n; i++) {
        size_t index = 0;
        if (a->places.at[i].ordinal == last)
            continue;
        last = a->places.at[i].ordinal;
        ok = chunks_assemble_find(a, last, &index, err);
        if (ok && !lru_touch(&lru, (uint32_t)index, a->fetch.recipe->chunks, NULL, NULL))
            loads->at[loads->n++] = (uint32_t)index;
    }
    lru_done(&lru);
    return ok;
}

static bool read_ahead(struct chunks_assembler *a, const struct loads *loads, struct rd_err *err)
{
    const struct chunks_recipe *r = a->fetch.recipe;
    bool scattered = loads->n > loads->limit, ok = true;
    size_t n = scattered ? r->n_chunks : loads->n;
    for (size_t i = 0; ok && i < n; i++) {
        const struct chunks_chunk *c = &r->chunks[scattered ? i : loads->at[i]];
        ok = c->blob.kind != CHUNKS_ITEMS ||
             chunks_ahead_add(a->ahead, CHUNKS_LANE_FILE, &c->blob, err);
    }
    if (ok)
        chunks_ahead_begin(a->ahead);
    return ok;
}

static bool plan(struct chunks_assembler *a, const struct chunks_rooms *rooms, struct rd_err *err)
{
    struct loads loads = {.limit = 2 * (size_t)a->lru.n + 16};
    loads.at = rd_calloc(loads.limit + 1, sizeof *loads.at);
    bool ok = (loads.at != NULL || rd_err_nomem(err, loads.limit)) && count_loads(a, &loads, err);
    bool scattered = loads.n > loads.limit;
    if (ok && scattered && chunks_flat_size(a->fetch.recipe) <= rooms->map)
        ok = chunks_flat_open(&a->flat, a, err);
    else if (ok)
        ok = (a->ahead == NULL || read_ahead(a, &loads, err)) &&
             (!scattered || chunks_sorted_open(&a->sorted, a, err));
    rd_free(loads.at);
    return ok;
}

static bool init(struct chunks_assembler *a, struct archive_store *store,
                 const struct chunks_codec *codec, const struct chunks_recipe *recipe,
                 uint64_t cache, struct rd_err *err)
{
    *a = (struct chunks_assembler){.next = 0};
    if (!chunks_fetch_init(&a->fetch, store, codec, recipe, err))
        return false;
    a->chunks = rd_calloc(recipe->n_chunks + 1, sizeof *a->chunks);
    if (a->chunks == NULL || !lru_init(&a->lru, (uint32_t)recipe->n_chunks, cache))
        return rd_err_nomem(err, recipe->n_chunks);
    make_index(a);
    return true;
}

bool chunks_assemble_places(struct chunks_assembler *a, struct archive_store *store,
                            const struct chunks_codec *codec, const struct chunks_recipe *recipe,
                            struct rd_err *err)
{
    uint64_t bytes = 0;
    bool ok = init(a, store, codec, recipe, chunks_rooms_usual().cache, err);
    for (size_t i = 0; i < recipe->n_orders; i++)
        bytes += recipe->orders[i].stored;
    a->fetch.ahead = bytes > CHUNKS_AHEAD / 8;
    return ok && read_orders(a, err);
}

/* The key of the blobs is known with the first one, so that threads need not derive it from a
 * passphrase. */
static bool find_key(struct chunks_assembler *a, struct rd_err *err)
{
    struct rd_buf plain = {0};
    bool ok = chunks_fetch_blob(&a->fetch, &a->fetch.recipe->orders[0], &plain, err);
    rd_buf_done(&plain);
    return ok;
}

static bool open_ahead(struct chunks_assembler *a, const struct archive_parallel *parallel,
                       struct rd_err *err)
{
    const struct chunks_recipe *r = a->fetch.recipe;
    if (!find_key(a, err) || !chunks_ahead_open(&a->ahead, &a->fetch, parallel, err))
        return false;
    bool ok = true;
    for (size_t i = 1; a->ahead != NULL && ok && i < r->n_orders; i++)
        ok = chunks_ahead_add(a->ahead, CHUNKS_LANE_FILE, &r->orders[i], err);
    if (a->ahead != NULL && ok)
        chunks_ahead_begin(a->ahead);
    a->fetch.threads = a->ahead;
    a->fetch.ahead = a->ahead == NULL;
    return ok;
}

bool chunks_assemble_open(struct chunks_assembler *a, const struct archive_repo *repo,
                          const struct chunks_codec *codec, const struct chunks_recipe *recipe,
                          const struct chunks_rooms *rooms, struct rd_err *err)
{
    if (!init(a, repo->store, codec, recipe, rooms->cache, err))
        return false;
    a->lost = rooms->skips ? rd_calloc(recipe->n_chunks + 1, sizeof *a->lost) : NULL;
    if (rooms->skips && a->lost == NULL)
        return rd_err_nomem(err, recipe->n_chunks);
    return open_ahead(a, repo->parallel, err) && read_orders(a, err) && plan(a, rooms, err);
}

void chunks_assemble_done(struct chunks_assembler *a)
{
    chunks_ahead_close(a->ahead);
    a->ahead = a->fetch.threads = NULL;
    for (size_t i = 0; a->chunks != NULL && i < a->fetch.recipe->n_chunks; i++)
        unload(a, (uint32_t)i);
    rd_free(a->chunks);
    rd_free(a->index);
    rd_free(a->lost);
    a->lost = NULL;
    a->chunks = NULL;
    a->index = NULL;
    lru_done(&a->lru);
    chunks_sorted_close(a->sorted);
    a->sorted = NULL;
    chunks_flat_close(a->flat);
    a->flat = NULL;
    chunks_places_done(&a->places);
    if (a->fetch.recipe != NULL)
        chunks_fetch_done(&a->fetch);
}

/* The item at a place; *ret_there false: it is not in memory, and was not to be read. */
static bool item_at(struct chunks_assembler *a, size_t at, bool read, struct chunks_found *ret,
                    bool *ret_there, struct rd_err *err)
{
    size_t index = 0;
    const struct chunks_place place = a->places.at[at];
    *ret_there = true;
    if (a->sorted != NULL)
        return chunks_sorted_at(a->sorted, at, read, ret, ret_there, err);
    if (!chunks_assemble_find(a, place.ordinal, &index, err))
        return false;
    *ret_there = read || a->chunks[index].loaded;
    if (!*ret_there)
        return true;
    if (read && !chunks_assemble_load_or_skip(a, index, err))
        return false;
    if (a->lost != NULL && a->lost[index]) {
        *ret = (struct chunks_found){.place = place, .lost = true};
        return true;
    }
    const struct chunks_items *items = &a->chunks[index].items;
    if (place.item >= items->n)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the order names an item of no chunk");
    *ret = (struct chunks_found){.bytes = chunks_items_at(items, place.item),
                                 .flags = items->flags[place.item],
                                 .db = chunks_items_db(items, place.item),
                                 .place = place};
    return true;
}

/* The next item of the chunk is needed soon: the processor fetches it. */
static void hurry(struct rd_slice item)
{
    for (size_t i = 0; i < HURRY; i += 64)
        __builtin_prefetch(item.ptr + item.len + i);
}

bool chunks_assemble_next(struct chunks_assembler *a, struct chunks_found *ret, bool *ret_end,
                          struct rd_err *err)
{
    bool there;
    *ret_end = a->next == a->places.n;
    if (*ret_end)
        return true;
    if (!item_at(a, a->next, true, ret, &there, err))
        return false;
    if (a->flat != NULL && !ret->lost)
        hurry(ret->bytes);
    a->next++;
    return true;
}

/* Whether the next item follows the one at `place` in its chunk. */
static bool continues(const struct chunks_assembler *a, struct chunks_place place)
{
    if (a->next == a->places.n)
        return false;
    const struct chunks_place *next = &a->places.at[a->next];
    return next->ordinal == place.ordinal && next->item == place.item + 1;
}

bool chunks_assemble_run(struct chunks_assembler *a, struct chunks_found *ret, bool *ret_end,
                         struct rd_err *err)
{
    size_t index = 0;
    if (!chunks_assemble_next(a, ret, ret_end, err))
        return false;
    if (*ret_end || a->sorted != NULL || ret->lost || (ret->flags & CHUNKS_LONG) != 0)
        return true;
    struct chunks_place place = ret->place;
    if (!continues(a, place))
        return true;
    if (!chunks_assemble_find(a, place.ordinal, &index, err))
        return false;
    const struct chunks_items *items = &a->chunks[index].items;
    while (continues(a, place) && place.item + 1 < items->n &&
           (items->flags[place.item + 1] & CHUNKS_LONG) == 0) {
        place.item++;
        a->next++;
    }
    const uint8_t *end = items->bytes.ptr + items->ends[place.item];
    ret->bytes.len = (size_t)(end - ret->bytes.ptr);
    return true;
}

/* ---- pieces ---- */

static bool add_pieces(struct chunks_assembler *a, struct rd_slice item, struct rd_err *err)
{
    struct chunks_long l;
    if (!chunks_long_parse(&l, item, err))
        return false;
    struct chunks_in in = chunks_in_of(rd_slice(l.at, l.len));
    for (size_t i = 0; i < l.n && !in.failed; i++) {
        uint32_t ordinal = (uint32_t)chunks_get_max(&in, UINT32_MAX);
        const struct chunks_chunk *chunk = chunks_recipe_find(a->fetch.recipe, ordinal);
        if (chunk != NULL && !chunks_ahead_add(a->ahead, CHUNKS_LANE_PIECES, &chunk->blob, err))
            return false;
    }
    return true;
}

bool chunks_assemble_ahead(struct chunks_assembler *a, struct rd_slice item, struct rd_err *err)
{
    if (a->ahead == NULL)
        return true;
    size_t end = a->next + LONGS_AHEAD;
    bool there = true, ok = a->longs >= a->next || add_pieces(a, item, err);
    a->longs = a->longs > a->next ? a->longs : a->next;
    for (; ok && there && a->longs < a->places.n && a->longs < end; a->longs += there) {
        struct chunks_found found = {.flags = 0};
        ok = item_at(a, a->longs, false, &found, &there, err) &&
             (!there || (found.flags & CHUNKS_LONG) == 0 || add_pieces(a, found.bytes, err));
    }
    if (ok)
        chunks_ahead_begin(a->ahead);
    return ok;
}
