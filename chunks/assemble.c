#include "chunks/assemble_impl.h"

#include "base/mem.h"

#include <inttypes.h>

/* ---- what was used last ---- */

static bool lru_init(struct chunks_lru *lru, uint32_t n, uint32_t cap)
{
    *lru = (struct chunks_lru){.n = n, .cap = cap};
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

static void lru_unlink(struct chunks_lru *lru, uint32_t i)
{
    lru->next[lru->before[i]] = lru->next[i];
    lru->before[lru->next[i]] = lru->before[i];
    lru->in[i] = false;
    lru->used--;
}

/* *ret_out: what must go, or lru->n. True if i was there. */
static bool lru_touch(struct chunks_lru *lru, uint32_t i, uint32_t *ret_out)
{
    bool was = lru->in[i];
    *ret_out = lru->n;
    if (was)
        lru_unlink(lru, i);
    else if (lru->used == lru->cap) {
        *ret_out = lru->before[lru->n];
        lru_unlink(lru, *ret_out);
    }
    lru->next[i] = lru->next[lru->n];
    lru->before[i] = lru->n;
    lru->before[lru->next[i]] = i;
    lru->next[lru->n] = i;
    lru->in[i] = true;
    lru->used++;
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

static void unload(struct chunks_loaded *c)
{
    rd_buf_done(&c->plain);
    chunks_items_done(&c->items);
    c->loaded = false;
}

bool chunks_assemble_load(struct chunks_assembler *a, size_t index, struct rd_err *err)
{
    struct chunks_loaded *c = &a->chunks[index];
    uint32_t out;
    lru_touch(&a->lru, (uint32_t)index, &out);
    if (out < a->lru.n)
        unload(&a->chunks[out]);
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
    unload(c);
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
    return ok && (a->places.n == r->n_items ||
                  rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                             "the order has %zu items, and the recipe %" PRIu64, a->places.n,
                             r->n_items));
}

/* Whether each chunk, read when it is needed, would be read more than twice on average. */
static bool is_scattered(struct chunks_assembler *a, bool *ret, struct rd_err *err)
{
    uint32_t last = UINT32_MAX, out;
    uint64_t n_loads = 0, limit = 2 * (uint64_t)a->lru.n + 16;
    struct chunks_lru lru;
    bool ok = lru_init(&lru, a->lru.n, a->lru.cap) || rd_err_nomem(err, a->lru.n);
    for (size_t i = 0; ok && n_loads <= limit && i < a->places.n; i++) {
        size_t index = 0;
        if (a->places.at[i].ordinal == last)
            continue;
        last = a->places.at[i].ordinal;
        ok = chunks_assemble_find(a, last, &index, err);
        n_loads += ok && !lru_touch(&lru, (uint32_t)index, &out);
    }
    lru_done(&lru);
    *ret = n_loads > limit;
    return ok;
}

bool chunks_assemble_places(struct chunks_assembler *a, struct archive_store *store,
                            const struct chunks_codec *codec, const struct chunks_recipe *recipe,
                            struct rd_err *err)
{
    uint32_t longest = 1;
    *a = (struct chunks_assembler){.next = 0};
    if (!chunks_fetch_init(&a->fetch, store, codec, recipe, err))
        return false;
    for (size_t i = 0; i < recipe->n_chunks; i++)
        if (recipe->chunks[i].blob.raw > longest)
            longest = recipe->chunks[i].blob.raw;
    uint32_t cap = CHUNKS_CACHE / longest;
    a->fetch.ahead = true;
    a->chunks = rd_calloc(recipe->n_chunks + 1, sizeof *a->chunks);
    if (a->chunks == NULL || !lru_init(&a->lru, (uint32_t)recipe->n_chunks, cap < 16 ? 16 : cap))
        return rd_err_nomem(err, recipe->n_chunks);
    make_index(a);
    return read_orders(a, err);
}

bool chunks_assemble_open(struct chunks_assembler *a, struct archive_store *store,
                          const struct chunks_codec *codec, const struct chunks_recipe *recipe,
                          struct rd_err *err)
{
    bool scattered = false;
    return chunks_assemble_places(a, store, codec, recipe, err) &&
           is_scattered(a, &scattered, err) &&
           (!scattered || chunks_sorted_open(&a->sorted, a, err));
}

void chunks_assemble_done(struct chunks_assembler *a)
{
    for (size_t i = 0; a->chunks != NULL && i < a->fetch.recipe->n_chunks; i++)
        unload(&a->chunks[i]);
    rd_free(a->chunks);
    rd_free(a->index);
    a->chunks = NULL;
    a->index = NULL;
    lru_done(&a->lru);
    chunks_sorted_close(a->sorted);
    a->sorted = NULL;
    rd_free(a->places.at);
    a->places = (struct chunks_places){.n = 0};
    if (a->fetch.recipe != NULL)
        chunks_fetch_done(&a->fetch);
}

bool chunks_assemble_next(struct chunks_assembler *a, struct chunks_found *ret, bool *ret_end,
                          struct rd_err *err)
{
    size_t index = 0;
    *ret_end = a->next == a->places.n;
    if (*ret_end)
        return true;
    const struct chunks_place place = a->places.at[a->next];
    if (a->sorted != NULL)
        return chunks_sorted_next(a->sorted, a->next++, ret, err);
    if (!chunks_assemble_find(a, place.ordinal, &index, err) ||
        !chunks_assemble_load(a, index, err))
        return false;
    const struct chunks_items *items = &a->chunks[index].items;
    if (place.item >= items->n)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the order names an item of no chunk");
    a->next++;
    *ret = (struct chunks_found){.bytes = chunks_items_at(items, place.item),
                                 .flags = items->flags[place.item],
                                 .db = chunks_items_db(items, place.item),
                                 .place = place};
    return true;
}
