#include "json/write.h"

#include <criterion/criterion.h>
#include <math.h>
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
    json_end(&json);
    expect("{\"a\":\"b\",\"c\":-1,\"d\":[18446744073709551615,{},[],true],\"e\":false}");
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
    json_double(&json, INFINITY);
    json_double(&json, -INFINITY);
    json_double(&json, NAN);
    json_end(&json);
    expect("[0.1,\"inf\",\"-inf\",\"nan\"]");
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
