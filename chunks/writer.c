#include "chunks/writer_impl.h"

#include "base/mem.h"
#include "chunks/bytes_impl.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    SMALL = 64 * 1024, /* plain bytes of a chunk that is written again with others */
    SMALL_MAX = 16,    /* if there are more of them than this */
    RETIRE_SHARE = 24, /* at most one in so many of the items are written again by one set */
};

/* ---- steps ---- */

void chunks_step_put(uint8_t dst[CHUNKS_STEP], const struct chunks_step *step)
{
    memcpy(dst, &step->number, 4);
    memcpy(dst + 4, &step->item, 8);
    memcpy(dst + 12, &step->key, 8);
}

struct chunks_step chunks_step_get(const uint8_t src[CHUNKS_STEP])
{
    struct chunks_step step;
    memcpy(&step.number, src, 4);
    memcpy(&step.item, src + 4, 8);
    memcpy(&step.key, src + 12, 8);
    return step;
}

/* ---- blobs ---- */

static int compare_named(const void *a, const void *b)
{
    return memcmp(a, b, CHUNKS_NAME);
}

/* The chunk of the parent with this name, or NULL. */
static const struct chunks_chunk *find_named(const struct chunks_writer *w,
                                             const struct chunks_blob *blob)
{
    const struct chunks_named *named = w->n_named == 0 ? NULL
                                                       : bsearch(blob->name, w->named, w->n_named,
                                                                 sizeof *w->named, compare_named);
    return named != NULL ? &w->parent.recipe.chunks[named->index] : NULL;
}

static bool pack_ended(void *ctx, const char *name, uint64_t bytes, struct rd_err *err)
{
    struct chunks_writer *w = ctx;
    uint32_t pack = chunks_recipe_pack(&w->recipe, name);
    if (pack == UINT32_MAX)
        return rd_err_nomem(err, w->recipe.n_packs);
    w->recipe.packs[pack].bytes = bytes;
    return true;
}

static bool store_blob(struct chunks_writer *w, struct chunks_blob *blob, struct rd_slice stored,
                       struct rd_err *err)
{
    if (!chunks_packer_add(&w->packer, blob, stored, err))
        return false;
    blob->pack = chunks_recipe_pack(&w->recipe, w->packer.name);
    return blob->pack != UINT32_MAX || rd_err_nomem(err, w->recipe.n_packs);
}

bool chunks_writer_blob(struct chunks_writer *w, enum chunks_kind kind, struct rd_slice plain,
                        struct chunks_blob *ret, struct rd_err *err)
{
    struct rd_buf stored = {0};
    *ret = (struct chunks_blob){.kind = (uint8_t)kind, .raw = (uint32_t)plain.len};
    bool ok = chunks_blob_name(w->recipe.key, kind, plain, ret->name, err) &&
              chunks_blob_encode(&w->codec, ret->name, plain, &stored, err) &&
              store_blob(w, ret, rd_buf_slice(&stored), err);
    rd_buf_done(&stored);
    return ok;
}

/* Stores a chunk that is ready, unless the parent has one with the same bytes. */
static bool land(struct chunks_writer *w, struct chunks_job *job, struct rd_err *err)
{
    struct chunks_chunk chunk = {.ordinal = job->ordinal,
                                 .n_items = job->n_items,
                                 .born = w->recipe.number,
                                 .blob = job->blob};
    if (job->err.code != RD_ERR_OK) {
        rd_err_adopt(err, &job->err);
        return false;
    }
    const struct chunks_chunk *have = find_named(w, &job->blob);
    if (have != NULL && have->blob.kind == job->blob.kind)
        chunk.blob = have->blob;
    else if (!store_blob(w, &chunk.blob, rd_buf_slice(&job->stored), err))
        return false;
    return chunks_recipe_add_chunk(&w->recipe, &chunk, err);
}

static bool land_all(struct chunks_writer *w, bool wait, struct rd_err *err)
{
    struct chunks_job *job;
    bool ok = true;
    while (ok && (job = chunks_line_take(&w->line, wait)) != NULL) {
        ok = land(w, job, err);
        chunks_line_drop(&w->line);
    }
    return ok;
}

/* The job that the caller fills and pushes. */
static struct chunks_job *next_job(struct chunks_writer *w, enum chunks_kind kind,
                                   struct rd_err *err)
{
    struct chunks_job *job;
    while ((job = chunks_line_slot(&w->line)) == NULL) {
        bool ok = land(w, chunks_line_take(&w->line, true), err);
        chunks_line_drop(&w->line);
        if (!ok)
            return NULL;
    }
    job->blob = (struct chunks_blob){.kind = (uint8_t)kind};
    job->n_items = 0;
    return job;
}

static bool end_chunk(struct chunks_writer *w, struct rd_err *err)
{
    if (w->builder.n == 0)
        return true;
    struct chunks_job *job = next_job(w, CHUNKS_ITEMS, err);
    if (job == NULL)
        return false;
    job->ordinal = w->ordinal;
    job->n_items = w->builder.n;
    if ((w->n_fresh & (w->n_fresh - 1)) == 0) {
        size_t cap = w->n_fresh == 0 ? 1 : 2 * w->n_fresh;
        struct chunks_table *fresh = rd_realloc(w->fresh, cap * sizeof *fresh);
        if (fresh == NULL)
            return rd_err_nomem(err, cap);
        w->fresh = fresh;
    }
    if (!chunks_traits_end(&w->traits, w->ordinal, &w->prefixes, &w->slots))
        return rd_err_nomem(err, CHUNKS_TRAITS_BYTES);
    w->fresh[w->n_fresh++] = (struct chunks_table){w->ordinal, w->builder.n};
    if (!chunks_builder_end(&w->builder, &job->plain))
        return rd_err_nomem(err, job->plain.len);
    chunks_line_push(&w->line);
    return land_all(w, false, err);
}

/* ---- items ---- */

static bool next_ordinal(struct chunks_writer *w, uint32_t *ret, struct rd_err *err)
{
    if (w->recipe.next_ordinal == UINT32_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "there are too many chunks");
    *ret = w->recipe.next_ordinal++;
    return true;
}

static bool on_piece(void *ctx, struct rd_slice bytes, struct rd_err *err)
{
    struct chunks_writer *w = ctx;
    struct chunks_blob blob = {.kind = CHUNKS_PIECE};
    uint32_t ordinal;
    if (!chunks_blob_name(w->recipe.key, CHUNKS_PIECE, bytes, blob.name, err))
        return false;
    const struct chunks_chunk *have = find_named(w, &blob);
    w->long_bytes += bytes.len;
    if (have != NULL && have->blob.kind == CHUNKS_PIECE) {
        ordinal = have->ordinal;
    } else {
        struct chunks_job *job = next_job(w, CHUNKS_PIECE, err);
        if (job == NULL || !next_ordinal(w, &ordinal, err))
            return false;
        job->ordinal = ordinal;
        if (!rd_buf_add(&job->plain, bytes.ptr, bytes.len))
            return rd_err_nomem(err, bytes.len);
        chunks_line_push(&w->line);
    }
    return (rd_buf_add(&w->pieces, &ordinal, sizeof ordinal) &&
            rd_buf_add(&w->names, blob.name, CHUNKS_NAME)) ||
           rd_err_nomem(err, w->names.len);
}

/* The bytes that stand for a long item are in w->text; *ret_hash is that of its content. */
static bool describe_long(struct chunks_writer *w, const struct chunks_item *item,
                          uint64_t *ret_hash, struct rd_err *err)
{
    const struct chunks_long l = {
        .hash = item->hash, .bytes = w->long_bytes, .n = w->pieces.len / sizeof(uint32_t)};
    rd_buf_reset(&w->text);
    if (!chunks_long_hash_begin(&w->text, &l) || !rd_buf_add(&w->text, w->names.ptr, w->names.len))
        return rd_err_nomem(err, w->text.len);
    *ret_hash = chunks_hash_item(w->recipe.key, item->db, rd_buf_slice(&w->text));
    rd_buf_reset(&w->text);
    return chunks_long_put(&w->text, l.hash, l.bytes, (const uint32_t *)(const void *)w->pieces.ptr,
                           l.n) ||
           rd_err_nomem(err, w->text.len);
}

/* Whether a chunk that ends with an item of this hash and length ends here. */
static bool is_border(const struct chunks_writer *w, uint64_t hash, size_t len)
{
    size_t have = w->builder.bytes.len;
    if (have < CHUNKS_MIN)
        return false;
    uint64_t limit = len < CHUNKS_MEAN ? ((uint64_t)len << 32) / CHUNKS_MEAN : UINT32_MAX;
    return have >= CHUNKS_MAX || (hash >> 32) < limit;
}

static bool add_new(struct chunks_writer *w, const struct chunks_item *item, struct rd_slice bytes,
                    uint64_t hash, struct rd_err *err)
{
    unsigned flags = (item->is_long ? CHUNKS_LONG : 0) | (item->is_key ? CHUNKS_IS_KEY : 0);
    if (w->builder.n == 0 && !next_ordinal(w, &w->ordinal, err))
        return false;
    const struct chunks_place place = {w->ordinal, w->builder.n};
    w->n_new++;
    if (!chunks_builder_add(&w->builder, bytes, flags, item->db) ||
        (item->is_key && !chunks_traits_add(&w->traits, w->recipe.key, item->name)))
        return rd_err_nomem(err, bytes.len);
    if (item->is_long &&
        !chunks_lists_add_long(&w->lists, place, (const uint32_t *)(const void *)w->pieces.ptr,
                               w->pieces.len / sizeof(uint32_t), err))
        return false;
    return !is_border(w, hash, bytes.len) || end_chunk(w, err);
}

static bool on_item(void *ctx, const struct chunks_item *item, struct rd_err *err)
{
    struct chunks_writer *w = ctx;
    struct chunks_step step = {.key = item->hash};
    uint8_t bytes[CHUNKS_STEP];
    if (w->recipe.n_items == UINT32_MAX - 2)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the file has too many keys");
    if (item->is_long) {
        if (!describe_long(w, item, &step.item, err))
            return false;
    } else {
        step.item = chunks_hash_item(w->recipe.key, item->db, item->bytes);
    }
    step.number = chunks_known_take(&w->known, step.item, w->expected);
    if (step.number != CHUNKS_NEW)
        w->expected = (uint64_t)step.number + 1;
    else if (!add_new(w, item, item->is_long ? rd_buf_slice(&w->text) : item->bytes, step.item,
                      err))
        return false;
    if (item->is_long) {
        rd_buf_reset(&w->pieces);
        rd_buf_reset(&w->names);
        w->long_bytes = 0;
    }
    w->recipe.n_items++;
    chunks_step_put(bytes, &step);
    if (rd_sink_write(w->sequence, bytes, sizeof bytes))
        return true;
    rd_err_adopt(err, rd_sink_err(w->sequence));
    return false;
}

/* ---- the sink ---- */

static bool writer_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct chunks_writer *w = impl;
    while (w->n_head < sizeof w->recipe.head && w->n_head < w->recipe.bytes + len) {
        w->recipe.head[w->n_head] = ptr[w->n_head - w->recipe.bytes];
        w->n_head++;
    }
    w->recipe.bytes += len;
    return chunks_split_add(&w->split, rd_slice(ptr, len), err);
}

static bool writer_close(void *impl, bool commit, struct rd_err *err)
{
    struct chunks_writer *w = impl;
    if (!commit)
        return true;
    bool ok = chunks_split_end(&w->split, err) && end_chunk(w, err) && land_all(w, true, err) &&
              rd_sink_flush(w->sequence);
    if (!ok && rd_sink_err(w->sequence)->code != RD_ERR_OK)
        rd_err_adopt(err, rd_sink_err(w->sequence));
    return ok && chunks_writer_finish(w, err);
}

/* ---- what the parent has ---- */

/* Chunks of which less than half is used are written again, a few by each set, and so are chunks
 * that are small if there are many. */
static void retire(struct chunks_writer *w)
{
    const struct chunks_recipe *r = &w->parent.recipe;
    uint64_t budget = r->n_items / RETIRE_SHARE + 1;
    size_t n_small = 0;
    for (size_t i = 0; i < r->n_chunks; i++)
        n_small += r->chunks[i].blob.kind == CHUNKS_ITEMS && r->chunks[i].blob.raw < SMALL;
    for (size_t i = 0; i < r->n_chunks; i++) {
        const struct chunks_chunk *c = &r->chunks[i];
        bool small = c->blob.raw < SMALL && n_small > SMALL_MAX;
        bool sparse = c->live < c->n_items / 2;
        if (c->blob.kind != CHUNKS_ITEMS || !(small || sparse) || c->live > budget)
            continue;
        budget -= c->live;
        w->retired[i] = true;
    }
}

static bool is_findable(const struct chunks_writer *w, struct chunks_place place)
{
    const struct chunks_chunk *c = chunks_recipe_find(&w->parent.recipe, place.ordinal);
    return c != NULL && !w->retired[c - w->parent.recipe.chunks];
}

static bool read_state(struct chunks_writer *w, struct rd_err *err)
{
    struct rd_src *src;
    struct chunks_record record;
    w->state.n = w->parent.recipe.n_items;
    if (!chunks_state_open(&w->state, &src, err))
        return false;
    bool ok = chunks_known_init(&w->known, w->state.n, err);
    for (uint64_t i = 0; ok && i < w->state.n; i++) {
        ok = chunks_state_next(src, &record, err);
        if (ok)
            chunks_known_add(&w->known, record.item, is_findable(w, record.place));
    }
    ok = ok && chunks_state_lists(src, &w->old, err);
    rd_src_close(src);
    if (!ok)
        chunks_known_done(&w->known);
    return ok;
}

static bool name_chunks(struct chunks_writer *w, struct rd_err *err)
{
    const struct chunks_recipe *r = &w->parent.recipe;
    w->named = rd_calloc(r->n_chunks + 1, sizeof *w->named);
    if (w->named == NULL)
        return rd_err_nomem(err, r->n_chunks);
    for (size_t i = 0; i < r->n_chunks; i++) {
        struct chunks_named *named = &w->named[w->n_named++];
        memcpy(named->name, r->chunks[i].blob.name, CHUNKS_NAME);
        named->index = (uint32_t)i;
    }
    if (w->n_named > 0)
        qsort(w->named, w->n_named, sizeof *w->named, compare_named);
    return true;
}

/* The state that was kept, or one that is made from the chunks. */
static bool find_state(struct chunks_writer *w, struct rd_err *err)
{
    struct rd_err why = {0};
    w->state = (struct chunks_state){.path = w->opts->state, .spool = &w->state_spool};
    if (w->parent.is_cached && read_state(w, &why))
        return true;
    w->state.path = NULL;
    why = (struct rd_err){0};
    if (chunks_parent_state(&w->parent, w->opts, &w->state_spool, &why) && read_state(w, &why))
        return true;
    if (why.code == RD_ERR_MEMORY)
        rd_err_adopt(err, &why);
    return false;
}

/* Without a parent the set is complete. */
static bool begin_alone(struct chunks_writer *w, struct rd_err *err)
{
    chunks_parent_done(&w->parent);
    chunks_known_done(&w->known);
    chunks_lists_done(&w->old);
    w->recipe.number = 1;
    return chunks_known_init(&w->known, 0, err) && w->opts->random(w->recipe.key, CHUNKS_KEY, err);
}

static bool copy_packs(struct chunks_writer *w, struct rd_err *err)
{
    const struct chunks_recipe *from = &w->parent.recipe;
    for (size_t i = 0; i < from->n_packs; i++) {
        uint32_t pack = chunks_recipe_pack(&w->recipe, from->packs[i].name);
        if (pack == UINT32_MAX)
            return rd_err_nomem(err, from->n_packs);
        w->recipe.packs[pack].bytes = from->packs[i].bytes;
    }
    return true;
}

static bool begin_with_parent(struct chunks_writer *w, struct rd_err *err)
{
    const struct chunks_recipe *from = &w->parent.recipe;
    struct rd_err why = {0};
    if (w->parent.any_lost || from->number == UINT32_MAX || from->next_ordinal > UINT32_MAX / 2)
        return begin_alone(w, err);
    w->retired = rd_calloc(from->n_chunks + 1, sizeof *w->retired);
    if (w->retired == NULL)
        return rd_err_nomem(err, from->n_chunks);
    retire(w);
    if (!find_state(w, &why)) {
        if (why.code == RD_ERR_OK)
            return begin_alone(w, err);
        rd_err_adopt(err, &why);
        return false;
    }
    memcpy(w->recipe.key, from->key, CHUNKS_KEY);
    w->recipe.number = from->number + 1;
    w->recipe.next_ordinal = from->next_ordinal;
    w->opts->parent = w->parent.set->id;
    return name_chunks(w, err) && copy_packs(w, err);
}

static bool begin(struct chunks_writer *w, struct rd_err *err)
{
    const struct chunks_opts *o = w->opts;
    const struct chunks_split_ops ops = {.piece = on_piece, .item = on_item, .ctx = w};
    if (!chunks_parent_find(&w->parent, o, err) ||
        !(w->parent.set != NULL ? begin_with_parent(w, err) : begin_alone(w, err)))
        return false;
    w->codec = (struct chunks_codec){.target = o->repo->target,
                                     .key = o->key,
                                     .ring = o->repo->ring,
                                     .random = o->random,
                                     .sealed = o->key != NULL};
    snprintf(w->prefix, sizeof w->prefix, "%s.%u", o->id, o->number);
    w->packer = (struct chunks_packer){
        .repo = o->repo, .codec = &w->codec, .prefix = w->prefix, .ended = pack_ended, .ctx = w};
    w->line_open = true;
    return chunks_line_init(&w->line, &w->codec, w->recipe.key, o->level, err) &&
           chunks_codec_init(&w->codec, o->level, err) &&
           chunks_split_init(&w->split, w->recipe.key, &ops, err) &&
           spool_sink(&w->steps, &w->sequence, err);
}

bool chunks_writer_open(struct chunks_writer **ret, struct rd_sink **ret_sink,
                        struct chunks_opts *opts, struct rd_err *err)
{
    static const struct rd_sink_ops ops = {writer_write, NULL, writer_close};
    const struct rd_sink_opts sink = RD_SINK_OPTS(.origin = opts->file->object);
    struct chunks_writer *w = rd_calloc(1, sizeof *w);
    if (w == NULL)
        return rd_err_nomem(err, sizeof *w);
    w->opts = opts;
    opts->parent = NULL;
    if (!begin(w, err) || !rd_sink_new(ret_sink, &ops, w, &sink, err)) {
        chunks_writer_free(w);
        return false;
    }
    *ret = w;
    return true;
}

const struct archive_sums *chunks_writer_stored(const struct chunks_writer *w)
{
    return &w->stored;
}

uint64_t chunks_writer_added(const struct chunks_writer *w)
{
    return w->packer.bytes;
}

bool chunks_writer_keep(struct chunks_writer *w, struct rd_err *err)
{
    struct rd_sink *sink = w->state_sink;
    w->state_sink = NULL;
    if (w->state_err.code != RD_ERR_OK) {
        rd_err_adopt(err, &w->state_err);
        return false;
    }
    return sink == NULL || rd_sink_close(sink, err);
}

void chunks_writer_free(struct chunks_writer *w)
{
    if (w == NULL)
        return;
    if (w->line_open)
        chunks_line_done(&w->line);
    chunks_packer_done(&w->packer);
    chunks_split_done(&w->split);
    chunks_builder_done(&w->builder);
    chunks_traits_done(&w->traits);
    chunks_traits_pages_done(&w->prefixes);
    chunks_traits_pages_done(&w->slots);
    rd_sink_abort(w->sequence);
    rd_sink_abort(w->state_sink);
    spool_done(&w->steps);
    spool_done(&w->state_spool);
    chunks_known_done(&w->known);
    chunks_lists_done(&w->old);
    chunks_lists_done(&w->lists);
    chunks_recipe_done(&w->recipe);
    chunks_parent_done(&w->parent);
    chunks_codec_done(&w->codec);
    rd_buf_done(&w->pieces);
    rd_buf_done(&w->names);
    rd_buf_done(&w->text);
    rd_free(w->retired);
    rd_free(w->named);
    rd_free(w->fresh);
    rd_free(w);
}
