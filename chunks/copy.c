#include "chunks/copy.h"

#include "base/mem.h"
#include "chunks/bytes_impl.h"
#include "chunks/parent_impl.h"
#include "chunks/usage_impl.h"

#include <stdio.h>
#include <stdlib.h>

/* A blob that the destination has. */
struct have {
    uint8_t name[CHUNKS_NAME];
    char pack[CHUNKS_PACK_NAME_MAX];
    uint64_t offset;
    uint32_t stored;
    bool proved; /* a set of the destination has it, or it was read back */
    bool sent;   /* by this copier, which has not read it back yet */
};

struct chunks_copier {
    struct chunks_copier_opts o;
    struct chunks_copier_counts counts;
    struct chunks_inventory inventory; /* of the destination, when the copier was opened */
    struct have *have;                 /* a table with free places: pack[0] is '\0' */
    size_t n_have, n_slots;
    /* of the file */
    struct chunks_recipe from, to;
    struct chunks_codec seal, unseal; /* of the destination, and of the source */
    struct chunks_packer packer;
    char prefix[CHUNKS_PACK_NAME_MAX];
};

/* ---- what the destination has ---- */

static struct have *find(const struct chunks_copier *c, const uint8_t name[CHUNKS_NAME])
{
    uint64_t hash;
    memcpy(&hash, name, sizeof hash);
    size_t i = (size_t)(hash % c->n_slots);
    while (c->have[i].pack[0] != '\0' && memcmp(c->have[i].name, name, CHUNKS_NAME) != 0)
        i = i + 1 < c->n_slots ? i + 1 : 0;
    return &c->have[i];
}

static bool make_room(struct chunks_copier *c, struct rd_err *err)
{
    struct chunks_copier old = *c;
    if (c->n_slots > 0 && c->n_have * 3 < c->n_slots * 2)
        return true;
    c->n_slots = c->n_slots == 0 ? 4096 : 2 * c->n_slots;
    c->have = rd_calloc(c->n_slots, sizeof *c->have);
    if (c->have == NULL) {
        *c = old;
        return rd_err_nomem(err, 2 * old.n_slots);
    }
    for (size_t i = 0; i < old.n_slots; i++)
        if (old.have[i].pack[0] != '\0')
            *find(c, old.have[i].name) = old.have[i];
    rd_free(old.have);
    return true;
}

static bool add_have(struct chunks_copier *c, const struct have *have, struct rd_err *err)
{
    if (!make_room(c, err))
        return false;
    struct have *at = find(c, have->name);
    if (at->pack[0] == '\0') {
        *at = *have;
        c->n_have++;
    }
    return true;
}

/* The blobs of sets with the key of the destination: those of others are not shared. */
static bool add_used(struct chunks_copier *c, struct archive_sets *sets, struct rd_err *err)
{
    struct chunks_usage usage;
    bool *without = rd_calloc(sets->n + 1, sizeof *without);
    bool *unreadable = rd_calloc(sets->n + 1, sizeof *unreadable);
    bool ok = (without != NULL && unreadable != NULL) || rd_err_nomem(err, sets->n);
    for (size_t i = 0; ok && i < sets->n; i++)
        without[i] = !archive_set_good(&sets->sets[i]) || sets->sets[i].other_key ||
                     !chunks_parent_has_key(&sets->sets[i], c->o.key);
    bool read = ok && chunks_usage_read(&usage, c->o.to, sets, without, unreadable, err);
    ok = read;
    for (size_t i = 0; ok && i < usage.n_slots; i++) {
        const struct chunks_used *used = &usage.used[i];
        struct have have = {.offset = used->offset, .stored = used->stored, .proved = true};
        if (!used->taken ||
            chunks_inventory_find(&c->inventory, usage.names->at[used->pack].name, ".pack") == NULL)
            continue;
        memcpy(have.name, used->name, CHUNKS_NAME);
        memcpy(have.pack, usage.names->at[used->pack].name, sizeof have.pack);
        ok = add_have(c, &have, err);
    }
    if (read)
        chunks_usage_done(&usage);
    rd_free(without);
    rd_free(unreadable);
    return ok;
}

/* Packs of copies: those that an interrupted copy has sent are whole. What a directory says is
 * proved when the blobs are read back. */
static bool add_sent(struct chunks_copier *c, struct rd_err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < c->inventory.n; i++) {
        const struct chunks_object *object = &c->inventory.objects[i];
        struct chunks_directory d;
        struct have have = {.offset = 0};
        size_t len = strlen(object->name);
        if (len <= 5 || strcmp(object->name + len - 5, ".pack") != 0 ||
            strstr(object->name, ".copy-") == NULL || len - 5 >= sizeof have.pack)
            continue;
        memcpy(have.pack, object->name, len - 5);
        if (!chunks_directory_read(c->o.to->store, &c->seal, have.pack, object->bytes, &d, NULL))
            continue;
        for (size_t k = 0; ok && k < d.n; k++) {
            memcpy(have.name, d.blobs[k].name, CHUNKS_NAME);
            have.offset = d.blobs[k].offset;
            have.stored = d.blobs[k].stored;
            ok = add_have(c, &have, err);
        }
        chunks_directory_done(&d);
    }
    return ok;
}

static bool open_codecs(struct chunks_copier *c, struct rd_err *err)
{
    c->seal = (struct chunks_codec){.target = c->o.to->target,
                                    .key = c->o.key,
                                    .ring = c->o.to->ring,
                                    .random = c->o.random,
                                    .sealed = c->o.key != NULL};
    c->unseal = (struct chunks_codec){.target = c->o.from->target, .ring = c->o.from->ring};
    return chunks_codec_init(&c->seal, 0, err) && chunks_codec_init(&c->unseal, 0, err);
}

bool chunks_copier_open(struct chunks_copier **ret, const struct chunks_copier_opts *opts,
                        struct archive_sets *sets, struct rd_err *err)
{
    struct chunks_copier *c = rd_calloc(1, sizeof *c);
    if (c == NULL)
        return rd_err_nomem(err, sizeof *c);
    c->o = *opts;
    if (!open_codecs(c, err) || !make_room(c, err) ||
        !chunks_inventory_read(c->o.to, &c->inventory, err) || !add_used(c, sets, err) ||
        !add_sent(c, err)) {
        chunks_copier_close(c);
        return false;
    }
    *ret = c;
    return true;
}

const struct chunks_copier_counts *chunks_copier_counts(const struct chunks_copier *c)
{
    return &c->counts;
}

void chunks_copier_close(struct chunks_copier *c)
{
    if (c == NULL)
        return;
    chunks_packer_done(&c->packer);
    chunks_codec_done(&c->seal);
    chunks_codec_done(&c->unseal);
    chunks_recipe_done(&c->from);
    chunks_recipe_done(&c->to);
    chunks_inventory_done(&c->inventory);
    rd_free(c->have);
    rd_free(c);
}

/* ---- sending ---- */

static int by_place(const void *a, const void *b)
{
    const struct chunks_blob *x = *(struct chunks_blob *const *)a;
    const struct chunks_blob *y = *(struct chunks_blob *const *)b;
    if (x->pack != y->pack)
        return x->pack < y->pack ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

struct collecting {
    struct chunks_blob **at;
    size_t n;
};

static bool collect(void *ctx, const struct chunks_blob *blob)
{
    struct collecting *all = ctx;
    union {
        const struct chunks_blob *in;
        struct chunks_blob *out;
    } own = {.in = blob}; /* of c->to, which is changed */
    if (all->at != NULL)
        all->at[all->n] = own.out;
    all->n++;
    return true;
}

/* All blobs of the new recipe, by their places in the source. */
static struct chunks_blob **blobs_of(struct chunks_copier *c, size_t *ret_n, struct rd_err *err)
{
    struct collecting all = {.at = NULL};
    chunks_recipe_each(&c->to, collect, &all);
    all.at = rd_calloc(all.n + 1, sizeof *all.at);
    if (all.at == NULL) {
        rd_err_nomem(err, all.n);
        return NULL;
    }
    all.n = 0;
    chunks_recipe_each(&c->to, collect, &all);
    if (all.n > 0)
        qsort(all.at, all.n, sizeof *all.at, by_place);
    *ret_n = all.n;
    return all.at;
}

/* The stored bytes for the destination: compressed as they are, sealed anew. Those of a damaged
 * blob are computed from the rest of its pack, if possible, and compressed again. */
static bool encode(struct chunks_copier *c, struct chunks_fetch *fetch,
                   const struct chunks_blob *blob, struct rd_buf *ret, struct rd_err *err)
{
    char hex[CHUNKS_NAME_HEX];
    struct rd_buf plain = {0}, stored = {0};
    struct rd_err why = {0};
    chunks_blob_hex(blob->name, hex);
    bool ok = chunks_fetch_stored(fetch, blob, &stored, err);
    if (ok &&
        chunks_blob_decode(&c->unseal, c->from.key, blob, rd_buf_slice(&stored), &plain, &why)) {
        rd_buf_reset(&plain);
        ok = chunks_unseal(&c->unseal, hex, rd_buf_slice(&stored), &plain, err) &&
             chunks_seal(&c->seal, hex, rd_buf_slice(&plain), ret, err);
    } else if (ok) {
        rd_buf_reset(&plain);
        ok = chunks_fetch_blob(fetch, blob, &plain, err) &&
             chunks_blob_encode(&c->seal, blob->name, rd_buf_slice(&plain), ret, err);
    }
    rd_buf_done(&plain);
    rd_buf_done(&stored);
    return ok;
}

static bool send_blob(struct chunks_copier *c, struct chunks_fetch *fetch,
                      const struct chunks_blob *blob, struct have *ret, struct rd_err *err)
{
    struct rd_buf stored = {0};
    struct chunks_blob copy = *blob;
    bool ok = encode(c, fetch, blob, &stored, err) &&
              chunks_packer_add(&c->packer, &copy, rd_buf_slice(&stored), err);
    rd_buf_done(&stored);
    if (!ok)
        return false;
    *ret = (struct have){.offset = copy.offset, .stored = copy.stored, .sent = true};
    memcpy(ret->name, blob->name, CHUNKS_NAME);
    memcpy(ret->pack, c->packer.name, sizeof ret->pack);
    c->counts.n_sent++;
    c->counts.bytes_read += blob->stored;
    return true;
}

/* Where a blob is in the destination, once it is there. */
static bool place(struct chunks_copier *c, struct chunks_fetch *fetch, struct chunks_blob *blob,
                  struct rd_err *err)
{
    struct have sent;
    const struct have *have = find(c, blob->name);
    if (have->pack[0] == '\0') {
        if (!send_blob(c, fetch, blob, &sent, err) || !add_have(c, &sent, err))
            return false;
        have = find(c, blob->name);
    } else {
        c->counts.n_found += !have->proved && !have->sent;
    }
    c->counts.n_chunks++;
    blob->pack = chunks_recipe_pack(&c->to, have->pack);
    blob->offset = have->offset;
    blob->stored = have->stored;
    return blob->pack != UINT32_MAX || rd_err_nomem(err, c->to.n_packs);
}

static bool pack_ended(void *ctx, const char *name, uint64_t bytes, struct rd_err *err)
{
    struct chunks_copier *c = ctx;
    uint32_t pack = chunks_recipe_pack(&c->to, name);
    if (pack == UINT32_MAX)
        return rd_err_nomem(err, c->to.n_packs);
    c->to.packs[pack].bytes = bytes;
    c->counts.bytes_sent += bytes;
    return true;
}

/* The same codec for a fetch, which has buffers of its own. */
static struct chunks_codec codec_like(const struct chunks_codec *codec)
{
    struct chunks_codec copy = *codec;
    copy.zstd = NULL;
    copy.work = (struct rd_buf){0};
    return copy;
}

static bool has_own_pack(const struct chunks_copier *c, const struct archive_set *set)
{
    size_t len = strlen(set->id);
    for (size_t i = 0; i < c->to.n_packs; i++)
        if (strncmp(c->to.packs[i].name, set->id, len) == 0 && c->to.packs[i].name[len] == '.')
            return true;
    return false;
}

/* Each set has a pack of its own, so that a list of packs shows which sets a list of sets left out.
 * If nothing had to be sent, its last order is, once more. */
static bool send_order(struct chunks_copier *c, struct chunks_fetch *fetch, struct rd_err *err)
{
    size_t last = c->from.n_orders - 1;
    struct have sent;
    if (!send_blob(c, fetch, &c->from.orders[last], &sent, err))
        return false;
    *find(c, sent.name) = sent;
    return place(c, fetch, &c->to.orders[last], err);
}

static bool send_all(struct chunks_copier *c, const struct archive_set *set,
                     struct chunks_blob **blobs, size_t n, struct rd_err *err)
{
    struct chunks_fetch fetch;
    const struct chunks_codec codec = codec_like(&c->unseal);
    bool ok = chunks_fetch_init(&fetch, c->o.from->store, &codec, &c->from, err);
    fetch.ahead = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = place(c, &fetch, blobs[i], err);
    ok = ok && (has_own_pack(c, set) || send_order(c, &fetch, err));
    chunks_fetch_done(&fetch);
    return ok && chunks_packer_end(&c->packer, err);
}

/* ---- proving ---- */

/* Reads back what this copier or an interrupted one has sent. */
static bool prove_all(struct chunks_copier *c, struct chunks_blob **blobs, size_t n,
                      struct rd_err *err)
{
    struct chunks_fetch fetch;
    struct rd_buf plain = {0};
    const struct chunks_codec codec = codec_like(&c->seal);
    bool ok = chunks_fetch_init(&fetch, c->o.to->store, &codec, &c->to, err);
    fetch.ahead = true;
    if (n > 0)
        qsort(blobs, n, sizeof *blobs, by_place);
    for (size_t i = 0; ok && i < n; i++) {
        struct have *have = find(c, blobs[i]->name);
        if (have->proved)
            continue;
        rd_buf_reset(&plain);
        ok = chunks_fetch_intact(&fetch, blobs[i], &plain, err);
        have->proved = ok;
        have->sent = false;
    }
    rd_buf_done(&plain);
    chunks_fetch_done(&fetch);
    if (!ok)
        rd_err_doing(err, "reading back what was copied to %s", c->o.to->store->origin);
    return ok;
}

/* The sizes of packs that the destination had. */
static void size_packs(struct chunks_copier *c)
{
    for (size_t i = 0; i < c->to.n_packs; i++) {
        struct chunks_pack *pack = &c->to.packs[i];
        const struct chunks_object *object =
            pack->bytes == 0 ? chunks_inventory_find(&c->inventory, pack->name, ".pack") : NULL;
        if (object != NULL)
            pack->bytes = object->bytes;
    }
}

static bool begin_file(struct chunks_copier *c, const struct archive_set *set,
                       const struct archive_file *file, unsigned number, struct rd_err *err)
{
    uint32_t chance;
    chunks_recipe_done(&c->from);
    chunks_recipe_done(&c->to);
    c->unseal.sealed = file->sealed;
    if (!chunks_recipe_read(c->o.from, set, file, c->o.from->ring, &c->from, err) ||
        !chunks_recipe_copy(&c->to, &c->from, err) || !c->o.random(&chance, sizeof chance, err))
        return false;
    c->to.n_packs = 0;
    chunks_packer_done(&c->packer);
    snprintf(c->prefix, sizeof c->prefix, "%.30s.%u.copy-%08x", set->id, number % 10000, chance);
    c->packer = (struct chunks_packer){
        .repo = c->o.to, .codec = &c->seal, .prefix = c->prefix, .ended = pack_ended, .ctx = c};
    return true;
}

bool chunks_copier_file(struct chunks_copier *c, const struct archive_set *set,
                        const struct archive_file *file, unsigned number,
                        struct archive_file *ret_file, struct rd_err *err)
{
    size_t n = 0;
    struct archive_file copy = *file;
    if (!begin_file(c, set, file, number, err))
        return false;
    struct chunks_blob **blobs = blobs_of(c, &n, err);
    bool ok = blobs != NULL && send_all(c, set, blobs, n, err);
    if (ok)
        size_packs(c);
    ok = ok && prove_all(c, blobs, n, err);
    rd_free(blobs);
    if (!ok)
        return false;
    copy.sealed = c->o.key != NULL;
    copy.added = c->to.added = c->packer.bytes;
    ok = archive_file_set_name(&copy, file->name, copy.sealed, err) &&
         chunks_recipe_trim(&c->to, err) &&
         chunks_recipe_write(c->o.to, set->id, &copy, c->o.key, c->o.random, &c->to, err);
    if (ok)
        *ret_file = copy;
    return ok;
}
