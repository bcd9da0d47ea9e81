#include "engine/value/zset.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "engine/digest.h"
#include "rdb/encode.h"
#include "tests/engine/value_file.h"

enum { MODEL_MAX = 600, NAME_MAX_LEN = 80 };

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t below(uint64_t *state, size_t n)
{
    return (size_t)(next_random(state) % n);
}

/* What a sorted set should be: pairs in their order. */
struct pair {
    double score;
    size_t len;
    uint8_t name[NAME_MAX_LEN];
};

static struct pair model[MODEL_MAX];
static size_t n_model;

static struct rd_slice name_of(const struct pair *pair)
{
    return rd_slice(pair->name, pair->len);
}

static bool same_score(double a, double b)
{
    return !(a < b) && !(a > b);
}

static size_t model_find(struct rd_slice name)
{
    size_t at = 0;
    while (at < n_model && !rd_slice_eq(name_of(&model[at]), name))
        at++;
    return at;
}

static void model_remove(size_t at, size_t n)
{
    memmove(&model[at], &model[at + n], (n_model - at - n) * sizeof model[0]);
    n_model -= n;
}

static void model_insert(struct rd_slice name, double score)
{
    size_t at = 0;
    while (at < n_model &&
           (model[at].score < score ||
            (same_score(model[at].score, score) && rd_slice_cmp(name_of(&model[at]), name) < 0)))
        at++;
    memmove(&model[at + 1], &model[at], (n_model - at) * sizeof model[0]);
    model[at].score = score;
    model[at].len = name.len;
    memcpy(model[at].name, name.ptr, name.len);
    n_model++;
}

static struct rd_slice choose_name(uint64_t *random, uint8_t buf[NAME_MAX_LEN], size_t n_names)
{
    size_t n = below(random, n_names), len;
    memset(buf, 'x', NAME_MAX_LEN);
    switch (n % 4) {
    case 0:
        return rd_slice(buf, (size_t)snprintf((char *)buf, NAME_MAX_LEN, "%zu", n));
    case 1:
        return rd_slice(buf, (size_t)snprintf((char *)buf, NAME_MAX_LEN, "-%zu", n * 100003));
    default:
        len = (size_t)snprintf((char *)buf, NAME_MAX_LEN, "m%zu", n);
        buf[len] = 'y';
        return rd_slice(buf, len + n % 30);
    }
}

static double choose_score(uint64_t *random)
{
    static const double special[] = {INFINITY, -INFINITY, 0.1, 1e300, -1e-300, 1e18, 4.7e18, -0.0};
    size_t kind = below(random, 10);
    if (kind == 0)
        return special[below(random, sizeof special / sizeof special[0])];
    if (kind < 4)
        return (double)below(random, 1000) / 7;
    return (double)below(random, 40) - 20;
}

static void check_equal(const struct engine_value *v)
{
    struct engine_zset_cursor at;
    size_t i = 0, rank;
    double score;
    cr_assert_eq(engine_zset_count(v), n_model);
    for (bool is = engine_zset_at(v, 0, &at); is; is = engine_zset_next(&at), i++) {
        struct rd_slice name = name_of(&model[i]);
        cr_assert(rd_slice_eq(engine_zset_member(&at), name));
        cr_assert(same_score(engine_zset_score_at(&at), model[i].score));
        cr_assert(engine_zset_score(v, name, &score) && same_score(score, model[i].score));
        cr_assert(engine_zset_rank(v, name, &rank) && rank == i);
    }
    cr_assert_eq(i, n_model);
    for (bool is = n_model > 0 && engine_zset_at(v, n_model - 1, &at); is;
         is = engine_zset_prev(&at))
        cr_assert(rd_slice_eq(engine_zset_member(&at), name_of(&model[--i])));
    cr_assert_eq(i, 0);
    cr_assert_not(engine_zset_at(v, n_model, &at));
}

/* What engine_zset_add() does, implemented in a second way. */
static enum engine_zset_done model_add(unsigned how, struct rd_slice name, double *score)
{
    size_t at = model_find(name);
    if (at == n_model) {
        if (how & ENGINE_ZSET_XX)
            return ENGINE_ZSET_NOT;
        model_insert(name, *score);
        return ENGINE_ZSET_ADDED;
    }
    double old = model[at].score;
    double new = how &ENGINE_ZSET_INCR ? old + *score : *score;
    if (how & ENGINE_ZSET_NX)
        return ENGINE_ZSET_NOT;
    if (isnan(new))
        return ENGINE_ZSET_NAN;
    if (((how & ENGINE_ZSET_GT) && !(new > old)) || ((how & ENGINE_ZSET_LT) && !(new < old)))
        return ENGINE_ZSET_NOT;
    *score = new;
    if (same_score(new, old))
        return ENGINE_ZSET_SAME;
    model_remove(at, 1);
    model_insert(name, new);
    return ENGINE_ZSET_UPDATED;
}

static void change(struct engine_value *v, const struct engine_config *config, uint64_t *random,
                   size_t n_names)
{
    uint8_t buf[NAME_MAX_LEN];
    struct rd_slice name = choose_name(random, buf, n_names);
    size_t kind = below(random, 100);
    if (kind < 70) {
        static const unsigned hows[] = {0, 0, 0, 1, 2, 4, 8, 16, 18, 20, 24, 6};
        unsigned how = hows[below(random, sizeof hows / sizeof hows[0])];
        double one = choose_score(random), two = one;
        enum engine_zset_done done = engine_zset_add(v, config, how, name, &one);
        cr_assert_eq(done, model_add(how, name, &two));
        cr_assert(same_score(one, two));
    } else if (kind < 98) {
        size_t at = model_find(name);
        cr_assert_eq(engine_zset_remove(v, name), at < n_model);
        if (at < n_model)
            model_remove(at, 1);
    } else {
        size_t rank = below(random, n_model + 1);
        size_t n = below(random, n_model - rank + 1) / 4;
        engine_zset_cut(v, rank, n);
        model_remove(rank, n);
    }
}

static void change_often(size_t max_entries, size_t n_names, uint64_t seed)
{
    struct engine_config config;
    uint64_t random = seed;
    engine_config_init(&config);
    config.zset_max_listpack_entries = max_entries;
    config.zset_max_listpack_value = NAME_MAX_LEN;
    struct engine_value v = engine_zset_new(&config, 1, 1);
    n_model = 0;
    for (int i = 0; i < 3000; i++) {
        change(&v, &config, &random, n_names);
        if (i % 20 == 0)
            check_equal(&v);
    }
    cr_assert_gt(n_model, n_names / 4);
    cr_assert_eq(v.encoding, n_names > max_entries ? ENGINE_SKIPLIST : ENGINE_LISTPACK);
    engine_value_free(&v);
    cr_assert_eq(engine_mem_total(&engine_mem), 0);
}

Test(zset, holds_what_a_sorted_array_holds_in_both_encodings)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_ZSET);
    change_often(1000, 60, 88172645463325252);
    change_often(0, 60, 4101842887655102017);
    change_often(20, 400, 1181783497276652981);
    change_often(100, 100, 7);
    engine_mem_leave(before);
}

Test(zset, becomes_a_skiplist_with_the_member_that_is_too_much_or_too_long)
{
    struct engine_config config;
    char name[100];
    engine_config_init(&config);
    struct engine_value v = engine_zset_new(&config, 1, 64);
    for (int i = 0; i < 128; i++) {
        double score = i;
        cr_assert_eq(v.encoding, ENGINE_LISTPACK);
        size_t len = (size_t)snprintf(name, sizeof name, "%d", i);
        engine_zset_add(&v, &config, 0, rd_slice(name, len), &score);
    }
    struct engine_value few = engine_value_dup(&v);
    double score = 1;
    cr_assert_eq(v.encoding, ENGINE_LISTPACK);
    engine_zset_add(&v, &config, ENGINE_ZSET_XX, rd_slice_str("new"), &score);
    cr_assert_eq(v.encoding, ENGINE_LISTPACK);
    engine_zset_add(&v, &config, 0, rd_slice_str("new"), &score);
    cr_assert_eq(v.encoding, ENGINE_SKIPLIST);
    cr_assert(engine_zset_remove(&v, rd_slice_str("new")));
    cr_assert_eq(v.encoding, ENGINE_SKIPLIST);
    engine_zset_settle(&v, &config);
    cr_assert_eq(v.encoding, ENGINE_LISTPACK);
    cr_assert(rd_slice_eq(rd_slice(v.u.lp, engine_lp_bytes(v.u.lp)),
                          rd_slice(few.u.lp, engine_lp_bytes(few.u.lp))));
    memset(name, 'n', sizeof name);
    engine_zset_remove(&few, rd_slice_str("0"));
    engine_zset_add(&few, &config, 0, rd_slice(name, 64), &score);
    cr_assert_eq(few.encoding, ENGINE_LISTPACK);
    engine_zset_remove(&few, rd_slice_str("1"));
    engine_zset_add(&few, &config, 0, rd_slice(name, 65), &score);
    cr_assert_eq(few.encoding, ENGINE_SKIPLIST);
    struct engine_value other = engine_zset_new(&config, 1, 65);
    cr_assert_eq(other.encoding, ENGINE_SKIPLIST);
    engine_value_free(&other);
    engine_zset_settle(&few, &config);
    cr_assert_eq(few.encoding, ENGINE_SKIPLIST);
    engine_value_free(&v);
    engine_value_free(&few);
}

/* ---- ranges ---- */

static bool model_in(const struct engine_zset_range *range, const struct pair *pair)
{
    if (!range->lex) {
        bool from = range->min_open ? pair->score > range->min : pair->score >= range->min;
        return from && (range->max_open ? pair->score < range->max : pair->score <= range->max);
    }
    int min = rd_slice_cmp(name_of(pair), range->min_text);
    int max = rd_slice_cmp(name_of(pair), range->max_text);
    bool from = range->min_bound == ENGINE_ZSET_LOWEST ||
                (range->min_bound == ENGINE_ZSET_TEXT && min >= range->min_open);
    return from && (range->max_bound == ENGINE_ZSET_HIGHEST ||
                    (range->max_bound == ENGINE_ZSET_TEXT && max <= -(int)range->max_open));
}

static void check_range(const struct engine_value *v, const struct engine_zset_range *range)
{
    struct engine_zset_cursor at;
    size_t first = 0, n = 0, rank;
    while (first < n_model && !model_in(range, &model[first]))
        first++;
    while (first + n < n_model && model_in(range, &model[first + n]))
        n++;
    cr_assert_eq(engine_zset_count_in(v, range, &rank), n);
    cr_assert_eq(rank, n > 0 ? first : 0);
    cr_assert_eq(engine_zset_first_in(v, range, &at), n > 0);
    if (n == 0) {
        cr_assert_not(engine_zset_last_in(v, range, &at));
        return;
    }
    cr_assert(rd_slice_eq(engine_zset_member(&at), name_of(&model[first])));
    cr_assert(engine_zset_from_min(range, &at) && engine_zset_to_max(range, &at));
    cr_assert(engine_zset_last_in(v, range, &at));
    cr_assert(rd_slice_eq(engine_zset_member(&at), name_of(&model[first + n - 1])));
    if (engine_zset_next(&at))
        cr_assert_not(engine_zset_to_max(range, &at));
}

static void check_ranges(const struct engine_value *v, bool lex, uint64_t *random)
{
    uint8_t min[NAME_MAX_LEN], max[NAME_MAX_LEN];
    for (int i = 0; i < 500; i++) {
        struct engine_zset_range range = {
            .lex = lex, .min = choose_score(random), .max = choose_score(random)};
        range.min_open = below(random, 2);
        range.max_open = below(random, 2);
        if (lex && below(random, 4) == 0)
            range.min_bound = 1 + (enum engine_zset_bound)below(random, 2);
        if (lex && below(random, 4) == 0)
            range.max_bound = 1 + (enum engine_zset_bound)below(random, 2);
        range.min_text = choose_name(random, min, 100);
        range.max_text = below(random, 5) == 0 ? range.min_text : choose_name(random, max, 100);
        check_range(v, &range);
    }
}

Test(zset, finds_the_members_of_ranges_in_both_encodings)
{
    uint64_t random = 88172645463325252;
    for (int round = 0; round < 8; round++) {
        struct engine_config config;
        uint8_t buf[NAME_MAX_LEN];
        bool lex = round % 2;
        engine_config_init(&config);
        config.zset_max_listpack_entries = round % 4 < 2 ? 1000 : 0;
        struct engine_value v = engine_zset_new(&config, 1, 1);
        n_model = 0;
        for (int i = 0; i < round * 30; i++) {
            double one = lex ? 0 : choose_score(&random), two = one;
            struct rd_slice name = choose_name(&random, buf, 100);
            engine_zset_add(&v, &config, 0, name, &one);
            model_add(0, name, &two);
        }
        cr_assert_eq(v.encoding, round % 4 < 2 ? ENGINE_LISTPACK : ENGINE_SKIPLIST);
        check_ranges(&v, lex, &random);
        engine_value_free(&v);
    }
}

/* The order of members is not that of the set where scores differ. A listpack is searched from its
 * first member on, as it is in a server. */
Test(zset, takes_the_first_run_of_a_lex_range_where_scores_differ)
{
    static const char *const names[] = {"b", "c", "a", "d"};
    struct engine_config config;
    size_t rank;
    engine_config_init(&config);
    struct engine_value v = engine_zset_new(&config, 1, 1);
    for (int i = 0; i < 4; i++)
        engine_zset_add(&v, &config, 0, rd_slice_str(names[i]), &(double){i});
    struct engine_zset_range range = {
        .lex = true, .min_text = rd_slice_str("a"), .max_text = rd_slice_str("c")};
    cr_assert_eq(engine_zset_count_in(&v, &range, &rank), 3);
    range.max_text = rd_slice_str("b");
    cr_assert_eq(engine_zset_count_in(&v, &range, &rank), 1);
    cr_assert_eq(rank, 0);
    range.min_text = rd_slice_str("c");
    range.max_text = rd_slice_str("e");
    cr_assert_eq(engine_zset_count_in(&v, &range, &rank), 3);
    cr_assert_eq(rank, 1);
    engine_value_free(&v);
}

/* ---- scores as text ---- */

Test(zset, keeps_whole_scores_of_listpacks_as_integers_and_others_with_seventeen_digits)
{
    static const struct {
        double score;
        const char *text;
        bool is_num;
    } cases[] = {
        {1, "1", true},
        {-0.0, "0", true},
        {1e18, "1000000000000000000", true},
        {4611686018427387904.0, "4611686018427387904", true},
        {4611686018427388928.0, "4.6116860184273889e+18", false},
        {0.1, "0.10000000000000001", false},
        {3.5, "3.5", false},
        {INFINITY, "inf", false},
        {-INFINITY, "-inf", false},
        {5e-324, "4.9406564584124654e-324", false},
    };
    struct engine_config config;
    engine_config_init(&config);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char tmp[RD_NUM_I64_MAX];
        double score = cases[i].score;
        struct engine_value v = engine_zset_new(&config, 1, 1);
        engine_zset_add(&v, &config, 0, rd_slice_str("m"), &score);
        const uint8_t *last = engine_lp_last(v.u.lp);
        cr_assert_not_null(last);
        struct engine_lp_item item =
            last == NULL ? (struct engine_lp_item){0} : engine_lp_get(last);
        cr_assert_eq(item.is_num, cases[i].is_num);
        cr_assert(rd_slice_is(engine_lp_item_text(item, tmp), cases[i].text), "%s", cases[i].text);
        cr_assert(engine_zset_score(&v, rd_slice_str("m"), &score));
        cr_assert(same_score(score, cases[i].score));
        engine_value_free(&v);
    }
}

/* ---- snapshots ---- */

static void fill(struct engine_value *v, const struct engine_config *config, size_t n,
                 uint64_t *random)
{
    uint8_t buf[NAME_MAX_LEN];
    *v = engine_zset_new(config, 1, 1);
    n_model = 0;
    while (n_model < n) {
        double one = choose_score(random), two = one;
        struct rd_slice name = choose_name(random, buf, 4 * n);
        engine_zset_add(v, config, 0, name, &one);
        model_add(0, name, &two);
    }
}

/* The model in an encoding of files, with the type in front. */
static void encode(const struct rdb_type *type, struct rd_buf *ret)
{
    struct rdb_encoder *e;
    struct rd_sink *sink;
    struct rd_slice head;
    struct rd_buf body = {0};
    struct rd_err err = {0};
    cr_assert(rd_sink_open_buf(&sink, &body, NULL, &err) && rdb_encoder_new(&e, &err));
    cr_assert(rdb_encoder_begin(e, type, RDB_NO_EXPIRE, sink, &err));
    for (size_t i = 0; i < n_model; i++) {
        struct rdb_event ev = {.kind = RDB_ELEM, .inner = RD_NO_OFFSET};
        ev.elem.role = RDB_ROLE_MEMBER;
        ev.elem.expire_ms = RDB_NO_EXPIRE;
        ev.elem.score = model[i].score;
        ev.elem.str = (struct rdb_string){
            .ptr = model[i].name, .len = model[i].len, .total = model[i].len, .first = true};
        cr_assert(rdb_encoder_put(e, &ev, &err), "%s", err.text);
    }
    cr_assert(rdb_encoder_end(e, &head, &err) && rd_sink_flush(sink));
    rd_buf_add_byte(ret, type->number);
    rd_buf_add(ret, head.ptr, head.len);
    cr_assert(rd_sink_close(sink, &err));
    rd_buf_add(ret, body.ptr, body.len);
    rdb_encoder_free(e);
    rd_buf_done(&body);
}

static bool try_load(struct rd_slice payload, size_t window, const struct engine_config *config,
                     struct engine_value *v)
{
    struct rd_err err = {0};
    *v = (struct engine_value){.type = ENGINE_ZSET};
    return value_file_load_payload(&engine_zset_ops, payload, window, config, v, &err);
}

Test(zset, comes_from_every_encoding_of_files)
{
    static const enum rdb_type_id types[] = {RDB_TYPE_ZSET, RDB_TYPE_ZSET_2, RDB_TYPE_ZSET_ZIPLIST,
                                             RDB_TYPE_ZSET_LISTPACK};
    uint64_t random = 88172645463325252;
    struct engine_config config;
    engine_config_init(&config);
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        static const size_t sizes[] = {1, 5, 127, 128, 129, 590};
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            struct rd_buf bytes = {0};
            struct engine_value v;
            fill(&v, &config, sizes[i], &random);
            engine_value_free(&v);
            encode(rdb_type_get(types[t]), &bytes);
            for (size_t window = 0; window <= 4096; window += 4096 - 2048) {
                cr_assert(try_load(rd_buf_slice(&bytes), window, &config, &v));
                cr_assert_eq(v.encoding, sizes[i] <= 128 ? ENGINE_LISTPACK : ENGINE_SKIPLIST);
                check_equal(&v);
                engine_value_free(&v);
            }
            rd_buf_done(&bytes);
        }
    }
}

/* A server looks at the length of members only where the file holds them one by one. */
Test(zset, keeps_long_members_in_the_listpack_that_a_file_has)
{
    struct engine_config config;
    struct engine_value v;
    engine_config_init(&config);
    for (int packed = 0; packed < 2; packed++)
        for (size_t window = 0; window <= 600; window += 600) {
            struct rd_buf bytes = {0};
            n_model = 0;
            for (int i = 0; i < 60; i++) {
                uint8_t name[NAME_MAX_LEN];
                memset(name, 'a' + i, sizeof name);
                model_insert(rd_slice(name, 70), i);
            }
            encode(rdb_type_get(packed ? RDB_TYPE_ZSET_LISTPACK : RDB_TYPE_ZSET_2), &bytes);
            cr_assert(try_load(rd_buf_slice(&bytes), window, &config, &v));
            cr_assert_eq(v.encoding, packed ? ENGINE_LISTPACK : ENGINE_SKIPLIST);
            check_equal(&v);
            engine_value_free(&v);
            rd_buf_done(&bytes);
        }
}

Test(zset, refuses_a_file_with_a_member_twice_and_frees_what_it_had)
{
    struct engine_config config;
    struct engine_value v;
    struct rd_buf bytes = {0};
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_ZSET);
    engine_config_init(&config);
    n_model = 0;
    model_insert(rd_slice_str("b"), 2);
    model_insert(rd_slice_str("a"), 1);
    encode(rdb_type_get(RDB_TYPE_ZSET_2), &bytes);
    uint8_t *b = memchr(bytes.ptr, 'b', bytes.len);
    cr_assert_not_null(b);
    *b = 'a';
    cr_assert_not(try_load(rd_buf_slice(&bytes), 0, &config, &v));
    engine_value_free(&v);
    rd_buf_done(&bytes);
    engine_mem_leave(before);
    cr_assert_eq(engine_mem.bytes[ENGINE_MEM_ZSET], 0);
}

static void digest(const struct engine_value *v, uint8_t ret[ENGINE_DIGEST])
{
    memset(ret, 0, ENGINE_DIGEST);
    engine_value_digest(v, ret);
}

Test(zset, goes_to_a_file_and_comes_back_the_same)
{
    uint64_t random = 4101842887655102017;
    struct engine_config config;
    engine_config_init(&config);
    for (size_t n = 1; n < 500; n = n * 2 + 1) {
        struct rd_buf file = {0};
        struct engine_value v, again;
        uint8_t one[ENGINE_DIGEST], two[ENGINE_DIGEST];
        enum rdb_type_id type = n <= 128 ? RDB_TYPE_ZSET_LISTPACK : RDB_TYPE_ZSET_2;
        fill(&v, &config, n, &random);
        value_file_save(&engine_zset_ops, &v, type, 10, &file);
        cr_assert(try_load(value_file_payload(&file, type), 0, &config, &again));
        cr_assert_eq(again.encoding, v.encoding);
        check_equal(&again);
        digest(&v, one);
        digest(&again, two);
        cr_assert_arr_eq(one, two, ENGINE_DIGEST);
        engine_value_free(&v);
        engine_value_free(&again);
        rd_buf_done(&file);
    }
}

Test(zset, has_copies_and_digests_that_do_not_depend_on_the_encoding)
{
    uint64_t random = 7;
    struct engine_config config;
    struct engine_value v;
    uint8_t one[ENGINE_DIGEST], two[ENGINE_DIGEST];
    engine_config_init(&config);
    fill(&v, &config, 100, &random);
    digest(&v, one);
    cr_assert_eq(engine_value_effort(&v), 1);
    engine_zset_become_skiplist(&v, 100);
    struct engine_value copy = engine_value_dup(&v);
    engine_value_free(&v);
    check_equal(&copy);
    digest(&copy, two);
    cr_assert_arr_eq(one, two, ENGINE_DIGEST);
    cr_assert_eq(engine_value_effort(&copy), 100);
    engine_value_free(&copy);
}
