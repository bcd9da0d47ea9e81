/* All chunks of items in a temporary file that is mapped.
 *
 * The items of each chunk are laid out in the order in which the file has them, so that the file is
 * read from each chunk from its beginning to its end: a few hundred places of the map are in use at
 * a time, and not as many as there are items. */
#include "chunks/assemble_impl.h"

#include "base/mem.h"

struct chunks_flat {
    struct chunks_assembler *a;
    struct spool spool;
    uint64_t *offsets; /* of each chunk of the recipe in the spool */
    uint32_t *first;   /* of each chunk: see chunks_places_by_chunk() */
    uint32_t *order;   /* of each chunk: its items in the order of the file */
    struct rd_slice map;
};

static uint64_t size_of(const struct chunks_chunk *chunk)
{
    return chunk->blob.kind == CHUNKS_ITEMS ? chunk->blob.raw : 0;
}

uint64_t chunks_flat_size(const struct chunks_recipe *recipe)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < recipe->n_chunks; i++)
        bytes += size_of(&recipe->chunks[i]);
    return bytes;
}

/* ---- one chunk ---- */

static bool add_db(struct chunks_items *to, size_t cap, uint32_t first, uint64_t db)
{
    if (to->n_dbs > 0 && to->dbs[to->n_dbs - 1].db == db)
        return true;
    if (to->n_dbs == cap)
        return false;
    to->dbs[to->n_dbs++] = (struct chunks_db){first, db};
    return true;
}

static bool copy_items(const struct chunks_items *from, const uint32_t *order, uint32_t n,
                       struct chunks_items *to, struct rd_buf *bytes, struct rd_err *err)
{
    size_t cap = from->n_dbs > 1 ? n : from->n_dbs;
    to->ends = rd_alloc(((size_t)n + 1) * sizeof *to->ends);
    to->flags = rd_alloc((size_t)n + 1);
    to->dbs = rd_alloc((cap + 1) * sizeof *to->dbs);
    if (to->ends == NULL || to->flags == NULL || to->dbs == NULL)
        return rd_err_nomem(err, n);
    for (; to->n < n; to->n++) {
        uint32_t i = order[to->n];
        if (i >= from->n)
            return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                              "the order names an item of no chunk");
        struct rd_slice item = chunks_items_at(from, i);
        /* No item is in the file twice. */
        if (item.len > from->bytes.len - bytes->len)
            return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the order names an item twice");
        memcpy(bytes->ptr + bytes->len, item.ptr, item.len);
        bytes->len += item.len;
        to->ends[to->n] = (uint32_t)bytes->len;
        to->flags[to->n] = from->flags[i];
        add_db(to, cap, to->n, chunks_items_db(from, i));
    }
    return true;
}

/* In any thread. `work` is memory to be used. */
static bool keep(void *ctx, const struct chunks_blob *blob, struct rd_slice plain,
                 struct rd_buf *work, struct rd_err *err)
{
    struct chunks_flat *f = ctx;
    const struct chunks_chunk *chunk =
        (const void *)((const char *)blob - offsetof(struct chunks_chunk, blob));
    size_t index = (size_t)(chunk - f->a->fetch.recipe->chunks);
    const uint32_t *order = f->order + f->first[index];
    uint32_t n = f->first[index + 1] - f->first[index];
    struct chunks_items from = {.n = 0}, to = {.n = 0};
    rd_buf_reset(work);
    bool ok = chunks_items_parse(&from, plain, err) &&
              (rd_buf_reserve(work, from.bytes.len + 1) || rd_err_nomem(err, from.bytes.len)) &&
              copy_items(&from, order, n, &to, work, err) &&
              spool_write(&f->spool, f->offsets[index], work->ptr, work->len, err);
    chunks_items_done(&from);
    to.bytes.len = work->len;
    if (ok)
        f->a->chunks[index].items = to;
    else
        chunks_items_done(&to);
    return ok;
}

/* ---- all chunks ---- */

/* The order of the items of each chunk. Their numbers become those in this order. */
static bool make_order(struct chunks_flat *f, struct rd_err *err)
{
    struct chunks_assembler *a = f->a;
    size_t n = a->fetch.recipe->n_chunks;
    f->first = rd_calloc(n + 2, sizeof *f->first);
    f->order = rd_calloc(a->places.n + 1, sizeof *f->order);
    if (f->first == NULL || f->order == NULL)
        return rd_err_nomem(err, a->places.n);
    if (!chunks_places_by_chunk(a, f->first, f->order, err))
        return false;
    for (size_t c = 0; c < n; c++)
        for (uint32_t i = f->first[c]; i < f->first[c + 1]; i++) {
            struct chunks_place *place = &a->places.at[f->order[i]];
            f->order[i] = place->item;
            place->item = i - f->first[c];
        }
    return true;
}

static bool begin(struct chunks_flat *f, struct rd_err *err)
{
    struct chunks_assembler *a = f->a;
    const struct chunks_recipe *r = a->fetch.recipe;
    uint64_t bytes = 0;
    if (!make_order(f, err))
        return false;
    f->offsets = rd_calloc(r->n_chunks + 1, sizeof *f->offsets);
    if (f->offsets == NULL)
        return rd_err_nomem(err, r->n_chunks);
    for (size_t i = 0; i < r->n_chunks; i++) {
        f->offsets[i] = bytes;
        bytes += size_of(&r->chunks[i]);
    }
    if (!spool_resize(&f->spool, bytes, err))
        return false;
    if (a->ahead == NULL)
        return true;
    chunks_ahead_keep(a->ahead, keep, f);
    for (size_t i = 0; i < r->n_chunks; i++)
        if (f->first[i] < f->first[i + 1] &&
            !chunks_ahead_add(a->ahead, CHUNKS_LANE_FLAT, &r->chunks[i].blob, err))
            return false;
    chunks_ahead_begin(a->ahead);
    return true;
}

/* What no thread has kept is read here. */
static bool wait_for(struct chunks_flat *f, const struct chunks_chunk *chunk, struct rd_buf *work,
                     struct rd_err *err)
{
    struct chunks_assembler *a = f->a;
    struct rd_buf plain = {0};
    struct rd_err why = {0};
    if (a->ahead != NULL && chunks_ahead_take(a->ahead, &chunk->blob, &plain))
        return true;
    bool ok = chunk->blob.kind == CHUNKS_ITEMS ||
              rd_err_set(&why, RD_ERR_CORRUPT, RD_NO_OFFSET, "the order names a piece");
    ok = ok && chunks_fetch_blob(&a->fetch, &chunk->blob, &plain, &why) &&
         keep(f, &chunk->blob, rd_buf_slice(&plain), work, &why);
    rd_buf_done(&plain);
    if (!ok && a->lost != NULL && chunks_fetch_is_lost(&why))
        return a->lost[chunk - a->fetch.recipe->chunks] = true;
    rd_err_adopt(err, &why);
    return ok;
}

static bool end(struct chunks_flat *f, struct rd_err *err)
{
    const struct chunks_recipe *r = f->a->fetch.recipe;
    struct rd_buf work = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < r->n_chunks; i++)
        ok = f->first[i] == f->first[i + 1] || wait_for(f, &r->chunks[i], &work, err);
    rd_buf_done(&work);
    ok = ok && spool_map(&f->spool, &f->map, err);
    for (size_t i = 0; ok && i < r->n_chunks; i++) {
        struct chunks_loaded *c = &f->a->chunks[i];
        c->items.bytes.ptr = f->map.ptr + f->offsets[i];
        c->loaded = f->first[i] < f->first[i + 1] && (f->a->lost == NULL || !f->a->lost[i]);
    }
    if (!ok)
        return false; /* threads may still use the order */
    rd_free(f->first);
    rd_free(f->order);
    f->first = f->order = NULL;
    return true;
}

bool chunks_flat_open(struct chunks_flat **ret, struct chunks_assembler *a, struct rd_err *err)
{
    struct chunks_flat *f = rd_calloc(1, sizeof *f);
    if (f == NULL)
        return rd_err_nomem(err, sizeof *f);
    f->a = a;
    *ret = f;
    return begin(f, err) && end(f, err);
}

void chunks_flat_close(struct chunks_flat *f)
{
    if (f == NULL)
        return;
    spool_unmap(f->map);
    spool_done(&f->spool);
    rd_free(f->offsets);
    rd_free(f->first);
    rd_free(f->order);
    rd_free(f);
}
