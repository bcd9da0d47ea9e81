#include "data/stage.h"

#include "base/mem.h"

#include <criterion/criterion.h>

/* Sizes on both sides of what stays in memory. */
static const size_t sizes[] = {
    0, 1, 1000, STAGE_KEPT - 1, STAGE_KEPT, STAGE_KEPT + 1, 3 * STAGE_KEPT / 2};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static uint8_t byte_at(size_t i, unsigned salt)
{
    return (uint8_t)(i * 31 + i / 251 + salt);
}

static void fill(struct stage *stage, size_t size, unsigned salt)
{
    struct rd_sink *to;
    struct rd_err err = {0};
    uint8_t piece[1000];
    cr_assert(stage_begin(stage, &to, &err), "%s", err.text);
    for (size_t at = 0; at < size;) {
        size_t n = size - at < sizeof piece ? size - at : sizeof piece;
        for (size_t i = 0; i < n; i++)
            piece[i] = byte_at(at + i, salt);
        cr_assert(rd_sink_write(to, piece, n));
        at += n;
    }
    cr_assert(stage_end(stage, &err), "%s", err.text);
}

static void expect_bytes(struct rd_slice got, const char *front, size_t size, unsigned salt)
{
    size_t n_front = strlen(front);
    cr_assert_eq(got.len, n_front + size);
    cr_assert(n_front == 0 || memcmp(got.ptr, front, n_front) == 0);
    for (size_t i = 0; i < size; i++)
        cr_assert_eq(got.ptr[n_front + i], byte_at(i, salt), "at %zu of %zu", i, size);
}

static void expect_moved(const struct stage *stage, const char *front, size_t size, unsigned salt)
{
    struct rd_buf out = {0};
    struct rd_sink *to;
    struct rd_err err = {0};
    cr_assert_eq(stage_size(stage), strlen(front) + size);
    cr_assert(rd_sink_open_buf(&to, &out, NULL, &err));
    cr_assert(stage_move(stage, to, &err), "%s", err.text);
    cr_assert(rd_sink_close(to, &err));
    expect_bytes(rd_buf_slice(&out), front, size, salt);
    rd_buf_done(&out);
}

static void expect_source(const struct stage *stage, int first, const char *front, size_t size)
{
    struct rd_src *src;
    struct rd_buf out = {0};
    struct rd_slice s;
    struct rd_err err = {0};
    enum rd_src_status st;
    cr_assert(stage_source(stage, first, &src, &err), "%s", err.text);
    if (strlen(front) + size > 0)
        cr_assert_eq(rd_src_size(src), strlen(front) + size);
    while ((st = rd_src_need(src, 1, &s)) == RD_SRC_OK) {
        cr_assert(rd_buf_add(&out, s.ptr, s.len));
        rd_src_consume(src, s.len);
    }
    cr_assert_eq(st, RD_SRC_END);
    expect_bytes(rd_buf_slice(&out), front, size, 0);
    rd_src_close(src);
    rd_buf_done(&out);
}

Test(stage, gives_back_what_was_put_in_as_often_as_wanted)
{
    for (size_t i = 0; i < N_SIZES; i++) {
        struct stage stage = {0};
        fill(&stage, sizes[i], 0);
        cr_expect_eq(stage.spool.open, sizes[i] > STAGE_KEPT, "%zu", sizes[i]);
        expect_moved(&stage, "", sizes[i], 0);
        expect_moved(&stage, "", sizes[i], 0);
        expect_source(&stage, -1, "", sizes[i]);
        expect_source(&stage, 'T', "T", sizes[i]);
        stage_done(&stage);
    }
}

Test(stage, bytes_can_be_put_in_front_later)
{
    for (size_t i = 0; i < N_SIZES; i++) {
        const char *front = "twenty-four bytes it is!";
        struct stage stage = {0};
        fill(&stage, sizes[i], 0);
        stage_put_front(&stage, rd_slice_str("short"));
        expect_moved(&stage, "short", sizes[i], 0);
        stage_put_front(&stage, rd_slice_str(front));
        expect_moved(&stage, front, sizes[i], 0);
        expect_source(&stage, -1, front, sizes[i]);
        expect_source(&stage, 'x', "xtwenty-four bytes it is!", sizes[i]);
        stage_done(&stage);
    }
}

Test(stage, begins_empty_again_whatever_it_held)
{
    struct stage stage = {0};
    for (unsigned i = 0; i < 2 * N_SIZES; i++) {
        size_t size = sizes[i * 5 % N_SIZES];
        fill(&stage, size, i);
        expect_moved(&stage, "", size, i);
        stage_put_front(&stage, rd_slice_str("front"));
    }
    stage_done(&stage);
}

Test(stage, two_can_change_places)
{
    for (size_t i = 0; i < N_SIZES; i++) {
        struct stage a = {0}, b = {0};
        size_t other = sizes[N_SIZES - 1 - i];
        fill(&a, sizes[i], 1);
        fill(&b, other, 2);
        stage_put_front(&a, rd_slice_str("of a"));
        stage_swap(&a, &b);
        expect_moved(&a, "", other, 2);
        expect_moved(&b, "of a", sizes[i], 1);
        fill(&a, 10, 3); /* their sinks must still write to themselves */
        fill(&b, 20, 4);
        expect_moved(&a, "", 10, 3);
        expect_moved(&b, "", 20, 4);
        stage_done(&a);
        stage_done(&b);
    }
}
