/* Items that are sorted by their places in the file, through a spool.
 *
 * The places are divided into segments of about equal size. Every chunk is read once, and each of
 * its items is appended to the bytes of its segment. Then the segments are read one by one. */
#include "chunks/assemble_impl.h"

#include "base/mem.h"

#include <stdlib.h>

enum { SEGMENT = 8 * 1024 * 1024, SEGMENTS_MAX = 1024, BLOCK = 16 * 1024 };

/* Before the bytes of an item. Only this process reads the spool. */
struct head {
    uint32_t place, len;
    uint64_t db;
    uint32_t flags;
};

struct block {
    uint64_t offset; /* in the spool */
    uint32_t len;
};

struct segment {
    struct rd_buf bytes; /* that are not in the spool yet */
    struct block *blocks;
    size_t n_blocks;
};

struct chunks_sorted {
    struct chunks_assembler *a;
    struct spool spool;
    struct segment *segments;
    size_t n, width; /* places of a segment */
    size_t at;       /* the segment that is in memory; n: none */
    struct rd_buf bytes;
    uint32_t *offset; /* in bytes, of each place of the segment */
};

static bool flush(struct chunks_sorted *s, struct segment *seg, struct rd_err *err)
{
    const struct block block = {s->spool.open ? s->spool.size : 0, (uint32_t)seg->bytes.len};
    if (seg->bytes.len == 0)
        return true;
    if ((seg->n_blocks & (seg->n_blocks - 1)) == 0) {
        size_t cap = seg->n_blocks == 0 ? 1 : 2 * seg->n_blocks;
        struct block *blocks = rd_realloc(seg->blocks, cap * sizeof *blocks);
        if (blocks == NULL)
            return rd_err_nomem(err, cap);
        seg->blocks = blocks;
    }
    if (!spool_append(&s->spool, seg->bytes.ptr, seg->bytes.len, err))
        return false;
    seg->blocks[seg->n_blocks++] = block;
    rd_buf_reset(&seg->bytes);
    return true;
}

static bool add_item(struct chunks_sorted *s, size_t place, const struct chunks_items *items,
                     uint32_t i, struct rd_err *err)
{
    struct segment *seg = &s->segments[place / s->width];
    struct rd_slice bytes = chunks_items_at(items, i);
    struct head head = {(uint32_t)(place % s->width), (uint32_t)bytes.len,
                        chunks_items_db(items, i), items->flags[i]};
    if (!rd_buf_reserve(&seg->bytes, sizeof head + bytes.len))
        return rd_err_nomem(err, bytes.len);
    memcpy(seg->bytes.ptr + seg->bytes.len, &head, sizeof head);
    memcpy(seg->bytes.ptr + seg->bytes.len + sizeof head, bytes.ptr, bytes.len);
    seg->bytes.len += sizeof head + bytes.len;
    return seg->bytes.len < BLOCK || flush(s, seg, err);
}

bool chunks_places_by_chunk(const struct chunks_assembler *a, uint32_t *first, uint32_t *at,
                            struct rd_err *err)
{
    size_t n = a->fetch.recipe->n_chunks, index;
    for (size_t i = 0; i < a->places.n; i++) {
        if (!chunks_assemble_find(a, a->places.at[i].ordinal, &index, err))
            return false;
        first[index + 1]++;
    }
    for (size_t c = 0; c < n; c++)
        first[c + 1] += first[c];
    for (size_t i = a->places.n; i-- > 0;) {
        chunks_assemble_find(a, a->places.at[i].ordinal, &index, err);
        at[--first[index + 1]] = (uint32_t)i;
    }
    /* first[c + 1] is now the beginning of c. */
    memmove(first, first + 1, n * sizeof *first);
    first[n] = (uint32_t)a->places.n;
    return true;
}

static bool spread_chunk(struct chunks_sorted *s, size_t index, const uint32_t *at, size_t n,
                         struct rd_err *err)
{
    struct chunks_assembler *a = s->a;
    if (n == 0)
        return true;
    if (!chunks_assemble_load_or_skip(a, index, err))
        return false;
    if (a->lost != NULL && a->lost[index])
        return true;
    const struct chunks_items *items = &a->chunks[index].items;
    for (size_t i = 0; i < n; i++) {
        uint32_t item = a->places.at[at[i]].item;
        if (item >= items->n)
            return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                              "the order names an item of no chunk");
        if (!add_item(s, at[i], items, item, err))
            return false;
    }
    return true;
}

static bool spread(struct chunks_sorted *s, struct rd_err *err)
{
    const struct chunks_recipe *r = s->a->fetch.recipe;
    uint32_t *first = rd_calloc(r->n_chunks + 2, sizeof *first);
    uint32_t *at = rd_calloc(s->a->places.n + 1, sizeof *at);
    bool ok = (first != NULL && at != NULL) || rd_err_nomem(err, s->a->places.n);
    ok = ok && chunks_places_by_chunk(s->a, first, at, err);
    for (size_t c = 0; ok && c < r->n_chunks; c++)
        ok = spread_chunk(s, c, at + first[c], first[c + 1] - first[c], err);
    for (size_t i = 0; ok && i < s->n; i++) {
        ok = flush(s, &s->segments[i], err);
        rd_buf_done(&s->segments[i].bytes);
    }
    rd_free(first);
    rd_free(at);
    return ok;
}

bool chunks_sorted_open(struct chunks_sorted **ret, struct chunks_assembler *a, struct rd_err *err)
{
    uint64_t n = a->fetch.recipe->bytes / SEGMENT + 1;
    struct chunks_sorted *s = rd_calloc(1, sizeof *s);
    if (s == NULL)
        return rd_err_nomem(err, sizeof *s);
    s->a = a;
    s->n = n < SEGMENTS_MAX ? (size_t)n : SEGMENTS_MAX;
    s->width = a->places.n / s->n + 1;
    s->at = s->n;
    s->segments = rd_calloc(s->n, sizeof *s->segments);
    s->offset = rd_calloc(s->width, sizeof *s->offset);
    bool ok = (s->segments != NULL && s->offset != NULL) || rd_err_nomem(err, s->width);
    if (ok && spread(s, err)) {
        *ret = s;
        return true;
    }
    chunks_sorted_close(s);
    return false;
}

void chunks_sorted_close(struct chunks_sorted *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; s->segments != NULL && i < s->n; i++) {
        rd_buf_done(&s->segments[i].bytes);
        rd_free(s->segments[i].blocks);
    }
    rd_free(s->segments);
    rd_free(s->offset);
    rd_buf_done(&s->bytes);
    spool_done(&s->spool);
    rd_free(s);
}

/* Every place has its item once, unless its chunk is lost. */
static bool load(struct chunks_sorted *s, size_t number, struct rd_err *err)
{
    struct segment *seg = &s->segments[number];
    rd_buf_reset(&s->bytes);
    memset(s->offset, 0xff, s->width * sizeof *s->offset);
    for (size_t i = 0; i < seg->n_blocks; i++) {
        const struct block *b = &seg->blocks[i];
        if (!rd_buf_reserve(&s->bytes, b->len))
            return rd_err_nomem(err, b->len);
        if (!spool_read(&s->spool, b->offset, s->bytes.ptr + s->bytes.len, b->len, err))
            return false;
        s->bytes.len += b->len;
    }
    for (size_t at = 0; at < s->bytes.len;) {
        struct head head;
        memcpy(&head, s->bytes.ptr + at, sizeof head);
        s->offset[head.place] = (uint32_t)at;
        at += sizeof head + head.len;
    }
    s->at = number;
    return true;
}

bool chunks_sorted_at(struct chunks_sorted *s, size_t at, bool read, struct chunks_found *ret,
                      bool *ret_there, struct rd_err *err)
{
    size_t number = at / s->width;
    *ret_there = read || number == s->at;
    if (!*ret_there)
        return true;
    if (number != s->at && !load(s, number, err))
        return false;
    uint32_t offset = s->offset[at % s->width];
    if (offset == UINT32_MAX) {
        *ret = (struct chunks_found){.place = s->a->places.at[at], .lost = true};
        return true;
    }
    const uint8_t *from = s->bytes.ptr + offset;
    struct head head;
    memcpy(&head, from, sizeof head);
    *ret = (struct chunks_found){.bytes = rd_slice(from + sizeof head, head.len),
                                 .flags = head.flags,
                                 .db = head.db,
                                 .place = s->a->places.at[at]};
    return true;
}
