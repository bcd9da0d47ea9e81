#include "base/lz4.h"

#include "base/mem.h"

#include <inttypes.h>
#include <lz4frame.h>

enum { PIECE_MAX = 64 * 1024 };

struct unlz4 {
    struct rd_src *inner;
    LZ4F_dctx *ctx;
    uint64_t out_off; /* decompressed bytes handed out */
    bool own;
    bool in_frame;
    bool any_frame;
    struct rd_err err; /* what the next read reports */
};

static enum rd_src_status unlz4_fail(struct unlz4 *u, enum rd_err_code code, const char *what)
{
    rd_err_set(&u->err, code, u->out_off, "lz4: %s at compressed byte %" PRIu64, what,
               rd_src_offset(u->inner));
    return RD_SRC_FAIL;
}

/* One call of the decoder, also without input, for it may hold back output. `status` is what the
 * inner source said. */
static enum rd_src_status decode_piece(struct unlz4 *u, enum rd_src_status status,
                                       struct rd_slice s, uint8_t *buf, size_t cap, size_t *got)
{
    size_t n_in = s.len, n_out = cap;
    size_t code = LZ4F_decompress(u->ctx, buf, &n_out, s.ptr, &n_in, NULL);
    if (LZ4F_isError(code))
        return unlz4_fail(u, RD_ERR_CORRUPT, LZ4F_getErrorName(code));
    rd_src_consume(u->inner, n_in);
    *got = n_out;
    u->in_frame = code != 0;
    u->any_frame = u->any_frame || code == 0;
    if (code == 0 || n_in > 0 || n_out > 0)
        return RD_SRC_OK;
    if (status == RD_SRC_END)
        return unlz4_fail(u, RD_ERR_TRUNCATED, "input ends inside a frame");
    return status == RD_SRC_MORE ? RD_SRC_MORE : unlz4_fail(u, RD_ERR_CORRUPT, "no progress");
}

static enum rd_src_status unlz4_step(struct unlz4 *u, uint8_t *buf, size_t cap, size_t *got)
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
            return unlz4_fail(u, RD_ERR_TRUNCATED, "input ends before a frame");
        if (!u->in_frame)
            return status;
        s = rd_slice(nothing, 0);
    }
    return decode_piece(u, status, s, buf, cap, got);
}

/* Continues while the inner source has bytes ready, but does not wait for more once there is
 * output. */
static enum rd_src_status unlz4_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                     struct rd_err *err)
{
    struct unlz4 *u = impl;
    enum rd_src_status status = u->err.code == RD_ERR_OK ? RD_SRC_OK : RD_SRC_FAIL;
    size_t have = 0;
    while (status == RD_SRC_OK && have < cap && (have == 0 || rd_src_avail(u->inner) > 0)) {
        size_t got;
        status = unlz4_step(u, buf + have, cap - have, &got);
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

static void unlz4_close(void *impl)
{
    struct unlz4 *u = impl;
    LZ4F_freeDecompressionContext(u->ctx);
    if (u->own)
        rd_src_close(u->inner);
    rd_free(u);
}

bool rd_lz4_open_src(struct rd_src **ret, struct rd_src *inner, struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = unlz4_read, .close = unlz4_close};
    struct unlz4 *u = rd_calloc(1, sizeof *u);
    if (u == NULL)
        return rd_err_nomem(err, sizeof *u);
    u->inner = inner;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&u->ctx, LZ4F_VERSION))) {
        rd_free(u);
        return rd_err_nomem(err, 0);
    }
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = rd_src_origin(inner));
    if (!rd_src_new(ret, &ops, u, &opts, err))
        return false;
    u->own = true;
    return true;
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

/* Passes on what the encoder left in `out`, or its error. */
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
