#include "aof/log.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/aof/log_text.h"
#include "tests/support/alloc_fault.h"
#include "tests/support/guard.h"

#define S(text) rd_slice(text, sizeof(text) - 1)

static const struct aof_log_opts modes[] = {
    {.size = sizeof(struct aof_log_opts)},
    {.size = sizeof(struct aof_log_opts), .names = true},
    {.size = sizeof(struct aof_log_opts), .names = true, .lines = true},
    {.size = sizeof(struct aof_log_opts), .lines = true},
    {.size = sizeof(struct aof_log_opts), .whole = true, .lines = true},
    {.size = sizeof(struct aof_log_opts), .whole = true, .names = true},
    {.size = sizeof(struct aof_log_opts), .ahead = true},
    {.size = sizeof(struct aof_log_opts), .ahead = true, .whole = true, .lines = true},
};
enum { N_MODES = sizeof modes / sizeof *modes };

static void expect(struct rd_slice bytes, const struct aof_log_opts *opts, const char *want)
{
    struct rd_buf got = log_text(log_memory(bytes), opts, bytes);
    char quoted[200];
    cr_expect_str_eq((const char *)got.ptr, want, "input %s",
                     rd_err_quote(quoted, sizeof quoted, bytes));
    rd_buf_done(&got);
}

/* Reads as memory and through a small window, in every mode; only the end is looked at. */
static void expect_end(struct rd_slice bytes, const char *want)
{
    for (size_t m = 0; m < N_MODES; m++)
        for (int small = 0; small < 2; small++) {
            struct rd_src *src = small ? log_trickle(bytes, 5, 128) : log_memory(bytes);
            struct rd_buf got = log_text(src, &modes[m], bytes);
            const char *last = strrchr((const char *)got.ptr, '\n');
            char quoted[200];
            cr_expect_str_eq(last != NULL ? last + 1 : (const char *)got.ptr, want, "input %s",
                             rd_err_quote(quoted, sizeof quoted, bytes));
            rd_buf_done(&got);
        }
}

static void put_arg(struct rd_buf *buf, char byte, size_t len)
{
    cr_assert(rd_buf_printf(buf, "$%zu\r\n", len));
    for (size_t i = 0; i < len; i++)
        cr_assert(rd_buf_add_byte(buf, (uint8_t)(i % 7 == 3 ? '\n' : byte)));
    cr_assert(rd_buf_add(buf, "\r\n", 2));
}

/* Commands of every length around those of numbers with one to five digits, of many arguments, long
 * names, annotations. */
static struct rd_buf mixed_log(size_t longest, size_t most_args)
{
    struct rd_buf buf = {0};
    cr_assert(rd_buf_printf(&buf, "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n#TS:1700000000\r\n#\n#x\r\n"));
    for (size_t len = 0; len <= longest; len += len < 130 ? 1 : len / 9) {
        cr_assert(rd_buf_printf(&buf, "*3\r\n$3\r\nSET\r\n"));
        put_arg(&buf, 'k', len % 40);
        put_arg(&buf, 'v', len);
    }
    for (size_t argc = 1; argc < most_args; argc = argc * 3 + 1) {
        cr_assert(rd_buf_printf(&buf, "*%zu\r\n", argc));
        put_arg(&buf, 'n', argc);
        for (size_t i = 1; i < argc; i++)
            put_arg(&buf, 'a', i % 13);
    }
    cr_assert(rd_buf_printf(&buf, "#"));
    for (size_t i = 0; i < longest / 10; i++)
        cr_assert(rd_buf_add_byte(&buf, 'c'));
    cr_assert(rd_buf_printf(&buf, "\r\n*1\r\n$4\r\nPING\r\n"));
    return buf;
}

Test(log, commands_and_annotations_are_read_with_their_place)
{
    expect(S(""), NULL, "end@0");
    expect(S("*1\r\n$4\r\nPING\r\n#TS:5\r\n*2\r\n$1\r\na\r\n$0\r\n\r\n"), NULL,
           "0+14 1 PING d458dd3c832c9f32\n14+7 #TS:5\n21+17 2 a 68d290b075ac16c1\nend@38");
    expect(S("#\n#\r\n#a\rb\r\r\n"), NULL, "0+2 #\n2+3 #\n5+7 #a\rb\r\nend@12");
}

Test(log, every_wrong_byte_is_named_by_its_offset)
{
    expect_end(S("PING\r\n"), "corrupt@0 after 0");
    expect_end(S("*x\r\n"), "corrupt@1 after 0");
    expect_end(S("*0\r\n"), "corrupt@1 after 0");
    expect_end(S("*-1\r\n"), "corrupt@1 after 0");
    expect_end(S("*01\r\n$1\r\na\r\n"), "corrupt@2 after 0");
    expect_end(S("*+1\r\n$1\r\na\r\n"), "corrupt@1 after 0");
    expect_end(S("*1x\r\n"), "corrupt@2 after 0");
    expect_end(S("*1\n$1\r\na\r\n"), "corrupt@2 after 0");
    expect_end(S("*1\rx"), "corrupt@3 after 0");
    expect_end(S("*99999999999999999999\r\n"), "corrupt@19 after 0");
    expect_end(S("*1\r\n+1\r\na\r\n"), "corrupt@4 after 0");
    expect_end(S("*1\r\n$-1\r\n"), "corrupt@5 after 0");
    expect_end(S("*1\r\n$\r\n"), "corrupt@5 after 0");
    expect_end(S("*1\r\n$1\r\nabc\r\n"), "corrupt@9 after 0");
    expect_end(S("*1\r\n$1\r\na\rX"), "corrupt@10 after 0");
    expect_end(S("*1\r\n$1\r\na\r\n\r\n"), "corrupt@11 after 11");
    expect_end(S("*1\r\n$1\r\na\r\n*"), "truncated@12 after 11");
    expect_end(S("*1\r\n$1\r\na\r\n#TS:5"), "truncated@16 after 11");
    expect_end(S("*1\r\n$1\r\na\r\n\0\0\0\0"), "corrupt@11 after 11");
    expect_end(S("*2147483648\r\n"), "limit@1 after 0");
    expect_end(S("*2147483647\r\n$1\r\na\r\n"), "truncated@20 after 0");
    expect_end(S("*1\r\n$536870913\r\n"), "limit@5 after 0");
    expect_end(S("*1\r\n$536870912\r\nabc"), "truncated@19 after 0");
}

Test(log, size_of_reads_window_and_mode_do_not_matter)
{
    static const size_t sizes[] = {1, 2, 3, 7, 4096, 1 << 20}, windows[] = {128, 1000, 0};
    struct rd_buf bytes = mixed_log(2000, 200);
    struct rd_slice all = rd_buf_slice(&bytes);
    struct rd_buf want = log_text(log_memory(all), NULL, all);
    cr_assert(strstr((const char *)want.ptr, "\nend@") != NULL);
    for (size_t m = 0; m < N_MODES; m++)
        for (size_t w = 0; w < 3; w++)
            for (size_t i = 0; i < 6; i++) {
                struct rd_buf got =
                    log_text(log_trickle(all, sizes[i], windows[w]), &modes[m], all);
                cr_assert_str_eq((const char *)got.ptr, (const char *)want.ptr,
                                 "mode %zu, pieces of %zu, window %zu", m, sizes[i], windows[w]);
                rd_buf_done(&got);
            }
    rd_buf_done(&want);
    rd_buf_done(&bytes);
}

Test(log, every_prefix_ends_between_two_entries_or_is_truncated_at_its_end)
{
    struct rd_buf bytes = mixed_log(24, 20);
    for (size_t len = 0; len < bytes.len; len++) {
        uint8_t *guarded = guard_new(bytes.ptr, len);
        struct rd_slice part = rd_slice(guarded, len);
        struct rd_buf plain = log_text(log_memory(part), NULL, part);
        const char *last = strrchr((const char *)plain.ptr, '\n');
        char cut[64], between[64];
        last = last != NULL ? last + 1 : (const char *)plain.ptr;
        snprintf(cut, sizeof cut, "truncated@%zu after ", len);
        snprintf(between, sizeof between, "end@%zu", len);
        cr_assert(strncmp(last, cut, strlen(cut)) == 0 || strcmp(last, between) == 0, "%s", last);
        for (size_t m = 1; m < N_MODES; m++) {
            struct rd_src *src = m % 2 ? log_memory(part) : log_trickle(part, 11, 128);
            struct rd_buf got = log_text(src, &modes[m], part);
            cr_assert_str_eq((const char *)got.ptr, (const char *)plain.ptr);
            rd_buf_done(&got);
        }
        rd_buf_done(&plain);
        guard_free(guarded);
    }
    rd_buf_done(&bytes);
}

Test(log, every_flipped_bit_is_judged_alike_in_every_mode)
{
    struct rd_buf bytes = mixed_log(12, 5);
    struct rd_slice all = rd_buf_slice(&bytes);
    for (size_t i = 0; i < bytes.len * 8; i++) {
        bytes.ptr[i / 8] = (uint8_t)(bytes.ptr[i / 8] ^ (1u << i % 8));
        struct rd_buf want = log_text(log_memory(all), NULL, all);
        for (size_t m = 0; m < N_MODES; m++) {
            struct rd_buf got =
                log_text(log_trickle(all, 100000, m % 2 ? 128 : 4096), &modes[m], all);
            cr_assert_str_eq((const char *)got.ptr, (const char *)want.ptr, "bit %zu, mode %zu", i,
                             m);
            rd_buf_done(&got);
        }
        rd_buf_done(&want);
        bytes.ptr[i / 8] = (uint8_t)(bytes.ptr[i / 8] ^ (1u << i % 8));
    }
    rd_buf_done(&bytes);
}

Test(log, a_pushed_stream_wants_more_and_is_consumed_entry_by_entry)
{
    static const char text[] = "*1\r\n$4\r\nPING\r\n#TS:5\r\n*2\r\n$1\r\na\r\n$0\r\n\r\n";
    static const uint64_t ends[] = {0, 14, 21, 38};
    struct rd_src *src;
    struct aof_log *log;
    struct aof_log_entry entry;
    size_t n = 0;
    const struct aof_log_opts opts = AOF_LOG_OPTS(.lines = true);
    cr_assert(rd_src_open_push(&src, NULL, NULL));
    cr_assert(aof_log_new(&log, src, &opts, NULL));
    for (size_t i = 0; i < sizeof text - 1; i++) {
        cr_assert_eq(aof_log_next(log, &entry), AOF_LOG_MORE);
        cr_assert_eq(rd_src_offset(src), ends[n]);
        cr_assert(rd_src_push(src, rd_slice(text + i, 1)));
        if (i + 1 == ends[n + 1]) {
            cr_assert_eq(aof_log_next(log, &entry), AOF_LOG_ENTRY);
            cr_assert_eq(entry.offset, ends[n++]);
            cr_assert_eq(entry.len, ends[n] - entry.offset);
        }
    }
    cr_assert_eq(aof_log_line(log), 10);
    cr_assert_eq(aof_log_next(log, &entry), AOF_LOG_MORE);
    rd_src_push_end(src);
    cr_assert_eq(aof_log_next(log, &entry), AOF_LOG_END);
    aof_log_free(log);
    rd_src_close(src);
}

Test(log, a_long_command_comes_in_pieces_with_its_name)
{
    struct rd_buf bytes = {0};
    struct aof_log_entry entry;
    struct aof_log *log;
    uint64_t pieces = 0;
    cr_assert(rd_buf_printf(&bytes, "*3\r\n$5\r\nLPUSH\r\n$1\r\nk\r\n"));
    put_arg(&bytes, 'v', 1000);
    struct rd_src *src = log_trickle(rd_buf_slice(&bytes), 4096, 128);
    cr_assert(aof_log_new(&log, src, NULL, NULL));
    cr_assert_eq(aof_log_next(log, &entry), AOF_LOG_ENTRY);
    cr_assert_eq(entry.kind, AOF_LOG_LONG);
    cr_assert_eq(entry.command.argc, 3);
    cr_assert(rd_slice_is(entry.command.argv[0], "LPUSH"));
    cr_assert_eq(aof_log_whole(log), 0);
    while (aof_log_next(log, &entry) == AOF_LOG_ENTRY && entry.kind == AOF_LOG_PIECE) {
        cr_assert_eq(entry.bytes.ptr[0] == '*', pieces == 0);
        pieces++;
    }
    cr_assert_geq(pieces, 8);
    cr_assert_eq(entry.kind, AOF_LOG_LONG_END);
    cr_assert_eq(entry.len, bytes.len);
    cr_assert_eq(aof_log_whole(log), bytes.len);
    cr_assert_eq(aof_log_next(log, &entry), AOF_LOG_END);
    aof_log_free(log);
    rd_src_close(src);
    rd_buf_done(&bytes);
}

Test(log, limits_are_kept)
{
    struct aof_log_opts opts = AOF_LOG_OPTS(.max_args = 2, .max_bulk = 3, .max_line = 5);
    expect(S("*3\r\n"), &opts, "limit@1 after 0");
    expect(S("*2\r\n$1\r\na\r\n$4\r\nabcd\r\n"), &opts, "limit@12 after 0");
    expect(S("#abc\n"), &opts, "0+5 #abc\nend@5");
    expect(S("#abcd\n"), &opts, "limit@0 after 0");
    struct rd_buf bytes = mixed_log(3000, 200);
    struct aof_log_opts small = AOF_LOG_OPTS(.whole = true, .max_memory = 500);
    struct rd_buf got = log_text(log_trickle(rd_buf_slice(&bytes), 4096, 128), &small, S(""));
    cr_assert(strstr((const char *)got.ptr, "\nlimit@") != NULL);
    rd_buf_done(&got);
    rd_buf_done(&bytes);
    struct rd_src *src = log_trickle(S(""), 1, 127);
    struct aof_log *log;
    struct rd_err err = {0};
    cr_assert_not(aof_log_new(&log, src, NULL, &err));
    cr_assert_eq(err.code, RD_ERR_USAGE);
    rd_src_close(src);
}

/* Of a command that is gathered, because it does not fit the window. */
Test(log, memory_of_a_long_command_is_given_back_with_the_next)
{
    enum { LONG = 3 << 20 };
    const struct aof_log_opts opts = AOF_LOG_OPTS(.whole = true);
    struct rd_buf bytes = {0};
    struct aof_log_entry entry;
    struct aof_log *log;
    cr_assert(rd_buf_printf(&bytes, "*2\r\n$4\r\nECHO\r\n"));
    put_arg(&bytes, 'v', LONG);
    cr_assert(rd_buf_printf(&bytes, "*1\r\n$4\r\nPING\r\n"));
    alloc_fault_begin(0);
    struct rd_src *src = log_trickle(rd_buf_slice(&bytes), 4096, 4096);
    cr_assert(aof_log_new(&log, src, &opts, NULL));
    cr_assert_eq(aof_log_next(log, &entry), AOF_LOG_ENTRY);
    size_t held = alloc_fault_state().live_bytes;
    cr_assert_eq(aof_log_next(log, &entry), AOF_LOG_ENTRY);
    size_t then = alloc_fault_state().live_bytes;
    aof_log_free(log);
    rd_src_close(src);
    cr_assert_eq(alloc_fault_end().live, 0);
    cr_expect_gt(held, LONG);
    cr_expect_lt(then, LONG / 10);
    rd_buf_done(&bytes);
}

Test(log, arguments_take_no_more_memory_than_a_command_may)
{
    enum { ARGS = 100 };
    struct rd_buf bytes = {0};
    cr_assert(rd_buf_printf(&bytes, "*1\r\n$1\r\na\r\n*%d\r\n", ARGS));
    for (int i = 0; i < ARGS; i++)
        cr_assert(rd_buf_printf(&bytes, "$1\r\na\r\n"));
    for (size_t more = 0; more < 2; more++) {
        const struct aof_log_opts opts =
            AOF_LOG_OPTS(.whole = true, .max_memory = ARGS * sizeof(struct rd_slice) - 1 + more);
        struct rd_src *src = log_memory(rd_buf_slice(&bytes));
        struct aof_log_entry entry;
        struct aof_log *log;
        cr_assert(aof_log_new(&log, src, &opts, NULL));
        cr_assert_eq(aof_log_next(log, &entry), AOF_LOG_ENTRY);
        cr_expect_eq(aof_log_next(log, &entry), more == 1 ? AOF_LOG_ENTRY : AOF_LOG_FAIL);
        cr_expect(more == 1 ||
                  (aof_log_err(log)->code == RD_ERR_LIMIT && aof_log_err(log)->offset == 11));
        aof_log_free(log);
        rd_src_close(src);
    }
    rd_buf_done(&bytes);
}

Test(log, reading_goes_on_after_damage_where_the_caller_says)
{
    struct rd_slice bytes = S("*1\r\n$1\r\na\r\ngarbage\n*1\r\n$1\r\nb\r\n");
    struct aof_log_opts opts = AOF_LOG_OPTS(.lines = true);
    struct rd_src *src = log_memory(bytes);
    struct aof_log_entry entry;
    struct aof_log *log;
    cr_assert(aof_log_new(&log, src, &opts, NULL));
    cr_assert_eq(aof_log_next(log, &entry), AOF_LOG_ENTRY);
    cr_assert_eq(aof_log_next(log, &entry), AOF_LOG_FAIL);
    cr_assert_eq(aof_log_next(log, &entry), AOF_LOG_FAIL, "a failure sticks");
    cr_assert_eq(aof_log_line(log), 4);
    cr_assert(rd_src_seek(src, 19, NULL));
    aof_log_restart(log, 5);
    cr_assert_eq(aof_log_whole(log), 19);
    cr_assert_eq(aof_log_next(log, &entry), AOF_LOG_ENTRY);
    cr_assert_eq(entry.offset, 19);
    cr_assert(rd_slice_is(entry.command.argv[0], "b"));
    cr_assert_eq(aof_log_entry_line(log), 5);
    cr_assert_eq(aof_log_line(log), 8);
    cr_assert_eq(aof_log_next(log, &entry), AOF_LOG_END);
    aof_log_free(log);
    rd_src_close(src);
}

Test(log, memory_may_be_short_at_any_time)
{
    struct rd_buf bytes = mixed_log(3000, 200);
    for (size_t n = 1;; n++) {
        struct rd_src *src = log_trickle(rd_buf_slice(&bytes), 4096, 128);
        struct aof_log_opts opts = AOF_LOG_OPTS(.whole = true);
        struct aof_log_entry entry;
        struct aof_log *log;
        struct rd_err err = {0};
        enum aof_log_status status = AOF_LOG_FAIL;
        alloc_fault_begin(n);
        if (aof_log_new(&log, src, &opts, &err)) {
            while ((status = aof_log_next(log, &entry)) == AOF_LOG_ENTRY)
                ;
            rd_err_adopt(&err, aof_log_err(log));
            aof_log_free(log);
        }
        struct alloc_fault_result result = alloc_fault_end();
        rd_src_close(src);
        cr_assert_eq(result.live, 0);
        cr_assert_eq(status, result.failed ? AOF_LOG_FAIL : AOF_LOG_END);
        cr_assert_eq(err.code, result.failed ? RD_ERR_MEMORY : RD_ERR_OK);
        if (!result.failed) {
            cr_assert_gt(n, 4);
            break;
        }
    }
    rd_buf_done(&bytes);
}

Test(log, memory_does_not_depend_on_what_a_command_declares)
{
    struct rd_slice bytes = S("*2147483647\r\n$536870912\r\nabc");
    struct rd_src *src = log_trickle(bytes, 4096, 128);
    struct aof_log_opts opts = AOF_LOG_OPTS(.whole = true);
    struct aof_log_entry entry;
    struct aof_log *log;
    alloc_fault_begin(0);
    cr_assert(aof_log_new(&log, src, &opts, NULL));
    cr_assert_eq(aof_log_next(log, &entry), AOF_LOG_FAIL);
    cr_assert_eq(aof_log_err(log)->code, RD_ERR_TRUNCATED);
    aof_log_free(log);
    cr_assert_lt(alloc_fault_end().peak_bytes, 8192);
    rd_src_close(src);
}

Test(log, a_time_annotation_tells_seconds)
{
    int64_t time = 0;
    cr_assert(aof_annotation_time(S("#TS:1700000000"), &time));
    cr_assert_eq(time, 1700000000);
    static const char *const others[] = {"#",      "#TS",    "#TS:",    "#TS:x",
                                         "#TS:-1", "#TS:1 ", "#HDR:v1;"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_assert_not(aof_annotation_time(rd_slice_str(others[i]), &time), "%s", others[i]);
    cr_assert_eq(time, 1700000000);
}

/* Each is shown once, in order, up to AOF_LOG_AHEAD places early; its bytes stay valid. */
Test(log, commands_are_shown_before_their_turn)
{
    enum { COMMANDS = 500 };
    const struct aof_log_opts opts = AOF_LOG_OPTS(.ahead = true);
    struct rd_buf bytes = {0};
    struct aof_log *log;
    struct aof_log_entry e;
    unsigned n = 0, n_shown = 0, last = 0;
    for (unsigned i = 1; i <= COMMANDS; i++) {
        cr_assert(rd_buf_printf(&bytes, "*3\r\n$3\r\nSET\r\n$3\r\n%03u\r\n$1\r\nv\r\n", i));
        if (i % 50 == 0)
            cr_assert(rd_buf_printf(&bytes, "#TS:%u\r\n", i));
    }
    struct rd_src *src = log_memory(rd_buf_slice(&bytes));
    cr_assert(aof_log_new(&log, src, &opts, NULL));
    while (aof_log_next(log, &e) == AOF_LOG_ENTRY) {
        if (e.kind != AOF_LOG_COMMAND)
            continue;
        n++;
        cr_assert_eq(strtoul((const char *)e.command.argv[1].ptr, NULL, 10), n);
        if (e.ahead.argc == 0)
            continue;
        cr_assert_eq(e.ahead.argc, 3);
        unsigned shown = (unsigned)strtoul((const char *)e.ahead.argv[1].ptr, NULL, 10);
        cr_assert(shown > n && shown <= n + AOF_LOG_AHEAD && shown > last, "%u at %u", shown, n);
        last = shown;
        n_shown++;
    }
    cr_expect_eq(n, COMMANDS);
    /* Each annotation ends the look-ahead. */
    cr_expect_geq(n_shown, COMMANDS / 50 * (50 - AOF_LOG_AHEAD) - AOF_LOG_AHEAD, "%u", n_shown);
    aof_log_free(log);
    rd_src_close(src);
    rd_buf_done(&bytes);
}
