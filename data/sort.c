/* Sorted runs of records in a spool, merged with a heap.
 *
 *     record   key's length (4)  value's length (4)  key  value
 *     arena    records …  →  free  ←  … index, 16 bytes a record
 *
 * The index is sorted by merging, with the free space before it as the second buffer. */
#include "data/sort.h"

#include "base/endian.h"
#include "base/mem.h"

enum { HEAD = 8, FAN_MAX = 256, RUN_BUFFER_MAX = 64 * 1024, BLOCK = 8 };

struct entry {
    uint64_t lead; /* the first bytes of the key, as a number with the same order */
    uint64_t at;   /* offset in the arena */
};

/* A run that is being merged: a window on it. */
struct sort_run {
    uint64_t at;  /* offset in the spool of the next bytes to read */
    uint64_t end; /* of the run */
    uint8_t *buf;
    size_t cap, len, pos; /* the current record is at pos */
};

static struct rd_slice key_of(const uint8_t *record)
{
    return rd_slice(record + HEAD, rd_get_le32(record));
}

static struct rd_slice value_of(const uint8_t *record)
{
    return rd_slice(record + HEAD + rd_get_le32(record), rd_get_le32(record + 4));
}

static size_t size_of(const uint8_t *record)
{
    return HEAD + (size_t)rd_get_le32(record) + rd_get_le32(record + 4);
}

static int compare(const uint8_t *a, const uint8_t *b)
{
    int order = rd_slice_cmp(key_of(a), key_of(b));
    return order != 0 ? order : rd_slice_cmp(value_of(a), value_of(b));
}

bool sort_init(struct sort *sort, size_t memory, struct rd_err *err)
{
    *sort = (struct sort){.memory = memory / sizeof(struct entry) * sizeof(struct entry)};
    sort->arena = rd_alloc(sort->memory);
    return sort->arena != NULL || rd_err_nomem(err, memory);
}

void sort_done(struct sort *sort)
{
    for (size_t i = 0; sort->heap != NULL && i < FAN_MAX; i++)
        rd_free(sort->heap[i].buf);
    rd_free(sort->heap);
    rd_free(sort->arena);
    rd_buf_done(&sort->ends);
    spool_done(&sort->spool);
    *sort = (struct sort){0};
}

/* ---- in memory ---- */

/* The index; its first entry is the record added last. */
static struct entry *index_of(const struct sort *sort)
{
    void *end = sort->arena + sort->memory;
    return (struct entry *)end - sort->n;
}

static bool is_before(const struct sort *sort, const struct entry *a, const struct entry *b)
{
    if (a->lead != b->lead)
        return a->lead < b->lead;
    return compare(sort->arena + a->at, sort->arena + b->at) < 0;
}

static void sort_block(const struct sort *sort, struct entry *e, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct entry moved = e[i];
        size_t j = i;
        for (; j > 0 && is_before(sort, &moved, &e[j - 1]); j--)
            e[j] = e[j - 1];
        e[j] = moved;
    }
}

static void merge_blocks(const struct sort *sort, const struct entry *a, size_t n_a,
                         const struct entry *b, size_t n_b, struct entry *to)
{
    while (n_a > 0 && n_b > 0) {
        if (is_before(sort, b, a)) {
            *to++ = *b++;
            n_b--;
        } else {
            *to++ = *a++;
            n_a--;
        }
    }
    if (n_a > 0)
        memcpy(to, a, n_a * sizeof *a);
    if (n_b > 0)
        memcpy(to, b, n_b * sizeof *b);
}

/* Sorts the index in place. */
static void sort_index(struct sort *sort)
{
    struct entry *from = index_of(sort), *to = from - sort->n;
    size_t n = sort->n;
    for (size_t i = 0; i < n; i += BLOCK)
        sort_block(sort, from + i, n - i < BLOCK ? n - i : BLOCK);
    for (size_t width = BLOCK; width < n; width *= 2) {
        for (size_t i = 0; i < n; i += 2 * width) {
            size_t n_a = n - i < width ? n - i : width;
            size_t n_b = n - i - n_a < width ? n - i - n_a : width;
            merge_blocks(sort, from + i, n_a, from + i + n_a, n_b, to + i);
        }
        struct entry *swap = from;
        from = to;
        to = swap;
    }
    if (from != index_of(sort))
        memcpy(index_of(sort), from, n * sizeof *from);
}

static bool end_run(struct rd_buf *ends, uint64_t end, struct rd_err *err)
{
    return rd_buf_add(ends, &end, sizeof end) || rd_err_nomem(err, sizeof end);
}

/* A buffer for output to a spool. */
struct gather {
    struct spool *spool;
    uint8_t *buf;
    size_t len;
};

static bool gather_flush(struct gather *g, struct rd_err *err)
{
    size_t len = g->len;
    g->len = 0;
    return len == 0 || spool_append(g->spool, g->buf, len, err);
}

static bool gather_add(struct gather *g, const uint8_t *record, struct rd_err *err)
{
    size_t size = size_of(record);
    if (RUN_BUFFER_MAX - g->len < size && !gather_flush(g, err))
        return false;
    memcpy(g->buf + g->len, record, size);
    g->len += size;
    return true;
}

static bool gather_begin(struct gather *g, struct spool *spool, struct rd_err *err)
{
    *g = (struct gather){.spool = spool, .buf = rd_alloc(RUN_BUFFER_MAX)};
    return g->buf != NULL || rd_err_nomem(err, RUN_BUFFER_MAX);
}

/* Writes the records in memory to the spool as a run. */
static bool put_run(struct sort *sort, struct rd_err *err)
{
    struct gather g;
    if (!gather_begin(&g, &sort->spool, err))
        return false;
    sort_index(sort);
    const struct entry *e = index_of(sort);
    bool ok = true;
    for (size_t i = 0; ok && i < sort->n; i++)
        ok = gather_add(&g, sort->arena + e[i].at, err);
    ok = ok && gather_flush(&g, err) && end_run(&sort->ends, sort->spool.size, err);
    rd_free(g.buf);
    sort->n = sort->used = 0;
    return ok;
}

static uint64_t lead_of(struct rd_slice key)
{
    uint8_t bytes[8] = {0};
    if (key.len > 0)
        memcpy(bytes, key.ptr, key.len < 8 ? key.len : 8);
    return rd_get_be64(bytes);
}

static void copy(uint8_t *dst, struct rd_slice bytes)
{
    if (bytes.len > 0)
        memcpy(dst, bytes.ptr, bytes.len);
}

bool sort_add(struct sort *sort, struct rd_slice key, struct rd_slice value, struct rd_err *err)
{
    if (key.len > SORT_RECORD_MAX || value.len > SORT_RECORD_MAX - key.len)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "record too long to sort");
    size_t size = HEAD + key.len + value.len;
    size_t taken = sort->used + 2 * sizeof(struct entry) * (sort->n + 1) + sizeof(struct entry);
    if (taken + size > sort->memory && !put_run(sort, err))
        return false;
    uint8_t *p = sort->arena + sort->used;
    rd_put_le32(p, (uint32_t)key.len);
    rd_put_le32(p + 4, (uint32_t)value.len);
    copy(p + HEAD, key);
    copy(p + HEAD + key.len, value);
    sort->n++;
    *index_of(sort) = (struct entry){.lead = lead_of(key), .at = sort->used};
    sort->used += size;
    return true;
}

/* ---- merging ---- */

/* Reads until the next record is complete in the window; *ret_end if there is none. */
static bool run_fill(const struct spool *spool, struct sort_run *run, bool *ret_end,
                     struct rd_err *err)
{
    size_t have = run->len - run->pos;
    *ret_end = false;
    if (have >= HEAD && have >= size_of(run->buf + run->pos))
        return true;
    uint64_t left = run->end - run->at;
    *ret_end = have == 0 && left == 0;
    if (*ret_end)
        return true;
    memmove(run->buf, run->buf + run->pos, have);
    size_t n = left < run->cap - have ? (size_t)left : run->cap - have;
    if (!spool_read(spool, run->at, run->buf + have, n, err))
        return false;
    run->at += n;
    run->len = have + n;
    run->pos = 0;
    return true;
}

static const uint8_t *record_of(const struct sort_run *run)
{
    return run->buf + run->pos;
}

static void swap_runs(struct sort_run *a, struct sort_run *b)
{
    struct sort_run t = *a;
    *a = *b;
    *b = t;
}

static void sink_down(struct sort *sort, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < sort->n_heap; at = child) {
        struct sort_run *heap = sort->heap;
        if (child + 1 < sort->n_heap &&
            compare(record_of(&heap[child + 1]), record_of(&heap[child])) < 0)
            child++;
        if (compare(record_of(&heap[at]), record_of(&heap[child])) <= 0)
            return;
        swap_runs(&heap[at], &heap[child]);
    }
}

static size_t n_runs(const struct sort *sort)
{
    return sort->ends.len / sizeof(uint64_t);
}

static uint64_t end_of(const struct sort *sort, size_t run)
{
    uint64_t end;
    memcpy(&end, sort->ends.ptr + run * sizeof end, sizeof end);
    return end;
}

/* Opens windows on n runs from `first` on, in heap order. The arena must be free. */
static bool open_runs(struct sort *sort, size_t first, size_t n, struct rd_err *err)
{
    size_t cap = sort->memory / FAN_MAX;
    cap = cap > RUN_BUFFER_MAX ? RUN_BUFFER_MAX : cap;
    cap = cap < SORT_RECORD_MAX + HEAD ? SORT_RECORD_MAX + HEAD : cap;
    if (sort->heap == NULL)
        sort->heap = rd_calloc(FAN_MAX, sizeof *sort->heap);
    if (sort->heap == NULL)
        return rd_err_nomem(err, FAN_MAX * sizeof *sort->heap);
    for (size_t i = 0; i < n; i++) {
        struct sort_run *run = &sort->heap[i];
        bool end;
        run->at = first + i > 0 ? end_of(sort, first + i - 1) : 0;
        run->end = end_of(sort, first + i);
        run->cap = cap;
        run->len = run->pos = 0;
        if (run->buf == NULL && (run->buf = rd_alloc(cap)) == NULL)
            return rd_err_nomem(err, cap);
        if (!run_fill(&sort->spool, run, &end, err))
            return false;
    }
    sort->n_heap = n;
    sort->given = false;
    for (size_t i = n / 2; i-- > 0;)
        sink_down(sort, i);
    return true;
}

/* The smallest record of the open runs; NULL in *ret at their end. */
static bool next_of_runs(struct sort *sort, const uint8_t **ret, struct rd_err *err)
{
    struct sort_run *first = sort->heap;
    *ret = NULL;
    if (sort->given && sort->n_heap > 0) {
        bool end;
        first->pos += size_of(record_of(first));
        if (!run_fill(&sort->spool, first, &end, err))
            return false;
        if (end)
            swap_runs(first, &first[--sort->n_heap]);
        sink_down(sort, 0);
    }
    sort->given = true;
    if (sort->n_heap > 0)
        *ret = record_of(first);
    return true;
}

static bool merge_some(struct sort *sort, size_t first, size_t n, struct gather *g,
                       struct rd_err *err)
{
    const uint8_t *record;
    if (!open_runs(sort, first, n, err))
        return false;
    while (next_of_runs(sort, &record, err)) {
        if (record == NULL)
            return gather_flush(g, err);
        if (!gather_add(g, record, err))
            return false;
    }
    return false;
}

/* Merges each group of FAN_MAX runs into one. */
static bool merge_round(struct sort *sort, struct rd_err *err)
{
    struct spool merged = {0};
    struct rd_buf ends = {0};
    struct gather g;
    bool ok = gather_begin(&g, &merged, err);
    for (size_t first = 0; ok && first < n_runs(sort); first += FAN_MAX) {
        size_t n = n_runs(sort) - first;
        ok = merge_some(sort, first, n < FAN_MAX ? n : FAN_MAX, &g, err) &&
             end_run(&ends, merged.size, err);
    }
    rd_free(g.buf);
    spool_done(ok ? &sort->spool : &merged);
    rd_buf_done(ok ? &sort->ends : &ends);
    if (ok) {
        sort->spool = merged;
        sort->ends = ends;
    }
    return ok;
}

bool sort_begin(struct sort *sort, struct rd_err *err)
{
    if (n_runs(sort) == 0) {
        sort_index(sort);
        return true;
    }
    if (sort->n > 0 && !put_run(sort, err))
        return false;
    rd_free(sort->arena);
    sort->arena = NULL;
    while (n_runs(sort) > FAN_MAX)
        if (!merge_round(sort, err))
            return false;
    return open_runs(sort, 0, n_runs(sort), err);
}

bool sort_next(struct sort *sort, struct rd_slice *ret_key, struct rd_slice *ret_value,
               bool *ret_end, struct rd_err *err)
{
    const uint8_t *record = NULL;
    if (sort->heap != NULL) {
        if (!next_of_runs(sort, &record, err))
            return false;
    } else if (sort->next < sort->n) {
        record = sort->arena + index_of(sort)[sort->next++].at;
    }
    *ret_end = record == NULL;
    if (record != NULL) {
        *ret_key = key_of(record);
        *ret_value = value_of(record);
    }
    return true;
}
