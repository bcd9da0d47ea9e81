#include "tools/cli/cli.h"

#include "base/buf.h"

#include <criterion/criterion.h>
#include <math.h>

static struct rd_buf buf;
static struct rd_sink *sink;
static struct json_write json;

static void setup(void)
{
    buf = (struct rd_buf){0};
    cr_assert(rd_sink_open_buf(&sink, &buf, NULL, NULL));
    json_init(&json, sink);
}

static void expect(const char *want)
{
    cr_assert(rd_sink_close(sink, NULL));
    cr_assert(rd_slice_is(rd_buf_slice(&buf), want), "%.*s instead of %s", (int)buf.len,
              (char *)buf.ptr, want);
    rd_buf_done(&buf);
}

static void expect_string(struct rd_slice bytes, const char *want)
{
    setup();
    json_bytes(&json, bytes);
    expect(want);
}

Test(cli_json, commas_are_between_elements_only)
{
    setup();
    json_obj(&json);
    json_put_uint(&json, "a", UINT64_MAX);
    json_key(&json, "b");
    json_array(&json);
    json_array(&json);
    json_end(&json);
    json_obj(&json);
    json_end(&json);
    json_int(&json, INT64_MIN);
    json_null(&json);
    json_end(&json);
    json_put_bool(&json, "c", false);
    json_put_str(&json, "d", NULL);
    json_end(&json);
    expect("{\"a\":18446744073709551615,\"b\":[[],{},-9223372036854775808,null],"
           "\"c\":false,\"d\":null}");
}

Test(cli_json, a_key_that_is_left_without_value_gets_null)
{
    setup();
    json_obj(&json);
    json_key(&json, "a");
    json_end(&json);
    expect("{\"a\":null}");
}

Test(cli_json, doubles_read_back_equal_and_infinities_are_strings)
{
    setup();
    json_array(&json);
    json_double(&json, 0.1);
    json_double(&json, -3);
    json_double(&json, INFINITY);
    json_double(&json, -INFINITY);
    json_double(&json, NAN);
    json_end(&json);
    expect("[0.1,-3,\"inf\",\"-inf\",\"nan\"]");
}

Test(cli_json, special_characters_are_escaped)
{
    expect_string(rd_slice("\"\\\n\r\t\b\f/", 8), "\"\\\"\\\\\\n\\r\\t\\b\\f/\"");
    expect_string(rd_slice("a\0b\x1b[0m\x7f", 8), "\"a\\u0000b\\u001b[0m\\u007f\"");
    expect_string(rd_slice("\xc2\x9b", 2), "\"\\u009b\"");
}

Test(cli_json, utf8_is_unchanged)
{
    const char *text = "\xc2\xa0 \xe2\x82\xac \xf0\x9f\x8f\xb0 \xf4\x8f\xbf\xbf";
    char want[64];
    snprintf(want, sizeof want, "\"%s\"", text);
    expect_string(rd_slice_str(text), want);
}

Test(cli_json, bytes_that_are_not_utf8_become_lone_surrogates)
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

Test(cli_json, long_strings_are_escaped_like_short_ones)
{
    char text[3 * 1000 + 1], want[9 * 1000 + 3];
    for (size_t before = 0; before < 3; before++) {
        size_t len = 0, n = 0;
        want[n++] = '"';
        for (; len < before; len++)
            text[len] = want[n++] = 'x';
        for (size_t i = 0; i < 900; i++) {
            memcpy(text + len, "\xe2\x82\xac", 3);
            memcpy(want + n, "\xe2\x82\xac", 3);
            len += 3;
            n += 3;
            if (i % 100 == 99) {
                text[len++] = '\x7f';
                memcpy(want + n, "\\u007f", 6);
                n += 6;
            }
        }
        want[n++] = '"';
        want[n] = '\0';
        expect_string(rd_slice(text, len), want);
    }
}

Test(cli_json, an_offset_that_is_not_known_is_null)
{
    setup();
    json_obj(&json);
    json_put_offset(&json, "offset", 0);
    json_put_offset(&json, "inner", RD_NO_OFFSET);
    json_end(&json);
    expect("{\"offset\":0,\"inner\":null}");
}

Test(cli_json, an_error_shows_what_is_set)
{
    struct rd_err err = {0};
    rd_err_origin(&err, "dump.rdb");
    rd_err_set_inner(&err, RD_ERR_CORRUPT, 7994, 31, "bad length");
    rd_err_origin(&err, "dump.rdb");
    rd_err_doing(&err, "element %d", 17);
    setup();
    cli_json_err(&json, &err);
    expect("{\"code\":\"corrupt\",\"offset\":7994,\"inner\":31,\"origin\":\"dump.rdb\","
           "\"text\":\"bad length\",\"doing\":[\"element 17\"]}");
}
