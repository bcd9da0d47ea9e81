/* broken.h - a source that fails after some bytes, and a sink that takes some and then fails.
 *
 *     struct broken_src from = {.bytes = rd_slice_str("half of it")};
 *     struct rd_src *src = broken_src_open(&from, 0);
 *     struct broken_sink to = {.room = 10};
 *     struct rd_sink *sink = broken_sink_open(&to, 0);
 *
 * Both fail with RD_ERR_IO. Neither frees what it is given.
 */
#ifndef TESTS_BASE_BROKEN_H
#define TESTS_BASE_BROKEN_H

#include "base/sink.h"
#include "base/src.h"

#include <criterion/criterion.h>
#include <errno.h>

struct broken_src {
    struct rd_slice bytes; /* what is left of them */
};

struct broken_sink {
    size_t room; /* what is left of it */
    bool no_sync;
    bool closed;
};

static inline enum rd_src_status broken_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                             struct rd_err *err)
{
    struct broken_src *from = impl;
    size_t n = from->bytes.len < cap ? from->bytes.len : cap;
    *ret_len = n;
    if (n == 0) {
        rd_err_sys(err, EIO, "cannot read");
        return RD_SRC_FAIL;
    }
    memcpy(buf, from->bytes.ptr, n);
    from->bytes = rd_slice(from->bytes.ptr + n, from->bytes.len - n);
    return RD_SRC_OK;
}

static inline struct rd_src *broken_src_open(struct broken_src *from, size_t window)
{
    static const struct rd_src_ops ops = {.read = broken_read};
    struct rd_src_opts opts = RD_SRC_OPTS(.window = window);
    struct rd_src *src;
    cr_assert(rd_src_new(&src, &ops, from, &opts, NULL));
    return src;
}

static inline bool broken_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct broken_sink *to = impl;
    (void)ptr;
    if (len > to->room)
        return rd_err_sys(err, ENOSPC, "cannot write");
    to->room -= len;
    return true;
}

static inline bool broken_sync(void *impl, struct rd_err *err)
{
    struct broken_sink *to = impl;
    return !to->no_sync || rd_err_sys(err, EIO, "cannot sync");
}

static inline bool broken_close(void *impl, bool commit, struct rd_err *err)
{
    struct broken_sink *to = impl;
    (void)commit;
    (void)err;
    to->closed = true;
    return true;
}

static inline struct rd_sink *broken_sink_open(struct broken_sink *to, size_t buffer)
{
    static const struct rd_sink_ops ops = {broken_write, broken_sync, broken_close};
    struct rd_sink_opts opts = RD_SINK_OPTS(.buffer = buffer);
    struct rd_sink *sink;
    cr_assert(rd_sink_new(&sink, &ops, to, &opts, NULL));
    return sink;
}

#endif
