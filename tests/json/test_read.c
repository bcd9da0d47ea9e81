#include "base/src_impl.h"
#include "json/read.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* A reader over a text that comes `feed` bytes at a time through a small window. */
struct world {
    struct rd_src *src;
    struct rd_err err;
    struct json_read in;
};

static void begin(struct world *w, const char *text, size_t len, size_t feed)
{
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = 64);
    struct rd_src *memory;
    *w = (struct world){0};
    cr_assert(rd_src_open_memory(&memory, rd_slice(text, len), NULL, &w->err));
    cr_assert(rd_src_open_trickle(&w->src, memory, feed, &opts, &w->err));
    w->in = (struct json_read){.src = w->src, .err = &w->err};
}

static void end(struct world *w)
{
    rd_src_close(w->src);
}

/* ---- strings ---- */

/* The bytes of a string in pieces of up to `cap`; false: see w->err. */
static bool read_string(struct world *w, enum json_form form, size_t cap, uint8_t *dst,
                        size_t *ret_len)
{
    bool more = true;
    size_t n;
    *ret_len = 0;
    if (!json_expect(&w->in, '"'))
        return false;
    while (more) {
        if (!json_piece(&w->in, form, dst + *ret_len, cap, &n, &more))
            return false;
        cr_assert_leq(n, cap);
        *ret_len += n;
    }
    return true;
}

struct string_case {
    enum json_form form;
    const char *json;
    const char *bytes;
    size_t len;
};

static const struct string_case good[] = {
    {JSON_UTF8, "\"\"", "", 0},
    {JSON_UTF8, "  \n\t\"plain\"", "plain", 5},
    {JSON_UTF8, "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8},
    {JSON_UTF8, "\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
     10},
    {JSON_UTF8, "\"\\u0000x\"", "\0x", 2},
    {JSON_UTF8, "\"\\udc80\\udcff\\uDCc3\"", "\x80\xff\xc3", 3},
    {JSON_UTF8, "\"\xc3\xa9 as it is\"", "\xc3\xa9 as it is", 11},
    {JSON_UTF8, "\"a text that is longer than one piece of sixteen bytes, and \\u20ac in it\"",
     "a text that is longer than one piece of sixteen bytes, and \xe2\x82\xac in it", 68},
    {JSON_HEX, "\"\"", "", 0},
    {JSON_HEX, "\"00ff7F\"", "\x00\xff\x7f", 3},
    {JSON_HEX, "\"303132333435363738396162636465666768696a6b\"", "0123456789abcdefghijk", 21},
    {JSON_BASE64, "\"\"", "", 0},
    {JSON_BASE64, "\"YQ==\"", "a", 1},
    {JSON_BASE64, "\"YWI=\"", "ab", 2},
    {JSON_BASE64, "\"YWJj\"", "abc", 3},
    {JSON_BASE64, "\"+/+/AAAA\"", "\xfb\xff\xbf\0\0\0", 6},
    {JSON_BASE64, "\"MDEyMzQ1Njc4OWFiY2RlZmdoaWprbA==\"", "0123456789abcdefghijkl", 22},
};

Test(json_read, strings_come_back_as_the_bytes_they_were)
{
    static const size_t feeds[] = {1, 2, 3, 7, 4096};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        for (size_t k = 0; k < 2 * sizeof feeds / sizeof *feeds; k++) {
            struct world w;
            uint8_t bytes[256];
            size_t len;
            begin(&w, good[i].json, strlen(good[i].json), feeds[k / 2]);
            cr_assert(read_string(&w, good[i].form, k % 2 != 0 ? 16 : 128, bytes, &len), "%s: %s",
                      good[i].json, w.err.text);
            cr_expect_eq(len, good[i].len, "%s", good[i].json);
            cr_expect(len == 0 || memcmp(bytes, good[i].bytes, len) == 0, "%s", good[i].json);
            cr_expect_eq(json_peek(&w.in), 0);
            end(&w);
        }
}

Test(json_read, strings_that_are_cut_off_say_so_at_every_length)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        for (size_t n = 0; n < strlen(good[i].json); n++) {
            struct world w;
            uint8_t bytes[256];
            size_t len;
            begin(&w, good[i].json, n, 3);
            cr_assert_not(read_string(&w, good[i].form, 16, bytes, &len));
            cr_expect_eq(w.err.code, RD_ERR_TRUNCATED, "%s to %zu: %s", good[i].json, n,
                         w.err.text);
            end(&w);
        }
}

struct bad_case {
    enum json_form form;
    const char *json;
};

static const struct bad_case bad[] = {
    {JSON_UTF8, "\"a\nb\""},
    {JSON_UTF8, "\"a\\x\""},
    {JSON_UTF8, "\"\\u12g4\""},
    {JSON_UTF8, "\"\\ud83dx12345\""},
    {JSON_UTF8, "\"\\ud83d\\n1234\""},
    {JSON_UTF8, "\"\\ud83d\\u0041\""},
    {JSON_UTF8, "\"\\udc00\""},
    {JSON_UTF8, "\"\\udd00\""},
    {JSON_HEX, "\"0g\""},
    {JSON_HEX, "\"abc\" "},
    {JSON_BASE64, "\"====\""},
    {JSON_BASE64, "\"Y===\""},
    {JSON_BASE64, "\"YW!j\""},
    {JSON_BASE64, "\"YW=j\""},
    {JSON_BASE64, "\"YQ\"  "},
    {JSON_UTF8, "nothing"},
};

Test(json_read, values_other_than_strings_are_refused)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct world w;
        uint8_t bytes[256];
        size_t len;
        begin(&w, bad[i].json, strlen(bad[i].json), 4096);
        cr_expect_not(read_string(&w, bad[i].form, 64, bytes, &len), "%s", bad[i].json);
        cr_expect_eq(w.err.code, RD_ERR_CORRUPT, "%s: %s", bad[i].json, w.err.text);
        end(&w);
    }
}

/* ---- words and numbers ---- */

Test(json_read, tokens_are_taken_one_by_one)
{
    const char *text = "\r\n { \"name\" : -12 ,\n\t[ 18446744073709551615 , 1e5 ] }\n";
    for (size_t feed = 1; feed <= 64; feed *= 2) {
        struct world w;
        char word[8], number[8];
        int64_t i = 0;
        uint64_t u = 0;
        size_t len;
        begin(&w, text, strlen(text), feed);
        cr_expect_not(json_take(&w.in, '['));
        cr_expect(json_expect(&w.in, '{') && json_word(&w.in, word, sizeof word));
        cr_expect_str_eq(word, "name");
        cr_expect(json_expect(&w.in, ':') && json_i64(&w.in, &i) && json_take(&w.in, ','));
        cr_expect_eq(i, -12);
        cr_expect(json_take(&w.in, '[') && json_u64(&w.in, &u) && json_take(&w.in, ','));
        cr_expect_eq(u, UINT64_MAX);
        cr_expect(json_number(&w.in, number, sizeof number, &len));
        cr_expect(len == 3 && memcmp(number, "1e5", 3) == 0);
        cr_expect(json_expect(&w.in, ']') && json_expect(&w.in, '}'));
        cr_expect_eq(json_peek(&w.in), 0);
        cr_expect_eq(w.in.lines, 3);
        cr_expect_eq(w.err.code, RD_ERR_OK);
        end(&w);
    }
}

enum wanted { WORD, I64, U64, BRACE };

static const struct {
    enum wanted wanted;
    const char *text;
    enum rd_err_code code;
    uint64_t offset;
} wrong[] = {
    {BRACE, "", RD_ERR_TRUNCATED, 0},
    {BRACE, " \n ", RD_ERR_TRUNCATED, 3},
    {BRACE, "\n[", RD_ERR_CORRUPT, 1},
    {WORD, "\"12345678\"", RD_ERR_CORRUPT, 9},
    {WORD, "\"a\\n\"", RD_ERR_CORRUPT, 3},
    {WORD, "\"\xc3\xa9\"", RD_ERR_CORRUPT, 2},
    {WORD, "\"abc", RD_ERR_TRUNCATED, 4},
    {WORD, "5", RD_ERR_CORRUPT, 0},
    {I64, "x", RD_ERR_CORRUPT, 0},
    {I64, "9223372036854775808", RD_ERR_CORRUPT, 19},
    {I64, "1.5", RD_ERR_CORRUPT, 3},
    {I64, "123456789012345678901234567890", RD_ERR_CORRUPT, 20},
    {U64, "-1", RD_ERR_CORRUPT, 2},
    {U64, "\"1\"", RD_ERR_CORRUPT, 0},
    {U64, "18446744073709551616", RD_ERR_CORRUPT, 20},
};

Test(json_read, what_was_not_asked_for_is_an_error_at_its_byte)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct world w;
        char word[8];
        int64_t s;
        uint64_t u;
        begin(&w, wrong[i].text, strlen(wrong[i].text), 4096);
        bool ok = wrong[i].wanted == WORD  ? json_word(&w.in, word, sizeof word)
                  : wrong[i].wanted == I64 ? json_i64(&w.in, &s)
                  : wrong[i].wanted == U64 ? json_u64(&w.in, &u)
                                           : json_expect(&w.in, '{');
        cr_expect_not(ok, "%s", wrong[i].text);
        cr_expect_eq(w.err.code, wrong[i].code, "%s: %s", wrong[i].text, w.err.text);
        cr_expect_eq(w.err.offset, wrong[i].offset, "%s: %d", wrong[i].text, (int)w.err.offset);
        end(&w);
    }
}

Test(json_read, the_first_failure_stays_and_names_its_line)
{
    struct world w;
    int64_t i;
    begin(&w, "\n\n x", 4, 1);
    cr_expect_not(json_i64(&w.in, &i));
    cr_expect_not_null(strstr(w.err.text, "line 3"), "%s", w.err.text);
    struct rd_err first = w.err;
    cr_expect_eq(json_peek(&w.in), 0);
    cr_expect_not(json_expect(&w.in, 'x'));
    cr_expect_str_eq(w.err.text, first.text);
    end(&w);
}

/* ---- values that are passed ---- */

Test(json_read, values_of_any_kind_are_passed)
{
    static const char *const values[] = {
        "1",
        "-1.5e-7",
        "true",
        "false",
        "null",
        "\"\"",
        "\"a \\\" b\"",
        "[]",
        "{}",
        "[1, [2, {\"a\": [\"]\"]}], null]",
        "{\"a\": {\"b\": [true, false]}, \"c\": \"}\"}",
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        for (size_t feed = 1; feed < 100; feed *= 3) {
            struct world w;
            char text[200];
            int len = snprintf(text, sizeof text, " %s ;", values[i]);
            begin(&w, text, (size_t)len, feed);
            cr_expect(json_skip(&w.in), "%s: %s", values[i], w.err.text);
            cr_expect(json_expect(&w.in, ';'), "%s", values[i]);
            end(&w);
        }
}

Test(json_read, invalid_and_deeply_nested_values_are_refused)
{
    char deep[200];
    memset(deep, '[', sizeof deep);
    memset(deep + 64, ']', 64);
    struct world w;
    begin(&w, deep, 128, 4096);
    cr_expect(json_skip(&w.in), "%s", w.err.text);
    end(&w);
    memset(deep, '[', sizeof deep);
    begin(&w, deep, sizeof deep, 4096);
    cr_expect_not(json_skip(&w.in));
    cr_expect_eq(w.err.offset, 64);
    end(&w);
    static const char *const none[] = {"", "]", "x", "[1", "{\"a\":", "\"abc", "["};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        begin(&w, none[i], strlen(none[i]), 1);
        cr_expect_not(json_skip(&w.in), "%s", none[i]);
        cr_expect_neq(w.err.code, RD_ERR_OK);
        end(&w);
    }
}
