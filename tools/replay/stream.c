/* stream.c - sends the commands of the stream, each at its time. */
#include "base/num.h"
#include "tools/input/snapshot_in.h"
#include "tools/replay/replay.h"

#include <inttypes.h>
#include <time.h>

enum { SLEEP_MIN_NS = 1000000 };

uint64_t replay_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- start and end ---- */

static bool has_from(const struct tool_replay *replay)
{
    return replay->from_text != NULL || replay->from_ms != INT64_MIN;
}

/* The start of the transaction that contains a command, found by reading its segment. */
static bool find_multi(struct tool_replay *replay, struct rebuild_place *place, struct rd_err *err)
{
    struct rebuild_stream *in = &replay->in;
    struct rebuild_place at = *place;
    struct repl_capture_event ev;
    enum repl_capture_status status;
    size_t i;
    if (!rebuild_stream_segment(in, place, &i, err))
        return false;
    while (i > 0 && in->list.segments[i].in_multi && !in->list.segments[i].begins)
        i--;
    at.number = in->list.segments[i].start;
    if (!rebuild_stream_seek(in, &at, err))
        return false;
    at = *place;
    while (rebuild_stream_next(in, &ev, &status, err) &&
           (ev.kind != REPL_CAPTURE_COMMAND || ev.offset < at.number))
        if (ev.kind == REPL_CAPTURE_COMMAND && ev.place.kind == REPL_MULTI && !ev.place.stray)
            place->number = ev.offset;
    return status != REPL_CAPTURE_FAIL;
}

/* A transaction is replayed as a whole: a start inside one moves to its MULTI. */
static bool seek(struct tool_replay *replay, struct rd_err *err)
{
    struct rebuild_stream *in = &replay->in;
    struct repl_capture_event ev;
    enum repl_capture_status status;
    if (!(replay->from_text != NULL
              ? rebuild_stream_seek(in, &replay->from, err)
              : repl_capture_reader_seek_time(in->reader, rebuild_stream_us(replay->from_ms), err)))
        return false;
    do
        if (!rebuild_stream_next(in, &ev, &status, err))
            return status == REPL_CAPTURE_END;
    while (ev.kind != REPL_CAPTURE_COMMAND);
    struct rebuild_place at = {.index = (size_t)ev.segment->chapter, .number = ev.offset};
    return (!ev.place.in_multi || ev.place.kind == REPL_MULTI || find_multi(replay, &at, err)) &&
           rebuild_stream_seek(in, &at, err);
}

/* The segment whose snapshot the selected commands are based on. */
static bool find_base(struct tool_replay *replay, struct rd_err *err)
{
    const struct rebuild_stream *in = &replay->in;
    size_t i = in->list.n - 1;
    bool ok = true;
    if (replay->from_text != NULL)
        ok = rebuild_stream_segment(in, &replay->from, &i, err);
    else if (replay->from_ms != INT64_MIN)
        ok = rebuild_stream_segment_at(in, rebuild_stream_us(replay->from_ms), &i, err);
    else if (replay->until_text != NULL)
        ok = rebuild_stream_segment(in, &replay->until, &i, err);
    else if (replay->until_ms != INT64_MIN)
        ok = rebuild_stream_segment_at(in, rebuild_stream_us(replay->until_ms), &i, err);
    if (ok && !repl_capture_base(&in->list, i, &replay->base)) {
        cli_hint(replay->cli, "--no-snapshot replays the stream only");
        ok = rebuild_stream_base(in, i, &replay->base, err);
    }
    return ok;
}

bool replay_find(struct tool_replay *replay, struct rd_err *err)
{
    struct rebuild_stream *in = &replay->in;
    if ((replay->from_ms != INT64_MIN || replay->until_ms != INT64_MIN) &&
        !rebuild_stream_recorded(in))
        snapshot_in_warn_unrecorded(replay->cli);
    if ((replay->from_text != NULL &&
         !rebuild_stream_place(in, replay->from_text, &replay->from, err)) ||
        (replay->until_text != NULL &&
         !rebuild_stream_place(in, replay->until_text, &replay->until, err)))
        return false;
    if (replay->no_snapshot)
        return !has_from(replay) || seek(replay, err);
    if (!find_base(replay, err))
        return false;
    const struct repl_capture_segment *base = &in->list.segments[replay->base];
    const struct rebuild_place at = {.index = (size_t)base->chapter, .number = base->start};
    return rebuild_stream_seek(in, &at, err);
}

/* Commands before the start are also sent, without delays, because later ones depend on them. */
static bool is_before(const struct tool_replay *replay, const struct repl_capture_event *ev)
{
    if (replay->no_snapshot)
        return false;
    if (replay->from_ms != INT64_MIN && ev->time_us < rebuild_stream_us(replay->from_ms))
        return true;
    return replay->from_text != NULL &&
           rebuild_place_compare(&replay->from, (size_t)ev->segment->chapter,
                                 ev->offset + ev->bytes.len) <= 0;
}

static bool is_after(const struct tool_replay *replay, const struct repl_capture_event *ev)
{
    if (replay->until_ms != INT64_MIN && ev->time_us / 1000 > replay->until_ms)
        return true;
    return replay->until_text != NULL &&
           rebuild_place_compare(&replay->until, (size_t)ev->segment->chapter,
                                 ev->offset + ev->bytes.len) > 0;
}

static bool is_there(const struct tool_replay *replay, const struct repl_capture_event *ev)
{
    return replay->until_text != NULL && ev->kind == REPL_CAPTURE_COMMAND &&
           rebuild_place_compare(&replay->until, (size_t)ev->segment->chapter,
                                 ev->offset + ev->bytes.len) == 0;
}

/* ---- time ---- */

static bool sleep_until(struct tool_replay *replay, uint64_t due, struct rd_err *err)
{
    uint64_t now = replay_now_ns();
    if (due <= now + SLEEP_MIN_NS)
        return true;
    if (!replay_drain(&replay->sender, err))
        return false;
    while ((now = replay_now_ns()) < due) {
        uint64_t left = due - now;
        const struct timespec wait = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
        nanosleep(&wait, NULL);
    }
    return true;
}

static bool wait_turn(struct tool_replay *replay, const struct repl_capture_event *ev,
                      struct rd_err *err)
{
    struct replay_result *result = &replay->result;
    if (!replay->at_time) {
        replay->at_time = true;
        replay->start_ns = replay_now_ns();
        result->first_us = result->last_us = ev->time_us;
    }
    if (ev->time_us > result->last_us)
        result->last_us = ev->time_us;
    if (replay->factor <= 0 || replay->dry_run)
        return true;
    /* The recorded clock can go back: then the following commands are due at once. */
    double since_us = (double)ev->time_us - (double)result->first_us;
    if (since_us <= 0)
        return true;
    double since_ns = since_us * 1000 / replay->factor;
    uint64_t due = replay->start_ns + (since_ns < 9e18 ? (uint64_t)since_ns : (uint64_t)9e18);
    if (!sleep_until(replay, due, err))
        return false;
    uint64_t now = replay_now_ns();
    uint64_t late_ms = now > due ? (now - due) / 1000000 : 0;
    if (late_ms > result->late_ms)
        result->late_ms = late_ms;
    return true;
}

/* ---- commands ---- */

static bool send_select(struct tool_replay *replay, const struct replay_sent *sent, uint64_t db,
                        struct rd_err *err)
{
    char number[RD_NUM_I64_MAX + 1];
    const struct rd_slice argv[] = {rd_slice_str("SELECT"),
                                    rd_slice(number, rd_num_put_u64(number, db))};
    return replay_send(&replay->sender, argv, 2, sent, err);
}

static bool send(struct tool_replay *replay, const struct repl_capture_event *ev,
                 struct rd_err *err)
{
    const struct replay_sent sent = {
        .chapter = ev->segment->chapter, .offset = ev->offset, .len = ev->bytes.len};
    const struct rd_slice *argv = ev->command.argv;
    bool selects = ev->place.kind == REPL_SELECT;
    if (replay->dry_run)
        return true;
    if (!selects && replay->db != ev->place.db && !send_select(replay, &sent, ev->place.db, err))
        return false;
    if (replay->expiry == REPLAY_RELATIVE) {
        int64_t shift_ms = cli_now_ms() - ev->time_us / 1000;
        if (shift_ms < replay->least_shift_ms)
            replay->least_shift_ms = shift_ms;
        if (!replay_move_expiry(&replay->args, &argv, ev->command.argc, shift_ms, err))
            return false;
    }
    size_t argc = ev->command.argc;
    struct replay_produced produced;
    if (!replay_take_produced(&replay->args, &argv, &argc, &produced, err))
        return false;
    if (produced.leave_out)
        return true;
    return replay_send(&replay->sender, argv, argc, &sent, err) &&
           (!produced.record || replay_send(&replay->sender, produced.argv, 5, &sent, err));
}

/* EXEC of a transaction whose MULTI is not in the capture has no effect. */
static bool is_sent(const struct tool_replay *replay, const struct repl_capture_event *ev)
{
    return ev->place.kind != REPL_PING && ev->place.kind != REPL_GETACK &&
           (ev->place.kind != REPL_EXEC || replay->in_multi);
}

static bool take_command(struct tool_replay *replay, const struct repl_capture_event *ev,
                         struct rd_err *err)
{
    struct replay_result *result = &replay->result;
    if (!is_sent(replay, ev))
        return true;
    bool before = is_before(replay, ev);
    if (!before && !wait_turn(replay, ev, err))
        return false;
    if (!send(replay, ev, err))
        return false;
    replay->db = ev->place.db;
    if (ev->place.kind == REPL_MULTI)
        replay->in_multi = true;
    else if (ev->place.kind == REPL_EXEC)
        replay->in_multi = false;
    result->transactions += ev->place.kind == REPL_EXEC;
    result->commands++;
    result->caught_up += before;
    result->bytes += ev->bytes.len;
    return true;
}

/* A transaction that is incomplete at the end is not replayed. */
static bool leave_transaction(struct tool_replay *replay, struct rd_err *err)
{
    const struct rd_slice discard = rd_slice_str("DISCARD");
    const struct replay_sent sent = {.chapter = replay->result.to_chapter,
                                     .offset = replay->result.to};
    if (!replay->in_multi)
        return true;
    replay->in_multi = false;
    replay->result.discarded++;
    return replay->dry_run || replay_send(&replay->sender, &discard, 1, &sent, err);
}

/* ---- chapters ---- */

/* From here on the master had another dataset. */
static bool begin_anew(struct tool_replay *replay, const struct repl_capture_segment *segment,
                       struct rd_err *err)
{
    if (!leave_transaction(replay, err))
        return false;
    if (replay->no_snapshot || !segment->begins || segment->continues)
        return true;
    if (!segment->has_snapshot || (!replay->flush && !replay->dry_run)) {
        cli_hint(replay->cli,
                 "--flush empties the server at that point; --until-offset ends before it");
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "chapter %" PRIu64 " of the capture begins with a different data set",
                   segment->chapter);
        rd_err_origin(err, replay->path);
        return false;
    }
    return (replay->dry_run ||
            (replay_snapshot_fits(replay, segment, err) && replay_make_room(replay, err))) &&
           replay_snapshot(replay, segment, err);
}

static bool take_event(struct tool_replay *replay, const struct repl_capture_event *ev,
                       struct rd_err *err)
{
    struct replay_result *result = &replay->result;
    if (ev->kind == REPL_CAPTURE_CHAPTER) {
        bool first = result->to_chapter == 0;
        if (!first && !begin_anew(replay, ev->segment, err))
            return false;
        result->to_chapter = ev->segment->chapter;
        result->to = ev->offset;
        return true;
    }
    if (result->chapter == 0) {
        result->chapter = ev->segment->chapter;
        result->from = ev->offset;
    }
    if (!take_command(replay, ev, err))
        return false;
    result->to = ev->offset + ev->bytes.len;
    cli_progress_at(replay->cli, result->bytes);
    return true;
}

/* At the end of the capture, the requested positions must have been reached. */
static bool check_reached(const struct tool_replay *replay, struct rd_err *err)
{
    const struct replay_result *r = &replay->result;
    if (replay->until_text != NULL &&
        (r->to_chapter < replay->until.index || r->to < replay->until.number))
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "the capture ends at offset %" PRIu64 ", before %s; all of it was replayed",
                   r->to, replay->until_text);
    else if (replay->from_ms != INT64_MIN && r->commands == r->caught_up)
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "the capture ends before the start time of the replay");
    else if (replay->until_ms != INT64_MIN)
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "the capture ends before the end time of the replay, so what came until then is "
                   "not known; all of it was replayed");
    else
        return true;
    rd_err_origin(err, replay->path);
    return false;
}

bool replay_stream(struct tool_replay *replay, struct rd_err *err)
{
    struct repl_capture_event ev;
    enum repl_capture_status status;
    bool stopped = false, ok = true;
    uint64_t began = replay_now_ns();
    cli_progress_begin(replay->cli, replay->path, RD_NO_OFFSET);
    while (ok && !stopped && rebuild_stream_next(&replay->in, &ev, &status, err)) {
        stopped = ev.kind == REPL_CAPTURE_COMMAND && is_after(replay, &ev);
        /* A chapter that begins after the end is not read. */
        stopped |= ev.kind == REPL_CAPTURE_CHAPTER && replay->until_text != NULL &&
                   ev.segment->chapter > replay->until.index;
        ok = stopped || take_event(replay, &ev, err);
        stopped |= is_there(replay, &ev); /* the rest may be damaged or missing */
    }
    ok = ok && (stopped || status == REPL_CAPTURE_END) && leave_transaction(replay, err) &&
         (replay->dry_run || replay_drain(&replay->sender, err));
    ok = ok && (stopped || check_reached(replay, err));
    if (replay->result.chapter == 0) { /* there is no command */
        replay->result.chapter = replay->result.to_chapter;
        replay->result.from = replay->result.to;
    }
    cli_progress_end(replay->cli);
    replay->result.elapsed_ms = (replay_now_ns() - began) / 1000000;
    return ok;
}
