/* The bytes of a segment, and the framing of commands in pieces. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "repl/capture/format.h"
#include "repl/capture/walk.h"
#include "tests/support/guard.h"

Test(capture_format, names_are_read_as_they_are_written_and_in_no_other_way)
{
    static const char *const wrong[] = {"00000001-5",
                                        "1-5.seg",
                                        "00000001-05.seg",
                                        "00000001.seg",
                                        "00000001-.seg",
                                        "-5.seg",
                                        "00000001-5.seg.part",
                                        "00000001-5x.seg",
                                        "000000x1-5.seg",
                                        ".seg",
                                        "",
                                        "00000001-99999999999999999999.seg",
                                        "00000000000000000000000000000000000000001-5.seg"};
    char name[REPL_CAPTURE_NAME];
    uint64_t number, start;
    repl_capture_name_put(name, 12, 34, ".seg");
    cr_assert_str_eq(name, "00000012-34.seg");
    repl_capture_name_put(name, UINT64_MAX, UINT64_MAX, ".rdb.part");
    cr_assert(repl_capture_name_get(name, ".rdb.part", &number, &start));
    cr_assert(number == UINT64_MAX && start == UINT64_MAX);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_assert_not(repl_capture_name_get(wrong[i], ".seg", &number, &start), "%s", wrong[i]);
}

Test(capture_format, times_that_go_forth_and_back_are_read_as_they_were_put)
{
    static const int64_t steps[] = {1, -1, 63, -64, 64, 1000000, -5000000000, INT64_MAX, INT64_MIN};
    enum { N = sizeof steps / sizeof steps[0] };
    uint8_t bytes[N * 20];
    struct capture_times t;
    struct capture_block block = {.first_us = 77, .len = 100};
    size_t len = 0;
    uint64_t expect = 77;
    int64_t now;
    for (size_t i = 0; i < N; i++)
        len += repl_capture_time_put(bytes + len, i + 1, steps[i]);
    block.times_len = (uint32_t)len;
    repl_capture_times_init(&t, &block, bytes);
    for (uint64_t at = 0, i = 0, left = 1; at < 100; at++, left--) {
        if (left == 0 && i < N) {
            expect += (uint64_t)steps[i++];
            left = i + 1;
        }
        cr_assert(repl_capture_times_at(&t, at, &now));
        cr_assert_eq((uint64_t)now, i <= N ? expect : 0, "at %u", (unsigned)at);
    }
    cr_assert_not(repl_capture_times_at(&t, 100, &now));
    for (size_t cut = 1; cut < len; cut++) {
        uint8_t *end = guard_new(bytes, cut);
        block.times_len = (uint32_t)cut;
        repl_capture_times_init(&t, &block, end);
        (void)repl_capture_times_at(&t, 99, &now);
        guard_free(end);
    }
    block.len = 3;
    block.times_len = (uint32_t)len;
    repl_capture_times_init(&t, &block, bytes);
    cr_assert_not(repl_capture_times_at(&t, 2, &now), "runs that are longer than the block");
}

Test(capture_format, a_header_tells_all_it_was_given_and_refuses_what_it_does_not_know)
{
    struct repl_capture_segment seg = {.number = 3,
                                       .start = 99,
                                       .start_us = -5,
                                       .db = 7,
                                       .in_multi = true,
                                       .chapter = 2,
                                       .chapter_start = 44,
                                       .begins = true,
                                       .has_snapshot = true,
                                       .snapshot_size = 123},
                                got;
    uint8_t bytes[CAPTURE_HEADER];
    uint64_t seed, seed2;
    struct rd_err err = {0};
    memset(seg.replid.hex, 'a', 40);
    repl_capture_header_put(bytes, &seg, &seed);
    cr_assert(repl_capture_header_get(bytes, &got, &seed2, &err));
    cr_assert_eq(seed, seed2);
    cr_assert(got.number == 3 && got.start == 99 && got.start_us == -5 && got.db == 7);
    cr_assert(got.in_multi && got.begins && got.has_snapshot && !got.continues);
    cr_assert_eq(got.snapshot_size, 123);
    seg.replid.hex[0] = 'x';
    repl_capture_header_put(bytes, &seg, &seed);
    cr_assert_not(repl_capture_header_get(bytes, &got, &seed2, &err));
    cr_assert_eq(err.offset, 112);
}

/* Walks through the text in pieces; commands and blanks that were seen; where it failed. */
static unsigned walk(struct rd_slice text, size_t piece, struct capture_walk *w, struct rd_err *err)
{
    unsigned seen = 0;
    repl_capture_walk_init(w, 0, 0, false);
    for (size_t at = 0; at < text.len;) {
        size_t n = text.len - at < piece ? text.len - at : piece, taken;
        uint8_t *bytes = guard_new(text.ptr + at, n);
        enum capture_walk_status st = repl_capture_walk_step(w, bytes, n, &taken, err);
        guard_free(bytes);
        if (st == CAPTURE_WALK_FAIL)
            return seen;
        cr_assert_leq(taken, n);
        at += taken;
        seen += st == CAPTURE_WALK_WHOLE ? 1 : st == CAPTURE_WALK_BLANK ? 100 : 0;
    }
    return seen;
}

Test(capture_walk, commands_are_found_in_pieces_of_every_size)
{
    const struct rd_slice text = rd_slice_str(
        "*1\r\n$4\r\nPING\r\n\n*2\r\n$6\r\nSELECT\r\n$1\r\n9\r\n*1\r\n$5\r\nMULTI\r\n"
        "*3\r\n$3\r\nSET\r\n$30\r\nkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\r\n$0\r\n\r\n"
        "\r\n*1\r\n$0\r\n\r\n*2\r\n$30\r\nkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\r\n$1\r\nx\r\n");
    for (size_t piece = 1; piece <= text.len; piece++) {
        struct capture_walk w;
        struct rd_err err = {0};
        cr_assert_eq(walk(text, piece, &w, &err), 306, "pieces of %zu: %s", piece, err.text);
        cr_assert_eq(w.stream.offset, text.len);
        cr_assert_eq(w.stream.db, 9);
        cr_assert(w.stream.in_multi && !capture_walk_inside(&w));
    }
}

Test(capture_walk, the_first_wrong_byte_is_named_whatever_the_pieces)
{
    static const struct {
        const char *text;
        uint64_t at;
    } wrong[] = {
        {"x", 0},
        {"*1\r\n$4\r\nPING\r\nPING", 14},
        {"*\r\n", 1},
        {"*0\r\n", 3},
        {"*-1\r\n", 1},
        {"*1\n", 2},
        {"*1\rx", 3},
        {"*1\r\n:", 4},
        {"*1\r\n$\r\n", 5},
        {"*1\r\n$1\r\nab", 9},
        {"*1\r\n$1\r\na\rb", 10},
        {"*12345678901234567890\r\n", 20},
        {"*01\r\n", 2},
        {"*1\r\n$-1\r\n", 5},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        for (size_t piece = 1; piece <= strlen(wrong[i].text); piece++) {
            struct capture_walk w;
            struct rd_err err = {0};
            walk(rd_slice_str(wrong[i].text), piece, &w, &err);
            cr_assert_eq(err.code, RD_ERR_PROTOCOL, "%s", wrong[i].text);
            cr_assert_eq(err.offset, wrong[i].at, "%s: %u in pieces of %zu", wrong[i].text,
                         (unsigned)err.offset, piece);
        }
}

Test(capture_walk, a_select_that_names_no_database_is_an_error_of_the_command)
{
    for (size_t piece = 1; piece < 60; piece++) {
        struct capture_walk w;
        struct rd_err err = {0};
        walk(rd_slice_str("*1\r\n$4\r\nPING\r\n*2\r\n$6\r\nSELECT\r\n$3\r\none\r\n"), piece, &w,
             &err);
        cr_assert_eq(err.code, RD_ERR_PROTOCOL);
        cr_assert_eq(err.offset, 14);
    }
}
