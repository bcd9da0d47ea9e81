#include "engine/human.h"

#include <criterion/criterion.h>
#include <math.h>

Test(human, long_doubles_are_written_as_people_write_them)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"0", "0"},
        {"-0", "0"},
        {"10.5000", "10.5"},
        {"3.0e3", "3000"},
        {"-1e-20", "0"},
        {"0x10", "16"},
        {"1e18", "1000000000000000000"},
        {"inf", "inf"},
        {"-Infinity", "-inf"},
        {".5", "0.5"},
        {"5.", "5"},
        {"100", "100"},
        {"-0.25", "-0.25"},
        {"0.1", "0.1"},
    };
    static const char *const bad[] = {"",        " 1", "1 ",  "nan", "1e5000",
                                      "1e-5000", "x",  "1,5", "--1"};
    char digits[ENGINE_HUMAN_MAX];
    long double v;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert(engine_human_get(rd_slice_str(cases[i].text), &v), "%s", cases[i].text);
        struct rd_slice got = rd_slice(digits, engine_human_put(digits, v));
        cr_expect(rd_slice_is(got, cases[i].want), "%s: %.*s", cases[i].text, (int)got.len, digits);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_not(engine_human_get(rd_slice_str(bad[i]), &v), "%s", bad[i]);
    cr_expect_not(engine_human_get(rd_slice("1\0", 2), &v));
    cr_assert(engine_human_get(rd_slice_str("1e4932"), &v));
    cr_expect_eq(engine_human_put(digits, -v), 4934);
    cr_expect_not(isinf(v));
}
