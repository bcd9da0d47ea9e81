#include "chunks/fetch_impl.h"

#include "base/mem.h"
#include "chunks/bytes_impl.h"

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

static bool parse_moves(struct rd_slice plain, struct chunks_moves *ret, struct rd_err *err)
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
         parse_moves(rd_buf_slice(&plain), ret, err);
    codec->sealed = sealed;
    rd_buf_done(&stored);
    rd_buf_done(&plain);
    return ok;
}

/* ---- reading ---- */

bool chunks_fetch_init(struct chunks_fetch *f, struct archive_store *store,
                       const struct chunks_codec *codec, const struct chunks_recipe *recipe,
                       struct rd_err *err)
{
    *f = (struct chunks_fetch){.store = store, .codec = *codec, .recipe = recipe};
    f->moves = rd_calloc(recipe->n_packs + 1, sizeof *f->moves);
    if (f->moves == NULL)
        return rd_err_nomem(err, recipe->n_packs);
    return chunks_codec_init(&f->codec, 0, err);
}

void chunks_fetch_done(struct chunks_fetch *f)
{
    for (size_t i = 0; i < CHUNKS_EXTENTS; i++)
        rd_buf_done(&f->extents[i].bytes);
    for (size_t i = 0; f->moves != NULL && i < f->recipe->n_packs; i++)
        rd_free(f->moves[i].moved);
    rd_free(f->moves);
    f->moves = NULL;
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

static bool is_there(struct chunks_fetch *f, const char *pack, bool *ret, struct rd_err *err)
{
    char object[ARCHIVE_NAME_MAX];
    struct archive_object there;
    if (!chunks_pack_object(object, f->codec.target, pack, err) ||
        !f->store->ops->stat(f->store, object, &there, err))
        return false;
    *ret = there.there;
    return true;
}

/* Follows the blob of a pack that is gone. */
static bool read_moved(struct chunks_fetch *f, const struct chunks_blob *blob, struct rd_buf *ret,
                       struct rd_err *err)
{
    struct chunks_moves other = {.known = false}, *moves = &f->moves[blob->pack];
    char pack[CHUNKS_PACK_NAME_MAX];
    snprintf(pack, sizeof pack, "%s", f->recipe->packs[blob->pack].name);
    bool ok = moves->known || chunks_moves_read(f->store, &f->codec, pack, moves, err);
    for (int hops = 0; ok && hops < HOPS_MAX; hops++) {
        bool there = false;
        const struct chunks_moved *to = chunks_moves_find(moves, blob->name);
        if (to == NULL) {
            ok = rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "the pack %s is missing", pack);
            break;
        }
        struct chunks_moved at = *to;
        rd_free(other.moved);
        other = (struct chunks_moves){.known = false};
        snprintf(pack, sizeof pack, "%s", at.pack);
        ok = is_there(f, pack, &there, err);
        if (ok && there) {
            return read_range(f, pack, at.offset, blob->stored, ret, err);
        }
        ok = ok && chunks_moves_read(f->store, &f->codec, pack, &other, err);
        moves = &other;
    }
    rd_free(other.moved);
    return ok && rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "chunks were moved in a circle");
}

static struct chunks_extent *find_extent(struct chunks_fetch *f, const struct chunks_blob *blob)
{
    struct chunks_extent *oldest = &f->extents[0];
    for (size_t i = 0; i < CHUNKS_EXTENTS; i++) {
        struct chunks_extent *e = &f->extents[i];
        if (e->bytes.len > 0 && e->pack == blob->pack && e->offset <= blob->offset &&
            blob->offset + blob->stored <= e->offset + e->bytes.len)
            return e;
        if (e->used < oldest->used)
            oldest = e;
    }
    rd_buf_reset(&oldest->bytes);
    return oldest;
}

static bool read_extent(struct chunks_fetch *f, struct chunks_extent *e,
                        const struct chunks_blob *blob, struct rd_err *err)
{
    const struct chunks_pack *pack = &f->recipe->packs[blob->pack];
    uint64_t len = blob->stored;
    if (f->ahead && len < CHUNKS_AHEAD && pack->bytes >= blob->offset + len) {
        uint64_t left = pack->bytes - blob->offset;
        len = left < CHUNKS_AHEAD ? left : CHUNKS_AHEAD;
    }
    e->pack = blob->pack;
    e->offset = blob->offset;
    return read_range(f, pack->name, blob->offset, (size_t)len, &e->bytes, err);
}

bool chunks_fetch_stored(struct chunks_fetch *f, const struct chunks_blob *blob, struct rd_buf *ret,
                         struct rd_err *err)
{
    struct rd_err why = {0};
    bool there = false;
    if (f->moves[blob->pack].n > 0)
        return read_moved(f, blob, ret, err);
    struct chunks_extent *e = find_extent(f, blob);
    if (e->bytes.len > 0 || read_extent(f, e, blob, &why)) {
        e->used = ++f->clock;
        return rd_buf_add(ret, e->bytes.ptr + (blob->offset - e->offset), blob->stored) ||
               rd_err_nomem(err, blob->stored);
    }
    if (!is_there(f, f->recipe->packs[blob->pack].name, &there, &why) || there) {
        rd_err_adopt(err, &why);
        return false;
    }
    return read_moved(f, blob, ret, err);
}

/* A damaged blob, computed from the rest of its pack. */
static bool recover(struct chunks_fetch *f, const struct chunks_blob *blob, struct rd_buf *ret)
{
    char object[ARCHIVE_NAME_MAX];
    const char *pack = f->recipe->packs[blob->pack].name;
    struct archive_object there;
    struct chunks_directory d;
    struct rd_buf stored = {0};
    bool ok = false, sealed = f->codec.sealed;
    if (f->moves[blob->pack].n > 0 || !chunks_pack_object(object, f->codec.target, pack, NULL) ||
        !f->store->ops->stat(f->store, object, &there, NULL) || !there.there ||
        !chunks_directory_read(f->store, &f->codec, pack, there.size, &d, NULL))
        return false;
    f->codec.sealed = sealed;
    for (size_t i = 0; i < d.n; i++)
        if (memcmp(d.blobs[i].name, blob->name, CHUNKS_NAME) == 0) {
            ok = chunks_directory_recover(f->store, f->codec.target, pack, &d, i, &stored, NULL) &&
                 chunks_blob_decode(&f->codec, f->recipe->key, blob, rd_buf_slice(&stored), ret,
                                    NULL);
            break;
        }
    rd_buf_done(&stored);
    chunks_directory_done(&d);
    f->n_recovered += ok;
    return ok;
}

bool chunks_fetch_blob(struct chunks_fetch *f, const struct chunks_blob *blob, struct rd_buf *ret,
                       struct rd_err *err)
{
    struct rd_buf stored = {0};
    struct rd_err why = {0};
    bool ok = chunks_fetch_stored(f, blob, &stored, err);
    if (ok &&
        !chunks_blob_decode(&f->codec, f->recipe->key, blob, rd_buf_slice(&stored), ret, &why)) {
        ok = why.code == RD_ERR_CHECKSUM && recover(f, blob, ret);
        if (!ok)
            rd_err_adopt(err, &why);
    }
    rd_buf_done(&stored);
    if (!ok)
        rd_err_doing(err, "the pack %s", f->recipe->packs[blob->pack].name);
    return ok;
}
