/* over.c - a file of which an older version is there: only the items that it has not are fetched.
 *
 * The older version is the file of another set, which its digest proves. So the recipe of that set
 * says which item of which chunk each of its records is. */
#include "archive/pipe.h"
#include "base/digest.h"
#include "base/mem.h"
#include "chunks/assemble_impl.h"
#include "chunks/chunks.h"
#include "chunks/parent_impl.h"
#include "chunks/split_impl.h"

#include <stdio.h>

enum { NONE = UINT32_MAX, RUN_MAX = 1024 * 1024 };

struct over {
    const struct spool *old;
    struct chunks_recipe recipe, before; /* of the file, and of its older version */
    struct chunks_assembler a;
    bool open;
    uint64_t *ends; /* of the items of the older version */
    size_t n_ends, cap;
    uint64_t end;      /* of the item that is read */
    size_t *first;     /* of each chunk of `before`: its first item in `numbers` */
    uint32_t *numbers; /* the number of an item in the older version, or NONE */
    uint32_t *same; /* of each chunk of the recipe: that of `before` with the same bytes, or NONE */
    uint64_t old_at, old_end; /* bytes of the older version that are given next */
    struct rd_buf room, list;
    struct rd_slice bytes; /* what is given next */
    struct chunks_long pieces;
    struct chunks_in ordinals;
    struct chunks_over *counts; /* borrowed */
};

/* ---- which set the older version is of ---- */

static bool sum_old(const struct spool *old, uint8_t ret[ARCHIVE_SHA256], struct rd_err *err)
{
    struct archive_store_sum sum;
    struct rd_src *src;
    if (!spool_source(old, "the older file", &src, err))
        return false;
    bool ok = archive_store_sum_src(src, &sum, err);
    rd_src_close(src);
    memcpy(ret, sum.sha256, ARCHIVE_SHA256);
    return ok;
}

static bool may_be(const struct archive_file *file, const struct archive_file *like,
                   const struct spool *old)
{
    return file->compression == ARCHIVE_COMPRESSION_CHUNKS && file->role == like->role &&
           file->plain.bytes == old->size;
}

/* A good set with a file of these bytes. False: none, which is no failure. */
static bool find_set(struct archive_repo *repo, struct archive_sets *sets,
                     const struct archive_file *like, const struct spool *old,
                     struct archive_set **ret_set, const struct archive_file **ret_file)
{
    uint8_t sha[ARCHIVE_SHA256];
    bool summed = false;
    for (size_t i = sets->n; i-- > 0;) {
        struct archive_set *set = &sets->sets[i];
        for (size_t k = 0; archive_set_good(set) && k < set->m.n_files; k++) {
            const struct archive_file *file = &set->m.files[k];
            if (!may_be(file, like, old))
                continue;
            if (!summed && !sum_old(old, sha, NULL))
                return false;
            summed = true;
            if (memcmp(sha, file->plain.sha256, sizeof sha) != 0 ||
                !archive_set_prove(repo, set, NULL))
                continue;
            *ret_set = set;
            *ret_file = file;
            return true;
        }
    }
    return false;
}

/* ---- where its items are ---- */

static bool on_piece(void *ctx, struct rd_slice bytes, struct rd_err *err)
{
    struct over *o = ctx;
    (void)err;
    o->end += bytes.len;
    return true;
}

static bool on_item(void *ctx, const struct chunks_item *item, struct rd_err *err)
{
    struct over *o = ctx;
    o->end += item->is_long ? 0 : item->bytes.len;
    if (o->n_ends == o->cap) {
        size_t cap = 2 * o->cap + 1024;
        uint64_t *ends = rd_realloc(o->ends, cap * sizeof *ends);
        if (ends == NULL)
            return rd_err_nomem(err, cap * sizeof *ends);
        o->ends = ends;
        o->cap = cap;
    }
    o->ends[o->n_ends++] = o->end;
    return true;
}

static bool split_old(struct over *o, struct rd_err *err)
{
    const struct chunks_split_ops ops = {.piece = on_piece, .item = on_item, .ctx = o};
    struct chunks_split split;
    struct rd_src *src;
    struct rd_slice s;
    enum rd_src_status status = RD_SRC_OK;
    if (!spool_source(o->old, "the older file", &src, err))
        return false;
    bool ok = chunks_split_init(&split, o->before.key, &ops, err);
    while (ok && (status = rd_src_need(src, 1, &s)) == RD_SRC_OK) {
        ok = chunks_split_add(&split, s, err);
        rd_src_consume(src, s.len);
    }
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(src));
    ok = ok && status == RD_SRC_END && chunks_split_end(&split, err);
    chunks_split_done(&split);
    rd_src_close(src);
    return ok && o->n_ends == o->before.n_items && o->end == o->old->size;
}

static bool number_items(struct over *o, const struct chunks_assembler *old, struct rd_err *err)
{
    const struct chunks_recipe *r = &o->before;
    size_t n = 0;
    o->first = rd_calloc(r->n_chunks + 1, sizeof *o->first);
    if (o->first == NULL)
        return rd_err_nomem(err, r->n_chunks);
    for (size_t i = 0; i < r->n_chunks; i++) {
        o->first[i] = n;
        n += r->chunks[i].n_items;
    }
    o->first[r->n_chunks] = n;
    o->numbers = rd_alloc((n + 1) * sizeof *o->numbers);
    if (o->numbers == NULL)
        return rd_err_nomem(err, n * sizeof *o->numbers);
    memset(o->numbers, 0xff, (n + 1) * sizeof *o->numbers);
    for (size_t i = 0; i < old->places.n; i++) {
        const struct chunks_place place = old->places.at[i];
        const struct chunks_chunk *c = chunks_recipe_find(r, place.ordinal);
        if (c == NULL || place.item >= c->n_items)
            return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                              "the order names an item of no chunk");
        o->numbers[o->first[c - r->chunks] + place.item] = (uint32_t)i;
    }
    return true;
}

static bool locate_items(struct over *o, struct archive_repo *repo,
                         const struct chunks_codec *codec, struct rd_err *err)
{
    struct chunks_assembler old;
    bool ok = chunks_assemble_places(&old, repo->store, codec, &o->before, err) &&
              old.places.n == o->before.n_items && number_items(o, &old, err);
    o->counts->n_requests += old.fetch.n_requests;
    o->counts->n_bytes += old.fetch.n_bytes;
    chunks_assemble_done(&old);
    return ok;
}

/* Chunks of the two recipes that have one ordinal and one name. */
static bool match_chunks(struct over *o, struct rd_err *err)
{
    const struct chunks_recipe *r = &o->recipe;
    o->same = rd_alloc((r->n_chunks + 1) * sizeof *o->same);
    if (o->same == NULL)
        return rd_err_nomem(err, r->n_chunks);
    for (size_t i = 0; i < r->n_chunks; i++) {
        const struct chunks_chunk *c = chunks_recipe_find(&o->before, r->chunks[i].ordinal);
        bool same = c != NULL && c->n_items == r->chunks[i].n_items &&
                    memcmp(c->blob.name, r->chunks[i].blob.name, CHUNKS_NAME) == 0;
        o->same[i] = same ? (uint32_t)(c - o->before.chunks) : NONE;
    }
    return true;
}

/* ---- reading ---- */

/* The number that the next item has in the older version, or NONE. *ret_index is its chunk. */
static bool next_number(const struct over *o, size_t at, size_t *ret_index, uint32_t *ret,
                        struct rd_err *err)
{
    const struct chunks_place place = o->a.places.at[at];
    if (!chunks_assemble_find(&o->a, place.ordinal, ret_index, err))
        return false;
    uint32_t c = o->same[*ret_index];
    *ret = c != NONE && place.item < o->before.chunks[c].n_items
               ? o->numbers[o->first[c] + place.item]
               : NONE;
    return true;
}

static uint64_t begin_of(const struct over *o, uint32_t number)
{
    return number > 0 ? o->ends[number - 1] : 0;
}

/* Items that follow each other in the older version. */
static bool find_old(struct over *o, uint32_t number, struct rd_err *err)
{
    o->old_at = begin_of(o, number);
    for (o->a.next++; o->a.next < o->a.places.n; o->a.next++) {
        size_t index;
        uint32_t next;
        if (!next_number(o, o->a.next, &index, &next, err))
            return false;
        if (next != number + 1)
            break;
        number = next;
    }
    o->old_end = o->ends[number];
    o->counts->kept += o->old_end - o->old_at;
    return true;
}

static bool take_old(struct over *o, struct rd_err *err)
{
    uint64_t left = o->old_end - o->old_at;
    size_t n = left < RUN_MAX ? (size_t)left : RUN_MAX;
    rd_buf_reset(&o->room);
    if (!rd_buf_reserve(&o->room, n))
        return rd_err_nomem(err, n);
    if (!spool_read(o->old, o->old_at, o->room.ptr, n, err))
        return false;
    o->room.len = n;
    o->old_at += n;
    o->bytes = rd_buf_slice(&o->room);
    return true;
}

static bool take_new(struct over *o, size_t index, struct rd_err *err)
{
    const struct chunks_place place = o->a.places.at[o->a.next++];
    if (!chunks_assemble_load(&o->a, index, err))
        return false;
    const struct chunks_items *items = &o->a.chunks[index].items;
    if (place.item >= items->n)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the order names an item of no chunk");
    struct rd_slice bytes = chunks_items_at(items, place.item);
    if ((items->flags[place.item] & CHUNKS_LONG) == 0) {
        o->bytes = bytes;
        return true;
    }
    rd_buf_reset(&o->list);
    if (!rd_buf_add(&o->list, bytes.ptr, bytes.len))
        return rd_err_nomem(err, bytes.len);
    if (!chunks_long_parse(&o->pieces, rd_buf_slice(&o->list), err))
        return false;
    o->ordinals = chunks_in_of(rd_slice(o->pieces.at, o->pieces.len));
    return true;
}

static bool take_piece(struct over *o, struct rd_err *err)
{
    const struct chunks_chunk *chunk;
    o->pieces.n--;
    rd_buf_reset(&o->room);
    if (!chunks_long_piece(&o->ordinals, &o->recipe, &chunk, err) ||
        !chunks_fetch_blob(&o->a.fetch, &chunk->blob, &o->room, err))
        return false;
    o->bytes = rd_buf_slice(&o->room);
    return true;
}

/* *ret_end: there is nothing more. */
static bool take_next(struct over *o, bool *ret_end, struct rd_err *err)
{
    size_t index = 0;
    uint32_t number;
    *ret_end = false;
    if (o->old_at < o->old_end)
        return take_old(o, err);
    if (o->pieces.n > 0)
        return take_piece(o, err);
    *ret_end = o->a.next == o->a.places.n;
    if (*ret_end)
        return true;
    return next_number(o, o->a.next, &index, &number, err) &&
           (number != NONE ? find_old(o, number, err) : take_new(o, index, err));
}

static enum rd_src_status over_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err)
{
    struct over *o = impl;
    bool end = false;
    *ret_len = 0;
    while (o->bytes.len == 0 && !end)
        if (!take_next(o, &end, err))
            return RD_SRC_FAIL;
    if (o->bytes.len == 0)
        return RD_SRC_END;
    *ret_len = o->bytes.len < cap ? o->bytes.len : cap;
    memcpy(buf, o->bytes.ptr, *ret_len);
    o->bytes.ptr += *ret_len;
    o->bytes.len -= *ret_len;
    return RD_SRC_OK;
}

static void over_close(void *impl)
{
    struct over *o = impl;
    if (o->open) {
        o->counts->n_requests += o->a.fetch.n_requests;
        o->counts->n_bytes += o->a.fetch.n_bytes;
        chunks_assemble_done(&o->a);
    }
    chunks_recipe_done(&o->recipe);
    chunks_recipe_done(&o->before);
    rd_buf_done(&o->room);
    rd_buf_done(&o->list);
    rd_free(o->ends);
    rd_free(o->first);
    rd_free(o->numbers);
    rd_free(o->same);
    rd_free(o);
}

/* False: the older version is of no use, or see err. */
static bool begin(struct over *o, struct archive_repo *repo, const struct archive_set *set,
                  const struct archive_file *file, const struct archive_set *old_set,
                  const struct archive_file *old_file, const struct rd_seal_ring *ring,
                  struct rd_err *err)
{
    const struct chunks_codec codec = {
        .target = repo->target, .ring = ring, .sealed = file->sealed};
    const struct chunks_codec old_codec = {
        .target = repo->target, .ring = ring, .sealed = old_file->sealed};
    if (!chunks_recipe_read(repo, set, file, ring, &o->recipe, err) ||
        !chunks_recipe_read(repo, old_set, old_file, ring, &o->before, err))
        return false;
    o->counts->n_requests += 2;
    o->counts->n_bytes += file->stored.bytes + old_file->stored.bytes;
    if (memcmp(o->recipe.key, o->before.key, CHUNKS_KEY) != 0 || !split_old(o, err) ||
        !locate_items(o, repo, &old_codec, err) || !match_chunks(o, err))
        return false;
    o->open = true;
    bool ok = chunks_assemble_places(&o->a, repo->store, &codec, &o->recipe, err);
    o->a.fetch.ahead = false; /* few chunks are needed */
    return ok;
}

bool chunks_open_over(struct rd_src **ret, struct archive_repo *repo, struct archive_sets *sets,
                      const struct archive_set *set, const struct archive_file *file,
                      const struct rd_seal_ring *ring, const struct spool *old,
                      struct chunks_over *counts, struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = over_read, .close = over_close};
    const struct rd_src_opts opts =
        RD_SRC_OPTS(.origin = file->name, .total = file->plain.bytes, .sized = true);
    struct archive_set *old_set;
    const struct archive_file *old_file;
    struct rd_err why = {0};
    struct rd_src *src;
    *ret = NULL;
    *counts = (struct chunks_over){.n_requests = 0};
    if (!archive_set_is_proved(set, ring, NULL) ||
        !find_set(repo, sets, file, old, &old_set, &old_file))
        return true;
    struct over *o = rd_calloc(1, sizeof *o);
    if (o == NULL)
        return rd_err_nomem(err, sizeof *o);
    *o = (struct over){.old = old, .counts = counts};
    snprintf(counts->id, sizeof counts->id, "%s", old_set->id);
    if (!begin(o, repo, set, file, old_set, old_file, ring, &why)) {
        over_close(o);
        if (why.code == RD_ERR_MEMORY)
            rd_err_adopt(err, &why);
        return why.code != RD_ERR_MEMORY;
    }
    if (!rd_src_new(&src, &ops, o, &opts, err))
        return false;
    if (archive_sums_open_src(ret, src, &file->plain, err))
        return true;
    rd_src_close(src);
    return false;
}
