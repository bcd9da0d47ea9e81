#include "json/members.h"

#include "json/write.h"
#include "tests/support/alloc_fault.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>

/* What the tests read: some members, in any order, of which some may be missing. */
struct form {
    char text[12];
    uint64_t count;
    int64_t time;
    bool yes;
    uint8_t sum[3];
    uint64_t sizes[4];
    size_t n_sizes;
};

static void read_sizes(struct json_members *in, struct form *ret)
{
    char name[12];
    json_members_begin(in, '[');
    while (json_members_element(in)) {
        uint64_t size = 0;
        json_members_begin(in, '{');
        while (json_members_next(in, name, sizeof name))
            if (strcmp(name, "size") == 0)
                json_members_u64(in, &size);
            else
                json_members_skip(in);
        cr_assert_lt(ret->n_sizes, 4);
        ret->sizes[ret->n_sizes++] = size;
    }
}

static void read_member(struct json_members *in, const char *name, struct form *ret)
{
    if (strcmp(name, "text") == 0)
        json_members_string(in, ret->text, sizeof ret->text);
    else if (strcmp(name, "count") == 0)
        json_members_u64(in, &ret->count);
    else if (strcmp(name, "time") == 0)
        json_members_i64(in, &ret->time);
    else if (strcmp(name, "yes") == 0)
        json_members_bool(in, &ret->yes);
    else if (strcmp(name, "sum") == 0)
        json_members_hex(in, ret->sum, sizeof ret->sum);
    else if (strcmp(name, "sizes") == 0)
        read_sizes(in, ret);
    else
        json_members_skip(in);
}

static bool read_form(struct rd_slice text, struct form *ret, struct rd_err *err)
{
    struct json_members in;
    char name[12];
    *ret = (struct form){.count = 0};
    json_members_open(&in, text);
    json_members_begin(&in, '{');
    while (json_members_next(&in, name, sizeof name))
        read_member(&in, name, ret);
    bool ok = json_members_end(&in);
    cr_expect_eq(ok, json_members_ok(&in));
    json_members_close(&in);
    *err = in.err;
    return ok;
}

static bool read_text(const char *text, struct form *ret, struct rd_err *err)
{
    return read_form(rd_slice_str(text), ret, err);
}

static const char whole[] =
    " {\"sizes\": [ {\"size\":1} ,{ }, {\"of\": {\"size\": [7]}, \"size\": 3}],\r\n"
    "\t\"time\" : -5, \"text\": \"a\\u00e9\\n\\\"\", \"later\": [null, {\"x\": \"]\"}],\n"
    "\"count\": 18446744073709551615, \"yes\": true, \"sum\": \"00fF7e\"} \n";

Test(members, members_are_read_in_any_order_and_others_are_skipped)
{
    struct form form;
    struct rd_err err;
    cr_assert(read_text(whole, &form, &err), "%s", err.text);
    cr_expect_str_eq(form.text, "a\xc3\xa9\n\"");
    cr_expect_eq(form.count, UINT64_MAX);
    cr_expect_eq(form.time, -5);
    cr_expect(form.yes);
    cr_expect(memcmp(form.sum, "\x00\xff\x7e", 3) == 0);
    cr_assert_eq(form.n_sizes, 3);
    cr_expect(form.sizes[0] == 1 && form.sizes[1] == 0 && form.sizes[2] == 3);
    cr_assert(read_text("{}", &form, &err), "%s", err.text);
    cr_assert(read_text("{\"text\": null, \"yes\": false, \"sizes\": []}", &form, &err));
    cr_expect_str_eq(form.text, "");
    cr_expect_not(form.yes);
}

Test(members, no_document_that_is_cut_off_is_taken)
{
    struct form form;
    struct rd_err err;
    size_t end = (size_t)(strrchr(whole, '}') - whole);
    for (size_t len = 0; len <= end; len++) {
        cr_expect_not(read_form(rd_slice(whole, len), &form, &err), "%zu", len);
        cr_expect_leq(err.offset, len);
    }
    for (size_t len = end + 1; len < sizeof whole; len++)
        cr_expect(read_form(rd_slice(whole, len), &form, &err), "%zu: %s", len, err.text);
}

static const struct {
    const char *text;
    enum rd_err_code code;
    uint64_t offset;
} wrong[] = {
    {"", RD_ERR_TRUNCATED, 0},
    {"[]", RD_ERR_CORRUPT, 0},
    {"{\"a\" 1}", RD_ERR_CORRUPT, 5},
    {"{\"a\": 1 \"b\": 2}", RD_ERR_CORRUPT, 8},
    {"{, \"a\": 1}", RD_ERR_CORRUPT, 1},
    {"{\"a\": 1,}", RD_ERR_CORRUPT, 8},
    {"{\"a\": }", RD_ERR_CORRUPT, 6},
    {"{\"sizes\": [{},]}", RD_ERR_CORRUPT, 14},
    {"{\"sizes\": [{} {}]}", RD_ERR_CORRUPT, 14},
    {"{\"sizes\": {}}", RD_ERR_CORRUPT, 10},
    {"{\"text\": nul}", RD_ERR_CORRUPT, 9},
    {"{\"text\": \"123456789012\"}", RD_ERR_CORRUPT, 23},
    {"{\"text\": \"a\\u0000\"}", RD_ERR_CORRUPT, 18},
    {"{\"text\": \"\\x\"}", RD_ERR_CORRUPT, 12},
    {"{\"a name of 17 byt\": 1}", RD_ERR_CORRUPT, 19},
    {"{\"count\": -1}", RD_ERR_CORRUPT, 12},
    {"{\"count\": \"1\"}", RD_ERR_CORRUPT, 10},
    {"{\"time\": 1.5}", RD_ERR_CORRUPT, 12},
    {"{\"yes\": 1}", RD_ERR_CORRUPT, 8},
    {"{\"sum\": \"00\"}", RD_ERR_CORRUPT, 12},
    {"{\"sum\": \"00fg00\"}", RD_ERR_CORRUPT, 16},
    {"{} {}", RD_ERR_CORRUPT, 3},
};

Test(members, what_does_not_fit_is_an_error_at_its_byte)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct form form;
        struct rd_err err;
        cr_expect_not(read_text(wrong[i].text, &form, &err), "%s", wrong[i].text);
        cr_expect_eq(err.code, wrong[i].code, "%s: %s", wrong[i].text, err.text);
        cr_expect_eq(err.offset, wrong[i].offset, "%s: %" PRIu64, wrong[i].text, err.offset);
    }
}

Test(members, a_nul_byte_is_not_the_end)
{
    struct form form;
    struct rd_err err;
    cr_expect_not(read_form(rd_slice("{}\0", 3), &form, &err));
    cr_expect_eq(err.offset, 2);
    cr_expect_not(read_form(rd_slice("{\0}", 3), &form, &err));
    cr_expect_eq(err.offset, 1);
}

Test(members, nothing_is_written_after_the_first_failure)
{
    struct json_members in;
    uint64_t u = 1;
    int64_t i = 1;
    bool yes = true;
    char text[4] = "abc";
    uint8_t byte = 1;
    cr_assert(json_members_open(&in, rd_slice_str("7 8 9")));
    cr_expect_not(json_members_fail(&in, "the first"));
    cr_expect_not(json_members_fail(&in, "the second"));
    cr_expect_not(json_members_begin(&in, '{') || json_members_next(&in, text, sizeof text));
    cr_expect_not(json_members_element(&in) || json_members_string(&in, text, sizeof text));
    cr_expect_not(json_members_u64(&in, &u) || json_members_i64(&in, &i));
    cr_expect_not(json_members_bool(&in, &yes) || json_members_hex(&in, &byte, 1));
    cr_expect_not(json_members_skip(&in) || json_members_end(&in));
    cr_expect(u == 1 && i == 1 && yes && byte == 1 && strcmp(text, "abc") == 0);
    cr_expect_not_null(strstr(in.err.text, "the first"), "%s", in.err.text);
    json_members_close(&in);
}

Test(members, without_memory_nothing_is_read)
{
    for (size_t n = 1;; n++) {
        struct form form;
        struct rd_err err;
        alloc_fault_begin(n);
        bool ok = read_text(whole, &form, &err);
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0);
        cr_assert_eq(ok, !r.failed);
        if (ok)
            break;
        cr_expect_eq(err.code, RD_ERR_MEMORY);
    }
}

/* json_quote() writes what json_members_string() reads. */
Test(members, every_byte_comes_back_from_a_quoted_string)
{
    static const char *const texts[] = {
        "", "plain", "\"\\/\b\f\n\r\t\x01\x1f\x7f", "\xc3\xa9\xe2\x82\xac", "\xff\x80 \xc3",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct rd_buf out = {0};
        struct json_members in;
        char got[16];
        cr_assert(json_quote(&out, texts[i]));
        cr_assert(json_members_open(&in, rd_buf_slice(&out)));
        cr_expect(json_members_string(&in, got, sizeof got) && json_members_end(&in), "%s",
                  in.err.text);
        cr_expect_str_eq(got, texts[i]);
        json_members_close(&in);
        rd_buf_done(&out);
    }
}

Test(members, a_long_string_is_quoted_in_pieces)
{
    char long_text[3000], got[3000];
    struct rd_buf out = {0};
    struct json_members in;
    for (size_t i = 0; i < sizeof long_text; i++)
        long_text[i] = i % 7 == 0 ? '\x7f' : i % 3 == 0 ? '"' : 'x';
    long_text[sizeof long_text - 1] = '\0';
    cr_assert(json_quote(&out, long_text));
    cr_assert(json_members_open(&in, rd_buf_slice(&out)));
    cr_expect(json_members_string(&in, got, sizeof got), "%s", in.err.text);
    cr_expect_str_eq(got, long_text);
    json_members_close(&in);
    rd_buf_done(&out);
}
