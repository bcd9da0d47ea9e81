#include "engine/intset.h"

#include <criterion/criterion.h>
#include <inttypes.h>

#include "engine/mem.h"

enum { MODEL_MAX = 2000 };

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* What a set should be: integers in ascending order, and the width that they once needed. */
struct model {
    int64_t nums[MODEL_MAX];
    size_t n, width;
};

static size_t model_place(const struct model *m, int64_t v)
{
    size_t at = 0;
    while (at < m->n && m->nums[at] < v)
        at++;
    return at;
}

static bool model_has(const struct model *m, int64_t v)
{
    size_t at = model_place(m, v);
    return at < m->n && m->nums[at] == v;
}

static void model_add(struct model *m, int64_t v)
{
    size_t at = model_place(m, v);
    memmove(m->nums + at + 1, m->nums + at, (m->n - at) * sizeof v);
    m->nums[at] = v;
    m->n++;
    for (size_t width = 2; width <= 4; width *= 2)
        if ((v < -(1LL << (8 * width - 1)) || v >= 1LL << (8 * width - 1)) && m->width <= width)
            m->width = 2 * width;
}

static void model_remove(struct model *m, int64_t v)
{
    size_t at = model_place(m, v);
    memmove(m->nums + at, m->nums + at + 1, (m->n - at - 1) * sizeof v);
    m->n--;
}

static struct rd_slice model_blob(const struct model *m)
{
    static uint8_t blob[8 + 8 * MODEL_MAX];
    memset(blob, 0, 8);
    blob[0] = (uint8_t)m->width;
    blob[4] = (uint8_t)m->n;
    blob[5] = (uint8_t)(m->n >> 8);
    size_t len = 8;
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->width; k++)
            blob[len++] = (uint8_t)((uint64_t)m->nums[i] >> (8 * k));
    return rd_slice(blob, len);
}

static void check(const uint8_t *is, const struct model *m)
{
    struct rd_slice blob = model_blob(m);
    cr_assert(rd_slice_eq(rd_slice(is, engine_intset_bytes(is)), blob));
    cr_assert_eq(engine_intset_count(is), m->n);
    cr_assert_eq(engine_intset_width(is), m->width);
    cr_assert_geq(engine_usable(is), blob.len);
    cr_assert(engine_usable(is) <= 544 || engine_usable(is) <= blob.len + blob.len / 4 + 16);
    if (m->n > 0) {
        cr_assert_eq(engine_intset_min(is), m->nums[0]);
        cr_assert_eq(engine_intset_max(is), m->nums[m->n - 1]);
    }
}

static void check_members(const uint8_t *is, const struct model *m)
{
    for (size_t i = 0; i < m->n; i++) {
        int64_t v = m->nums[i];
        cr_assert_eq(engine_intset_get(is, i), v);
        cr_assert(engine_intset_find(is, v));
        if (v < INT64_MAX)
            cr_assert_eq(engine_intset_find(is, v + 1), model_has(m, v + 1));
        if (v > INT64_MIN)
            cr_assert_eq(engine_intset_find(is, v - 1), model_has(m, v - 1));
    }
}

/* What Redis 7.0.15 made of SADD and SREM, as DUMP shows it. */
static const struct sample {
    size_t n_add, n_remove;
    int64_t add[6], remove[2];
    size_t len;
    const char *blob;
} samples[] = {
    {5, 0, {3, 1, 2, -32768, 32767}, {0}, 18, "\2\0\0\0\5\0\0\0\0\x80\1\0\2\0\3\0\xff\x7f"},
    {3, 0, {5, 32768, -1}, {0}, 20, "\4\0\0\0\3\0\0\0\xff\xff\xff\xff\5\0\0\0\0\x80\0\0"},
    {3, 0, {5, -32769, 7}, {0}, 20, "\4\0\0\0\3\0\0\0\xff\x7f\xff\xff\5\0\0\0\7\0\0\0"},
    {4,
     0,
     {1, -2, 2147483648, 70000},
     {0},
     40,
     "\x8\0\0\0\4\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff\1\0\0\0\0\0\0\0\x70\x11\1\0\0\0\0\0"
     "\0\0\0\x80\0\0\0\0"},
    {4,
     0,
     {1, -2, INT64_MIN, INT64_MAX},
     {0},
     40,
     "\x8\0\0\0\4\0\0\0\0\0\0\0\0\0\0\x80\xfe\xff\xff\xff\xff\xff\xff\xff\1\0\0\0\0\0\0\0"
     "\xff\xff\xff\xff\xff\xff\xff\x7f"},
    {4,
     2,
     {1, 2, 2147483648, -5},
     {2147483648, 1},
     24,
     "\x8\0\0\0\2\0\0\0\xfb\xff\xff\xff\xff\xff\xff\xff\2\0\0\0\0\0\0\0"},
};

Test(intset, bytes_are_those_of_a_server)
{
    for (size_t k = 0; k < sizeof samples / sizeof *samples; k++) {
        const struct sample *s = &samples[k];
        uint8_t *is = engine_intset_new();
        for (size_t i = 0; i < s->n_add; i++)
            cr_assert(engine_intset_add(&is, s->add[i]));
        for (size_t i = 0; i < s->n_remove; i++)
            cr_assert(engine_intset_remove(&is, s->remove[i]));
        struct rd_slice blob = rd_slice(s->blob, s->len);
        cr_assert(rd_slice_eq(rd_slice(is, engine_intset_bytes(is)), blob), "sample %zu", k);
        uint8_t *from = engine_intset_from(blob), *copy = engine_intset_dup(from);
        cr_assert(rd_slice_eq(rd_slice(copy, engine_intset_bytes(copy)), blob));
        engine_intset_free(is);
        engine_intset_free(from);
        engine_intset_free(copy);
    }
}

/* Adds and removes numbers of at most `bits` bits, or now and then a wider one. */
static void run(uint64_t seed, unsigned bits, unsigned n_ops, unsigned add_of_16)
{
    static struct model m;
    m = (struct model){.width = 2};
    uint8_t *is = engine_intset_new();
    for (unsigned i = 0; i < n_ops; i++) {
        uint64_t r = next_random(&seed);
        unsigned shift = 64 - (r % 512 == 0 ? 16 + (unsigned)(r >> 32) % 49 : bits);
        int64_t v = (int64_t)next_random(&seed) >> shift;
        bool has = model_has(&m, v);
        cr_assert_eq(engine_intset_find(is, v), has);
        if ((r >> 20) % 16 < add_of_16 && m.n < MODEL_MAX) {
            cr_assert_eq(engine_intset_add(&is, v), !has);
            if (!has)
                model_add(&m, v);
        } else {
            cr_assert_eq(engine_intset_remove(&is, v), has);
            if (has)
                model_remove(&m, v);
        }
        check(is, &m);
        if (i % 64 == 0)
            check_members(is, &m);
    }
    while (m.n > 0) {
        int64_t v = m.nums[next_random(&seed) % m.n];
        cr_assert(engine_intset_remove(&is, v) && !engine_intset_remove(&is, v));
        model_remove(&m, v);
        check(is, &m);
    }
    engine_intset_free(is);
}

Test(intset, random_operations_agree_with_a_model)
{
    static const unsigned bits[] = {4, 8, 12, 16, 17, 31, 32, 33, 48, 63, 64};
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        uint64_t seed = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        cr_log_info("seed %" PRIu64 ", %u bits", seed, bits[i]);
        run(seed, bits[i], 1500, 8);
        run(seed, bits[i], 1500, 13);
    }
}

Test(intset, every_border_of_a_width_widens_or_does_not)
{
    for (unsigned bit = 0; bit < 64; bit++)
        for (uint64_t d = 0; d < 3; d++)
            for (int sign = 0; sign < 2; sign++) {
                static struct model m;
                m = (struct model){.width = 2};
                uint64_t u = ((uint64_t)1 << bit) + d - 1;
                int64_t v = (int64_t)(sign == 0 ? u : 0 - u);
                uint8_t *is = engine_intset_new();
                for (int64_t i = -3; i <= 3; i++) {
                    engine_intset_add(&is, i * 10000);
                    model_add(&m, i * 10000);
                }
                cr_assert_eq(engine_intset_find(is, v), model_has(&m, v));
                if (engine_intset_add(&is, v))
                    model_add(&m, v);
                check(is, &m);
                check_members(is, &m);
                cr_assert_not(engine_intset_add(&is, v));
                cr_assert(engine_intset_remove(&is, v));
                model_remove(&m, v);
                check(is, &m);
                engine_intset_free(is);
            }
}

Test(intset, an_empty_set_has_nothing_and_a_number_too_wide_is_not_looked_for)
{
    uint8_t *is = engine_intset_new();
    cr_assert_eq(engine_intset_bytes(is), 8);
    cr_assert_not(engine_intset_find(is, 0));
    cr_assert_not(engine_intset_remove(&is, 0));
    cr_assert_not(engine_intset_find(is, INT64_MIN));
    cr_assert_not(engine_intset_remove(&is, INT64_MAX));
    cr_assert_eq(engine_intset_width(is), 2);
    engine_intset_free(is);
    engine_intset_free(NULL);
}

Test(intset, memory_grows_in_steps_and_is_given_back)
{
    uint8_t *is = engine_intset_new();
    size_t n_moves = 0;
    for (int64_t v = 0; v < 20000; v++) {
        size_t before = engine_usable(is);
        engine_intset_add(&is, v);
        n_moves += engine_usable(is) != before;
    }
    for (int64_t v = 0; v < 20000; v++) {
        size_t before = engine_usable(is), len = engine_intset_bytes(is);
        cr_assert(before <= 544 || before <= len + len / 4 + 16);
        engine_intset_remove(&is, v);
        n_moves += engine_usable(is) != before;
    }
    cr_assert_lt(n_moves, 120);
    engine_intset_free(is);
}
