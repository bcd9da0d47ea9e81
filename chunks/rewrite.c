#include "chunks/rewrite_impl.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    SMALLEST = 64 * 1024,   /* a pack that is smaller is left alone */
    LARGE = 8 * 1024 * 1024 /* of which the parity is a small part */
};

/* A blob that is copied. */
struct copy {
    const struct chunks_used *used;
    char pack[CHUNKS_PACK_NAME_MAX]; /* to which */
    uint64_t offset;
};

struct rewrite {
    struct chunks_sweep *s;
    struct chunks_codec codec;
    struct chunks_packer packer;
    char prefix[CHUNKS_PACK_NAME_MAX];
    struct copy *copies;
    size_t n, cap;
};

static bool is_waste(const struct chunks_sweep *s, const struct chunks_name *name)
{
    const struct chunks_object *object =
        chunks_inventory_find(s->usage->inventory, name->name, ".pack");
    if (object == NULL || object->bytes < SMALLEST || name->live == 0 || name->has_moves)
        return false;
    /* The parity of a pack with one blob is as long as the blob. */
    return name->live < object->bytes / (object->bytes < LARGE ? 3 : 2);
}

static int by_offset(const void *a, const void *b)
{
    const struct copy *x = a, *y = b;
    if (x->used->pack != y->used->pack)
        return x->used->pack < y->used->pack ? -1 : 1;
    return (x->used->offset > y->used->offset) - (x->used->offset < y->used->offset);
}

static bool add_copy(struct rewrite *r, const struct chunks_used *used, struct rd_err *err)
{
    if (r->n == r->cap) {
        size_t cap = r->cap == 0 ? 64 : 2 * r->cap;
        struct copy *copies = rd_realloc(r->copies, cap * sizeof *copies);
        if (copies == NULL)
            return rd_err_nomem(err, cap);
        r->copies = copies;
        r->cap = cap;
    }
    r->copies[r->n++] = (struct copy){.used = used};
    return true;
}

/* Copies the stored bytes, which are sealed under their name, after they were proved. */
static bool copy_blob(struct rewrite *r, struct copy *c, struct rd_err *err)
{
    char object[ARCHIVE_NAME_MAX];
    const struct chunks_usage *u = r->s->usage;
    struct rd_buf stored = {0}, plain = {0};
    struct chunks_blob blob = {
        .kind = c->used->kind, .stored = c->used->stored, .raw = c->used->raw};
    memcpy(blob.name, c->used->name, CHUNKS_NAME);
    bool ok =
        chunks_pack_object(object, r->s->repo->target, u->names->at[c->used->pack].name, err) &&
        archive_store_range(r->s->repo->store, object, c->used->offset, c->used->stored, &stored,
                            err);
    r->codec.sealed = ok && rd_seal_is(rd_buf_slice(&stored));
    ok = ok &&
         chunks_blob_decode(&r->codec, u->keys[c->used->key], &blob, rd_buf_slice(&stored), &plain,
                            err) &&
         chunks_packer_add(&r->packer, &blob, rd_buf_slice(&stored), err);
    snprintf(c->pack, sizeof c->pack, "%s", r->packer.name);
    c->offset = blob.offset;
    r->s->bytes_rewritten += stored.len;
    rd_buf_done(&stored);
    rd_buf_done(&plain);
    return ok;
}

/* The list of what became of a pack. Its new packs are complete. */
static bool write_moves(struct rewrite *r, size_t begin, size_t end, struct rd_err *err)
{
    char object[ARCHIVE_NAME_MAX], name[CHUNKS_PACK_NAME_MAX + 8];
    const char *pack = r->s->usage->names->at[r->copies[begin].used->pack].name;
    struct chunks_moves moves = {.n = end - begin};
    struct rd_buf plain = {0}, sealed = {0};
    moves.moved = rd_calloc(moves.n + 1, sizeof *moves.moved);
    if (moves.moved == NULL)
        return rd_err_nomem(err, moves.n);
    for (size_t i = begin; i < end; i++) {
        struct chunks_moved *m = &moves.moved[i - begin];
        memcpy(m->name, r->copies[i].used->name, CHUNKS_NAME);
        snprintf(m->pack, sizeof m->pack, "%s", r->copies[i].pack);
        m->offset = r->copies[i].offset;
    }
    snprintf(name, sizeof name, "%s.moved", pack);
    bool ok = chunks_moves_print(&moves, &plain, err) &&
              chunks_seal(&r->codec, name, rd_buf_slice(&plain), &sealed, err) &&
              archive_repo_check_lock(r->s->repo, err) &&
              chunks_moves_object(object, r->s->repo->target, pack, err) &&
              archive_store_write(r->s->repo->store, object, rd_buf_slice(&sealed), err);
    r->s->n_rewritten += ok;
    rd_free(moves.moved);
    rd_buf_done(&plain);
    rd_buf_done(&sealed);
    return ok;
}

static bool run(struct rewrite *r, struct rd_err *err)
{
    bool ok = true;
    qsort(r->copies, r->n, sizeof *r->copies, by_offset);
    for (size_t i = 0; ok && i < r->n; i++)
        ok = copy_blob(r, &r->copies[i], err);
    ok = ok && chunks_packer_end(&r->packer, err);
    for (size_t begin = 0, end; ok && begin < r->n; begin = end) {
        for (end = begin; end < r->n && r->copies[end].used->pack == r->copies[begin].used->pack;)
            end++;
        ok = write_moves(r, begin, end, err);
    }
    return ok;
}

static bool begin(struct rewrite *r, struct rd_err *err)
{
    struct chunks_sweep *s = r->s;
    char id[ARCHIVE_ID_MAX];
    uint32_t chance;
    if (!s->random(&chance, sizeof chance, err))
        return false;
    archive_make_id(id, s->now_ms, chance);
    snprintf(r->prefix, sizeof r->prefix, "%s.p", id);
    r->codec = (struct chunks_codec){
        .target = s->repo->target, .key = s->key, .ring = s->repo->ring, .random = s->random};
    r->packer = (struct chunks_packer){.repo = s->repo, .codec = &r->codec, .prefix = r->prefix};
    return chunks_codec_init(&r->codec, 0, err);
}

bool chunks_rewrite(struct chunks_sweep *s, struct rd_err *err)
{
    const struct chunks_usage *u = s->usage;
    struct rewrite r = {.s = s};
    bool ok = true;
    for (size_t i = 0; ok && i < u->n_slots; i++)
        if (u->used[i].taken && is_waste(s, &u->names->at[u->used[i].pack]))
            ok = add_copy(&r, &u->used[i], err);
    ok = ok && (r.n == 0 || (begin(&r, err) && run(&r, err)));
    chunks_packer_done(&r.packer);
    chunks_codec_done(&r.codec);
    rd_free(r.copies);
    return ok;
}
