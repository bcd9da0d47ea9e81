#include "chunks/usage_impl.h"

#include "base/mem.h"

#include <stdio.h>

enum { HOPS_MAX = 16 };

struct reading {
    struct chunks_usage *u;
    struct archive_repo *repo;
    struct chunks_codec codec;
    const struct chunks_recipe *recipe;
    uint32_t *packs; /* of the recipe, in names */
    uint32_t set, key;
    struct rd_err *err;
};

/* ---- packs ---- */

struct chunks_name *chunks_names_find(const struct chunks_names *names, const char *name)
{
    for (size_t i = names->n; i-- > 0;)
        if (strcmp(names->at[i].name, name) == 0)
            return &names->at[i];
    return NULL;
}

/* The number of a pack, which is added with its list of moves if it is new. */
static bool number_pack(struct reading *r, const char *name, uint32_t *ret)
{
    struct chunks_names *names = r->u->names;
    struct chunks_name *have = chunks_names_find(names, name);
    if (have == NULL) {
        if ((names->n & (names->n - 1)) == 0) {
            size_t cap = names->n == 0 ? 1 : 2 * names->n;
            struct chunks_name *at = rd_realloc(names->at, cap * sizeof *at);
            if (at == NULL)
                return rd_err_nomem(r->err, cap);
            names->at = at;
        }
        have = &names->at[names->n++];
        *have = (struct chunks_name){.live = 0};
        snprintf(have->name, sizeof have->name, "%s", name);
        have->has_moves = chunks_inventory_find(r->u->inventory, name, ".moved") != NULL;
        if (have->has_moves &&
            !chunks_moves_read(r->repo->store, &r->codec, name, &have->moves, r->err))
            return false;
    }
    *ret = (uint32_t)(have - names->at);
    return true;
}

/* ---- blobs ---- */

static size_t slot_of(const struct chunks_usage *u, const uint8_t name[CHUNKS_NAME])
{
    uint64_t hash;
    memcpy(&hash, name, sizeof hash);
    return (size_t)(hash % u->n_slots);
}

/* Two sets of which none is the parent of the other may have the same chunk in two packs. */
static struct chunks_used *find(const struct chunks_usage *u, const uint8_t name[CHUNKS_NAME],
                                uint32_t from)
{
    size_t i = slot_of(u, name);
    while (u->used[i].taken &&
           (u->used[i].from != from || memcmp(u->used[i].name, name, CHUNKS_NAME) != 0))
        i = i + 1 < u->n_slots ? i + 1 : 0;
    return &u->used[i];
}

static bool make_room(struct chunks_usage *u, struct rd_err *err)
{
    struct chunks_usage old = *u;
    if (u->n_slots > 0 && u->n_used * 3 < u->n_slots * 2)
        return true;
    u->n_slots = u->n_slots == 0 ? 1024 : 2 * u->n_slots;
    u->used = rd_calloc(u->n_slots, sizeof *u->used);
    if (u->used == NULL) {
        *u = old;
        return rd_err_nomem(err, 2 * old.n_slots);
    }
    for (size_t i = 0; i < old.n_slots; i++)
        if (old.used[i].taken)
            *find(u, old.used[i].name, old.used[i].from) = old.used[i];
    rd_free(old.used);
    return true;
}

/* Where a blob is now. */
static bool follow(struct reading *r, struct chunks_used *used)
{
    for (int hops = 0; hops < HOPS_MAX; hops++) {
        const struct chunks_name *at = &r->u->names->at[used->pack];
        const struct chunks_moved *to =
            at->has_moves ? chunks_moves_find(&at->moves, used->name) : NULL;
        if (to == NULL)
            return true;
        struct chunks_moved copy = *to;
        if (!number_pack(r, copy.pack, &used->pack))
            return false;
        used->offset = copy.offset;
    }
    return rd_err_set(r->err, RD_ERR_CORRUPT, RD_NO_OFFSET, "chunks were moved in a circle");
}

static bool on_blob(void *ctx, const struct chunks_blob *blob)
{
    struct reading *r = ctx;
    struct chunks_usage *u = r->u;
    if (!make_room(u, r->err))
        return false;
    struct chunks_used *have = find(u, blob->name, r->packs[blob->pack]);
    u->total[r->set] += blob->stored;
    if (have->taken) {
        if (have->set != r->set && !have->several) {
            u->only[have->set] -= have->stored;
            have->several = true;
        }
        return true;
    }
    struct chunks_used used = {.kind = blob->kind,
                               .taken = true,
                               .from = r->packs[blob->pack],
                               .pack = r->packs[blob->pack],
                               .key = r->key,
                               .set = r->set,
                               .offset = blob->offset,
                               .stored = blob->stored,
                               .raw = blob->raw};
    memcpy(used.name, blob->name, CHUNKS_NAME);
    if (!follow(r, &used))
        return false;
    *have = used;
    u->n_used++;
    u->only[r->set] += used.stored;
    u->names->at[used.pack].live += used.stored;
    return true;
}

static bool number_key(struct reading *r)
{
    struct chunks_usage *u = r->u;
    for (size_t i = 0; i < u->n_keys; i++)
        if (memcmp(u->keys[i], r->recipe->key, CHUNKS_KEY) == 0) {
            r->key = (uint32_t)i;
            return true;
        }
    uint8_t(*keys)[CHUNKS_KEY] = rd_realloc(u->keys, (u->n_keys + 1) * sizeof *keys);
    if (keys == NULL)
        return rd_err_nomem(r->err, u->n_keys);
    u->keys = keys;
    memcpy(u->keys[u->n_keys], r->recipe->key, CHUNKS_KEY);
    r->key = (uint32_t)u->n_keys++;
    return true;
}

static bool read_recipe(struct reading *r, const struct archive_set *set,
                        const struct archive_file *file)
{
    struct chunks_recipe recipe;
    if (!chunks_recipe_read(r->repo, set, file, r->repo->ring, &recipe, r->err))
        return false;
    r->recipe = &recipe;
    r->codec.sealed = file->sealed;
    r->u->n_files++;
    r->packs = rd_calloc(recipe.n_packs + 1, sizeof *r->packs);
    bool ok = r->packs != NULL || rd_err_nomem(r->err, recipe.n_packs);
    for (size_t i = 0; ok && i < recipe.n_packs; i++) {
        ok = number_pack(r, recipe.packs[i].name, &r->packs[i]);
        if (ok)
            r->u->names->at[r->packs[i]].named = true;
    }
    ok = ok && number_key(r) && chunks_recipe_each(&recipe, on_blob, r);
    rd_free(r->packs);
    chunks_recipe_done(&recipe);
    return ok;
}

static bool read_set(struct reading *r, struct archive_set *set)
{
    if (!archive_set_prove(r->repo, set, r->err)) {
        rd_err_doing(r->err, "the set %s", set->id);
        return false;
    }
    for (size_t i = 0; i < set->m.n_files; i++)
        if (set->m.files[i].compression == ARCHIVE_COMPRESSION_CHUNKS &&
            !read_recipe(r, set, &set->m.files[i])) {
            rd_err_doing(r->err, "the set %s", set->id);
            return false;
        }
    return true;
}

bool chunks_usage_read(struct chunks_usage *ret, struct archive_repo *repo,
                       struct archive_sets *sets, const bool *without, bool *unreadable,
                       struct rd_err *err)
{
    struct rd_err why = {0};
    struct reading r = {.u = ret, .repo = repo, .err = err};
    r.codec = (struct chunks_codec){.target = repo->target, .ring = repo->ring};
    *ret = (struct chunks_usage){.n_files = 0};
    ret->names = rd_calloc(1, sizeof *ret->names);
    ret->inventory = rd_calloc(1, sizeof *ret->inventory);
    ret->only = rd_calloc(sets->n + 1, sizeof *ret->only);
    ret->total = rd_calloc(sets->n + 1, sizeof *ret->total);
    bool ok =
        ret->names != NULL && ret->inventory != NULL && ret->only != NULL && ret->total != NULL;
    ok = (ok || rd_err_nomem(err, sets->n)) && chunks_inventory_read(repo, ret->inventory, err);
    for (size_t i = 0; ok && i < ret->inventory->n; i++)
        ret->bytes += ret->inventory->objects[i].bytes;
    /* Where there is nothing to remove, no recipe is needed. */
    bool any = ret->inventory->n > 0 || unreadable != NULL;
    for (size_t i = 0; ok && any && i < sets->n; i++) {
        r.set = (uint32_t)i;
        if (sets->sets[i].incomplete || (without != NULL && without[i]))
            continue;
        why = (struct rd_err){0};
        r.err = &why;
        ok = read_set(&r, &sets->sets[i]);
        if (!ok && unreadable != NULL && why.code != RD_ERR_MEMORY)
            ok = unreadable[i] = true;
    }
    if (!ok)
        rd_err_adopt(err, &why);
    chunks_codec_done(&r.codec);
    if (!ok)
        chunks_usage_done(ret);
    return ok;
}

void chunks_usage_done(struct chunks_usage *u)
{
    for (size_t i = 0; u->names != NULL && i < u->names->n; i++)
        rd_free(u->names->at[i].moves.moved);
    if (u->names != NULL)
        rd_free(u->names->at);
    if (u->inventory != NULL)
        chunks_inventory_done(u->inventory);
    rd_free(u->names);
    rd_free(u->inventory);
    rd_free(u->used);
    rd_free(u->keys);
    rd_free(u->only);
    rd_free(u->total);
    *u = (struct chunks_usage){.n_files = 0};
}
