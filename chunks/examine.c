#include "chunks/examine.h"

#include "base/mem.h"
#include "chunks/assemble_impl.h"
#include "chunks/bytes_impl.h"
#include "chunks/split_impl.h"
#include "chunks/usage_impl.h"

#include <errno.h>
#include <stdlib.h>

struct examine {
    struct chunks_examine *x;
    struct chunks_usage usage;
    struct chunks_codec codec;
    const char *pack;
    struct chunks_directory directory;
    struct rd_buf stored, plain, parity, names, name;
    struct rd_slice *slices;
    size_t n_names, cap_names;
    uint64_t n_keys;
};

/* ---- what is hurt ---- */

static bool keep_name(struct examine *e, struct rd_slice name)
{
    if (e->n_names == CHUNKS_HURT_NAMES)
        return true;
    /* Offsets become pointers when all names are there. */
    e->slices[e->n_names++] = rd_slice((const uint8_t *)e->names.len, name.len);
    return rd_buf_add(&e->names, name.ptr, name.len);
}

static void point_names(struct examine *e)
{
    for (size_t i = 0; i < e->n_names; i++)
        e->slices[i].ptr = e->names.ptr + (size_t)e->slices[i].ptr;
}

/* The name of a long item is at the beginning of its first piece. */
static bool long_name(struct examine *e, struct chunks_fetch *fetch, struct rd_slice item,
                      uint32_t without)
{
    struct chunks_long l;
    struct rd_buf piece = {0};
    if (!chunks_long_parse(&l, item, NULL) || l.n == 0)
        return false;
    struct chunks_in in = chunks_in_of(rd_slice(l.at, l.len));
    uint32_t ordinal = (uint32_t)chunks_get_max(&in, UINT32_MAX);
    const struct chunks_chunk *c = chunks_recipe_find(fetch->recipe, ordinal);
    bool ok = c != NULL && ordinal != without && chunks_fetch_blob(fetch, &c->blob, &piece, NULL);
    rd_buf_reset(&e->name);
    ok = ok && chunks_record_name(rd_buf_slice(&piece), &e->name);
    rd_buf_done(&piece);
    return ok;
}

/* The keys of a chunk that the set has: those whose places are in its order. */
static bool name_items(struct examine *e, struct chunks_assembler *a, uint32_t ordinal,
                       struct rd_slice plain, struct rd_err *err)
{
    struct chunks_items items;
    if (!chunks_items_parse(&items, plain, NULL))
        return true;
    bool ok = true;
    for (size_t i = 0; ok && i < a->places.n; i++) {
        const struct chunks_place p = a->places.at[i];
        if (p.ordinal != ordinal || p.item >= items.n || (items.flags[p.item] & CHUNKS_IS_KEY) == 0)
            continue;
        struct rd_slice bytes = chunks_items_at(&items, p.item);
        rd_buf_reset(&e->name);
        e->n_keys++;
        if ((items.flags[p.item] & CHUNKS_LONG) != 0 ? long_name(e, &a->fetch, bytes, UINT32_MAX)
                                                     : chunks_record_name(bytes, &e->name))
            ok = keep_name(e, rd_buf_slice(&e->name)) || rd_err_nomem(err, e->name.len);
    }
    chunks_items_done(&items);
    return ok;
}

static bool names_piece(struct rd_slice item, uint32_t ordinal)
{
    struct chunks_long l;
    if (!chunks_long_parse(&l, item, NULL))
        return false;
    struct chunks_in in = chunks_in_of(rd_slice(l.at, l.len));
    for (size_t i = 0; i < l.n; i++)
        if (chunks_get_max(&in, UINT32_MAX) == ordinal)
            return true;
    return false;
}

/* The long items of the set that have a piece. */
static bool name_long(struct examine *e, struct chunks_assembler *a, uint32_t ordinal,
                      struct rd_err *err)
{
    const struct chunks_recipe *r = a->fetch.recipe;
    bool ok = true;
    for (size_t i = 0; ok && i < a->places.n; i++) {
        const struct chunks_place p = a->places.at[i];
        const struct chunks_chunk *c = chunks_recipe_find(r, p.ordinal);
        if (c == NULL || !chunks_assemble_load(a, (size_t)(c - r->chunks), NULL))
            continue;
        const struct chunks_items *items = &a->chunks[c - r->chunks].items;
        if (p.item >= items->n || (items->flags[p.item] & CHUNKS_LONG) == 0 ||
            !names_piece(chunks_items_at(items, p.item), ordinal))
            continue;
        e->n_keys++;
        if (long_name(e, &a->fetch, chunks_items_at(items, p.item), ordinal))
            ok = keep_name(e, rd_buf_slice(&e->name)) || rd_err_nomem(err, e->name.len);
    }
    return ok;
}

static const char *what_of(enum chunks_kind kind)
{
    switch (kind) {
    case CHUNKS_ITEMS:
        return "keys";
    case CHUNKS_PIECE:
        return "a part of a long value";
    case CHUNKS_PAGE:
    case CHUNKS_PREFIXES:
    case CHUNKS_SLOTS:
        return "the index of keys";
    default:
        return "the order of keys";
    }
}

/* A blob of a file of a set. `plain` is empty if the parity does not give the bytes. */
static bool report_file(struct examine *e, const struct archive_set *set,
                        const struct archive_file *file, const struct chunks_recipe *r,
                        const struct chunks_blob *blob, const struct chunks_chunk *chunk,
                        struct chunks_damage *damage, struct rd_err *err)
{
    const struct chunks_codec codec = {
        .target = e->x->repo->target, .ring = e->x->repo->ring, .sealed = file->sealed};
    struct chunks_assembler a;
    bool ok = true;
    e->n_names = 0;
    e->n_keys = 0;
    rd_buf_reset(&e->names);
    if (chunk != NULL) {
        /* Without the order, how many keys there are is known. */
        if (!chunks_assemble_places(&a, e->x->repo->store, &codec, r, NULL))
            e->n_keys = chunk->live;
        else if (chunk->blob.kind == CHUNKS_PIECE)
            ok = name_long(e, &a, chunk->ordinal, err);
        else if (e->plain.len > 0)
            ok = name_items(e, &a, chunk->ordinal, rd_buf_slice(&e->plain), err);
        else
            e->n_keys = chunk->live;
        chunks_assemble_done(&a);
    }
    point_names(e);
    damage->what = what_of((enum chunks_kind)blob->kind);
    damage->set = set;
    damage->n_keys = e->n_keys;
    damage->names = e->slices;
    damage->n_names = e->n_names;
    if (ok && e->x->found != NULL)
        e->x->found(e->x->ctx, damage);
    return ok;
}

struct wanted {
    const struct chunks_blob *want;
    bool found;
};

static bool is_wanted(void *ctx, const struct chunks_blob *blob)
{
    struct wanted *w = ctx;
    w->found = memcmp(blob->name, w->want->name, CHUNKS_NAME) == 0;
    return !w->found;
}

/* Every set that needs a blob. */
static bool report_blob(struct examine *e, const struct chunks_blob *blob,
                        struct chunks_damage *damage, struct rd_err *err)
{
    bool ok = true, any = false;
    for (size_t i = 0; ok && i < e->x->sets->n; i++) {
        const struct archive_set *set = &e->x->sets->sets[i];
        for (size_t k = 0; ok && k < set->m.n_files && !set->incomplete; k++) {
            const struct archive_file *file = &set->m.files[k];
            struct chunks_recipe r;
            struct wanted w = {.want = blob};
            const struct chunks_chunk *chunk = NULL;
            if (e->x->unreadable[i] || e->x->without[i] ||
                file->compression != ARCHIVE_COMPRESSION_CHUNKS ||
                !chunks_recipe_read(e->x->repo, set, file, e->x->repo->ring, &r, NULL))
                continue;
            chunks_recipe_each(&r, is_wanted, &w);
            for (size_t c = 0; c < r.n_chunks && chunk == NULL; c++)
                if (memcmp(r.chunks[c].blob.name, blob->name, CHUNKS_NAME) == 0)
                    chunk = &r.chunks[c];
            if (w.found)
                ok = report_file(e, set, file, &r, blob, chunk, damage, err);
            e->x->hurt[i] = e->x->hurt[i] || w.found;
            any = any || w.found;
            chunks_recipe_done(&r);
        }
    }
    if (ok && !any) {
        damage->what = "nothing that a set needs";
        damage->set = NULL;
        damage->n_keys = damage->n_names = 0;
        e->x->found(e->x->ctx, damage);
    }
    return ok;
}

/* ---- packs ---- */

static bool try_keys(struct examine *e, const struct chunks_blob *blob, struct rd_err *err)
{
    struct rd_err why = {0};
    rd_buf_reset(&e->plain);
    e->codec.sealed = e->stored.len >= 8 && rd_seal_is(rd_buf_slice(&e->stored));
    for (size_t k = 0; k < e->usage.n_keys; k++) {
        why = (struct rd_err){0};
        if (chunks_blob_decode(&e->codec, e->usage.keys[k], blob, rd_buf_slice(&e->stored),
                               &e->plain, &why))
            return true;
    }
    rd_err_adopt(err, &why);
    return false;
}

/* A damaged blob of the directory: whether the others give its bytes. */
static bool on_damaged(struct examine *e, size_t i, const struct rd_err *why, struct rd_err *err)
{
    char hex[CHUNKS_NAME_HEX];
    const struct chunks_blob *blob = &e->directory.blobs[i];
    struct chunks_damage damage = {
        .pack = e->pack, .chunk = chunks_blob_hex(blob->name, hex), .err = why};
    rd_buf_reset(&e->stored);
    damage.recoverable = chunks_directory_recover(e->x->repo->store, e->x->repo->target, e->pack,
                                                  &e->directory, i, &e->stored, NULL) &&
                         try_keys(e, blob, NULL);
    if (!damage.recoverable)
        rd_buf_reset(&e->plain);
    e->x->n_damaged++;
    return report_blob(e, blob, &damage, err);
}

static bool add_parity(struct rd_buf *parity, struct rd_slice bytes)
{
    if (parity->len < bytes.len) {
        size_t more = bytes.len - parity->len;
        if (!rd_buf_reserve(parity, more))
            return false;
        memset(parity->ptr + parity->len, 0, more);
        parity->len = bytes.len;
    }
    for (size_t i = 0; i < bytes.len; i++)
        parity->ptr[i] ^= bytes.ptr[i];
    return true;
}

/* Bytes outside of blobs: no set is hurt, but the pack is not what was written. */
static void report_rest(struct examine *e, const char *what, const struct rd_err *why)
{
    const struct chunks_damage damage = {.pack = e->pack, .what = what, .err = why};
    e->x->n_damaged++;
    if (e->x->found != NULL)
        e->x->found(e->x->ctx, &damage);
}

static bool read_part(struct examine *e, uint64_t offset, size_t len, struct rd_buf *ret,
                      struct rd_err *err)
{
    char object[ARCHIVE_NAME_MAX];
    rd_buf_reset(ret);
    if (e->x->tick != NULL)
        e->x->tick(e->x->ctx, len);
    return chunks_pack_object(object, e->x->repo->target, e->pack, err) &&
           archive_store_range(e->x->repo->store, object, offset, len, ret, err);
}

static bool examine_parity(struct examine *e, bool any_damaged, struct rd_err *err)
{
    struct rd_err why = {0};
    const struct chunks_directory *d = &e->directory;
    if (!read_part(e, 0, CHUNKS_PACK_MAGIC, &e->stored, err))
        return false;
    if (memcmp(e->stored.ptr, "RDPACK1\n", CHUNKS_PACK_MAGIC) != 0) {
        rd_err_set(&why, RD_ERR_CORRUPT, 0, "the beginning of the pack is damaged");
        report_rest(e, "nothing that a set needs", &why);
    }
    if (d->parity_len == 0 || any_damaged)
        return true;
    if (!read_part(e, d->parity, d->parity_len, &e->stored, err))
        return false;
    if (e->stored.len != e->parity.len ||
        memcmp(e->stored.ptr, e->parity.ptr, e->parity.len) != 0) {
        why = (struct rd_err){0};
        rd_err_set(&why, RD_ERR_CHECKSUM, d->parity, "the parity of the pack is damaged");
        report_rest(e, "nothing that a set needs", &why);
    }
    return true;
}

static bool examine_blobs(struct examine *e, struct rd_err *err)
{
    bool any_damaged = false;
    rd_buf_reset(&e->parity);
    for (size_t i = 0; i < e->directory.n; i++) {
        const struct chunks_blob *blob = &e->directory.blobs[i];
        struct rd_err why = {0};
        if (!read_part(e, blob->offset, blob->stored, &e->stored, err))
            return false;
        if (!add_parity(&e->parity, rd_buf_slice(&e->stored)))
            return rd_err_nomem(err, e->stored.len);
        if (try_keys(e, blob, &why))
            continue;
        any_damaged = true;
        if (!on_damaged(e, i, &why, err))
            return false;
    }
    return examine_parity(e, any_damaged, err);
}

/* Without a directory: the blobs that sets need, at the places that recipes name. */
static bool examine_used(struct examine *e, uint32_t pack, const struct rd_err *missing,
                         struct rd_err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < e->usage.n_slots; i++) {
        const struct chunks_used *used = &e->usage.used[i];
        char hex[CHUNKS_NAME_HEX];
        struct rd_err why = {0};
        struct chunks_blob blob = {
            .kind = used->kind, .offset = used->offset, .stored = used->stored, .raw = used->raw};
        if (!used->taken || used->pack != pack)
            continue;
        memcpy(blob.name, used->name, CHUNKS_NAME);
        rd_buf_reset(&e->plain);
        if (missing != NULL)
            rd_err_adopt(&why, missing);
        else if (read_part(e, blob.offset, blob.stored, &e->stored, &why) &&
                 try_keys(e, &blob, &why))
            continue;
        rd_buf_reset(&e->plain);
        struct chunks_damage damage = {
            .pack = e->pack, .chunk = chunks_blob_hex(blob.name, hex), .err = &why};
        e->x->n_damaged++;
        ok = report_blob(e, &blob, &damage, err);
    }
    return ok;
}

static bool examine_pack(struct examine *e, const struct chunks_name *name, struct rd_err *err)
{
    struct rd_err why = {0};
    const struct chunks_object *object =
        chunks_inventory_find(e->usage.inventory, name->name, ".pack");
    uint32_t number = (uint32_t)(name - e->usage.names->at);
    e->pack = name->name;
    e->x->n_packs++;
    if (object == NULL) {
        if (name->live == 0)
            return true;
        rd_err_sys(&why, ENOENT, "the pack is missing");
        why.reason.id = ARCHIVE_REASON_MISSING;
        return examine_used(e, number, &why, err);
    }
    if (e->x->presence || (e->x->wants != NULL && !e->x->wants(e->x->ctx, name->name)))
        return true;
    e->x->n_read++;
    if (!chunks_directory_read(e->x->repo->store, &e->codec, name->name, object->bytes,
                               &e->directory, &why)) {
        if (why.code == RD_ERR_MEMORY || why.code == RD_ERR_PROTOCOL) {
            rd_err_adopt(err, &why);
            return false;
        }
        report_rest(e, "the directory of the pack", &why);
        return examine_used(e, number, NULL, err);
    }
    bool ok = examine_blobs(e, err);
    chunks_directory_done(&e->directory);
    return ok;
}

/* Packs that no recipe names are examined, too: what is in them may be needed again. */
static bool examine_all(struct examine *e, struct rd_err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < e->usage.names->n; i++)
        ok = examine_pack(e, &e->usage.names->at[i], err);
    return ok;
}

static void leave_out_others(struct chunks_examine *x)
{
    for (size_t i = 0; i < x->sets->n; i++)
        x->without[i] = x->only != NULL && x->only != &x->sets->sets[i];
}

bool chunks_examine(struct chunks_examine *x, struct rd_err *err)
{
    struct examine e = {.x = x};
    e.codec = (struct chunks_codec){.target = x->repo->target, .ring = x->repo->ring};
    x->hurt = rd_calloc(x->sets->n + 1, sizeof *x->hurt);
    x->unreadable = rd_calloc(x->sets->n + 1, sizeof *x->unreadable);
    e.slices = rd_calloc(CHUNKS_HURT_NAMES, sizeof *e.slices);
    x->without = rd_calloc(x->sets->n + 1, sizeof *x->without);
    bool ok = x->hurt != NULL && x->unreadable != NULL && x->without != NULL && e.slices != NULL;
    if (ok)
        leave_out_others(x);
    ok = (ok || rd_err_nomem(err, x->sets->n)) && chunks_codec_init(&e.codec, 0, err) &&
         chunks_usage_read(&e.usage, x->repo, x->sets, x->without, x->unreadable, err);
    if (ok) {
        /* As the objects of the sets are. */
        e.codec.sealed = rd_seal_required(x->repo->ring);
        ok = examine_all(&e, err);
        chunks_usage_done(&e.usage);
    }
    chunks_codec_done(&e.codec);
    rd_buf_done(&e.stored);
    rd_buf_done(&e.plain);
    rd_buf_done(&e.parity);
    rd_buf_done(&e.names);
    rd_buf_done(&e.name);
    rd_free(e.slices);
    return ok;
}

void chunks_examine_done(struct chunks_examine *x)
{
    rd_free(x->hurt);
    rd_free(x->unreadable);
    rd_free(x->without);
    x->hurt = x->unreadable = x->without = NULL;
}
