#include <criterion/criterion.h>

#include "base/pump.h"
#include "tests/support/alloc_fault.h"

enum { SIZE = 300000 };

static struct rd_src *source(uint8_t *bytes)
{
    struct rd_src *src;
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t)(i * 7);
    cr_assert(rd_src_open_memory(&src, rd_slice(bytes, SIZE), &RD_SRC_OPTS(.window = 4096), NULL));
    return src;
}

static void count(void *ctx)
{
    ++*(int *)ctx;
}

Test(pump, all_bytes_reach_the_sink)
{
    static uint8_t bytes[SIZE];
    struct rd_src *src = source(bytes);
    struct rd_buf buf = {0};
    struct rd_sink *sink;
    int ticks = 0;
    cr_assert(rd_sink_open_buf(&sink, &buf, NULL, NULL));
    cr_assert(rd_pump(src, sink, count, &ticks, NULL));
    cr_assert(rd_sink_close(sink, NULL));
    cr_expect_gt(ticks, 0);
    cr_expect(buf.len == SIZE && memcmp(buf.ptr, bytes, SIZE) == 0);
    rd_buf_done(&buf);
    rd_src_close(src);
}

Test(pump, without_a_sink_all_bytes_are_read)
{
    static uint8_t bytes[SIZE];
    struct rd_src *src = source(bytes);
    int ticks = 0;
    cr_assert(rd_pump(src, NULL, count, &ticks, NULL));
    cr_expect_gt(ticks, 0);
    cr_expect_eq(rd_src_offset(src), SIZE);
    rd_src_close(src);
}

Test(pump, a_limit_is_the_largest_size_that_is_read)
{
    static uint8_t bytes[SIZE];
    for (size_t less = 0; less < 2; less++) {
        struct rd_src *src = source(bytes);
        struct rd_buf buf = {0};
        struct rd_err err = {0};
        cr_expect_eq(rd_pump_to_buf(src, SIZE - less, &buf, &err), less == 0);
        cr_expect_eq(err.code, less == 0 ? RD_ERR_OK : RD_ERR_LIMIT);
        rd_buf_done(&buf);
        rd_src_close(src);
    }
}

static enum rd_src_status fail_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err)
{
    int *calls = impl;
    *ret_len = 0;
    if ((*calls)++ > 0) {
        rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "broken");
        return RD_SRC_FAIL;
    }
    memset(buf, 'x', *ret_len = cap < 10 ? cap : 10);
    return RD_SRC_OK;
}

static bool fail_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    (void)impl, (void)ptr, (void)len;
    return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "full");
}

static bool close_nothing(void *impl, bool commit, struct rd_err *err)
{
    (void)impl, (void)commit, (void)err;
    return true;
}

Test(pump, the_error_is_that_of_the_side_that_failed)
{
    static const struct rd_src_ops broken = {.read = fail_read};
    static const struct rd_sink_ops full = {.write = fail_write, .close = close_nothing};
    static uint8_t bytes[SIZE];
    struct rd_err err = {0};
    struct rd_src *src;
    struct rd_sink *sink;
    struct rd_buf buf = {0};
    int calls = 0;
    cr_assert(rd_src_new(&src, &broken, &calls, NULL, NULL));
    cr_assert(rd_sink_open_buf(&sink, &buf, NULL, NULL));
    cr_assert_not(rd_pump(src, sink, NULL, NULL, &err));
    cr_expect_str_eq(err.text, "broken");
    cr_assert(rd_sink_flush(sink));
    cr_expect_eq(buf.len, 10, "what was read before is written");
    rd_sink_abort(sink);
    rd_src_close(src);
    rd_buf_done(&buf);

    calls = 0;
    err = (struct rd_err){0};
    cr_assert(rd_src_new(&src, &broken, &calls, NULL, NULL));
    cr_assert_not(rd_pump_to_buf(src, 100, &buf, &err));
    cr_expect_str_eq(err.text, "broken");
    rd_src_close(src);
    rd_buf_done(&buf);

    err = (struct rd_err){0};
    src = source(bytes);
    cr_assert(rd_sink_new(&sink, &full, NULL, NULL, NULL));
    cr_assert_not(rd_pump(src, sink, NULL, NULL, &err));
    cr_expect_str_eq(err.text, "full");
    rd_sink_abort(sink);
    rd_src_close(src);
}

Test(pump, exhausted_memory_is_an_error)
{
    static uint8_t bytes[SIZE];
    for (size_t n = 1;; n++) {
        alloc_fault_begin(n);
        struct rd_src *src = NULL;
        struct rd_buf buf = {0};
        struct rd_err err = {0};
        bool ok = rd_src_open_memory(&src, rd_slice(bytes, SIZE), NULL, &err) &&
                  rd_pump_to_buf(src, SIZE, &buf, &err);
        rd_buf_done(&buf);
        rd_src_close(src);
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0);
        if (!r.failed)
            break;
        cr_assert_not(ok);
        cr_expect_eq(err.code, RD_ERR_MEMORY);
    }
}
