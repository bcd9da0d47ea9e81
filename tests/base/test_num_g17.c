#include "base/num_g17.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void check(double v)
{
    char expect[64], text[RD_NUM_G17_MAX];
    int n = snprintf(expect, sizeof expect, "%.17g", v);
    size_t len = rd_num_put_g17(text, v);
    cr_assert(len == (size_t)n && memcmp(text, expect, len) == 0, "%s, not %.*s", expect, (int)len,
              text);
}

static double of_bits(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

Test(num_g17, numbers_of_every_size_are_written_as_printf_does)
{
    uint64_t state = 88172645463325252;
    for (int i = 0; i < 200000; i++) {
        uint64_t random = next_random(&state);
        check(of_bits(random));
        /* from 2^-20 to 2^63 */
        uint64_t exponent = 1023 - 20 + random % 84;
        check(of_bits((random & 0x800fffffffffffff) | exponent << 52));
    }
}

Test(num_g17, short_decimals_and_whole_numbers_are_written_as_printf_does)
{
    uint64_t state = 2463534242;
    for (int i = 0; i < 100000; i++) {
        uint64_t random = next_random(&state);
        double whole = (double)(random >> (random & 63));
        check(whole);
        check(whole / 100);
        check(-whole / 1e6);
        check(whole + 0.5);
        check((double)(int64_t)(random % 20000) / 1000 - 10);
    }
}

Test(num_g17, numbers_at_powers_of_ten_and_two_are_written_as_printf_does)
{
    for (int i = -330; i <= 308; i++) {
        double v = pow(10, i);
        check(v);
        check(nextafter(v, 0));
        check(nextafter(v, INFINITY));
        check(-v);
    }
    for (int i = -1074; i <= 1023; i++) {
        check(ldexp(1, i));
        check(nextafter(ldexp(1, i), 0));
    }
}

Test(num_g17, zeros_infinities_and_nan_are_written_as_printf_does)
{
    const double values[] = {0.0, -0.0, INFINITY, -INFINITY, (double)NAN, 0.1, 1e-4, 9.5e-5, 1e17};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        check(values[i]);
}
