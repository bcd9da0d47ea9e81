#include "data/stage.h"

#include "base/mem.h"

enum { PIECE = 64 * 1024, SMALL = 512 /* bytes of the smallest window */ };

static bool stage_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct stage *stage = impl;
    if (!stage->spool.open && stage->held.len + len <= STAGE_KEPT)
        return rd_buf_add(&stage->held, ptr, len) || rd_err_nomem(err, len);
    if (stage->held.len > 0 && !spool_append(&stage->spool, stage->held.ptr, stage->held.len, err))
        return false;
    rd_buf_reset(&stage->held);
    return spool_append(&stage->spool, ptr, len, err);
}

static bool stage_close(void *impl, bool commit, struct rd_err *err)
{
    (void)impl;
    (void)commit;
    (void)err;
    return true;
}

bool stage_begin(struct stage *stage, struct rd_sink **ret, struct rd_err *err)
{
    static const struct rd_sink_ops ops = {.write = stage_write, .close = stage_close};
    const struct rd_sink_opts opts = RD_SINK_OPTS(.buffer = PIECE);
    if (stage->sink == NULL && !rd_sink_new(&stage->sink, &ops, stage, &opts, err))
        return false;
    rd_sink_flush(stage->sink);
    rd_buf_reset(&stage->held);
    spool_done(&stage->spool);
    stage->front_len = 0;
    *ret = stage->sink;
    return true;
}

bool stage_end(struct stage *stage, struct rd_err *err)
{
    if (rd_sink_flush(stage->sink))
        return true;
    rd_err_adopt(err, rd_sink_err(stage->sink));
    return false;
}

void stage_put_front(struct stage *stage, struct rd_slice bytes)
{
    memcpy(stage->front, bytes.ptr, bytes.len);
    stage->front_len = bytes.len;
}

static uint64_t size_after(const struct stage *stage)
{
    return stage->spool.open ? stage->spool.size : stage->held.len;
}

uint64_t stage_size(const struct stage *stage)
{
    return stage->front_len + size_after(stage);
}

bool stage_move(const struct stage *stage, struct rd_sink *to, struct rd_err *err)
{
    if (rd_sink_write(to, stage->front, stage->front_len) &&
        rd_sink_write(to, stage->held.ptr, stage->held.len))
        return spool_move(&stage->spool, to, err);
    rd_err_adopt(err, rd_sink_err(to));
    return false;
}

/* ---- as a source ---- */

struct reading {
    const struct stage *stage;
    uint8_t front[1 + STAGE_FRONT];
    size_t front_len;
    uint64_t at; /* in the front and in the rest */
};

static enum rd_src_status reading_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                       struct rd_err *err)
{
    struct reading *r = impl;
    uint64_t size = size_after(r->stage), at = r->at - r->front_len;
    *ret_len = 0;
    if (r->at < r->front_len) {
        size_t left = r->front_len - (size_t)r->at;
        *ret_len = left < cap ? left : cap;
        memcpy(buf, r->front + r->at, *ret_len);
    } else if (at < size) {
        *ret_len = size - at < cap ? (size_t)(size - at) : cap;
        if (!r->stage->spool.open)
            memcpy(buf, r->stage->held.ptr + at, *ret_len);
        else if (!spool_read(&r->stage->spool, at, buf, *ret_len, err))
            return RD_SRC_FAIL;
    }
    r->at += *ret_len;
    return *ret_len > 0 ? RD_SRC_OK : RD_SRC_END;
}

static void reading_close(void *impl)
{
    rd_free(impl);
}

bool stage_source(const struct stage *stage, int first, struct rd_src **ret, struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = reading_read, .close = reading_close};
    uint64_t size = stage_size(stage) + (first >= 0);
    if (!stage->spool.open && first < 0 && stage->front_len == 0)
        return rd_src_open_memory(ret, rd_buf_slice(&stage->held), NULL, err);
    /* Strings of up to a quarter of the window arrive whole. */
    size_t window = size < RD_SRC_WINDOW / 4 ? SMALL + 4 * (size_t)size : RD_SRC_WINDOW;
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = window, .total = size, .sized = true);
    struct reading *r = rd_calloc(1, sizeof *r);
    if (r == NULL)
        return rd_err_nomem(err, sizeof *r);
    r->stage = stage;
    if (first >= 0)
        r->front[r->front_len++] = (uint8_t)first;
    memcpy(r->front + r->front_len, stage->front, stage->front_len);
    r->front_len += stage->front_len;
    return rd_src_new(ret, &ops, r, &opts, err);
}

/* Sinks stay with their stage, because they point to it. */
void stage_swap(struct stage *a, struct stage *b)
{
    struct stage held = *a;
    struct rd_sink *to_b = b->sink;
    *a = *b;
    *b = held;
    a->sink = held.sink;
    b->sink = to_b;
}

void stage_done(struct stage *stage)
{
    rd_sink_abort(stage->sink);
    rd_buf_done(&stage->held);
    spool_done(&stage->spool);
    *stage = (struct stage){0};
}
