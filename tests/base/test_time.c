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
