/* The stream, acknowledgements and time; and memory that is short.
 */
#include "repl/psync.h"

#include "tests/repl/replica.h"
#include "tests/support/alloc_fault.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define ID     "0123456789abcdef0123456789abcdef01234567"
#define HELLO  "+PONG\r\n+OK\r\n"
#define FULL   HELLO "+FULLRESYNC " ID " 1000\r\n$0\r\n"
#define PING   "*1\r\n$4\r\nPING\r\n"
#define GETACK "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n"

static void begin(struct replica *r, const struct repl_psync_opts *opts, const char *first)
{
    cr_assert(replica_init(r, opts));
    replica_feed_text(r, first);
    replica_text(r);
    replica_sent(r);
}

static void plain(struct replica *r, const char *first)
{
    begin(r, &REPL_PSYNC_OPTS(), first);
}

static void expect_text(struct replica *r, const char *want)
{
    const char *got = replica_text(r);
    cr_expect_str_eq(got, want, "%s", got);
}

static void expect_sent(struct replica *r, const char *want)
{
    replica_drain(r);
    const char *got = replica_sent(r);
    cr_expect_str_eq(got, want, "%s", got);
}

/* ---- commands ---- */

Test(psync_stream, empty_lines_count_but_are_not_commands)
{
    struct replica r;
    plain(&r, FULL);
    replica_feed(&r, rd_slice_str("\n\r\n" PING "\n"), 1);
    expect_text(&r, "keepalive the stream 1\nkeepalive the stream 2\n"
                    "command ping 1003+14 db0 \"PING\"*1\nkeepalive the stream 1\n");
    cr_expect(rd_slice_is(rd_buf_slice(&r.stream), "\n\r\n" PING "\n"));
    replica_done(&r);
}

static void expect_wrong(const char *bytes, enum rd_err_code code, uint64_t at)
{
    for (size_t piece = 1; piece <= strlen(bytes); piece++) {
        struct replica r;
        plain(&r, FULL);
        replica_feed(&r, rd_slice_str(bytes), piece);
        cr_expect(r.ended && r.last.error_class == REPL_PROTOCOL, "%s", bytes);
        cr_expect_eq(r.err.code, code, "%s: %s", bytes, r.err.text);
        cr_expect_eq(r.err.offset, strlen(FULL) + at, "%s: %ju", bytes, (uintmax_t)r.err.offset);
        replica_done(&r);
    }
}

Test(psync_stream, what_no_master_sends_is_refused_at_its_byte)
{
    expect_wrong("*1\r\n$x\r\n", RD_ERR_CORRUPT, 5);
    expect_wrong(PING "*1\r\n+a\r\n", RD_ERR_CORRUPT, 18);
    expect_wrong("*2\r\n$6\r\nSELECT\r\n$1\r\nx\r\n", RD_ERR_CORRUPT, 0);
    expect_wrong("*0\r\n" PING, RD_ERR_CORRUPT, 0);
    expect_wrong(PING "  \r\n" PING, RD_ERR_CORRUPT, 14);
    expect_wrong("*2147483648\r\n", RD_ERR_LIMIT, 1);
    expect_wrong("a 'b\r\n", RD_ERR_CORRUPT, 2);
}

/* Servers since 7.0 take commands with up to INT32_MAX arguments. */
Test(psync_stream, a_command_may_have_more_than_a_million_arguments)
{
    enum { N = 1100000 };
    struct replica r;
    struct rd_buf bytes = {0};
    plain(&r, FULL);
    rd_buf_printf(&bytes, "*%d\r\n", N);
    for (int i = 0; i < N; i++)
        rd_buf_add(&bytes, "$0\r\n\r\n", 6);
    replica_feed(&r, rd_buf_slice(&bytes), 1 << 20);
    cr_expect_eq(r.n_commands, 1, "%s", r.err.text);
    rd_buf_done(&bytes);
    replica_done(&r);
}

Test(psync_stream, a_carriage_return_may_begin_a_line_with_words)
{
    struct replica r;
    plain(&r, FULL);
    replica_feed(&r, rd_slice_str("\rPING\n"), 1);
    expect_text(&r, "command ping 1000+6 db0 \"PING\"*1\n");
    replica_done(&r);
}

/* A command of n bytes in its one argument but its name. */
static struct rd_buf long_command(size_t n)
{
    struct rd_buf buf = {0};
    rd_buf_printf(&buf, "*2\r\n$3\r\nSET\r\n$%zu\r\n", n);
    rd_buf_reserve(&buf, n + 2);
    memset(buf.ptr + buf.len, 'x', n);
    buf.len += n;
    rd_buf_add(&buf, "\r\n", 2);
    return buf;
}

Test(psync_stream, a_command_longer_than_the_window_is_whole_too)
{
    struct replica r;
    struct rd_buf bytes = long_command(100000);
    begin(&r, &REPL_PSYNC_OPTS(.window = REPL_PSYNC_WINDOW_MIN), FULL);
    replica_feed(&r, rd_buf_slice(&bytes), 1000);
    replica_feed_text(&r, "\n" PING);
    cr_expect_eq(r.n_commands, 2);
    cr_expect(memcmp(r.stream.ptr, bytes.ptr, bytes.len) == 0);
    cr_expect_not_null(strstr(replica_text(&r), "ping 101025+14"));
    rd_buf_done(&bytes);
    replica_done(&r);
}

Test(psync_stream, a_command_beyond_the_limit_is_refused)
{
    struct replica r;
    struct rd_buf bytes = long_command(100000);
    const struct repl_psync_opts opts =
        REPL_PSYNC_OPTS(.window = REPL_PSYNC_WINDOW_MIN, .max_command = 50000);
    begin(&r, &opts, FULL);
    replica_feed(&r, rd_buf_slice(&bytes), 1 << 20);
    cr_expect(r.ended && r.err.code == RD_ERR_LIMIT && r.last.error_class == REPL_PROTOCOL);
    rd_buf_done(&bytes);
    replica_done(&r);
}

Test(psync_stream, a_feed_takes_what_fits)
{
    struct replica r;
    struct repl_event ev;
    struct rd_buf bytes = long_command(100000);
    begin(&r, &REPL_PSYNC_OPTS(.window = 1), FULL);
    cr_expect_eq(repl_psync_feed(r.p, rd_buf_slice(&bytes)), REPL_PSYNC_WINDOW_MIN);
    cr_expect_eq(repl_psync_feed(r.p, rd_buf_slice(&bytes)), 0);
    cr_expect_eq(repl_psync_next(r.p, &ev), REPL_MORE);
    cr_expect_eq(repl_psync_feed(r.p, rd_slice(bytes.ptr + REPL_PSYNC_WINDOW_MIN, 7)), 7);
    rd_buf_done(&bytes);
    replica_done(&r);
}

Test(psync_stream, a_cut_is_reported_where_the_bytes_end)
{
    static const struct {
        const char *bytes;
        enum repl_step step;
    } cases[] = {
        {"", REPL_STEP_PING},
        {"+PO", REPL_STEP_PING},
        {HELLO, REPL_STEP_PSYNC},
        {HELLO "+FULLRESYNC " ID " 1000\r\n", REPL_STEP_HEADER},
        {HELLO "+FULLRESYNC " ID " 1000\r\n$10\r\nabc", REPL_STEP_PAYLOAD},
        {FULL, REPL_STEP_STREAM},
        {FULL PING, REPL_STEP_STREAM},
        {FULL "*1\r\n", REPL_STEP_STREAM},
        {FULL "\r", REPL_STEP_STREAM},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct replica r;
        plain(&r, cases[i].bytes);
        cr_assert_not(r.ended);
        replica_cut(&r);
        cr_expect(r.ended && r.last.error_class == REPL_CLOSED, "%s", cases[i].bytes);
        cr_expect_eq(r.last.step, cases[i].step, "%s", cases[i].bytes);
        cr_expect_eq(repl_psync_step(r.p), cases[i].step);
        cr_expect_eq(repl_psync_feed(r.p, rd_slice_str("abc")), 3);
        replica_done(&r);
    }
}

Test(psync_stream, what_came_before_a_cut_is_given_out_first)
{
    struct repl_event ev;
    struct replica r;
    plain(&r, FULL);
    repl_psync_feed(r.p, rd_slice_str(PING));
    repl_psync_cut(r.p);
    cr_expect_eq(repl_psync_next(r.p, &ev), REPL_COMMAND);
    cr_expect_eq(repl_psync_next(r.p, &ev), REPL_ERROR);
    replica_done(&r);
}

/* ---- acknowledgements ---- */

Test(psync_stream, the_offset_is_sent_at_once_every_second_and_on_request)
{
    struct replica r;
    cr_assert(replica_init(&r, &REPL_PSYNC_OPTS()));
    cr_expect_eq(repl_psync_tick(r.p, 500), 1000);
    replica_feed_text(&r, FULL);
    replica_sent(&r);
    replica_feed_text(&r, "\n");
    cr_expect_eq(repl_psync_tick(r.p, 900), 600);
    expect_sent(&r, "");
    cr_expect_eq(repl_psync_tick(r.p, 1500), 1000);
    expect_sent(&r, "REPLCONF ACK 1001|");
    replica_feed_text(&r, GETACK);
    expect_sent(&r, "REPLCONF ACK 1038|");
    repl_psync_ack(r.p, 1010, RD_NO_OFFSET);
    repl_psync_tick(r.p, 2500);
    expect_sent(&r, "REPLCONF ACK 1010|");
    repl_psync_ack(r.p, 1020, 1005);
    replica_feed_text(&r, GETACK);
    expect_sent(&r, "REPLCONF ACK 1020 FACK 1005|");
    repl_psync_ack_now(r.p);
    expect_sent(&r, "REPLCONF ACK 1020 FACK 1005|");
    replica_done(&r);
}

Test(psync_stream, the_first_acknowledgement_follows_the_snapshot_at_once)
{
    struct replica r;
    cr_assert(replica_init(&r, &REPL_PSYNC_OPTS()));
    replica_feed_text(&r, HELLO "+FULLRESYNC " ID " 5\r\n$1\r\n");
    replica_sent(&r);
    repl_psync_ack_now(r.p);
    expect_sent(&r, "");
    replica_feed_text(&r, "x");
    expect_sent(&r, "REPLCONF ACK 5|");
    replica_done(&r);
}

Test(psync_stream, a_transaction_is_acknowledged_with_its_exec)
{
    struct replica r;
    plain(&r, FULL);
    repl_psync_tick(r.p, 0);
    replica_feed_text(&r, PING "*1\r\n$5\r\nMULTI\r\n" PING);
    repl_psync_tick(r.p, 1000);
    expect_sent(&r, "REPLCONF ACK 1014|");
    replica_feed_text(&r, "*1\r\n$4\r\nEXEC\r\n");
    repl_psync_tick(r.p, 2000);
    expect_sent(&r, "REPLCONF ACK 1057|");
    replica_done(&r);
}

Test(psync_stream, a_caller_who_loads_ticks_and_the_master_hears_that_he_lives)
{
    struct repl_psync *p;
    struct repl_event ev;
    cr_assert(repl_psync_new(&p, &REPL_PSYNC_OPTS(), NULL));
    repl_psync_feed(p, rd_slice_str(FULL));
    while (repl_psync_next(p, &ev) != REPL_PAYLOAD_END)
        cr_assert_neq(ev.kind, REPL_MORE);
    repl_psync_sent(p, repl_psync_output(p).len);
    repl_psync_tick(p, 0);
    cr_expect_eq(repl_psync_output(p).len, 0);
    for (uint64_t now = 1000; now <= 300000; now += 1000) {
        repl_psync_tick(p, now);
        cr_assert(rd_slice_is(repl_psync_output(p), "\n"));
        repl_psync_sent(p, 1);
    }
    cr_expect_eq(repl_psync_next(p, &ev), REPL_MORE);
    cr_expect_gt(repl_psync_output(p).len, 10);
    repl_psync_free(p);
}

Test(psync_stream, what_is_not_sent_does_not_pile_up)
{
    struct repl_psync *p;
    struct repl_event ev;
    cr_assert(repl_psync_new(&p, &REPL_PSYNC_OPTS(.timeout_ms = UINT64_MAX / 2), NULL));
    repl_psync_feed(p, rd_slice_str(FULL));
    while (repl_psync_next(p, &ev) != REPL_MORE)
        ;
    for (uint64_t now = 0; now < 1000000; now += 1000)
        repl_psync_tick(p, now);
    cr_expect_lt(repl_psync_output(p).len, 5000);
    struct rd_slice out = repl_psync_output(p);
    repl_psync_sent(p, 10);
    cr_expect_eq(repl_psync_output(p).ptr, out.ptr + 10);
    cr_expect_eq(repl_psync_output(p).len, out.len - 10);
    repl_psync_free(p);
}

/* ---- time ---- */

Test(psync_stream, a_master_that_is_silent_for_too_long_is_reported)
{
    struct replica r;
    struct repl_resume place;
    begin(&r, &REPL_PSYNC_OPTS(.timeout_ms = 3000, .ack_ms = 5000), FULL);
    cr_expect_eq(repl_psync_tick(r.p, 10), 3000);
    replica_feed_text(&r, PING);
    cr_expect_eq(repl_psync_tick(r.p, 2000), 3000);
    cr_expect_eq(repl_psync_tick(r.p, 4999), 1);
    replica_drain(&r);
    cr_expect_not(r.ended);
    cr_expect_eq(repl_psync_tick(r.p, 5000), 0);
    replica_drain(&r);
    cr_expect(r.ended && r.last.error_class == REPL_TIMEOUT);
    cr_expect(repl_psync_place(r.p, &place) && place.offset == 1014);
    cr_expect_eq(repl_psync_tick(r.p, 9000), 5000);
    replica_done(&r);
}

Test(psync_stream, a_master_is_not_silent_while_the_caller_keeps_its_bytes)
{
    struct replica r;
    begin(&r, &REPL_PSYNC_OPTS(.timeout_ms = 3000, .ack_ms = 5000), FULL);
    cr_expect_eq(repl_psync_tick(r.p, 10), 3000);
    repl_psync_heard(r.p);
    cr_expect_eq(repl_psync_tick(r.p, 3010), 2000);
    replica_drain(&r);
    cr_expect_not(r.ended);
    cr_expect_eq(repl_psync_tick(r.p, 6010), 0);
    replica_drain(&r);
    cr_expect(r.ended && r.last.error_class == REPL_TIMEOUT);
    replica_done(&r);
}

Test(psync_stream, the_bytes_after_a_command)
{
    struct replica r;
    begin(&r, &REPL_PSYNC_OPTS(.ack_ms = 1000), FULL);
    struct repl_event ev;
    cr_expect_eq(repl_psync_rest(r.p).len, 0);
    cr_assert_eq(repl_psync_feed(r.p, rd_slice_str(PING PING)), 2 * strlen(PING));
    cr_assert_eq(repl_psync_next(r.p, &ev), REPL_COMMAND);
    cr_expect(rd_slice_eq(repl_psync_rest(r.p), rd_slice_str(PING)));
    cr_assert_eq(repl_psync_next(r.p, &ev), REPL_COMMAND);
    cr_expect_eq(repl_psync_rest(r.p).len, 0);
    replica_done(&r);
}

Test(psync_stream, a_clock_that_goes_back_does_no_harm)
{
    struct replica r;
    plain(&r, FULL);
    repl_psync_tick(r.p, 1000000);
    cr_expect_eq(repl_psync_tick(r.p, 10), 1000);
    cr_expect_eq(repl_psync_tick(r.p, 1010), 1000);
    expect_sent(&r, "REPLCONF ACK 1000|");
    cr_expect_not(r.ended);
    replica_done(&r);
}

/* ---- memory ---- */

static const char TALK[] = "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n"
                           "+FULLRESYNC " ID " 1000\r\n$EOF:" ID "\r\nabc" ID
                           "*1\r\n$5\r\nMULTI\r\n" GETACK "select '2'\r\n";

/* Everything once; false where it ended before its end, then in an error that says so. */
static bool whole_talk(const struct rd_buf *long_one)
{
    const struct repl_psync_opts opts =
        REPL_PSYNC_OPTS(.user = "u", .password = "p", .port = 1, .ip = "::1", .version = "7",
                        .rdb_filter = "functions", .window = REPL_PSYNC_WINDOW_MIN);
    struct repl_psync *p;
    struct repl_event ev;
    struct rd_err err = {0};
    enum repl_event_kind kind = REPL_MORE;
    struct rd_slice parts[] = {rd_slice_str(TALK), rd_buf_slice(long_one)};
    if (!repl_psync_new(&p, &opts, &err)) {
        cr_assert_eq(err.code, RD_ERR_MEMORY);
        return false;
    }
    for (size_t i = 0; i < 2; i++)
        for (size_t at = 0; at < parts[i].len && kind != REPL_ERROR;) {
            at += repl_psync_feed(p, rd_slice(parts[i].ptr + at, parts[i].len - at));
            while ((kind = repl_psync_next(p, &ev)) != REPL_MORE && kind != REPL_ERROR)
                repl_psync_sent(p, repl_psync_output(p).len);
            repl_psync_tick(p, at * 1000);
        }
    if (kind == REPL_ERROR) {
        cr_assert_eq(ev.error_class, REPL_NOMEM, "%s", ev.err->text);
        cr_assert_eq(ev.err->code, RD_ERR_MEMORY);
    }
    repl_psync_free(p);
    return kind != REPL_ERROR;
}

Test(psync_stream, every_failing_allocation_is_survived)
{
    struct rd_buf long_one = long_command(100000);
    size_t n = 1;
    for (;; n++) {
        alloc_fault_begin(n);
        bool ok = whole_talk(&long_one);
        struct alloc_fault_result result = alloc_fault_end();
        cr_assert_eq(result.live, 0, "allocation %zu", n);
        cr_assert_eq(ok, !result.failed, "allocation %zu", n);
        if (!result.failed)
            break;
    }
    cr_expect_gt(n, 12);
    rd_buf_done(&long_one);
}

Test(psync_stream, a_declared_length_does_not_allocate)
{
    alloc_fault_begin(0);
    struct repl_psync *p;
    struct repl_event ev;
    cr_assert(repl_psync_new(&p, &REPL_PSYNC_OPTS(), NULL));
    repl_psync_feed(p, rd_slice_str(HELLO "+FULLRESYNC " ID " 1\r\n$0\r\n"
                                          "*1000\r\n$500000000\r\nabc"));
    while (repl_psync_next(p, &ev) != REPL_MORE)
        cr_assert_neq(ev.kind, REPL_ERROR);
    repl_psync_free(p);
    struct alloc_fault_result result = alloc_fault_end();
    cr_expect_lt(result.peak_bytes, 32 * 1024);
    cr_expect_eq(result.live, 0);
}

Test(psync_stream, nothing_is_freed_as_well)
{
    repl_psync_free(NULL);
}
