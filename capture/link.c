/* link.c - one master: its connection, the protocol and their errors.
 */
#include "capture/link.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "base/mem.h"
#include "base/show.h"
#include "capture/capture.h"
#include "rdb/version.h"

/* Bytes read for one link before the others get their turn. */
enum { READS_A_TURN = 16 };

/* ---- creation ---- */

static bool open_store(struct capture_link *link, struct rd_err *err)
{
    const struct capture *c = link->capture;
    char path[4096];
    const struct capture_store_opts opts = {.path = path,
                                            .max_size = c->max_size,
                                            .segment_size = c->segment_size,
                                            .run = c->run,
                                            .ack = (enum capture_ack)c->ack,
                                            .lock = c->lock};
    const char *slash = link->folder[0] != '\0' ? "/" : "";
    int n = snprintf(path, sizeof path, "%s%s%s", c->out, slash, link->folder);
    if (n < 0 || (size_t)n >= sizeof path)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the folder name is too long");
    return capture_store_open(&link->store, &opts, &link->capture->syncer, err);
}

bool capture_link_new(struct capture_link **ret, struct capture *capture,
                      const struct client_target *target, const char *folder, struct rd_err *err)
{
    struct capture_link *link = rd_calloc(1, sizeof *link);
    if (link == NULL)
        return rd_err_nomem(err, sizeof *link);
    link->capture = capture;
    link->target = *target;
    snprintf(link->folder, sizeof link->folder, "%s", folder);
    *ret = link;
    return open_store(link, err);
}

static void disconnect(struct capture_link *link)
{
    link->in_snapshot = false;
    repl_psync_free(link->psync);
    client_peer_close(link->peer);
    link->psync = NULL;
    link->peer = NULL;
    link->stream_ms = 0;
}

void capture_link_free(struct capture_link *link)
{
    if (link == NULL)
        return;
    disconnect(link);
    capture_monitor_close(&link->monitor, link);
    capture_store_close(&link->store, NULL);
    client_target_done(&link->target);
    rd_free(link);
}

/* ---- errors ---- */

/* Adds jitter, so that many clients do not connect at once. */
static uint64_t backoff_ms(const struct capture_link *link, uint64_t now_ms)
{
    unsigned doublings = link->tries < 7 ? link->tries : 7;
    uint64_t ms = (uint64_t)CAPTURE_BACKOFF_MS << doublings, max_ms = CAPTURE_BACKOFF_MAX_MS;
    if (link->n_cut >= CAPTURE_CUTS) {
        unsigned more = link->n_cut - CAPTURE_CUTS < 10 ? link->n_cut - CAPTURE_CUTS : 10;
        ms = (uint64_t)CAPTURE_CUT_BACKOFF_MS << more;
        max_ms = CAPTURE_CUT_BACKOFF_MAX_MS;
    }
    if (ms > max_ms)
        ms = max_ms;
    return ms - ms / 4 + (now_ms * 2654435761u >> 7) % (ms / 2);
}

static const char *announced(const struct capture_link *link)
{
    const char *version = link->capture->replica_version;
    return version != NULL ? version : RDB_REPLICA_VERSION;
}

static void say_cut(struct capture_link *link)
{
    const char *version = link->capture->replica_version;
    capture_event(link->capture, link, "cut", true,
                  "%u snapshots in a row did not arrive to their end, and each one makes the "
                  "master fork: its log says why. Often its client-output-buffer-limit for "
                  "replicas or its repl-timeout is too small, or the disk here too slow%s%s",
                  link->n_cut,
                  version == NULL ? "" : ", or it has data that it cannot write for version ",
                  version == NULL ? "" : version);
}

static void retry(struct capture_link *link, uint64_t now_ms, const struct rd_err *why)
{
    char line[512];
    rd_err_render(why, line, sizeof line); /* its text may be freed next */
    if (link->stream_ms != 0) {
        bool moved_on = link->resumed && link->n_bytes > link->n_before;
        link->n_lost++;
        if (moved_on || now_ms - link->stream_ms >= CAPTURE_STEADY_MS)
            link->tries = 0;
    }
    bool cut = link->in_snapshot;
    link->n_cut += cut;
    disconnect(link);
    uint64_t ms = backoff_ms(link, now_ms);
    link->tries++;
    link->state = CAPTURE_WAITING;
    link->retry_ms = now_ms + ms;
    capture_event(link->capture, link, "lost", true, "%s; retrying in %s", line,
                  rd_show_duration(ms).s);
    if (cut && link->n_cut >= CAPTURE_CUTS)
        say_cut(link);
    capture_hosts_hurry(link->capture, now_ms);
}

/* Errors that are temporary. */
static bool is_busy(const struct rd_err *err)
{
    switch (err->reason.id) {
    case RESP_REASON_LOADING:
    case RESP_REASON_NOMASTERLINK:
    case RESP_REASON_NOMASTERLINK_OLD:
    case RESP_REASON_MASTERDOWN:
    case RESP_REASON_BUSY:
    case RESP_REASON_MAX_CLIENTS:
        return true;
    default:
        return false;
    }
}

static bool can_retry(const struct capture_link *link, enum repl_class class,
                      const struct rd_err *why)
{
    const struct capture *c = link->capture;
    switch (class) {
    case REPL_NOMEM:
        return false;
    case REPL_CLOSED:
    case REPL_TIMEOUT:
        return link->accepted || c->wait || c->cluster;
    case REPL_RETRY:
        return link->accepted || c->wait || is_busy(why);
    default:
        return link->accepted;
    }
}

/* False: the error ends the capture. */
static bool fail(struct capture_link *link, enum repl_class class, const struct rd_err *why,
                 uint64_t now_ms, struct rd_err *err)
{
    if (can_retry(link, class, why)) {
        retry(link, now_ms, why);
        return true;
    }
    rd_err_adopt(err, why);
    if (class == REPL_UNSUPPORTED && err != NULL)
        err->code = RD_ERR_UNSUPPORTED;
    rd_err_origin(err, link->target.name);
    return false;
}

/* ---- connecting ---- */

static bool begin_to_talk(struct capture_link *link, uint64_t now_ms, struct rd_err *err)
{
    struct repl_psync_opts opts =
        REPL_PSYNC_OPTS(.user = link->target.user, .password = link->target.password,
                        .version = announced(link),
                        .timeout_ms = 2 * link->capture->target.opts->timeout_ms);
    if (!capture_store_resume(&link->store, &opts.resume, err)) {
        rd_err_origin(err, link->capture->out);
        return false;
    }
    if (!repl_psync_new(&link->psync, &opts, err))
        return false;
    link->state = CAPTURE_TALKING;
    link->heard_ms = now_ms;
    return true;
}

static bool go_on_connecting(struct capture_link *link, uint64_t now_ms, struct rd_err *err)
{
    struct rd_err why = {0};
    switch (client_peer_connect(link->peer, &why)) {
    case CLIENT_OK:
        return begin_to_talk(link, now_ms, err);
    case CLIENT_WAIT:
        return true;
    default:
        return fail(link, REPL_CLOSED, &why, now_ms, err);
    }
}

static bool connect_again(struct capture_link *link, uint64_t now_ms, struct rd_err *err)
{
    struct rd_err why = {0};
    link->state = CAPTURE_CONNECTING;
    if (!client_peer_begin(&link->peer, &link->target, &why)) {
        link->peer = NULL;
        return fail(link, REPL_CLOSED, &why, now_ms, err);
    }
    return go_on_connecting(link, now_ms, err);
}

void capture_link_move(struct capture_link *link, struct client_target *target, uint64_t now_ms)
{
    disconnect(link);
    capture_monitor_drop(&link->monitor, now_ms);
    client_target_done(&link->target);
    link->target = *target;
    *target = (struct client_target){0};
    link->tries = link->n_cut = 0;
    link->state = CAPTURE_WAITING;
    link->retry_ms = now_ms;
    capture_event(link->capture, link, "moved", false, "connected to the new master");
}

/* ---- replies of the master ---- */

static void send_acks(struct capture_link *link, uint64_t now_ms)
{
    struct capture_store *store = &link->store;
    if (link->stream_ms == 0)
        return;
    uint64_t acked = capture_store_acked(store);
    repl_psync_ack(link->psync, acked, repl_capture_writer_synced(store->writer));
    if (acked >= link->mark) {
        link->mark = capture_store_received(store);
        link->mark_ms = now_ms;
    }
}

static void stream_begins(struct capture_link *link, uint64_t now_ms)
{
    link->stream_ms = now_ms;
    link->in_snapshot = false;
    link->n_cut = 0;
    link->n_before = link->n_bytes;
    link->mark = 0;
    if (link->began_ms == 0)
        link->began_ms = now_ms;
    send_acks(link, now_ms);
}

static void on_full(struct capture_link *link, const struct repl_event *ev)
{
    struct repl_capture_point at;
    bool had = repl_capture_writer_point(link->store.writer, &at);
    link->accepted = true;
    link->resumed = false;
    link->in_snapshot = true;
    link->n_full++;
    if (link->capture->on_full != NULL)
        link->capture->on_full(link->capture);
    link->timely.asked = capture_stamp_now();
    if (had)
        capture_event(link->capture, link, "full", true,
                      "the master does not continue at offset %" PRIu64
                      ": receiving a new snapshot at offset %" PRIu64,
                      at.offset, ev->offset);
    else
        capture_event(link->capture, link, "full", false, "receiving a snapshot at offset %" PRIu64,
                      ev->offset);
}

static void on_continue(struct capture_link *link, const struct repl_event *ev, uint64_t now_ms)
{
    link->accepted = true;
    link->resumed = true;
    link->n_partial++;
    capture_event(link->capture, link, "continue", false, "resuming at offset %" PRIu64 "%s",
                  ev->offset, ev->changed ? ", under a new id" : "");
    stream_begins(link, now_ms);
}

static bool has_enough(const struct capture_link *link, const struct repl_event *ev)
{
    const struct capture *c = link->capture;
    if (!c->has_until || ev->kind != REPL_COMMAND)
        return false;
    bool inside = ev->place.in_multi && ev->place.kind != REPL_EXEC;
    return !inside && capture_store_received(&link->store) >= c->until;
}

/* The stream is stored unchanged, but can this version replay it? */
static void note_command(struct capture_link *link, const struct repl_event *ev)
{
    const struct resp_command *cmd = &ev->command;
    if (ev->place.kind == REPL_PING || ev->place.kind == REPL_GETACK)
        return;
    link->n_changes++;
    if (cmd->argc == 0)
        return;
    if (rebuild_unsupported_note(&link->unsupported, cmd->argc, cmd->argv))
        capture_event(link->capture, link, "unknown-command", true, "%s", link->unsupported.text);
}

static bool on_event(struct capture_link *link, const struct repl_event *ev, uint64_t now_ms,
                     struct rd_err *err)
{
    struct capture_store *store = &link->store;
    if (ev->kind == REPL_FULL || ev->kind == REPL_SYNC)
        on_full(link, ev);
    /* Before a chapter begins: the interruption is in its first segment. */
    if (ev->kind == REPL_CONTINUE && !capture_timely_continue(link, err))
        return false;
    if (!capture_store_take(store, ev, now_ms, err)) {
        rd_err_origin(err, link->capture->out);
        return false;
    }
    if (ev->kind == REPL_COMMAND)
        note_command(link, ev);
    if (ev->kind == REPL_COMMAND || (ev->kind == REPL_KEEPALIVE && link->stream_ms != 0))
        link->n_bytes += ev->bytes.len;
    if (ev->kind == REPL_PAYLOAD)
        link->n_snapshot += ev->bytes.len;
    if (ev->kind == REPL_CONTINUE)
        on_continue(link, ev, now_ms);
    if (ev->kind == REPL_PAYLOAD_END) {
        capture_event(link->capture, link, "snapshot", false, "snapshot received: %s",
                      rd_show_bytes(ev->payload.done).s);
        if (!capture_timely_full(link, err))
            return false;
        stream_begins(link, now_ms);
    }
    if (ev->kind == REPL_COMMAND && ev->place.kind == REPL_PING)
        capture_timely_ping(link);
    if (ev->kind == REPL_COMMAND && ev->place.kind == REPL_GETACK) {
        if (!capture_store_flush(store, err))
            return false;
        store->sync_wanted = true;
        send_acks(link, now_ms);
    }
    if (has_enough(link, ev))
        link->state = CAPTURE_DONE;
    return true;
}

/* Handles all pending events of the protocol. */
static bool take_events(struct capture_link *link, uint64_t now_ms, struct rd_err *err)
{
    struct repl_event ev;
    while (link->state == CAPTURE_TALKING)
        switch (repl_psync_next(link->psync, &ev)) {
        case REPL_MORE:
            return true;
        case REPL_ERROR:
        case REPL_END:
            return fail(link, ev.error_class, ev.err, now_ms, err);
        default:
            if (!on_event(link, &ev, now_ms, err))
                return false;
        }
    return true;
}

static bool feed(struct capture_link *link, size_t len, uint64_t now_ms, struct rd_err *err)
{
    const uint8_t *buf = link->capture->buf;
    link->heard_ms = now_ms;
    if (!capture_timely_clock(link->capture, err) || !capture_timely_read(link, err))
        return false;
    link->store.now_us = capture_now_us();
    for (size_t at = 0; at < len && link->state == CAPTURE_TALKING;) {
        at += repl_psync_feed(link->psync, rd_slice(buf + at, len - at));
        if (!take_events(link, now_ms, err))
            return false;
    }
    return true;
}

/* ---- the connection ---- */

static bool send_output(struct capture_link *link, uint64_t now_ms, struct rd_err *err)
{
    struct rd_slice out;
    while (link->state == CAPTURE_TALKING && (out = repl_psync_output(link->psync)).len > 0) {
        struct rd_err why = {0};
        size_t len = 0;
        switch (client_peer_write_some(link->peer, out, &len, &why)) {
        case CLIENT_OK:
            repl_psync_sent(link->psync, len);
            break;
        case CLIENT_WAIT:
            return true;
        default:
            return fail(link, REPL_CLOSED, &why, now_ms, err);
        }
    }
    return true;
}

static bool read_input(struct capture_link *link, uint64_t now_ms, struct rd_err *err)
{
    for (int i = 0; i < READS_A_TURN && link->state == CAPTURE_TALKING; i++) {
        const struct capture_stamp stamp = capture_stamp_now();
        struct rd_err why = {0};
        size_t len = 0;
        switch (client_peer_read_some(link->peer, link->capture->buf, CAPTURE_READ, &len, &why)) {
        case CLIENT_OK:
            if (!feed(link, len, now_ms, err))
                return false;
            break;
        case CLIENT_WAIT:
            capture_timely_empty(link, &stamp);
            return true;
        case CLIENT_END:
            repl_psync_cut(link->psync);
            return take_events(link, now_ms, err);
        default:
            return fail(link, REPL_CLOSED, &why, now_ms, err);
        }
    }
    return true;
}

bool capture_link_work(struct capture_link *link, short revents, uint64_t now_ms,
                       struct rd_err *err)
{
    if (revents == 0)
        return true;
    if (link->state == CAPTURE_CONNECTING && !go_on_connecting(link, now_ms, err))
        return false;
    if (link->state != CAPTURE_TALKING)
        return true;
    if (!read_input(link, now_ms, err))
        return false;
    if (link->state == CAPTURE_TALKING)
        send_acks(link, now_ms);
    return send_output(link, now_ms, err);
}

/* ---- time ---- */

static bool is_over(const struct capture_link *link, uint64_t now_ms)
{
    const struct capture *c = link->capture;
    struct repl_capture_point at;
    if (c->duration_ms != 0 && link->began_ms != 0 && now_ms - link->began_ms >= c->duration_ms)
        return true;
    return c->has_until && link->state == CAPTURE_WAITING &&
           repl_capture_writer_point(link->store.writer, &at) && at.offset >= c->until &&
           !at.in_multi;
}

/* The caller polls only if there is an event to wait for. */
static bool tick_psync(struct capture_link *link, uint64_t now_ms, uint64_t *ret_wait_ms,
                       struct rd_err *err)
{
    if (link->state != CAPTURE_TALKING)
        return true;
    send_acks(link, now_ms);
    capture_sooner(ret_wait_ms, repl_psync_tick(link->psync, now_ms));
    return take_events(link, now_ms, err) && send_output(link, now_ms, err);
}

static bool tick(struct capture_link *link, uint64_t now_ms, uint64_t *ret_wait_ms,
                 struct rd_err *err)
{
    bool syncing = link->store.syncing;
    if (!capture_store_tick(&link->store, now_ms, ret_wait_ms, err)) {
        rd_err_origin(err, link->capture->out);
        return false;
    }
    if (link->state == CAPTURE_WAITING && now_ms >= link->retry_ms &&
        !connect_again(link, now_ms, err))
        return false;
    if (link->state == CAPTURE_CONNECTING && !go_on_connecting(link, now_ms, err))
        return false;
    if (syncing && !link->store.syncing && link->state == CAPTURE_TALKING &&
        link->store.ack == CAPTURE_ACK_SYNCED) {
        send_acks(link, now_ms);
        repl_psync_ack_now(link->psync);
    }
    return tick_psync(link, now_ms, ret_wait_ms, err) &&
           capture_timely_tick(link, ret_wait_ms, err);
}

bool capture_link_prepare(struct capture_link *link, uint64_t now_ms, struct pollfd *ret_poll,
                          uint64_t *ret_wait_ms, struct rd_err *err)
{
    *ret_poll = (struct pollfd){.fd = -1};
    if (link->state != CAPTURE_DONE && is_over(link, now_ms))
        link->state = CAPTURE_DONE;
    if (link->state == CAPTURE_DONE) /* the master must not buffer data that is not read */
        return link->peer == NULL || capture_link_finish(link, now_ms, err);
    if (!tick(link, now_ms, ret_wait_ms, err))
        return false;
    if (link->state == CAPTURE_WAITING)
        capture_sooner(ret_wait_ms, link->retry_ms > now_ms ? link->retry_ms - now_ms : 0);
    if (link->state == CAPTURE_CONNECTING) {
        int ms = client_peer_wait_ms(link->peer);
        if (ms >= 0)
            capture_sooner(ret_wait_ms, (uint64_t)ms);
    }
    if (link->peer != NULL) {
        bool more = link->psync != NULL && repl_psync_output(link->psync).len > 0;
        ret_poll->fd = client_peer_fd(link->peer);
        ret_poll->events = client_peer_events(link->peer, more);
    }
    if (link->began_ms != 0 && link->capture->duration_ms != 0)
        capture_sooner(ret_wait_ms, link->began_ms + link->capture->duration_ms - now_ms);
    return true;
}

/* A closed connection is not acknowledged again. */
static void say_last(struct capture_link *link, uint64_t now_ms)
{
    struct rd_err ignored = {0};
    struct rd_slice out;
    size_t len;
    send_acks(link, now_ms);
    repl_psync_ack_now(link->psync);
    while ((out = repl_psync_output(link->psync)).len > 0 &&
           client_peer_write_some(link->peer, out, &len, &ignored) == CLIENT_OK)
        repl_psync_sent(link->psync, len);
}

bool capture_link_finish(struct capture_link *link, uint64_t now_ms, struct rd_err *err)
{
    bool ok = link->store.writer == NULL || capture_store_sync(&link->store, err);
    capture_monitor_close(&link->monitor, link);
    if (ok && link->psync != NULL && link->stream_ms != 0)
        say_last(link, now_ms);
    link->state = CAPTURE_DONE;
    disconnect(link);
    return ok;
}

bool capture_link_leave(struct capture_link *link, uint64_t now_ms, struct rd_err *err)
{
    if (link->state == CAPTURE_TALKING && !read_input(link, now_ms, err))
        return false;
    link->gone = true;
    return capture_link_finish(link, now_ms, err);
}
