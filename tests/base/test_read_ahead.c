#include "base/read_ahead.h"

#include <criterion/criterion.h>

#include "base/buf.h"
#include "tests/support/alloc_fault.h"

/* Gives so many bytes, a few at a time, and then the end or an error. */
struct made {
    uint64_t at, end;
    size_t step;
    bool fails;
    unsigned *closed;
};

static uint8_t byte_at(uint64_t at)
{
    return (uint8_t)(at * 7 + at / 251);
}

static enum rd_src_status made_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err)
{
    struct made *m = impl;
    uint64_t left = m->end - m->at;
    size_t n = cap < m->step ? cap : m->step;
    n = n < left ? n : (size_t)left;
    *ret_len = n;
    for (size_t i = 0; i < n; i++)
        buf[i] = byte_at(m->at++);
    if (n > 0)
        return RD_SRC_OK;
    if (!m->fails)
        return RD_SRC_END;
    rd_err_set(err, RD_ERR_CHECKSUM, 12, "made to fail");
    return RD_SRC_FAIL;
}

static void made_close(void *impl)
{
    struct made *m = impl;
    (*m->closed)++;
}

static const struct rd_src_ops made_ops = {.read = made_read, .close = made_close};

static struct rd_src *open_made(struct made *m)
{
    struct rd_src *src;
    struct rd_err err = {0};
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = "made", .total = m->end, .sized = true);
    cr_assert(rd_read_ahead_open(&src, &made_ops, m, &opts, &err), "%s", err.text);
    return src;
}

Test(read_ahead, gives_all_bytes_and_then_the_end_or_the_error)
{
    static const uint64_t sizes[] = {0,
                                     1,
                                     RD_AHEAD_BLOCK - 1,
                                     RD_AHEAD_BLOCK,
                                     RD_AHEAD_BLOCK + 1,
                                     3 * RD_AHEAD_BLOCKS * RD_AHEAD_BLOCK + 77};
    static const size_t steps[] = {1000, RD_AHEAD_BLOCK, 7 * RD_AHEAD_BLOCK};
    for (size_t i = 0; i < 36; i++) {
        unsigned closed = 0;
        struct made m = {.end = sizes[i % 6], .step = steps[i / 6 % 3], .fails = i >= 18};
        m.closed = &closed;
        struct rd_src *src = open_made(&m);
        struct rd_slice s;
        uint64_t at = 0;
        enum rd_src_status status;
        cr_expect_eq(rd_src_size(src), sizes[i % 6]);
        while ((status = rd_src_need(src, 1, &s)) == RD_SRC_OK) {
            for (size_t k = 0; k < s.len; k++)
                cr_assert_eq(s.ptr[k], byte_at(at + k));
            at += s.len;
            rd_src_consume(src, s.len);
        }
        cr_expect_eq(at, sizes[i % 6]);
        cr_expect_eq(status, i >= 18 ? RD_SRC_FAIL : RD_SRC_END);
        if (status == RD_SRC_FAIL) {
            cr_expect_eq(rd_src_err(src)->code, RD_ERR_CHECKSUM);
            cr_expect_str_eq(rd_src_err(src)->origin, "made");
        }
        rd_src_close(src);
        cr_expect_eq(closed, 1);
    }
}

Test(read_ahead, can_be_closed_at_any_time)
{
    for (size_t i = 0; i < 200; i++) {
        unsigned closed = 0;
        struct made m = {.end = UINT64_MAX, .step = 1 + i * 997, .closed = &closed};
        struct rd_src *src = open_made(&m);
        struct rd_slice s;
        for (size_t k = 0; k < i % 4; k++) {
            cr_assert_eq(rd_src_need(src, 1, &s), RD_SRC_OK);
            rd_src_consume(src, s.len);
        }
        rd_src_close(src);
        cr_expect_eq(closed, 1);
    }
}

Test(read_ahead, closes_the_inner_source_if_memory_is_exhausted)
{
    bool failed = true;
    for (size_t n = 1; failed; n++) {
        unsigned closed = 0;
        struct made m = {.end = 10, .step = 3, .closed = &closed};
        const struct rd_src_opts opts = RD_SRC_OPTS(.origin = "made");
        struct rd_src *src = NULL;
        struct rd_err err = {0};
        alloc_fault_begin(n);
        bool ok = rd_read_ahead_open(&src, &made_ops, &m, &opts, &err);
        if (ok)
            rd_src_close(src);
        struct alloc_fault_result result = alloc_fault_end();
        failed = result.failed;
        cr_expect_eq(result.live, 0);
        cr_expect_eq(closed, 1);
        cr_expect_eq(ok, !failed);
    }
}
