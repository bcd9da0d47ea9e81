#include "chunks/runs_impl.h"

#include "base/mem.h"
#include "chunks/bytes_impl.h"

enum { EXTRA_BITS = 6 };

bool chunks_entries_reserve(struct chunks_entries *e, size_t cap, struct rd_err *err)
{
    if (cap <= e->cap)
        return true;
    struct chunks_entry *at = rd_realloc(e->at, cap * sizeof *at);
    if (at == NULL)
        return rd_err_nomem(err, cap * sizeof *at);
    e->at = at;
    e->cap = cap;
    return true;
}

bool chunks_entries_add(struct chunks_entries *e, uint64_t key, uint32_t ordinal,
                        struct rd_err *err)
{
    if (e->n == e->cap && !chunks_entries_reserve(e, 2 * e->cap + 64, err))
        return false;
    e->at[e->n++] = (struct chunks_entry){key, ordinal};
    return true;
}

/* Entries with chunks before the one that says that the key is gone. */
static bool is_before(const struct chunks_entry *a, const struct chunks_entry *b)
{
    return a->key != b->key ? a->key < b->key : a->ordinal < b->ordinal;
}

static void sort_few(struct chunks_entry *at, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct chunks_entry entry = at[i];
        size_t j = i;
        for (; j > 0 && is_before(&entry, &at[j - 1]); j--)
            at[j] = at[j - 1];
        at[j] = entry;
    }
}

/* In place, by a byte of the hash: hashes are evenly spread, so that few are left for the next. */
static void sort_by_byte(struct chunks_entry *at, size_t n, unsigned shift)
{
    size_t begin[257] = {0}, next[256];
    for (size_t i = 0; i < n; i++)
        begin[(at[i].key >> shift & 0xff) + 1]++;
    for (unsigned b = 0; b < 256; b++) {
        begin[b + 1] += begin[b];
        next[b] = begin[b];
    }
    for (unsigned b = 0; b < 256; b++)
        while (next[b] < begin[b + 1]) {
            struct chunks_entry entry = at[next[b]];
            unsigned to = entry.key >> shift & 0xff;
            at[next[b]] = at[next[to]];
            at[next[to]++] = entry;
        }
    for (unsigned b = 0; b < 256; b++) {
        size_t len = begin[b + 1] - begin[b];
        if (len > 32 && shift > 0)
            sort_by_byte(at + begin[b], len, shift - 8);
        else
            sort_few(at + begin[b], len);
    }
}

void chunks_entries_sort(struct chunks_entries *e, bool *ret_twice)
{
    size_t n = 0;
    *ret_twice = false;
    sort_by_byte(e->at, e->n, 56);
    for (size_t i = 0; i < e->n; i++) {
        const struct chunks_entry *before = n > 0 ? &e->at[n - 1] : NULL;
        bool same = before != NULL && before->key == e->at[i].key;
        if (same && e->at[i].ordinal == CHUNKS_GONE)
            continue;
        *ret_twice = *ret_twice || same;
        e->at[n++] = e->at[i];
    }
    e->n = n;
}

void chunks_entries_done(struct chunks_entries *e)
{
    rd_free(e->at);
    *e = (struct chunks_entries){.n = 0};
}

unsigned chunks_run_bits(uint64_t n)
{
    unsigned bits = EXTRA_BITS;
    while (bits < 64 && ((uint64_t)1 << (bits - EXTRA_BITS)) < n)
        bits++;
    return bits;
}

static uint64_t cut(uint64_t key, unsigned bits)
{
    return bits < 64 ? key >> (64 - bits) : key;
}

bool chunks_page_print(const struct chunks_entries *e, size_t *next, struct rd_buf *ret,
                       struct rd_err *err)
{
    size_t begin = *next, end = begin + CHUNKS_PAGE_ENTRIES;
    unsigned bits = chunks_run_bits(e->n);
    uint64_t before = 0, n = 0, n_gone = 0;
    end = end < e->n ? end : e->n;
    for (size_t i = begin; i < end; i++)
        n_gone += e->at[i].ordinal == CHUNKS_GONE;
    n = end - begin - n_gone;
    bool ok = chunks_put(ret, n);
    for (size_t i = begin; ok && i < end; i++)
        if (e->at[i].ordinal != CHUNKS_GONE) {
            ok = chunks_put(ret, cut(e->at[i].key, bits) - before);
            before = cut(e->at[i].key, bits);
        }
    for (size_t i = begin; ok && i < end; i++)
        ok = e->at[i].ordinal == CHUNKS_GONE || chunks_put(ret, e->at[i].ordinal);
    ok = ok && chunks_put(ret, n_gone);
    before = 0;
    for (size_t i = begin; ok && i < end; i++)
        if (e->at[i].ordinal == CHUNKS_GONE) {
            ok = chunks_put(ret, e->at[i].key - before);
            before = e->at[i].key;
        }
    *next = end;
    return ok || rd_err_nomem(err, ret->len);
}

static bool damaged(struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "a page of the index of keys is damaged");
}

/* Entries with the hash of the key: [*ret_first, *ret_first + *ret_n). */
static void match(struct chunks_in *in, uint64_t n, uint64_t want, uint64_t *ret_first,
                  uint64_t *ret_n)
{
    uint64_t have = 0;
    *ret_first = *ret_n = 0;
    for (uint64_t i = 0; i < n; i++) {
        have += chunks_get(in);
        if (have != want)
            continue;
        *ret_first = *ret_n == 0 ? i : *ret_first;
        ++*ret_n;
    }
}

bool chunks_page_find(struct rd_slice plain, uint64_t n_entries, uint64_t key,
                      struct chunks_answer *ret, struct rd_err *err)
{
    struct chunks_in in = chunks_in_of(plain);
    uint64_t n = chunks_get_count(&in, 2), first, n_found, have = 0;
    const size_t room = sizeof ret->ordinals / sizeof *ret->ordinals;
    *ret = (struct chunks_answer){.n = 0};
    match(&in, n, cut(key, chunks_run_bits(n_entries)), &first, &n_found);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t ordinal = chunks_get_max(&in, UINT32_MAX);
        if (i < first || i - first >= n_found)
            continue;
        if (ret->n < room)
            ret->ordinals[ret->n++] = (uint32_t)ordinal;
        else
            ret->many = true;
    }
    uint64_t n_gone = chunks_get_count(&in, 1);
    for (uint64_t i = 0; i < n_gone; i++) {
        have += chunks_get(&in);
        ret->gone = ret->gone || have == key;
    }
    return (!in.failed && in.at == in.end) || damaged(err);
}

bool chunks_page_dead(struct rd_slice plain,
                      bool (*each)(void *ctx, uint64_t key, struct rd_err *err), void *ctx,
                      struct rd_err *err)
{
    struct chunks_in in = chunks_in_of(plain);
    uint64_t n = chunks_get_count(&in, 2), have = 0;
    for (uint64_t i = 0; i < 2 * n; i++)
        chunks_get(&in);
    uint64_t n_gone = chunks_get_count(&in, 1);
    for (uint64_t i = 0; i < n_gone && !in.failed; i++) {
        have += chunks_get(&in);
        if (!in.failed && !each(ctx, have, err))
            return false;
    }
    return (!in.failed && in.at == in.end) || damaged(err);
}

const struct chunks_page *chunks_run_page(const struct chunks_run *run, uint64_t key)
{
    size_t low = 0, high = run->n_pages;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (run->pages[mid].first <= key)
            low = mid + 1;
        else
            high = mid;
    }
    return low > 0 ? &run->pages[low - 1] : NULL;
}
