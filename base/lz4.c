#include "base/lz4.h"

#include "base/mem.h"
#include "base/unpack.h"

#include <lz4frame.h>

enum { PIECE_MAX = 64 * 1024, FRAME_HEAD = 7 };

/* On failure the decoder does not report what it has written. It gets as many bytes as it asks for:
 * one block at a time, and the checksum of a frame alone. What it has written before is known. */
struct unlz4 {
    struct rd_unpack unpack;
    LZ4F_dctx *ctx;
    size_t wanted; /* 0: a frame begins */
};

static enum rd_err_code decode(struct rd_unpack *u, struct rd_unpack_piece *piece)
{
    struct unlz4 *z = (struct unlz4 *)u;
    size_t wanted = z->wanted > 0 ? z->wanted : FRAME_HEAD;
    size_t n_in = piece->in.len < wanted ? piece->in.len : wanted, n_out = piece->cap;
    size_t code = LZ4F_decompress(z->ctx, piece->out, &n_out, piece->in.ptr, &n_in, NULL);
    if (LZ4F_isError(code)) {
        piece->what = LZ4F_getErrorName(code);
        return RD_ERR_CORRUPT;
    }
    z->wanted = code;
    piece->n_in = n_in;
    piece->n_out = n_out;
    piece->ended = code == 0;
    return RD_ERR_OK;
}

static void free_unlz4(struct rd_unpack *u)
{
    struct unlz4 *z = (struct unlz4 *)u;
    LZ4F_freeDecompressionContext(z->ctx);
    rd_free(z);
}

bool rd_lz4_open_src(struct rd_src **ret, struct rd_src *inner, struct rd_err *err)
{
    static const struct rd_unpack_codec codec = {
        .name = "lz4", .unit = "frame", .decode = decode, .free = free_unlz4};
    struct unlz4 *z = rd_calloc(1, sizeof *z);
    if (z == NULL)
        return rd_err_nomem(err, sizeof *z);
    if (LZ4F_isError(LZ4F_createDecompressionContext(&z->ctx, LZ4F_VERSION))) {
        rd_free(z);
        return rd_err_nomem(err, 0);
    }
    return rd_unpack_open(ret, &z->unpack, &codec, inner, err);
}

struct enlz4 {
    struct rd_sink *inner;
    LZ4F_cctx *ctx;
    LZ4F_preferences_t prefs;
    bool own;
    bool begun;
    size_t cap;
    uint8_t out[];
};

/* Writes the encoder's output, or reports its error. */
static bool pass_on(struct enlz4 *e, size_t code, struct rd_err *err)
{
    if (LZ4F_isError(code))
        return rd_err_set(err, RD_ERR_MEMORY, RD_NO_OFFSET, "lz4: %s", LZ4F_getErrorName(code));
    if (rd_sink_write(e->inner, e->out, code))
        return true;
    rd_err_adopt(err, rd_sink_err(e->inner));
    return false;
}

static bool begin_frame(struct enlz4 *e, struct rd_err *err)
{
    if (e->begun)
        return true;
    e->begun = true;
    return pass_on(e, LZ4F_compressBegin(e->ctx, e->out, e->cap, &e->prefs), err);
}

static bool enlz4_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct enlz4 *e = impl;
    bool ok = begin_frame(e, err);
    while (ok && len > 0) {
        size_t n = len < PIECE_MAX ? len : PIECE_MAX;
        ok = pass_on(e, LZ4F_compressUpdate(e->ctx, e->out, e->cap, ptr, n, NULL), err);
        ptr += n;
        len -= n;
    }
    return ok;
}

static bool enlz4_sync(void *impl, struct rd_err *err)
{
    struct enlz4 *e = impl;
    if (!begin_frame(e, err) || !pass_on(e, LZ4F_flush(e->ctx, e->out, e->cap, NULL), err))
        return false;
    if (rd_sink_sync(e->inner))
        return true;
    rd_err_adopt(err, rd_sink_err(e->inner));
    return false;
}

static bool enlz4_close(void *impl, bool commit, struct rd_err *err)
{
    struct enlz4 *e = impl;
    bool ok = true;
    if (e->own) {
        ok = commit && begin_frame(e, err) &&
             pass_on(e, LZ4F_compressEnd(e->ctx, e->out, e->cap, NULL), err);
        if (ok)
            ok = rd_sink_close(e->inner, err);
        else
            rd_sink_abort(e->inner);
    }
    LZ4F_freeCompressionContext(e->ctx);
    rd_free(e);
    return ok || !commit;
}

static struct enlz4 *enlz4_new(int level)
{
    LZ4F_preferences_t prefs = {.compressionLevel = level};
    prefs.frameInfo.blockSizeID = LZ4F_max256KB;
    prefs.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
    size_t cap = LZ4F_compressBound(PIECE_MAX, &prefs) + LZ4F_HEADER_SIZE_MAX;
    struct enlz4 *e = rd_calloc(1, sizeof *e + cap);
    if (e == NULL)
        return NULL;
    e->prefs = prefs;
    e->cap = cap;
    if (LZ4F_isError(LZ4F_createCompressionContext(&e->ctx, LZ4F_VERSION))) {
        rd_free(e);
        return NULL;
    }
    return e;
}

bool rd_lz4_open_sink(struct rd_sink **ret, struct rd_sink *inner, int level, struct rd_err *err)
{
    static const struct rd_sink_ops ops = {enlz4_write, enlz4_sync, enlz4_close};
    if (level < 0 || level > RD_LZ4_LEVEL_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "lz4 has no level %d", level);
    struct enlz4 *e = enlz4_new(level);
    if (e == NULL)
        return rd_err_nomem(err, sizeof *e);
    e->inner = inner;
    const struct rd_sink_opts opts = RD_SINK_OPTS(.origin = rd_sink_origin(inner));
    if (!rd_sink_new(ret, &ops, e, &opts, err))
        return false;
    e->own = true;
    return true;
}
