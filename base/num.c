#include "base/num.h"

#include "base/num_impl.h"
#include "base/num_locale.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* No program writes a double in more characters: printf("%f") of the largest takes 316. */
enum { F64_TEXT_MAX = 512 };

/* Uses the number of bits, which determines the number of digits except for one. */
static inline size_t count_digits(uint64_t v)
{
    static const uint64_t powers[] = {0,
                                      10,
                                      100,
                                      1000,
                                      10000,
                                      100000,
                                      1000000,
                                      10000000,
                                      100000000,
                                      1000000000,
                                      10000000000,
                                      100000000000,
                                      1000000000000,
                                      10000000000000,
                                      100000000000000,
                                      1000000000000000,
                                      10000000000000000,
                                      100000000000000000,
                                      1000000000000000000,
                                      10000000000000000000u};
    unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1);
    unsigned about = bits * 1233 >> 12; /* log10(2) = 1233 / 4096 */
    return about + (v >= powers[about]);
}

size_t rd_num_put_u64(char *dst, uint64_t v)
{
    static const char pairs[] = "0001020304050607080910111213141516171819"
                                "2021222324252627282930313233343536373839"
                                "4041424344454647484950515253545556575859"
                                "6061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    size_t len = count_digits(v);
    char *at = dst + len;
    while (v >= 100) {
        at -= 2;
        memcpy(at, pairs + v % 100 * 2, 2);
        v /= 100;
    }
    if (v >= 10)
        memcpy(dst, pairs + v * 2, 2);
    else
        dst[0] = (char)('0' + v);
    return len;
}

size_t rd_num_put_i64(char *dst, int64_t v)
{
    if (v >= 0)
        return rd_num_put_u64(dst, (uint64_t)v);
    dst[0] = '-';
    return 1 + rd_num_put_u64(dst + 1, 0 - (uint64_t)v);
}

/* Decimal digits only, at least one. */
static bool get_digits(struct rd_slice text, uint64_t *ret)
{
    uint64_t v = 0;
    if (text.len == 0)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned)text.ptr[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, digit, &v))
            return false;
    }
    *ret = v;
    return true;
}

bool rd_num_get_u64(struct rd_slice text, uint64_t *ret)
{
    if (text.len > 1 && text.ptr[0] == '0')
        return false;
    return get_digits(text, ret);
}

bool rd_num_get_i64(struct rd_slice text, int64_t *ret)
{
    uint64_t v;
    bool negative = text.len > 0 && text.ptr[0] == '-';
    if (negative)
        text = rd_slice(text.ptr + 1, text.len - 1);
    if (!rd_num_get_u64(text, &v))
        return false;
    if (negative ? v == 0 || v > (uint64_t)INT64_MAX + 1 : v > INT64_MAX)
        return false;
    *ret = (int64_t)(negative ? 0 - v : v);
    return true;
}

static char *put_scientific(char *to, const char *digits, int n, int exponent)
{
    *to++ = digits[0];
    if (n > 1) {
        *to++ = '.';
        memcpy(to, digits + 1, (size_t)n - 1);
        to += n - 1;
    }
    *to++ = 'e';
    *to++ = exponent < 0 ? '-' : '+';
    exponent = exponent < 0 ? -exponent : exponent;
    if (exponent < 10)
        *to++ = '0';
    return to + rd_num_put_u64(to, (uint64_t)exponent);
}

/* Most numbers have a few digits after the point. The quotient of two exact doubles is rounded
 * once: where it is v, these digits read back as v, and with at most fifteen of them no other
 * decimal that is as short does. */
static bool short_decimal(double v, struct rd_decimal *ret)
{
    static const double powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    const double most = 999999999999999.0;
    for (int places = 1; FLT_EVAL_METHOD == 0 && places <= 6; places++) {
        double scaled = v * powers[places];
        if (scaled < 1 || scaled > most)
            continue;
        uint64_t digits = (uint64_t)(scaled + 0.5);
        if ((double)digits / powers[places] != v)
            continue;
        *ret = (struct rd_decimal){.digits = digits, .exponent = -places};
        return true;
    }
    return false;
}

/* The form is that of printf("%g") with as many digits as there are, but at least 15. */
static size_t put_shortest(char *dst, double v)
{
    enum { PLAIN_MIN = -4, PLAIN_MAX = 15 };
    char digits[RD_NUM_I64_MAX], *to = dst;
    struct rd_decimal d;
    if (!short_decimal(fabs(v), &d))
        d = rd_num_shortest(fabs(v));
    while (d.digits % 10 == 0) {
        d.digits /= 10;
        d.exponent++;
    }
    int n = (int)rd_num_put_u64(digits, d.digits);
    int point = n + d.exponent; /* digits before it */
    if (v < 0)
        *to++ = '-';
    if (point - 1 < PLAIN_MIN || point - 1 >= (n > PLAIN_MAX ? n : PLAIN_MAX))
        return (size_t)(put_scientific(to, digits, n, point - 1) - dst);
    if (point <= 0) {
        memcpy(to, "0.0000", (size_t)(2 - point));
        to += 2 - point;
        memcpy(to, digits, (size_t)n);
        return (size_t)(to + n - dst);
    }
    for (int i = 0; i < n || i < point; i++) {
        if (i == point)
            *to++ = '.';
        *to++ = i < n ? digits[i] : '0';
    }
    return (size_t)(to - dst);
}

static size_t put_word(char *dst, const char *word)
{
    size_t len = strlen(word);
    memcpy(dst, word, len);
    return len;
}

size_t rd_num_put_f64(char *dst, double v)
{
    const double exact = 9007199254740992.0; /* 2^53 */
    if (v > -exact && v < exact) {
        int64_t i = (int64_t)v;
        if (i != 0 && (double)i == v)
            return rd_num_put_i64(dst, i);
    }
    if (isnan(v))
        return put_word(dst, "nan");
    if (isinf(v))
        return put_word(dst, v < 0 ? "-inf" : "inf");
    if (fpclassify(v) == FP_ZERO)
        return put_word(dst, signbit(v) ? "-0" : "0");
    return put_shortest(dst, v);
}

/* Plain decimals of at most nineteen digits, as nearly all scores are. The quotient is computed
 * with 64 bits of precision; where that is too near the middle between two doubles to round it
 * again, strtod decides. False: not such a number, or not sure. */
static bool get_decimal(struct rd_slice text, double *ret)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                    1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
    if (text.len == 0)
        return false;
    const uint8_t *p = text.ptr;
    const uint8_t *end = p + text.len;
    bool negative = *p == '-';
    p += negative;
    const uint8_t *digits = p;
    const uint8_t *point = NULL;
    uint64_t m = 0;
    if (end - p > 20)
        return false;
    for (; p < end; p++) {
        unsigned digit = (unsigned)*p - '0';
        if (digit <= 9)
            m = m * 10 + digit;
        else if (*p == '.' && point == NULL)
            point = p;
        else
            return false;
    }
    size_t n = (size_t)(end - digits) - (point != NULL);
    if (n == 0 || n > 19)
        return false;
    size_t scale = point == NULL ? 0 : (size_t)(end - point - 1);
    if (FLT_EVAL_METHOD == 0 && m >> 53 == 0) {
        /* Both are exact doubles, so that their quotient is rounded once. */
        double v = (double)m / powers[scale];
        *ret = negative ? -v : v;
        return true;
    }
    long double quotient = (long double)m / powers[scale];
    double v = (double)quotient;
    if (LDBL_MANT_DIG != 64)
        return false;
    if (m >> 53 != 0 || scale > 0) {
        uint64_t bits;
        memcpy(&bits, &quotient, sizeof bits);
        uint64_t low = bits & 0x7ff;
        if (low - 0x3fe <= 4)
            return false;
    }
    *ret = negative ? -v : v;
    return true;
}

bool rd_num_get_f64(struct rd_slice text, double *ret)
{
    if (get_decimal(text, ret))
        return true;
    char copy[F64_TEXT_MAX + 1];
    if (text.len == 0 || text.len > F64_TEXT_MAX)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        /* No blanks, and no form of a number that contains an x or a parenthesis. */
        uint8_t byte = text.ptr[i];
        if (byte <= ' ' || byte == 'x' || byte == 'X' || byte == '(')
            return false;
    }
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';

    char *end;
    int saved = errno;
    errno = 0;
    double v = strtod_l(copy, &end, rd_num_locale());
    bool out_of_range = errno == ERANGE && (isinf(v) || fpclassify(v) == FP_ZERO);
    errno = saved;
    if (end != copy + text.len || out_of_range)
        return false;
    *ret = v;
    return true;
}

bool rd_num_get_size(struct rd_slice text, uint64_t *ret)
{
    static const struct {
        char name[4];
        unsigned kilo, power;
    } units[] = {
        {"", 1000, 0},    {"b", 1000, 0},  {"k", 1000, 1},   {"kb", 1024, 1},  {"kib", 1024, 1},
        {"m", 1000, 2},   {"mb", 1024, 2}, {"mib", 1024, 2}, {"g", 1000, 3},   {"gb", 1024, 3},
        {"gib", 1024, 3}, {"t", 1000, 4},  {"tb", 1024, 4},  {"tib", 1024, 4},
    };
    size_t n_digits = 0;
    while (n_digits < text.len && text.ptr[n_digits] >= '0' && text.ptr[n_digits] <= '9')
        n_digits++;
    uint64_t v;
    size_t n_unit = text.len - n_digits;
    if (!get_digits(rd_slice(text.ptr, n_digits), &v))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strlen(units[i].name) != n_unit ||
            strncasecmp((const char *)text.ptr + n_digits, units[i].name, n_unit) != 0)
            continue;
        for (unsigned p = 0; p < units[i].power; p++)
            if (__builtin_mul_overflow(v, units[i].kilo, &v))
                return false;
        *ret = v;
        return true;
    }
    return false;
}
