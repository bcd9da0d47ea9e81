#include "json/text.h"

#include "base/buf.h"
#include "tests/support/guard.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* The string in pieces of n bytes, each at the end of readable memory. */
static void put_pieces(enum json_form form, struct rd_slice bytes, size_t n, struct rd_buf *ret)
{
    struct json_text text = {.form = form};
    size_t at = 0;
    do {
        size_t len = bytes.len - at < n ? bytes.len - at : n;
        uint8_t *piece = guard_new(bytes.ptr + at, len);
        cr_assert(rd_buf_reserve(ret, json_text_room(len)));
        uint8_t *from = ret->ptr + ret->len;
        uint8_t *to = json_text_put(&text, from, rd_slice(piece, len), at + len < bytes.len);
        cr_assert_leq((size_t)(to - from), json_text_room(len));
        ret->len += (size_t)(to - from);
        guard_free(piece);
        at += len;
    } while (at < bytes.len);
    cr_assert_eq(text.n_held, 0);
}

static void expect(enum json_form form, struct rd_slice bytes, const char *want)
{
    for (size_t n = 1; n <= bytes.len + 1; n++) {
        struct rd_buf got = {0};
        put_pieces(form, bytes, n, &got);
        cr_assert(rd_slice_is(rd_buf_slice(&got), want), "pieces of %zu: %.*s instead of %s", n,
                  (int)got.len, (char *)got.ptr, want);
        rd_buf_done(&got);
    }
}

Test(json_text, control_characters_have_their_short_form_where_there_is_one)
{
    expect(JSON_UTF8, rd_slice("\0\1\b\t\n\v\f\r\x1f \"\\/\x7f", 14),
           "\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f \\\"\\\\/\x7f");
}

Test(json_text, valid_utf8_stays_as_it_is_however_it_is_cut)
{
    const char *text = "a\xc2\xa1\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"
                       "\xf0\x90\x80\x80\xf4\x8f\xbf\xbfz";
    expect(JSON_UTF8, rd_slice_str(text), text);
}

Test(json_text, what_is_not_utf8_is_escaped_byte_by_byte)
{
    static const struct {
        const char *bytes;
        const char *want;
    } cases[] = {
        {"\x80", "\\udc80"},
        {"\xff\xfe", "\\udcff\\udcfe"},
        {"\xc0\x80", "\\udcc0\\udc80"},                            /* overlong */
        {"\xc1\xbf", "\\udcc1\\udcbf"},                            /* overlong */
        {"\xe0\x9f\xbf", "\\udce0\\udc9f\\udcbf"},                 /* overlong */
        {"\xf0\x8f\xbf\xbf", "\\udcf0\\udc8f\\udcbf\\udcbf"},      /* overlong */
        {"\xed\xa0\x80", "\\udced\\udca0\\udc80"},                 /* a surrogate */
        {"\xf4\x90\x80\x80", "\\udcf4\\udc90\\udc80\\udc80"},      /* over U+10FFFF */
        {"\xf5\x80\x80\x80", "\\udcf5\\udc80\\udc80\\udc80"},      /* no lead */
        {"\xe2\x82", "\\udce2\\udc82"},                            /* cut */
        {"\xe2\x82\x41", "\\udce2\\udc82\x41"},                    /* cut by a letter */
        {"\xf0\x9f\x98\xc3\xa9", "\\udcf0\\udc9f\\udc98\xc3\xa9"}, /* cut by a character */
        {"\xc3\xc3\xa9", "\\udcc3\xc3\xa9"},
        {"\xf0\x9f\x98\x22", "\\udcf0\\udc9f\\udc98\\\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect(JSON_UTF8, rd_slice_str(cases[i].bytes), cases[i].want);
}

Test(json_text, a_character_beyond_ascii_has_a_length_if_it_is_whole_and_valid)
{
    static const struct {
        const char *bytes;
        size_t len; /* 0: not valid */
    } cases[] = {
        {"\xc2\xa1", 2},
        {"\xdf\xbf", 2},
        {"\xe0\xa0\x80", 3},
        {"\xed\x9f\xbf", 3},
        {"\xef\xbf\xbf", 3},
        {"\xf0\x90\x80\x80", 4},
        {"\xf4\x8f\xbf\xbf", 4},
        {"\x80", 0},
        {"\xc1\xbf", 0},
        {"\xe0\x9f\xbf", 0},
        {"\xed\xa0\x80", 0},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf4\x90\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0},
        {"\xff", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rd_slice all = rd_slice_str(cases[i].bytes);
        for (size_t avail = 1; avail <= all.len; avail++) {
            uint8_t *cut = guard_new(all.ptr, avail);
            size_t want = avail == all.len ? cases[i].len : 0;
            cr_expect_eq(json_text_character(cut, avail), want, "case %zu, %zu bytes", i, avail);
            guard_free(cut);
        }
    }
}

Test(json_text, an_odd_byte_is_found_at_every_place_of_runs_of_every_length)
{
    static const struct {
        uint8_t byte;
        const char *want;
    } odd[] = {
        {'"', "\\\""}, {'\\', "\\\\"}, {0x1f, "\\u001f"}, {0x80, "\\udc80"}, {0xff, "\\udcff"}};
    char bytes[80], want[200];
    for (size_t len = 1; len < 70; len++) {
        for (size_t at = 0; at < len; at++) {
            for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
                memset(bytes, 'x', len);
                bytes[at] = (char)odd[i].byte;
                struct rd_buf got = {0};
                put_pieces(JSON_UTF8, rd_slice(bytes, len), len, &got);
                snprintf(want, sizeof want, "%.*s%s%.*s", (int)at, bytes, odd[i].want,
                         (int)(len - at - 1), bytes + at + 1);
                cr_assert(rd_slice_is(rd_buf_slice(&got), want));
                rd_buf_done(&got);
            }
        }
    }
}

Test(json_text, hex_and_base64_are_the_usual_ones)
{
    expect(JSON_HEX, rd_slice("\x00\x9f\xff", 3), "009fff");
    expect(JSON_HEX, rd_slice("", 0), "");
    expect(JSON_BASE64, rd_slice("", 0), "");
    expect(JSON_BASE64, rd_slice_str("f"), "Zg==");
    expect(JSON_BASE64, rd_slice_str("fo"), "Zm8=");
    expect(JSON_BASE64, rd_slice_str("foo"), "Zm9v");
    expect(JSON_BASE64, rd_slice_str("foobar\xff\xff\xfe"), "Zm9vYmFy///+");
}
