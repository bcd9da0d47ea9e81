#include "base/zlib.h"

#include "base/mem.h"
#include "base/unpack.h"

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
    struct rd_unpack unpack;
    z_stream z;
    bool padding; /* zeros after a member */
};

static enum rd_src_status begin_member(struct rd_unpack *u, struct rd_slice s)
{
    struct gunzip *g = (struct gunzip *)u;
    if (u->any_frame && s.ptr[0] == 0) {
        size_t n = 0;
        while (n < s.len && s.ptr[n] == 0)
            n++;
        rd_src_consume(u->inner, n);
        g->padding = true;
        return RD_SRC_OK;
    }
    if (g->padding)
        return rd_unpack_fail(u, RD_ERR_CORRUPT, u->out_off, "bytes after the padding");
    inflateReset(&g->z);
    u->in_frame = true;
    return RD_SRC_OK;
}

static enum rd_err_code inflate_piece(struct rd_unpack *u, struct rd_unpack_piece *piece)
{
    struct gunzip *g = (struct gunzip *)u;
    unsigned n_in = piece->in.len < PIECE_MAX ? (unsigned)piece->in.len : PIECE_MAX;
    unsigned n_out = piece->cap < PIECE_MAX ? (unsigned)piece->cap : PIECE_MAX;
    g->z.next_in = piece->in.ptr;
    g->z.avail_in = n_in;
    g->z.next_out = piece->out;
    g->z.avail_out = n_out;
    int code = inflate(&g->z, Z_NO_FLUSH);
    piece->n_in = n_in - g->z.avail_in;
    piece->n_out = n_out - g->z.avail_out;
    piece->ended = code == Z_STREAM_END;
    if (code == Z_OK || code == Z_BUF_ERROR || code == Z_STREAM_END)
        return RD_ERR_OK;
    piece->what = code == Z_MEM_ERROR ? "out of memory"
                  : g->z.msg != NULL  ? g->z.msg
                                      : "preset dictionary";
    return code == Z_MEM_ERROR ? RD_ERR_MEMORY : RD_ERR_CORRUPT;
}

static void free_gunzip(struct rd_unpack *u)
{
    struct gunzip *g = (struct gunzip *)u;
    inflateEnd(&g->z);
    rd_free(g);
}

bool rd_zlib_open_src(struct rd_src **ret, struct rd_src *inner, struct rd_err *err)
{
    static const struct rd_unpack_codec codec = {.name = "gzip",
                                                 .unit = "member",
                                                 .decode = inflate_piece,
                                                 .begin = begin_member,
                                                 .free = free_gunzip};
    struct gunzip *g = rd_calloc(1, sizeof *g);
    if (g == NULL)
        return rd_err_nomem(err, sizeof *g);
    g->z.zalloc = zlib_alloc;
    g->z.zfree = zlib_free;
    if (inflateInit2(&g->z, GZIP_ONLY) != Z_OK) {
        rd_free(g);
        return rd_err_nomem(err, 0);
    }
    return rd_unpack_open(ret, &g->unpack, &codec, inner, err);
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

uint32_t rd_zlib_crc32(uint32_t crc, const void *ptr, size_t len)
{
    return (uint32_t)crc32_z(crc, ptr, len);
}
