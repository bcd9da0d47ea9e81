#include "chunks/fetch_impl.h"

#include "base/mem.h"
#include "chunks/ahead_impl.h"
#include "chunks/bytes_impl.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOVES_MAX = 64 * 1024 * 1024, HOPS_MAX = 16 };

/* ---- what was moved ---- */

bool chunks_moves_object(char ret[ARCHIVE_NAME_MAX], const char *target, const char *pack,
                         struct rd_err *err)
{
    int len = snprintf(ret, ARCHIVE_NAME_MAX, "%s/chunks/%s.moved", target, pack);
    return (len > 0 && len < ARCHIVE_NAME_MAX) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of an object is too long");
}

static int by_name(const void *a, const void *b)
{
    return memcmp(a, b, CHUNKS_NAME);
}

const struct chunks_moved *chunks_moves_find(const struct chunks_moves *moves,
                                             const uint8_t name[CHUNKS_NAME])
{
    if (moves->n == 0)
        return NULL;
    return bsearch(name, moves->moved, moves->n, sizeof *moves->moved, by_name);
}

bool chunks_moves_print(const struct chunks_moves *moves, struct rd_buf *ret, struct rd_err *err)
{
    bool ok = chunks_put(ret, moves->n);
    for (size_t i = 0; ok && i < moves->n; i++) {
        const struct chunks_moved *m = &moves->moved[i];
        size_t len = strlen(m->pack);
        ok = rd_buf_add(ret, m->name, CHUNKS_NAME) && chunks_put(ret, len) &&
             rd_buf_add(ret, m->pack, len) && chunks_put(ret, m->offset);
    }
    return ok || rd_err_nomem(err, ret->len);
}

bool chunks_moves_parse(struct chunks_moves *ret, struct rd_slice plain, struct rd_err *err)
{
    struct chunks_in in = chunks_in_of(plain);
    size_t n = chunks_get_count(&in, CHUNKS_NAME + 2);
    ret->moved = rd_calloc(n + 1, sizeof *ret->moved);
    if (ret->moved == NULL)
        return rd_err_nomem(err, n);
    for (; ret->n < n && !in.failed; ret->n++) {
        struct chunks_moved *m = &ret->moved[ret->n];
        const uint8_t *name = chunks_get_bytes(&in, CHUNKS_NAME);
        size_t len = (size_t)chunks_get_max(&in, sizeof m->pack - 1);
        const uint8_t *pack = chunks_get_bytes(&in, len);
        if (name == NULL || pack == NULL)
            break;
        memcpy(m->name, name, CHUNKS_NAME);
        memcpy(m->pack, pack, len);
        m->offset = chunks_get(&in);
    }
    qsort(ret->moved, ret->n, sizeof *ret->moved, by_name);
    return (!in.failed && in.at == in.end) ||
           rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the list of moved chunks is damaged");
}

bool chunks_moves_read(struct archive_store *store, struct chunks_codec *codec, const char *pack,
                       struct chunks_moves *ret, struct rd_err *err)
{
    char object[ARCHIVE_NAME_MAX], name[CHUNKS_PACK_NAME_MAX + 8];
    struct archive_object there;
    struct rd_buf stored = {0}, plain = {0};
    snprintf(name, sizeof name, "%s.moved", pack);
    if (!chunks_moves_object(object, codec->target, pack, err) ||
        !store->ops->stat(store, object, &there, err))
        return false;
    ret->known = true;
    if (!there.there)
        return true;
    bool sealed = codec->sealed;
    bool ok = archive_store_read(store, object, MOVES_MAX, &stored, err);
    /* Forged lists lead to bytes that are not those of their names. */
    codec->sealed = ok && rd_seal_is(rd_buf_slice(&stored));
    ok = ok && chunks_unseal(codec, name, rd_buf_slice(&stored), &plain, err) &&
         chunks_moves_parse(ret, rd_buf_slice(&plain), err);
    codec->sealed = sealed;
    rd_buf_done(&stored);
    rd_buf_done(&plain);
    return ok;
}

/* ---- where packs are ---- */

/* A pack of the recipe, or one into which its blobs were moved. */
struct place {
    char name[CHUNKS_PACK_NAME_MAX];
    uint64_t bytes; /* 0: not known */
    bool gone;      /* it does not exist any more: see its moves, which do not change then */
    struct chunks_moves moves;
};

/* Several threads use it. */
struct chunks_atlas {
    pthread_mutex_t mutex;
    struct place *places; /* those of the recipe first */
    size_t n, cap;
};

static void atlas_free(struct chunks_atlas *atlas)
{
    for (size_t i = 0; i < atlas->n; i++)
        rd_free(atlas->places[i].moves.moved);
    rd_free(atlas->places);
    pthread_mutex_destroy(&atlas->mutex);
    rd_free(atlas);
}

static bool atlas_new(struct chunks_atlas **ret, const struct chunks_recipe *r, struct rd_err *err)
{
    struct chunks_atlas *atlas = rd_calloc(1, sizeof *atlas);
    if (atlas == NULL)
        return rd_err_nomem(err, sizeof *atlas);
    atlas->cap = r->n_packs + 1;
    atlas->places = rd_calloc(atlas->cap, sizeof *atlas->places);
    if (atlas->places == NULL) {
        rd_free(atlas);
        return rd_err_nomem(err, r->n_packs);
    }
    pthread_mutex_init(&atlas->mutex, NULL);
    for (; atlas->n < r->n_packs; atlas->n++) {
        struct place *place = &atlas->places[atlas->n];
        memcpy(place->name, r->packs[atlas->n].name, sizeof place->name);
        place->bytes = r->packs[atlas->n].bytes;
    }
    *ret = atlas;
    return true;
}

/* SIZE_MAX: no memory. */
static size_t atlas_find(struct chunks_atlas *atlas, const char *name)
{
    for (size_t i = 0; i < atlas->n; i++)
        if (strcmp(atlas->places[i].name, name) == 0)
            return i;
    if (atlas->n == atlas->cap) {
        struct place *places = rd_realloc(atlas->places, 2 * atlas->cap * sizeof *places);
        if (places == NULL)
            return SIZE_MAX;
        atlas->places = places;
        atlas->cap *= 2;
    }
    atlas->places[atlas->n] = (struct place){.bytes = 0};
    snprintf(atlas->places[atlas->n].name, CHUNKS_PACK_NAME_MAX, "%s", name);
    return atlas->n++;
}

/* Where a blob is, as far as that is known. */
struct at {
    size_t place;
    char pack[CHUNKS_PACK_NAME_MAX];
    uint64_t bytes; /* of the pack */
    uint64_t offset;
};

static bool missing(const char *pack, struct rd_err *err)
{
    static const struct rd_err_reason reason = {.id = ARCHIVE_REASON_MISSING};
    return rd_err_set_reason(err, RD_ERR_IO, RD_NO_OFFSET, reason, "the pack %s is missing", pack);
}

static bool follow(struct chunks_atlas *atlas, const struct chunks_blob *blob, struct at *ret,
                   struct rd_err *err)
{
    size_t i = blob->pack;
    uint64_t offset = blob->offset;
    for (int hops = 0; hops < HOPS_MAX; hops++) {
        const struct place *place = &atlas->places[i];
        if (!place->gone) {
            *ret = (struct at){.place = i, .bytes = place->bytes, .offset = offset};
            memcpy(ret->pack, place->name, sizeof ret->pack);
            return true;
        }
        const struct chunks_moved *to = chunks_moves_find(&place->moves, blob->name);
        if (to == NULL)
            return missing(place->name, err);
        offset = to->offset;
        i = atlas_find(atlas, to->pack);
        if (i == SIZE_MAX)
            return rd_err_nomem(err, sizeof *place);
    }
    return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "chunks were moved in a circle");
}

static bool locate(struct chunks_fetch *f, const struct chunks_blob *blob, struct at *ret,
                   struct rd_err *err)
{
    pthread_mutex_lock(&f->atlas->mutex);
    bool ok = follow(f->atlas, blob, ret, err);
    pthread_mutex_unlock(&f->atlas->mutex);
    return ok;
}

/* ---- reading ---- */

static bool init(struct chunks_fetch *f, struct rd_err *err)
{
    return chunks_codec_init(&f->codec, 0, err);
}

bool chunks_fetch_init(struct chunks_fetch *f, struct archive_store *store,
                       const struct chunks_codec *codec, const struct chunks_recipe *recipe,
                       struct rd_err *err)
{
    *f = (struct chunks_fetch){.store = store, .codec = *codec, .recipe = recipe};
    return atlas_new(&f->atlas, recipe, err) && init(f, err);
}

bool chunks_fetch_share(struct chunks_fetch *f, const struct chunks_fetch *with,
                        struct archive_store *store, struct rd_err *err)
{
    *f = (struct chunks_fetch){.store = store,
                               .codec = with->codec,
                               .recipe = with->recipe,
                               .atlas = with->atlas,
                               .shares = true};
    f->codec.zstd = NULL;
    f->codec.work = (struct rd_buf){0};
    return init(f, err);
}

void chunks_fetch_done(struct chunks_fetch *f)
{
    for (size_t i = 0; i < CHUNKS_EXTENTS; i++)
        rd_buf_done(&f->extents[i].bytes);
    rd_buf_done(&f->stored);
    if (f->atlas != NULL && !f->shares)
        atlas_free(f->atlas);
    f->atlas = NULL;
    chunks_codec_done(&f->codec);
}

static bool read_range(struct chunks_fetch *f, const char *pack, uint64_t offset, size_t len,
                       struct rd_buf *ret, struct rd_err *err)
{
    char object[ARCHIVE_NAME_MAX];
    f->n_requests++;
    f->n_bytes += len;
    return chunks_pack_object(object, f->codec.target, pack, err) &&
           archive_store_range(f->store, object, offset, len, ret, err);
}

static bool look_at(struct chunks_fetch *f, const char *pack, struct archive_object *ret,
                    struct rd_err *err)
{
    char object[ARCHIVE_NAME_MAX];
    return chunks_pack_object(object, f->codec.target, pack, err) &&
           f->store->ops->stat(f->store, object, ret, err);
}

/* Notes that a pack is gone, with what became of its blobs. One thread reads that, and the others
 * wait for it. */
static bool note_gone(struct chunks_fetch *f, const struct at *at, struct rd_err *err)
{
    struct chunks_moves moves = {.known = false};
    pthread_mutex_lock(&f->atlas->mutex);
    bool ok = f->atlas->places[at->place].gone ||
              chunks_moves_read(f->store, &f->codec, at->pack, &moves, err);
    struct place *place = &f->atlas->places[at->place];
    if (ok && !place->gone) {
        place->moves = moves;
        place->gone = true;
    } else {
        rd_free(moves.moved);
    }
    pthread_mutex_unlock(&f->atlas->mutex);
    return ok;
}

static struct chunks_extent *find_extent(struct chunks_fetch *f, const struct at *at, uint64_t len)
{
    struct chunks_extent *oldest = &f->extents[0];
    for (size_t i = 0; i < CHUNKS_EXTENTS; i++) {
        struct chunks_extent *e = &f->extents[i];
        if (e->bytes.len > 0 && e->pack == at->place && e->offset <= at->offset &&
            at->offset + len <= e->offset + e->bytes.len)
            return e;
        if (e->used < oldest->used)
            oldest = e;
    }
    rd_buf_reset(&oldest->bytes);
    return oldest;
}

static bool read_extent(struct chunks_fetch *f, struct chunks_extent *e, const struct at *at,
                        uint64_t len, struct rd_err *err)
{
    if (f->ahead && len < CHUNKS_AHEAD && at->bytes >= at->offset + len) {
        uint64_t left = at->bytes - at->offset;
        len = left < CHUNKS_AHEAD ? left : CHUNKS_AHEAD;
    }
    e->pack = at->place;
    e->offset = at->offset;
    return read_range(f, at->pack, at->offset, (size_t)len, &e->bytes, err);
}

/* Adds the bytes from an extent. *ret_gone: the pack was moved, and its moves are known now. */
static bool read_at(struct chunks_fetch *f, const struct at *at, uint32_t len, struct rd_buf *ret,
                    bool *ret_gone, struct rd_err *err)
{
    struct rd_err why = {0};
    struct archive_object object = {.there = false};
    struct chunks_extent *e = find_extent(f, at, len);
    *ret_gone = false;
    if (e->bytes.len > 0 || read_extent(f, e, at, len, &why)) {
        e->used = ++f->clock;
        return rd_buf_add(ret, e->bytes.ptr + (at->offset - e->offset), len) ||
               rd_err_nomem(err, len);
    }
    bool known = look_at(f, at->pack, &object, &why);
    if (known && object.there && object.size < at->offset + len)
        return rd_err_set(err, RD_ERR_TRUNCATED, RD_NO_OFFSET, "the pack %s is cut off", at->pack);
    if (!known || object.there) {
        rd_err_adopt(err, &why);
        return false;
    }
    *ret_gone = note_gone(f, at, err);
    return *ret_gone;
}

bool chunks_fetch_stored(struct chunks_fetch *f, const struct chunks_blob *blob, struct rd_buf *ret,
                         struct rd_err *err)
{
    struct at at;
    bool gone = true, ok = true;
    while (ok && gone)
        ok = locate(f, blob, &at, err) && read_at(f, &at, blob->stored, ret, &gone, err);
    return ok;
}

void chunks_fetch_span(struct chunks_fetch *f, const struct chunks_blob *const *blobs, size_t n)
{
    const struct chunks_blob *last = blobs[n - 1];
    struct at at;
    if (n < 2 || !locate(f, blobs[0], &at, NULL) || at.place != blobs[0]->pack)
        return;
    uint64_t len = last->offset + last->stored - at.offset;
    struct chunks_extent *e = find_extent(f, &at, len);
    if (e->bytes.len == 0 && read_extent(f, e, &at, len, NULL))
        e->used = ++f->clock;
}

/* A damaged blob, computed from the rest of its pack. */
static bool recover(struct chunks_fetch *f, const struct chunks_blob *blob, struct rd_buf *ret)
{
    char object[ARCHIVE_NAME_MAX];
    struct at at;
    struct archive_object there;
    struct chunks_directory d;
    struct rd_buf stored = {0};
    bool sealed = f->codec.sealed;
    bool ok = locate(f, blob, &at, NULL) &&
              chunks_pack_object(object, f->codec.target, at.pack, NULL) &&
              f->store->ops->stat(f->store, object, &there, NULL) && there.there &&
              chunks_directory_read(f->store, &f->codec, at.pack, there.size, &d, NULL);
    f->codec.sealed = sealed; /* the directory says how the pack was written */
    if (!ok)
        return false;
    ok = false;
    for (size_t i = 0; i < d.n; i++)
        if (memcmp(d.blobs[i].name, blob->name, CHUNKS_NAME) == 0) {
            ok = chunks_directory_recover(f->store, f->codec.target, at.pack, &d, i, &stored,
                                          NULL) &&
                 chunks_blob_decode(&f->codec, f->recipe->key, blob, rd_buf_slice(&stored), ret,
                                    NULL);
            break;
        }
    rd_buf_done(&stored);
    chunks_directory_done(&d);
    f->n_recovered += ok;
    return ok;
}

static bool fetch(struct chunks_fetch *f, const struct chunks_blob *blob, bool may_recover,
                  struct rd_buf *ret, struct rd_err *err)
{
    struct rd_err why = {0};
    rd_buf_reset(&f->stored);
    bool ok = chunks_fetch_stored(f, blob, &f->stored, err);
    if (ok &&
        !chunks_blob_decode(&f->codec, f->recipe->key, blob, rd_buf_slice(&f->stored), ret, &why)) {
        ok = may_recover && why.code == RD_ERR_CHECKSUM && recover(f, blob, ret);
        if (!ok)
            rd_err_adopt(err, &why);
    }
    if (!ok)
        rd_err_doing(err, "the pack %s", f->recipe->packs[blob->pack].name);
    return ok;
}

bool chunks_fetch_is_lost(const struct rd_err *why)
{
    return why->code == RD_ERR_CHECKSUM || why->code == RD_ERR_CORRUPT ||
           why->code == RD_ERR_TRUNCATED || archive_store_is_missing(why);
}

bool chunks_fetch_blob(struct chunks_fetch *f, const struct chunks_blob *blob, struct rd_buf *ret,
                       struct rd_err *err)
{
    return (f->threads != NULL && chunks_ahead_take(f->threads, blob, ret)) ||
           fetch(f, blob, true, ret, err);
}

bool chunks_fetch_intact(struct chunks_fetch *f, const struct chunks_blob *blob, struct rd_buf *ret,
                         struct rd_err *err)
{
    return fetch(f, blob, false, ret, err);
}
