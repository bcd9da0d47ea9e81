#include "chunks/state_impl.h"

#include "base/crc64.h"
#include "base/mem.h"
#include "chunks/bytes_impl.h"

#include <stdlib.h>

static const char magic[] = "RDSTATE1";
enum { HEAD = 8 + ARCHIVE_SHA256 + 8, RECORD = 24 };

static void *grow(void *ptr, size_t n, size_t size)
{
    return (n & (n - 1)) == 0 ? rd_realloc(ptr, (n == 0 ? 1 : 2 * n) * size) : ptr;
}

/* ---- lists ---- */

bool chunks_lists_add_dead(struct chunks_lists *l, const struct chunks_dead *dead,
                           struct rd_err *err)
{
    struct chunks_dead *grown = grow(l->dead, l->n_dead, sizeof *grown);
    if (grown == NULL)
        return rd_err_nomem(err, l->n_dead);
    l->dead = grown;
    l->dead[l->n_dead++] = *dead;
    return true;
}

bool chunks_lists_add_long(struct chunks_lists *l, struct chunks_place place,
                           const uint32_t *ordinals, size_t n, struct rd_err *err)
{
    struct chunks_pieces *grown = grow(l->longs, l->n_longs, sizeof *grown);
    if (grown == NULL)
        return rd_err_nomem(err, l->n_longs);
    l->longs = grown;
    uint32_t *copy = rd_alloc((n + 1) * sizeof *copy);
    if (copy == NULL)
        return rd_err_nomem(err, n);
    for (size_t i = 0; i < n; i++)
        copy[i] = ordinals[i];
    l->longs[l->n_longs++] = (struct chunks_pieces){place, copy, (uint32_t)n};
    return true;
}

static int compare_places(const void *a, const void *b)
{
    const struct chunks_place *x = a, *y = b;
    if (x->ordinal != y->ordinal)
        return x->ordinal < y->ordinal ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

void chunks_lists_sort(struct chunks_lists *l)
{
    if (l->n_longs > 0)
        qsort(l->longs, l->n_longs, sizeof *l->longs, compare_places);
}

const struct chunks_pieces *chunks_lists_find(const struct chunks_lists *l,
                                              struct chunks_place place)
{
    if (l->n_longs == 0)
        return NULL;
    return bsearch(&place, l->longs, l->n_longs, sizeof *l->longs, compare_places);
}

void chunks_lists_done(struct chunks_lists *l)
{
    for (size_t i = 0; i < l->n_longs; i++)
        rd_free(l->longs[i].ordinals);
    rd_free(l->longs);
    rd_free(l->dead);
    *l = (struct chunks_lists){.n_dead = 0};
}

/* ---- writing ---- */

static void set_u64(uint8_t *dst, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        dst[i] = (uint8_t)(number >> (8 * i));
}

static uint64_t u64_of(const uint8_t *src)
{
    uint64_t number = 0;
    for (int i = 0; i < 8; i++)
        number |= (uint64_t)src[i] << (8 * i);
    return number;
}

static bool write_u64(struct rd_sink *to, uint64_t number)
{
    uint8_t bytes[8];
    set_u64(bytes, number);
    return rd_sink_write(to, bytes, sizeof bytes);
}

bool chunks_state_begin(struct rd_sink *to, const uint8_t recipe[ARCHIVE_SHA256], uint64_t n)
{
    rd_sink_sum_begin(to, 0);
    return rd_sink_write(to, magic, 8) && rd_sink_write(to, recipe, ARCHIVE_SHA256) &&
           write_u64(to, n);
}

bool chunks_state_put(struct rd_sink *to, const struct chunks_record *record)
{
    uint8_t bytes[RECORD];
    set_u64(bytes, record->item);
    set_u64(bytes + 8, record->key);
    set_u64(bytes + 16, (uint64_t)record->place.item << 32 | record->place.ordinal);
    return rd_sink_write(to, bytes, sizeof bytes);
}

bool chunks_state_end(struct rd_sink *to, const struct chunks_lists *lists)
{
    bool ok = write_u64(to, lists->n_dead);
    for (size_t i = 0; ok && i < lists->n_dead; i++)
        ok = write_u64(to, lists->dead[i].key) && write_u64(to, lists->dead[i].died);
    ok = ok && write_u64(to, lists->n_longs);
    for (size_t i = 0; ok && i < lists->n_longs; i++) {
        const struct chunks_pieces *p = &lists->longs[i];
        ok = write_u64(to, (uint64_t)p->place.item << 32 | p->place.ordinal) && write_u64(to, p->n);
        for (uint32_t j = 0; ok && j < p->n; j++)
            ok = write_u64(to, p->ordinals[j]);
    }
    return ok && write_u64(to, rd_sink_sum(to));
}

/* ---- reading ---- */

static bool damaged(struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the state is damaged");
}

static const uint8_t *take(struct rd_src *src, size_t n, struct rd_err *err)
{
    struct rd_slice s;
    enum rd_src_status status = rd_src_need(src, n, &s);
    if (status == RD_SRC_OK) {
        rd_src_consume(src, n);
        return s.ptr;
    }
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(src));
    damaged(err);
    return NULL;
}

bool chunks_state_of(const char *path, uint8_t ret[ARCHIVE_SHA256])
{
    struct rd_src *src;
    const struct rd_src_opts opts = RD_SRC_OPTS(.regular = true);
    if (!rd_src_open_file(&src, path, &opts, NULL))
        return false;
    const uint8_t *head = take(src, HEAD, NULL);
    bool ok = head != NULL && memcmp(head, magic, 8) == 0;
    if (ok)
        memcpy(ret, head + 8, ARCHIVE_SHA256);
    rd_src_close(src);
    return ok;
}

bool chunks_state_open(const struct chunks_state *state, struct rd_src **ret, struct rd_err *err)
{
    struct rd_src *src;
    const struct rd_src_opts opts = RD_SRC_OPTS(.regular = true);
    if (state->path != NULL ? !rd_src_open_file(&src, state->path, &opts, err)
                            : !spool_source(state->spool, "the state", &src, err))
        return false;
    rd_src_sum_begin(src, 0);
    const uint8_t *head = take(src, HEAD, err);
    if (head != NULL && memcmp(head, magic, 8) == 0 && u64_of(head + HEAD - 8) == state->n) {
        *ret = src;
        return true;
    }
    damaged(err);
    rd_src_close(src);
    return false;
}

bool chunks_state_next(struct rd_src *src, struct chunks_record *ret, struct rd_err *err)
{
    const uint8_t *bytes = take(src, RECORD, err);
    if (bytes == NULL)
        return false;
    uint64_t place = u64_of(bytes + 16);
    *ret = (struct chunks_record){.item = u64_of(bytes),
                                  .key = u64_of(bytes + 8),
                                  .place = {(uint32_t)place, (uint32_t)(place >> 32)}};
    return true;
}

static bool read_u64(struct rd_src *src, uint64_t *ret, struct rd_err *err)
{
    const uint8_t *bytes = take(src, 8, err);
    if (bytes != NULL)
        *ret = u64_of(bytes);
    return bytes != NULL;
}

static bool read_long(struct rd_src *src, struct chunks_lists *ret, struct rd_err *err)
{
    uint64_t place, n, ordinal;
    struct rd_buf ordinals = {0};
    if (!read_u64(src, &place, err) || !read_u64(src, &n, err))
        return false;
    bool ok = true;
    for (uint64_t i = 0; ok && i < n; i++) {
        ok = read_u64(src, &ordinal, err);
        uint32_t number = (uint32_t)ordinal;
        ok = ok && (rd_buf_add(&ordinals, &number, sizeof number) || rd_err_nomem(err, 4));
    }
    const struct chunks_place at = {(uint32_t)place, (uint32_t)(place >> 32)};
    ok = ok && chunks_lists_add_long(ret, at, (const uint32_t *)(const void *)ordinals.ptr,
                                     (size_t)n, err);
    rd_buf_done(&ordinals);
    return ok;
}

static bool read_lists(struct rd_src *src, struct chunks_lists *ret, struct rd_err *err)
{
    uint64_t n, key, died, sum;
    bool ok = read_u64(src, &n, err);
    for (uint64_t i = 0; ok && i < n; i++) {
        ok = read_u64(src, &key, err) && read_u64(src, &died, err);
        const struct chunks_dead dead = {key, (uint32_t)died};
        ok = ok && chunks_lists_add_dead(ret, &dead, err);
    }
    ok = ok && read_u64(src, &n, err);
    for (uint64_t i = 0; ok && i < n; i++)
        ok = read_long(src, ret, err);
    uint64_t want = ok ? rd_src_sum(src) : 0;
    return ok && read_u64(src, &sum, err) && (sum == want || damaged(err));
}

bool chunks_state_lists(struct rd_src *src, struct chunks_lists *ret, struct rd_err *err)
{
    struct chunks_lists lists = {.n_dead = 0};
    if (!read_lists(src, &lists, err)) {
        chunks_lists_done(&lists);
        return false;
    }
    chunks_lists_sort(&lists);
    *ret = lists;
    return true;
}

/* ---- the table ---- */

bool chunks_known_init(struct chunks_known *k, uint64_t n, struct rd_err *err)
{
    *k = (struct chunks_known){.n_slots = n + n / 2 + 16, .n_max = (size_t)n};
    k->items = rd_calloc((size_t)n + 1, sizeof *k->items);
    k->slots = rd_calloc((size_t)k->n_slots, sizeof *k->slots);
    k->used = rd_calloc((size_t)n / 8 + 1, 1);
    return (k->items != NULL && k->slots != NULL && k->used != NULL) ||
           rd_err_nomem(err, (size_t)n * 14);
}

/* The high half of the hash, scaled to the number of slots, which may be more than 2^32. */
static uint64_t slot_of(const struct chunks_known *k, uint64_t item)
{
    uint64_t high = k->n_slots >> 32, low = k->n_slots & UINT32_MAX;
    uint64_t x = item >> 32;
    return x * high + (x * low >> 32);
}

void chunks_known_add(struct chunks_known *k, uint64_t item, bool findable)
{
    size_t i = k->n++;
    /* Not the hash of any item that is looked for at this number. */
    k->items[i] = findable ? item : ~item;
    if (!findable)
        return;
    uint64_t slot = slot_of(k, item);
    while (k->slots[slot] != 0)
        slot = slot + 1 < k->n_slots ? slot + 1 : 0;
    k->slots[slot] = (uint32_t)i + 1;
}

static bool take_number(struct chunks_known *k, size_t i, uint64_t item)
{
    if (k->items[i] != item || (k->used[i / 8] >> (i % 8) & 1) != 0)
        return false;
    k->used[i / 8] |= (uint8_t)(1u << (i % 8));
    return true;
}

uint32_t chunks_known_take(struct chunks_known *k, uint64_t item, uint64_t expected)
{
    if (expected < k->n && take_number(k, (size_t)expected, item))
        return (uint32_t)expected;
    uint64_t slot = k->n > 0 ? slot_of(k, item) : 0;
    for (; k->n > 0 && k->slots[slot] != 0; slot = slot + 1 < k->n_slots ? slot + 1 : 0)
        if (take_number(k, k->slots[slot] - 1, item))
            return k->slots[slot] - 1;
    return CHUNKS_NEW;
}

bool chunks_known_is_used(const struct chunks_known *k, size_t i)
{
    return (k->used[i / 8] >> (i % 8) & 1) != 0;
}

void chunks_known_shrink(struct chunks_known *k)
{
    rd_free(k->items);
    rd_free(k->slots);
    k->items = NULL;
    k->slots = NULL;
}

void chunks_known_done(struct chunks_known *k)
{
    chunks_known_shrink(k);
    rd_free(k->used);
    *k = (struct chunks_known){.n = 0};
}
