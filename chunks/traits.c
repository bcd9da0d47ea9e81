#include "chunks/traits_impl.h"

#include "base/mem.h"
#include "base/siphash.h"
#include "chunks/bytes_impl.h"

#include <stdlib.h>

enum { EXTRA_BITS = 8 };

static bool is_delimiter(uint8_t byte)
{
    return byte == ':' || byte == '/' || byte == '.' || byte == '|' || byte == '#' || byte == '}';
}

size_t chunks_traits_hashes(const uint8_t key[CHUNKS_KEY], struct rd_slice name,
                            uint64_t ret[CHUNKS_PREFIXES_MAX])
{
    size_t n = 0, done = 0;
    struct rd_siphash hash;
    rd_siphash_begin(&hash, key);
    rd_siphash_add_u64(&hash, UINT64_MAX); /* no database */
    for (size_t i = 0; i < name.len && n < CHUNKS_PREFIXES_MAX; i++) {
        if (!is_delimiter(name.ptr[i]))
            continue;
        rd_siphash_add(&hash, name.ptr + done, i + 1 - done);
        done = i + 1;
        struct rd_siphash upto = hash;
        ret[n++] = rd_siphash_end(&upto).lo;
    }
    return n;
}

/* ---- writing ---- */

bool chunks_traits_add(struct chunks_traits *t, const uint8_t key[CHUNKS_KEY], struct rd_slice name)
{
    uint64_t hashes[CHUNKS_PREFIXES_MAX];
    unsigned slot = rd_hash_slot(name);
    size_t n = chunks_traits_hashes(key, name, hashes);
    uint8_t bit = (uint8_t)(1U << slot % 8);
    t->n_slots += (t->slots[slot / 8] & bit) == 0;
    t->slots[slot / 8] |= bit;
    return n == 0 || rd_buf_add(&t->prefixes, hashes, n * sizeof *hashes);
}

int chunks_compare_hashes(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static unsigned bits_of(size_t n)
{
    unsigned bits = EXTRA_BITS;
    while (bits < 64 && ((uint64_t)1 << (bits - EXTRA_BITS)) < n)
        bits++;
    return bits;
}

static uint64_t cut(uint64_t hash, unsigned bits)
{
    return hash >> (64 - bits);
}

static bool put_prefixes(const struct chunks_traits *t, struct rd_buf *page)
{
    uint64_t *hashes = (uint64_t *)(void *)t->prefixes.ptr;
    size_t n = t->prefixes.len / sizeof *hashes, n_apart = 0;
    if (n > 0)
        qsort(hashes, n, sizeof *hashes, chunks_compare_hashes);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || hashes[i] != hashes[i - 1])
            hashes[n_apart++] = hashes[i];
    uint64_t before = 0;
    bool ok = chunks_put(page, n_apart);
    for (size_t i = 0; ok && i < n_apart; i++) {
        uint64_t have = cut(hashes[i], bits_of(n_apart));
        ok = chunks_put(page, have - before);
        before = have;
    }
    return ok;
}

static bool put_slots(const struct chunks_traits *t, struct rd_buf *page)
{
    unsigned before = 0;
    bool ok = chunks_put(page, t->n_slots);
    for (unsigned slot = 0; ok && slot < RD_HASH_SLOTS; slot++) {
        if ((t->slots[slot / 8] & 1U << slot % 8) == 0)
            continue;
        ok = chunks_put(page, slot - before);
        before = slot;
    }
    return ok;
}

bool chunks_traits_end(struct chunks_traits *t, uint32_t ordinal,
                       struct chunks_traits_pages *prefixes, struct chunks_traits_pages *slots)
{
    struct chunks_traits_page *p = chunks_traits_pages_next(prefixes, ordinal);
    struct chunks_traits_page *s = chunks_traits_pages_next(slots, ordinal);
    bool ok = p != NULL && s != NULL && chunks_put(&p->plain, ordinal) &&
              put_prefixes(t, &p->plain) && chunks_put(&s->plain, ordinal) &&
              put_slots(t, &s->plain);
    rd_buf_reset(&t->prefixes);
    memset(t->slots, 0, sizeof t->slots);
    t->n_slots = 0;
    return ok;
}

void chunks_traits_done(struct chunks_traits *t)
{
    rd_buf_done(&t->prefixes);
}

/* ---- reading ---- */

static struct rd_slice skip_numbers(struct chunks_in *in, size_t *ret_n)
{
    *ret_n = chunks_get_count(in, 1);
    const uint8_t *begin = in->at;
    for (size_t i = 0; i < *ret_n; i++)
        chunks_get(in);
    return rd_slice(begin, (size_t)(in->at - begin));
}

bool chunks_traits_each(struct rd_slice page,
                        bool (*each)(void *ctx, const struct chunks_trait *trait), void *ctx,
                        struct rd_err *err)
{
    struct chunks_in in = chunks_in_of(page);
    while (in.at != in.end) {
        const uint8_t *begin = in.at;
        struct chunks_trait trait = {.ordinal = (uint32_t)chunks_get_max(&in, UINT32_MAX)};
        trait.numbers = skip_numbers(&in, &trait.n);
        trait.bytes = rd_slice(begin, (size_t)(in.at - begin));
        if (in.failed)
            return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                              "a page of prefixes and slots is damaged");
        if (!each(ctx, &trait))
            return false;
    }
    return true;
}

bool chunks_trait_begins(const struct chunks_trait *trait, uint64_t hash)
{
    struct chunks_in in = chunks_in_of(trait->numbers);
    uint64_t have = 0, want = cut(hash, bits_of(trait->n));
    for (size_t i = 0; i < trait->n; i++) {
        have += chunks_get(&in);
        if (have >= want)
            return have == want;
    }
    return false;
}

bool chunks_trait_meets(const struct chunks_trait *trait, const uint8_t slots[RD_HASH_SLOTS / 8])
{
    struct chunks_in in = chunks_in_of(trait->numbers);
    uint64_t slot = 0;
    for (size_t i = 0; i < trait->n; i++) {
        slot += chunks_get(&in);
        if (slot >= RD_HASH_SLOTS)
            return true; /* no chunk is left out because of what is not understood */
        if ((slots[slot / 8] & 1U << slot % 8) != 0)
            return true;
    }
    return false;
}

/* ---- pages ---- */

struct chunks_traits_page *chunks_traits_pages_next(struct chunks_traits_pages *pages,
                                                    uint32_t ordinal)
{
    struct chunks_traits_page *last = pages->n > 0 ? &pages->at[pages->n - 1] : NULL;
    if (last != NULL && last->plain.len < CHUNKS_TRAITS_BYTES) {
        last->first = ordinal < last->first ? ordinal : last->first;
        last->last = ordinal > last->last ? ordinal : last->last;
        return last;
    }
    struct chunks_traits_page *at = rd_realloc(pages->at, (pages->n + 1) * sizeof *at);
    if (at == NULL)
        return NULL;
    pages->at = at;
    at[pages->n] = (struct chunks_traits_page){.first = ordinal, .last = ordinal};
    return &at[pages->n++];
}

void chunks_traits_pages_done(struct chunks_traits_pages *pages)
{
    for (size_t i = 0; i < pages->n; i++)
        rd_buf_done(&pages->at[i].plain);
    rd_free(pages->at);
    *pages = (struct chunks_traits_pages){.n = 0};
}
