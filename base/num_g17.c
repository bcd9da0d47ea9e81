#include "base/num_g17.h"

#include "base/num.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS = 17, FRACTION = 52, BIAS = 1023 + FRACTION };

/* printf() writes the decimal point of the locale, which may have several bytes. */
static size_t put_printf(char *dst, double v)
{
    char text[64];
    int n = snprintf(text, sizeof text, "%.*g", DIGITS, v);
    size_t len = 0;
    bool point = false;
    for (int i = 0; i < n && len < RD_NUM_G17_MAX; i++) {
        bool radix = strchr("0123456789+-einfa", text[i]) == NULL;
        if (!radix)
            dst[len++] = text[i];
        else if (!point)
            dst[len++] = '.';
        point = radix;
    }
    return len;
}

#ifdef __SIZEOF_INT128__

__extension__ typedef unsigned __int128 wide;

/* v * 10^places, rounded to the nearest integer, of two the even one, as printf() rounds. All bits
 * of the product are kept: v has 53, and 10^20 has 67. */
static uint64_t scaled(uint64_t bits, int places)
{
    wide product = (bits & (((uint64_t)1 << FRACTION) - 1)) | (uint64_t)1 << FRACTION;
    int exponent = (int)(bits >> FRACTION) - BIAS;
    for (; places >= 4; places -= 4)
        product *= 10000;
    for (; places > 0; places--)
        product *= 10;
    if (exponent >= 0)
        return (uint64_t)(product << exponent);
    wide rest = product & (((wide)1 << -exponent) - 1), half = (wide)1 << (-exponent - 1);
    uint64_t whole = (uint64_t)(product >> -exponent);
    return whole + (rest > half || (rest == half && (whole & 1) == 1));
}

/* Digits before the point; 0 and less: zeros after it. v is at least 1e-4 and below 1e17. */
static int point_of(double v)
{
    static const double powers[] = {1e-3, 1e-2, 1e-1, 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6, 1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17};
    int point = -3;
    while (v >= powers[point + 3])
        point++;
    return point;
}

static bool put_fixed(char *dst, double v, size_t *ret_len)
{
    const uint64_t least = 10000000000000000u; /* with 17 digits */
    char digits[RD_NUM_I64_MAX], *to = dst;
    uint64_t bits;
    double size = fabs(v);
    if (!(size >= 1e-4 && size < 1e17))
        return false;
    memcpy(&bits, &size, sizeof bits);
    int point = point_of(size);
    uint64_t number = scaled(bits, DIGITS - point);
    if (number < least || number >= 10 * least)
        return false;
    rd_num_put_u64(digits, number);
    int n = DIGITS;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    if (v < 0)
        *to++ = '-';
    if (point <= 0) {
        memcpy(to, "0.000", 5);
        to += 2 - point;
        memcpy(to, digits, DIGITS);
        to += n;
    } else if (n <= point) {
        memcpy(to, digits, DIGITS);
        to += point;
    } else {
        memcpy(to, digits, DIGITS);
        to[point] = '.';
        memcpy(to + point + 1, digits + point, (size_t)(DIGITS - point));
        to += n + 1;
    }
    *ret_len = (size_t)(to - dst);
    return true;
}

#else

static bool put_fixed(char *dst, double v, size_t *ret_len)
{
    (void)dst, (void)v, (void)ret_len;
    return false;
}

#endif

size_t rd_num_put_g17(char dst[RD_NUM_G17_MAX], double v)
{
    size_t len;
    return put_fixed(dst, v, &len) ? len : put_printf(dst, v);
}
