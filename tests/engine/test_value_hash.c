#include "engine/value/hash.h"

#include "base/buf.h"
#include "engine/mem.h"
#include "engine/value/hash_impl.h"
#include "tests/engine/value_file.h"

#include <criterion/criterion.h>
#include <stdio.h>

enum { NAMES = 120, TEXT_MAX = 128 };

static struct engine_config config_with(size_t entries, size_t value)
{
    struct engine_config config;
    engine_config_init(&config);
    config.hash_max_listpack_entries = entries;
    config.hash_max_listpack_value = value;
    return config;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Numbers, and texts of all lengths around those at which something changes. */
static struct rd_slice text_of(unsigned i, char tmp[TEXT_MAX])
{
    if (i % 2 == 0)
        return rd_slice(tmp, rd_num_put_i64(tmp, (int64_t)i * 1000003));
    memset(tmp, 'a' + (int)(i % 26), TEXT_MAX);
    size_t digits = (size_t)snprintf(tmp, TEXT_MAX, "%u:", i);
    tmp[digits] = 'x';
    return rd_slice(tmp, digits + i % 100);
}

/* What a hash should be: by field the number of its value, and when it expires. */
struct model {
    struct {
        bool there;
        unsigned value;
        int64_t expire_ms;
    } fields[NAMES];
};

static void expect_model(const struct engine_value *v, const struct model *m)
{
    char name[TEXT_MAX], text[TEXT_MAX], tmp[RD_NUM_I64_MAX];
    uint64_t n = 0, seen = 0;
    int64_t first = INT64_MAX, expire_ms;
    struct rd_slice got;
    for (unsigned i = 0; i < NAMES; i++) {
        struct rd_slice field = text_of(i, name);
        n += m->fields[i].there;
        cr_assert_eq(engine_hash_has(v, field), m->fields[i].there);
        cr_assert_eq(engine_hash_get(v, field, &got, tmp), m->fields[i].there);
        cr_assert_eq(engine_hash_get_expire(v, field, &expire_ms), m->fields[i].there);
        if (!m->fields[i].there)
            continue;
        cr_assert(rd_slice_eq(got, text_of(m->fields[i].value, text)));
        cr_assert_eq(expire_ms, m->fields[i].expire_ms);
        if (expire_ms != ENGINE_HASH_NO_EXPIRE && expire_ms < first)
            first = expire_ms;
    }
    cr_assert_eq(engine_hash_count(v), n);
    int64_t next = engine_hash_next_expire(v);
    cr_assert_eq(next == ENGINE_HASH_NO_EXPIRE, first == INT64_MAX);
    cr_assert(first == INT64_MAX || next <= first);
    struct engine_hash_iter it;
    struct engine_hash_pair pair;
    engine_hash_iter_begin(&it, v);
    for (; engine_hash_iter_next(&it, &pair); seen++)
        cr_assert(engine_hash_get(v, pair.field, &got, tmp) && rd_slice_eq(got, pair.value));
    engine_hash_iter_end(&it);
    cr_assert_eq(seen, n);
}

static void count_due(void *ctx, struct rd_slice field)
{
    (void)field;
    ++*(uint64_t *)ctx;
}

static void expire_due(struct engine_value *v, struct model *m, int64_t now_ms)
{
    uint64_t reported = 0, n = engine_hash_expire_due(v, now_ms, count_due, &reported), want = 0;
    for (unsigned i = 0; i < NAMES; i++) {
        int64_t at = m->fields[i].expire_ms;
        bool due = m->fields[i].there && at != ENGINE_HASH_NO_EXPIRE && at < now_ms;
        want += due;
        m->fields[i].there &= !due;
    }
    cr_assert_eq(n, want);
    cr_assert_eq(reported, want);
}

static void random_step(struct engine_value *v, struct model *m, uint64_t *state, bool expiring,
                        const struct engine_config *config)
{
    char name[TEXT_MAX], text[TEXT_MAX];
    unsigned i = (unsigned)(next_random(state) % NAMES);
    unsigned value = (unsigned)(next_random(state) % 300);
    unsigned what = (unsigned)(next_random(state) % 100);
    struct rd_slice field = text_of(i, name);
    if (what < 55) {
        enum engine_hash_mode mode = what % 2 == 0 ? ENGINE_HASH_REPLACE : ENGINE_HASH_KEEP_EXPIRE;
        bool is_new = engine_hash_set(v, field, text_of(value, text), mode, config);
        cr_assert_eq(is_new, !m->fields[i].there);
        if (is_new || mode == ENGINE_HASH_REPLACE)
            m->fields[i].expire_ms = ENGINE_HASH_NO_EXPIRE;
        m->fields[i].there = true;
        m->fields[i].value = value;
    } else if (what < 80) {
        cr_assert_eq(engine_hash_delete(v, field), m->fields[i].there);
        m->fields[i].there = false;
    } else if (m->fields[i].there && expiring) {
        int64_t at = what % 3 == 0 ? ENGINE_HASH_NO_EXPIRE : 1 + (int64_t)value;
        engine_hash_expire(v, field, at);
        m->fields[i].expire_ms = at;
    } else if (what == 99 && expiring) {
        expire_due(v, m, value / 4);
    }
}

Test(value_hash, holds_what_was_set)
{
    static const size_t entries[] = {0, 5, 512, 512}, values[] = {64, 64, 16, 512};
    uint64_t state = 4242;
    int64_t before = engine_mem_total(&engine_mem);
    for (unsigned k = 0; k < 8; k++) {
        struct engine_config config = config_with(entries[k % 4], values[k % 4]);
        struct engine_value v = engine_hash_new();
        struct model m = {0};
        for (unsigned step = 0; step < 3000; step++) {
            random_step(&v, &m, &state, k >= 4, &config);
            if (step % 40 == 0)
                expect_model(&v, &m);
        }
        expect_model(&v, &m);
        struct engine_value copy = engine_value_dup(&v);
        engine_value_free(&v);
        expect_model(&copy, &m);
        cr_expect_eq(copy.encoding, k % 4 == 3 ? ENGINE_LISTPACK : ENGINE_HASHTABLE);
        engine_value_free(&copy);
    }
    cr_expect_eq(engine_mem_total(&engine_mem), before);
}

Test(value_hash, becomes_a_table_at_the_limits)
{
    struct engine_config config = config_with(2, 4);
    struct engine_value v = engine_hash_new();
    struct rd_slice a = rd_slice_str("a"), b = rd_slice_str("b"), c = rd_slice_str("c");
    engine_hash_set(&v, a, rd_slice_str("1234"), ENGINE_HASH_REPLACE, &config);
    engine_hash_set(&v, b, rd_slice_str(""), ENGINE_HASH_REPLACE, &config);
    cr_expect_eq(v.encoding, ENGINE_LISTPACK);
    engine_hash_set(&v, c, c, ENGINE_HASH_REPLACE, &config);
    cr_expect_eq(v.encoding, ENGINE_HASHTABLE);
    engine_hash_delete(&v, a);
    engine_hash_delete(&v, b);
    cr_expect_eq(v.encoding, ENGINE_HASHTABLE);
    engine_value_free(&v);

    v = engine_hash_new();
    engine_hash_set(&v, a, rd_slice_str("12345"), ENGINE_HASH_REPLACE, &config);
    cr_expect_eq(v.encoding, ENGINE_HASHTABLE);
    engine_value_free(&v);

    v = engine_hash_new();
    struct rd_slice texts[] = {a, b, rd_slice_str("12345"), c};
    engine_hash_prepare(&v, 2, texts, &config);
    cr_expect_eq(v.encoding, ENGINE_LISTPACK);
    engine_hash_prepare(&v, 4, texts, &config);
    cr_expect_eq(v.encoding, ENGINE_HASHTABLE);
    engine_value_free(&v);
}

Test(value_hash, picks_each_field_about_as_often)
{
    uint64_t state = 7;
    for (unsigned k = 0; k < 2; k++) {
        struct engine_config config = config_with(k * 512, 64);
        struct engine_value v = engine_hash_new();
        unsigned seen[5] = {0};
        for (unsigned i = 0; i < 5; i++) {
            char digit = (char)('0' + i);
            engine_hash_set(&v, rd_slice(&digit, 1), rd_slice(&digit, 1), ENGINE_HASH_REPLACE,
                            &config);
        }
        for (unsigned i = 0; i < 5000; i++) {
            struct engine_hash_pair pair;
            engine_hash_random(&v, next_random(&state) * 0x9e3779b97f4a7c15, &pair);
            cr_assert(pair.field.len == 1 && rd_slice_eq(pair.field, pair.value));
            seen[pair.field.ptr[0] - '0']++;
        }
        for (unsigned i = 0; i < 5; i++)
            cr_expect(seen[i] > 700 && seen[i] < 1300, "%u: %u", i, seen[i]);
        engine_value_free(&v);
    }
}

/* ---- snapshots ---- */

static bool take_event(struct engine_value *v, const struct rdb_event *ev,
                       const struct engine_config *config, struct rd_err *err)
{
    enum engine_mem_kind kind = engine_mem_enter(ENGINE_MEM_HASH);
    bool good = engine_hash_ops.load(v, ev, config, err);
    engine_mem_leave(kind);
    return good;
}

static struct rdb_event value_event(enum rdb_type_id type, uint64_t count)
{
    struct rdb_event ev = {.kind = RDB_VALUE};
    ev.value.type = rdb_type_get(type);
    ev.value.count = count;
    ev.value.nodes = RDB_UNKNOWN;
    ev.value.min_expire_ms = RDB_NO_EXPIRE;
    return ev;
}

static struct rdb_event text_event(enum rdb_role role, struct rd_slice text)
{
    struct rdb_event ev = {.kind = RDB_ELEM};
    ev.elem.role = role;
    ev.elem.expire_ms = RDB_NO_EXPIRE;
    ev.elem.str.ptr = text.ptr;
    ev.elem.str.len = text.len;
    ev.elem.str.total = text.len;
    ev.elem.str.first = true;
    return ev;
}

static bool load_blob(struct engine_value *v, enum rdb_type_id type, enum rdb_codec codec,
                      const void *blob, size_t len, const struct engine_config *config,
                      struct rd_err *err)
{
    struct rdb_event begin = value_event(type, RDB_UNKNOWN), packed = {.kind = RDB_PACKED};
    struct rdb_event end = {.kind = RDB_VALUE_END};
    packed.packed.codec = codec;
    packed.packed.blob = rd_slice(blob, len);
    *v = (struct engine_value){0};
    bool ok = take_event(v, &begin, config, err) && take_event(v, &packed, config, err) &&
              take_event(v, &end, config, err);
    if (!ok)
        engine_value_free(v);
    return ok;
}

static void expect_field(const struct engine_value *v, const char *field, const char *value)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice got;
    cr_assert(engine_hash_get(v, rd_slice_str(field), &got, tmp), "%s", field);
    cr_expect(rd_slice_is(got, value), "%s: %.*s", field, (int)got.len, (const char *)got.ptr);
}

/* a: 12, b: x */
static const uint8_t pairs[] = {18, 0, 0,    0,   4, 0,    0x81, 'a', 2,
                                12, 1, 0x81, 'b', 2, 0x81, 'x',  2,   0xff};

Test(value_hash, listpacks_are_taken_over)
{
    struct engine_config config = config_with(2, 0), small = config_with(1, 64);
    struct engine_value v;
    cr_assert(
        load_blob(&v, RDB_TYPE_HASH_LISTPACK, RDB_LISTPACK, pairs, sizeof pairs, &config, NULL));
    cr_expect_eq(v.encoding, ENGINE_LISTPACK);
    cr_expect_eq(engine_value_count(&v), 2);
    expect_field(&v, "a", "12");
    expect_field(&v, "b", "x");
    engine_value_free(&v);
    cr_assert(
        load_blob(&v, RDB_TYPE_HASH_LISTPACK, RDB_LISTPACK, pairs, sizeof pairs, &small, NULL));
    cr_expect_eq(v.encoding, ENGINE_HASHTABLE);
    expect_field(&v, "a", "12");
    engine_value_free(&v);
}

Test(value_hash, listpacks_that_are_not_hashes_are_refused)
{
    static const uint8_t odd[] = {9, 0, 0, 0, 1, 0, 1, 1, 0xff};
    static const uint8_t twice[] = {15, 0, 0, 0, 4, 0, 1, 1, 2, 1, 1, 1, 3, 1, 0xff};
    static const uint8_t bad_time[] = {14, 0, 0, 0, 3, 0, 1, 1, 2, 1, 0x81, 'x', 2, 0xff};
    struct engine_config config = config_with(512, 64), tables = config_with(0, 64);
    struct engine_value v;
    struct rd_err err = {0};
    cr_expect_not(
        load_blob(&v, RDB_TYPE_HASH_LISTPACK, RDB_LISTPACK, odd, sizeof odd, &config, &err));
    cr_expect_eq(err.code, RD_ERR_CORRUPT);
    err = (struct rd_err){0};
    cr_expect_not(
        load_blob(&v, RDB_TYPE_HASH_LISTPACK, RDB_LISTPACK, twice, sizeof twice, &tables, &err));
    cr_expect_eq(err.code, RD_ERR_CORRUPT);
    err = (struct rd_err){0};
    cr_expect_not(load_blob(&v, RDB_TYPE_HASH_LISTPACK_EX, RDB_LISTPACK, bad_time, sizeof bad_time,
                            &config, &err));
    cr_expect_eq(err.code, RD_ERR_CORRUPT);
    err = (struct rd_err){0};
    cr_expect_not(
        load_blob(&v, RDB_TYPE_HASH_LISTPACK_EX, RDB_LISTPACK, pairs, sizeof pairs, &config, &err));
    cr_expect_eq(err.code, RD_ERR_CORRUPT);
}

Test(value_hash, triples_out_of_order_are_sorted)
{
    /* (1, 1, never) (2, 2, 100) (3, 3, 50) */
    static const uint8_t blob[] = {25, 0, 0, 0,   9, 0, 1, 1, 1, 1,  0, 1,   2,
                                   1,  2, 1, 100, 1, 3, 1, 3, 1, 50, 1, 0xff};
    struct engine_config config = config_with(512, 64);
    struct engine_value v;
    int64_t at;
    cr_assert(
        load_blob(&v, RDB_TYPE_HASH_LISTPACK_EX, RDB_LISTPACK, blob, sizeof blob, &config, NULL));
    cr_expect(engine_hash_is_triples(&v));
    cr_expect_eq(engine_hash_next_expire(&v), 50);
    cr_assert(engine_hash_get_expire(&v, rd_slice_str("2"), &at));
    cr_expect_eq(at, 100);
    cr_assert(engine_hash_get_expire(&v, rd_slice_str("1"), &at));
    cr_expect_eq(at, ENGINE_HASH_NO_EXPIRE);
    engine_value_free(&v);
}

Test(value_hash, ziplists_and_zipmaps_become_listpacks)
{
    /* a: 12, "bb": 1000, 7: "x", d: -3, e: 70000, f: -8388608, g: 2^40 */
    static const uint8_t ziplist[] = {
        79,   0,    0,    0,    68,   0, 0,   0, 14, 0,       /* header */
        0,    1,    'a',                                      /* "a" */
        3,    0xfe, 12,                                       /* 12 */
        3,    2,    'b',  'b',                                /* "bb" */
        4,    0xc0, 0xe8, 3,                                  /* 1000 */
        4,    0xf8,                                           /* 7 */
        2,    0x40, 1,    'x',                                /* "x", 14 bits */
        4,    1,    'd',                                      /* "d" */
        3,    0xfe, 0xfd,                                     /* -3 */
        3,    0x80, 0,    0,    0,    1, 'e',                 /* "e", 32 bits */
        7,    0xd0, 0x70, 0x11, 1,    0,                      /* 70000 */
        6,    1,    'f',                                      /* "f" */
        3,    0xf0, 0,    0,    0x80,                         /* -8388608 */
        0xfe, 5,    0,    0,    0,    1, 'g',                 /* "g", long prevlen */
        7,    0xe0, 0,    0,    0,    0, 0,   1, 0,  0, 0xff, /* 2^40 */
    };
    static const uint8_t zipmap[] = {2,   1,   'a',  3, 2, 'x', 'y', 'z', 0,   0,   2,
                                     'b', 'b', 0xfe, 1, 0, 0,   0,   0,   '5', 0xff};
    struct engine_config config = config_with(512, 2), small = config_with(6, 64);
    struct engine_value v;
    cr_assert(
        load_blob(&v, RDB_TYPE_HASH_ZIPLIST, RDB_ZIPLIST, ziplist, sizeof ziplist, &config, NULL));
    cr_expect_eq(v.encoding, ENGINE_LISTPACK);
    cr_expect_eq(engine_value_count(&v), 7);
    expect_field(&v, "a", "12");
    expect_field(&v, "bb", "1000");
    expect_field(&v, "7", "x");
    expect_field(&v, "d", "-3");
    expect_field(&v, "e", "70000");
    expect_field(&v, "f", "-8388608");
    expect_field(&v, "g", "1099511627776");
    engine_value_free(&v);
    cr_assert(
        load_blob(&v, RDB_TYPE_HASH_ZIPLIST, RDB_ZIPLIST, ziplist, sizeof ziplist, &small, NULL));
    cr_expect_eq(v.encoding, ENGINE_HASHTABLE);
    expect_field(&v, "g", "1099511627776");
    engine_value_free(&v);
    cr_assert(load_blob(&v, RDB_TYPE_HASH_ZIPMAP, RDB_ZIPMAP, zipmap, sizeof zipmap, &small, NULL));
    cr_expect_eq(v.encoding, ENGINE_LISTPACK);
    expect_field(&v, "a", "xyz");
    expect_field(&v, "bb", "5");
    engine_value_free(&v);
    cr_assert(
        load_blob(&v, RDB_TYPE_HASH_ZIPMAP, RDB_ZIPMAP, zipmap, sizeof zipmap, &config, NULL));
    cr_expect_eq(v.encoding, ENGINE_HASHTABLE);
    expect_field(&v, "a", "xyz");
    engine_value_free(&v);
}

Test(value_hash, elements_make_what_a_server_makes_of_them)
{
    static const struct {
        enum rdb_type_id type;
        uint64_t count;
        const char *value;
        enum engine_encoding want;
    } cases[] = {
        {RDB_TYPE_HASH, 2, "short", ENGINE_LISTPACK},
        {RDB_TYPE_HASH, 3, "short", ENGINE_HASHTABLE},
        {RDB_TYPE_HASH, 2, "too long for it", ENGINE_HASHTABLE},
        {RDB_TYPE_HASH_LISTPACK, RDB_UNKNOWN, "too long for it", ENGINE_LISTPACK},
        {RDB_TYPE_HASH_ZIPMAP, RDB_UNKNOWN, "too long for it", ENGINE_HASHTABLE},
    };
    struct engine_config config = config_with(2, 8);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct engine_value v = {0};
        struct rdb_event ev = value_event(cases[i].type, cases[i].count);
        cr_assert(take_event(&v, &ev, &config, NULL));
        for (unsigned k = 0; k < (cases[i].count == 3 ? 3 : 2); k++) {
            char digit = (char)('0' + k);
            ev = text_event(RDB_ROLE_FIELD, rd_slice(&digit, 1));
            cr_assert(take_event(&v, &ev, &config, NULL));
            ev = text_event(RDB_ROLE_VALUE, rd_slice_str(cases[i].value));
            cr_assert(take_event(&v, &ev, &config, NULL));
        }
        ev = (struct rdb_event){.kind = RDB_VALUE_END};
        cr_assert(take_event(&v, &ev, &config, NULL));
        cr_expect_eq(v.encoding, cases[i].want, "case %zu", i);
        expect_field(&v, "1", cases[i].value);
        engine_value_free(&v);
    }
}

Test(value_hash, loading_may_end_anywhere_and_refuses_a_field_that_comes_twice)
{
    struct engine_config config = config_with(512, 64);
    int64_t before = engine_mem_total(&engine_mem);
    for (int stop = 0; stop < 6; stop++) {
        struct engine_value v = {0};
        struct rdb_event events[] = {
            value_event(RDB_TYPE_HASH, 2),
            text_event(RDB_ROLE_FIELD, rd_slice_str("a")),
            text_event(RDB_ROLE_VALUE, rd_slice_str("1")),
            text_event(RDB_ROLE_FIELD, rd_slice_str("a")),
            text_event(RDB_ROLE_VALUE, rd_slice_str("2")),
        };
        struct rd_err err = {0};
        for (int i = 0; i < stop; i++)
            cr_assert_eq(take_event(&v, &events[i], &config, &err), i < 4);
        cr_expect_eq(err.code, stop == 5 ? RD_ERR_CORRUPT : RD_ERR_OK);
        engine_value_free(&v);
    }
    cr_expect_eq(engine_mem_total(&engine_mem), before);
}

static void load(struct engine_value *v, struct rd_slice file, const struct engine_config *config)
{
    struct rd_err err = {0};
    enum engine_mem_kind kind = engine_mem_enter(ENGINE_MEM_HASH);
    *v = (struct engine_value){0};
    cr_assert(value_file_load(&engine_hash_ops, file, config, v, &err), "%s", err.text);
    engine_mem_leave(kind);
}

Test(value_hash, what_is_saved_is_loaded_again)
{
    for (unsigned n = 1; n < 2000; n = n * 2 + 1) {
        for (unsigned k = 0; k < 4; k++) {
            struct engine_config config = config_with(512, k < 2 ? 64 : 3);
            struct engine_value v = engine_hash_new(), back;
            struct rd_buf file = {0};
            uint8_t one[20] = {0}, two[20] = {0};
            char field[TEXT_MAX], value[TEXT_MAX];
            for (unsigned i = 0; i < n; i++) {
                struct rd_slice name = rd_slice(field, rd_num_put_i64(field, i));
                engine_hash_set(&v, name, text_of(i % 40, value), ENGINE_HASH_REPLACE, &config);
                if (k % 2 == 1 && i % 3 == 0)
                    engine_hash_expire(&v, name, 1000000 - (int64_t)i);
            }
            value_file_save(&engine_hash_ops, &v, RDB_TYPE_HASH, k % 2 == 1 ? 12 : 10, &file);
            load(&back, rd_buf_slice(&file), &config);
            engine_value_digest(&v, one);
            engine_value_digest(&back, two);
            cr_expect_arr_eq(one, two, 20, "%u %u", n, k);
            cr_expect_eq(engine_hash_next_expire(&back), engine_hash_next_expire(&v));
            rd_buf_done(&file);
            engine_value_free(&v);
            engine_value_free(&back);
        }
    }
}
