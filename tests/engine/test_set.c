#include "engine/value/set.h"

#include "base/buf.h"
#include "engine/mem.h"
#include "tests/engine/value_file.h"

#include <criterion/criterion.h>
#include <stdio.h>

static struct engine_config config_with(size_t max_entries)
{
    struct engine_config config;
    engine_config_init(&config);
    config.set_max_intset_entries = max_entries;
    return config;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* The i-th of names that are integers of all widths, or not quite integers. */
enum { NAMES = 300 };

static struct rd_slice name_of(unsigned i, char tmp[64])
{
    static const int64_t bases[] = {0, 32767, -32769, 2147483647, INT64_MIN + 1000};
    if (i % 6 == 5)
        return rd_slice(tmp, (size_t)snprintf(tmp, 64, "0%u", i));
    return rd_slice(tmp, rd_num_put_i64(tmp, bases[i % 6 % 5] + (int64_t)i - 150));
}

static unsigned count_in(const bool *model)
{
    unsigned n = 0;
    for (unsigned i = 0; i < NAMES; i++)
        n += model[i];
    return n;
}

/* Every name is in it as often as the model says, and nothing else is. */
static void expect_model(const struct engine_value *v, const bool *model)
{
    struct engine_set_iter it;
    struct rd_slice member;
    char tmp[64];
    unsigned n = 0;
    cr_assert_eq(engine_set_count(v), count_in(model));
    for (unsigned i = 0; i < NAMES; i++)
        cr_assert_eq(engine_set_has(v, name_of(i, tmp)), model[i], "name %u", i);
    engine_set_iter_begin(&it, v);
    for (; engine_set_iter_next(&it, &member); n++)
        cr_assert(engine_set_has(v, member));
    engine_set_iter_end(&it);
    cr_assert_eq(n, count_in(model));
}

Test(set, holds_what_was_added_and_not_removed)
{
    static const size_t limits[] = {0, 1, 10, 1000};
    uint64_t state = 42;
    for (size_t k = 0; k < 4; k++) {
        struct engine_config config = config_with(limits[k]);
        struct engine_value v = engine_set_new_intset();
        bool model[NAMES] = {false};
        char tmp[64];
        for (unsigned step = 0; step < 3000; step++) {
            /* Integers only at first, so that both encodings are seen. */
            unsigned i = (unsigned)(next_random(&state) % NAMES);
            bool adds = next_random(&state) % 100 < (step / 500 % 2 == 0 ? 70 : 30);
            if (i % 6 == 5 && step < 1500)
                continue;
            struct rd_slice name = name_of(i, tmp);
            bool changed = adds ? engine_set_add(&v, name, &config) : engine_set_remove(&v, name);
            cr_assert_eq(changed, model[i] != adds);
            model[i] = adds;
            if (step % 50 == 0)
                expect_model(&v, model);
        }
        expect_model(&v, model);
        cr_expect_eq(v.encoding, ENGINE_HASHTABLE);
        engine_value_free(&v);
    }
}

Test(set, becomes_a_table_at_the_limit_and_by_the_first_text)
{
    struct engine_config config = config_with(4);
    struct engine_value v = engine_set_new(rd_slice_str("1"));
    char tmp[64];
    for (int i = 1; i <= 4; i++)
        engine_set_add(&v, rd_slice(tmp, rd_num_put_i64(tmp, i)), &config);
    cr_expect_eq(v.encoding, ENGINE_INTSET);
    cr_expect_not(engine_set_add(&v, rd_slice_str("4"), &config));
    cr_expect_eq(v.encoding, ENGINE_INTSET);
    cr_expect(engine_set_add(&v, rd_slice_str("5"), &config));
    cr_expect_eq(v.encoding, ENGINE_HASHTABLE);
    engine_set_remove(&v, rd_slice_str("5"));
    cr_expect_eq(v.encoding, ENGINE_HASHTABLE);
    engine_value_free(&v);

    v = engine_set_new(rd_slice_str("1"));
    engine_set_add(&v, rd_slice_str("1"), &config);
    engine_set_add(&v, rd_slice_str("+1"), &config);
    cr_expect_eq(v.encoding, ENGINE_HASHTABLE);
    cr_expect(engine_set_has(&v, rd_slice_str("1")));
    cr_expect_eq(engine_set_count(&v), 2);
    engine_value_free(&v);

    v = engine_set_new(rd_slice_str("x"));
    cr_expect_eq(v.encoding, ENGINE_HASHTABLE);
    engine_value_free(&v);
}

Test(set, picks_each_member_about_as_often)
{
    static const char *const names[][5] = {{"1", "2", "3", "4", "5"}, {"a", "b", "c", "d", "e"}};
    struct engine_config config = config_with(512);
    uint64_t state = 7;
    for (unsigned k = 0; k < 2; k++) {
        struct engine_value v = engine_set_new(rd_slice_str(names[k][0]));
        unsigned seen[5] = {0};
        char tmp[RD_NUM_I64_MAX];
        for (unsigned i = 0; i < 5; i++)
            engine_set_add(&v, rd_slice_str(names[k][i]), &config);
        for (unsigned i = 0; i < 5000; i++) {
            /* The high bits of xorshift alone are not random enough for a multiplication. */
            uint64_t random = next_random(&state) * 0x9e3779b97f4a7c15;
            struct rd_slice member = engine_set_random(&v, random, tmp);
            for (unsigned j = 0; j < 5; j++)
                seen[j] += rd_slice_is(member, names[k][j]);
        }
        for (unsigned j = 0; j < 5; j++)
            cr_expect(seen[j] > 700 && seen[j] < 1300, "%s: %u", names[k][j], seen[j]);
        engine_value_free(&v);
    }
}

Test(set, copies_are_independent)
{
    struct engine_config config = config_with(512);
    for (unsigned k = 0; k < 2; k++) {
        struct engine_value v = engine_set_new(rd_slice_str(k == 0 ? "1" : "a"));
        engine_set_add(&v, rd_slice_str(k == 0 ? "1" : "a"), &config);
        struct engine_value copy = engine_value_dup(&v);
        cr_expect_eq(copy.encoding, v.encoding);
        engine_set_add(&copy, rd_slice_str("2"), &config);
        cr_expect_eq(engine_value_count(&v), 1);
        cr_expect_eq(engine_value_count(&copy), 2);
        engine_value_free(&v);
        cr_expect(engine_set_has(&copy, rd_slice_str(k == 0 ? "1" : "a")));
        engine_value_free(&copy);
    }
}

Test(set, all_memory_is_given_back)
{
    struct engine_config config = config_with(512);
    int64_t before = engine_mem_total(&engine_mem);
    struct engine_value v = engine_set_new(rd_slice_str("1"));
    char tmp[64];
    for (unsigned i = 0; i < NAMES; i++)
        engine_set_add(&v, name_of(i, tmp), &config);
    cr_expect_gt(engine_mem_total(&engine_mem), before + NAMES * 16);
    engine_value_free(&v);
    cr_expect_eq(engine_mem_total(&engine_mem), before);
}

/* ---- snapshots ---- */

static struct rdb_event value_event(enum rdb_type_id type, uint64_t count)
{
    struct rdb_event ev = {.kind = RDB_VALUE};
    ev.value.type = rdb_type_get(type);
    ev.value.count = count;
    ev.value.nodes = RDB_UNKNOWN;
    ev.value.min_expire_ms = RDB_NO_EXPIRE;
    return ev;
}

static struct rdb_event member_event(const char *text, size_t len, size_t total, bool first)
{
    struct rdb_event ev = {.kind = RDB_ELEM};
    ev.elem.role = RDB_ROLE_MEMBER;
    ev.elem.expire_ms = RDB_NO_EXPIRE;
    ev.elem.str.ptr = (const uint8_t *)text;
    ev.elem.str.len = len;
    ev.elem.str.total = total;
    ev.elem.str.first = first;
    ev.elem.str.more = len < total && first;
    return ev;
}

static bool take_event(struct engine_value *v, const struct rdb_event *ev,
                       const struct engine_config *config, struct rd_err *err)
{
    enum engine_mem_kind kind = engine_mem_enter(ENGINE_MEM_SET);
    bool good = engine_set_ops.load(v, ev, config, err);
    engine_mem_leave(kind);
    return good;
}

static bool load_texts(struct engine_value *v, enum rdb_type_id type, uint64_t count,
                       const char *const *texts, size_t n, const struct engine_config *config,
                       struct rd_err *err)
{
    struct rdb_event ev = value_event(type, count);
    *v = (struct engine_value){0};
    bool good = take_event(v, &ev, config, err);
    for (size_t i = 0; good && i < n; i++) {
        ev = member_event(texts[i], strlen(texts[i]), strlen(texts[i]), true);
        good = take_event(v, &ev, config, err);
    }
    ev = (struct rdb_event){.kind = RDB_VALUE_END};
    return good && take_event(v, &ev, config, err);
}

Test(set, loading_chooses_the_encoding_by_count_and_members)
{
    static const char *const ints[] = {"3", "1", "2"}, *const mixed[] = {"3", "x", "2"};
    struct engine_value v;
    struct engine_config config = config_with(3), small = config_with(2);
    cr_assert(load_texts(&v, RDB_TYPE_SET, 3, ints, 3, &config, NULL));
    cr_expect_eq(v.encoding, ENGINE_INTSET);
    cr_expect_eq(engine_set_count(&v), 3);
    engine_value_free(&v);
    cr_assert(load_texts(&v, RDB_TYPE_SET, 3, ints, 3, &small, NULL));
    cr_expect_eq(v.encoding, ENGINE_HASHTABLE);
    engine_value_free(&v);
    cr_assert(load_texts(&v, RDB_TYPE_SET, 3, mixed, 3, &config, NULL));
    cr_expect_eq(v.encoding, ENGINE_HASHTABLE);
    cr_expect(engine_set_has(&v, rd_slice_str("3")));
    engine_value_free(&v);
    cr_assert(load_texts(&v, RDB_TYPE_SET_INTSET, RDB_UNKNOWN, ints, 3, &config, NULL));
    cr_expect_eq(v.encoding, ENGINE_INTSET);
    engine_value_free(&v);
    cr_assert(load_texts(&v, RDB_TYPE_SET_INTSET, RDB_UNKNOWN, ints, 0, &config, NULL));
    cr_expect_eq(engine_value_count(&v), 0);
    engine_value_free(&v);
}

Test(set, loading_refuses_a_member_that_comes_twice)
{
    static const char *const ints[] = {"3", "3"}, *const texts[] = {"x", "x"};
    struct engine_config config = config_with(512);
    struct engine_value v;
    struct rd_err err = {0};
    cr_expect_not(load_texts(&v, RDB_TYPE_SET, 2, ints, 2, &config, &err));
    cr_expect_eq(err.code, RD_ERR_CORRUPT);
    engine_value_free(&v);
    err = (struct rd_err){0};
    cr_expect_not(load_texts(&v, RDB_TYPE_SET, 2, texts, 2, &config, &err));
    cr_expect_eq(err.code, RD_ERR_CORRUPT);
    engine_value_free(&v);
}

Test(set, loading_puts_pieces_together_and_ends_anywhere)
{
    struct engine_config config = config_with(512);
    int64_t before = engine_mem_total(&engine_mem);
    for (int stop = 0; stop < 5; stop++) {
        struct engine_value v = {0};
        struct rdb_event events[] = {value_event(RDB_TYPE_SET, 2),
                                     member_event("ab", 2, 4, true),
                                     member_event("cd", 2, 4, false),
                                     member_event("7", 1, 1, true),
                                     {.kind = RDB_VALUE_END}};
        for (int i = 0; i <= stop; i++)
            cr_assert(take_event(&v, &events[i], &config, NULL));
        if (stop == 4) {
            cr_expect(engine_set_has(&v, rd_slice_str("abcd")));
            cr_expect_eq(engine_set_count(&v), 2);
        }
        engine_value_free(&v);
    }
    cr_expect_eq(engine_mem_total(&engine_mem), before);
}

static void load_blob(struct engine_value *v, enum rdb_type_id type, enum rdb_codec codec,
                      struct rd_slice blob, const struct engine_config *config)
{
    struct rdb_event begin = value_event(type, RDB_UNKNOWN), packed = {.kind = RDB_PACKED};
    struct rdb_event end = {.kind = RDB_VALUE_END};
    packed.packed.codec = codec;
    packed.packed.blob = blob;
    *v = (struct engine_value){0};
    cr_assert(take_event(v, &begin, config, NULL));
    cr_assert(take_event(v, &packed, config, NULL));
    cr_assert(take_event(v, &end, config, NULL));
}

Test(set, packed_encodings_become_what_the_limits_say)
{
    static const uint8_t intset[] = {2, 0, 0, 0, 3, 0, 0, 0, 1, 0, 2, 0, 3, 0};
    static const uint8_t ints[] = {13, 0, 0, 0, 3, 0, 1, 1, 2, 1, 3, 1, 0xff};
    static const uint8_t texts[] = {13, 0, 0, 0, 2, 0, 1, 1, 0x81, 'x', 2, 0xff};
    struct engine_config config = config_with(3), small = config_with(2);
    struct engine_value v;
    load_blob(&v, RDB_TYPE_SET_INTSET, RDB_INTSET, rd_slice(intset, sizeof intset), &config);
    cr_expect_eq(v.encoding, ENGINE_INTSET);
    engine_value_free(&v);
    load_blob(&v, RDB_TYPE_SET_INTSET, RDB_INTSET, rd_slice(intset, sizeof intset), &small);
    cr_expect_eq(v.encoding, ENGINE_HASHTABLE);
    cr_expect(engine_set_has(&v, rd_slice_str("2")) && engine_set_count(&v) == 3);
    engine_value_free(&v);
    load_blob(&v, RDB_TYPE_SET_LISTPACK, RDB_LISTPACK, rd_slice(ints, sizeof ints), &config);
    cr_expect_eq(v.encoding, ENGINE_INTSET);
    cr_expect_eq(engine_set_count(&v), 3);
    engine_value_free(&v);
    uint8_t lp[sizeof texts];
    memcpy(lp, texts, sizeof lp);
    lp[0] = 12;
    load_blob(&v, RDB_TYPE_SET_LISTPACK, RDB_LISTPACK, rd_slice(lp, 12), &config);
    cr_expect_eq(v.encoding, ENGINE_HASHTABLE);
    cr_expect(engine_set_has(&v, rd_slice_str("x")) && engine_set_has(&v, rd_slice_str("1")));
    engine_value_free(&v);
}

static void load(struct engine_value *v, struct rd_slice file, const struct engine_config *config)
{
    struct rd_err err = {0};
    enum engine_mem_kind kind = engine_mem_enter(ENGINE_MEM_SET);
    *v = (struct engine_value){0};
    cr_assert(value_file_load(&engine_set_ops, file, config, v, &err), "%s", err.text);
    engine_mem_leave(kind);
}

Test(set, what_is_saved_is_loaded_again)
{
    char tmp[64];
    for (unsigned n = 1; n < 2000; n = n * 2 + 1) {
        for (unsigned k = 0; k < 2; k++) {
            struct engine_config config = config_with(512);
            struct engine_value v = engine_set_new_intset(), back;
            struct rd_buf file = {0};
            uint8_t one[20] = {0}, two[20] = {0};
            for (unsigned i = 0; i < n; i++) {
                size_t len = (size_t)snprintf(tmp, sizeof tmp, k == 0 ? "%u" : "member:%u", i);
                engine_set_add(&v, rd_slice(tmp, len), &config);
            }
            value_file_save(&engine_set_ops, &v, RDB_TYPE_SET, 10, &file);
            load(&back, rd_buf_slice(&file), &config);
            cr_expect_eq(back.encoding, v.encoding, "%u", n);
            engine_value_digest(&v, one);
            engine_value_digest(&back, two);
            cr_expect_arr_eq(one, two, 20);
            cr_expect_eq(engine_value_count(&back), n);
            rd_buf_done(&file);
            engine_value_free(&v);
            engine_value_free(&back);
        }
    }
}
