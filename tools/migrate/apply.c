/* apply.c - reads the stream from the spool and sends it, round by round. */
#include "tools/migrate/migrate.h"

#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "capture/clock.h"
#include "tools/cli/stop.h"
#include "tools/replay/replay.h"

enum {
    COMMANDS = 4000, /* of a round to a single server: how long it does nothing else */
    BYTES = 1 << 20,
    CLUSTER_COMMANDS = 60000, /* of a round to a cluster: the transactions of a slot get longer */
    CLUSTER_BYTES = 16 << 20,
    IDLE_MS = 2,
    RETRY_MS = 50,
    LOOK_MS = 200
};

bool migrate_stopped(const struct migrate *m)
{
    return *m->stop != 0;
}

void migrate_wait(struct migrate *m, uint64_t ms)
{
    const struct timespec limit = {.tv_sec = (time_t)(ms / 1000),
                                   .tv_nsec = (long)(ms % 1000) * 1000000};
    ppoll(NULL, 0, &limit, &m->waiting);
}

void migrate_pace(struct migrate *m, uint64_t bytes)
{
    enum { BURST_MS = 1000, SLICE_MS = 50 };
    uint64_t now_ms = capture_now_ms(), due_ms;
    if (m->rate == 0)
        return;
    m->paced += bytes;
    due_ms = m->paced_ms + m->paced * 1000 / m->rate;
    if (due_ms + BURST_MS < now_ms) { /* nothing was sent for a while */
        m->paced = bytes;
        m->paced_ms = now_ms;
    }
    while (now_ms < due_ms && !migrate_stopped(m)) {
        migrate_wait(m, due_ms - now_ms < SLICE_MS ? due_ms - now_ms : SLICE_MS);
        now_ms = capture_now_ms();
    }
}

/* The round that may be on its way. */
static bool finish_other(struct migrate *m, bool *ret_again, struct rd_err *err)
{
    struct migrate_round *other = &m->rounds[1 - m->building];
    *ret_again = false;
    return !other->sent || migrate_round_finish(m, other, ret_again, err);
}

/* ---- commands ---- */

static bool refuse(const struct migrate *m, const struct migrate_stream *stream,
                   const struct repl_capture_event *ev, struct rd_err *err)
{
    rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "%s (command of offset %llu)", m->plan.why,
               (unsigned long long)ev->offset);
    rd_err_origin(err, stream->name);
    return false;
}

static bool put(struct migrate_round *round, const struct migrate_piece *piece,
                const struct repl_capture_event *ev, struct rd_err *err)
{
    struct migrate_batch *batch;
    if (!migrate_round_batch(round, piece->slot, &batch, err) ||
        !migrate_batch_select(batch, ev->place.db, ev->offset, err))
        return false;
    if (piece->unchanged && piece->argv == ev->command.argv)
        return migrate_batch_add_bytes(batch, ev->bytes, ev->offset, err);
    return migrate_batch_add(batch, piece->argv, piece->argc, ev->offset, err);
}

/* An entry of a producer, as a client can send it. */
static bool put_produced(struct migrate *m, struct migrate_round *round,
                         const struct migrate_piece *piece, const struct repl_capture_event *ev,
                         struct rd_err *err)
{
    struct migrate_piece changed = *piece;
    struct replay_produced produced;
    if (!replay_take_produced(&m->args, &changed.argv, &changed.argc, &produced, err))
        return false;
    if (produced.leave_out)
        return true;
    const struct migrate_piece record = {piece->slot, produced.argv, 5, false};
    return put(round, &changed, ev, err) && (!produced.record || put(round, &record, ev, err));
}

/* The position key is in database 0: it is removed before databases are swapped or emptied, and
 * written again after it. */
static bool put_whole(struct migrate *m, struct migrate_round *round,
                      const struct repl_capture_event *ev, bool swaps, struct rd_err *err)
{
    char key[MIGRATE_KEY_MAX];
    const struct migrate_piece whole = {0, ev->command.argv, ev->command.argc, true};
    const struct rd_slice del[] = {rd_slice_str("DEL"), migrate_group_key(m, 0, key)};
    struct migrate_batch *batch;
    if (!migrate_round_batch(round, 0, &batch, err))
        return false;
    batch->remark = true;
    return (!swaps || (migrate_batch_select(batch, 0, ev->offset, err) &&
                       migrate_batch_add(batch, del, 2, ev->offset, err))) &&
           put(round, &whole, ev, err);
}

/* The group already has the command: it was applied before the connection was lost. */
bool migrate_is_applied(const struct migrate_stream *stream, const struct repl_capture_event *ev,
                        unsigned group)
{
    const struct migrate_place *at = &stream->applied[group];
    return at->chapter > ev->segment->chapter ||
           (at->chapter == ev->segment->chapter && at->offset >= ev->offset + ev->bytes.len);
}

/* Ends the round before this command, which is read again. *ret_now: there is nothing before it. */
static bool cut_round(struct migrate *m, struct migrate_round *round,
                      const struct repl_capture_event *ev, bool *ret_now, struct rd_err *err)
{
    *ret_now = round->n == 0 && !m->rounds[1 - m->building].sent;
    if (*ret_now)
        return true;
    round->cut = true;
    return repl_capture_reader_seek(round->stream->in.reader, ev->segment->chapter, ev->offset,
                                    err);
}

static bool take_flush(struct migrate *m, struct migrate_round *round,
                       const struct repl_capture_event *ev, struct rd_err *err)
{
    bool now, again = false;
    if (ev->place.in_multi) {
        snprintf(m->plan.why, sizeof m->plan.why,
                 "FLUSHALL and FLUSHDB inside a transaction cannot be done for a part of the keys");
        return refuse(m, round->stream, ev, err);
    }
    if (!cut_round(m, round, ev, &now, err) || !now)
        return err == NULL || err->code == RD_ERR_OK;
    m->checkpoint_ms = 0;
    bool ok = migrate_flush(m, round->stream, ev, &again, err);
    m->again |= again;
    return ok;
}

/* Functions and scripts do not change keys, so their order among writes does not matter. */
static bool take_everywhere(struct migrate *m, const struct repl_capture_event *ev,
                            struct rd_err *err)
{
    bool again;
    bool ok = finish_other(m, &again, err) && migrate_everywhere(m, ev, &again, err);
    m->again |= again;
    return ok;
}

/* The command is read again later, with the transaction around it, of which it is the first. */
static bool hold_back(struct migrate_round *round, const struct repl_capture_event *ev,
                      struct rd_err *err)
{
    uint64_t offset = ev->place.in_multi ? ev->place.multi : ev->offset;
    round->cut = round->held = true;
    round->stream->in_multi = false;
    return repl_capture_reader_seek(round->stream->in.reader, ev->segment->chapter, offset, err);
}

static bool take_write(struct migrate *m, struct migrate_round *round,
                       const struct repl_capture_event *ev, struct rd_err *err)
{
    struct migrate_plan *plan = &m->plan;
    const struct resp_command *cmd = &ev->command;
    if (!migrate_plan_make(plan, ev->place.db, cmd->argv, cmd->argc, err))
        return false;
    bool ok = true, pass;
    if (!migrate_owners_pass(m, round->stream, ev, &pass, err))
        return false;
    if (!pass)
        return hold_back(round, ev, err);
    switch (plan->kind) {
    case MIGRATE_NOTHING:
        m->result.filtered++;
        return true;
    case MIGRATE_REFUSED:
        return refuse(m, round->stream, ev, err);
    case MIGRATE_FLUSH:
        if (plan->cluster || migrate_plan_selects(plan) || m->n_streams > 1)
            return take_flush(m, round, ev, err);
        return migrate_is_applied(round->stream, ev, 0) || put_whole(m, round, ev, false, err);
    case MIGRATE_SWAP:
        return migrate_is_applied(round->stream, ev, 0) || put_whole(m, round, ev, true, err);
    case MIGRATE_EVERYWHERE:
        if (plan->cluster)
            return take_everywhere(m, ev, err);
        return migrate_is_applied(round->stream, ev, 0) ||
               put_produced(m, round, &plan->pieces[0], ev, err);
    case MIGRATE_PIECES:
    default:
        m->result.divided += plan->n > 1;
        for (size_t i = 0; ok && i < plan->n; i++)
            ok = migrate_is_applied(round->stream, ev, plan->pieces[i].slot) ||
                 put_produced(m, round, &plan->pieces[i], ev, err);
        return ok;
    }
}

/* ---- chapters ---- */

/* From here on the source has another data set. */
static bool begin_anew(struct migrate *m, const struct migrate_stream *stream, struct rd_err *err)
{
    m->anew = m->recopy;
    if (!m->recopy)
        cli_hint(m->cli, "--recopy begins a new full copy in this case");
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
               "the source did not continue its stream at offset %llu and sent a new snapshot",
               (unsigned long long)stream->safe.offset);
    rd_err_origin(err, stream->name);
    return false;
}

static bool take_chapter(struct migrate *m, struct migrate_stream *stream,
                         const struct repl_capture_event *ev, struct rd_err *err)
{
    const struct repl_capture_segment *segment = ev->segment;
    bool same = segment->chapter == stream->read.chapter;
    if (!same && !segment->continues)
        return begin_anew(m, stream, err);
    if (!same)
        stream->safe = (struct migrate_place){segment->chapter, ev->offset};
    stream->read = (struct migrate_place){segment->chapter, ev->offset};
    stream->replid = segment->replid;
    return true;
}

/* ---- rounds ---- */

static bool take_event(struct migrate *m, struct migrate_round *round,
                       const struct repl_capture_event *ev, struct rd_err *err)
{
    struct migrate_stream *stream = round->stream;
    if (ev->kind == REPL_CAPTURE_CHAPTER)
        return take_chapter(m, stream, ev, err);
    const struct migrate_place before = stream->read;
    stream->read.offset = ev->offset + ev->bytes.len;
    if (ev->kind != REPL_CAPTURE_COMMAND) {
        if (stream->read.offset > stream->safe.offset && !stream->in_multi)
            stream->safe = stream->read;
        return true;
    }
    stream->in_multi = ev->place.in_multi && ev->place.kind != REPL_EXEC;
    m->result.transactions += ev->place.kind == REPL_EXEC && ev->place.in_multi;
    if (ev->place.kind == REPL_WRITE) {
        if (!take_write(m, round, ev, err))
            return false;
        if (round->cut) {
            stream->read = round->held ? stream->safe : before;
            return true;
        }
        round->commands++;
        round->bytes += ev->bytes.len;
        round->time_us = ev->time_us;
    }
    if (!stream->in_multi) {
        stream->safe = stream->read;
        stream->db = ev->place.db;
    }
    return true;
}

static bool is_full(const struct migrate *m, const struct migrate_round *round)
{
    if (round->stream->in_multi)
        return false;
    return m->target.clustered
               ? round->commands >= CLUSTER_COMMANDS || round->bytes >= CLUSTER_BYTES
               : round->commands >= COMMANDS || round->bytes >= BYTES;
}

/* Fills a round with what the spool has. A transaction that has not arrived completely is waited
 * for. */
static bool fill(struct migrate *m, struct migrate_round *round, struct rd_err *err)
{
    struct migrate_stream *stream = round->stream;
    struct repl_capture_event ev;
    enum repl_capture_status status;
    stream->caught_up = false;
    for (;;) {
        if (!rebuild_stream_next(&stream->in, &ev, &status, err)) {
            if (status == REPL_CAPTURE_FAIL)
                return false;
            if (!stream->in_multi || migrate_stopped(m))
                break;
            migrate_wait(m, IDLE_MS);
            if (!migrate_find_streams(m, err))
                return false;
            continue;
        }
        if (!take_event(m, round, &ev, err))
            return false;
        if (round->cut || is_full(m, round))
            return true;
    }
    stream->caught_up = true;
    return true;
}

/* Every group gets the position, so that a later start need not read the stream from long ago. */
static bool add_checkpoint(struct migrate *m, struct migrate_round *round, struct rd_err *err)
{
    const struct migrate_stream *stream = round->stream;
    struct migrate_batch *batch;
    for (size_t g = 0; g < m->target.n_groups; g++) {
        const struct migrate_place *at = &stream->applied[g];
        if (at->chapter == round->end.chapter && at->offset == round->end.offset)
            continue;
        if (!migrate_round_batch(round, (unsigned)g, &batch, err))
            return false;
    }
    return true;
}

/* Builds and sends a round of a stream. *ret_idle: there was nothing to send. */
static bool turn(struct migrate *m, struct migrate_stream *stream, bool *ret_idle, bool *ret_again,
                 struct rd_err *err)
{
    struct migrate_round *round = &m->rounds[m->building];
    uint64_t now_ms = capture_now_ms();
    *ret_again = false;
    m->again = false;
    if (!migrate_round_begin(round, stream, m->target.n_groups, err) || !fill(m, round, err)) {
        *ret_again = m->again;
        return false;
    }
    if (stream->in_multi) /* stopped in the middle of a transaction */
        round->n = 0;
    round->end = stream->safe;
    bool due = now_ms >= m->checkpoint_ms && !stream->in_multi;
    if (!finish_other(m, ret_again, err) || (due && !add_checkpoint(m, round, err)))
        return false;
    if (due)
        m->checkpoint_ms = now_ms + MIGRATE_CHECKPOINT_MS;
    *ret_idle = round->n == 0 && (!round->cut || round->held);
    if (round->n == 0)
        return !due || migrate_trim(m, stream, err);
    m->building = 1 - m->building;
    migrate_pace(m, round->bytes);
    *ret_again = !migrate_round_send(m, round, err);
    return !*ret_again && (!due || migrate_trim(m, stream, err));
}

/* ---- the loop ---- */

static bool all_turns(struct migrate *m, bool *ret_idle, bool *ret_again, struct rd_err *err)
{
    bool idle;
    *ret_idle = true;
    *ret_again = false;
    for (size_t i = 0; i < m->n_streams; i++) {
        if (m->streams[i]->late && migrate_owners_join(m, m->streams[i])) {
            m->attached = false; /* its snapshot is copied then */
            return true;
        }
        if (!m->streams[i]->is_open)
            continue;
        if (!turn(m, m->streams[i], &idle, ret_again, err))
            return false;
        *ret_idle &= idle;
    }
    return true;
}

static bool retry_later(struct migrate *m, struct rd_err *err)
{
    char line[512];
    migrate_detach(m);
    m->wait_ms = m->wait_ms == 0 ? RETRY_MS : 2 * m->wait_ms;
    if (m->wait_ms > MIGRATE_RETRY_MAX_MS)
        m->wait_ms = MIGRATE_RETRY_MAX_MS;
    migrate_say(m, true, "%s; connecting again", rd_err_render(err, line, sizeof line));
    rd_err_reset(err);
    migrate_wait(m, m->wait_ms);
    return true;
}

/* Whether the target has all that the sources have sent. */
static bool is_done(const struct migrate *m)
{
    for (size_t i = 0; i < m->n_streams; i++) {
        const struct migrate_stream *stream = m->streams[i];
        if (!stream->is_open && stream->gone)
            continue; /* it was a master without keys */
        if (!stream->is_open || (!stream->up && !stream->gone) || !stream->caught_up ||
            stream->safe.offset < stream->received)
            return false;
    }
    return m->attached && !m->rounds[0].sent && !m->rounds[1].sent;
}

/* Whether the snapshots have arrived. */
static bool has_data(const struct migrate *m)
{
    for (size_t i = 0; i < m->n_streams; i++) {
        const struct migrate_stream *stream = m->streams[i];
        struct rebuild_stream in;
        struct rd_err none = {0};
        if (stream->is_open || stream->gone)
            continue;
        bool has = rebuild_stream_open(&in, stream->path, true, &none) && in.list.n > 0;
        rebuild_stream_close(&in);
        if (!has)
            return false;
    }
    return m->n_streams > 0;
}

static bool step(struct migrate *m, bool *ret_idle, struct rd_err *err)
{
    bool again = false, ok;
    *ret_idle = false;
    if (!m->attached && !has_data(m)) {
        *ret_idle = true;
        migrate_wait(m, LOOK_MS);
        return true;
    }
    if (!m->attached) {
        ok = migrate_attach(m, &again, err);
        *ret_idle = ok && !m->attached;
        again &= m->connected;
    } else {
        ok = all_turns(m, ret_idle, &again, err);
        m->wait_ms = ok && !*ret_idle ? 0 : m->wait_ms;
    }
    if (!ok && m->anew) {
        m->anew = false;
        migrate_say(m, true, "%s", err->text);
        rd_err_reset(err);
        ok = migrate_recopy(m, err);
        again = !ok && err->code == RD_ERR_PROTOCOL;
        migrate_detach(m);
    }
    return ok || (again && retry_later(m, err));
}

bool migrate_apply(struct migrate *m, struct rd_err *err)
{
    uint64_t look_ms = 0;
    bool idle, again;
    while (!migrate_stopped(m)) {
        uint64_t now_ms = capture_now_ms();
        if (now_ms >= look_ms) {
            migrate_wait(m, 0); /* signals */
            look_ms = now_ms + LOOK_MS;
            if (!migrate_find_streams(m, err))
                return false;
            migrate_report_events(m);
            migrate_report_progress(m);
        }
        /* each time, or a target that refuses its first round is never seen attached */
        if (m->cut_over && (!migrate_pause(m, err) || !migrate_pause_renew(m, err)))
            return false;
        if (!step(m, &idle, err))
            return false;
        if (!idle)
            continue;
        if (m->cut_over && migrate_is_drained(m))
            return true;
        if (m->attached && m->until_caught_up) {
            if (!migrate_find_streams(m, err))
                return false;
            if (is_done(m))
                return true;
        }
        migrate_wait(m, IDLE_MS);
    }
    return !m->attached || finish_other(m, &again, err) || again;
}
