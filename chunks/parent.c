#include "chunks/parent_impl.h"

#include "archive/pipe.h"
#include "base/mem.h"
#include "base/pump.h"
#include "chunks/assemble_impl.h"
#include "chunks/bytes_impl.h"
#include "chunks/runs_impl.h"
#include "chunks/split_impl.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- what is there ---- */

struct listing {
    struct chunks_inventory *inv;
    size_t prefix;
    bool failed;
};

static void on_object(void *arg, const struct archive_listed *listed)
{
    struct listing *l = arg;
    struct chunks_inventory *inv = l->inv;
    if ((inv->n & (inv->n - 1)) == 0) {
        size_t cap = inv->n == 0 ? 1 : 2 * inv->n;
        struct chunks_object *objects = rd_realloc(inv->objects, cap * sizeof *objects);
        l->failed = l->failed || objects == NULL;
        if (objects == NULL)
            return;
        inv->objects = objects;
    }
    struct chunks_object *object = &inv->objects[inv->n++];
    snprintf(object->name, sizeof object->name, "%s", listed->name + l->prefix);
    object->bytes = listed->size;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct chunks_object *)a)->name, ((const struct chunks_object *)b)->name);
}

bool chunks_inventory_read(struct archive_repo *repo, struct chunks_inventory *ret,
                           struct rd_err *err)
{
    char folder[ARCHIVE_NAME_MAX];
    struct chunks_inventory inv = {.n = 0};
    struct listing l = {.inv = &inv};
    l.prefix = (size_t)snprintf(folder, sizeof folder, "%s/chunks", repo->target) + 1;
    bool ok = repo->store->ops->list(repo->store, folder, on_object, &l, err) &&
              (!l.failed || rd_err_nomem(err, inv.n));
    if (!ok) {
        chunks_inventory_done(&inv);
        return false;
    }
    if (inv.n > 0)
        qsort(inv.objects, inv.n, sizeof *inv.objects, by_name);
    *ret = inv;
    return true;
}

const struct chunks_object *chunks_inventory_find(const struct chunks_inventory *inv,
                                                  const char *pack, const char *suffix)
{
    struct chunks_object want;
    snprintf(want.name, sizeof want.name, "%s%s", pack, suffix);
    if (inv->n == 0)
        return NULL;
    return bsearch(&want, inv->objects, inv->n, sizeof *inv->objects, by_name);
}

void chunks_inventory_done(struct chunks_inventory *inv)
{
    rd_free(inv->objects);
    *inv = (struct chunks_inventory){.n = 0};
}

/* ---- recipes ---- */

bool chunks_recipe_read(struct archive_repo *repo, const struct archive_set *set,
                        const struct archive_file *file, const struct rd_seal_ring *ring,
                        struct chunks_recipe *ret, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct archive_file bare = {.compression = ARCHIVE_COMPRESSION_NONE, .sealed = file->sealed};
    struct rd_src *src;
    struct rd_buf bytes = {0};
    if (!archive_set_open_stored(repo, set, file, &src, err))
        return false;
    bool ok = archive_object_name(name, repo->target, set->id, file->object, err);
    if (!ok)
        rd_src_close(src);
    ok = ok && archive_pipe_open_bare(&src, src, &bare, ring, name, NULL, err);
    if (!ok)
        return false;
    ok = rd_pump_to_buf(src, CHUNKS_RECIPE_MAX, &bytes, err) &&
         chunks_recipe_parse(ret, rd_buf_slice(&bytes), err);
    rd_src_close(src);
    rd_buf_done(&bytes);
    if (ok && ret->bytes != file->plain.bytes) {
        chunks_recipe_done(ret);
        ok = rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                        "the recipe is that of a file of another size");
    }
    if (!ok)
        rd_err_origin(err, name);
    return ok;
}

bool chunks_recipe_write(struct archive_repo *repo, const char *id, struct archive_file *file,
                         const struct rd_seal_key *key,
                         bool (*draw)(void *ret, size_t size, struct rd_err *err),
                         const struct chunks_recipe *r, struct rd_err *err)
{
    char bound[ARCHIVE_NAME_MAX];
    struct archive_file bare = {.compression = ARCHIVE_COMPRESSION_NONE};
    struct archive_pipe pipe = {.key = key, .name = bound};
    struct rd_sink *sink;
    struct rd_buf bytes = {0};
    bool ok = chunks_recipe_print(r, &bytes, err) &&
              archive_object_name(bound, repo->target, id, file->object, err) &&
              draw(pipe.random, sizeof pipe.random, err) &&
              archive_repo_put(repo, id, file->object, &sink, err) &&
              archive_pipe_open_sink(&sink, sink, &pipe, &bare, err);
    explicit_bzero(pipe.random, sizeof pipe.random);
    if (ok) {
        rd_sink_write(sink, bytes.ptr, bytes.len);
        ok = rd_sink_close(sink, err);
    }
    rd_buf_done(&bytes);
    if (ok)
        file->stored = bare.stored;
    return ok;
}

/* ---- the parent ---- */

/* Chunks that the key of the new set does not open would outlive the key that does. */
bool chunks_parent_has_key(const struct archive_set *set, const struct rd_seal_key *key)
{
    char id[RD_SEAL_ID_HEX];
    if (key == NULL)
        return set->m.key_id[0] == '\0';
    return key->stretched ? set->m.key_id[0] != '\0'
                          : strcmp(set->m.key_id, rd_seal_key_id(key, id)) == 0;
}

static const struct archive_file *file_of(const struct archive_set *set,
                                          const struct chunks_opts *opts)
{
    const struct archive_file *found = NULL;
    for (size_t i = 0; i < set->m.n_files; i++) {
        const struct archive_file *file = &set->m.files[i];
        if (file->compression != ARCHIVE_COMPRESSION_CHUNKS || file->role != opts->file->role ||
            file->sealed != (opts->key != NULL))
            continue;
        if (strcmp(file->name, opts->file->name) == 0)
            return file;
        found = file; /* a log numbers its files */
    }
    return found;
}

static bool is_candidate(const struct archive_set *set, const struct chunks_opts *opts)
{
    return archive_set_good(set) && !set->other_key && chunks_parent_has_key(set, opts->key) &&
           file_of(set, opts) != NULL;
}

/* The newest one, or the one to which the state belongs. */
static void choose(struct chunks_parent *p, const struct chunks_opts *opts)
{
    uint8_t sha[ARCHIVE_SHA256];
    bool cached = opts->state != NULL && chunks_state_of(opts->state, sha);
    for (size_t i = opts->sets != NULL ? opts->sets->n : 0; i-- > 0;) {
        struct archive_set *set = &opts->sets->sets[i];
        if (!is_candidate(set, opts))
            continue;
        const struct archive_file *file = file_of(set, opts);
        bool is_it = cached && memcmp(file->stored.sha256, sha, sizeof sha) == 0;
        if (p->set == NULL || is_it) {
            p->set = set;
            p->file = file;
            p->is_cached = is_it;
        }
        if (is_it)
            return;
    }
}

static struct chunks_blob *blob_at(struct chunks_recipe *r, size_t i)
{
    if (i < r->n_chunks)
        return &r->chunks[i].blob;
    i -= r->n_chunks;
    if (i < r->n_orders)
        return &r->orders[i];
    i -= r->n_orders;
    for (size_t j = 0; j < r->n_runs; i -= r->runs[j++].n_pages)
        if (i < r->runs[j].n_pages)
            return &r->runs[j].pages[i].blob;
    return i < r->n_leaves ? &r->leaves[i].blob : NULL;
}

/* Replaces a pack that was rewritten. */
static bool follow(struct chunks_parent *p, struct archive_repo *repo, struct chunks_codec *codec,
                   const struct chunks_inventory *inv, size_t pack, struct rd_err *err)
{
    struct chunks_recipe *r = &p->recipe;
    struct chunks_moves moves = {.known = false};
    struct chunks_blob *blob;
    if (chunks_inventory_find(inv, r->packs[pack].name, ".moved") == NULL)
        return true;
    bool ok = chunks_moves_read(repo->store, codec, r->packs[pack].name, &moves, err);
    for (size_t i = 0; ok && (blob = blob_at(r, i)) != NULL; i++) {
        const struct chunks_moved *to =
            blob->pack == pack ? chunks_moves_find(&moves, blob->name) : NULL;
        if (to == NULL)
            continue;
        blob->pack = chunks_recipe_pack(r, to->pack);
        blob->offset = to->offset;
        ok = blob->pack != UINT32_MAX || rd_err_nomem(err, r->n_packs);
    }
    rd_free(moves.moved);
    return ok;
}

static bool look_at_packs(struct chunks_parent *p, const struct chunks_opts *opts,
                          struct rd_err *err)
{
    struct chunks_inventory inv = {.n = 0};
    struct chunks_recipe *r = &p->recipe;
    struct chunks_codec codec = {
        .target = opts->repo->target, .ring = opts->repo->ring, .sealed = p->file->sealed};
    bool ok = chunks_inventory_read(opts->repo, &inv, err);
    /* The list grows by the packs that have the chunks now, which may have been rewritten, too. */
    for (size_t i = 0; ok && i < r->n_packs; i++)
        ok = follow(p, opts->repo, &codec, &inv, i, err);
    ok = ok && chunks_recipe_trim(r, err);
    for (size_t i = 0; ok && i < r->n_packs; i++) {
        const struct chunks_object *have = chunks_inventory_find(&inv, r->packs[i].name, ".pack");
        uint64_t bytes = have != NULL ? have->bytes : 0;
        p->any_lost =
            p->any_lost || bytes == 0 || (r->packs[i].bytes != 0 && r->packs[i].bytes != bytes);
        r->packs[i].bytes = bytes;
    }
    chunks_inventory_done(&inv);
    chunks_codec_done(&codec);
    return ok;
}

bool chunks_parent_find(struct chunks_parent *ret, const struct chunks_opts *opts,
                        struct rd_err *err)
{
    struct rd_err why = {0};
    *ret = (struct chunks_parent){.set = NULL};
    choose(ret, opts);
    if (ret->set == NULL)
        return true;
    /* A recipe that cannot be read is a matter for verify; the new set does without it. */
    if (!archive_set_prove(opts->repo, ret->set, &why) ||
        !chunks_recipe_read(opts->repo, ret->set, ret->file, opts->repo->ring, &ret->recipe,
                            &why)) {
        *ret = (struct chunks_parent){.set = NULL};
        return true;
    }
    return look_at_packs(ret, opts, err);
}

void chunks_parent_done(struct chunks_parent *p)
{
    chunks_recipe_done(&p->recipe);
    *p = (struct chunks_parent){.set = NULL};
}

/* ---- its state ---- */

struct rebuild {
    const struct chunks_recipe *recipe;
    struct chunks_assembler a;
    struct chunks_lists lists;
    struct rd_buf name, text;
    uint32_t died;
};

static bool hash_long(struct rebuild *b, const struct chunks_found *item,
                      struct chunks_record *record, struct rd_err *err)
{
    struct chunks_long l;
    struct rd_buf ordinals = {0};
    if (!chunks_long_parse(&l, item->bytes, err))
        return false;
    rd_buf_reset(&b->text);
    bool ok = chunks_long_hash_begin(&b->text, &l);
    struct chunks_in in = {.at = l.at, .end = l.at + l.len};
    const struct chunks_chunk *piece;
    for (size_t i = 0; ok && i < l.n && (ok = chunks_long_piece(&in, b->recipe, &piece, err)); i++)
        ok = rd_buf_add(&b->text, piece->blob.name, CHUNKS_NAME) &&
             rd_buf_add(&ordinals, &piece->ordinal, sizeof piece->ordinal);
    ok = ok || rd_err_nomem(err, ordinals.len);
    record->key = l.hash;
    record->item = chunks_hash_item(b->recipe->key, item->db, rd_buf_slice(&b->text));
    ok = ok && chunks_lists_add_long(&b->lists, item->place,
                                     (const uint32_t *)(const void *)ordinals.ptr, l.n, err);
    rd_buf_done(&ordinals);
    return ok;
}

static bool hash_item(struct rebuild *b, const struct chunks_found *item,
                      struct chunks_record *record, struct rd_err *err)
{
    *record = (struct chunks_record){.place = item->place};
    if ((item->flags & CHUNKS_LONG) != 0)
        return hash_long(b, item, record, err);
    record->item = chunks_hash_item(b->recipe->key, item->db, item->bytes);
    if ((item->flags & CHUNKS_IS_KEY) == 0)
        return true;
    rd_buf_reset(&b->name);
    if (!chunks_record_name(item->bytes, &b->name))
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "a record is not understood");
    record->key = chunks_hash_key(b->recipe->key, item->db, rd_buf_slice(&b->name));
    return true;
}

static bool add_dead(void *ctx, uint64_t key, struct rd_err *err)
{
    struct rebuild *b = ctx;
    const struct chunks_dead dead = {key, b->died};
    return chunks_lists_add_dead(&b->lists, &dead, err);
}

/* The run says about when a key was removed only what the next run needs: not before its first
 * set. */
static bool read_dead(struct rebuild *b, struct rd_err *err)
{
    const struct chunks_recipe *r = b->recipe;
    bool ok = true;
    for (size_t i = 0; ok && i < r->n_runs; i++) {
        b->died = r->runs[i].from;
        for (size_t j = 0; ok && j < r->runs[i].n_pages; j++) {
            rd_buf_reset(&b->text);
            ok = chunks_fetch_blob(&b->a.fetch, &r->runs[i].pages[j].blob, &b->text, err) &&
                 chunks_page_dead(rd_buf_slice(&b->text), add_dead, b, err);
        }
    }
    return ok;
}

static bool rebuild(struct rebuild *b, const uint8_t sha[ARCHIVE_SHA256], struct rd_sink *to,
                    struct rd_err *err)
{
    struct chunks_found item;
    struct chunks_record record;
    bool end = false, ok = chunks_state_begin(to, sha, b->recipe->n_items);
    while (ok && (ok = chunks_assemble_next(&b->a, &item, &end, err)) && !end)
        ok = hash_item(b, &item, &record, err) && chunks_state_put(to, &record);
    ok = ok && read_dead(b, err);
    chunks_lists_sort(&b->lists);
    if (ok && chunks_state_end(to, &b->lists))
        return true;
    if (rd_sink_err(to)->code != RD_ERR_OK)
        rd_err_adopt(err, rd_sink_err(to));
    return false;
}

bool chunks_parent_state(const struct chunks_parent *parent, const struct chunks_opts *opts,
                         struct spool *ret, struct rd_err *err)
{
    const struct chunks_codec codec = {
        .target = opts->repo->target, .ring = opts->repo->ring, .sealed = parent->file->sealed};
    const struct chunks_rooms rooms = chunks_rooms_usual();
    struct rebuild b = {.recipe = &parent->recipe};
    struct rd_sink *to;
    bool ok = chunks_assemble_open(&b.a, opts->repo, &codec, &parent->recipe, &rooms, err) &&
              spool_sink(ret, &to, err);
    if (ok) {
        ok = rebuild(&b, parent->file->stored.sha256, to, err);
        if (ok)
            ok = rd_sink_close(to, err);
        else
            rd_sink_abort(to);
    }
    chunks_assemble_done(&b.a);
    chunks_lists_done(&b.lists);
    rd_buf_done(&b.name);
    rd_buf_done(&b.text);
    return ok;
}
