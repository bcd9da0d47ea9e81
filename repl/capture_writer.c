#include "repl/capture/writer_impl.h"

#include "base/crc64.h"

static uint8_t *data(const struct repl_capture_writer *w)
{
    return w->buf + CAPTURE_BLOCK;
}

/* ---- failing ---- */

bool repl_capture_alive(const struct repl_capture_writer *w, struct rd_err *err)
{
    rd_err_adopt(err, &w->err);
    return w->err.code == RD_ERR_OK;
}

bool repl_capture_done(struct repl_capture_writer *w, bool ok, struct rd_err *err)
{
    if (ok)
        return true;
    /* Opening the capture also truncates torn ends, so a failure here does no harm. */
    if (w->fd >= 0 && w->at > w->whole.at)
        w->fs.truncate(w->fs.ctx, w->fd, w->whole.at);
    rd_err_adopt(err, &w->err);
    return false;
}

/* ---- blocks ---- */

void repl_capture_stream_begin(struct repl_capture_writer *w, uint64_t offset, uint64_t db,
                               bool in_multi)
{
    w->len = w->walked = w->border = w->n_marks = 0;
    w->offset = offset;
    w->inside = false;
    w->db = db;
    w->in_multi = in_multi;
    repl_capture_walk_init(&w->walk, offset, db, in_multi);
}

/* Writes the times of the first n bytes after them. Returns the last time. */
static int64_t put_times(const struct repl_capture_writer *w, size_t n, struct capture_block *block)
{
    uint8_t *dst = data(w) + n;
    const struct capture_mark *m = w->marks;
    int64_t last_us = m[0].time_us;
    block->first_us = block->latest_us = last_us;
    for (size_t i = 1; i < w->n_marks && m[i].at < n; i++) {
        uint64_t step = (uint64_t)m[i].time_us - (uint64_t)m[i - 1].time_us;
        dst += repl_capture_time_put(dst, m[i].at - m[i - 1].at, (int64_t)step);
        last_us = m[i].time_us;
        if (last_us > block->latest_us)
            block->latest_us = last_us;
    }
    block->times_len = (uint32_t)(dst - (data(w) + n));
    return last_us;
}

/* Removes the first n bytes. */
static void shift_marks(struct repl_capture_writer *w, size_t n)
{
    size_t kept = 0, i = w->n_marks;
    while (i > 1 && w->marks[i - 1].at > n)
        i--;
    if (w->len == n) {
        w->n_marks = 0;
        return;
    }
    for (i--; i < w->n_marks; i++) {
        struct capture_mark m = w->marks[i];
        m.at = m.at > n ? m.at - n : 0;
        w->marks[kept++] = m;
    }
    w->n_marks = kept;
}

/* Whether the segment ends before a block of `size` bytes. */
static bool is_full(const struct repl_capture_writer *w, uint64_t size)
{
    uint64_t after = w->at + size + repl_capture_index_size(w);
    if (w->inside || w->syncing || w->n_blocks == 0 || after <= w->opts.segment_size)
        return false;
    return !w->in_multi || w->at / 2 >= w->opts.segment_size;
}

static bool make_room(struct repl_capture_writer *w, uint64_t size)
{
    if (!repl_capture_interrupt_split(w))
        return false;
    if (w->fd >= 0 && is_full(w, size) && !repl_capture_segment_close(w))
        return false;
    if (w->fd >= 0)
        return true;
    repl_capture_segment_next(w, w->marks[0].time_us, &w->seg);
    return repl_capture_segment_create(w) && repl_capture_keep_within(w);
}

static bool write_block(struct repl_capture_writer *w, struct capture_block *block)
{
    size_t body = (size_t)block->len + block->times_len;
    if (!make_room(w, CAPTURE_BLOCK + body))
        return false;
    if (w->in_time && (block->flags & CAPTURE_BEGINS_INSIDE) == 0) {
        block->flags |= CAPTURE_IN_TIME;
        w->in_time = false;
    }
    block->crc = rd_crc64(w->seed, data(w), body);
    repl_capture_block_put(w->buf, block, w->seed);
    repl_capture_segment_index(w, block);
    return repl_capture_segment_write(w, w->buf, CAPTURE_BLOCK + body);
}

/* Writes the first n bytes: up to the border, or a piece of a command. */
static bool emit(struct repl_capture_writer *w, size_t n, uint32_t flags)
{
    size_t rest = w->len - n;
    uint8_t *buf = w->buf;
    struct capture_block block = {
        .flags = flags | (w->inside ? CAPTURE_BEGINS_INSIDE : 0u) |
                 (w->in_multi ? CAPTURE_IN_MULTI : 0u),
        .len = (uint32_t)n,
        .offset = w->offset,
        .synced = w->synced,
        .db = w->db,
    };
    /* The times overwrite the rest of the block. */
    memcpy(w->spare + CAPTURE_BLOCK, data(w) + n, rest);
    int64_t last_us = put_times(w, n, &block);
    if (!write_block(w, &block))
        return false;
    shift_marks(w, n);
    w->last_us = last_us;
    w->buf = w->spare;
    w->spare = buf;
    w->len = rest;
    w->walked -= n;
    w->border = 0;
    w->offset += n;
    w->inside = (flags & CAPTURE_ENDS_INSIDE) != 0;
    if (w->inside)
        return true;
    w->written = w->offset;
    w->db = w->walk.stream.db;
    w->in_multi = w->walk.stream.in_multi;
    w->whole = (struct capture_whole){w->at, w->last_us, w->latest_us};
    return true;
}

static bool emit_whole(struct repl_capture_writer *w)
{
    return w->inside || w->border == 0 || emit(w, w->border, 0);
}

/* ---- the stream ---- */

/* The next bytes arrived at now_us. The time of an incomplete command does not matter. */
static bool mark(struct repl_capture_writer *w, int64_t now_us)
{
    struct capture_mark *last = w->marks + (w->n_marks > 0 ? w->n_marks - 1 : 0);
    if (w->n_marks > 0 && last->time_us == now_us)
        return true;
    if (w->n_marks > 0 && w->border <= last->at) {
        last->time_us = now_us;
        return true;
    }
    if (w->n_marks == CAPTURE_MARKS) {
        if (!emit_whole(w))
            return false;
        return mark(w, now_us);
    }
    w->marks[w->n_marks++] = (struct capture_mark){w->len, now_us};
    return true;
}

static bool walk(struct repl_capture_writer *w)
{
    while (w->walked < w->len) {
        size_t taken;
        enum capture_walk_status st = repl_capture_walk_step(
            &w->walk, data(w) + w->walked, w->len - w->walked, &taken, &w->walk_err);
        if (st == CAPTURE_WALK_FAIL) {
            if (emit_whole(w))
                rd_err_adopt(&w->err, &w->walk_err);
            return false;
        }
        w->walked += taken;
        if (st == CAPTURE_WALK_MORE)
            break;
        w->border = w->walked;
        if (w->inside && !emit(w, w->border, 0))
            return false;
    }
    return true;
}

static bool take_bytes(struct repl_capture_writer *w, struct rd_slice bytes, int64_t now_us)
{
    while (bytes.len > 0) {
        if (!mark(w, now_us))
            return false;
        size_t room = w->opts.block_size - w->len;
        size_t n = bytes.len < room ? bytes.len : room;
        memcpy(data(w) + w->len, bytes.ptr, n);
        w->len += n;
        bytes.ptr += n;
        bytes.len -= n;
        if (!walk(w))
            return false;
        if (w->len < w->opts.block_size)
            continue;
        if (!(w->border > 0 ? emit_whole(w) : emit(w, w->len, CAPTURE_ENDS_INSIDE)))
            return false;
    }
    return true;
}

static bool expects_stream(const struct repl_capture_writer *w, struct rd_err *err)
{
    if (!repl_capture_alive(w, err))
        return false;
    if (!w->has_segment || w->snap.fd >= 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no chapter of the capture has begun");
    return true;
}

bool repl_capture_writer_append(struct repl_capture_writer *w, struct rd_slice bytes,
                                int64_t now_us, struct rd_err *err)
{
    return expects_stream(w, err) && repl_capture_done(w, take_bytes(w, bytes, now_us), err);
}

bool repl_capture_writer_flush(struct repl_capture_writer *w, struct rd_err *err)
{
    return repl_capture_alive(w, err) && repl_capture_done(w, emit_whole(w), err);
}

/* ---- segments and chapters ---- */

bool repl_capture_drop_part(struct repl_capture_writer *w)
{
    if (!emit_whole(w) || (w->inside && w->fd >= 0 && !repl_capture_segment_cut(w)))
        return false;
    repl_capture_stream_begin(w, w->written, w->db, w->in_multi);
    return true;
}

bool repl_capture_end_segment(struct repl_capture_writer *w)
{
    return repl_capture_drop_part(w) && (w->fd < 0 || repl_capture_segment_close(w));
}

bool repl_capture_writer_roll(struct repl_capture_writer *w, struct rd_err *err)
{
    if (!expects_stream(w, err))
        return false;
    bool ok = emit_whole(w);
    if (ok && w->fd >= 0 && !w->inside && w->n_blocks > 0)
        ok = repl_capture_segment_close(w);
    return repl_capture_done(w, ok, err);
}

static bool change_id(struct repl_capture_writer *w, const struct repl_replid *id, int64_t now_us)
{
    struct repl_capture_segment next;
    if (!repl_capture_drop_part(w) || (w->fd >= 0 && !repl_capture_segment_close(w)))
        return false;
    repl_capture_segment_next(w, now_us, &next);
    next.replid2 = next.replid;
    next.offset2 = next.start;
    next.replid = *id;
    next.chapter++;
    next.chapter_start = next.start;
    next.begins = true;
    w->seg = next;
    return repl_capture_segment_create(w) && repl_capture_keep_within(w);
}

bool repl_capture_writer_continue(struct repl_capture_writer *w, const struct repl_replid *id,
                                  int64_t now_us, struct rd_err *err)
{
    if (!repl_capture_alive(w, err))
        return false;
    repl_capture_snapshot_drop(w);
    if (!expects_stream(w, err))
        return false;
    if (id == NULL || repl_replid_eq(id, &w->seg.replid))
        return repl_capture_done(w, repl_capture_drop_part(w), err);
    return repl_capture_done(w, change_id(w, id, now_us), err);
}

static bool begin_bare(struct repl_capture_writer *w, const struct repl_capture_point *at,
                       int64_t now_us)
{
    if (!repl_capture_end_segment(w))
        return false;
    w->seg = (struct repl_capture_segment){.number = w->seg.number + 1,
                                           .start = at->offset,
                                           .start_us = now_us,
                                           .db = at->db,
                                           .in_multi = at->in_multi,
                                           .run = w->opts.run,
                                           .replid = at->replid,
                                           .replid2 = at->replid2,
                                           .offset2 = at->offset2,
                                           .chapter = w->seg.chapter + 1,
                                           .chapter_start = at->offset,
                                           .begins = true};
    repl_capture_stream_begin(w, at->offset, at->db, at->in_multi);
    w->written = w->synced = at->offset;
    return repl_capture_segment_create(w) && repl_capture_keep_within(w);
}

bool repl_capture_writer_bare(struct repl_capture_writer *w, const struct repl_capture_point *at,
                              int64_t now_us, struct rd_err *err)
{
    if (!repl_capture_alive(w, err))
        return false;
    repl_capture_snapshot_drop(w);
    return repl_capture_done(w, begin_bare(w, at, now_us), err);
}
