/* Reading from anywhere, in pieces, and after a writer. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "repl/capture/format.h"
#include "tests/repl/capture_world.h"
#include "tests/support/alloc_fault.h"

static struct repl_capture_reader *reader(struct world *world,
                                          const struct repl_capture_reader_opts *opts)
{
    struct repl_capture_reader *r;
    struct rd_fs fs = sim_fs_calls(world->sim);
    cr_assert(repl_capture_reader_open(&r, &fs, opts, NULL));
    return r;
}

/* The next event other than a chapter. */
static enum repl_capture_status next(struct repl_capture_reader *r, struct repl_capture_event *ev)
{
    enum repl_capture_status st;
    do
        st = repl_capture_reader_next(r, ev);
    while (st == REPL_CAPTURE_EVENT && ev->kind == REPL_CAPTURE_CHAPTER);
    return st;
}

static void make(struct world *world, uint64_t segment_size, size_t block_size, size_t long_len)
{
    *world = (struct world){.opts = {.segment_size = segment_size, .block_size = block_size},
                            .n1 = 60,
                            .n2 = 20,
                            .long_len = long_len};
    world_init(world);
    cr_assert(world_play(world), "%s", world->err.text);
}

static const struct repl_capture_segment *segment_of(const struct repl_capture_list *list,
                                                     uint64_t chapter, uint64_t offset)
{
    for (size_t i = list->n; i-- > 0;)
        if (list->segments[i].chapter == chapter && list->segments[i].start <= offset)
            return &list->segments[i];
    return NULL;
}

Test(capture_reader, the_command_that_holds_an_offset_is_found_at_every_offset)
{
    for (unsigned kind = 0; kind < 4; kind++) {
        struct world world;
        struct repl_capture_event ev;
        make(&world, kind < 2 ? 900 : 0, kind % 2 ? 100 : 0, 300);
        struct repl_capture_reader_opts opts = {.max_whole = kind == 3 ? 0 : 1000};
        struct repl_capture_reader *r = reader(&world, &opts);
        struct rd_fs fs = sim_fs_calls(world.sim);
        struct repl_capture_list list;
        cr_assert(repl_capture_list(&list, &fs, NULL));
        for (unsigned h = 0; h < 2; h++) {
            uint64_t base = h == 0 ? WORLD_BASE1 : WORLD_BASE2;
            for (size_t i = 0; i < world.n_commands[h]; i++)
                for (size_t in = 0; in < world.commands[h][i].len; in += 5) {
                    uint64_t chapter = h == 1                                      ? 3
                                       : world.commands[h][i].at < world.rename_at ? 1
                                                                                   : 2;
                    uint64_t begin = base + world.commands[h][i].at;
                    cr_assert(in % 2 == 0 ? repl_capture_reader_seek(r, chapter, begin + in, NULL)
                                          : repl_capture_reader_seek_in(
                                                r, segment_of(&list, chapter, begin + in),
                                                begin + in, NULL));
                    cr_assert_eq(repl_capture_reader_next(r, &ev), REPL_CAPTURE_EVENT);
                    cr_assert_eq(ev.kind, REPL_CAPTURE_CHAPTER);
                    cr_assert_eq(next(r, &ev), REPL_CAPTURE_EVENT);
                    cr_assert_eq(ev.offset, begin, "%u: %u+%zu: %u", h, (unsigned)begin, in,
                                 (unsigned)ev.offset);
                    cr_assert_eq(ev.place.db, world.commands[h][i].db);
                    cr_assert_eq(ev.place.in_multi, world.commands[h][i].in_multi);
                }
        }
        uint64_t end = WORLD_BASE2 + world.history[1].len;
        cr_assert(repl_capture_reader_seek(r, 3, end, NULL));
        cr_assert_eq(next(r, &ev), REPL_CAPTURE_END);
        struct rd_err err = {0};
        repl_capture_list_done(&list);
        cr_assert_not(repl_capture_reader_seek(r, 1, 5, &err));
        cr_assert_eq(err.code, RD_ERR_USAGE);
        cr_assert(repl_capture_reader_seek(r, 0, WORLD_BASE1, NULL));
        repl_capture_reader_close(r);
        world_done(&world);
    }
}

Test(capture_reader, the_first_command_at_or_after_a_time_is_found_at_every_time)
{
    for (unsigned kind = 0; kind < 4; kind++) {
        struct world world;
        struct repl_capture_event ev;
        int64_t times[300], latest = 0;
        uint64_t offsets[300];
        size_t n = 0;
        make(&world, kind < 2 ? 900 : 0, kind % 2 ? 100 : 0, 300);
        struct repl_capture_reader_opts opts = {.max_whole = 1000};
        struct repl_capture_reader *r = reader(&world, &opts);
        while (next(r, &ev) == REPL_CAPTURE_EVENT) {
            times[n] = ev.time_us;
            offsets[n++] = ev.offset;
            latest = ev.time_us > latest ? ev.time_us : latest;
        }
        cr_assert_gt(n, 80);
        for (int64_t t = times[0] - 300; t <= latest; t += 125) {
            size_t want = 0;
            while (times[want] < t)
                want++;
            cr_assert(repl_capture_reader_seek_time(r, t, NULL));
            cr_assert_eq(next(r, &ev), REPL_CAPTURE_EVENT);
            cr_assert_eq(ev.offset, offsets[want]);
            cr_assert_eq(ev.time_us, times[want]);
        }
        cr_assert(repl_capture_reader_seek_time(r, latest + 1, NULL));
        cr_assert_eq(next(r, &ev), REPL_CAPTURE_END);
        repl_capture_reader_close(r);
        world_done(&world);
    }
}

Test(capture_reader, times_may_go_back_and_the_first_that_is_late_enough_is_found)
{
    struct world world = {.opts = {.block_size = 64, .segment_size = 1000}};
    struct repl_capture_point at = {.replid = world_id('d')};
    struct repl_capture_event ev;
    static const int64_t times[] = {100, 110, 50, 40, 60, 120, 30, 130, 130, 10};
    world_init(&world);
    struct repl_capture_writer *w = world_writer(&world);
    cr_assert(repl_capture_writer_bare(w, &at, 5, NULL));
    for (size_t i = 0; i < 100; i++)
        cr_assert(repl_capture_writer_append(w, rd_slice_str("*1\r\n$4\r\nPING\r\n"),
                                             times[i % 10] + (int64_t)(i / 10), NULL));
    cr_assert(repl_capture_writer_close(w, NULL));
    struct repl_capture_reader *r = reader(&world, NULL);
    for (int64_t t = 0; t < 140; t++) {
        size_t want = 0;
        while (want < 100 && times[want % 10] + (int64_t)(want / 10) < t)
            want++;
        cr_assert(repl_capture_reader_seek_time(r, t, NULL));
        cr_assert_eq(next(r, &ev), want < 100 ? REPL_CAPTURE_EVENT : REPL_CAPTURE_END);
        if (want < 100)
            cr_assert_eq(ev.offset, want * 14, "time %d", (int)t);
    }
    repl_capture_reader_close(r);
    world_done(&world);
}

Test(capture_reader, long_commands_come_in_pieces_whole_or_both)
{
    static const size_t wholes[] = {0, 150, 100000};
    for (size_t i = 0; i < 3; i++) {
        struct world world;
        struct repl_capture_event ev;
        struct rd_buf all = {0};
        unsigned pieces = 0, first = 0, last = 0, commands = 0;
        make(&world, 0, 100, 5000);
        struct repl_capture_reader_opts opts = {.max_whole = wholes[i]};
        struct repl_capture_reader *r = reader(&world, &opts);
        while (next(r, &ev) == REPL_CAPTURE_EVENT) {
            if (ev.segment->chapter < 3)
                cr_assert(rd_buf_add(&all, ev.bytes.ptr, ev.bytes.len));
            pieces += ev.kind == REPL_CAPTURE_PIECE;
            commands += ev.kind == REPL_CAPTURE_COMMAND;
            first += ev.first;
            last += ev.last;
        }
        cr_assert(rd_slice_eq(rd_buf_slice(&all), rd_buf_slice(&world.history[0])));
        cr_assert_eq(first, i == 2 ? 0 : 2);
        cr_assert_eq(last, first);
        cr_assert_eq(commands, i == 2 ? 80 : 78);
        cr_assert_eq(pieces > 80, i < 2);
        rd_buf_done(&all);
        repl_capture_reader_close(r);
        world_done(&world);
    }
}

Test(capture_reader, following_a_writer_sees_each_command_once_also_over_kills)
{
    struct world world = {.opts = {.segment_size = 1500, .block_size = 100},
                          .chunk = 60,
                          .n1 = 80,
                          .n2 = 40,
                          .long_len = 900};
    struct repl_capture_reader_opts opts = {.follow = true};
    struct repl_capture_event ev;
    uint64_t expect[2] = {WORLD_BASE1, WORLD_BASE2};
    world_init(&world);
    struct repl_capture_reader *r = reader(&world, &opts);
    cr_assert_eq(repl_capture_reader_next(r, &ev), REPL_CAPTURE_MORE);
    bool done = false;
    for (unsigned i = 0; !done; i++) {
        world.sim->crash_at = world.sim->n_calls + 60 + i * 7 % 61;
        done = world_play(&world);
        world.sim->crash_at = 0;
        world.sim->crashed = false;
        enum repl_capture_status st;
        while ((st = next(r, &ev)) == REPL_CAPTURE_EVENT) {
            unsigned h = ev.segment->chapter == 3;
            cr_assert_eq(ev.offset, expect[h], "kill %u", i);
            cr_assert_eq(memcmp(ev.bytes.ptr,
                                world.history[h].ptr + expect[h] - (h ? WORLD_BASE2 : WORLD_BASE1),
                                ev.bytes.len),
                         0);
            expect[h] += ev.bytes.len;
        }
        cr_assert_eq(st, REPL_CAPTURE_MORE, "kill %u: %s", i, repl_capture_reader_err(r)->text);
    }
    cr_assert_eq(expect[0], WORLD_BASE1 + world.history[0].len);
    cr_assert_eq(expect[1], WORLD_BASE2 + world.history[1].len);
    repl_capture_reader_close(r);
    world_done(&world);
}

Test(capture_reader, an_empty_folder_has_an_end_and_no_segments)
{
    struct world world = {0};
    struct repl_capture_event ev;
    struct repl_capture_list list;
    world_init(&world);
    struct rd_fs fs = sim_fs_calls(world.sim);
    struct repl_capture_reader *r = reader(&world, NULL);
    cr_assert_eq(repl_capture_reader_next(r, &ev), REPL_CAPTURE_END);
    cr_assert(repl_capture_reader_seek_time(r, 5, NULL));
    cr_assert_eq(repl_capture_reader_next(r, &ev), REPL_CAPTURE_END);
    cr_assert_not(repl_capture_reader_seek(r, 0, 0, NULL));
    repl_capture_reader_close(r);
    cr_assert(repl_capture_list(&list, &fs, NULL));
    cr_assert_eq(list.n, 0);
    repl_capture_list_done(&list);
    repl_capture_reader_close(NULL);
    repl_capture_writer_abort(NULL);
    world_done(&world);
}

Test(capture_reader, the_nth_allocation_failing_is_reported)
{
    struct world world;
    make(&world, 900, 100, 500);
    for (size_t n = 1;; n++) {
        struct repl_capture_reader *r = NULL;
        struct repl_capture_event ev;
        struct repl_capture_verify_result res;
        struct rd_fs fs = sim_fs_calls(world.sim);
        struct repl_capture_reader_opts opts = {.max_whole = 1000};
        struct rd_err err = {0};
        enum repl_capture_status st = REPL_CAPTURE_FAIL;
        alloc_fault_begin(n);
        if (repl_capture_reader_open(&r, &fs, &opts, &err)) {
            if (repl_capture_reader_seek(r, 1, WORLD_BASE1 + 100, &err))
                while ((st = repl_capture_reader_next(r, &ev)) == REPL_CAPTURE_EVENT)
                    ;
            rd_err_adopt(&err, repl_capture_reader_err(r));
        }
        repl_capture_reader_close(r);
        bool ok = st == REPL_CAPTURE_END && repl_capture_verify(&fs, NULL, &res, &err);
        struct alloc_fault_result fault = alloc_fault_end();
        cr_assert_eq(fault.live, 0, "allocation %zu", n);
        cr_assert_eq(ok, !fault.failed, "allocation %zu", n);
        cr_assert_eq(err.code, ok ? RD_ERR_OK : RD_ERR_MEMORY, "allocation %zu: %s", n, err.text);
        if (ok)
            break;
    }
    world_done(&world);
}

static ssize_t (*read_really)(void *ctx, int fd, void *dst, size_t size, uint64_t at);
static uint64_t n_read;

static ssize_t count_read(void *ctx, int fd, void *dst, size_t size, uint64_t at)
{
    ssize_t n = read_really(ctx, fd, dst, size, at);
    n_read += n > 0 ? (uint64_t)n : 0;
    return n;
}

Test(capture_reader, a_place_is_found_without_reading_what_is_elsewhere)
{
    struct world world;
    struct repl_capture_list list;
    struct repl_capture_reader *r;
    struct repl_capture_event ev;
    make(&world, 4000, 400, 300);
    struct rd_fs fs = sim_fs_calls(world.sim);
    read_really = fs.read_at;
    fs.read_at = count_read;
    n_read = 0;
    cr_assert(repl_capture_list(&list, &fs, NULL));
    cr_assert_gt(list.n, 2);
    cr_expect_leq(n_read, list.n * (CAPTURE_HEADER + CAPTURE_TRAILER), "%u", (unsigned)n_read);
    cr_assert(repl_capture_reader_open(&r, &fs, NULL, NULL));
    n_read = 0;
    for (uint64_t offset = list.segments[1].start + 1; offset < list.segments[1].end;
         offset += 50) {
        cr_assert(repl_capture_reader_seek_in(r, &list.segments[1], offset, NULL));
        if (n_read != 0) /* the first one reads the header */
            cr_expect_leq(n_read, CAPTURE_HEADER + CAPTURE_TRAILER + 1000, "%u", (unsigned)n_read);
        cr_assert_eq(next(r, &ev), REPL_CAPTURE_EVENT);
        cr_assert_leq(ev.offset, offset);
        cr_assert_gt(ev.offset + ev.bytes.len, offset);
        n_read = 0;
    }
    repl_capture_reader_close(r);
    repl_capture_list_done(&list);
    world_done(&world);
}
