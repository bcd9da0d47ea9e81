#include "base/num_grisu.h"

#include "base/num.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static void expect(double v, const char *want)
{
    char text[RD_NUM_GRISU_MAX];
    size_t len = rd_num_put_grisu(text, v);
    cr_expect(len == strlen(want) && memcmp(text, want, len) == 0, "%s, not %.*s", want, (int)len,
              text);
}

/* The replies of Redis 8.0.6 to ZSCORE. */
Test(num_grisu, numbers_are_written_as_servers_write_them)
{
    static const struct {
        double v;
        const char *text;
    } known[] = {
        {0x1.999999999999ap-4, "0.1"},
        {-0x1.0000000000000p-1, "-0.5"},
        {0x1.a36e2eb1c432dp-14, "0.0001"},
        {0x1.3a92a30553261p-13, "0.00015"},
        {0x1.0624dd2f1a9fcp-10, "0.001"},
        {0x1.439de481f5382p-10, "0.0012345"},
        {0x1.e240c9fbe76c9p+16, "123456.789"},
        {0x1.c6bf526340000p+49, "1000000000000000"},
        {0x1.4d1120d7b1600p+60, "1500000000000000000"},
        {0x1.158e460913d00p+62, "5e+18"},
        {0x1.b1ae4d6e2ef50p+69, "1e+21"},
        {0x1.0f0cf064dd592p+70, "1.25e+21"},
        {0x1.0f0cf064dd592p+73, "1e+22"},
        {0x1.249ad2594c37dp+332, "1e+100"},
        {0x1.bff2ee48e0530p-333, "1e-100"},
        {-0x1.fffffffffffffp+1023, "-1.7976931348623157e+308"},
        {0x0.0000000000001p-1022, "5e-324"},
        {0x1.0000000000000p-1022, "2.2250738585072014e-308"},
        {0x1.0000000000000p+62, "4611686018427387904"},
        {-0x1.0000000000000p+62, "-4611686018427387904"},
        {0x1.0000000000000p+63, "9223372036854776000"},
        {0x1.0000000000000p+53, "9007199254740992"},
        {0x1.3333333333333p-2, "0.3"},
        {0x1.5555555555555p-1, "0.6666666666666666"},
        {0x1.ad7f29abcaf48p-24, "1e-7"},
        {0x1.091f09e0ee5e7p-23, "1.234567e-7"},
        {0x1.ac53a7e04bcdap+66, "123456789012345680000"},
        {-0.0, "0"},
        {0x1.e759ff97b7508p-3, "0.23796462709189137"},
        {0x1.363698b529b4ap-489, "7.581454333883296e-148"},
        {0x1.7ad586f53dadep-2, "0.36995516654807925"},
        {0x1.b929e9a9a80fdp+918, "3.818526826307957e+276"},
        {0x1.405e69652cae3p-1, "0.625720304108054"},
        {-0x1.8923d10c67fd9p-591, "-1.8948713508859093e-178"},
        {0x1.af7d1e8a85280p-7, "0.013167991554874137"},
        {0x1.f9c58d6645fa9p+898, "4.1749440189827914e+270"},
        {0x1.09941946801c6p-2, "0.25935401432800764"},
        {0x1.624273bfd1d33p-238, "3.132872124271458e-72"},
        {0x1.fdc528ede5c0ep-1, "0.9956448355104628"},
        {-0x1.d43b578633074p-856, "-3.80666497140512e-258"},
        {0x1.ac44ace32d283p-1, "0.8364614512743888"},
        {0x1.a9c8279f248b0p+603, "5.521213857875556e+181"},
        {0x1.0ffffdcc80400p-11, "5.18798764062578e-4"},
        {0x1.35d1f5610a000p-14, "7.38668800442932e-5"},
        {0x1.c8ab443cc0873p-1, "0.8919316600952371"},
        {0x1.36d9dc1897800p-11, "5.929012577998716e-4"},
        {0x1.b02ebe69a6800p-12, "4.1216143891065204e-4"},
        {0x1.5e1dbfce2b000p-12, "3.338968352959437e-4"},
        {0x1.3ac793e5dfbaep-2, "0.30740195360697953"},
        {0x1.15377a4eaa000p-14, "6.609361410403469e-5"},
        {0x1.b878ab78a52b4p-2, "0.43014781879291353"},
        {0x1.3ba914ff94800p-11, "6.020745785895176e-4"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        expect(known[i].v, known[i].text);
    expect(INFINITY, "inf");
    expect(-INFINITY, "-inf");
    expect(NAN, "nan");
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void check(double v)
{
    char text[RD_NUM_GRISU_MAX];
    double back;
    size_t len = rd_num_put_grisu(text, v);
    cr_assert_leq(len, sizeof text);
    cr_assert(rd_num_get_f64(rd_slice(text, len), &back) && !(back < v) && !(back > v), "%a: %.*s",
              v, (int)len, text);
}

Test(num_grisu, every_number_can_be_read_back)
{
    uint64_t state = 88172645463325252;
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = next_random(&state);
        double v;
        memcpy(&v, &bits, sizeof v);
        if (isfinite(v))
            check(v);
        check((double)(float)(bits >> 11) / 0x1p53);
        check((double)(bits >> (bits & 63)));
    }
    for (int e = -1074; e < 1024; e++) {
        check(ldexp(1, e));
        check(nextafter(ldexp(1, e), 0));
        check(nextafter(ldexp(1, e), INFINITY));
    }
}
