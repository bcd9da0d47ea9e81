/* A capture as the data set at an offset, or a time: the snapshot on which that place rests, and
 * the stream after it. The data set at offset N is what a replica holds that has taken N bytes of
 * the history: whole commands alone, and whole transactions. */
#include "rdb/reader.h"
#include "base/time.h"
#include "rebuild/rebuild_impl.h"

#include <inttypes.h>
#include <stdio.h>

/* The end, and the segment that contains it. */
static bool find_end(struct rebuild_run *run, size_t *ret, struct rd_err *err)
{
    const struct rebuild_stream *in = &run->capture;
    if (run->has_until)
        return rebuild_stream_place(in, run->opts->until_offset, &run->until, err) &&
               rebuild_stream_segment(in, &run->until, ret, err);
    if (run->opts->until_ms != INT64_MIN)
        return rebuild_stream_segment_at(in, rebuild_stream_us(run->opts->until_ms), ret, err);
    *ret = in->list.n - 1;
    return true;
}

static bool find_skips(struct rebuild_run *run, struct rd_err *err)
{
    for (size_t i = 0; i < run->opts->n_skip; i++)
        if (!rebuild_stream_place(&run->capture, run->opts->skip[i], &run->skips[i], err))
            return false;
    return true;
}

static bool load_base(struct rebuild_run *run, const struct repl_capture_segment *base,
                      struct rd_err *err)
{
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_PACKED, .updates = true);
    struct rdb_reader *reader;
    struct rd_src *src;
    if (!rebuild_stream_open_snapshot(&run->capture, base, &src, err))
        return false;
    if (run->opts->begin != NULL)
        run->opts->begin(run->opts->ctx, rd_src_origin(src), src, rd_src_size(src));
    bool ok = rdb_reader_new(&reader, src, &opts, err);
    if (ok) {
        ok = rebuild_data_load(&run->data, reader, rd_src_origin(src), NULL, err);
        rdb_reader_free(reader);
    }
    if (run->opts->begin != NULL)
        run->opts->begin(run->opts->ctx, NULL, NULL, 0);
    rd_src_close(src);
    if (ok && base->db >= REBUILD_DATABASES)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "database %" PRIu64, base->db);
    run->data.session.db = (unsigned)base->db;
    return ok;
}

static bool is_after(const struct rebuild_run *run, const struct repl_capture_event *ev)
{
    if (run->opts->until_ms != INT64_MIN && ev->time_us / 1000 > run->opts->until_ms)
        return true;
    return run->has_until && rebuild_place_compare(&run->until, (size_t)ev->segment->chapter,
                                                   ev->offset + ev->bytes.len) > 0;
}

static bool is_there(const struct rebuild_run *run, const struct repl_capture_event *ev,
                     uint64_t end)
{
    return run->has_until && ev->segment->chapter == run->until.index && end == run->until.number;
}

static bool is_skipped(const struct rebuild_run *run, const struct repl_capture_event *ev)
{
    for (size_t i = 0; i < run->opts->n_skip; i++)
        if (run->skips[i].index == ev->segment->chapter && run->skips[i].number == ev->offset)
            return true;
    return false;
}

static bool take_event(struct rebuild_run *run, const struct repl_capture_event *ev,
                       struct rd_err *err)
{
    const struct rebuild_step step = {.command = &ev->command,
                                      .name = run->capture.path,
                                      .offset = ev->offset,
                                      .now_us = ev->time_us};
    if (ev->kind != REPL_CAPTURE_COMMAND || ev->place.kind == REPL_PING ||
        ev->place.kind == REPL_GETACK)
        return true;
    if (!is_skipped(run, ev))
        return rebuild_data_apply(&run->data, &step, err);
    run->data.counts.skipped++;
    return true;
}

/* The requested position must exist: a capture that ends earlier does not have that dataset. */
static bool check_end(const struct rebuild_run *run, uint64_t end, struct rd_err *err)
{
    if (run->has_until && end < run->until.number) {
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "the capture ends at offset %" PRIu64 ", before %" PRIu64, end,
                   run->until.number);
        rd_err_origin(err, run->capture.path);
        return false;
    }
    return rebuild_check_skips(run, err);
}

/* ---- the time ---- */

/* What was captured around the time. */
struct around {
    int64_t last_us; /* of the last command up to it, or of the snapshot */
    int64_t next_us; /* of what came after it; REPL_CAPTURE_NO_TIME: nothing did */
};

static void note_time(struct rebuild_run *run, const struct repl_capture_event *ev,
                      struct around *around)
{
    if (ev->kind != REPL_CAPTURE_COMMAND || run->opts->until_ms == INT64_MIN)
        return;
    if (ev->time_us / 1000 > run->opts->until_ms)
        around->next_us = ev->time_us;
    else
        around->last_us = ev->time_us;
}

static bool refuse_time(const struct rebuild_run *run, const char *why, struct rd_err *err)
{
    char wanted[RD_TIME_MAX];
    rd_time_put(wanted, run->opts->until_ms);
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the data as of %s is not known: %s", wanted, why);
    rd_err_origin(err, run->capture.path);
    return false;
}

static bool refuse_end(const struct rebuild_run *run, const struct around *around,
                       struct rd_err *err)
{
    char last[RD_TIME_MAX], why[RD_ERR_TEXT_MAX];
    rd_time_put(last, around->last_us / 1000 - 1);
    snprintf(why, sizeof why, "the capture ends before; the last known moment is %s", last);
    return refuse_time(run, why, err);
}

static bool refuse_silence(const struct rebuild_run *run, const struct around *around,
                           struct rd_err *err)
{
    char from[RD_TIME_MAX], to[RD_TIME_MAX], why[RD_ERR_TEXT_MAX];
    rd_time_put(from, around->last_us / 1000);
    rd_time_put(to, around->next_us / 1000);
    snprintf(why, sizeof why,
             "nothing was received from %s to %s, and whether there was a connection was not "
             "recorded",
             from, to);
    return refuse_time(run, why, err);
}

/* Only something later proves that everything up to the time was captured. Without a record of
 * interruptions, it must not be much later. */
static bool check_time(struct rebuild_run *run, const struct repl_capture_segment *last,
                       struct around *around, struct rd_err *err)
{
    const struct repl_capture_list *list = &run->capture.list;
    if (run->opts->until_ms == INT64_MIN ||
        (run->stopped && around->next_us == REPL_CAPTURE_NO_TIME)) /* at an offset */
        return true;
    for (size_t i = 0; i < list->n && around->next_us == REPL_CAPTURE_NO_TIME; i++)
        if (list->segments[i].number == last->number + 1)
            around->next_us = list->segments[i].start_us;
    if (around->next_us == REPL_CAPTURE_NO_TIME)
        return refuse_end(run, around, err);
    run->unrecorded = !rebuild_stream_recorded(&run->capture);
    if (run->unrecorded && (around->next_us - around->last_us) / 1000 > REBUILD_SILENCE_MS)
        return refuse_silence(run, around, err);
    return true;
}

/* ---- the whole ---- */

static bool read_stream(struct rebuild_run *run, const struct repl_capture_segment *base,
                        const struct repl_capture_segment *last, struct rd_err *err)
{
    const struct rebuild_place from = {.index = (size_t)base->chapter, .number = base->start};
    struct rebuild_stream *in = &run->capture;
    struct repl_capture_event ev;
    enum repl_capture_status status;
    struct around around = {.last_us = base->start_us, .next_us = REPL_CAPTURE_NO_TIME};
    uint64_t end = base->start;
    if (!rebuild_stream_seek(in, &from, err))
        return false;
    if (run->opts->begin != NULL)
        run->opts->begin(run->opts->ctx, in->path, NULL,
                         last->chapter == base->chapter && last->closed ? last->end - base->start
                                                                        : RD_NO_OFFSET);
    while (rebuild_stream_next(in, &ev, &status, err)) {
        if (ev.segment->number > last->number)
            break;
        end = ev.offset + ev.bytes.len;
        note_time(run, &ev, &around);
        run->stopped = ev.kind == REPL_CAPTURE_COMMAND && is_after(run, &ev);
        if (run->stopped)
            break;
        if (!take_event(run, &ev, err))
            return false;
        if (run->opts->at != NULL && ev.segment->chapter == base->chapter)
            run->opts->at(run->opts->ctx, ev.offset - base->start);
        run->stopped = is_there(run, &ev, end);
        if (run->stopped) /* the rest may be damaged or missing */
            break;
    }
    if (status == REPL_CAPTURE_END)
        end = repl_capture_reader_offset(in->reader);
    return status != REPL_CAPTURE_FAIL && check_end(run, end, err) &&
           check_time(run, last, &around, err);
}

bool rebuild_read_capture(struct rebuild_run *run, const char *path, struct rd_err *err)
{
    struct rebuild_stream *in = &run->capture;
    size_t last, base;
    if (!rebuild_stream_open(in, path, false, err) || !find_end(run, &last, err) ||
        !find_skips(run, err) || !rebuild_stream_base(in, last, &base, err))
        return false;
    return load_base(run, &in->list.segments[base], err) &&
           read_stream(run, &in->list.segments[base], &in->list.segments[last], err);
}
