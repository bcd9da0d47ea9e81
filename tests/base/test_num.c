#include "base/num.h"

#include <criterion/criterion.h>
#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/guard.h"

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* The functions under test, each on a slice that ends where memory ends. */
#define GUARDED(function, type)                                                                    \
    static bool guarded_##function(const char *text, type *ret)                                    \
    {                                                                                              \
        size_t len = strlen(text);                                                                 \
        uint8_t *bytes = guard_new(text, len);                                                     \
        bool ok = rd_num_##function(rd_slice(bytes, len), ret);                                    \
        guard_free(bytes);                                                                         \
        return ok;                                                                                 \
    }
GUARDED(get_i64, int64_t)
GUARDED(get_u64, uint64_t)
GUARDED(get_f64, double)
GUARDED(get_size, uint64_t)

static void check_i64(int64_t v)
{
    char expect[32], text[RD_NUM_I64_MAX];
    int64_t back = 0;
    int n = snprintf(expect, sizeof expect, "%" PRId64, v);
    size_t len = rd_num_put_i64(text, v);
    cr_assert(rd_slice_eq(rd_slice(text, len), rd_slice(expect, (size_t)n)), "%s", expect);
    cr_assert(rd_num_get_i64(rd_slice(text, len), &back) && back == v, "%s", expect);
}

static void check_u64(uint64_t v)
{
    char expect[32], text[RD_NUM_I64_MAX];
    uint64_t back = 0;
    int n = snprintf(expect, sizeof expect, "%" PRIu64, v);
    size_t len = rd_num_put_u64(text, v);
    cr_assert(rd_slice_eq(rd_slice(text, len), rd_slice(expect, (size_t)n)), "%s", expect);
    cr_assert(rd_num_get_u64(rd_slice(text, len), &back) && back == v, "%s", expect);
}

Test(num, integers_are_written_as_printf_does_and_read_back)
{
    uint64_t power = 1;
    for (int i = 0; i < 20; i++, power *= 10)
        for (uint64_t d = 0; d < 5; d++) {
            check_u64(power + d - 2);
            check_i64((int64_t)(power + d - 2));
            check_i64((int64_t)(0 - (power + d - 2)));
        }
    for (unsigned bit = 0; bit < 64; bit++)
        for (uint64_t d = 0; d < 3; d++) {
            check_u64(((uint64_t)1 << bit) + d - 1);
            check_i64((int64_t)(((uint64_t)1 << bit) + d - 1));
        }
    check_i64(INT64_MIN);
    check_i64(INT64_MAX);
    check_u64(UINT64_MAX);
}

Test(num, an_integer_in_any_other_form_is_refused)
{
    static const char *const wrong[] = {
        "",
        "-",
        "+",
        "+1",
        "-0",
        "00",
        "01",
        "-01",
        " 1",
        "1 ",
        "1.0",
        "1e3",
        "0x1",
        "1a",
        "--1",
        "-+1",
        "1\n",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "-18446744073709551615",
        "99999999999999999999",
        "100000000000000000000000000000000000",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int64_t v = 42;
        cr_assert_not(guarded_get_i64(wrong[i], &v), "\"%s\"", wrong[i]);
        cr_assert_eq(v, 42);
    }
    cr_assert_not(rd_num_get_i64(rd_slice("1\0", 2), &(int64_t){0}));
    cr_assert_not(rd_num_get_i64(rd_slice(NULL, 0), &(int64_t){0}));

    static const char *const wrong_u64[] = {"",
                                            "-1",
                                            "-0",
                                            "+1",
                                            "01",
                                            "18446744073709551616",
                                            "18446744073709551625",
                                            "28446744073709551615"};
    for (size_t i = 0; i < sizeof wrong_u64 / sizeof *wrong_u64; i++) {
        uint64_t v = 42;
        cr_assert_not(guarded_get_u64(wrong_u64[i], &v), "\"%s\"", wrong_u64[i]);
        cr_assert_eq(v, 42);
    }
}

static const char *put_f64(double v)
{
    static char text[RD_NUM_F64_MAX + 1];
    memset(text, '#', sizeof text);
    size_t len = rd_num_put_f64(text, v);
    cr_assert_leq(len, RD_NUM_F64_MAX);
    cr_assert_eq(text[len], '#', "no terminator");
    text[len] = '\0';
    return text;
}

Test(num, doubles_are_written_in_the_shortest_form)
{
    cr_assert_str_eq(put_f64(0.0), "0");
    cr_assert_str_eq(put_f64(-0.0), "-0");
    cr_assert_str_eq(put_f64(3), "3");
    cr_assert_str_eq(put_f64(-17), "-17");
    cr_assert_str_eq(put_f64(2.5), "2.5");
    cr_assert_str_eq(put_f64(-0.1), "-0.1");
    cr_assert_str_eq(put_f64(0.1 + 0.2), "0.30000000000000004");
    cr_assert_str_eq(put_f64(1.0 / 3), "0.3333333333333333");
    cr_assert_str_eq(put_f64(1e100), "1e+100");
    cr_assert_str_eq(put_f64(1e-7), "1e-07");
    cr_assert_str_eq(put_f64(9007199254740991), "9007199254740991");
    cr_assert_str_eq(put_f64(9007199254740992), "9007199254740992");
    cr_assert_str_eq(put_f64(-9007199254740992), "-9007199254740992");
    cr_assert_str_eq(put_f64(1700000000000), "1700000000000");
    cr_assert_str_eq(put_f64(5e-324), "5e-324");
    cr_assert_str_eq(put_f64(DBL_MIN), "2.2250738585072014e-308");
    cr_assert_str_eq(put_f64(DBL_MAX), "1.7976931348623157e+308");
    cr_assert_str_eq(put_f64((double)INFINITY), "inf");
    cr_assert_str_eq(put_f64(-(double)INFINITY), "-inf");
    cr_assert_str_eq(put_f64((double)NAN), "nan");
    cr_assert_str_eq(put_f64(-(double)NAN), "nan");
}

/* Valgrind computes long double as double. */
static bool has_long_double(void)
{
    volatile long double one = 1;
    volatile long double more = one + LDBL_EPSILON;
    return more != one;
}

Test(num, any_finite_double_is_json_and_reads_back)
{
    uint64_t seed = 88172645463325252u;
    regex_t json;
    cr_assert_eq(
        regcomp(&json, "^-?(0|[1-9][0-9]*)([.][0-9]+)?(e[+-][0-9]+)?$", REG_EXTENDED | REG_NOSUB),
        0);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = next_random(&seed);
        double v, back = 0;
        memcpy(&v, &bits, sizeof v);
        if (i % 4 == 1)
            v = (double)(int64_t)(bits >> (bits & 63));
        else if (i % 4 == 2)
            v = (double)(int64_t)(bits >> 40) / 1000;
        else if (i % 4 == 3)
            v = ldexp(1, (int)(bits % 2098) - 1074);
        if (!isfinite(v))
            continue;
        const char *text = put_f64(v);
        cr_assert_eq(regexec(&json, text, 0, NULL, 0), 0, "%a gives %s", v, text);
        cr_assert(rd_num_get_f64(rd_slice_str(text), &back), "%a gives %s", v, text);
        cr_assert(memcmp(&v, &back, sizeof v) == 0 || !has_long_double(), "%a gives %s", v, text);
    }
    regfree(&json);
}

Test(num, doubles_are_read_as_strtod_does)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "+5",
        "1.",
        ".5",
        "-.5e1",
        "007",
        "1e5",
        "1E-5",
        "3.14159",
        "1e308",
        "5e-324",
        "2.2250738585072011e-308",
        "123456789012345678901234567890",
        "inf",
        "-inf",
        "+inf",
        "INF",
        "Infinity",
        "-infinity",
        "1152921504606847104", /* in the middle between two doubles, and beside it */
        "1152921504606847103",
        "1152921504606847105",
        "-115292150460684.7105", /* the last: it takes the precision of long double */
    };
    size_t n = sizeof texts / sizeof *texts - !has_long_double();
    for (size_t i = 0; i < n; i++) {
        double v = 42, expect = strtod(texts[i], NULL);
        cr_assert(guarded_get_f64(texts[i], &v), "\"%s\"", texts[i]);
        cr_assert_eq(memcmp(&v, &expect, sizeof v), 0, "\"%s\"", texts[i]);
    }
    double v = 0;
    cr_assert(guarded_get_f64("nan", &v) && isnan(v));
    v = 0;
    cr_assert(guarded_get_f64("-nan", &v) && isnan(v));
}

Test(num, a_double_in_any_other_form_is_refused)
{
    static const char *const wrong[] = {
        "",      " 1",    "\t1",  "\n1", "1 ",  "1\n",   "0x10",   "0X1p3",  "-0x1",
        "1e",    "1e+",   "e5",   ".",   "-",   "+",     "--1",    "1,5",    "1.5.2",
        "nan()", "infin", "nanx", "1f",  "abc", "1e400", "-1e400", "1e-400", "1_000",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        double v = 42;
        cr_assert_not(guarded_get_f64(wrong[i], &v), "\"%s\"", wrong[i]);
        cr_assert_eq(v, 42.0);
    }
    cr_assert_not(rd_num_get_f64(rd_slice("1\0002", 3), &(double){0}));
    cr_assert_not(rd_num_get_f64(rd_slice("1\0", 2), &(double){0}));
    cr_assert_not(rd_num_get_f64(rd_slice(NULL, 0), &(double){0}));
}

Test(num, a_double_has_at_most_512_characters)
{
    char text[514];
    double v = 0;
    memset(text, '0', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    text[1] = '.';
    text[511] = '1';
    text[0] = '7';
    cr_assert_not(guarded_get_f64(text, &v));
    text[512] = '\0';
    cr_assert(guarded_get_f64(text, &v) && v == 7.0);
}

/* Sets a locale with a decimal comma: one that is installed, or else one that localedef compiles.
 */
static bool set_comma_locale(void)
{
    char folder[] = P_tmpdir "/redoubt-locale-XXXXXX";
    char command[200];
    const char *order = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? "big" : "little";
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL)
        return true;
    if (mkdtemp(folder) == NULL)
        return false;
    snprintf(command, sizeof command,
             "localedef --%s-endian -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1", order, folder,
             folder);
    bool ok = system(command) == 0 && setenv("LOCPATH", folder, 1) == 0 &&
              setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 && ok;
}

Test(num, the_locale_changes_nothing)
{
    double v = 0;
    cr_assert(set_comma_locale(), "neither de_DE.UTF-8 nor what localedef needs is installed");
    cr_assert_str_eq(put_f64(2.5), "2.5");
    cr_assert_str_eq(put_f64(0.1 + 0.2), "0.30000000000000004");
    cr_assert(guarded_get_f64("2.5", &v) && v == 2.5);
    cr_assert_not(guarded_get_f64("2,5", &v));
    char text[16];
    snprintf(text, sizeof text, "%.1f", 2.5);
    cr_assert_str_eq(text, "2,5", "the locale of the thread is as it was");
}

Test(num, sizes_have_the_units_of_redis_conf)
{
    static const struct {
        const char *text;
        uint64_t size;
    } good[] = {
        {"0", 0},
        {"64", 64},
        {"64b", 64},
        {"064", 64},
        {"64k", 64000},
        {"64K", 64000},
        {"64kb", 65536},
        {"64KB", 65536},
        {"64KiB", 65536},
        {"1m", 1000000},
        {"1mb", 1 << 20},
        {"1MiB", 1 << 20},
        {"1g", 1000000000},
        {"1gb", 1 << 30},
        {"1GiB", 1 << 30},
        {"1t", 1000000000000},
        {"1TiB", (uint64_t)1 << 40},
        {"2tb", (uint64_t)2 << 40},
        {"18446744073709551615", UINT64_MAX},
        {"16777215tb", (uint64_t)16777215 << 40},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t v = 42;
        cr_assert(guarded_get_size(good[i].text, &v), "\"%s\"", good[i].text);
        cr_assert_eq(v, good[i].size, "\"%s\"", good[i].text);
    }
    static const char *const wrong[] = {
        "",
        "k",
        "-1",
        "+1",
        "1.5k",
        " 1",
        "1 ",
        "1 k",
        "1kk",
        "1bk",
        "1x",
        "1kib1",
        "1i",
        "16777216tb",
        "18446744073709551616",
        "18446744073709551615k",
        "1ki",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint64_t v = 42;
        cr_assert_not(guarded_get_size(wrong[i], &v), "\"%s\"", wrong[i]);
        cr_assert_eq(v, 42);
    }
    cr_assert_not(rd_num_get_size(rd_slice("1k\0", 3), &(uint64_t){0}));
}

/* Of every form: any bits, few digits, denormals, powers of two. */
static double random_double(uint64_t *state, unsigned form)
{
    uint64_t bits = next_random(state);
    if (form == 1)
        return (double)(int64_t)(bits % 1000000000) / 1000;
    if (form == 2)
        bits &= 0x800fffffffffffff;
    if (form == 3)
        bits &= 0xfff0000000000000;
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* How many significant digits a text has. */
static int count_digits(const char *text)
{
    int n = 0, zeros = 0;
    for (; *text != 0 && *text != 'e'; text++) {
        if (*text >= '1' && *text <= '9') {
            n += zeros + 1;
            zeros = 0;
        } else if (*text == '0' && n > 0) {
            zeros++;
        }
    }
    return n;
}

Test(num, a_hundred_thousand_doubles_read_back_equal_from_the_fewest_digits)
{
    uint64_t state = 88172645463325252;
    for (unsigned i = 0; i < 100000; i++) {
        double v = random_double(&state, i % 4);
        if (!isfinite(v) || fpclassify(v) == FP_ZERO)
            continue;
        char text[RD_NUM_F64_MAX + 1], fewer[64];
        size_t len = rd_num_put_f64(text, v);
        cr_assert(len <= RD_NUM_F64_MAX);
        text[len] = 0;
        cr_assert(strtod(text, NULL) == v, "%a %s", v, text);
        int digits = count_digits(text);
        cr_assert(digits <= 17, "%a %s", v, text);
        if (digits == 1)
            continue;
        snprintf(fewer, sizeof fewer, "%.*e", digits - 2, v);
        cr_assert(strtod(fewer, NULL) != v, "%a %s %s", v, text, fewer);
    }
}
