/* capture.c - the commands of a capture. */
#include "tools/show/show.h"

/* Reading begins where the first selected command can be, unless earlier commands may be shown as
 * context. */
static bool seek(struct show *show, struct rd_err *err)
{
    struct rebuild_stream *in = &show->capture;
    const struct show_pick *pick = &show->pick;
    struct rd_err why = {0};
    size_t i;
    if (show->before > 0 || in->list.n == 0)
        return true;
    if (pick->from_ms != INT64_MIN)
        return repl_capture_reader_seek_time(in->reader, rebuild_stream_us(pick->from_ms), err);
    if (pick->from_text == NULL || !rebuild_stream_segment(in, &pick->from, &i, &why))
        return true; /* from the oldest segment on */
    if (rebuild_stream_seek(in, &pick->from, &why) || show->follow)
        return true;
    rd_err_adopt(err, &why);
    return false;
}

static bool find_places(struct show *show, struct rd_err *err)
{
    struct show_pick *pick = &show->pick;
    const struct rebuild_stream *in = &show->capture;
    return (pick->from_text == NULL ||
            rebuild_stream_place(in, pick->from_text, &pick->from, err)) &&
           (pick->until_text == NULL ||
            rebuild_stream_place(in, pick->until_text, &pick->until, err)) &&
           seek(show, err);
}

static bool put_chapter(struct show *show, const struct repl_capture_segment *segment,
                        struct rd_err *err)
{
    if (!show_put_notes(show))
        return true;
    rd_buf_reset(&show->line);
    if (!show_line_chapter(&show->line, segment, show->form.json))
        return rd_err_nomem(err, show->line.len);
    show_put_line(show);
    return true;
}

static bool put_command(struct show *show, const struct repl_capture_event *ev, struct rd_err *err)
{
    const struct show_item item = {
        .command = &ev->command,
        .index = (size_t)ev->segment->chapter,
        .offset = ev->offset,
        .len = ev->bytes.len,
        .db = ev->place.db,
        .in_multi = ev->place.in_multi,
        .time_us = ev->time_us,
    };
    return show_put_item(show, &item, err);
}

/* Positions increase: after the last selected command only its context can follow. */
static bool is_over(const struct show *show, const struct repl_capture_event *ev, uint64_t offset)
{
    const struct show_pick *pick = &show->pick;
    return pick->until_text != NULL && show->owed == 0 &&
           rebuild_place_compare(&pick->until, (size_t)ev->segment->chapter, offset) > 0;
}

static bool put_event(struct show *show, const struct repl_capture_event *ev, struct rd_err *err)
{
    return ev->kind == REPL_CAPTURE_CHAPTER ? put_chapter(show, ev->segment, err)
                                            : put_command(show, ev, err);
}

static bool read_all(struct show *show, struct rd_err *err)
{
    struct repl_capture_event ev;
    enum repl_capture_status status;
    for (;;) {
        if (!rebuild_stream_next(&show->capture, &ev, &status, err)) {
            if (status != REPL_CAPTURE_MORE)
                return status == REPL_CAPTURE_END;
            if (!show_put_caught_up(show, err))
                return false;
            show_follow_pause();
        } else if (is_over(show, &ev, ev.offset)) {
            return true;
        } else if (!put_event(show, &ev, err)) {
            return false;
        } else if (ev.kind == REPL_CAPTURE_COMMAND &&
                   is_over(show, &ev, ev.offset + ev.bytes.len)) {
            return true; /* the rest may be damaged or missing */
        }
    }
}

bool show_capture(struct show *show, struct rd_err *err)
{
    bool ok = rebuild_stream_open(&show->capture, show->path, show->follow, err) &&
              find_places(show, err) && read_all(show, err);
    rebuild_stream_close(&show->capture);
    return ok;
}
