#include "base/time.h"

#include <criterion/criterion.h>

Test(time, seconds_are_text_whatever_they_are)
{
    static const struct {
        int64_t s;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00Z"},
        {1714564800, "2024-05-01T12:00:00Z"},
        {-1, "@-1"},
        {INT64_MAX, "@9223372036854775807"},
        {INT64_MIN, "@-9223372036854775808"},
        {INT64_MAX / 1000, "@9223372036854775"},
    };
    char text[RD_TIME_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_str_eq(rd_time_put_s(text, cases[i].s), cases[i].text);
}

Test(time, lengths_of_time)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } good[] = {{"90", 90000},
                {"90s", 90000},
                {"2h30m", 9000000},
                {"1d", 86400000},
                {"9223372036854775", UINT64_C(9223372036854775000)}};
    static const char *const bad[] = {
        "", "0", "0s", "-5", "-5s", "5x", "s", "1.5h", "5 ", "2h30", "9223372036854776"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t ms = 0;
        cr_expect(rd_time_get_span(good[i].text, &ms), "%s", good[i].text);
        cr_expect_eq(ms, good[i].ms, "%s", good[i].text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t ms = 7;
        cr_expect_not(rd_time_get_span(bad[i], &ms), "\"%s\" is taken", bad[i]);
        cr_expect_eq(ms, 7);
    }
}
