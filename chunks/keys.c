/* A few keys of a file, for which only the pages of the index and the chunks that have them are
 * read. */
#include "base/crc64.h"
#include "base/mem.h"
#include "chunks/chunks.h"
#include "chunks/keys_impl.h"
#include "chunks/parent_impl.h"
#include "chunks/runs_impl.h"
#include "chunks/snapshot_impl.h"

static void unload(struct chunks_loaded *c)
{
    rd_buf_done(&c->plain);
    chunks_items_done(&c->items);
    *c = (struct chunks_loaded){.loaded = false};
}

struct chunks_loaded *chunks_lookup_load(struct chunks_lookup *l, size_t index, struct rd_err *err)
{
    for (size_t i = 0; i < l->n_loaded; i++)
        if (l->index[i] == index)
            return &l->loaded[i];
    size_t slot =
        l->n_loaded < CHUNKS_LOOKUP_LOADED ? l->n_loaded : l->next_loaded++ % CHUNKS_LOOKUP_LOADED;
    struct chunks_loaded *c = &l->loaded[slot];
    unload(c);
    l->index[slot] = SIZE_MAX;
    if (slot == l->n_loaded)
        l->n_loaded++;
    if (!chunks_fetch_blob(&l->fetch, &l->recipe.chunks[index].blob, &c->plain, err) ||
        !chunks_items_parse(&c->items, rd_buf_slice(&c->plain), err)) {
        unload(c);
        return NULL;
    }
    l->index[slot] = index;
    return c;
}

uint64_t chunks_lookup_hash(struct chunks_lookup *l, const struct chunks_items *items, uint32_t i,
                            bool *ret_known)
{
    struct rd_slice bytes = chunks_items_at(items, i);
    struct chunks_long pieces;
    if ((items->flags[i] & CHUNKS_IS_KEY) == 0)
        return 0;
    if ((items->flags[i] & CHUNKS_LONG) != 0) {
        *ret_known = *ret_known && chunks_long_parse(&pieces, bytes, NULL);
        return *ret_known ? pieces.hash : 0;
    }
    rd_buf_reset(&l->name);
    *ret_known = *ret_known && chunks_record_name(bytes, &l->name);
    return *ret_known
               ? chunks_hash_key(l->recipe.key, chunks_items_db(items, i), rd_buf_slice(&l->name))
               : 0;
}

/* Whether a chunk that the index names has the key. A chunk can also have a key that is gone: if
 * the entry may be that of another key of the chunk, it is not known which one is meant. */
static enum chunks_found_it search(struct chunks_lookup *l, uint32_t ordinal, uint64_t n_entries,
                                   uint64_t key, const struct chunks_items **ret,
                                   uint32_t *ret_item, struct rd_err *err)
{
    const struct chunks_chunk *chunk = chunks_recipe_find(&l->recipe, ordinal);
    unsigned bits = chunks_run_bits(n_entries);
    bool known = true;
    size_t n = 0, n_alike = 0;
    if (chunk == NULL)
        return CHUNKS_ABSENT; /* of an older set: none of its items are left */
    if (chunk->blob.kind != CHUNKS_ITEMS)
        return CHUNKS_UNKNOWN;
    struct chunks_loaded *c = chunks_lookup_load(l, (size_t)(chunk - l->recipe.chunks), err);
    if (c == NULL)
        return CHUNKS_FAILED;
    for (uint32_t i = 0; i < c->items.n; i++) {
        uint64_t hash = chunks_lookup_hash(l, &c->items, i, &known);
        bool alike =
            hash != 0 && (bits == 64 ? hash == key : hash >> (64 - bits) == key >> (64 - bits));
        n_alike += alike;
        if (!alike || hash != key)
            continue;
        n++;
        *ret = &c->items;
        *ret_item = i;
    }
    if (!known || n > 1 || (n == 1 && n_alike > 1))
        return CHUNKS_UNKNOWN;
    return n == 1 ? CHUNKS_FOUND : CHUNKS_ABSENT;
}

/* The newest run that knows the key decides. */
static enum chunks_found_it find(struct chunks_lookup *l, uint64_t key,
                                 const struct chunks_items **ret, uint32_t *ret_item,
                                 struct rd_err *err)
{
    for (size_t i = l->recipe.n_runs; i-- > 0;) {
        const struct chunks_run *run = &l->recipe.runs[i];
        const struct chunks_page *page = chunks_run_page(run, key);
        struct chunks_answer said;
        if (page == NULL)
            continue;
        rd_buf_reset(&l->page);
        /* Without the index, the whole file has the answer. */
        if (!chunks_fetch_blob(&l->fetch, &page->blob, &l->page, NULL) ||
            !chunks_page_find(rd_buf_slice(&l->page), run->n_entries, key, &said, NULL) ||
            said.many)
            return CHUNKS_UNKNOWN;
        for (size_t j = said.n; j-- > 0;) {
            enum chunks_found_it answer =
                search(l, said.ordinals[j], run->n_entries, key, ret, ret_item, err);
            if (answer != CHUNKS_ABSENT)
                return answer;
        }
        if (said.gone)
            return CHUNKS_ABSENT;
    }
    return CHUNKS_ABSENT;
}

/* ---- the snapshot of the keys ---- */

bool chunks_lookup_db(struct chunks_lookup *l, uint64_t db)
{
    uint8_t bytes[CHUNKS_SELECT_MAX];
    return rd_sink_write(l->to, bytes, chunks_select_print(bytes, db));
}

bool chunks_lookup_item(struct chunks_lookup *l, const struct chunks_items *items, uint32_t i,
                        struct rd_err *err)
{
    struct rd_slice bytes = chunks_items_at(items, i);
    struct chunks_long pieces;
    if ((items->flags[i] & CHUNKS_LONG) == 0)
        return rd_sink_write(l->to, bytes.ptr, bytes.len);
    if (!chunks_long_parse(&pieces, bytes, err))
        return false;
    struct chunks_in in = chunks_in_of(rd_slice(pieces.at, pieces.len));
    for (size_t k = 0; k < pieces.n; k++) {
        const struct chunks_chunk *piece;
        rd_buf_reset(&l->piece);
        if (!chunks_long_piece(&in, &l->recipe, &piece, err) ||
            !chunks_fetch_blob(&l->fetch, &piece->blob, &l->piece, err) ||
            !rd_sink_write(l->to, l->piece.ptr, l->piece.len))
            return false;
    }
    return true;
}

static bool write_end(struct chunks_lookup *l)
{
    const uint8_t end = RDB_OP_EOF;
    uint8_t sum[8];
    if (!rd_sink_write(l->to, &end, 1))
        return false;
    uint64_t crc = rd_sink_sum(l->to);
    for (int i = 0; i < 8; i++)
        sum[i] = (uint8_t)(crc >> (8 * i));
    return chunks_head_version(l->recipe.head) < RDB_VERSION_CHECKSUM ||
           rd_sink_write(l->to, sum, sizeof sum);
}

static enum chunks_found_it write_keys(struct chunks_lookup *l, uint64_t db,
                                       const struct rd_slice *names, size_t n_names,
                                       struct rd_err *err)
{
    bool any = false;
    for (size_t i = 0; i < n_names; i++) {
        const struct chunks_items *items;
        uint32_t item;
        uint64_t key = chunks_hash_key(l->recipe.key, db, names[i]);
        enum chunks_found_it answer = find(l, key, &items, &item, err);
        if (answer == CHUNKS_ABSENT)
            continue;
        if (answer != CHUNKS_FOUND)
            return answer;
        if ((!any && !chunks_lookup_db(l, db)) || !chunks_lookup_item(l, items, item, err)) {
            rd_err_adopt(err, rd_sink_err(l->to));
            return CHUNKS_FAILED;
        }
        any = true;
    }
    return CHUNKS_FOUND;
}

bool chunks_lookup_begin(struct chunks_lookup *l, struct rd_err *err)
{
    if (!spool_sink(&l->spool, &l->to, err))
        return false;
    rd_sink_sum_begin(l->to, 0);
    rd_sink_write(l->to, l->recipe.head, sizeof l->recipe.head);
    return true;
}

bool chunks_lookup_end(struct chunks_lookup *l, struct rd_err *err)
{
    struct rd_sink *to = l->to;
    write_end(l);
    l->to = NULL;
    return rd_sink_close(to, err);
}

static enum chunks_found_it write_named(struct chunks_lookup *l, const struct archive_set *set,
                                        const struct filter *filter, struct rd_err *err)
{
    enum chunks_found_it answer = CHUNKS_FOUND;
    if (!chunks_lookup_begin(l, err))
        return CHUNKS_FAILED;
    for (size_t i = 0; answer == CHUNKS_FOUND && i < set->m.n_dbs; i++)
        if (filter_may_want(filter, set->m.dbs[i].db, NULL))
            answer = write_keys(l, set->m.dbs[i].db, l->names.at, l->names.n, err);
    if (answer != CHUNKS_FOUND)
        return answer;
    return chunks_lookup_end(l, err) ? CHUNKS_FOUND : CHUNKS_FAILED;
}

static void lookup_close(void *impl)
{
    struct chunks_lookup *l = impl;
    for (size_t i = 0; i < CHUNKS_LOOKUP_LOADED; i++)
        unload(&l->loaded[i]);
    rd_src_close(l->from);
    rd_sink_abort(l->to);
    spool_done(&l->spool);
    if (l->fetch.recipe != NULL)
        chunks_fetch_done(&l->fetch);
    chunks_recipe_done(&l->recipe);
    rd_buf_done(&l->page);
    rd_buf_done(&l->name);
    rd_buf_done(&l->piece);
    filter_names_done(&l->names);
    rd_free(l);
}

static enum rd_src_status lookup_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                      struct rd_err *err)
{
    struct chunks_lookup *l = impl;
    struct rd_slice s;
    enum rd_src_status status = rd_src_need(l->from, 1, &s);
    *ret_len = 0;
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(l->from));
    if (status != RD_SRC_OK)
        return status;
    *ret_len = s.len < cap ? s.len : cap;
    memcpy(buf, s.ptr, *ret_len);
    rd_src_consume(l->from, *ret_len);
    return RD_SRC_OK;
}

static bool add_bytes(void *ctx, const struct chunks_blob *blob)
{
    struct chunks_cost *cost = ctx;
    cost->set_bytes += blob->stored;
    return true;
}

static enum chunks_found_it look_up(struct chunks_lookup *l, struct archive_repo *repo,
                                    const struct archive_set *set, const struct archive_file *file,
                                    const struct rd_seal_ring *ring, const struct filter *filter,
                                    struct chunks_cost *cost, struct rd_err *err)
{
    const struct chunks_codec codec = {
        .target = repo->target, .ring = ring, .sealed = file->sealed};
    if (!filter_names(filter, &l->names, err))
        return CHUNKS_FAILED;
    if (l->names.n == 0 && l->names.any_slot)
        return CHUNKS_UNKNOWN;
    if (!archive_set_is_proved(set, ring, err) ||
        !chunks_recipe_read(repo, set, file, ring, &l->recipe, err))
        return CHUNKS_FAILED;
    *cost = (struct chunks_cost){1, file->stored.bytes, file->stored.bytes};
    chunks_recipe_each(&l->recipe, add_bytes, cost);
    if ((l->recipe.flags & (CHUNKS_NO_INDEX | CHUNKS_BOUND)) != 0)
        return CHUNKS_UNKNOWN;
    if (!chunks_fetch_init(&l->fetch, repo->store, &codec, &l->recipe, err))
        return CHUNKS_FAILED;
    return l->names.whole && l->names.n > 0 ? write_named(l, set, filter, err)
                                            : chunks_lookup_some(l, filter, err);
}

bool chunks_open_keys(struct rd_src **ret, struct archive_repo *repo, const struct archive_set *set,
                      const struct archive_file *file, const struct rd_seal_ring *ring,
                      const struct filter *filter, struct chunks_cost *cost, struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = lookup_read, .close = lookup_close};
    struct chunks_lookup *l = rd_calloc(1, sizeof *l);
    if (l == NULL)
        return rd_err_nomem(err, sizeof *l);
    *ret = NULL;
    *cost = (struct chunks_cost){.n_requests = 0};
    enum chunks_found_it answer = look_up(l, repo, set, file, ring, filter, cost, err);
    cost->n_requests += l->fetch.n_requests;
    cost->n_bytes += l->fetch.n_bytes;
    if (answer == CHUNKS_FOUND && !spool_source(&l->spool, file->name, &l->from, err))
        answer = CHUNKS_FAILED;
    if (answer != CHUNKS_FOUND) {
        lookup_close(l);
        return answer != CHUNKS_FAILED;
    }
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = file->name);
    return rd_src_new(ret, &ops, l, &opts, err);
}
