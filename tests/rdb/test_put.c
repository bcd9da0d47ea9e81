#include "rdb/enc/put.h"

#include <criterion/criterion.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>

#include "tests/support/alloc_fault.h"

struct out {
    struct rd_buf buf;
    struct rd_sink *sink;
};

static void out_open(struct out *o)
{
    o->buf = (struct rd_buf){0};
    cr_assert(rd_sink_open_buf(&o->sink, &o->buf, NULL, NULL));
}

static void out_close(struct out *o)
{
    rd_sink_abort(o->sink);
    rd_buf_done(&o->buf);
}

/* What was written since the last time, as hexadecimal. */
static const char *taken(struct out *o)
{
    static char hex[2048];
    cr_assert(rd_sink_flush(o->sink));
    cr_assert_lt(o->buf.len, sizeof hex / 2);
    hex[0] = '\0';
    for (size_t i = 0; i < o->buf.len; i++)
        snprintf(hex + 2 * i, 3, "%02x", o->buf.ptr[i]);
    rd_buf_reset(&o->buf);
    return hex;
}

Test(put, a_length_takes_the_shortest_of_four_forms)
{
    static const struct {
        uint64_t len;
        const char *hex;
    } cases[] = {{0, "00"},
                 {63, "3f"},
                 {64, "4040"},
                 {16383, "7fff"},
                 {16384, "8000004000"},
                 {UINT32_MAX, "80ffffffff"},
                 {UINT64_C(1) << 32, "810000000100000000"},
                 {UINT64_MAX, "81ffffffffffffffff"}};
    struct out o;
    out_open(&o);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert(rdb_put_len(o.sink, cases[i].len));
        cr_expect_str_eq(taken(&o), cases[i].hex);
    }
    out_close(&o);
}

Test(put, text_of_a_32_bit_integer_becomes_an_integer_and_nothing_else_does)
{
    static const struct {
        const char *text;
        const char *hex;
    } cases[] = {{"0", "c000"},
                 {"-1", "c0ff"},
                 {"127", "c07f"},
                 {"-128", "c080"},
                 {"128", "c18000"},
                 {"-129", "c17fff"},
                 {"32767", "c1ff7f"},
                 {"-32768", "c10080"},
                 {"32768", "c200800000"},
                 {"2147483647", "c2ffffff7f"},
                 {"-2147483648", "c200000080"},
                 {"2147483648", "0a32313437343833363438"},
                 {"-2147483649", "0b2d32313437343833363439"},
                 {"", "00"},
                 {"-0", "022d30"},
                 {"+1", "022b31"},
                 {"01", "023031"},
                 {"1 ", "023120"},
                 {"-", "012d"},
                 {"a", "0161"}};
    struct rdb_put put = {0};
    struct out o;
    out_open(&o);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert(rdb_put_string(&put, o.sink, rd_slice_str(cases[i].text)));
        cr_expect_str_eq(taken(&o), cases[i].hex, "%s", cases[i].text);
    }
    cr_assert(rdb_put_int(o.sink, -129));
    cr_expect_str_eq(taken(&o), "c17fff");
    cr_assert(rdb_put_int(o.sink, INT64_C(2147483648)));
    cr_expect_str_eq(taken(&o), "0a32313437343833363438");
    out_close(&o);
}

Test(put, strings_over_20_bytes_are_compressed_where_that_saves_4_bytes)
{
    struct rdb_put put;
    struct out o;
    uint8_t text[64];
    memset(text, 'a', sizeof text);
    out_open(&o);
    cr_assert(rdb_put_init(&put, true));
    cr_assert(rdb_put_string(&put, o.sink, rd_slice(text, 20)));
    cr_expect_eq(strlen(taken(&o)), 2 * 21);
    cr_assert(rdb_put_string(&put, o.sink, rd_slice(text, 21)));
    cr_expect_eq(strncmp(taken(&o), "c3", 2), 0);
    for (unsigned i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i * i);
    cr_assert(rdb_put_string(&put, o.sink, rd_slice(text, 30)));
    cr_expect_eq(strncmp(taken(&o), "1e", 2), 0);
    rdb_put_done(&put);
    out_close(&o);
}

Test(put, without_memory_for_compression_a_string_is_stored_as_it_is)
{
    struct rdb_put put;
    struct out o;
    static uint8_t text[5000];
    alloc_fault_begin(1);
    cr_assert_not(rdb_put_init(&put, true));
    alloc_fault_end();
    out_open(&o);
    cr_assert(rdb_put_init(&put, true));
    alloc_fault_begin(1);
    cr_assert(rdb_put_string(&put, o.sink, rd_slice(text, 100)));
    struct alloc_fault_result r = alloc_fault_end();
    cr_assert(r.failed);
    cr_expect_eq(strncmp(taken(&o), "406400", 6), 0);
    rdb_put_done(&put);
    out_close(&o);
}

Test(put, scores_have_a_binary_and_a_text_form)
{
    static const struct {
        double v;
        const char *binary;
        const char *text;
    } cases[] = {{0, "0000000000000000", "0130"},
                 {-0.0, "0000000000000080", "022d30"},
                 {1, "000000000000f03f", "0131"},
                 {-2.5, "00000000000004c0", "042d322e35"},
                 {0.1, "9a9999999999b93f", "13302e3130303030303030303030303030303031"},
                 {1e17, "00a0d88557347643", "0531652b3137"},
                 {INFINITY, "000000000000f07f", "fe"},
                 {-INFINITY, "000000000000f0ff", "ff"},
                 {NAN, "000000000000f87f", "fd"}};
    struct out o;
    out_open(&o);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert(rdb_put_f64_text(o.sink, cases[i].v));
        cr_expect_str_eq(taken(&o), cases[i].text, "%g", cases[i].v);
        cr_assert(rdb_put_f64(o.sink, cases[i].v));
        cr_expect_str_eq(taken(&o), cases[i].binary, "%g", cases[i].v);
    }
    out_close(&o);
}

Test(put, text_of_a_double_reads_back_as_the_same_double)
{
    uint64_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        char text[RDB_PUT_F64_TEXT_MAX];
        double v, back;
        bits = bits * UINT64_C(6364136223846793005) + 1442695040888963407u;
        memcpy(&v, &bits, sizeof v);
        if (isnan(v) || isinf(v))
            continue;
        size_t len = rdb_put_f64_format(text, v);
        cr_assert_leq(len, 24);
        cr_assert(rd_num_get_f64(rd_slice(text, len), &back));
        cr_assert_eq(memcmp(&v, &back, sizeof v), 0);
    }
}

Test(put, a_locale_with_a_decimal_comma_changes_nothing)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "C"};
    char text[RDB_PUT_F64_TEXT_MAX];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        setlocale(LC_ALL, names[i]);
        size_t len = rdb_put_f64_format(text, 2.5);
        cr_assert(rd_slice_is(rd_slice(text, len), "2.5"), "%s", names[i]);
    }
    setlocale(LC_ALL, "C");
}

Test(put, times_are_eight_bytes_little_endian)
{
    struct out o;
    out_open(&o);
    cr_assert(rdb_put_le64(o.sink, (uint64_t)INT64_C(-2)));
    cr_expect_str_eq(taken(&o), "feffffffffffffff");
    cr_assert(rdb_put_le64(o.sink, UINT64_C(0x0102030405060708)));
    cr_expect_str_eq(taken(&o), "0807060504030201");
    out_close(&o);
}
