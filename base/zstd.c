#include "base/zstd.h"

#include "base/mem.h"
#include "base/unpack.h"

#include <zstd.h>
#include <zstd_errors.h>

enum { WINDOW_LOG_MAX = 27 };

struct unzstd {
    struct rd_unpack unpack;
    ZSTD_DCtx *ctx;
};

static enum rd_err_code refused(struct rd_unpack_piece *piece, size_t code)
{
    switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_frameParameter_windowTooLarge:
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
    ZSTD_inBuffer in = {piece->in.ptr, piece->in.len, 0};
    ZSTD_outBuffer out = {piece->out, piece->cap, 0};
    size_t code = ZSTD_decompressStream(z->ctx, &out, &in);
    if (ZSTD_isError(code))
        return refused(piece, code);
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

bool rd_zstd_open_src(struct rd_src **ret, struct rd_src *inner, struct rd_err *err)
{
    static const struct rd_unpack_codec codec = {
        .name = "zstd", .unit = "frame", .decode = decode, .free = free_unzstd};
    struct unzstd *z = rd_calloc(1, sizeof *z);
    if (z == NULL)
        return rd_err_nomem(err, sizeof *z);
    z->ctx = ZSTD_createDCtx();
    if (z->ctx == NULL ||
        ZSTD_isError(ZSTD_DCtx_setParameter(z->ctx, ZSTD_d_windowLogMax, WINDOW_LOG_MAX))) {
        free_unzstd(&z->unpack);
        return rd_err_nomem(err, 0);
    }
    return rd_unpack_open(ret, &z->unpack, &codec, inner, err);
}
