/* What follows the last item: its order, the index of keys, the state and the recipe. */
#include "base/mem.h"
#include "chunks/bytes_impl.h"
#include "chunks/runs_impl.h"
#include "chunks/writer_impl.h"

#include <stdlib.h>

enum { ORDERS_MAX = 32 /* changes of an order until it is stored complete */ };

struct finish {
    struct chunks_writer *w;
    struct rd_src *steps;
    struct chunks_place *old; /* places in the parent, by number */
    uint32_t *index;          /* 1 + the number of a chunk in the recipe, by ordinal */
    size_t table, item;       /* the next new item: chunk of w->fresh */
    bool complete;            /* the order does not depend on the parent's */
    struct chunks_table *all; /* of a complete order: all chunks of items of the file */
    uint64_t *first;          /* the number of the first item of each */
    size_t n_all;
    struct chunks_entries changed; /* keys of items that are new or gone, by hash */
    struct chunks_entries entries; /* of the new run */
    uint32_t from;                 /* the run has what was born in this set or later */
    uint8_t *filter;               /* bits by hash: a key that is perhaps in `changed` */
    bool all_new;                  /* of most items: the run has all keys */
};

enum { FILTER_BITS = 23 };

/* ---- the steps again ---- */

static bool rewind_steps(struct finish *f, struct rd_err *err)
{
    rd_src_close(f->steps);
    f->steps = NULL;
    f->table = f->item = 0;
    return spool_source(&f->w->steps, "the items", &f->steps, err);
}

static bool next_step(struct finish *f, struct chunks_step *ret, struct rd_err *err)
{
    struct rd_slice s;
    enum rd_src_status status = rd_src_need(f->steps, CHUNKS_STEP, &s);
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(f->steps));
    if (status != RD_SRC_OK)
        return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "a temporary file is too short");
    *ret = chunks_step_get(s.ptr);
    rd_src_consume(f->steps, CHUNKS_STEP);
    return true;
}

/* The place of the item of this step; new ones come one after another. */
static struct chunks_place place_of(struct finish *f, const struct chunks_step *step)
{
    if (step->number != CHUNKS_NEW)
        return f->old[step->number];
    const struct chunks_table *t = &f->w->fresh[f->table];
    const struct chunks_place place = {t->ordinal, (uint32_t)f->item};
    if (++f->item == t->n_items) {
        f->table++;
        f->item = 0;
    }
    return place;
}

/* ---- chunks ---- */

static int compare_chunks(const void *a, const void *b)
{
    const struct chunks_chunk *x = a, *y = b;
    return (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

/* The chunks of the parent come before the new ones, which are sorted. The packs of the parent have
 * the same numbers in the new recipe. */
static bool merge_chunks(struct finish *f, struct rd_err *err)
{
    struct chunks_recipe *r = &f->w->recipe;
    const struct chunks_recipe *from = &f->w->parent.recipe;
    struct chunks_recipe merged = {.number = 0};
    bool ok = true;
    if (r->n_chunks > 0)
        qsort(r->chunks, r->n_chunks, sizeof *r->chunks, compare_chunks);
    for (size_t i = 0; ok && i < from->n_chunks; i++) {
        struct chunks_chunk chunk = from->chunks[i];
        chunk.live = 0;
        ok = chunks_recipe_add_chunk(&merged, &chunk, err);
    }
    for (size_t i = 0; ok && i < r->n_chunks; i++) {
        ok = chunks_recipe_add_chunk(&merged, &r->chunks[i], err);
    }
    if (!ok) {
        chunks_recipe_done(&merged);
        return false;
    }
    rd_free(r->chunks);
    r->chunks = merged.chunks;
    r->n_chunks = merged.n_chunks;
    return true;
}

/* The chunk of an ordinal, by a table: in a file with another order, each item has another chunk.
 */
static bool index_chunks(struct finish *f, struct rd_err *err)
{
    const struct chunks_recipe *r = &f->w->recipe;
    rd_free(f->index);
    f->index = rd_calloc((size_t)r->next_ordinal + 1, sizeof *f->index);
    if (f->index == NULL)
        return rd_err_nomem(err, r->next_ordinal);
    for (size_t i = 0; i < r->n_chunks; i++)
        f->index[r->chunks[i].ordinal] = (uint32_t)i + 1;
    return true;
}

/* NULL: there is none. */
static struct chunks_chunk *chunk_of(const struct finish *f, uint32_t ordinal)
{
    const struct chunks_recipe *r = &f->w->recipe;
    return ordinal < r->next_ordinal && f->index[ordinal] > 0 ? &r->chunks[f->index[ordinal] - 1]
                                                              : NULL;
}

static bool read_places(struct finish *f, struct rd_err *err)
{
    struct chunks_writer *w = f->w;
    struct rd_src *src;
    struct chunks_record record;
    uint64_t n = w->parent.set != NULL ? w->state.n : 0;
    f->old = rd_calloc((size_t)n + 1, sizeof *f->old);
    if (f->old == NULL)
        return rd_err_nomem(err, (size_t)n * sizeof *f->old);
    if (n == 0)
        return true;
    if (!chunks_state_open(&w->state, &src, err))
        return false;
    bool ok = true;
    for (uint64_t i = 0; ok && i < n; i++) {
        ok = chunks_state_next(src, &record, err);
        if (ok)
            f->old[i] = record.place;
        if (ok && record.key != 0 && !f->all_new && !chunks_known_is_used(&w->known, (size_t)i))
            ok = chunks_entries_add(&f->changed, record.key, CHUNKS_GONE, err);
    }
    rd_src_close(src);
    return ok;
}

/* Counts the items and pieces of each chunk that the file has. */
static bool count_live(struct finish *f, struct rd_err *err)
{
    struct chunks_recipe *r = &f->w->recipe;
    struct chunks_step step;
    struct chunks_chunk *chunk = NULL;
    if (!rewind_steps(f, err))
        return false;
    for (uint64_t i = 0; i < r->n_items; i++) {
        if (!next_step(f, &step, err))
            return false;
        const struct chunks_place place = place_of(f, &step);
        if (chunk == NULL || chunk->ordinal != place.ordinal)
            chunk = chunk_of(f, place.ordinal);
        if (chunk == NULL)
            return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the state names no chunk");
        chunk->live++;
        const struct chunks_pieces *p =
            step.number != CHUNKS_NEW ? chunks_lists_find(&f->w->old, place) : NULL;
        if (p != NULL && !chunks_lists_add_long(&f->w->lists, place, p->ordinals, p->n, err))
            return false;
        if (step.number == CHUNKS_NEW && step.key != 0 && !f->all_new &&
            !chunks_entries_add(&f->changed, step.key, 0, err))
            return false;
    }
    return true;
}

static bool count_pieces(struct finish *f, struct rd_err *err)
{
    struct chunks_lists *l = &f->w->lists;
    for (size_t i = 0; i < l->n_longs; i++)
        for (uint32_t j = 0; j < l->longs[i].n; j++) {
            struct chunks_chunk *piece = chunks_recipe_find(&f->w->recipe, l->longs[i].ordinals[j]);
            if (piece == NULL)
                return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the state names no chunk");
            piece->live++;
        }
    chunks_lists_sort(l);
    return true;
}

static void drop_dead_chunks(struct chunks_recipe *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_chunks; i++)
        if (r->chunks[i].live > 0)
            r->chunks[n++] = r->chunks[i];
    /* The capacity only matters when chunks are added, which is over. */
    r->n_chunks = n;
}

/* ---- the order ---- */

static bool table_rewind(void *ctx, struct rd_err *err)
{
    return rewind_steps(ctx, err);
}

static bool table_next(void *ctx, uint32_t *ret, struct rd_err *err)
{
    struct finish *f = ctx;
    struct chunks_step step;
    if (!next_step(f, &step, err))
        return false;
    if (!f->complete) {
        *ret = step.number;
        return true;
    }
    const struct chunks_place place = place_of(f, &step);
    size_t low = 0, high = f->n_all;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (f->all[mid].ordinal <= place.ordinal)
            low = mid;
        else
            high = mid;
    }
    *ret = (uint32_t)(f->first[low] + place.item);
    return true;
}

static size_t n_changes(const struct chunks_recipe *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_orders; i++)
        n += r->orders[i].kind == CHUNKS_ORDER;
    return n;
}

static bool make_table(struct finish *f, uint64_t *ret_n, struct rd_err *err)
{
    const struct chunks_recipe *r = &f->w->recipe;
    f->all = rd_calloc(r->n_chunks + 1, sizeof *f->all);
    f->first = rd_calloc(r->n_chunks + 1, sizeof *f->first);
    if (f->all == NULL || f->first == NULL)
        return rd_err_nomem(err, r->n_chunks);
    *ret_n = 0;
    for (size_t i = 0; i < r->n_chunks; i++) {
        if (r->chunks[i].blob.kind != CHUNKS_ITEMS)
            continue;
        f->all[f->n_all] = (struct chunks_table){r->chunks[i].ordinal, r->chunks[i].n_items};
        f->first[f->n_all++] = *ret_n;
        *ret_n += r->chunks[i].n_items;
    }
    return true;
}

static bool store_order(struct finish *f, struct rd_slice bytes, struct rd_err *err)
{
    enum chunks_kind kind = CHUNKS_ORDER;
    bool ok = true;
    while (ok && bytes.len > 0) {
        size_t n = bytes.len < CHUNKS_ORDER_BYTES ? bytes.len : CHUNKS_ORDER_BYTES;
        struct chunks_blob blob;
        ok = chunks_writer_blob(f->w, kind, rd_slice(bytes.ptr, n), &blob, err) &&
             chunks_recipe_add_order(&f->w->recipe, &blob, err);
        kind = CHUNKS_ORDER_PART;
        bytes.ptr += n;
        bytes.len -= n;
    }
    return ok;
}

static bool copy_orders(struct finish *f, struct rd_err *err)
{
    const struct chunks_recipe *from = &f->w->parent.recipe;
    bool ok = true;
    for (size_t i = 0; ok && i < from->n_orders; i++)
        ok = chunks_recipe_add_order(&f->w->recipe, &from->orders[i], err);
    return ok;
}

static bool write_order(struct finish *f, struct rd_err *err)
{
    struct chunks_writer *w = f->w;
    struct rd_buf bytes = {0};
    struct chunks_sequence seq = {.rewind = table_rewind,
                                  .next = table_next,
                                  .ctx = f,
                                  .n = w->recipe.n_items,
                                  .n_old = w->parent.set != NULL ? w->state.n : 0};
    f->complete = w->parent.set == NULL || n_changes(&w->parent.recipe) >= ORDERS_MAX;
    if (f->complete && !make_table(f, &seq.n_old, err))
        return false;
    if (f->complete && seq.n_old >= UINT32_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the file has too many keys");
    bool ok = chunks_order_encode(&seq, f->complete ? f->all : w->fresh,
                                  f->complete ? f->n_all : w->n_fresh, f->complete, &bytes, err);
    ok = ok && (f->complete || copy_orders(f, err)) && store_order(f, rd_buf_slice(&bytes), err);
    rd_buf_done(&bytes);
    return ok;
}

/* ---- the index of keys ---- */

/* The runs that stay; f->from is the first set of the new one. */
static size_t runs_to_keep(struct finish *f)
{
    const struct chunks_recipe *from = &f->w->parent.recipe;
    uint64_t n = f->changed.n;
    size_t keep = f->w->parent.set != NULL ? from->n_runs : 0;
    f->from = f->w->recipe.number;
    while (keep > 1 && from->runs[keep - 1].n_entries <= 2 * n) {
        n += from->runs[--keep].n_entries;
        f->from = from->runs[keep].from;
    }
    if (f->all_new || (keep <= 1 && n > f->w->recipe.n_items / 2))
        keep = 0;
    if (keep == 0)
        f->from = 0;
    return keep;
}

static bool has_changed(const struct finish *f, uint64_t key)
{
    uint64_t bit = key >> (64 - FILTER_BITS);
    if ((f->filter[bit / 8] >> (bit % 8) & 1) == 0)
        return false;
    size_t low = 0, high = f->changed.n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (f->changed.at[mid].key < key)
            low = mid + 1;
        else
            high = mid;
    }
    return low < f->changed.n && f->changed.at[low].key == key;
}

/* Collects what the new run has. A key that did not change, and has the hash of one that did, makes
 * the index useless. */
static bool collect(struct finish *f, struct rd_err *err)
{
    struct chunks_writer *w = f->w;
    struct chunks_step step;
    struct chunks_chunk *chunk = NULL;
    if (!rewind_steps(f, err))
        return false;
    for (uint64_t i = 0; i < w->recipe.n_items; i++) {
        if (!next_step(f, &step, err))
            return false;
        const struct chunks_place place = place_of(f, &step);
        if (step.key == 0)
            continue;
        if (step.number != CHUNKS_NEW && f->changed.n > 0 && has_changed(f, step.key))
            w->recipe.flags |= CHUNKS_NO_INDEX;
        if (chunk == NULL || chunk->ordinal != place.ordinal)
            chunk = chunk_of(f, place.ordinal);
        if (chunk != NULL && chunk->born >= f->from &&
            !chunks_entries_add(&f->entries, step.key, chunk->ordinal, err))
            return false;
    }
    return true;
}

/* Keys that are gone and not there again. */
static bool add_dead(struct finish *f, struct rd_err *err)
{
    struct chunks_writer *w = f->w;
    bool ok = true;
    for (size_t i = 0; ok && f->from > 0 && i < w->old.n_dead; i++)
        ok = chunks_lists_add_dead(&w->lists, &w->old.dead[i], err);
    for (size_t i = 0; ok && f->from > 0 && i < f->changed.n; i++)
        if (f->changed.at[i].ordinal == CHUNKS_GONE) {
            const struct chunks_dead dead = {f->changed.at[i].key, w->recipe.number};
            ok = chunks_lists_add_dead(&w->lists, &dead, err);
        }
    for (size_t i = 0; ok && i < w->lists.n_dead; i++)
        if (w->lists.dead[i].died >= f->from)
            ok = chunks_entries_add(&f->entries, w->lists.dead[i].key, CHUNKS_GONE, err);
    return ok;
}

static bool write_run(struct finish *f, struct rd_err *err)
{
    struct chunks_run run = {.from = f->from, .n_entries = f->entries.n};
    struct rd_buf plain = {0};
    bool ok = true;
    for (size_t next = 0; ok && next < f->entries.n;) {
        struct chunks_page page = {.first = f->entries.at[next].key};
        rd_buf_reset(&plain);
        ok = chunks_page_print(&f->entries, &next, &plain, err) &&
             chunks_writer_blob(f->w, CHUNKS_PAGE, rd_buf_slice(&plain), &page.blob, err) &&
             chunks_run_add_page(&run, &page, err);
    }
    rd_buf_done(&plain);
    if (ok && chunks_recipe_add_run(&f->w->recipe, &run, err))
        return true;
    rd_free(run.pages);
    return false;
}

static bool copy_run(struct finish *f, const struct chunks_run *from, struct rd_err *err)
{
    struct chunks_run run = {.from = from->from, .n_entries = from->n_entries};
    bool ok = true;
    for (size_t i = 0; ok && i < from->n_pages; i++)
        ok = chunks_run_add_page(&run, &from->pages[i], err);
    if (ok && chunks_recipe_add_run(&f->w->recipe, &run, err))
        return true;
    rd_free(run.pages);
    return false;
}

static bool make_filter(struct finish *f, struct rd_err *err)
{
    f->filter = rd_calloc((size_t)1 << (FILTER_BITS - 3), 1);
    if (f->filter == NULL)
        return rd_err_nomem(err, (size_t)1 << (FILTER_BITS - 3));
    for (size_t i = 0; i < f->changed.n; i++) {
        uint64_t bit = f->changed.at[i].key >> (64 - FILTER_BITS);
        f->filter[bit / 8] |= (uint8_t)(1u << (bit % 8));
    }
    return true;
}

/* An index that is useless stays so until the set has no parent. */
static bool write_index(struct finish *f, struct rd_err *err)
{
    struct chunks_writer *w = f->w;
    struct chunks_recipe *r = &w->recipe;
    bool twice;
    r->flags |= w->parent.set != NULL ? w->parent.recipe.flags & CHUNKS_NO_INDEX : 0;
    r->flags |= w->split.bound ? CHUNKS_BOUND : 0;
    chunks_entries_sort(&f->changed, &twice);
    if (twice)
        r->flags |= CHUNKS_NO_INDEX;
    size_t keep = runs_to_keep(f);
    bool ok = (keep > 0 || chunks_entries_reserve(&f->entries, (size_t)r->n_items, err)) &&
              make_filter(f, err) && collect(f, err) && add_dead(f, err);
    chunks_entries_done(&f->changed);
    for (size_t i = 0; ok && i < keep; i++)
        ok = copy_run(f, &w->parent.recipe.runs[i], err);
    if (!ok)
        return false;
    chunks_entries_sort(&f->entries, &twice);
    if (twice)
        r->flags |= CHUNKS_NO_INDEX;
    ok = f->entries.n == 0 || write_run(f, err);
    chunks_entries_done(&f->entries);
    return ok;
}

/* ---- prefixes and slots ---- */

struct taking {
    const struct chunks_recipe *recipe;
    struct chunks_traits_pages pages;
};

/* An entry of a chunk that is still needed. */
static bool take_entry(void *ctx, const struct chunks_trait *trait)
{
    struct taking *t = ctx;
    if (chunks_recipe_find(t->recipe, trait->ordinal) == NULL)
        return true;
    struct chunks_traits_page *page = chunks_traits_pages_next(&t->pages, trait->ordinal);
    return page != NULL && rd_buf_add(&page->plain, trait->bytes.ptr, trait->bytes.len);
}

/* Takes in a page of the parent. False: it cannot be read, and stays. */
static bool take_page(struct taking *t, struct chunks_fetch *fetch, const struct chunks_leaf *leaf)
{
    struct rd_buf plain = {0};
    bool ok = chunks_fetch_blob(fetch, &leaf->blob, &plain, NULL) &&
              chunks_traits_each(rd_buf_slice(&plain), take_entry, t, NULL);
    rd_buf_done(&plain);
    return ok;
}

/* The pages of the parent from `keep` to `end`, and then those of the new chunks, as one list. */
static bool merge_pages(struct finish *f, struct chunks_traits_pages *pages, size_t keep,
                        size_t end, struct rd_err *err)
{
    struct chunks_writer *w = f->w;
    struct taking t = {.recipe = &w->recipe};
    struct chunks_fetch fetch;
    const struct chunks_codec codec = {
        .target = w->opts->repo->target, .ring = w->opts->repo->ring, .sealed = w->codec.sealed};
    bool ok = chunks_fetch_init(&fetch, w->opts->repo->store, &codec, &w->parent.recipe, err);
    bool took = ok;
    for (size_t i = keep; took && i < end; i++)
        took = take_page(&t, &fetch, &w->parent.recipe.leaves[i]);
    for (size_t i = 0; took && i < pages->n; i++)
        took = chunks_traits_each(rd_buf_slice(&pages->at[i].plain), take_entry, &t, NULL);
    chunks_fetch_done(&fetch);
    if (!took) { /* they stay as they are */
        chunks_traits_pages_done(&t.pages);
        for (size_t i = keep; ok && i < end; i++)
            ok = chunks_recipe_add_leaf(&w->recipe, &w->parent.recipe.leaves[i], err);
        return ok;
    }
    chunks_traits_pages_done(pages);
    *pages = t.pages;
    return true;
}

/* Small pages before the new ones are taken in, so that there are few. Those of the parent with the
 * kind are from `begin` to `end`. */
static bool write_pages(struct finish *f, enum chunks_kind kind, struct chunks_traits_pages *pages,
                        size_t begin, size_t end, struct rd_err *err)
{
    struct chunks_writer *w = f->w;
    const struct chunks_leaf *old = w->parent.recipe.leaves;
    size_t keep = end;
    uint64_t bytes = pages->n == 1 ? pages->at[0].plain.len : 0;
    while (keep > begin && old[keep - 1].blob.raw <= 2 * bytes &&
           old[keep - 1].blob.raw + bytes <= CHUNKS_TRAITS_BYTES)
        bytes += old[--keep].blob.raw;
    bool ok = true;
    for (size_t i = begin; ok && i < keep; i++)
        if (chunks_recipe_any(&w->recipe, old[i].first, old[i].last))
            ok = chunks_recipe_add_leaf(&w->recipe, &old[i], err);
    ok = ok && (keep == end || merge_pages(f, pages, keep, end, err));
    for (size_t i = 0; ok && i < pages->n; i++) {
        const struct chunks_traits_page *page = &pages->at[i];
        struct chunks_leaf leaf = {.first = page->first, .last = page->last};
        ok = chunks_writer_blob(w, kind, rd_buf_slice(&page->plain), &leaf.blob, err) &&
             chunks_recipe_add_leaf(&w->recipe, &leaf, err);
    }
    return ok;
}

static bool write_leaves(struct finish *f, struct rd_err *err)
{
    struct chunks_writer *w = f->w;
    const struct chunks_recipe *from = &w->parent.recipe;
    size_t n = w->parent.set != NULL ? from->n_leaves : 0, n_prefixes = 0;
    while (n_prefixes < n && from->leaves[n_prefixes].blob.kind == CHUNKS_PREFIXES)
        n_prefixes++;
    return write_pages(f, CHUNKS_PREFIXES, &w->prefixes, 0, n_prefixes, err) &&
           write_pages(f, CHUNKS_SLOTS, &w->slots, n_prefixes, n, err);
}

/* ---- the recipe ---- */

static bool write_recipe(struct finish *f, struct rd_err *err)
{
    struct chunks_writer *w = f->w;
    const struct chunks_opts *o = w->opts;
    struct archive_file file = *o->file;
    w->recipe.added = w->packer.bytes;
    if (!chunks_recipe_trim(&w->recipe, err) ||
        !chunks_recipe_write(o->repo, o->id, &file, o->key, o->random, &w->recipe, err))
        return false;
    w->stored = file.stored;
    return true;
}

/* ---- the state ---- */

/* Without it, the next set reads the chunks. */
static void write_state(struct finish *f)
{
    struct chunks_writer *w = f->w;
    const struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true);
    struct chunks_step step = {0};
    if (w->opts->state == NULL ||
        !rd_sink_open_file(&w->state_sink, w->opts->state, &opts, &w->state_err))
        return;
    struct rd_sink *to = w->state_sink;
    bool ok = rewind_steps(f, &w->state_err) &&
              chunks_state_begin(to, w->stored.sha256, w->recipe.n_items);
    for (uint64_t i = 0; ok && i < w->recipe.n_items; i++) {
        ok = next_step(f, &step, &w->state_err);
        const struct chunks_record record = {step.item, step.key,
                                             ok ? place_of(f, &step) : (struct chunks_place){0}};
        ok = ok && chunks_state_put(to, &record);
    }
    if (ok && chunks_state_end(to, &w->lists))
        return;
    rd_err_adopt(&w->state_err, rd_sink_err(to));
    rd_sink_abort(to);
    w->state_sink = NULL;
}

static bool finish(struct finish *f, struct rd_err *err)
{
    if (!read_places(f, err) || !merge_chunks(f, err) || !index_chunks(f, err) ||
        !count_live(f, err) || !count_pieces(f, err))
        return false;
    drop_dead_chunks(&f->w->recipe);
    if (!index_chunks(f, err) || !write_order(f, err) || !write_index(f, err) ||
        !write_leaves(f, err) || !chunks_packer_end(&f->w->packer, err) || !write_recipe(f, err))
        return false;
    write_state(f);
    return true;
}

bool chunks_writer_finish(struct chunks_writer *w, struct rd_err *err)
{
    struct finish f = {.w = w};
    f.all_new = w->parent.set == NULL || w->n_new > w->recipe.n_items / 2;
    chunks_known_shrink(&w->known);
    bool ok = finish(&f, err);
    rd_src_close(f.steps);
    rd_free(f.old);
    rd_free(f.index);
    rd_free(f.all);
    rd_free(f.first);
    rd_free(f.filter);
    chunks_entries_done(&f.changed);
    chunks_entries_done(&f.entries);
    return ok;
}
