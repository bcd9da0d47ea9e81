#include "base/sink.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/crc64.h"
#include "base/mem.h"

enum { BUF_SINK_BUFFER = 4096 };

/* Takes what was written since the last time into the checksum. */
static void settle_sum(struct rd_sink *sink)
{
    if (sink->sum && sink->cur > sink->summed)
        sink->crc = rd_crc64(sink->crc, sink->summed, (size_t)(sink->cur - sink->summed));
    sink->summed = sink->cur;
}

static bool nomem(size_t size, const struct rd_sink_opts *opts, struct rd_err *err)
{
    rd_err_nomem(err, size);
    rd_err_origin(err, opts != NULL ? opts->origin : NULL);
    return false;
}

bool rd_sink_new(struct rd_sink **ret, const struct rd_sink_ops *ops, void *impl,
                 const struct rd_sink_opts *opts, struct rd_err *err)
{
    size_t size = opts != NULL && opts->buffer > 0 ? opts->buffer : RD_SINK_BUFFER;
    struct rd_sink *sink = rd_calloc(1, sizeof *sink);
    uint8_t *buf = rd_alloc(size);
    if (sink == NULL || buf == NULL) {
        rd_free(sink);
        rd_free(buf);
        ops->close(impl, false, NULL);
        return nomem(size, opts, err);
    }
    sink->ops = ops;
    sink->impl = impl;
    sink->buf = sink->cur = sink->summed = buf;
    sink->end = buf + size;
    if (opts != NULL && opts->origin != NULL)
        snprintf(sink->origin, sizeof sink->origin, "%s", opts->origin);
    *ret = sink;
    return true;
}

/* Makes the failure stick: without room in the buffer every later write takes the slow path. */
static bool fail(struct rd_sink *sink)
{
    rd_err_set(&sink->err, RD_ERR_IO, RD_NO_OFFSET, "cannot write");
    rd_err_origin(&sink->err, sink->origin);
    sink->failed = true;
    sink->cur = sink->end = sink->summed = sink->buf;
    return false;
}

bool rd_sink_flush(struct rd_sink *sink)
{
    size_t len = (size_t)(sink->cur - sink->buf);
    if (sink->failed)
        return false;
    if (len == 0)
        return true;
    settle_sum(sink);
    if (!sink->ops->write(sink->impl, sink->buf, len, &sink->err))
        return fail(sink);
    sink->flushed += len;
    sink->cur = sink->summed = sink->buf;
    return true;
}

bool rd_sink_sync(struct rd_sink *sink)
{
    if (!rd_sink_flush(sink))
        return false;
    if (sink->ops->sync != NULL && !sink->ops->sync(sink->impl, &sink->err))
        return fail(sink);
    return true;
}

bool rd_sink_write_slow(struct rd_sink *sink, const void *ptr, size_t len)
{
    if (!rd_sink_flush(sink))
        return false;
    if (len < (size_t)(sink->end - sink->buf)) {
        memcpy(sink->cur, ptr, len);
        sink->cur += len;
        return true;
    }
    if (sink->sum)
        sink->crc = rd_crc64(sink->crc, ptr, len);
    if (!sink->ops->write(sink->impl, ptr, len, &sink->err))
        return fail(sink);
    sink->flushed += len;
    return true;
}

void rd_sink_sum_begin(struct rd_sink *sink, uint64_t crc)
{
    if (sink->summer != NULL) {
        if (rd_sink_flush(sink))
            sink->summer->begin(sink->impl, crc);
        return;
    }
    sink->crc = crc;
    sink->summed = sink->cur;
    sink->sum = true;
}

uint64_t rd_sink_sum(struct rd_sink *sink)
{
    if (sink->summer != NULL)
        return rd_sink_flush(sink) ? sink->summer->sum(sink->impl) : 0;
    settle_sum(sink);
    return sink->crc;
}

bool rd_sink_close(struct rd_sink *sink, struct rd_err *err)
{
    bool ok = rd_sink_flush(sink);
    if (!sink->ops->close(sink->impl, ok, &sink->err) && ok)
        ok = fail(sink);
    rd_err_adopt(err, &sink->err);
    rd_free(sink->buf);
    rd_free(sink);
    return ok;
}

void rd_sink_abort(struct rd_sink *sink)
{
    if (sink == NULL)
        return;
    sink->ops->close(sink->impl, false, NULL);
    rd_free(sink->buf);
    rd_free(sink);
}

struct appender {
    struct rd_buf *buf;
    size_t start;
};

static bool appender_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct appender *appender = impl;
    return rd_buf_add(appender->buf, ptr, len) || rd_err_nomem(err, len);
}

static bool appender_close(void *impl, bool commit, struct rd_err *err)
{
    struct appender *appender = impl;
    (void)err;
    if (!commit && appender->buf->len > appender->start)
        appender->buf->len = appender->start;
    rd_free(appender);
    return true;
}

bool rd_sink_open_buf(struct rd_sink **ret, struct rd_buf *buf, const struct rd_sink_opts *opts,
                      struct rd_err *err)
{
    static const struct rd_sink_ops ops = {appender_write, NULL, appender_close};
    struct rd_sink_opts sized = opts != NULL ? *opts : (struct rd_sink_opts){0};
    if (sized.buffer == 0)
        sized.buffer = BUF_SINK_BUFFER;
    struct appender *appender = rd_alloc(sizeof *appender);
    if (appender == NULL)
        return nomem(sizeof *appender, opts, err);
    *appender = (struct appender){.buf = buf, .start = buf->len};
    return rd_sink_new(ret, &ops, appender, &sized, err);
}

static bool null_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    (void)impl, (void)ptr, (void)len, (void)err;
    return true;
}

static bool null_close(void *impl, bool commit, struct rd_err *err)
{
    (void)impl, (void)commit, (void)err;
    return true;
}

bool rd_sink_open_null(struct rd_sink **ret, const struct rd_sink_opts *opts, struct rd_err *err)
{
    static const struct rd_sink_ops ops = {null_write, NULL, null_close};
    return rd_sink_new(ret, &ops, NULL, opts, err);
}
