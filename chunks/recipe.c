#include "chunks/recipe_impl.h"

#include "base/mem.h"
#include "chunks/bytes_impl.h"

#include <stdio.h>

static const char magic[] = "RDCHUNK1";
enum { MAGIC = 8, BLOB_LEAST = CHUNKS_NAME + 4, VERSION = 1 };

/* An array that doubles its capacity: a power of two that is at least n. */
static void *grow(void *ptr, size_t n, size_t size)
{
    return (n & (n - 1)) == 0 ? rd_realloc(ptr, (n == 0 ? 1 : 2 * n) * size) : ptr;
}

#define ADD(array, n, value, err)                                                                  \
    do {                                                                                           \
        void *grown = grow((array), (n), sizeof *(array));                                         \
        if (grown == NULL)                                                                         \
            return rd_err_nomem((err), sizeof *(array));                                           \
        (array) = grown;                                                                           \
        (array)[(n)++] = (value);                                                                  \
    } while (0)

bool chunks_recipe_add_chunk(struct chunks_recipe *r, const struct chunks_chunk *chunk,
                             struct rd_err *err)
{
    ADD(r->chunks, r->n_chunks, *chunk, err);
    return true;
}

bool chunks_recipe_add_order(struct chunks_recipe *r, const struct chunks_blob *order,
                             struct rd_err *err)
{
    ADD(r->orders, r->n_orders, *order, err);
    return true;
}

bool chunks_recipe_add_run(struct chunks_recipe *r, const struct chunks_run *run,
                           struct rd_err *err)
{
    ADD(r->runs, r->n_runs, *run, err);
    return true;
}

bool chunks_recipe_add_leaf(struct chunks_recipe *r, const struct chunks_leaf *leaf,
                            struct rd_err *err)
{
    ADD(r->leaves, r->n_leaves, *leaf, err);
    return true;
}

bool chunks_run_add_page(struct chunks_run *run, const struct chunks_page *page, struct rd_err *err)
{
    ADD(run->pages, run->n_pages, *page, err);
    return true;
}

static bool add_pack(struct chunks_recipe *r, const struct chunks_pack *pack, struct rd_err *err)
{
    ADD(r->packs, r->n_packs, *pack, err);
    return true;
}

uint32_t chunks_recipe_pack(struct chunks_recipe *r, const char *name)
{
    struct chunks_pack pack = {.bytes = 0};
    for (size_t i = r->n_packs; i-- > 0;)
        if (strcmp(r->packs[i].name, name) == 0)
            return (uint32_t)i;
    snprintf(pack.name, sizeof pack.name, "%s", name);
    return add_pack(r, &pack, NULL) ? (uint32_t)(r->n_packs - 1) : UINT32_MAX;
}

/* The first chunk of an ordinal that is not smaller. */
static size_t from_ordinal(const struct chunks_recipe *r, uint32_t ordinal)
{
    size_t low = 0, high = r->n_chunks;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (r->chunks[mid].ordinal < ordinal)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct chunks_chunk *chunks_recipe_find(const struct chunks_recipe *r, uint32_t ordinal)
{
    size_t i = from_ordinal(r, ordinal);
    return i < r->n_chunks && r->chunks[i].ordinal == ordinal ? &r->chunks[i] : NULL;
}

bool chunks_recipe_any(const struct chunks_recipe *r, uint32_t first, uint32_t last)
{
    size_t i = from_ordinal(r, first);
    return i < r->n_chunks && r->chunks[i].ordinal <= last;
}

bool chunks_recipe_each(const struct chunks_recipe *r,
                        bool (*each)(void *ctx, const struct chunks_blob *blob), void *ctx)
{
    bool ok = true;
    for (size_t i = 0; ok && i < r->n_chunks; i++)
        ok = each(ctx, &r->chunks[i].blob);
    for (size_t i = 0; ok && i < r->n_orders; i++)
        ok = each(ctx, &r->orders[i]);
    for (size_t i = 0; ok && i < r->n_runs; i++)
        for (size_t j = 0; ok && j < r->runs[i].n_pages; j++)
            ok = each(ctx, &r->runs[i].pages[j].blob);
    for (size_t i = 0; ok && i < r->n_leaves; i++)
        ok = each(ctx, &r->leaves[i].blob);
    return ok;
}

void chunks_recipe_done(struct chunks_recipe *r)
{
    for (size_t i = 0; i < r->n_runs; i++)
        rd_free(r->runs[i].pages);
    rd_free(r->runs);
    rd_free(r->packs);
    rd_free(r->chunks);
    rd_free(r->orders);
    rd_free(r->leaves);
    *r = (struct chunks_recipe){.number = 0};
}

bool chunks_recipe_copy(struct chunks_recipe *ret, const struct chunks_recipe *r,
                        struct rd_err *err)
{
    struct rd_buf bytes = {0};
    bool ok =
        chunks_recipe_print(r, &bytes, err) && chunks_recipe_parse(ret, rd_buf_slice(&bytes), err);
    rd_buf_done(&bytes);
    return ok;
}

static bool mark_pack(void *ctx, const struct chunks_blob *blob)
{
    ((bool *)ctx)[blob->pack] = true;
    return true;
}

static void renumber(struct chunks_recipe *r, const uint32_t *to)
{
    for (size_t i = 0; i < r->n_chunks; i++)
        r->chunks[i].blob.pack = to[r->chunks[i].blob.pack];
    for (size_t i = 0; i < r->n_orders; i++)
        r->orders[i].pack = to[r->orders[i].pack];
    for (size_t i = 0; i < r->n_runs; i++)
        for (size_t j = 0; j < r->runs[i].n_pages; j++)
            r->runs[i].pages[j].blob.pack = to[r->runs[i].pages[j].blob.pack];
    for (size_t i = 0; i < r->n_leaves; i++)
        r->leaves[i].blob.pack = to[r->leaves[i].blob.pack];
}

bool chunks_recipe_trim(struct chunks_recipe *r, struct rd_err *err)
{
    bool *used = rd_calloc(r->n_packs + 1, sizeof *used);
    uint32_t *to = rd_calloc(r->n_packs + 1, sizeof *to);
    size_t n = 0;
    bool ok = used != NULL && to != NULL;
    if (ok) {
        chunks_recipe_each(r, mark_pack, used);
        for (size_t i = 0; i < r->n_packs; i++) {
            to[i] = (uint32_t)n;
            if (used[i])
                r->packs[n++] = r->packs[i];
        }
        /* The capacity stays a power of two that is at least n. */
        r->n_packs = n;
        struct chunks_pack *packs = NULL;
        size_t cap = 1;
        while (cap < n)
            cap *= 2;
        packs = rd_realloc(r->packs, cap * sizeof *packs);
        ok = packs != NULL;
        r->packs = ok ? packs : r->packs;
        renumber(r, to);
    }
    rd_free(used);
    rd_free(to);
    return ok || rd_err_nomem(err, r->n_packs);
}

/* ---- bytes ---- */

static bool put_blob(struct rd_buf *out, const struct chunks_blob *blob)
{
    return rd_buf_add(out, blob->name, CHUNKS_NAME) && chunks_put(out, blob->pack) &&
           chunks_put(out, blob->offset) && chunks_put(out, blob->stored) &&
           chunks_put(out, blob->raw);
}

static bool put_chunks(struct rd_buf *out, const struct chunks_recipe *r)
{
    uint32_t before = 0;
    bool ok = chunks_put(out, r->n_chunks);
    for (size_t i = 0; ok && i < r->n_chunks; i++) {
        const struct chunks_chunk *c = &r->chunks[i];
        ok = chunks_put(out, c->ordinal - before) && rd_buf_add_byte(out, c->blob.kind) &&
             chunks_put(out, c->born) && chunks_put(out, c->n_items) && chunks_put(out, c->live) &&
             put_blob(out, &c->blob);
        before = c->ordinal;
    }
    return ok;
}

static bool put_runs(struct rd_buf *out, const struct chunks_recipe *r)
{
    bool ok = chunks_put(out, r->n_runs);
    for (size_t i = 0; ok && i < r->n_runs; i++) {
        const struct chunks_run *run = &r->runs[i];
        ok = chunks_put(out, run->from) && chunks_put(out, run->n_entries) &&
             chunks_put(out, run->n_pages);
        for (size_t j = 0; ok && j < run->n_pages; j++)
            ok = chunks_put_u64(out, run->pages[j].first) && put_blob(out, &run->pages[j].blob);
    }
    return ok;
}

static bool put_leaves(struct rd_buf *out, const struct chunks_recipe *r)
{
    bool ok = chunks_put(out, r->n_leaves);
    for (size_t i = 0; ok && i < r->n_leaves; i++)
        ok = rd_buf_add_byte(out, r->leaves[i].blob.kind) && chunks_put(out, r->leaves[i].first) &&
             chunks_put(out, r->leaves[i].last - r->leaves[i].first) &&
             put_blob(out, &r->leaves[i].blob);
    return ok;
}

static bool put_packs(struct rd_buf *out, const struct chunks_recipe *r)
{
    bool ok = chunks_put(out, r->n_packs);
    for (size_t i = 0; ok && i < r->n_packs; i++) {
        size_t len = strlen(r->packs[i].name);
        ok = chunks_put(out, len) && rd_buf_add(out, r->packs[i].name, len) &&
             chunks_put(out, r->packs[i].bytes);
    }
    return ok;
}

bool chunks_recipe_print(const struct chunks_recipe *r, struct rd_buf *ret, struct rd_err *err)
{
    bool ok = rd_buf_add(ret, magic, MAGIC) && chunks_put(ret, VERSION) &&
              rd_buf_add(ret, r->key, CHUNKS_KEY) && chunks_put(ret, r->number) &&
              chunks_put(ret, r->next_ordinal) && chunks_put(ret, r->flags) &&
              chunks_put(ret, r->n_items) && chunks_put(ret, r->bytes) &&
              chunks_put(ret, r->added) && rd_buf_add(ret, r->head, sizeof r->head) &&
              put_packs(ret, r) && put_chunks(ret, r) && chunks_put(ret, r->n_orders);
    for (size_t i = 0; ok && i < r->n_orders; i++)
        ok = rd_buf_add_byte(ret, r->orders[i].kind) && put_blob(ret, &r->orders[i]);
    ok = ok && put_runs(ret, r) && put_leaves(ret, r);
    return ok || rd_err_nomem(err, ret->len);
}

static struct chunks_blob get_blob(struct chunks_in *in, const struct chunks_recipe *r,
                                   enum chunks_kind kind)
{
    struct chunks_blob blob = {.kind = (uint8_t)kind};
    const uint8_t *name = chunks_get_bytes(in, CHUNKS_NAME);
    if (name != NULL)
        memcpy(blob.name, name, CHUNKS_NAME);
    blob.pack = (uint32_t)chunks_get_max(in, r->n_packs > 0 ? r->n_packs - 1 : 0);
    blob.offset = chunks_get_max(in, INT64_MAX);
    blob.stored = (uint32_t)chunks_get_max(in, CHUNKS_STORED_MAX);
    blob.raw = (uint32_t)chunks_get_max(in, CHUNKS_RAW_MAX);
    in->failed = in->failed || r->n_packs == 0 || blob.stored == 0;
    return blob;
}

static bool get_packs(struct chunks_in *in, struct chunks_recipe *r, struct rd_err *err)
{
    size_t n = chunks_get_count(in, 2);
    for (size_t i = 0; i < n && !in->failed; i++) {
        struct chunks_pack pack = {.bytes = 0};
        size_t len = (size_t)chunks_get_max(in, sizeof pack.name - 1);
        const uint8_t *name = chunks_get_bytes(in, len);
        if (name != NULL)
            memcpy(pack.name, name, len);
        pack.bytes = chunks_get(in);
        if (!add_pack(r, &pack, err))
            return false;
    }
    return true;
}

static bool get_chunks(struct chunks_in *in, struct chunks_recipe *r, struct rd_err *err)
{
    uint64_t ordinal = 0;
    size_t n = chunks_get_count(in, BLOB_LEAST);
    for (size_t i = 0; i < n && !in->failed; i++) {
        struct chunks_chunk c = {.ordinal = 0};
        uint64_t step = chunks_get(in);
        ordinal += step;
        const uint8_t *kind = chunks_get_bytes(in, 1);
        c.born = (uint32_t)chunks_get_max(in, UINT32_MAX);
        c.n_items = (uint32_t)chunks_get_max(in, UINT32_MAX);
        c.live = (uint32_t)chunks_get_max(in, UINT32_MAX);
        c.ordinal = (uint32_t)ordinal;
        c.blob = get_blob(in, r, kind != NULL ? (enum chunks_kind) * kind : CHUNKS_ITEMS);
        in->failed = in->failed || c.blob.kind > CHUNKS_PIECE || (i > 0 && step == 0) ||
                     step > UINT32_MAX || ordinal >= r->next_ordinal;
        if (!chunks_recipe_add_chunk(r, &c, err))
            return false;
    }
    return true;
}

static bool get_run(struct chunks_in *in, struct chunks_recipe *r, struct rd_err *err)
{
    struct chunks_run run = {.from = (uint32_t)chunks_get_max(in, UINT32_MAX)};
    run.n_entries = chunks_get(in);
    size_t n = chunks_get_count(in, BLOB_LEAST + 8);
    bool ok = true;
    for (size_t i = 0; ok && i < n && !in->failed; i++) {
        struct chunks_page page = {.first = chunks_get_u64(in)};
        page.blob = get_blob(in, r, CHUNKS_PAGE);
        ok = chunks_run_add_page(&run, &page, err);
    }
    if (ok && chunks_recipe_add_run(r, &run, err))
        return true;
    rd_free(run.pages);
    return false;
}

static bool get_leaves(struct chunks_in *in, struct chunks_recipe *r, struct rd_err *err)
{
    size_t n = chunks_get_count(in, BLOB_LEAST + 3);
    uint8_t before = CHUNKS_PREFIXES;
    for (size_t i = 0; i < n && !in->failed; i++) {
        const uint8_t *kind = chunks_get_bytes(in, 1);
        struct chunks_leaf leaf = {.first = (uint32_t)chunks_get_max(in, UINT32_MAX)};
        leaf.last = leaf.first + (uint32_t)chunks_get_max(in, UINT32_MAX - leaf.first);
        leaf.blob = get_blob(in, r, kind != NULL ? (enum chunks_kind) * kind : CHUNKS_PREFIXES);
        in->failed = in->failed || leaf.blob.kind < before || leaf.blob.kind > CHUNKS_SLOTS;
        before = leaf.blob.kind;
        if (!chunks_recipe_add_leaf(r, &leaf, err))
            return false;
    }
    return true;
}

/* Every item takes a byte of the file, and one of its chunk. What is made of the orders is as long
 * as n_items says. */
static bool has_its_items(const struct chunks_recipe *r)
{
    uint64_t n = 0;
    for (size_t i = 0; i < r->n_chunks; i++) {
        const struct chunks_chunk *c = &r->chunks[i];
        if (c->n_items > c->blob.raw)
            return false;
        n += c->n_items;
    }
    return r->n_items <= n && r->n_items <= r->bytes;
}

static bool get_rest(struct chunks_in *in, struct chunks_recipe *r, struct rd_err *err)
{
    if (!get_packs(in, r, err) || !get_chunks(in, r, err))
        return false;
    size_t n = chunks_get_count(in, BLOB_LEAST + 1);
    for (size_t i = 0; i < n && !in->failed; i++) {
        const uint8_t *kind = chunks_get_bytes(in, 1);
        const struct chunks_blob order =
            get_blob(in, r, kind != NULL ? (enum chunks_kind) * kind : CHUNKS_ORDER);
        in->failed = in->failed || (order.kind != CHUNKS_ORDER && order.kind != CHUNKS_ORDER_PART);
        if (!chunks_recipe_add_order(r, &order, err))
            return false;
    }
    n = chunks_get_count(in, 3);
    for (size_t i = 0; i < n && !in->failed; i++)
        if (!get_run(in, r, err))
            return false;
    if (!get_leaves(in, r, err))
        return false;
    return !(in->failed || in->at != in->end || r->n_orders == 0 || !has_its_items(r)) ||
           rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the recipe of the file is damaged");
}

bool chunks_recipe_parse(struct chunks_recipe *ret, struct rd_slice bytes, struct rd_err *err)
{
    struct chunks_in in = chunks_in_of(bytes);
    struct chunks_recipe r = {.number = 0};
    const uint8_t *begin = chunks_get_bytes(&in, MAGIC);
    if (begin == NULL || memcmp(begin, magic, MAGIC) != 0)
        return rd_err_set(err, RD_ERR_CORRUPT, 0, "this is not a recipe of chunks");
    if (chunks_get(&in) != VERSION)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, MAGIC, "a newer version of chunks");
    const uint8_t *key = chunks_get_bytes(&in, CHUNKS_KEY);
    if (key != NULL)
        memcpy(r.key, key, CHUNKS_KEY);
    r.number = (uint32_t)chunks_get_max(&in, UINT32_MAX);
    r.next_ordinal = (uint32_t)chunks_get_max(&in, UINT32_MAX);
    r.flags = (uint32_t)chunks_get_max(&in, UINT32_MAX);
    r.n_items = chunks_get_max(&in, UINT32_MAX - 1);
    r.bytes = chunks_get(&in);
    r.added = chunks_get(&in);
    const uint8_t *head = chunks_get_bytes(&in, sizeof r.head);
    if (head != NULL)
        memcpy(r.head, head, sizeof r.head);
    if (!get_rest(&in, &r, err)) {
        chunks_recipe_done(&r);
        return false;
    }
    *ret = r;
    return true;
}
