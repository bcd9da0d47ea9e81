#include "archive/tail.h"

#include "base/buf.h"
#include "tests/support/alloc_fault.h"

#include <criterion/criterion.h>
#include <string.h>

enum { SIZE = 100000 };

static uint8_t text[SIZE];

static void begin(void)
{
    for (size_t i = 0; i < SIZE; i++)
        text[i] = (uint8_t)(i * i >> 7);
}

TestSuite(tail, .init = begin);

/* ---- a sink and a source that fail after some bytes ---- */

struct ends {
    struct rd_buf *bytes;
    size_t left;
};

static bool fails(struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "it fails");
}

static bool ends_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct ends *e = impl;
    if (len > e->left)
        return fails(err);
    e->left -= len;
    return rd_buf_add(e->bytes, ptr, len) || rd_err_nomem(err, len);
}

static bool ends_sync(void *impl, struct rd_err *err)
{
    return ((struct ends *)impl)->left > SIZE || fails(err);
}

static bool ends_close(void *impl, bool commit, struct rd_err *err)
{
    (void)impl;
    (void)commit;
    (void)err;
    return true;
}

static enum rd_src_status ends_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err)
{
    struct ends *e = impl;
    if (e->left == 0)
        return fails(err) ? RD_SRC_OK : RD_SRC_FAIL;
    *ret_len = cap < e->left ? cap : e->left;
    memcpy(buf, e->bytes->ptr, *ret_len);
    e->left -= *ret_len;
    return RD_SRC_OK;
}

static bool open_sink(struct ends *e, struct rd_sink **ret, struct rd_err *err)
{
    static const struct rd_sink_ops ops = {ends_write, ends_sync, ends_close};
    const struct rd_sink_opts opts = RD_SINK_OPTS(.origin = "object");
    struct rd_sink *inner;
    if (!rd_sink_new(&inner, &ops, e, &opts, err))
        return false;
    if (archive_tail_open_sink(ret, inner, ARCHIVE_COMPRESSION_LZ4, "name", err))
        return true;
    rd_sink_abort(inner);
    return false;
}

static bool put(struct ends *e, struct rd_err *err)
{
    struct rd_sink *sink;
    if (!open_sink(e, &sink, err))
        return false;
    rd_sink_write(sink, text, SIZE);
    return rd_sink_close(sink, err);
}

static bool open_src(struct rd_src *inner, uint64_t size, struct rd_src **ret, struct rd_err *err)
{
    if (archive_tail_open_src(ret, inner, size, ARCHIVE_COMPRESSION_LZ4, "name", err))
        return true;
    rd_src_close(inner);
    return false;
}

/* Reads all bytes; returns the error. */
static struct rd_err drain(struct rd_src *src, size_t *ret_len)
{
    struct rd_slice s;
    struct rd_err err = {0};
    enum rd_src_status status;
    for (*ret_len = 0; (status = rd_src_need(src, 1, &s)) == RD_SRC_OK; *ret_len += s.len)
        rd_src_consume(src, s.len);
    if (status == RD_SRC_FAIL)
        rd_err_adopt(&err, rd_src_err(src));
    rd_src_close(src);
    return err;
}

static struct rd_err read_memory(struct rd_slice bytes, uint64_t size, size_t *ret_len)
{
    struct rd_src *inner, *src;
    struct rd_err err = {0};
    if (!rd_src_open_memory(&inner, bytes, NULL, &err) || !open_src(inner, size, &src, &err))
        return err;
    return drain(src, ret_len);
}

static struct rd_buf object(void)
{
    struct rd_buf bytes = {0};
    struct ends e = {&bytes, SIZE_MAX};
    cr_assert(put(&e, NULL));
    return bytes;
}

/* ---- tests ---- */

Test(tail, what_is_written_reads_back)
{
    struct rd_buf bytes = object();
    size_t len;
    struct rd_err err = read_memory(rd_buf_slice(&bytes), bytes.len, &len);
    cr_expect_eq(err.code, RD_ERR_OK, "%s", err.text);
    cr_expect_eq(len, SIZE);
    rd_buf_done(&bytes);
}

Test(tail, an_object_that_is_shorter_than_its_size_is_truncated)
{
    struct rd_buf bytes = object();
    size_t len;
    struct rd_err err = read_memory(rd_slice(bytes.ptr, SIZE - 1), bytes.len, &len);
    cr_expect_eq(err.code, RD_ERR_TRUNCATED, "%s", err.text);
    cr_expect_eq(len, SIZE - 1);
    err = read_memory(rd_slice(bytes.ptr, bytes.len - 1), bytes.len, &len);
    cr_expect_eq(err.code, RD_ERR_CHECKSUM, "%s", err.text);
    err = read_memory(rd_slice(bytes.ptr, 5), 5, &len);
    cr_expect_eq(err.code, RD_ERR_CHECKSUM, "%s", err.text);
    rd_buf_done(&bytes);
}

Test(tail, errors_of_the_object_are_passed_on)
{
    static const struct rd_src_ops ops = {.read = ends_read};
    struct rd_buf bytes = object();
    for (size_t left = 0; left <= SIZE; left += SIZE) {
        struct ends e = {&bytes, left};
        struct rd_src *inner, *src;
        size_t len;
        cr_assert(rd_src_new(&inner, &ops, &e, NULL, NULL));
        cr_assert(open_src(inner, bytes.len, &src, NULL));
        struct rd_err err = drain(src, &len);
        cr_expect_eq(err.code, RD_ERR_IO, "%s", err.text);
        cr_expect_eq(len, left);
    }
    rd_buf_done(&bytes);
}

Test(tail, a_sink_that_fails_fails_the_object)
{
    for (size_t left = 0; left <= SIZE; left += SIZE) {
        struct rd_buf bytes = {0};
        struct ends e = {&bytes, left};
        struct rd_err err = {0};
        cr_expect_not(put(&e, &err));
        cr_expect_eq(err.code, RD_ERR_IO, "%s", err.text);
        rd_buf_done(&bytes);
    }
}

Test(tail, a_sync_reaches_the_object)
{
    for (int good = 0; good < 2; good++) {
        struct rd_buf bytes = {0};
        struct ends e = {&bytes, good ? SIZE_MAX : SIZE};
        struct rd_sink *sink;
        cr_assert(open_sink(&e, &sink, NULL));
        rd_sink_write(sink, text, 10);
        cr_expect_eq(rd_sink_sync(sink), good == 1);
        cr_expect_eq(bytes.len, 10);
        rd_sink_abort(sink);
        rd_buf_done(&bytes);
    }
}

static bool both_ways(struct rd_err *err)
{
    struct rd_buf bytes = {0};
    struct ends e = {&bytes, SIZE_MAX};
    struct rd_src *inner, *src;
    bool ok = put(&e, err) && rd_src_open_memory(&inner, rd_buf_slice(&bytes), NULL, err) &&
              open_src(inner, bytes.len, &src, err);
    if (ok) {
        size_t len;
        struct rd_err failed = drain(src, &len);
        rd_err_adopt(err, &failed);
        ok = failed.code == RD_ERR_OK;
    }
    rd_buf_done(&bytes);
    return ok;
}

Test(tail, every_allocation_may_fail)
{
    for (size_t n = 1;; n++) {
        struct rd_err err = {0};
        alloc_fault_begin(n);
        bool ok = both_ways(&err);
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0, "%zu", n);
        if (!r.failed)
            break;
        cr_expect_not(ok);
        cr_expect_eq(err.code, RD_ERR_MEMORY);
    }
}
