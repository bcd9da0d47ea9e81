/* Interruptions: times in which a capture did not receive the stream as the master wrote it. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "repl/capture/format.h"
#include "tests/repl/capture_world.h"

enum { AT = 1000000 };

static const char ping[] = "*1\r\n$4\r\nPING\r\n";

struct link {
    struct world world;
    struct repl_capture_writer *w;
};

static void begin(struct link *l)
{
    *l = (struct link){.world.opts.recorded = true};
    world_init(&l->world);
    l->world.now_us = AT;
    l->w = world_writer(&l->world);
    cr_assert_not_null(l->w);
    cr_assert(world_begin(&l->world, l->w, 0));
}

static void feed_ping(struct link *l, int64_t us)
{
    cr_assert(repl_capture_writer_append(l->w, rd_slice_str(ping), us, &l->world.err));
}

static void interrupt(struct link *l, int64_t since_us, int64_t us)
{
    cr_assert(repl_capture_writer_interrupted(l->w, since_us, us, &l->world.err));
}

static void in_time(struct link *l, int64_t us)
{
    cr_assert(repl_capture_writer_in_time(l->w, us, &l->world.err));
}

/* Another process continues. */
static void reopen(struct link *l, bool killed)
{
    if (killed) {
        cr_assert(repl_capture_writer_flush(l->w, NULL));
        repl_capture_writer_abort(l->w);
    } else {
        cr_assert(repl_capture_writer_close(l->w, NULL));
    }
    l->w = world_writer(&l->world);
    cr_assert_not_null(l->w, "%s", l->world.err.text);
}

/* "since-until" of each segment, and "." for one without an interruption. */
static void expect(struct link *l, const char *want, const char *what)
{
    struct repl_capture_list list;
    struct repl_capture_verify_result res;
    struct rd_fs fs = sim_fs_calls(l->world.sim);
    char got[400] = "";
    cr_assert(repl_capture_writer_roll(l->w, &l->world.err), "%s", l->world.err.text);
    cr_assert(repl_capture_list(&list, &fs, NULL));
    for (size_t i = 0; i < list.n; i++) {
        const struct repl_capture_segment *s = &list.segments[i];
        size_t len = strlen(got);
        cr_expect(s->recorded && s->closed);
        if (!s->interrupted)
            snprintf(got + len, sizeof got - len, ". ");
        else if (s->until_us == REPL_CAPTURE_NEVER)
            snprintf(got + len, sizeof got - len, "%d-never ", (int)(s->since_us - AT));
        else
            snprintf(got + len, sizeof got - len, "%d-%d ", (int)(s->since_us - AT),
                     (int)(s->until_us - AT));
    }
    cr_expect_str_eq(got, want, "%s: %s", what, got);
    repl_capture_list_done(&list);
    cr_assert(repl_capture_verify(&fs, NULL, &res, NULL));
    cr_expect_eq(res.findings, 0, "%s", what);
    cr_assert(repl_capture_writer_close(l->w, NULL));
    world_done(&l->world);
}

Test(capture_interrupt, the_stream_after_a_snapshot_is_late_until_all_has_arrived)
{
    struct link l;
    begin(&l);
    feed_ping(&l, AT + 5);
    in_time(&l, AT + 7);
    feed_ping(&l, AT + 9);
    expect(&l, "0-7 ", "in time");
    begin(&l);
    feed_ping(&l, AT + 5);
    expect(&l, "0-never ", "never");
    begin(&l);
    in_time(&l, AT + 7);
    interrupt(&l, AT + 8, AT + 20);
    feed_ping(&l, AT + 21);
    in_time(&l, AT + 22);
    expect(&l, "0-22 ", "without anything in between");
}

Test(capture_interrupt, another_one_begins_a_segment_if_something_arrives_late)
{
    struct link l;
    begin(&l);
    in_time(&l, AT + 1);
    feed_ping(&l, AT + 2);
    interrupt(&l, AT + 10, AT + 50);
    in_time(&l, AT + 51);
    feed_ping(&l, AT + 52);
    expect(&l, "0-1 ", "nothing arrived late");
    begin(&l);
    in_time(&l, AT + 1);
    feed_ping(&l, AT + 2);
    interrupt(&l, AT + 10, AT + 50);
    feed_ping(&l, AT + 51);
    interrupt(&l, AT + 60, AT + 70); /* again, before all had arrived */
    feed_ping(&l, AT + 71);
    in_time(&l, AT + 72);
    feed_ping(&l, AT + 80);
    cr_assert(repl_capture_writer_roll(l.w, NULL));
    feed_ping(&l, AT + 90);
    interrupt(&l, AT + 100, AT + 110);
    feed_ping(&l, AT + 111);
    in_time(&l, AT + 112);
    expect(&l, "0-1 10-72 . 100-112 ", "two");
}

Test(capture_interrupt, a_segment_that_ends_before_all_has_arrived_passes_it_on)
{
    struct link l;
    begin(&l);
    in_time(&l, AT + 1);
    feed_ping(&l, AT + 2);
    interrupt(&l, AT + 10, AT + 50);
    feed_ping(&l, AT + 51);
    cr_assert(repl_capture_writer_roll(l.w, NULL));
    feed_ping(&l, AT + 60);
    in_time(&l, AT + 61);
    expect(&l, "0-1 10-never 10-61 ", "passed on");
}

Test(capture_interrupt, a_run_that_is_continued_knows_nothing_after_the_last_command)
{
    for (int killed = 0; killed < 2; killed++) {
        struct link l;
        begin(&l);
        in_time(&l, AT + 1);
        feed_ping(&l, AT + 2);
        reopen(&l, killed);
        interrupt(&l, REPL_CAPTURE_NO_TIME, AT + 100);
        feed_ping(&l, AT + 101);
        in_time(&l, AT + 102);
        feed_ping(&l, AT + 103);
        reopen(&l, killed);
        in_time(&l, AT + 200);
        feed_ping(&l, AT + 201);
        /* The end of the interruption of an open segment is that of the first block after it. */
        expect(&l, "0-2 2-103 ", killed ? "killed" : "closed");
    }
}

Test(capture_interrupt, what_was_late_at_a_kill_stays_late)
{
    struct link l;
    begin(&l);
    in_time(&l, AT + 1);
    feed_ping(&l, AT + 2);
    interrupt(&l, AT + 10, AT + 50);
    feed_ping(&l, AT + 51);
    reopen(&l, true);
    feed_ping(&l, AT + 101);
    in_time(&l, AT + 102);
    expect(&l, "0-1 10-102 ", "killed");
}

Test(capture_interrupt, a_clock_that_is_set_makes_times_of_two_moments_or_none)
{
    struct link l;
    begin(&l);
    in_time(&l, AT + 1);
    feed_ping(&l, AT + 90);
    cr_assert(repl_capture_writer_clock(l.w, AT + 100, AT + 50, NULL));
    feed_ping(&l, AT + 60);
    cr_assert(repl_capture_writer_clock(l.w, AT + 70, AT + 500, NULL));
    feed_ping(&l, AT + 501);
    expect(&l, "0-1 50-100 70-500 ", "set");
    begin(&l);
    in_time(&l, AT + 1);
    feed_ping(&l, AT + 2);
    interrupt(&l, AT + 90, AT + 100);
    cr_assert(repl_capture_writer_clock(l.w, AT + 100, AT + 50, NULL));
    in_time(&l, AT + 51);
    feed_ping(&l, AT + 52);
    expect(&l, "0-1 50-100 ", "set while the connection was lost");
}

/* A long command is in several blocks, between which no segment can begin. */
Test(capture_interrupt, a_command_that_was_under_way_stays_whole)
{
    struct link l;
    char text[1100];
    begin(&l);
    in_time(&l, AT + 1);
    feed_ping(&l, AT + 2);
    cr_assert(repl_capture_writer_close(l.w, NULL));
    l.world.opts.block_size = 64;
    l.w = world_writer(&l.world);
    in_time(&l, AT + 3);
    feed_ping(&l, AT + 4);
    memset(text, 'x', sizeof text);
    size_t len = (size_t)snprintf(text, sizeof text, "*2\r\n$4\r\nECHO\r\n$900\r\n");
    text[len] = 'x';
    memcpy(text + len + 900, "\r\n", 2);
    cr_assert(repl_capture_writer_append(l.w, rd_slice(text, 500), AT + 5, NULL));
    interrupt(&l, AT + 6, AT + 30);
    cr_assert(repl_capture_writer_append(l.w, rd_slice(text + 500, len + 402), AT + 31, NULL));
    feed_ping(&l, AT + 32);
    in_time(&l, AT + 33);
    expect(&l, "0-2 6-33 ", "long");
}

Test(capture_interrupt, without_them_the_format_is_that_of_before)
{
    struct world world = {0};
    struct repl_capture_list list;
    world_init(&world);
    struct repl_capture_writer *w = world_writer(&world);
    cr_assert(world_begin(&world, w, 0));
    cr_assert(repl_capture_writer_interrupted(w, 1, 2, NULL));
    cr_assert(repl_capture_writer_append(w, rd_slice_str(ping), 3, NULL));
    cr_assert(repl_capture_writer_in_time(w, 4, NULL));
    cr_assert(repl_capture_writer_clock(w, 5, 4, NULL));
    cr_assert(repl_capture_writer_append(w, rd_slice_str(ping), 6, NULL));
    cr_assert(repl_capture_writer_close(w, NULL));
    struct rd_fs fs = sim_fs_calls(world.sim);
    cr_assert(repl_capture_list(&list, &fs, NULL));
    cr_expect_eq(list.n, 1);
    cr_expect(!list.segments[0].recorded && !list.segments[0].interrupted);
    repl_capture_list_done(&list);
    world_done(&world);
}

/* A block of a segment that says otherwise, and the header of a later version. */
Test(capture_interrupt, only_the_version_that_records_them_has_them)
{
    struct repl_capture_segment seg = {.number = 1,
                                       .replid = world_id('a'),
                                       .interrupted = true,
                                       .since_us = 77},
                                got;
    uint8_t header[CAPTURE_HEADER];
    uint64_t seed;
    struct rd_err err = {0};
    repl_capture_header_put(header, &seg, &seed);
    cr_expect_not(repl_capture_header_get(header, &got, &seed, &err));
    cr_expect_eq(err.code, RD_ERR_CORRUPT);
    rd_err_reset(&err);
    seg.recorded = true;
    repl_capture_header_put(header, &seg, &seed);
    cr_assert(repl_capture_header_get(header, &got, &seed, &err));
    cr_expect(got.recorded && got.interrupted);
    cr_expect_eq(got.since_us, 77);
    cr_expect_eq(got.until_us, REPL_CAPTURE_NEVER);
}
