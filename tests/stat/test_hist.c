#include "stat/hist.h"

#include <criterion/criterion.h>

Test(stat_hist, small_values_are_exact)
{
    struct stat_hist h = {0};
    for (uint64_t v = 1; v <= 50; v++)
        stat_hist_add(&h, v, 1);
    cr_assert_eq(stat_hist_at(&h, 0.5), 25);
    cr_assert_eq(stat_hist_at(&h, 0.9), 45);
    cr_assert_eq(stat_hist_at(&h, 1), 50);
    cr_assert_eq(stat_hist_at(&h, 0), 1);
}

Test(stat_hist, every_value_is_told_at_most_a_32nd_too_large)
{
    for (uint64_t v = 1; v < UINT64_MAX / 3; v += v / 7 + 1) {
        struct stat_hist h = {0};
        stat_hist_add(&h, v, 1);
        stat_hist_add(&h, UINT64_MAX, 1);
        uint64_t at = stat_hist_at(&h, 0.5);
        cr_assert(at >= v && at - v <= v / 32, "%llu reported as %llu", (unsigned long long)v,
                  (unsigned long long)at);
    }
}

Test(stat_hist, slots_ascend_and_stay_inside)
{
    size_t before = 0;
    for (uint64_t v = 0; v < UINT64_MAX / 2; v += v / 100 + 1) {
        size_t slot = stat_hist_slot(v);
        cr_assert_geq(slot, before);
        before = slot;
    }
    cr_assert_eq(stat_hist_slot(UINT64_MAX), STAT_HIST_SLOTS - 1);
}

Test(stat_hist, a_weight_is_as_many_values)
{
    struct stat_hist a = {0}, b = {0};
    for (uint64_t v = 0; v < 3000; v += 7) {
        stat_hist_add(&a, v, 5);
        for (int i = 0; i < 5; i++)
            stat_hist_add(&b, v, 1);
    }
    cr_assert_eq(memcmp(&a, &b, sizeof a), 0);
}

Test(stat_hist, two_tables_make_one)
{
    struct stat_hist a = {0}, b = {0}, both = {0};
    for (uint64_t v = 0; v < 100000; v += 13) {
        stat_hist_add(v % 2 ? &a : &b, v, 1);
        stat_hist_add(&both, v, 1);
    }
    stat_hist_merge(&a, &b);
    cr_assert_eq(memcmp(&a, &both, sizeof a), 0);
}

Test(stat_hist, nothing_has_no_quantiles)
{
    struct stat_hist h = {0};
    cr_assert_eq(stat_hist_at(&h, 0.5), 0);
}
