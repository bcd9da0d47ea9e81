/* A capture as a tape: the snapshots of its chapters, and its segments. */
#include "history/tape_impl.h"

static bool add_snapshot(struct history_tape *tape, size_t i, struct rd_err *err)
{
    const struct repl_capture_segment *segment = &tape->stream.list.segments[i];
    struct history_part *part = history_tape_add(tape, err);
    if (part == NULL)
        return false;
    part->kind = HISTORY_SNAPSHOT;
    part->chapter = segment->chapter;
    part->end = segment->snapshot_size;
    part->time_us = segment->start_us;
    part->fixed = true;
    part->segment = i;
    part->about.kind = HISTORY_SNAPSHOT;
    part->about.size = segment->snapshot_size;
    repl_capture_snapshot_name(segment, part->name);
    memcpy(part->about.digest, segment->snapshot_sha256, sizeof part->about.digest);
    return true;
}

static bool is_missing_before(const struct repl_capture_list *list, size_t i)
{
    const struct repl_capture_segment *segment = &list->segments[i];
    if (segment->has_snapshot)
        return false;
    return i == 0 || !segment->continues || !list->segments[i - 1].closed ||
           list->segments[i - 1].end != segment->start;
}

static bool add_segment(struct history_tape *tape, size_t i, struct rd_err *err)
{
    const struct repl_capture_segment *segment = &tape->stream.list.segments[i];
    if (segment->has_snapshot && !add_snapshot(tape, i, err))
        return false;
    struct history_part *part = history_tape_add(tape, err);
    if (part == NULL)
        return false;
    part->kind = HISTORY_SEGMENT;
    part->chapter = segment->chapter;
    part->start = segment->start;
    part->end = segment->closed ? segment->end : RD_NO_OFFSET;
    part->time_us = segment->start_us;
    part->fixed = segment->closed;
    if (segment->closed && segment->latest_us != REPL_CAPTURE_NO_TIME)
        part->latest_us = segment->latest_us;
    part->unknown = is_missing_before(&tape->stream.list, i);
    part->segment = i;
    part->about.kind = HISTORY_SEGMENT;
    part->about.size = segment->size;
    memcpy(part->name, segment->name, sizeof segment->name);
    memcpy(part->about.digest, segment->sha256, sizeof part->about.digest);
    return true;
}

bool history_tape_open_capture(struct history_tape *tape, struct rd_err *err)
{
    if (!rebuild_stream_open(&tape->stream, tape->path, false, err))
        return false;
    for (size_t i = 0; i < tape->stream.list.n; i++)
        if (!add_segment(tape, i, err))
            return false;
    return true;
}

static bool give(size_t part, const struct repl_capture_event *ev, history_command_fn each,
                 void *ctx, struct rd_err *err)
{
    const struct history_command command = {.part = part,
                                            .offset = ev->offset,
                                            .len = ev->bytes.len,
                                            .time_us = ev->time_us,
                                            .db = ev->place.db,
                                            .kind = ev->place.kind,
                                            .in_multi = ev->place.in_multi,
                                            .multi = ev->place.multi,
                                            .line = &ev->command};
    return each(ctx, &command, err);
}

bool history_tape_read_capture(struct history_tape *tape, size_t part,
                               const struct history_span *span, history_command_fn each, void *ctx,
                               struct rd_err *err)
{
    const struct history_part *p = &tape->parts[part];
    const struct rebuild_place from = {.index = (size_t)p->chapter,
                                       .number = span != NULL ? span->offset : p->start};
    uint64_t end = span != NULL ? span->end : p->end;
    struct repl_capture_event ev;
    enum repl_capture_status status;
    bool in_multi = span != NULL && (span->flags & HISTORY_SPAN_IN_MULTI) != 0;
    if (p->fixed && p->start == p->end)
        return true;
    if (!rebuild_stream_seek(&tape->stream, &from, err))
        return false;
    while (rebuild_stream_next(&tape->stream, &ev, &status, err)) {
        bool is_other = ev.segment->chapter != p->chapter ||
                        (span == NULL && !in_multi &&
                         ev.segment->number > tape->stream.list.segments[p->segment].number);
        if (ev.kind != REPL_CAPTURE_COMMAND && !is_other)
            continue;
        if (is_other || (ev.offset >= end && !in_multi))
            return true;
        if (!give(part, &ev, each, ctx, err))
            return false;
        in_multi = ev.place.in_multi && ev.place.kind != REPL_EXEC;
    }
    return status != REPL_CAPTURE_FAIL;
}
