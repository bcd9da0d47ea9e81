#include "base/pump.h"

bool rd_pump(struct rd_src *src, struct rd_sink *sink, void (*tick)(void *ctx), void *ctx,
             struct rd_err *err)
{
    struct rd_slice s;
    enum rd_src_status status;
    while ((status = rd_src_need(src, 1, &s)) == RD_SRC_OK &&
           (sink == NULL || rd_sink_write(sink, s.ptr, s.len))) {
        rd_src_consume(src, s.len);
        if (tick != NULL)
            tick(ctx);
    }
    if (status != RD_SRC_END)
        rd_err_adopt(err, status == RD_SRC_FAIL ? rd_src_err(src) : rd_sink_err(sink));
    return status == RD_SRC_END;
}

bool rd_pump_to_file(struct rd_src *src, const char *path, const struct rd_sink_opts *opts,
                     struct rd_err *err)
{
    struct rd_sink *sink;
    bool opened = rd_sink_open_file(&sink, path, opts, err);
    bool ok = opened && rd_pump(src, sink, NULL, NULL, err);
    rd_src_close(src);
    if (ok)
        return rd_sink_close(sink, err);
    if (opened)
        rd_sink_abort(sink);
    return false;
}

bool rd_pump_to_buf(struct rd_src *src, size_t max, struct rd_buf *buf, struct rd_err *err)
{
    struct rd_slice s;
    enum rd_src_status status;
    while ((status = rd_src_need(src, 1, &s)) == RD_SRC_OK) {
        if (s.len > max)
            return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the file is too large");
        if (!rd_buf_add(buf, s.ptr, s.len))
            return rd_err_nomem(err, s.len);
        rd_src_consume(src, s.len);
        max -= s.len;
    }
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(src));
    return status == RD_SRC_END;
}
