/* flaky.h - a source that can seek, and whose n-th read or seek fails.
 *
 *     for (size_t n = 1;; n++) {
 *         struct flaky from = {.bytes = rd_slice_str("…"), .fail_at = n};
 *         struct rd_src *src = flaky_open(&from);
 *         ... read it ...
 *         rd_src_close(src);
 *         if (!from.failed)
 *             break;       // fewer than n calls were made
 *     }
 *
 * fail_at 0: none fails. It fails with RD_ERR_IO, and continues failing.
 */
#ifndef TESTS_AOF_FLAKY_H
#define TESTS_AOF_FLAKY_H

#include "base/src.h"

#include <criterion/criterion.h>
#include <errno.h>

struct flaky {
    struct rd_slice bytes;
    size_t fail_at;
    bool pipe;    /* it cannot seek, and has no size */
    size_t piece; /* what one read gives at most; 0: all that is asked for */
    size_t at;    /* in bytes */
    size_t calls; /* so far */
    bool failed;
};

static inline bool flaky_call(struct flaky *from, struct rd_err *err)
{
    from->calls++;
    from->failed = from->failed || from->calls == from->fail_at;
    return !from->failed || rd_err_sys(err, EIO, "cannot read");
}

static inline enum rd_src_status flaky_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                            struct rd_err *err)
{
    struct flaky *from = impl;
    size_t left = from->at < from->bytes.len ? from->bytes.len - from->at : 0;
    size_t n = left < cap ? left : cap;
    if (from->piece > 0 && n > from->piece)
        n = from->piece;
    if (!flaky_call(from, err))
        return RD_SRC_FAIL;
    if (n == 0)
        return RD_SRC_END;
    memcpy(buf, from->bytes.ptr + from->at, n);
    from->at += n;
    *ret_len = n;
    return RD_SRC_OK;
}

static inline bool flaky_seek(void *impl, uint64_t offset, struct rd_err *err)
{
    struct flaky *from = impl;
    if (!flaky_call(from, err))
        return false;
    from->at = offset < from->bytes.len ? (size_t)offset : from->bytes.len;
    return true;
}

static inline struct rd_src *flaky_open(struct flaky *from)
{
    static const struct rd_src_ops ops = {.read = flaky_read, .seek = flaky_seek};
    static const struct rd_src_ops pipe_ops = {.read = flaky_read};
    const struct rd_src_opts opts =
        RD_SRC_OPTS(.total = from->pipe ? RD_NO_OFFSET : from->bytes.len);
    struct rd_src *src;
    cr_assert(rd_src_new(&src, from->pipe ? &pipe_ops : &ops, from, &opts, NULL));
    return src;
}

#endif
