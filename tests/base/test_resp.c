#include "base/resp.h"
#include "base/src_impl.h"

#include "tests/base/broken.h"
#include "tests/base/resp_help.h"
#include "tests/support/alloc_fault.h"
#include "tests/support/guard.h"

#include <stdio.h>

static const char two_commands[] = "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$12\r\nhello, world\r\n"
                                   "*1\r\n$4\r\nPING\r\n";
enum { SECOND_AT = 41, BOTH_LEN = 55 };

static void add_command(struct rd_buf *buf, const struct resp_command *cmd)
{
    rd_buf_printf(buf, "%ju+%ju", (uintmax_t)cmd->offset, (uintmax_t)cmd->len);
    for (size_t i = 0; i < cmd->argc; i++) {
        rd_buf_printf(buf, " [");
        rd_buf_add(buf, cmd->argv[i].ptr, cmd->argv[i].len);
        rd_buf_printf(buf, "]");
    }
    rd_buf_printf(buf, "\n");
}

/* Reads to the end; the commands as text, and then how it ended. Takes the source. */
static struct rd_buf transcript(struct rd_src *src, const struct rd_resp_opts *opts)
{
    struct rd_resp_reader *r = reader_of(src, opts);
    struct rd_buf buf = {0};
    struct resp_command cmd;
    enum resp_status status;
    while ((status = rd_resp_reader_next(r, &cmd)) == RESP_COMMAND)
        add_command(&buf, &cmd);
    const struct rd_err *err = rd_resp_reader_err(r);
    if (status == RESP_FAIL)
        rd_buf_printf(&buf, "%s@%ju", rd_err_word(err->code), (uintmax_t)err->offset);
    else
        rd_buf_printf(&buf, "%s", status == RESP_END ? "end" : "more");
    rd_buf_add_byte(&buf, 0);
    rd_resp_reader_free(r);
    rd_src_close(src);
    return buf;
}

static void expect(struct rd_slice bytes, const struct rd_resp_opts *opts, const char *want)
{
    struct rd_buf got = transcript(memory(bytes), opts);
    char quoted[200];
    cr_expect_str_eq((const char *)got.ptr, want, "input %s",
                     rd_err_quote(quoted, sizeof quoted, bytes));
    rd_buf_done(&got);
}

Test(resp, commands_are_read_with_their_place)
{
    expect(rd_slice_str(two_commands), NULL, "0+41 [SET] [key] [hello, world]\n41+14 [PING]\nend");
    expect(S(""), NULL, "end");
    expect(S("*2\r\n$0\r\n\r\n$2\r\n\r\n\r\n"), NULL, "0+18 [] [\r\n]\nend");
}

Test(resp, every_wrong_byte_is_named_by_its_offset)
{
    expect(S("PING\r\n"), NULL, "corrupt@0");
    expect(S("*x\r\n"), NULL, "corrupt@1");
    expect(S("*0\r\n"), NULL, "corrupt@1");
    expect(S("*-1\r\n"), NULL, "corrupt@1");
    expect(S("*01\r\n$1\r\na\r\n"), NULL, "corrupt@2");
    expect(S("*+1\r\n$1\r\na\r\n"), NULL, "corrupt@1");
    expect(S("*-0\r\n"), NULL, "corrupt@3");
    expect(S("*1x\r\n"), NULL, "corrupt@2");
    expect(S("*1\n$1\r\na\r\n"), NULL, "corrupt@2");
    expect(S("*1\rx"), NULL, "corrupt@3");
    expect(S("*99999999999999999999\r\n"), NULL, "corrupt@19");
    expect(S("*1\r\n+1\r\na\r\n"), NULL, "corrupt@4");
    expect(S("*1\r\n$-1\r\n"), NULL, "corrupt@5");
    expect(S("*1\r\n$\r\n"), NULL, "corrupt@5");
    expect(S("*1\r\n$1\r\nabc\r\n"), NULL, "corrupt@9");
    expect(S("*1\r\n$1\r\na\rX"), NULL, "corrupt@10");
    expect(S("*1\r\n$1\r\na\r\n*"), NULL, "0+11 [a]\ntruncated@12");
    expect(S("*2000000\r\n"), NULL, "limit@1");
    expect(S("*1\r\n$536870913\r\n"), NULL, "limit@5");
    expect(S("*1\r\n$536870912\r\nabc"), NULL, "truncated@19");
}

Test(resp, offset_of_the_reader_is_where_a_log_may_be_cut)
{
    struct rd_src *src = memory(S("*1\r\n$1\r\na\r\n*1\r\n$1\r\nabc"));
    struct rd_resp_reader *r = reader_of(src, NULL);
    struct resp_command cmd;
    cr_assert_eq(rd_resp_reader_offset(r), 0);
    cr_assert_eq(rd_resp_reader_next(r, &cmd), RESP_COMMAND);
    cr_assert_eq(rd_resp_reader_offset(r), 11);
    cr_assert_eq(rd_resp_reader_next(r, &cmd), RESP_FAIL);
    cr_assert_eq(rd_resp_reader_offset(r), 11);
    cr_assert_eq(rd_resp_reader_next(r, &cmd), RESP_FAIL, "a failure sticks");
    rd_resp_reader_free(r);
    rd_src_close(src);
}

Test(resp, every_prefix_is_truncated_at_its_end)
{
    for (size_t len = 1; len < BOTH_LEN; len++) {
        if (len == SECOND_AT)
            continue;
        uint8_t *bytes = guard_new(two_commands, len);
        struct rd_src *src = memory(rd_slice(bytes, len));
        struct rd_resp_reader *r = reader_of(src, NULL);
        struct resp_command cmd;
        if (len > SECOND_AT)
            cr_assert_eq(rd_resp_reader_next(r, &cmd), RESP_COMMAND);
        cr_assert_eq(rd_resp_reader_next(r, &cmd), RESP_FAIL, "prefix %zu", len);
        cr_assert_eq(rd_resp_reader_err(r)->code, RD_ERR_TRUNCATED);
        cr_assert_eq(rd_resp_reader_err(r)->offset, len);
        rd_resp_reader_free(r);
        rd_src_close(src);
        guard_free(bytes);
    }
}

Test(resp, every_prefix_of_a_pushed_stream_wants_more_and_consumes_nothing)
{
    struct rd_src *src = push(0);
    struct rd_resp_reader *r = reader_of(src, NULL);
    struct resp_command cmd;
    for (size_t i = 0; i < BOTH_LEN; i++) {
        enum resp_status status = rd_resp_reader_next(r, &cmd);
        if (i == SECOND_AT) {
            cr_assert_eq(status, RESP_COMMAND);
            cr_assert_eq(cmd.argc, 3);
            cr_assert(rd_slice_is(cmd.argv[2], "hello, world"));
            status = rd_resp_reader_next(r, &cmd);
        }
        cr_assert_eq(status, RESP_MORE, "after %zu bytes", i);
        cr_assert_eq(rd_src_offset(src), i < SECOND_AT ? 0 : SECOND_AT);
        cr_assert(rd_src_push(src, rd_slice(two_commands + i, 1)));
    }
    cr_assert_eq(rd_resp_reader_next(r, &cmd), RESP_COMMAND);
    rd_src_push_end(src);
    cr_assert_eq(rd_resp_reader_next(r, &cmd), RESP_END);
    rd_resp_reader_free(r);
    rd_src_close(src);
}

Test(resp, size_of_reads_and_of_the_window_does_not_matter)
{
    static const size_t sizes[] = {1, 2, 3, 7, 4096, 1 << 20}, windows[] = {64, 200, 4096, 0};
    struct rd_buf bytes = mixed_stream();
    struct rd_buf want = transcript(memory(rd_buf_slice(&bytes)), NULL);
    for (size_t w = 0; w < 4; w++)
        for (size_t i = 0; i < 6; i++) {
            struct rd_src *src;
            const struct rd_src_opts opts = RD_SRC_OPTS(.window = windows[w]);
            cr_assert(
                rd_src_open_trickle(&src, memory(rd_buf_slice(&bytes)), sizes[i], &opts, NULL));
            struct rd_buf got = transcript(src, NULL);
            expect_same(&got, &want, "reads of", sizes[i]);
            rd_buf_done(&got);
        }
    rd_buf_done(&want);
    rd_buf_done(&bytes);
}

Test(resp, pushed_stream_reads_the_same_through_a_small_window)
{
    struct rd_buf bytes = mixed_stream(), got = {0};
    struct rd_buf want = transcript(memory(rd_buf_slice(&bytes)), NULL);
    struct rd_src *src = push(64);
    struct rd_resp_reader *r = reader_of(src, NULL);
    struct resp_command cmd;
    for (size_t i = 0; i < bytes.len; i++) {
        while (rd_resp_reader_next(r, &cmd) == RESP_COMMAND)
            add_command(&got, &cmd);
        cr_assert(rd_src_push(src, rd_slice(bytes.ptr + i, 1)));
    }
    rd_src_push_end(src);
    while (rd_resp_reader_next(r, &cmd) == RESP_COMMAND)
        add_command(&got, &cmd);
    rd_buf_add(&got, "end", 4);
    expect_same(&got, &want, "window", 64);
    rd_resp_reader_free(r);
    rd_src_close(src);
    rd_buf_done(&want);
    rd_buf_done(&got);
    rd_buf_done(&bytes);
}

/* Memory that is read through a window takes the path of the checker; both must judge alike. */
Test(resp, the_bytes_of_every_command_are_given_as_they_stood)
{
    static const size_t windows[] = {64, 300, 100000};
    struct rd_buf stream = mixed_stream();
    rd_buf_printf(&stream, "select  '1'\r\nPING\n");
    for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
        struct rd_src *src = push(windows[w]);
        struct rd_resp_reader *r = reader_of(src, &RD_RESP_OPTS(.client = true));
        struct resp_command cmd;
        struct rd_buf got = {0};
        for (size_t at = 0; at < stream.len;) {
            size_t n = rd_src_push_room(src) < 50 ? rd_src_push_room(src) : 50;
            n = n < stream.len - at ? n : stream.len - at;
            cr_assert(rd_src_push(src, rd_slice(stream.ptr + at, n)));
            at += n;
            while (rd_resp_reader_next(r, &cmd) == RESP_COMMAND) {
                struct rd_slice raw = rd_resp_reader_raw(r);
                cr_assert_eq(raw.len, cmd.len);
                rd_buf_add(&got, raw.ptr, raw.len);
            }
        }
        expect_same(&got, &stream, "window", windows[w]);
        rd_buf_done(&got);
        rd_resp_reader_free(r);
        rd_src_close(src);
    }
    rd_buf_done(&stream);
}

Test(resp, every_flipped_bit_is_judged_alike_in_memory_and_in_pieces)
{
    const struct rd_resp_opts client = RD_RESP_OPTS(.client = true);
    for (size_t bit = 0; bit < 8 * BOTH_LEN; bit++) {
        uint8_t *bytes = guard_new(two_commands, BOTH_LEN);
        bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        for (int mode = 0; mode < 2; mode++) {
            struct rd_src *src;
            const struct rd_src_opts opts = RD_SRC_OPTS(.window = 64);
            struct rd_slice all = rd_slice(bytes, BOTH_LEN);
            struct rd_buf want = transcript(memory(all), mode ? &client : NULL);
            cr_assert(rd_src_open_trickle(&src, memory(all), 1, &opts, NULL));
            struct rd_buf got = transcript(src, mode ? &client : NULL);
            expect_same(&got, &want, "bit", bit);
            rd_buf_done(&got);
            rd_buf_done(&want);
        }
        guard_free(bytes);
    }
}

Test(resp, inline_commands_are_split_as_a_shell_would)
{
    const struct rd_resp_opts client = RD_RESP_OPTS(.client = true);
    expect(S("PING\r\nSET k v\n"), &client, "0+6 [PING]\n6+8 [SET] [k] [v]\nend");
    expect(S("\r\n\n  \r\nPING\r\n"), &client, "7+6 [PING]\nend");
    expect(S("a \"b c\" 'd e' f\r\n"), &client, "0+17 [a] [b c] [d e] [f]\nend");
    expect(S("\"\\n\\x41\\\"\\\\\\q\" '\\'\\n'\r\n"), &client, "0+23 [\nA\"\\q] ['\\n]\nend");
    expect(S("\"\\x4\\xg1\"\r\n"), &client, "0+11 [x4xg1]\nend");
    expect(S("\"\" ''\r\n"), &client, "0+7 [] []\nend");
    expect(S("a \"b\r\n"), &client, "corrupt@2");
    expect(S("a \"b\"c\r\n"), &client, "corrupt@2");
    expect(S("a 'b\\'\r\n"), &client, "corrupt@2");
    expect(S("*0\r\n*-1\r\n*1\r\n$1\r\na\r\n"), &client, "9+11 [a]\nend");
    expect(S("*-2\r\n"), &client, "corrupt@1");
    expect(S("PING"), &client, "truncated@4");
}

Test(resp, limits_are_kept)
{
    const struct rd_resp_opts args = RD_RESP_OPTS(.max_args = 2),
                              bulk = RD_RESP_OPTS(.max_bulk = 3);
    const struct rd_resp_opts line = RD_RESP_OPTS(.max_inline = 8, .client = true);
    expect(S("*2\r\n$1\r\na\r\n$1\r\nb\r\n"), &args, "0+18 [a] [b]\nend");
    expect(S("*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n"), &args, "limit@1");
    expect(S("*1\r\n$3\r\nabc\r\n"), &bulk, "0+13 [abc]\nend");
    expect(S("*1\r\n$4\r\nabcd\r\n"), &bulk, "limit@5");
    expect(S("abcdef\r\n"), &line, "0+8 [abcdef]\nend");
    expect(S("abcdefg\r\n"), &line, "limit@8");
}

Test(resp, command_beyond_the_memory_allowed_is_refused)
{
    struct rd_src *src;
    const struct rd_src_opts small = RD_SRC_OPTS(.window = 64);
    const struct rd_resp_opts opts = RD_RESP_OPTS(.max_memory = 1000);
    static char bytes[3000];
    int len = snprintf(bytes, sizeof bytes, "*1\r\n$2000\r\n%02000d\r\n", 0);
    cr_assert(rd_src_open_trickle(&src, memory(rd_slice(bytes, (size_t)len)), 100, &small, NULL));
    struct rd_buf got = transcript(src, &opts);
    cr_expect_str_eq((const char *)got.ptr, "limit@0");
    rd_buf_done(&got);
}

/* A peer that declares much and sends little gets little memory. */
Test(resp, declared_sizes_do_not_allocate)
{
    static const char *const greedy[] = {"*1\r\n$500000000\r\nabc", "*1048576\r\n$3\r\nabc\r\n"};
    for (size_t i = 0; i < 2; i++) {
        alloc_fault_begin(0);
        struct rd_src *src = push(64);
        struct rd_resp_reader *r = reader_of(src, NULL);
        struct resp_command cmd;
        cr_assert(rd_src_push(src, rd_slice_str(greedy[i])));
        cr_expect_eq(rd_resp_reader_next(r, &cmd), RESP_MORE);
        rd_resp_reader_free(r);
        rd_src_close(src);
        struct alloc_fault_result result = alloc_fault_end();
        cr_expect_lt(result.peak_bytes, 16 * 1024);
        cr_expect_eq(result.live, 0);
    }
}

Test(resp, command_of_many_arguments_is_read)
{
    enum { ARGC = 100000 };
    struct rd_buf buf = {0};
    rd_buf_printf(&buf, "*%d\r\n", ARGC);
    for (int i = 0; i < ARGC; i++)
        rd_buf_printf(&buf, "$1\r\n%d\r\n", i % 10);
    for (int windowed = 0; windowed < 2; windowed++) {
        struct rd_src *src = memory(rd_buf_slice(&buf));
        if (windowed)
            cr_assert(rd_src_open_trickle(&src, src, 70000, NULL, NULL));
        struct rd_resp_reader *r = reader_of(src, NULL);
        struct resp_command cmd;
        cr_assert_eq(rd_resp_reader_next(r, &cmd), RESP_COMMAND);
        cr_assert_eq(cmd.argc, ARGC);
        cr_assert(rd_slice_is(cmd.argv[ARGC - 1], "9"));
        cr_assert_eq(rd_resp_reader_next(r, &cmd), RESP_END);
        rd_resp_reader_free(r);
        rd_src_close(src);
    }
    rd_buf_done(&buf);
}

static bool read_all(struct rd_slice bytes)
{
    struct rd_src *inner, *src = NULL;
    struct rd_resp_reader *r = NULL;
    struct resp_command cmd;
    const struct rd_src_opts small = RD_SRC_OPTS(.window = 64);
    const struct rd_resp_opts client = RD_RESP_OPTS(.client = true);
    enum resp_status status = RESP_COMMAND;
    bool ok = rd_src_open_memory(&inner, bytes, NULL, NULL) &&
              rd_src_open_trickle(&src, inner, 50, &small, NULL) &&
              rd_resp_reader_new(&r, src, &client, NULL);
    while (ok && status == RESP_COMMAND)
        status = rd_resp_reader_next(r, &cmd);
    if (ok && status == RESP_FAIL)
        cr_expect_eq(rd_resp_reader_err(r)->code, RD_ERR_MEMORY);
    rd_resp_reader_free(r);
    rd_src_close(src);
    return ok && status == RESP_END;
}

Test(resp, every_failing_allocation_is_survived)
{
    struct rd_buf bytes = {0};
    rd_buf_printf(&bytes, "PING 'a b'\r\n*1\r\n$300\r\n%0300d\r\n*70\r\n", 0);
    for (int i = 0; i < 70; i++)
        rd_buf_printf(&bytes, "$1\r\na\r\n");
    size_t n = 1;
    for (bool ok = false; !ok; n++) {
        alloc_fault_begin(n);
        ok = read_all(rd_buf_slice(&bytes));
        struct alloc_fault_result result = alloc_fault_end();
        cr_assert_eq(result.live, 0, "allocation %zu", n);
        cr_assert_eq(ok, !result.failed, "allocation %zu", n);
    }
    cr_assert_gt(n, 6);
    rd_buf_done(&bytes);
}

Test(resp, failing_source_fails_with_its_own_error)
{
    for (size_t window = 64; window <= 1024; window *= 16)
        for (size_t len = 0; len < BOTH_LEN; len++) {
            struct broken_src from = {.bytes = rd_slice(two_commands, len)};
            struct rd_src *src = broken_src_open(&from, window);
            struct rd_resp_reader *r = reader_of(src, NULL);
            struct resp_command cmd;
            enum resp_status status;
            while ((status = rd_resp_reader_next(r, &cmd)) == RESP_COMMAND)
                continue;
            cr_expect_eq(status, RESP_FAIL);
            cr_expect_eq(rd_resp_reader_err(r)->code, RD_ERR_IO, "%zu", len);
            cr_expect_eq(rd_resp_reader_offset(r), len < SECOND_AT ? 0 : SECOND_AT, "%zu", len);
            rd_resp_reader_free(r);
            rd_src_close(src);
        }
}

/* An argument that does not fit the window is gathered elsewhere. */
Test(resp, failing_source_fails_also_inside_of_a_long_argument)
{
    struct broken_src from = {.bytes = S("*1\r\n$200\r\n"
                                         "0123456789012345678901234567890123456789"
                                         "0123456789012345678901234567890123456789")};
    struct rd_src *src = broken_src_open(&from, 64);
    struct rd_resp_reader *r = reader_of(src, NULL);
    struct resp_command cmd;
    cr_expect_eq(rd_resp_reader_next(r, &cmd), RESP_FAIL);
    cr_expect_eq(rd_resp_reader_err(r)->code, RD_ERR_IO);
    rd_resp_reader_free(r);
    rd_src_close(src);
}

/* The array of arguments counts as memory, too. */
Test(resp, more_arguments_than_memory_or_the_limit_allow_are_refused)
{
    const struct rd_resp_opts little = RD_RESP_OPTS(.max_memory = 1500, .client = true);
    const struct rd_resp_opts few = RD_RESP_OPTS(.max_args = 2, .client = true);
    struct rd_buf buf = {0};
    rd_buf_printf(&buf, "*100\r\n");
    for (int i = 0; i < 100; i++)
        rd_buf_printf(&buf, "$1\r\na\r\n");
    expect(rd_buf_slice(&buf), &little, "limit@0");
    rd_buf_reset(&buf);
    for (int i = 0; i < 100; i++)
        rd_buf_printf(&buf, "a ");
    rd_buf_printf(&buf, "\n");
    expect(rd_buf_slice(&buf), &little, "limit@0");
    rd_buf_done(&buf);
    expect(S("a b\na b c\n"), &few, "0+4 [a] [b]\nlimit@8");
}

Test(resp, a_long_command_does_not_keep_its_memory_for_ever)
{
    enum { LONG = 3 << 20 };
    struct rd_buf buf = {0};
    rd_buf_printf(&buf, "*1\r\n$%d\r\n%0*d\r\n%s", LONG, LONG, 0, two_commands);
    struct rd_src *src;
    const struct rd_src_opts small = RD_SRC_OPTS(.window = 64);
    alloc_fault_begin(0);
    cr_assert(rd_src_open_trickle(&src, memory(rd_buf_slice(&buf)), 4096, &small, NULL));
    struct rd_resp_reader *r = reader_of(src, NULL);
    struct resp_command cmd;
    cr_assert_eq(rd_resp_reader_next(r, &cmd), RESP_COMMAND);
    cr_expect_eq(cmd.argv[0].len, LONG);
    cr_expect_geq(alloc_fault_state().live_bytes, LONG);
    while (rd_resp_reader_next(r, &cmd) == RESP_COMMAND)
        cr_expect_lt(cmd.argc, 4);
    cr_expect_lt(alloc_fault_state().live_bytes, 16 * 1024);
    rd_resp_reader_free(r);
    rd_src_close(src);
    cr_expect_eq(alloc_fault_end().live, 0);
    rd_buf_done(&buf);
}
