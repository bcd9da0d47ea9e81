#include "base/sink_impl.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/crc64.h"
#include "base/mem.h"
#include "base/sized.h"

enum { BUF_SINK_BUFFER = 4096 };

/* Adds the bytes written since the last call to the checksum. */
static void settle_sum(struct rd_sink *sink)
{
    if (sink->state->sum && sink->cur > sink->state->summed)
        sink->state->crc = rd_crc64(sink->state->crc, sink->state->summed,
                                    (size_t)(sink->cur - sink->state->summed));
    sink->state->summed = sink->cur;
}

static bool nomem(size_t size, const struct rd_sink_opts *opts, struct rd_err *err)
{
    rd_err_nomem(err, size);
    rd_err_origin(err, opts->origin);
    return false;
}

bool rd_sink_new(struct rd_sink **ret, const struct rd_sink_ops *ops, void *impl,
                 const struct rd_sink_opts *opts, struct rd_err *err)
{
    struct rd_sink_opts own;
    if (!rd_sized_copy(&own, sizeof own, opts, err)) {
        ops->close(impl, false, NULL);
        return false;
    }
    size_t size = own.buffer > 0 ? own.buffer : RD_SINK_BUFFER;
    struct whole {
        struct rd_sink sink;
        struct rd_sink_state state;
    } *whole = rd_calloc(1, sizeof *whole);
    uint8_t *buf = rd_alloc(size);
    if (whole == NULL || buf == NULL) {
        rd_free(whole);
        rd_free(buf);
        ops->close(impl, false, NULL);
        return nomem(size, &own, err);
    }
    struct rd_sink *sink = &whole->sink;
    sink->state = &whole->state;
    sink->state->ops = ops;
    sink->state->impl = impl;
    sink->buf = sink->cur = sink->state->summed = buf;
    sink->end = buf + size;
    if (own.origin != NULL)
        snprintf(sink->state->origin, sizeof sink->state->origin, "%s", own.origin);
    *ret = sink;
    return true;
}

const struct rd_err *rd_sink_err(const struct rd_sink *sink)
{
    return &sink->state->err;
}

const char *rd_sink_origin(const struct rd_sink *sink)
{
    return sink->state->origin;
}

/* The failure persists: without room in the buffer, every later write takes the slow path. */
static bool fail(struct rd_sink *sink)
{
    rd_err_set(&sink->state->err, RD_ERR_IO, RD_NO_OFFSET, "cannot write");
    rd_err_origin(&sink->state->err, sink->state->origin);
    sink->failed = true;
    sink->cur = sink->end = sink->state->summed = sink->buf;
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
    if (!sink->state->ops->write(sink->state->impl, sink->buf, len, &sink->state->err))
        return fail(sink);
    sink->flushed += len;
    sink->cur = sink->state->summed = sink->buf;
    return true;
}

bool rd_sink_sync(struct rd_sink *sink)
{
    if (!rd_sink_flush(sink))
        return false;
    if (sink->state->ops->sync != NULL &&
        !sink->state->ops->sync(sink->state->impl, &sink->state->err))
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
    if (sink->state->sum)
        sink->state->crc = rd_crc64(sink->state->crc, ptr, len);
    if (!sink->state->ops->write(sink->state->impl, ptr, len, &sink->state->err))
        return fail(sink);
    sink->flushed += len;
    return true;
}

void rd_sink_sum_begin(struct rd_sink *sink, uint64_t crc)
{
    if (sink->state->summer != NULL) {
        if (rd_sink_flush(sink))
            sink->state->summer->begin(sink->state->impl, crc);
        return;
    }
    sink->state->crc = crc;
    sink->state->summed = sink->cur;
    sink->state->sum = true;
}

uint64_t rd_sink_sum(struct rd_sink *sink)
{
    if (sink->state->summer != NULL)
        return rd_sink_flush(sink) ? sink->state->summer->sum(sink->state->impl) : 0;
    settle_sum(sink);
    return sink->state->crc;
}

bool rd_sink_close(struct rd_sink *sink, struct rd_err *err)
{
    bool ok = rd_sink_flush(sink);
    if (!sink->state->ops->close(sink->state->impl, ok, &sink->state->err) && ok)
        ok = fail(sink);
    rd_err_adopt(err, &sink->state->err);
    rd_free(sink->buf);
    rd_free(sink);
    return ok;
}

void rd_sink_abort(struct rd_sink *sink)
{
    if (sink == NULL)
        return;
    sink->state->ops->close(sink->state->impl, false, NULL);
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
    struct rd_sink_opts sized;
    if (!rd_sized_copy(&sized, sizeof sized, opts, err))
        return false;
    if (sized.buffer == 0)
        sized.buffer = BUF_SINK_BUFFER;
    struct appender *appender = rd_alloc(sizeof *appender);
    if (appender == NULL)
        return nomem(sizeof *appender, &sized, err);
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
