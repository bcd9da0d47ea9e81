#include "base/zstd.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/unpack.h"

#include <zstd.h>
#include <zstd_errors.h>

enum { WINDOW_LOG_MAX = 27, OWN_WINDOW_LOG_MAX = 23, OUT_SIZE = 64 * 1024, FRAME_HEAD = 5 };

/* On failure the decoder does not report what it has written. It gets as many bytes as it asks for:
 * one block at a time, and the checksum of a frame alone. What it has written before is known. */
struct unzstd {
    struct rd_unpack unpack;
    ZSTD_DCtx *ctx;
    size_t wanted; /* 0: a frame begins */
    bool own;      /* the frames are ours */
};

static enum rd_err_code refused(const struct unzstd *z, struct rd_unpack_piece *piece, size_t code)
{
    switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_frameParameter_windowTooLarge:
        piece->what = "frame with a window that is never written";
        if (z->own)
            return RD_ERR_CORRUPT;
        piece->what = "frame with a window of more than 128 MiB";
        return RD_ERR_LIMIT;
    case ZSTD_error_memory_allocation:
        piece->what = "out of memory";
        return RD_ERR_MEMORY;
    default:
        piece->what = ZSTD_getErrorName(code);
        return RD_ERR_CORRUPT;
    }
}

static enum rd_err_code decode(struct rd_unpack *u, struct rd_unpack_piece *piece)
{
    struct unzstd *z = (struct unzstd *)u;
    size_t wanted = z->wanted > 0 ? z->wanted : FRAME_HEAD;
    ZSTD_inBuffer in = {piece->in.ptr, piece->in.len < wanted ? piece->in.len : wanted, 0};
    ZSTD_outBuffer out = {piece->out, piece->cap, 0};
    size_t code = ZSTD_decompressStream(z->ctx, &out, &in);
    if (ZSTD_isError(code))
        return refused(z, piece, code);
    z->wanted = code;
    piece->n_in = in.pos;
    piece->n_out = out.pos;
    piece->ended = code == 0;
    return RD_ERR_OK;
}

static void free_unzstd(struct rd_unpack *u)
{
    struct unzstd *z = (struct unzstd *)u;
    ZSTD_freeDCtx(z->ctx);
    rd_free(z);
}

static bool open_src(struct rd_src **ret, struct rd_src *inner, bool own, struct rd_err *err)
{
    static const struct rd_unpack_codec codec = {
        .name = "zstd", .unit = "frame", .decode = decode, .free = free_unzstd};
    struct unzstd *z = rd_calloc(1, sizeof *z);
    if (z == NULL)
        return rd_err_nomem(err, sizeof *z);
    z->own = own;
    z->ctx = ZSTD_createDCtx();
    if (z->ctx == NULL ||
        ZSTD_isError(ZSTD_DCtx_setParameter(z->ctx, ZSTD_d_windowLogMax,
                                            own ? OWN_WINDOW_LOG_MAX : WINDOW_LOG_MAX))) {
        free_unzstd(&z->unpack);
        return rd_err_nomem(err, 0);
    }
    return rd_unpack_open(ret, &z->unpack, &codec, inner, err);
}

bool rd_zstd_open_src(struct rd_src **ret, struct rd_src *inner, struct rd_err *err)
{
    return open_src(ret, inner, false, err);
}

bool rd_zstd_open_own_src(struct rd_src **ret, struct rd_src *inner, struct rd_err *err)
{
    return open_src(ret, inner, true, err);
}

struct enzstd {
    struct rd_sink *inner;
    ZSTD_CCtx *ctx;
    bool own;
    uint8_t out[OUT_SIZE];
};

/* Compresses bytes and writes what the encoder returns. A flush and an end are complete when the
 * encoder has nothing left to write. */
static bool encode(struct enzstd *e, struct rd_slice bytes, ZSTD_EndDirective how,
                   struct rd_err *err)
{
    ZSTD_inBuffer in = {bytes.ptr, bytes.len, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {e->out, OUT_SIZE, 0};
        left = ZSTD_compressStream2(e->ctx, &out, &in, how);
        if (ZSTD_isError(left))
            return rd_err_set(err, RD_ERR_MEMORY, RD_NO_OFFSET, "zstd: %s",
                              ZSTD_getErrorName(left));
        if (!rd_sink_write(e->inner, e->out, out.pos)) {
            rd_err_adopt(err, rd_sink_err(e->inner));
            return false;
        }
    } while (how == ZSTD_e_continue ? in.pos < in.size : left > 0);
    return true;
}

static bool enzstd_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    return len == 0 || encode(impl, rd_slice(ptr, len), ZSTD_e_continue, err);
}

static bool enzstd_sync(void *impl, struct rd_err *err)
{
    struct enzstd *e = impl;
    if (!encode(e, rd_slice(NULL, 0), ZSTD_e_flush, err))
        return false;
    if (rd_sink_sync(e->inner))
        return true;
    rd_err_adopt(err, rd_sink_err(e->inner));
    return false;
}

static bool enzstd_close(void *impl, bool commit, struct rd_err *err)
{
    struct enzstd *e = impl;
    bool ok = true;
    if (e->own) {
        ok = commit && encode(e, rd_slice(NULL, 0), ZSTD_e_end, err);
        if (ok)
            ok = rd_sink_close(e->inner, err);
        else
            rd_sink_abort(e->inner);
    }
    ZSTD_freeCCtx(e->ctx);
    rd_free(e);
    return ok || !commit;
}

static bool set_level(ZSTD_CCtx *ctx, int level)
{
    return !ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, level)) &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, 1));
}

bool rd_zstd_open_sink(struct rd_sink **ret, struct rd_sink *inner, int level, struct rd_err *err)
{
    static const struct rd_sink_ops ops = {enzstd_write, enzstd_sync, enzstd_close};
    if (level < 0 || level > RD_ZSTD_LEVEL_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "zstd has no level %d", level);
    struct enzstd *e = rd_calloc(1, sizeof *e);
    if (e == NULL)
        return rd_err_nomem(err, sizeof *e);
    e->inner = inner;
    e->ctx = ZSTD_createCCtx();
    if (e->ctx == NULL || !set_level(e->ctx, level == 0 ? RD_ZSTD_LEVEL : level)) {
        ZSTD_freeCCtx(e->ctx);
        rd_free(e);
        return rd_err_nomem(err, 0);
    }
    const struct rd_sink_opts opts = RD_SINK_OPTS(.origin = rd_sink_origin(inner));
    if (!rd_sink_new(ret, &ops, e, &opts, err))
        return false;
    e->own = true;
    return true;
}

/* ---- blocks ---- */

struct rd_zstd_blocks {
    ZSTD_CCtx *in;
    ZSTD_DCtx *out;
};

void rd_zstd_blocks_free(struct rd_zstd_blocks *z)
{
    if (z == NULL)
        return;
    ZSTD_freeCCtx(z->in);
    ZSTD_freeDCtx(z->out);
    rd_free(z);
}

bool rd_zstd_blocks_new(struct rd_zstd_blocks **ret, int level, struct rd_err *err)
{
    if (level < 0 || level > RD_ZSTD_LEVEL_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "zstd has no level %d", level);
    struct rd_zstd_blocks *z = rd_calloc(1, sizeof *z);
    if (z == NULL)
        return rd_err_nomem(err, sizeof *z);
    z->in = ZSTD_createCCtx();
    z->out = ZSTD_createDCtx();
    int want = level == 0 ? RD_ZSTD_LEVEL : level;
    if (z->in == NULL || z->out == NULL ||
        ZSTD_isError(ZSTD_CCtx_setParameter(z->in, ZSTD_c_compressionLevel, want))) {
        rd_zstd_blocks_free(z);
        return rd_err_nomem(err, 0);
    }
    *ret = z;
    return true;
}

bool rd_zstd_pack(struct rd_zstd_blocks *z, struct rd_slice bytes, struct rd_buf *ret,
                  struct rd_err *err)
{
    size_t bound = ZSTD_compressBound(bytes.len);
    if (!rd_buf_reserve(ret, bound))
        return rd_err_nomem(err, bound);
    size_t len = ZSTD_compress2(z->in, ret->ptr + ret->len, bound, bytes.ptr, bytes.len);
    if (ZSTD_isError(len))
        return rd_err_set(err, RD_ERR_MEMORY, RD_NO_OFFSET, "zstd: %s", ZSTD_getErrorName(len));
    ret->len += len;
    return true;
}

bool rd_zstd_unpack(struct rd_zstd_blocks *z, struct rd_slice frame, size_t len, struct rd_buf *ret,
                    struct rd_err *err)
{
    if (!rd_buf_reserve(ret, len + 1))
        return rd_err_nomem(err, len);
    size_t got = ZSTD_decompressDCtx(z->out, ret->ptr + ret->len, len, frame.ptr, frame.len);
    if (ZSTD_isError(got))
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "zstd: %s", ZSTD_getErrorName(got));
    if (got != len)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                          "zstd: the block has %zu bytes instead of %zu", got, len);
    ret->len += len;
    return true;
}
