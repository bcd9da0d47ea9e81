/* A capture as a tape: the snapshots of its chapters, and its segments. */
#include "base/endian.h"
#include "history/tape_impl.h"

#include <stdio.h>

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
    if (segment->has_snapshot && tape->base == NULL && !add_snapshot(tape, i, err))
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
    part->grows = !segment->closed;
    part->unknown = is_missing_before(&tape->stream.list, i);
    part->segment = i;
    part->about.kind = HISTORY_SEGMENT;
    part->about.size = segment->closed ? segment->size : 0;
    memcpy(part->name, segment->name, sizeof segment->name);
    memcpy(part->about.digest, segment->sha256, sizeof part->about.digest);
    return true;
}

static bool add_base(struct history_tape *tape, struct rd_err *err)
{
    const struct history_base *base = tape->base;
    struct history_part *part = history_tape_add(tape, err);
    if (part == NULL)
        return false;
    part->kind = HISTORY_SNAPSHOT;
    part->chapter = tape->stream.list.segments[0].chapter;
    part->end = base->size;
    part->time_us = base->time_us;
    snprintf(part->name, sizeof part->name, "%s", base->name);
    return true;
}

/* Nothing is missing between the snapshot and the first segment. */
static void begin_at_base(struct history_tape *tape)
{
    struct history_part *first = &tape->parts[1];
    first->unknown = false;
    first->start = tape->base->offset;
}

bool history_tape_open_capture(struct history_tape *tape, struct rd_err *err)
{
    if (tape->base != NULL
            ? !rebuild_stream_open_fs(&tape->stream, &tape->base->fs, tape->path, err)
            : !rebuild_stream_open(&tape->stream, tape->path, false, err))
        return false;
    if (tape->base != NULL && !add_base(tape, err))
        return false;
    for (size_t i = 0; i < tape->stream.list.n; i++)
        if (!add_segment(tape, i, err))
            return false;
    if (tape->base != NULL)
        begin_at_base(tape);
    return true;
}

/* ---- commands ---- */

/* The transaction of a command that comes last in a part. */
struct open_multi {
    uint64_t end;    /* of the part */
    uint64_t offset; /* RD_NO_OFFSET: none is open */
};

static bool note_multi(void *ctx, const struct history_command *command, struct rd_err *err)
{
    struct open_multi *open = ctx;
    (void)err;
    if (command->offset >= open->end)
        return false;
    bool ends = !command->in_multi || command->kind == REPL_EXEC;
    open->offset = ends ? RD_NO_OFFSET : command->multi;
    return true;
}

/* Where the transaction begins in which a segment begins: in the one before, or earlier. */
static bool find_multi(struct history_tape *tape, size_t part, uint64_t *ret, struct rd_err *err)
{
    const struct history_part *p = &tape->parts[part], *before = p - 1;
    struct open_multi open = {.end = p->start, .offset = RD_NO_OFFSET};
    bool follows = part > 0 && before->kind == HISTORY_SEGMENT && before->chapter == p->chapter &&
                   before->end == p->start;
    bool ok = !follows || history_tape_read_capture(tape, part - 1, NULL, note_multi, &open, err) ||
              err->code == RD_ERR_OK;
    *ret = open.offset;
    return ok;
}

/* The transaction in which reading begins. A span before the part is read from its beginning on. */
static bool begin_multi(struct history_tape *tape, size_t part, const struct history_span *span,
                        struct history_multi *ret, struct rd_err *err)
{
    const struct history_part *p = &tape->parts[part];
    const struct repl_capture_segment *segment = &tape->stream.list.segments[p->segment];
    bool whole = span == NULL || span->offset < p->start;
    ret->offset = whole ? RD_NO_OFFSET : span->multi;
    ret->open = whole ? segment->in_multi && segment->start == p->start
                      : (span->flags & HISTORY_SPAN_IN_MULTI) != 0;
    return !ret->open || ret->offset != RD_NO_OFFSET || find_multi(tape, part, &ret->offset, err);
}

struct history_command history_command_of(const struct repl_capture_event *ev, size_t part,
                                          struct history_multi *multi)
{
    if (!multi->open && ev->place.in_multi)
        multi->offset =
            ev->place.multi; /* later, in the next segment, the reader has forgotten it */
    multi->open = ev->place.in_multi && ev->place.kind != REPL_EXEC;
    return (struct history_command){.part = part,
                                    .offset = ev->offset,
                                    .len = ev->bytes.len,
                                    .time_us = ev->time_us,
                                    .db = ev->place.db,
                                    .kind = ev->place.kind,
                                    .in_multi = ev->place.in_multi,
                                    .multi = multi->offset,
                                    .line = &ev->command};
}

struct reading {
    struct history_tape *tape;
    size_t part;
    uint64_t end;    /* of the span */
    bool to_the_end; /* of the part */
    bool inside;     /* a transaction that began in the span is open */
    struct history_multi multi;
};

/* Whether nothing more of the span can come: the next segment need not be opened to know that. */
static bool is_read(const struct reading *in, uint64_t upto)
{
    const struct history_part *p = &in->tape->parts[in->part];
    return !in->inside && p->fixed && (upto >= p->end || upto >= in->end);
}

static bool is_after(const struct reading *in, const struct repl_capture_event *ev)
{
    const struct history_part *p = &in->tape->parts[in->part];
    const struct repl_capture_segment *segment = &in->tape->stream.list.segments[p->segment];
    return ev->segment->chapter != p->chapter ||
           (in->to_the_end && !in->inside && ev->segment->number > segment->number);
}

static bool read_commands(struct reading *in, history_command_fn each, void *ctx,
                          struct rd_err *err)
{
    struct repl_capture_event ev;
    enum repl_capture_status status;
    while (rebuild_stream_next(&in->tape->stream, &ev, &status, err)) {
        bool after = is_after(in, &ev);
        if (ev.kind != REPL_CAPTURE_COMMAND && !after)
            continue;
        if (after || (ev.offset >= in->end && !in->inside))
            return true;
        const struct history_command command = history_command_of(&ev, in->part, &in->multi);
        if (!each(ctx, &command, err))
            return false;
        in->inside = in->multi.open;
        if (is_read(in, ev.offset + ev.bytes.len))
            return true;
    }
    return status != REPL_CAPTURE_FAIL;
}

bool history_tape_read_capture(struct history_tape *tape, size_t part,
                               const struct history_span *span, history_command_fn each, void *ctx,
                               struct rd_err *err)
{
    const struct history_part *p = &tape->parts[part];
    const struct repl_capture_segment *segment = &tape->stream.list.segments[p->segment];
    struct reading in = {.tape = tape, .part = part, .end = span != NULL ? span->end : p->end};
    uint64_t from = span != NULL && span->offset > p->start ? span->offset : p->start;
    in.to_the_end = span == NULL || in.end == RD_NO_OFFSET;
    if (p->fixed && (p->start == p->end || in.end <= p->start))
        return true;
    if (!begin_multi(tape, part, span, &in.multi, err))
        return false;
    in.inside = span != NULL && in.multi.open;
    if (repl_capture_reader_seek_in(tape->stream.reader, segment, from, err))
        return read_commands(&in, each, ctx, err);
    rd_err_origin(err, tape->path);
    return false;
}

/* ---- marks ---- */

void history_tape_mark(const struct history_tape *tape, uint8_t ret[HISTORY_DIGEST])
{
    struct repl_capture_mark mark;
    repl_capture_reader_mark(tape->stream.reader, &mark);
    rd_put_le64(ret, mark.seed);
    rd_put_le64(ret + 8, mark.at);
    rd_put_le64(ret + 16, mark.offset);
    rd_put_le64(ret + 24, mark.crc);
}

bool history_tape_has_mark(const struct history_tape *tape, size_t part,
                           const uint8_t mark[HISTORY_DIGEST])
{
    const struct repl_capture_mark there = {rd_get_le64(mark), rd_get_le64(mark + 8),
                                            rd_get_le64(mark + 16), rd_get_le64(mark + 24)};
    return repl_capture_mark_is_there(
        &there, &tape->stream.list.segments[tape->parts[part].segment], &tape->stream.fs);
}

uint64_t history_tape_after_mark(const struct history_tape *tape, size_t part,
                                 const uint8_t mark[HISTORY_DIGEST])
{
    uint64_t size = tape->stream.list.segments[tape->parts[part].segment].size;
    uint64_t at = rd_get_le64(mark + 8);
    return size > at ? size - at : 0;
}
