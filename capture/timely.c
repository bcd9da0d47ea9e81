/* timely.c - whether the stream arrives as the master writes it.
 *
 * The time of a command is when it was read. That is when the master ran it, as long as the
 * connection works and everything that arrives is read at once. What is read after an interruption
 * is older. The capture records interruptions (repl/capture_writer.h):
 *
 * - The connection was lost. They begin with the last byte that was received.
 * - This process did not look at the connection for CAPTURE_LATE_MS: it was stopped, the machine
 *   was
 *   suspended or overloaded. They begin with the last look. A stamp is taken before each call that
 *   finds nothing to read, so that a stop in between is not missed.
 * - The network did not deliver: the master's system did not acknowledge for TCP_SILENCE_MS what
 *   was
 *   sent to it, or nothing came for longer than the master's period of PINGs.
 *
 * How much the master has to send after that is not known. Everything has arrived when there is a
 * pause longer than the round trips of the connection. If the load leaves no pause, it has arrived
 * after as long as the interruption lasted: a connection that carries twice the load has caught up
 * by then.
 */
#include "capture/timely.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/show.h"
#include "capture/capture.h"

enum {
    LATE_WAIT_MIN_MS = 1000,
    LATE_WAIT_MAX_MS = 60000,
    LATE_PAUSE_MS = 50,
    LATE_ROUND_TRIPS = 4,
    TCP_SILENCE_MS = 2000, /* an acknowledgement is sent every second */
    PING_MS = 10000,       /* repl-ping-replica-period, until it was observed */
    PING_TOLERANCE_MS = 2000,
    PING_SURE = 3, /* observations */
    CLOCK_STEP_US = CAPTURE_LATE_MS * 1000
};

static int64_t ms_between(const struct capture_stamp *a, const struct capture_stamp *b)
{
    return (b->boot_us - a->boot_us) / 1000;
}

static bool get_tcp(const struct capture_link *link, struct tcp_info *ret)
{
    socklen_t len = sizeof *ret;
    *ret = (struct tcp_info){.tcpi_rtt = 0};
    return getsockopt(client_peer_fd(link->peer), IPPROTO_TCP, TCP_INFO, ret, &len) == 0;
}

/* ---- the beginning of an interruption ---- */

static void set_late(struct capture_timely *t, const struct capture_stamp *now, int64_t away_ms)
{
    t->late = true;
    t->silent = false;
    t->began = *now;
    t->wait_ms = away_ms < LATE_WAIT_MIN_MS   ? LATE_WAIT_MIN_MS
                 : away_ms > LATE_WAIT_MAX_MS ? LATE_WAIT_MAX_MS
                                              : away_ms;
}

static void begin(struct capture_timely *t, const struct capture_stamp *now, int64_t away_ms)
{
    set_late(t, now, away_ms);
    t->known = true;
    t->drained = false;
    t->empty = t->heard = *now;
    t->pinged.boot_us = 0;
}

bool capture_timely_continue(struct capture_link *link, struct rd_err *err)
{
    struct capture_timely *t = &link->timely;
    const struct capture_stamp now = capture_stamp_now();
    /* In another run, since the last command of the capture. */
    int64_t since_us = t->known ? t->heard.us : repl_capture_writer_last_us(link->store.writer);
    int64_t away_ms = t->known ? ms_between(&t->heard, &now) : (now.us - since_us) / 1000;
    begin(t, &now, away_ms);
    return capture_store_interrupted(&link->store, since_us, now.us, err);
}

bool capture_timely_full(struct capture_link *link, struct rd_err *err)
{
    struct capture_timely *t = &link->timely;
    const struct capture_stamp now = capture_stamp_now();
    int64_t away_ms = ms_between(&t->asked, &now);
    begin(t, &now, away_ms);
    if (away_ms > CAPTURE_LATE_MS)
        return true;
    t->late = false;
    return capture_store_in_time(&link->store, now.us, err);
}

static int64_t ping_ms(const struct capture_timely *t)
{
    return t->n_pings >= PING_SURE ? t->ping_ms : PING_MS;
}

/* The last moment at which everything had certainly arrived and was read; NULL: just now. */
static const struct capture_stamp *find_since(const struct capture_timely *t,
                                              const struct capture_stamp *now)
{
    if (ms_between(&t->heard, now) > ping_ms(t) + PING_TOLERANCE_MS)
        return &t->heard;
    if (t->silent)
        return &t->alive;
    return ms_between(&t->empty, now) > CAPTURE_LATE_MS ? &t->empty : NULL;
}

bool capture_timely_read(struct capture_link *link, struct rd_err *err)
{
    struct capture_timely *t = &link->timely;
    const struct capture_stamp now = capture_stamp_now();
    bool ok = true;
    if (link->stream_ms == 0)
        return true;
    const struct capture_stamp *since = find_since(t, &now);
    if (since != NULL) { /* again, if it is late already */
        ok = capture_store_interrupted(&link->store, since->us, now.us, err);
        set_late(t, &now, ms_between(since, &now));
    }
    t->drained = false;
    t->heard = now;
    return ok;
}

/* The shortest of several intervals is the period: delays only make intervals longer. */
void capture_timely_ping(struct capture_link *link)
{
    struct capture_timely *t = &link->timely;
    const struct capture_stamp *now = &t->heard;
    int64_t ms = ms_between(&t->pinged, now);
    if (!t->late && t->pinged.boot_us != 0) {
        t->ping_ms = t->n_pings == 0 || ms < t->ping_ms ? ms : t->ping_ms;
        t->n_pings++;
    }
    t->pinged = t->late ? (struct capture_stamp){.us = 0} : *now;
}

/* ---- looks that find nothing ---- */

void capture_timely_empty(struct capture_link *link, const struct capture_stamp *stamp)
{
    link->timely.drained = true;
    link->timely.empty = *stamp;
}

void capture_timely_idle(struct capture_link *link, const struct capture_stamp *stamp)
{
    if (link->timely.drained)
        link->timely.empty = *stamp;
}

/* ---- the end ---- */

static bool has_all(const struct capture_link *link, const struct tcp_info *tcp)
{
    const struct capture_timely *t = &link->timely;
    int64_t pause_ms = (int64_t)(tcp->tcpi_rtt / 1000) * LATE_ROUND_TRIPS;
    if (pause_ms < LATE_PAUSE_MS)
        pause_ms = LATE_PAUSE_MS;
    return t->drained && (ms_between(&t->heard, &t->empty) > pause_ms ||
                          ms_between(&t->began, &t->empty) >= t->wait_ms);
}

static void look_at_network(struct capture_timely *t, const struct tcp_info *tcp)
{
    int64_t ms = tcp->tcpi_last_ack_recv;
    if (t->silent || tcp->tcpi_unacked == 0 || ms <= TCP_SILENCE_MS)
        return;
    t->silent = true;
    t->alive = capture_stamp_now();
    t->alive.boot_us -= ms * 1000;
    t->alive.us -= ms * 1000;
}

bool capture_timely_tick(struct capture_link *link, uint64_t *ret_wait_ms, struct rd_err *err)
{
    struct capture_timely *t = &link->timely;
    struct tcp_info tcp;
    if (link->stream_ms == 0)
        return true;
    capture_sooner(ret_wait_ms, CAPTURE_LATE_MS / 2);
    if (get_tcp(link, &tcp))
        look_at_network(t, &tcp);
    if (!t->late)
        return true;
    capture_sooner(ret_wait_ms, LATE_PAUSE_MS / 2);
    if (t->silent || !has_all(link, &tcp))
        return true;
    t->late = false;
    return capture_store_in_time(&link->store, t->empty.us, err);
}

/* ---- the clock ---- */

bool capture_timely_clock(struct capture *capture, struct rd_err *err)
{
    const struct capture_stamp now = capture_stamp_now();
    struct capture_stamp *last = &capture->clock;
    int64_t step_us = now.us - last->us - (now.boot_us - last->boot_us);
    bool set = last->us != 0 && (step_us > CLOCK_STEP_US || step_us < -CLOCK_STEP_US);
    *last = now;
    for (size_t i = 0; set && i < capture->n_links; i++) {
        struct capture_link *link = capture->links[i];
        uint64_t ms = (uint64_t)(step_us < 0 ? -step_us : step_us) / 1000;
        capture_event(capture, link, "clock", true, "the clock was set %s by %s",
                      step_us < 0 ? "back" : "forward", rd_show_duration(ms).s);
        if (link->store.writer != NULL &&
            !capture_store_clock(&link->store, now.us - step_us, now.us, err))
            return false;
    }
    return true;
}
