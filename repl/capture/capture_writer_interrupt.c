/* Interruptions: times in which the stream was not received as the master wrote it. */
#include "repl/capture/writer_impl.h"

static int64_t min_us(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max_us(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Of the last command, or the beginning of the segment. */
static int64_t last_us(const struct repl_capture_writer *w)
{
    return w->last_us != REPL_CAPTURE_NO_TIME ? w->last_us : w->seg.start_us;
}

/* ---- segments ---- */

void repl_capture_interrupt_segment(struct repl_capture_writer *w, struct repl_capture_segment *seg)
{
    seg->recorded = w->opts.recorded;
    seg->interrupted = w->due || w->late;
    if (w->due)
        seg->since_us = w->since_us;
    if (seg->interrupted)
        seg->until_us = w->late ? REPL_CAPTURE_NEVER : w->until_us;
    w->due = w->fixed = false;
}

void repl_capture_interrupt_chapter(struct repl_capture_writer *w)
{
    bool set = w->due && w->fixed;
    w->seg.recorded = w->seg.interrupted = w->late = w->opts.recorded;
    w->seg.since_us = set ? min_us(w->since_us, w->seg.start_us) : w->seg.start_us;
    w->until_us = set ? max_us(w->until_us, w->seg.start_us) : w->seg.start_us;
    w->seg.until_us = REPL_CAPTURE_NEVER;
    w->due = w->fixed = w->in_time = false;
}

void repl_capture_interrupt_resume(struct repl_capture_writer *w)
{
    const struct repl_capture_segment *seg = &w->seg;
    if (seg->closed)
        w->last_us = seg->last_us;
    if (!w->opts.recorded)
        return;
    w->late = true;
    w->until_us = REPL_CAPTURE_NO_TIME;
    if (seg->interrupted && seg->until_us == REPL_CAPTURE_NEVER) {
        w->since_us = seg->since_us;
        w->due = w->fd < 0;
        return;
    }
    w->since_us = last_us(w);
    w->due = true;
}

/* A segment without a block is made again: its header does not have the interruption. */
static bool discard(struct repl_capture_writer *w)
{
    w->fs.close(w->fs.ctx, w->fd);
    w->fd = -1;
    if (!repl_capture_unlink(w, w->seg.name))
        return false;
    w->seg.number--;
    return true;
}

bool repl_capture_interrupt_split(struct repl_capture_writer *w)
{
    if (!w->due || w->fd < 0 || w->inside || w->syncing)
        return true;
    if (w->n_blocks > 0)
        return repl_capture_segment_close(w);
    return w->seg.begins || discard(w);
}

int64_t repl_capture_writer_last_us(const struct repl_capture_writer *w)
{
    return w->has_segment ? last_us(w) : REPL_CAPTURE_NO_TIME;
}

/* ---- reports ---- */

/* What was appended before came in time, and is written first. */
static bool is_recorded(struct repl_capture_writer *w, bool *ret, struct rd_err *err)
{
    *ret = w->opts.recorded && w->has_segment;
    return repl_capture_alive(w, err) && (!*ret || repl_capture_writer_flush(w, err));
}

/* The next segment has this interruption, together with one that continues. */
static void widen(struct repl_capture_writer *w, int64_t since_us, int64_t until_us)
{
    if (w->due || w->late) {
        since_us = min_us(since_us, w->due ? w->since_us : w->seg.since_us);
        until_us = max_us(until_us, w->until_us);
    }
    w->since_us = since_us;
    w->until_us = until_us;
    w->due = true;
}

/* Whether the interruption of the current segment continues: nothing was written since it ended. */
static bool goes_on(const struct repl_capture_writer *w, int64_t since_us)
{
    return !w->due && w->seg.interrupted && since_us >= w->seg.since_us &&
           (w->late || (w->fd >= 0 && w->n_blocks == 0));
}

bool repl_capture_writer_interrupted(struct repl_capture_writer *w, int64_t since_us,
                                     int64_t now_us, struct rd_err *err)
{
    bool recorded;
    if (!is_recorded(w, &recorded, err))
        return false;
    if (!recorded)
        return true;
    if (since_us == REPL_CAPTURE_NO_TIME)
        since_us = last_us(w);
    int64_t from_us = min_us(since_us, now_us), to_us = max_us(since_us, now_us);
    if (goes_on(w, from_us)) {
        w->until_us = max_us(w->until_us, to_us);
        w->seg.until_us = REPL_CAPTURE_NEVER;
        w->in_time = false;
    } else {
        widen(w, from_us, to_us);
    }
    w->late = true;
    return true;
}

bool repl_capture_writer_in_time(struct repl_capture_writer *w, int64_t now_us, struct rd_err *err)
{
    bool recorded;
    if (!is_recorded(w, &recorded, err))
        return false;
    if (!recorded || !w->late)
        return true;
    w->late = false;
    w->until_us = max_us(w->until_us, now_us);
    if (w->due) {
        /* Part of a command may have come late. */
        w->due = w->fixed || w->len > 0;
        return true;
    }
    w->seg.until_us = w->until_us;
    w->in_time = w->fd >= 0 && w->seg.interrupted;
    return true;
}

bool repl_capture_writer_clock(struct repl_capture_writer *w, int64_t before_us, int64_t now_us,
                               struct rd_err *err)
{
    bool recorded;
    if (!is_recorded(w, &recorded, err))
        return false;
    if (!recorded)
        return true;
    widen(w, min_us(before_us, now_us), max_us(before_us, now_us));
    w->fixed = true;
    return true;
}
