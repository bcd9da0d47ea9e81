/* Decimal digits of a double by the algorithm Grisu2 of Florian Loitsch, "Printing Floating-Point
 * Numbers Quickly and Accurately with Integers" (2010), which the servers use. It computes with 64
 * bits, so in one of about a thousand numbers it has a digit more than the shortest text: a text
 * that is to be equal to that of a server must be made in the same way, down to the rounding.
 */
#include "base/num_grisu.h"

#include "base/num.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    FRACTION = 52,
    BIAS = 1023 + FRACTION,
    POWER_MIN = -348,
    POWER_STEP = 8,
    EXPONENT_MIN = -60, /* of a product */
    EXPONENT_MAX = -32,
    DIGITS_MAX = 18
};

/* 10^k, k from POWER_MIN on in steps of POWER_STEP, rounded to 64 bits, the first of them set. */
static const uint64_t powers[] = {
    0xfa8fd5a0081c0288, 0xbaaee17fa23ebf76, 0x8b16fb203055ac76, 0xcf42894a5dce35ea,
    0x9a6bb0aa55653b2d, 0xe61acf033d1a45df, 0xab70fe17c79ac6ca, 0xff77b1fcbebcdc4f,
    0xbe5691ef416bd60c, 0x8dd01fad907ffc3c, 0xd3515c2831559a83, 0x9d71ac8fada6c9b5,
    0xea9c227723ee8bcb, 0xaecc49914078536d, 0x823c12795db6ce57, 0xc21094364dfb5637,
    0x9096ea6f3848984f, 0xd77485cb25823ac7, 0xa086cfcd97bf97f4, 0xef340a98172aace5,
    0xb23867fb2a35b28e, 0x84c8d4dfd2c63f3b, 0xc5dd44271ad3cdba, 0x936b9fcebb25c996,
    0xdbac6c247d62a584, 0xa3ab66580d5fdaf6, 0xf3e2f893dec3f126, 0xb5b5ada8aaff80b8,
    0x87625f056c7c4a8b, 0xc9bcff6034c13053, 0x964e858c91ba2655, 0xdff9772470297ebd,
    0xa6dfbd9fb8e5b88f, 0xf8a95fcf88747d94, 0xb94470938fa89bcf, 0x8a08f0f8bf0f156b,
    0xcdb02555653131b6, 0x993fe2c6d07b7fac, 0xe45c10c42a2b3b06, 0xaa242499697392d3,
    0xfd87b5f28300ca0e, 0xbce5086492111aeb, 0x8cbccc096f5088cc, 0xd1b71758e219652c,
    0x9c40000000000000, 0xe8d4a51000000000, 0xad78ebc5ac620000, 0x813f3978f8940984,
    0xc097ce7bc90715b3, 0x8f7e32ce7bea5c70, 0xd5d238a4abe98068, 0x9f4f2726179a2245,
    0xed63a231d4c4fb27, 0xb0de65388cc8ada8, 0x83c7088e1aab65db, 0xc45d1df942711d9a,
    0x924d692ca61be758, 0xda01ee641a708dea, 0xa26da3999aef774a, 0xf209787bb47d6b85,
    0xb454e4a179dd1877, 0x865b86925b9bc5c2, 0xc83553c5c8965d3d, 0x952ab45cfa97a0b3,
    0xde469fbd99a05fe3, 0xa59bc234db398c25, 0xf6c69a72a3989f5c, 0xb7dcbf5354e9bece,
    0x88fcf317f22241e2, 0xcc20ce9bd35c78a5, 0x98165af37b2153df, 0xe2a0b5dc971f303a,
    0xa8d9d1535ce3b396, 0xfb9b7cd9a4a7443c, 0xbb764c4ca7a44410, 0x8bab8eefb6409c1a,
    0xd01fef10a657842c, 0x9b10a4e5e9913129, 0xe7109bfba19c0c9d, 0xac2820d9623bf429,
    0x80444b5e7aa7cf85, 0xbf21e44003acdd2d, 0x8e679c2f5e44ff8f, 0xd433179d9c8cb841,
    0x9e19db92b4e31ba9, 0xeb96bf6ebadf77d9, 0xaf87023b9bf0ee6b,
};

/* f * 2^e */
struct number {
    uint64_t f;
    int e;
};

/* The exponent of a power of the table. */
static int power_exponent(int k)
{
    const int log2_10 = 217706, shift = 16; /* 2^16 * log2(10) */
    int product = k * log2_10;
    int floor = product >= 0 ? product >> shift : -((-product + (1 << shift) - 1) >> shift);
    return floor - 63;
}

/* Rounded to the upper 64 bits. */
static struct number multiply(struct number a, struct number b)
{
    const uint64_t low = UINT32_MAX;
    uint64_t high = (a.f >> 32) * (b.f >> 32), middle = (a.f >> 32) * (b.f & low);
    uint64_t other = (a.f & low) * (b.f >> 32), least = (a.f & low) * (b.f & low);
    uint64_t carry = (middle & low) + (other & low) + (least >> 32) + ((uint64_t)1 << 31);
    return (struct number){.f = high + (middle >> 32) + (other >> 32) + (carry >> 32),
                           .e = a.e + b.e + 64};
}

static struct number normalized(struct number n)
{
    while (n.f >> 63 == 0) {
        n.f <<= 1;
        n.e--;
    }
    return n;
}

static struct number split(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    uint64_t fraction = bits & (((uint64_t)1 << FRACTION) - 1);
    int exponent = (int)(bits >> FRACTION & 0x7ff);
    if (exponent == 0)
        return (struct number){.f = fraction, .e = 1 - BIAS};
    return (struct number){.f = fraction | (uint64_t)1 << FRACTION, .e = exponent - BIAS};
}

/* The middles between v and its neighbours, with one exponent. */
static void bounds_of(struct number v, struct number *ret_lower, struct number *ret_upper)
{
    bool is_power = v.f == (uint64_t)1 << FRACTION;
    int shift = is_power ? 2 : 1; /* the neighbour below a power of two is nearer */
    struct number lower = {.f = (v.f << shift) - 1, .e = v.e - shift};
    *ret_upper = normalized((struct number){.f = (v.f << 1) + 1, .e = v.e - 1});
    *ret_lower = (struct number){.f = lower.f << (lower.e - ret_upper->e), .e = ret_upper->e};
}

/* The power of ten whose product with 2^e has an exponent in the range. */
static struct number power_for(int e, int *ret_k)
{
    const double log10_2 = 0.30102999566398114;
    int n = (int)(sizeof powers / sizeof *powers);
    int i = ((int)(-(e + n) * log10_2) - POWER_MIN) / POWER_STEP;
    while (true) {
        int k = POWER_MIN + i * POWER_STEP, exponent = power_exponent(k);
        int product = e + exponent + 64;
        if (product < EXPONENT_MIN) {
            i++;
        } else if (product > EXPONENT_MAX) {
            i--;
        } else {
            *ret_k = k;
            return (struct number){.f = powers[i], .e = exponent};
        }
    }
}

struct digits {
    char text[DIGITS_MAX + 1];
    int n;
    int exponent; /* of the last one */
};

/* Lowers the last digit while that comes nearer to v. All are distances from the upper bound:
 * `rest` of the digits, `wanted` of v; `unit` is what the last digit counts. */
static void approach(struct digits *d, uint64_t delta, uint64_t rest, uint64_t unit,
                     uint64_t wanted)
{
    while (rest < wanted && delta - rest >= unit &&
           (rest + unit < wanted || wanted - rest > rest + unit - wanted)) {
        d->text[d->n - 1]--;
        rest += unit;
    }
}

static void add_digit(struct digits *d, unsigned digit)
{
    if (digit > 0 || d->n > 0)
        d->text[d->n++] = (char)('0' + digit);
}

/* As few digits of the upper bound as lead into the interval. */
static void generate(struct number v, struct number lower, struct number upper, struct digits *d)
{
    const int shift = -upper.e;
    const uint64_t one = (uint64_t)1 << shift;
    uint64_t wanted = upper.f - v.f, delta = upper.f - lower.f;
    uint64_t whole = upper.f >> shift, part = upper.f & (one - 1), unit = 1;
    int left = 10;
    for (uint64_t power = 1000000000; left > 0; power /= 10) {
        add_digit(d, (unsigned)(whole / power));
        whole %= power;
        left--;
        uint64_t rest = (whole << shift) + part;
        if (rest <= delta) {
            d->exponent += left;
            approach(d, delta, rest, power << shift, wanted);
            return;
        }
    }
    do {
        part *= 10;
        delta *= 10;
        unit *= 10;
        add_digit(d, (unsigned)(part >> shift));
        part &= one - 1;
        left--;
    } while (part >= delta);
    d->exponent += left;
    approach(d, delta, part, one, wanted * unit);
}

static void digits_of(double v, struct digits *ret)
{
    struct number n = split(v), lower, upper;
    int k;
    bounds_of(n, &lower, &upper);
    struct number power = power_for(upper.e, &k);
    upper = multiply(upper, power);
    lower = multiply(lower, power);
    lower.f++;
    upper.f--;
    *ret = (struct digits){.exponent = -k};
    generate(multiply(normalized(n), power), lower, upper, ret);
}

/* ---- text ---- */

static char *put(char *to, const char *from, int n)
{
    memcpy(to, from, (size_t)n);
    return to + n;
}

static char *put_zeros(char *to, int n)
{
    memset(to, '0', (size_t)n);
    return to + n;
}

static char *put_exponent(char *to, int exponent)
{
    *to++ = 'e';
    *to++ = exponent < 0 ? '-' : '+';
    return to + rd_num_put_u64(to, (uint64_t)(exponent < 0 ? -exponent : exponent));
}

static char *put_digits(char *to, const struct digits *d, bool negative)
{
    enum { ZEROS_MAX = 7, SMALL_MAX = 4 };
    int first = d->exponent + d->n - 1; /* the exponent of the first digit */
    int size = first < 0 ? -first : first;
    if (d->exponent >= 0 && size < d->n + ZEROS_MAX)
        return put_zeros(put(to, d->text, d->n), d->exponent);
    if (d->exponent < 0 && (d->exponent > -ZEROS_MAX || size < SMALL_MAX)) {
        int before = d->n + d->exponent;
        if (before <= 0)
            return put(put_zeros(put(to, "0.", 2), -before), d->text, d->n);
        to = put(to, d->text, before);
        *to++ = '.';
        return put(to, d->text + before, d->n - before);
    }
    int n = d->n < DIGITS_MAX - negative ? d->n : DIGITS_MAX - negative;
    *to++ = d->text[0];
    if (n > 1) {
        *to++ = '.';
        to = put(to, d->text + 1, n - 1);
    }
    return put_exponent(to, first);
}

size_t rd_num_put_grisu(char dst[RD_NUM_GRISU_MAX], double v)
{
    const double whole_max = 4611686018427387904.0; /* 2^62 */
    struct digits d;
    char *to = dst;
    if (v >= -whole_max && v <= whole_max) {
        int64_t i = (int64_t)v;
        if ((double)i == v)
            return rd_num_put_i64(dst, i);
    }
    if (isnan(v))
        return (size_t)(put(to, "nan", 3) - dst);
    if (signbit(v))
        *to++ = '-';
    if (isinf(v))
        return (size_t)(put(to, "inf", 3) - dst);
    digits_of(fabs(v), &d);
    return (size_t)(put_digits(to, &d, signbit(v)) - dst);
}
