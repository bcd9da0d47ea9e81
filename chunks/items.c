#include "chunks/items_impl.h"

#include "base/mem.h"

bool chunks_builder_add(struct chunks_builder *b, struct rd_slice bytes, unsigned flags,
                        uint64_t db)
{
    if (b->n == 0 || db != b->db) {
        if (!chunks_put(&b->dbs, b->n - b->last_db_item) || !chunks_put(&b->dbs, db))
            return false;
        b->last_db_item = b->n;
        b->n_dbs++;
        b->db = db;
    }
    b->n++;
    return chunks_put(&b->lengths, (uint64_t)bytes.len << 2 | flags) &&
           rd_buf_add(&b->bytes, bytes.ptr, bytes.len);
}

bool chunks_builder_end(struct chunks_builder *b, struct rd_buf *ret)
{
    bool ok = chunks_put(ret, b->n) && rd_buf_add(ret, b->lengths.ptr, b->lengths.len) &&
              chunks_put(ret, b->n_dbs) && rd_buf_add(ret, b->dbs.ptr, b->dbs.len) &&
              rd_buf_add(ret, b->bytes.ptr, b->bytes.len);
    rd_buf_reset(&b->lengths);
    rd_buf_reset(&b->dbs);
    rd_buf_reset(&b->bytes);
    b->n = b->n_dbs = b->last_db_item = 0;
    return ok;
}

void chunks_builder_done(struct chunks_builder *b)
{
    rd_buf_done(&b->lengths);
    rd_buf_done(&b->dbs);
    rd_buf_done(&b->bytes);
}

void chunks_items_done(struct chunks_items *items)
{
    rd_free(items->ends);
    rd_free(items->flags);
    rd_free(items->dbs);
    *items = (struct chunks_items){.n = 0};
}

static bool damaged(struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the chunk has no valid list of items");
}

static bool parse(struct chunks_items *items, struct chunks_in *in, struct rd_err *err)
{
    size_t n = chunks_get_count(in, 1);
    uint64_t end = 0, first = 0;
    items->ends = rd_calloc(n + 1, sizeof *items->ends);
    items->flags = rd_calloc(n + 1, 1);
    if (items->ends == NULL || items->flags == NULL)
        return rd_err_nomem(err, n);
    for (items->n = 0; items->n < n; items->n++) {
        uint64_t word = chunks_get_max(in, (uint64_t)UINT32_MAX << 2);
        end += word >> 2;
        if (in->failed || end > UINT32_MAX)
            return damaged(err);
        items->ends[items->n] = (uint32_t)end;
        items->flags[items->n] = word & 3;
    }
    size_t n_dbs = chunks_get_count(in, 2);
    items->dbs = rd_calloc(n_dbs + 1, sizeof *items->dbs);
    if (items->dbs == NULL)
        return rd_err_nomem(err, n_dbs);
    for (; items->n_dbs < n_dbs; items->n_dbs++) {
        first += chunks_get_max(in, UINT32_MAX);
        items->dbs[items->n_dbs] = (struct chunks_db){(uint32_t)first, chunks_get(in)};
    }
    items->bytes = rd_slice(in->at, chunks_left(in));
    return (!in->failed && items->bytes.len == end) || damaged(err);
}

bool chunks_items_parse(struct chunks_items *ret, struct rd_slice plain, struct rd_err *err)
{
    struct chunks_items items = {.n = 0};
    struct chunks_in in = chunks_in_of(plain);
    if (!parse(&items, &in, err)) {
        chunks_items_done(&items);
        return false;
    }
    *ret = items;
    return true;
}

struct rd_slice chunks_items_at(const struct chunks_items *items, uint32_t i)
{
    uint32_t begin = i > 0 ? items->ends[i - 1] : 0;
    return rd_slice(items->bytes.ptr + begin, items->ends[i] - begin);
}

uint64_t chunks_items_db(const struct chunks_items *items, uint32_t i)
{
    uint32_t low = 0, high = items->n_dbs;
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (items->dbs[mid].first <= i)
            low = mid;
        else
            high = mid;
    }
    return items->n_dbs > 0 ? items->dbs[low].db : 0;
}

bool chunks_long_put(struct rd_buf *out, uint64_t hash, uint64_t bytes, const uint32_t *pieces,
                     size_t n)
{
    bool ok = chunks_put_u64(out, hash) && chunks_put(out, bytes) && chunks_put(out, n);
    for (size_t i = 0; ok && i < n; i++)
        ok = chunks_put(out, pieces[i]);
    return ok;
}

bool chunks_long_parse(struct chunks_long *ret, struct rd_slice item, struct rd_err *err)
{
    struct chunks_in in = chunks_in_of(item);
    struct chunks_long l = {.hash = chunks_get_u64(&in)};
    l.bytes = chunks_get(&in);
    l.n = chunks_get_count(&in, 1);
    l.at = in.at;
    l.len = chunks_left(&in);
    if (in.failed)
        return damaged(err);
    *ret = l;
    return true;
}

bool chunks_long_piece(struct chunks_in *in, const struct chunks_recipe *recipe,
                       const struct chunks_chunk **ret, struct rd_err *err)
{
    uint32_t ordinal = (uint32_t)chunks_get_max(in, UINT32_MAX);
    *ret = chunks_recipe_find(recipe, ordinal);
    return (!in->failed && *ret != NULL && (*ret)->blob.kind == CHUNKS_PIECE) ||
           rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                      "a long item names a piece that is not there");
}

bool chunks_long_hash_begin(struct rd_buf *out, const struct chunks_long *l)
{
    return chunks_put_u64(out, l->hash) && chunks_put_u64(out, l->bytes) &&
           chunks_put_u64(out, l->n);
}
