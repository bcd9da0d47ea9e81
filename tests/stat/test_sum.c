#include "stat/sum.h"

#include <criterion/criterion.h>

#include <stdio.h>

static struct stat_key key(const char *name, uint64_t memory)
{
    return (struct stat_key){.name = rd_slice_str(name),
                             .type = rdb_type_get(RDB_TYPE_STRING),
                             .expire_ms = RDB_NO_EXPIRE,
                             .memory = memory,
                             .elements = 1};
}

static struct stat_sum sum_of(size_t top, const char *separator, unsigned depth)
{
    const struct stat_opts opts = {
        .top = top, .separator = rd_slice_str(separator), .depth = depth, .now_ms = 1000000};
    struct stat_sum sum;
    cr_assert(stat_sum_init(&sum, &opts, NULL));
    return sum;
}

Test(stat_top, the_greatest_stay_in_order)
{
    struct stat_top top;
    cr_assert(stat_top_init(&top, 5, NULL));
    for (uint64_t i = 0; i < 1000; i++) {
        char name[20];
        uint64_t figure = i * 7919 % 1000;
        snprintf(name, sizeof name, "k%llu", (unsigned long long)figure);
        struct stat_key k = key(name, figure);
        stat_top_add(&top, figure, &k);
    }
    stat_top_sort(&top);
    cr_assert_eq(top.n, 5);
    for (size_t i = 0; i < 5; i++) {
        char name[20];
        snprintf(name, sizeof name, "k%d", 999 - (int)i);
        cr_assert_eq(top.rows[i].figure, 999 - i);
        cr_assert(rd_slice_is(stat_top_name(&top.rows[i]), name));
    }
    stat_top_done(&top);
}

Test(stat_top, none_is_a_number_too)
{
    struct stat_top top;
    struct stat_key k = key("k", 1);
    cr_assert(stat_top_init(&top, 0, NULL));
    stat_top_add(&top, 1, &k);
    cr_assert_eq(top.n, 0);
    stat_top_done(&top);
}

Test(stat_top, of_a_long_name_the_first_bytes_are_kept)
{
    static char name[5000];
    struct stat_top top;
    memset(name, 'n', sizeof name - 1);
    struct stat_key k = key(name, 1);
    cr_assert(stat_top_init(&top, 1, NULL));
    stat_top_add(&top, 1, &k);
    cr_assert_eq(stat_top_name(&top.rows[0]).len, STAT_TOP_NAME_MAX);
    cr_assert_eq(top.rows[0].key.name.len, 4999);
    stat_top_done(&top);
}

Test(stat_prefix, a_key_counts_for_each_of_its_prefixes)
{
    static const char *const names[] = {"a:b:1", "a:b:2", "a:c", "b", ":x", "a:b:c:d:e"};
    struct stat_sum sum = sum_of(1, ":", 3);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct stat_key k = key(names[i], 100);
        stat_sum_add(&sum, &k);
    }
    cr_assert(stat_sum_end(&sum, NULL));
    static const struct {
        const char *name;
        uint64_t keys;
    } want[] = {{"a:", 4}, {"a:b:", 3}, {":", 1}, {"a:b:c:", 1}};
    cr_assert_eq(sum.prefixes.n, 4);
    for (size_t i = 0; i < 4; i++) {
        struct rd_slice name = stat_prefix_name(&sum.prefixes, &sum.prefixes.rows[i]);
        cr_assert(rd_slice_is(name, want[i].name), "%zu", i);
        cr_assert_eq(sum.prefixes.rows[i].keys, want[i].keys);
    }
    stat_sum_done(&sum);
}

/* With more prefixes than the table holds, the result is within the stated error. */
Test(stat_prefix, figures_of_a_full_table_keep_their_bounds)
{
    enum { LIGHT = 40000, HEAVY = 50 };
    struct stat_sum sum = sum_of(1, "/", 1);
    uint64_t heavy[HEAVY] = {0};
    for (uint64_t i = 0; i < LIGHT; i++) {
        char name[40];
        snprintf(name, sizeof name, "light%llu/", (unsigned long long)i);
        struct stat_key k = key(name, 50);
        stat_sum_add(&sum, &k);
        snprintf(name, sizeof name, "heavy%d/", (int)(i % HEAVY));
        k = key(name, 10 + i % 100);
        stat_sum_add(&sum, &k);
        heavy[i % HEAVY] += 10 + i % 100;
    }
    cr_assert(stat_sum_end(&sum, NULL));
    cr_assert_leq(sum.prefixes.n, STAT_PREFIX_CAP);
    cr_assert_gt(sum.prefixes.floor, 0);
    unsigned found = 0;
    for (size_t i = 0; i < sum.prefixes.n; i++) {
        const struct stat_prefix *row = &sum.prefixes.rows[i];
        struct rd_slice name = stat_prefix_name(&sum.prefixes, row);
        uint64_t number;
        if (name.ptr[0] != 'h' || !rd_num_get_u64(rd_slice(name.ptr + 5, name.len - 6), &number))
            continue;
        found++;
        cr_assert_leq(row->memory, heavy[number]);
        cr_assert_geq(row->memory + row->missed, heavy[number]);
    }
    cr_assert_eq(found, HEAVY);
    stat_sum_done(&sum);
}

Test(stat_sum, expiry_has_its_classes)
{
    static const struct {
        int64_t left_s;
        enum stat_expiry want;
    } cases[] = {{-1, STAT_EXPIRY_PASSED},     {0, STAT_EXPIRY_PASSED},
                 {1, STAT_EXPIRY_HOUR},        {3600, STAT_EXPIRY_HOUR},
                 {3601, STAT_EXPIRY_DAY},      {86401, STAT_EXPIRY_WEEK},
                 {2592000, STAT_EXPIRY_MONTH}, {2592001, STAT_EXPIRY_QUARTER},
                 {31536000, STAT_EXPIRY_YEAR}, {31536001, STAT_EXPIRY_LATER}};
    int64_t now = 1700000000000;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(stat_expiry_of(now + cases[i].left_s * 1000, now), cases[i].want, "%zu", i);
    cr_assert_eq(stat_expiry_of(RDB_NO_EXPIRE, now), STAT_EXPIRY_NEVER);
    cr_assert_eq(stat_expiry_of(INT64_MAX, INT64_MIN + 1), STAT_EXPIRY_LATER);
}

Test(stat_sum, databases_beyond_the_limit_are_counted_together)
{
    struct stat_sum sum = sum_of(1, ":", 1);
    for (uint64_t db = STAT_DBS_MAX + 7; db-- > 0;) {
        struct stat_key k = key("k", 1);
        k.db = db;
        stat_sum_add(&sum, &k);
    }
    cr_assert(stat_sum_end(&sum, NULL));
    cr_assert_eq(sum.n_dbs, STAT_DBS_MAX);
    cr_assert_eq(sum.dbs[0].db, 7);
    cr_assert_eq(sum.more_dbs.keys, 7);
    cr_assert_eq(sum.all.keys, STAT_DBS_MAX + 7);
    stat_sum_done(&sum);
}
