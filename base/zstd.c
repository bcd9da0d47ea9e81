#include "base/zstd.h"

#include "base/mem.h"

#include <inttypes.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { WINDOW_LOG_MAX = 27 };

struct unzstd {
    struct rd_src *inner;
    ZSTD_DCtx *ctx;
    uint64_t out_off; /* decompressed bytes handed out */
    bool own;
    bool in_frame;
    bool any_frame;
    struct rd_err err; /* what the next read reports */
};

static enum rd_src_status unzstd_fail(struct unzstd *u, enum rd_err_code code, const char *what)
{
    rd_err_set(&u->err, code, u->out_off, "zstd: %s at compressed byte %" PRIu64, what,
               rd_src_offset(u->inner));
    return RD_SRC_FAIL;
}

static enum rd_src_status refused(struct unzstd *u, size_t code)
{
    switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_frameParameter_windowTooLarge:
        return unzstd_fail(u, RD_ERR_LIMIT, "frame with a window of more than 128 MiB");
    case ZSTD_error_memory_allocation:
        return unzstd_fail(u, RD_ERR_MEMORY, "out of memory");
    default:
        return unzstd_fail(u, RD_ERR_CORRUPT, ZSTD_getErrorName(code));
    }
}

/* One call of the decoder, also without input, for it may hold back output. `status` is what the
 * inner source said. */
static enum rd_src_status decode_piece(struct unzstd *u, enum rd_src_status status,
                                       struct rd_slice s, uint8_t *buf, size_t cap, size_t *got)
{
    ZSTD_inBuffer in = {s.ptr, s.len, 0};
    ZSTD_outBuffer out = {buf, cap, 0};
    size_t code = ZSTD_decompressStream(u->ctx, &out, &in);
    if (ZSTD_isError(code))
        return refused(u, code);
    rd_src_consume(u->inner, in.pos);
    *got = out.pos;
    u->in_frame = code != 0;
    u->any_frame = u->any_frame || code == 0;
    if (code == 0 || in.pos > 0 || out.pos > 0)
        return RD_SRC_OK;
    if (status == RD_SRC_END)
        return unzstd_fail(u, RD_ERR_TRUNCATED, "input ends inside a frame");
    return status == RD_SRC_MORE ? RD_SRC_MORE : unzstd_fail(u, RD_ERR_CORRUPT, "no progress");
}

static enum rd_src_status unzstd_step(struct unzstd *u, uint8_t *buf, size_t cap, size_t *got)
{
    static const uint8_t nothing[1];
    struct rd_slice s = {0};
    *got = 0;
    enum rd_src_status status = rd_src_need(u->inner, 1, &s);
    if (status == RD_SRC_FAIL) {
        rd_err_adopt(&u->err, rd_src_err(u->inner));
        return RD_SRC_FAIL;
    }
    if (status != RD_SRC_OK) {
        if (!u->in_frame && status == RD_SRC_END && !u->any_frame)
            return unzstd_fail(u, RD_ERR_TRUNCATED, "input ends before a frame");
        if (!u->in_frame)
            return status;
        s = rd_slice(nothing, 0);
    }
    return decode_piece(u, status, s, buf, cap, got);
}

/* Continues while the inner source has bytes ready, but does not wait for more once there is
 * output. */
static enum rd_src_status unzstd_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                      struct rd_err *err)
{
    struct unzstd *u = impl;
    enum rd_src_status status = u->err.code == RD_ERR_OK ? RD_SRC_OK : RD_SRC_FAIL;
    size_t have = 0;
    while (status == RD_SRC_OK && have < cap && (have == 0 || rd_src_avail(u->inner) > 0)) {
        size_t got;
        status = unzstd_step(u, buf + have, cap - have, &got);
        have += got;
        u->out_off += got;
    }
    *ret_len = have;
    if (have > 0)
        return RD_SRC_OK;
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, &u->err);
    return status;
}

static void unzstd_close(void *impl)
{
    struct unzstd *u = impl;
    ZSTD_freeDCtx(u->ctx);
    if (u->own)
        rd_src_close(u->inner);
    rd_free(u);
}

bool rd_zstd_open_src(struct rd_src **ret, struct rd_src *inner, struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = unzstd_read, .close = unzstd_close};
    struct unzstd *u = rd_calloc(1, sizeof *u);
    if (u == NULL)
        return rd_err_nomem(err, sizeof *u);
    u->inner = inner;
    u->ctx = ZSTD_createDCtx();
    if (u->ctx == NULL ||
        ZSTD_isError(ZSTD_DCtx_setParameter(u->ctx, ZSTD_d_windowLogMax, WINDOW_LOG_MAX))) {
        ZSTD_freeDCtx(u->ctx);
        rd_free(u);
        return rd_err_nomem(err, 0);
    }
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = rd_src_origin(inner));
    if (!rd_src_new(ret, &ops, u, &opts, err))
        return false;
    u->own = true;
    return true;
}
