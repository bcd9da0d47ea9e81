#include "base/src_impl.h"
#include "tests/base/broken.h"
#include "tests/base/resp_help.h"
#include "tests/support/alloc_fault.h"
#include "tests/support/guard.h"

#include <stdio.h>

/* One line a node: depth, type, value. */
static void add_node(struct rd_buf *buf, const struct resp_node *node)
{
    rd_buf_printf(buf, "%u%c", node->depth, node->type);
    if (node->null)
        rd_buf_printf(buf, "null");
    else if (node->type == RESP_INTEGER || node->type == RESP_BOOL)
        rd_buf_printf(buf, "%jd", (intmax_t)node->integer);
    else if (node->type == RESP_DOUBLE)
        rd_buf_printf(buf, "%g", node->number);
    else if (node->n_children > 0)
        rd_buf_printf(buf, "%ju", (uintmax_t)node->n_children);
    else
        rd_buf_printf(buf, "%s%.*s", node->format, (int)node->text.len,
                      node->text.len > 0 ? (const char *)node->text.ptr : "");
    rd_buf_printf(buf, node->last ? "; " : " ");
}

static struct rd_buf replies(struct rd_src *src, unsigned depth)
{
    struct rd_resp_reply *r;
    struct rd_buf buf = {0};
    struct resp_node node;
    enum resp_status status;
    cr_assert(rd_resp_reply_new(&r, src, depth, NULL, NULL));
    while ((status = rd_resp_reply_next(r, &node)) == RESP_NODE)
        add_node(&buf, &node);
    const struct rd_err *err = rd_resp_reply_err(r);
    if (status == RESP_FAIL)
        rd_buf_printf(&buf, "%s@%ju", rd_err_word(err->code), (uintmax_t)err->offset);
    else
        rd_buf_printf(&buf, "%s", status == RESP_END ? "end" : "more");
    rd_buf_add_byte(&buf, 0);
    rd_resp_reply_free(r);
    rd_src_close(src);
    return buf;
}

static void expect_replies(struct rd_slice bytes, unsigned depth, const char *want)
{
    struct rd_buf got = replies(memory(bytes), depth);
    char quoted[200];
    cr_expect_str_eq((const char *)got.ptr, want, "input %s",
                     rd_err_quote(quoted, sizeof quoted, bytes));
    rd_buf_done(&got);
}

static const char every_type[] =
    "+OK\r\n-ERR no\r\n:-17\r\n:+5\r\n$3\r\nabc\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n"
    "*3\r\n:1\r\n*2\r\n+a\r\n+b\r\n$-1\r\n_\r\n#t\r\n#f\r\n,1.5\r\n,inf\r\n(-"
    "123456789012345678901\r\n"
    "!5\r\nERR x\r\n=7\r\ntxt:abc\r\n%2\r\n+a\r\n:1\r\n+b\r\n~1\r\n:2\r\n>2\r\n+message\r\n+x\r\n"
    "|1\r\n+ttl\r\n:60\r\n*1\r\n|1\r\n+k\r\n+v\r\n+value\r\n";
static const char every_type_read[] =
    "0+OK; 0-ERR no; 0:-17; 0:5; 0$abc; 0$; 0$null; 0*null; 0*; "
    "0*3 1:1 1*2 2+a 2+b 1$null; 0_null; 0#1; 0#0; 0,1.5; 0,inf; 0(-123456789012345678901; "
    "0!ERR x; 0=txtabc; 0%4 1+a 1:1 1+b 1~1 2:2; 0>2 1+message 1+x; "
    "0|2 1+ttl 1:60 0*1 1|2 2+k 2+v 1+value; end";

Test(resp_reply, replies_of_every_type_are_read)
{
    expect_replies(rd_slice_str(every_type), 0, every_type_read);
}

Test(resp_reply, replies_read_the_same_in_pieces_of_any_size)
{
    static const size_t sizes[] = {1, 2, 3, 7, 4096};
    for (size_t i = 0; i < 5; i++) {
        struct rd_src *src;
        const struct rd_src_opts opts = RD_SRC_OPTS(.window = 64);
        cr_assert(
            rd_src_open_trickle(&src, memory(rd_slice_str(every_type)), sizes[i], &opts, NULL));
        struct rd_buf got = replies(src, 0);
        cr_expect_str_eq((const char *)got.ptr, every_type_read, "pieces of %zu", sizes[i]);
        rd_buf_done(&got);
    }
}

Test(resp_reply, pushed_replies_want_more_until_a_node_is_whole)
{
    struct rd_src *src = push(0);
    struct rd_resp_reply *r;
    struct resp_node node;
    struct rd_buf got = {0};
    cr_assert(rd_resp_reply_new(&r, src, 0, NULL, NULL));
    for (size_t i = 0; every_type[i] != '\0'; i++) {
        cr_assert_eq(rd_resp_reply_next(r, &node), RESP_MORE);
        cr_assert(rd_src_push(src, rd_slice(every_type + i, 1)));
        if (rd_resp_reply_next(r, &node) == RESP_NODE)
            add_node(&got, &node);
    }
    rd_src_push_end(src);
    cr_assert_eq(rd_resp_reply_next(r, &node), RESP_END);
    rd_buf_add(&got, "end", 4);
    cr_expect_str_eq((const char *)got.ptr, every_type_read);
    rd_buf_done(&got);
    rd_resp_reply_free(r);
    rd_src_close(src);
}

Test(resp_reply, every_prefix_of_a_reply_is_truncated_at_its_end)
{
    static const char tree[] = "|1\r\n+k\r\n:1\r\n%1\r\n$3\r\nabc\r\n*2\r\n_\r\n,1\r\n";
    for (size_t len = 1; len < sizeof tree - 1; len++) {
        uint8_t *bytes = guard_new(tree, len);
        struct rd_src *src = memory(rd_slice(bytes, len));
        struct rd_resp_reply *r;
        struct resp_node node;
        enum resp_status status;
        cr_assert(rd_resp_reply_new(&r, src, 0, NULL, NULL));
        while ((status = rd_resp_reply_next(r, &node)) == RESP_NODE)
            cr_assert_not(node.last);
        cr_assert_eq(status, RESP_FAIL, "prefix %zu", len);
        cr_assert_eq(rd_resp_reply_err(r)->code, RD_ERR_TRUNCATED, "prefix %zu", len);
        cr_assert_eq(rd_resp_reply_err(r)->offset, len);
        rd_resp_reply_free(r);
        rd_src_close(src);
        guard_free(bytes);
    }
}

Test(resp_reply, flipped_bits_of_replies_are_judged_alike_in_memory_and_in_pieces)
{
    enum { LEN = sizeof every_type - 1 };
    for (size_t bit = 0; bit < 8 * LEN; bit++) {
        struct rd_src *src;
        const struct rd_src_opts opts = RD_SRC_OPTS(.window = 64);
        uint8_t *bytes = guard_new(every_type, LEN);
        bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        struct rd_buf want = replies(memory(rd_slice(bytes, LEN)), 0);
        cr_assert(rd_src_open_trickle(&src, memory(rd_slice(bytes, LEN)), 1, &opts, NULL));
        struct rd_buf got = replies(src, 0);
        expect_same(&got, &want, "bit", bit);
        rd_buf_done(&got);
        rd_buf_done(&want);
        guard_free(bytes);
    }
}

Test(resp_reply, wrong_replies_are_refused_at_their_first_wrong_byte)
{
    expect_replies(S("x\r\n"), 0, "corrupt@0");
    expect_replies(S("+a\n"), 0, "corrupt@2");
    expect_replies(S("+a\rb\r\n"), 0, "corrupt@3");
    expect_replies(S(":1x\r\n"), 0, "corrupt@1");
    expect_replies(S(":\r\n"), 0, "corrupt@1");
    expect_replies(S("$-2\r\n"), 0, "corrupt@1");
    expect_replies(S("!-1\r\n"), 0, "corrupt@1");
    expect_replies(S("%-1\r\n"), 0, "corrupt@1");
    expect_replies(S("%9223372036854775807\r\n"), 0, "corrupt@1");
    expect_replies(S("$3\r\nabcd\r\n"), 0, "corrupt@7");
    expect_replies(S("#x\r\n"), 0, "corrupt@1");
    expect_replies(S(",abc\r\n"), 0, "corrupt@1");
    expect_replies(S("(12a\r\n"), 0, "corrupt@1");
    expect_replies(S("(-\r\n"), 0, "corrupt@1");
    expect_replies(S("_x\r\n"), 0, "corrupt@1");
    expect_replies(S("=3\r\nabc\r\n"), 0, "corrupt@1");
    expect_replies(S("$?\r\n"), 0, "unsupported@1");
    expect_replies(S("*?\r\n"), 0, "unsupported@1");
    expect_replies(S("%?\r\n"), 0, "unsupported@1");
}

Test(resp_reply, depth_of_replies_is_limited)
{
    expect_replies(S("*1\r\n*1\r\n:1\r\n"), 2, "0*1 1*1 2:1; end");
    expect_replies(S("*1\r\n*1\r\n:1\r\n"), 1, "0*1 limit@4");
    struct rd_src *src = memory(S(""));
    struct rd_resp_reply *r;
    struct rd_err err = {0};
    cr_expect_not(rd_resp_reply_new(&r, src, RESP_DEPTH_MAX + 1, NULL, &err));
    cr_expect_eq(err.code, RD_ERR_USAGE);
    rd_src_close(src);
}

Test(resp_reply, every_failing_allocation_is_survived)
{
    static char bytes[400];
    int len = snprintf(bytes, sizeof bytes, "*2\r\n$300\r\n%0300d\r\n:1\r\n", 0);
    enum resp_status status = RESP_FAIL;
    for (size_t n = 1; status != RESP_END; n++) {
        struct rd_src *inner = NULL, *src = NULL;
        struct rd_resp_reply *r = NULL;
        struct resp_node node;
        const struct rd_src_opts small = RD_SRC_OPTS(.window = 64);
        alloc_fault_begin(n);
        bool ok = rd_src_open_memory(&inner, rd_slice(bytes, (size_t)len), NULL, NULL) &&
                  rd_src_open_trickle(&src, inner, 50, &small, NULL) &&
                  rd_resp_reply_new(&r, src, 0, NULL, NULL);
        status = ok ? RESP_NODE : RESP_FAIL;
        while (status == RESP_NODE)
            status = rd_resp_reply_next(r, &node);
        if (ok && status == RESP_FAIL)
            cr_expect_eq(rd_resp_reply_err(r)->code, RD_ERR_MEMORY);
        rd_resp_reply_free(r);
        rd_src_close(src);
        struct alloc_fault_result result = alloc_fault_end();
        cr_assert_eq(result.live, 0, "allocation %zu", n);
        cr_assert_eq(status == RESP_END, !result.failed, "allocation %zu", n);
    }
}

Test(resp_reply, failing_source_fails_with_its_own_error)
{
    for (size_t window = 64; window <= 1024; window *= 16)
        for (size_t len = 0; len < sizeof every_type - 1; len++) {
            struct broken_src from = {.bytes = rd_slice(every_type, len)};
            struct rd_buf got = replies(broken_src_open(&from, window), 0);
            const char *end = strrchr((const char *)got.ptr, ' ');
            cr_expect(strncmp(end != NULL ? end + 1 : (const char *)got.ptr, "io@", 3) == 0,
                      "%zu: %s", len, (const char *)got.ptr);
            rd_buf_done(&got);
        }
}

Test(resp_reply, strings_longer_than_the_limit_are_refused)
{
    const struct rd_resp_opts opts = RD_RESP_OPTS(.max_bulk = 10);
    struct rd_src *src = memory(S("$10\r\n0123456789\r\n$11\r\n"));
    struct rd_resp_reply *r;
    struct resp_node node;
    cr_assert(rd_resp_reply_new(&r, src, 0, &opts, NULL));
    cr_assert_eq(rd_resp_reply_next(r, &node), RESP_NODE);
    cr_expect_eq(rd_resp_reply_next(r, &node), RESP_FAIL);
    cr_expect_eq(rd_resp_reply_err(r)->code, RD_ERR_LIMIT);
    cr_expect_eq(rd_resp_reply_err(r)->offset, 18);
    cr_expect_eq(rd_resp_reply_next(r, &node), RESP_FAIL, "a failure lasts");
    cr_expect_eq(rd_resp_reply_err(r)->offset, 18);
    rd_resp_reply_free(r);
    rd_src_close(src);
}

Test(resp_reply, an_error_reply_has_a_reason_by_its_first_words)
{
    cr_expect_eq(rd_resp_error_reason(rd_slice_str("NOAUTH Authentication required.")),
                 RESP_REASON_NOAUTH);
    cr_expect_eq(rd_resp_error_reason(rd_slice_str("err unknown command 'X'")),
                 RESP_REASON_UNKNOWN_COMMAND);
    cr_expect_eq(rd_resp_error_reason(rd_slice_str("BUSY Redis is busy")), RESP_REASON_BUSY);
    cr_expect_eq(rd_resp_error_reason(rd_slice_str("BUSYKEY Target key name already exists.")), 0);
    cr_expect_eq(rd_resp_error_reason(rd_slice_str("a text with NOAUTH in it")), 0);
    cr_expect_eq(rd_resp_error_reason(rd_slice("NOAUTH", 5)), 0);
    cr_expect_eq(rd_resp_error_reason(rd_slice("", 0)), 0);
#define X(name, number, words) cr_expect_eq(rd_resp_error_reason(rd_slice_str(words)), number);
    RESP_REASONS(X)
#undef X
}
