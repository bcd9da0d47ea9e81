#include "json/write.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct rd_buf text;
static struct rd_sink *sink;
static struct json_write json;
static struct rd_err err;

static void begin(void)
{
    cr_assert(rd_sink_open_buf(&sink, &text, NULL, &err));
    json_init(&json, sink);
}

static void done(void)
{
    rd_buf_done(&text);
}

TestSuite(json_write, .init = begin, .fini = done);

static void expect(const char *want)
{
    cr_assert(rd_sink_close(sink, &err), "%s", err.text);
    cr_expect(text.len == strlen(want) && memcmp(text.ptr, want, text.len) == 0, "%.*s",
              (int)text.len, (const char *)text.ptr);
}

Test(json_write, commas_stand_between_elements_and_members)
{
    json_obj(&json);
    json_put_str(&json, "a", "b");
    json_put_int(&json, "c", -1);
    json_key(&json, "d");
    json_array(&json);
    json_uint(&json, UINT64_MAX);
    json_obj(&json);
    json_end(&json);
    json_array(&json);
    json_end(&json);
    json_bool(&json, true);
    json_end(&json);
    json_put_bool(&json, "e", false);
    json_put_int(&json, "f", INT64_MIN);
    json_end(&json);
    expect("{\"a\":\"b\",\"c\":-1,\"d\":[18446744073709551615,{},[],true],\"e\":false,"
           "\"f\":-9223372036854775808}");
}

Test(json_write, what_is_not_known_is_null)
{
    json_array(&json);
    json_str(&json, NULL);
    json_obj(&json);
    json_put_offset(&json, "at", RD_NO_OFFSET);
    json_put_offset(&json, "at", 0);
    json_key(&json, "none");
    json_end(&json);
    json_end(&json);
    expect("[null,{\"at\":null,\"at\":0,\"none\":null}]");
}

Test(json_write, bytes_that_are_not_text_are_escaped)
{
    json_array(&json);
    json_bytes(&json, rd_slice("\"\\\n\x7f\xff\xc3\xa9", 7));
    json_end(&json);
    expect("[\"\\\"\\\\\\n\\u007f\\udcff\xc3\xa9\"]");
}

Test(json_write, a_long_string_is_whole)
{
    char bytes[1000], want[1010];
    memset(bytes, 'x', sizeof bytes);
    /* A character that two pieces share. */
    memcpy(bytes + 255, "\xc3\xa9", 2);
    want[0] = '"';
    memcpy(want + 1, bytes, sizeof bytes);
    strcpy(want + 1 + sizeof bytes, "\"");
    json_bytes(&json, rd_slice(bytes, sizeof bytes));
    expect(want);
}

Test(json_write, numbers_that_json_does_not_have_are_strings)
{
    json_array(&json);
    json_double(&json, 0.1);
    json_double(&json, -3);
    json_double(&json, INFINITY);
    json_double(&json, -INFINITY);
    json_double(&json, NAN);
    json_end(&json);
    expect("[0.1,-3,\"inf\",\"-inf\",\"nan\"]");
}

Test(json_write, the_deepest_level_is_closed)
{
    char want[2 * JSON_WRITE_DEPTH + 1] = "";
    for (int i = 0; i < JSON_WRITE_DEPTH; i++) {
        json_array(&json);
        want[i] = '[';
        want[JSON_WRITE_DEPTH + i] = ']';
    }
    for (int i = 0; i < JSON_WRITE_DEPTH; i++)
        json_end(&json);
    expect(want);
}

Test(json_write, a_second_array_follows_the_first)
{
    struct json_later later;
    cr_assert(json_later_init(&later, &err));
    json_obj(&json);
    json_key(&json, "keys");
    json_array(&json);
    for (unsigned i = 0; i < 3; i++) {
        json_uint(&json, i);
        json_uint(&later.json, 10 * i);
    }
    json_end(&json);
    cr_assert(json_later_put(&later, &json, "sizes", &err));
    json_end(&json);
    expect("{\"keys\":[0,1,2],\"sizes\":[0,10,20]}");
}

/* ---- strings, each in a sink of its own ---- */

static void expect_string(struct rd_slice bytes, const char *want)
{
    struct rd_buf got = {0};
    cr_assert(rd_sink_open_buf(&sink, &got, NULL, &err));
    json_init(&json, sink);
    json_bytes(&json, bytes);
    cr_assert(rd_sink_close(sink, &err), "%s", err.text);
    cr_assert(rd_slice_is(rd_buf_slice(&got), want), "%.*s instead of %s", (int)got.len,
              (char *)got.ptr, want);
    rd_buf_done(&got);
}

Test(json_string, special_characters_are_escaped)
{
    expect_string(rd_slice("\"\\\n\r\t\b\f/", 8), "\"\\\"\\\\\\n\\r\\t\\b\\f/\"");
    expect_string(rd_slice("a\0b\x1b[0m\x7f", 8), "\"a\\u0000b\\u001b[0m\\u007f\"");
    expect_string(rd_slice("\xc2\x9b", 2), "\"\\u009b\"");
}

Test(json_string, utf8_is_unchanged)
{
    const char *all = "\xc2\xa0 \xe2\x82\xac \xf0\x9f\x8f\xb0 \xf4\x8f\xbf\xbf";
    char want[64];
    snprintf(want, sizeof want, "\"%s\"", all);
    expect_string(rd_slice_str(all), want);
}

Test(json_string, bytes_that_are_not_utf8_become_lone_surrogates)
{
    expect_string(rd_slice("\x80", 1), "\"\\udc80\"");
    expect_string(rd_slice("\xff"
                           "a",
                           2),
                  "\"\\udcffa\"");
    /* cut off, too long, a surrogate, beyond the last code point */
    expect_string(rd_slice("\xe2\x82", 2), "\"\\udce2\\udc82\"");
    expect_string(rd_slice("\xc0\xaf", 2), "\"\\udcc0\\udcaf\"");
    expect_string(rd_slice("\xe0\x80\xaf", 3), "\"\\udce0\\udc80\\udcaf\"");
    expect_string(rd_slice("\xed\xa0\x80", 3), "\"\\udced\\udca0\\udc80\"");
    expect_string(rd_slice("\xf4\x90\x80\x80", 4), "\"\\udcf4\\udc90\\udc80\\udc80\"");
}

Test(json_string, long_strings_are_escaped_like_short_ones)
{
    char all[3 * 1000 + 1], want[9 * 1000 + 3];
    for (size_t before = 0; before < 3; before++) {
        size_t len = 0, n = 0;
        want[n++] = '"';
        for (; len < before; len++)
            all[len] = want[n++] = 'x';
        for (size_t i = 0; i < 900; i++) {
            memcpy(all + len, "\xe2\x82\xac", 3);
            memcpy(want + n, "\xe2\x82\xac", 3);
            len += 3;
            n += 3;
            if (i % 100 == 99) {
                all[len++] = '\x7f';
                memcpy(want + n, "\\u007f", 6);
                n += 6;
            }
        }
        want[n++] = '"';
        want[n] = '\0';
        expect_string(rd_slice(all, len), want);
    }
}
