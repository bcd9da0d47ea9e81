#include "base/zlib.h"

#include "base/mem.h"

#include <inttypes.h>

#define ZLIB_CONST
#include <zlib.h>

enum {
    GZIP_ONLY = 15 + 16, /* window of 32 KiB, gzip header and trailer */
    PIECE_MAX = 1 << 30, /* zlib counts in unsigned int */
    OUT_SIZE = 64 * 1024,
    MEM_LEVEL = 8,
};

static void *zlib_alloc(void *ctx, unsigned n, unsigned size)
{
    (void)ctx;
    return rd_calloc(n, size);
}

static void zlib_free(void *ctx, void *ptr)
{
    (void)ctx;
    rd_free(ptr);
}

struct gunzip {
    struct rd_src *inner;
    z_stream z;
    uint64_t out_off; /* decompressed bytes handed out */
    bool own;
    bool in_member;
    bool any_member;
    bool padding;
    struct rd_err err; /* what the next read reports */
};

static enum rd_src_status gunzip_fail(struct gunzip *g, enum rd_err_code code, uint64_t out_off,
                                      const char *what)
{
    rd_err_set(&g->err, code, out_off, "gzip: %s at compressed byte %" PRIu64, what,
               rd_src_offset(g->inner));
    return RD_SRC_FAIL;
}

/* Between members: s holds at least one byte. */
static enum rd_src_status begin_member(struct gunzip *g, struct rd_slice s)
{
    if (g->any_member && s.ptr[0] == 0) {
        size_t n = 0;
        while (n < s.len && s.ptr[n] == 0)
            n++;
        rd_src_consume(g->inner, n);
        g->padding = true;
        return RD_SRC_OK;
    }
    if (g->padding)
        return gunzip_fail(g, RD_ERR_CORRUPT, g->out_off, "bytes after the padding");
    inflateReset(&g->z);
    g->in_member = true;
    return RD_SRC_OK;
}

/* One call of inflate, also without input, for zlib may hold back output. `status` is what the
 * inner source said. */
static enum rd_src_status inflate_piece(struct gunzip *g, enum rd_src_status status,
                                        struct rd_slice s, uint8_t *buf, size_t cap, size_t *got)
{
    unsigned n_in = s.len < PIECE_MAX ? (unsigned)s.len : PIECE_MAX;
    unsigned n_out = cap < PIECE_MAX ? (unsigned)cap : PIECE_MAX;
    g->z.next_in = s.ptr;
    g->z.avail_in = n_in;
    g->z.next_out = buf;
    g->z.avail_out = n_out;
    int code = inflate(&g->z, Z_NO_FLUSH);
    *got = n_out - g->z.avail_out;
    rd_src_consume(g->inner, n_in - g->z.avail_in);
    uint64_t out_off = g->out_off + *got;
    if (code == Z_STREAM_END) {
        g->in_member = false;
        g->any_member = true;
        return RD_SRC_OK;
    }
    if (code == Z_MEM_ERROR) {
        rd_err_nomem(&g->err, 0);
        return RD_SRC_FAIL;
    }
    if (code != Z_OK && code != Z_BUF_ERROR)
        return gunzip_fail(g, RD_ERR_CORRUPT, out_off,
                           g->z.msg != NULL ? g->z.msg : "preset dictionary");
    if (*got > 0 || g->z.avail_in < n_in)
        return RD_SRC_OK;
    if (status == RD_SRC_END)
        return gunzip_fail(g, RD_ERR_TRUNCATED, out_off, "input ends inside a member");
    return status == RD_SRC_MORE ? RD_SRC_MORE
                                 : gunzip_fail(g, RD_ERR_CORRUPT, out_off, "no progress");
}

static enum rd_src_status gunzip_step(struct gunzip *g, uint8_t *buf, size_t cap, size_t *got)
{
    struct rd_slice s = {0};
    *got = 0;
    enum rd_src_status status = rd_src_need(g->inner, 1, &s);
    if (status == RD_SRC_FAIL) {
        rd_err_adopt(&g->err, rd_src_err(g->inner));
        return RD_SRC_FAIL;
    }
    if (g->in_member)
        return inflate_piece(g, status, s, buf, cap, got);
    if (status == RD_SRC_END && !g->any_member)
        return gunzip_fail(g, RD_ERR_TRUNCATED, g->out_off, "input ends before a member");
    return status == RD_SRC_OK ? begin_member(g, s) : status;
}

/* Goes on while the inner source has bytes at hand, but does not wait for more once there is
 * output. */
static enum rd_src_status gunzip_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                      struct rd_err *err)
{
    struct gunzip *g = impl;
    enum rd_src_status status = g->err.code == RD_ERR_OK ? RD_SRC_OK : RD_SRC_FAIL;
    size_t have = 0;
    while (status == RD_SRC_OK && have < cap && (have == 0 || rd_src_avail(g->inner) > 0)) {
        size_t got;
        status = gunzip_step(g, buf + have, cap - have, &got);
        have += got;
        g->out_off += got;
    }
    *ret_len = have;
    if (have > 0)
        return RD_SRC_OK;
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, &g->err);
    return status;
}

static void gunzip_close(void *impl)
{
    struct gunzip *g = impl;
    inflateEnd(&g->z);
    if (g->own)
        rd_src_close(g->inner);
    rd_free(g);
}

bool rd_zlib_open_src(struct rd_src **ret, struct rd_src *inner, struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = gunzip_read, .close = gunzip_close};
    struct gunzip *g = rd_calloc(1, sizeof *g);
    if (g == NULL)
        return rd_err_nomem(err, sizeof *g);
    g->inner = inner;
    g->z.zalloc = zlib_alloc;
    g->z.zfree = zlib_free;
    if (inflateInit2(&g->z, GZIP_ONLY) != Z_OK) {
        rd_free(g);
        return rd_err_nomem(err, 0);
    }
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = rd_src_origin(inner));
    if (!rd_src_new(ret, &ops, g, &opts, err))
        return false;
    g->own = true;
    return true;
}

struct gzip {
    struct rd_sink *inner;
    z_stream z;
    bool own;
    uint8_t out[OUT_SIZE];
};

static bool deflate_all(struct gzip *g, int flush, struct rd_err *err)
{
    do {
        g->z.next_out = g->out;
        g->z.avail_out = OUT_SIZE;
        if (deflate(&g->z, flush) == Z_STREAM_ERROR)
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "gzip: stream is ended");
        if (!rd_sink_write(g->inner, g->out, OUT_SIZE - g->z.avail_out)) {
            rd_err_adopt(err, rd_sink_err(g->inner));
            return false;
        }
    } while (g->z.avail_out == 0);
    return true;
}

static bool gzip_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct gzip *g = impl;
    while (len > 0) {
        unsigned n = len < PIECE_MAX ? (unsigned)len : PIECE_MAX;
        g->z.next_in = ptr;
        g->z.avail_in = n;
        if (!deflate_all(g, Z_NO_FLUSH, err))
            return false;
        ptr += n;
        len -= n;
    }
    return true;
}

static bool gzip_sync(void *impl, struct rd_err *err)
{
    struct gzip *g = impl;
    g->z.avail_in = 0;
    if (!deflate_all(g, Z_SYNC_FLUSH, err))
        return false;
    if (rd_sink_sync(g->inner))
        return true;
    rd_err_adopt(err, rd_sink_err(g->inner));
    return false;
}

static bool gzip_close(void *impl, bool commit, struct rd_err *err)
{
    struct gzip *g = impl;
    bool ok = true;
    if (g->own) {
        g->z.avail_in = 0;
        ok = commit && deflate_all(g, Z_FINISH, err);
        if (ok)
            ok = rd_sink_close(g->inner, err);
        else
            rd_sink_abort(g->inner);
    }
    deflateEnd(&g->z);
    rd_free(g);
    return ok || !commit;
}

bool rd_zlib_open_sink(struct rd_sink **ret, struct rd_sink *inner, int level, struct rd_err *err)
{
    static const struct rd_sink_ops ops = {gzip_write, gzip_sync, gzip_close};
    if (level < 0 || level > RD_ZLIB_LEVEL_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "gzip has no level %d", level);
    struct gzip *g = rd_calloc(1, sizeof *g);
    if (g == NULL)
        return rd_err_nomem(err, sizeof *g);
    g->inner = inner;
    g->z.zalloc = zlib_alloc;
    g->z.zfree = zlib_free;
    if (deflateInit2(&g->z, level == 0 ? RD_ZLIB_LEVEL : level, Z_DEFLATED, GZIP_ONLY, MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        rd_free(g);
        return rd_err_nomem(err, 0);
    }
    const struct rd_sink_opts opts = RD_SINK_OPTS(.origin = rd_sink_origin(inner));
    if (!rd_sink_new(ret, &ops, g, &opts, err))
        return false;
    g->own = true;
    return true;
}
