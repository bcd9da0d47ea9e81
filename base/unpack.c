#include "base/unpack.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum rd_src_status rd_unpack_fail(struct rd_unpack *u, enum rd_err_code code, uint64_t out_off,
                                  const char *fmt, ...)
{
    char what[RD_ERR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    rd_err_set(&u->err, code, out_off, "%s: %.120s at compressed byte %" PRIu64, u->codec->name,
               what, rd_src_offset(u->inner));
    return RD_SRC_FAIL;
}

/* One call of the codec. `status` is that of the inner source, from which `s` comes. */
static enum rd_src_status decode_piece(struct rd_unpack *u, enum rd_src_status status,
                                       struct rd_slice s, uint8_t *buf, size_t cap, size_t *got)
{
    struct rd_unpack_piece piece = {.in = s, .out = buf, .cap = cap};
    enum rd_err_code code = u->codec->decode(u, &piece);
    rd_src_consume(u->inner, piece.n_in);
    *got = piece.n_out;
    if (code != RD_ERR_OK)
        return rd_unpack_fail(u, code, u->out_off + piece.n_out, "%s", piece.what);
    u->in_frame = !piece.ended;
    u->any_frame = u->any_frame || piece.ended;
    if (piece.ended || piece.n_in > 0 || piece.n_out > 0)
        return RD_SRC_OK;
    if (status == RD_SRC_END)
        return rd_unpack_fail(u, RD_ERR_TRUNCATED, u->out_off, "input ends inside a %s",
                              u->codec->unit);
    return status == RD_SRC_MORE ? RD_SRC_MORE
                                 : rd_unpack_fail(u, RD_ERR_CORRUPT, u->out_off, "no progress");
}

static enum rd_src_status step(struct rd_unpack *u, uint8_t *buf, size_t cap, size_t *got)
{
    static const uint8_t nothing[1];
    struct rd_slice s = {0};
    *got = 0;
    enum rd_src_status status = rd_src_need(u->inner, 1, &s);
    if (status == RD_SRC_FAIL) {
        rd_err_adopt(&u->err, rd_src_err(u->inner));
        return RD_SRC_FAIL;
    }
    if (!u->in_frame) {
        if (status == RD_SRC_END && !u->any_frame)
            return rd_unpack_fail(u, RD_ERR_TRUNCATED, u->out_off, "input ends before a %s",
                                  u->codec->unit);
        if (status != RD_SRC_OK)
            return status;
        if (u->codec->begin != NULL)
            return u->codec->begin(u, s);
    }
    return decode_piece(u, status, status == RD_SRC_OK ? s : rd_slice(nothing, 0), buf, cap, got);
}

/* Continues while the inner source has bytes ready, but does not wait for more once there is
 * output. */
static enum rd_src_status unpack_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                      struct rd_err *err)
{
    struct rd_unpack *u = impl;
    enum rd_src_status status = u->err.code == RD_ERR_OK ? RD_SRC_OK : RD_SRC_FAIL;
    size_t have = 0;
    while (status == RD_SRC_OK && have < cap && (have == 0 || rd_src_avail(u->inner) > 0)) {
        size_t got;
        status = step(u, buf + have, cap - have, &got);
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

static void unpack_close(void *impl)
{
    struct rd_unpack *u = impl;
    struct rd_src *inner = u->own ? u->inner : NULL;
    u->codec->free(u);
    rd_src_close(inner);
}

bool rd_unpack_open(struct rd_src **ret, struct rd_unpack *u, const struct rd_unpack_codec *codec,
                    struct rd_src *inner, struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = unpack_read, .close = unpack_close};
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = rd_src_origin(inner));
    u->codec = codec;
    u->inner = inner;
    if (!rd_src_new(ret, &ops, u, &opts, err))
        return false;
    u->own = true;
    return true;
}
