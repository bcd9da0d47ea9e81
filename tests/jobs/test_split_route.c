#include "jobs/split_impl.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* Every slot is in one range, whatever the number; three are those of redis-cli. */
Test(split_route, equal_ranges_cover_all_slots)
{
    static struct split_rule rule;
    for (unsigned n = 1; n <= SPLIT_PARTS_MAX; n++) {
        char text[8];
        struct rd_err err = {0};
        snprintf(text, sizeof text, "%u", n);
        cr_assert(split_ranges(&rule, text, &err));
        cr_assert_eq(rule.n_ranges, n);
        unsigned next = 0;
        for (unsigned i = 0; i < n; i++) {
            cr_assert(rule.ranges[i].first == next && rule.ranges[i].last >= next);
            next = rule.ranges[i].last + 1;
        }
        cr_assert_eq(next, RD_HASH_SLOTS);
    }
    cr_assert(split_ranges(&rule, "3", NULL));
    cr_assert(rule.ranges[0].last == 5460 && rule.ranges[1].last == 10922);
}

Test(split_route, a_prefix_has_as_many_parts_as_asked_for_or_as_there_are)
{
    struct rd_slice got;
    struct split_rule rule = {.separator = rd_slice_str("::"), .depth = 2};
    cr_assert(split_prefix(&rule, rd_slice_str("a::b::c::d"), &got) && rd_slice_is(got, "a::b"));
    cr_assert(split_prefix(&rule, rd_slice_str("a::b:c"), &got) && rd_slice_is(got, "a"));
    cr_assert(split_prefix(&rule, rd_slice_str("::"), &got) && rd_slice_is(got, ""));
    cr_assert_not(split_prefix(&rule, rd_slice_str("a:b"), &got));
    cr_assert_not(split_prefix(&rule, rd_slice_str(""), &got));
}

Test(split_route, names_of_files_are_safe_and_short)
{
    char name[SPLIT_NAME_MAX + 1], other[SPLIT_NAME_MAX + 1];
    uint8_t bytes[300];
    split_file_name(rd_slice_str("../a b_C-9%"), name);
    cr_assert_str_eq(name, "%2E.%2Fa%20b_C-9%25");
    for (size_t len = 0; len <= sizeof bytes; len++) {
        memset(bytes, 'x', sizeof bytes);
        split_file_name(rd_slice(bytes, len), name);
        cr_assert(strlen(name) <= SPLIT_NAME_MAX);
        if (len == 0)
            continue;
        bytes[len - 1] = 0xff;
        split_file_name(rd_slice(bytes, len), other);
        cr_assert(strlen(other) <= SPLIT_NAME_MAX && strcmp(name, other) != 0);
    }
}
