#include "capture/monitor.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/show.h"
#include "capture/capture.h"

/* Bytes read in one turn: the stream goes first. */
enum { READS_A_TURN = 4, PENDING_MAX = 256 * 1024, HEAD_MAX = 64, FLUSH_MS = 100 };

/* ---- what is said ---- */

static void say(struct capture_monitor *m, const struct capture_link *link, const char *why)
{
    if (!m->said)
        capture_event(link->capture, link, "monitor", true,
                      "MONITOR: %s; which clients send commands is not recorded", why);
    m->said = true;
}

static void disconnect(struct capture_monitor *m)
{
    client_peer_close(m->peer);
    m->peer = NULL;
    m->connected = m->shows = m->in_list = m->too_long = false;
    m->n_asked = 0;
    m->ping_ms = 0;
    rd_buf_reset(&m->out);
    rd_buf_reset(&m->line);
}

static void lose(struct capture_monitor *m, const struct capture_link *link, const char *why,
                 uint64_t now_ms)
{
    uint64_t ms = (uint64_t)CAPTURE_MONITOR_RETRY_MS << (m->tries < 5 ? m->tries : 5);
    disconnect(m);
    m->tries++;
    m->retry_ms = now_ms + (ms < CAPTURE_MONITOR_RETRY_MAX_MS ? ms : CAPTURE_MONITOR_RETRY_MAX_MS);
    say(m, link, why);
}

static void lose_for(struct capture_monitor *m, const struct capture_link *link,
                     const struct rd_err *why, uint64_t now_ms)
{
    char text[400];
    rd_err_render(why, text, sizeof text);
    lose(m, link, text, now_ms);
}

static void switch_off(struct capture_monitor *m, const struct capture_link *link,
                       const struct rd_err *why)
{
    char text[400];
    rd_err_render(why, text, sizeof text);
    disconnect(m);
    m->off = true;
    m->said = false;
    say(m, link, text);
}

/* ---- what is sent ---- */

static bool put_command(struct capture_monitor *m, enum capture_monitor_asked asked, size_t argc,
                        const char *const *argv)
{
    bool ok = rd_buf_printf(&m->out, "*%zu\r\n", argc);
    for (size_t i = 0; ok && i < argc; i++)
        ok = rd_buf_printf(&m->out, "$%zu\r\n", strlen(argv[i])) &&
             rd_buf_add(&m->out, argv[i], strlen(argv[i])) && rd_buf_add(&m->out, "\r\n", 2);
    m->asked[m->n_asked++] = asked;
    return ok;
}

/* Clients that wait are listed after MONITOR: one that begins to wait in between has a line. */
static bool put_greeting(struct capture_monitor *m, const struct capture_link *link)
{
    const struct client_target *t = &link->target;
    const char *const auth[] = {"AUTH", t->user != NULL ? t->user : t->password, t->password};
    const char *const monitor[] = {"MONITOR"}, *const list[] = {"CLIENT", "LIST"};
    return (t->password == NULL ||
            put_command(m, MONITOR_ASKED_AUTH, t->user != NULL ? 3 : 2, auth)) &&
           put_command(m, MONITOR_ASKED_MONITOR, 1, monitor) &&
           put_command(m, MONITOR_ASKED_LIST, 2, list);
}

static bool put_ping(struct capture_monitor *m, uint64_t now_ms)
{
    const char *const ping[] = {"PING"};
    m->ping_ms = now_ms;
    m->ping_us = capture_now_us();
    m->next_ms = now_ms + CAPTURE_MONITOR_PING_MS;
    return put_command(m, MONITOR_ASKED_PING, 1, ping);
}

static void send_output(struct capture_monitor *m, const struct capture_link *link, uint64_t now_ms)
{
    while (m->peer != NULL && m->out.len > 0) {
        struct rd_err why = {0};
        size_t len = 0;
        switch (client_peer_write_some(m->peer, rd_buf_slice(&m->out), &len, &why)) {
        case CLIENT_OK:
            m->out.len -= len;
            memmove(m->out.ptr, m->out.ptr + len, m->out.len);
            break;
        case CLIENT_WAIT:
            return;
        default:
            lose_for(m, link, &why, now_ms);
        }
    }
}

/* ---- what arrives ---- */

static bool begin_piece(struct capture_monitor *m, const struct capture_link *link, unsigned flags,
                        struct rd_err *err)
{
    if (m->writer == NULL && !repl_monitor_writer_new(&m->writer, &link->store.fs, err))
        return false;
    m->shows = true;
    return repl_monitor_writer_begin(m->writer, capture_now_us(), flags, err);
}

/* The value after "name=" in a line of CLIENT LIST. */
static struct rd_slice field_of(struct rd_slice line, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i + len <= line.len; i++) {
        if ((i > 0 && line.ptr[i - 1] != ' ') || memcmp(line.ptr + i, name, len) != 0)
            continue;
        const uint8_t *from = line.ptr + i + len;
        size_t rest = line.len - i - len;
        const uint8_t *end = memchr(from, ' ', rest);
        return rd_slice(from, end != NULL ? (size_t)(end - from) : rest);
    }
    return rd_slice(NULL, 0);
}

static bool take_listed(struct capture_monitor *m, struct rd_slice line, struct rd_err *err)
{
    struct rd_slice flags = field_of(line, "flags="), address = field_of(line, "addr=");
    if (flags.len == 0 || memchr(flags.ptr, 'b', flags.len) == NULL)
        return true;
    return repl_monitor_writer_waits(m->writer, address, capture_now_us(), err);
}

static enum capture_monitor_asked take_asked(struct capture_monitor *m)
{
    enum capture_monitor_asked asked = m->asked[0];
    m->n_asked--;
    memmove(m->asked, m->asked + 1, m->n_asked * sizeof *m->asked);
    return asked;
}

/* After the list of clients, or without it, pings show what has arrived. */
static void listed(struct capture_monitor *m, const struct capture_link *link, uint64_t now_ms)
{
    m->next_ms = now_ms;
    m->tries = 0;
    m->said = false;
    capture_event(link->capture, link, "monitor", false, "recording which clients send commands");
}

static bool take_ok(struct capture_monitor *m, const struct capture_link *link, struct rd_err *err)
{
    switch (take_asked(m)) {
    case MONITOR_ASKED_MONITOR:
        return begin_piece(m, link, REPL_MONITOR_WAITING, err);
    case MONITOR_ASKED_PING:
        m->ping_ms = 0;
        repl_monitor_writer_complete(m->writer, m->ping_us);
        return true;
    default:
        return true;
    }
}

/* Without the list, who waits is unknown. Without the others, nothing can be recorded. */
static bool take_error(struct capture_monitor *m, const struct capture_link *link,
                       struct rd_slice text, uint64_t now_ms, struct rd_err *err)
{
    char why[400];
    if (take_asked(m) == MONITOR_ASKED_LIST) {
        listed(m, link, now_ms);
        return begin_piece(m, link, REPL_MONITOR_UNKNOWN, err);
    }
    snprintf(why, sizeof why, "the master refuses it: %s", rd_show_plain(text).s);
    m->tries = 5;
    lose(m, link, why, now_ms);
    return true;
}

static bool take_reply(struct capture_monitor *m, const struct capture_link *link,
                       struct rd_slice line, uint64_t now_ms, struct rd_err *err)
{
    uint8_t kind = line.len > 0 ? line.ptr[0] : 0;
    const struct rd_slice text = rd_slice(line.ptr + 1, line.len - (line.len > 0));
    if (m->n_asked > 0 && kind == '+')
        return take_ok(m, link, err);
    if (m->n_asked > 0 && kind == '-')
        return take_error(m, link, text, now_ms, err);
    if (m->n_asked > 0 && kind == '$' && m->asked[0] == MONITOR_ASKED_LIST && m->shows &&
        rd_num_get_u64(text, &m->list_len)) {
        take_asked(m);
        m->list_len += 2;
        m->in_list = true;
        return true;
    }
    lose(m, link, "the master answers something else", now_ms);
    return true;
}

static bool take_line(struct capture_monitor *m, const struct capture_link *link,
                      struct rd_slice line, uint64_t now_ms, struct rd_err *err)
{
    if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    if (m->in_list)
        return take_listed(m, line, err);
    bool shown = line.len > 1 && line.ptr[0] == '+' && line.ptr[1] >= '0' && line.ptr[1] <= '9';
    if (shown && m->shows)
        return repl_monitor_writer_line(m->writer, rd_slice(line.ptr + 1, line.len - 1),
                                        capture_now_us(), err);
    return take_reply(m, link, line, now_ms, err);
}

/* A line that is too long is not recorded: a piece ends, and another one begins. */
static bool end_line(struct capture_monitor *m, const struct capture_link *link,
                     struct rd_slice rest, uint64_t now_ms, struct rd_err *err)
{
    if (m->too_long) {
        m->too_long = false;
        return m->in_list || !m->shows || begin_piece(m, link, 0, err);
    }
    if (m->line.len == 0)
        return take_line(m, link, rest, now_ms, err);
    if (!rd_buf_add(&m->line, rest.ptr, rest.len))
        return rd_err_nomem(err, m->line.len);
    bool ok = take_line(m, link, rd_buf_slice(&m->line), now_ms, err);
    rd_buf_reset(&m->line);
    return ok;
}

static bool keep_part(struct capture_monitor *m, struct rd_slice part, struct rd_err *err)
{
    m->too_long |= m->line.len + part.len > REPL_MONITOR_LINE_MAX + HEAD_MAX;
    if (m->too_long)
        rd_buf_reset(&m->line);
    return m->too_long || rd_buf_add(&m->line, part.ptr, part.len) ||
           rd_err_nomem(err, m->line.len);
}

static bool take_bytes(struct capture_monitor *m, const struct capture_link *link,
                       struct rd_slice bytes, uint64_t now_ms, struct rd_err *err)
{
    while (bytes.len > 0 && m->peer != NULL) {
        const uint8_t *lf = memchr(bytes.ptr, '\n', bytes.len);
        size_t len = lf != NULL ? (size_t)(lf - bytes.ptr) : bytes.len;
        size_t taken = len + (lf != NULL);
        const struct rd_slice part = rd_slice(bytes.ptr, len);
        bool was_in_list = m->in_list;
        if (!(lf != NULL ? end_line(m, link, part, now_ms, err) : keep_part(m, part, err)))
            return false;
        bytes = rd_slice(bytes.ptr + taken, bytes.len - taken);
        if (!was_in_list)
            continue;
        m->list_len -= taken < m->list_len ? taken : m->list_len;
        if (m->list_len == 0) {
            m->in_list = false;
            listed(m, link, now_ms);
        }
    }
    return true;
}

/* ---- files ---- */

static void run_sync(void *arg)
{
    struct capture_monitor *m = arg;
    m->sync_result = m->fs->sync(m->fs->ctx, m->sync_fd);
}

static void settle_sync(struct capture_monitor *m)
{
    while (m->syncing && !capture_job_ended(m->syncer))
        poll(NULL, 0, 1);
    m->syncing = false;
}

static bool flush(struct capture_monitor *m, struct capture_link *link, struct rd_err *err)
{
    uint64_t number = repl_capture_writer_number(link->store.writer);
    settle_sync(m); /* the file may be closed */
    bool ok = repl_monitor_writer_flush(m->writer, number, capture_now_us(), err);
    uint64_t size = repl_monitor_writer_size(m->writer);
    repl_capture_writer_beside(link->store.writer, size - m->told);
    m->told = size;
    return ok;
}

static bool begin_sync(struct capture_monitor *m, struct capture_link *link, uint64_t now_ms,
                       struct rd_err *err)
{
    m->sync_fd = repl_monitor_writer_fd(m->writer);
    m->synced_ms = now_ms;
    m->synced_size = m->told;
    if (m->sync_fd < 0)
        return true;
    if (m->syncer == NULL) {
        m->syncer = rd_calloc(1, sizeof *m->syncer);
        if (m->syncer == NULL)
            return rd_err_nomem(err, sizeof *m->syncer);
        capture_job_init(m->syncer);
    }
    m->fs = &link->store.fs;
    m->syncing = true;
    capture_job_start(m->syncer, run_sync, m);
    return true;
}

static bool tick_files(struct capture_monitor *m, struct capture_link *link, uint64_t now_ms,
                       uint64_t *ret_wait_ms, struct rd_err *err)
{
    if (m->writer == NULL)
        return true;
    if (m->syncing && capture_job_ended(m->syncer)) {
        m->syncing = false;
        if (m->sync_result < 0)
            return rd_err_sys(err, -m->sync_result, "cannot sync the recording of MONITOR");
    }
    size_t pending = repl_monitor_writer_pending(m->writer);
    if (pending > 0 && !m->syncing && (now_ms >= m->flush_ms || pending > PENDING_MAX)) {
        m->flush_ms = now_ms + FLUSH_MS;
        if (!flush(m, link, err))
            return false;
    }
    if (m->told > m->synced_size && !m->syncing && now_ms - m->synced_ms >= CAPTURE_MONITOR_SYNC_MS)
        return begin_sync(m, link, now_ms, err);
    if (m->syncing || m->told > m->synced_size || repl_monitor_writer_pending(m->writer) > 0)
        capture_sooner(ret_wait_ms, m->syncing ? 10 : FLUSH_MS);
    return true;
}

/* ---- the connection ---- */

static void go_on_connecting(struct capture_monitor *m, struct capture_link *link, uint64_t now_ms)
{
    struct rd_err why = {0};
    switch (client_peer_connect(m->peer, &why)) {
    case CLIENT_OK:
        m->connected = true;
        m->ping_ms = now_ms; /* the greeting must be answered, too */
        if (!put_greeting(m, link))
            lose(m, link, "out of memory", now_ms);
        return;
    case CLIENT_WAIT:
        return;
    default:
        lose_for(m, link, &why, now_ms);
    }
}

static void connect_again(struct capture_monitor *m, struct capture_link *link, uint64_t now_ms)
{
    struct rd_err why = {0};
    if (client_peer_begin(&m->peer, &link->target, &why)) {
        go_on_connecting(m, link, now_ms);
        return;
    }
    m->peer = NULL;
    lose_for(m, link, &why, now_ms);
}

/* The greeting has as much time as a connection. */
static bool is_late(const struct capture_monitor *m, const struct capture_link *link,
                    uint64_t now_ms)
{
    bool greeting = m->n_asked > 0 && m->asked[0] != MONITOR_ASKED_PING;
    uint64_t limit_ms =
        greeting || m->in_list ? link->target.opts->timeout_ms : CAPTURE_MONITOR_LATE_MS;
    return m->ping_ms != 0 && limit_ms != 0 && now_ms - m->ping_ms > limit_ms;
}

static void tick_peer(struct capture_monitor *m, struct capture_link *link, uint64_t now_ms,
                      uint64_t *ret_wait_ms)
{
    if (m->peer != NULL && !m->connected)
        go_on_connecting(m, link, now_ms);
    if (m->peer == NULL || !m->connected)
        return;
    if (is_late(m, link, now_ms)) {
        lose(m, link, "the master, or this program, does not keep up", now_ms);
        return;
    }
    bool idle = m->shows && m->n_asked == 0 && !m->in_list;
    if (idle && now_ms >= m->next_ms && !put_ping(m, now_ms))
        lose(m, link, "out of memory", now_ms);
    send_output(m, link, now_ms);
    capture_sooner(ret_wait_ms,
                   m->next_ms > now_ms ? m->next_ms - now_ms : CAPTURE_MONITOR_PING_MS);
}

void capture_monitor_prepare(struct capture_monitor *m, struct capture_link *link, uint64_t now_ms,
                             struct pollfd *ret_poll, uint64_t *ret_wait_ms)
{
    struct rd_err err = {0};
    *ret_poll = (struct pollfd){.fd = -1};
    if (!link->capture->monitor || m->off || link->store.writer == NULL ||
        repl_capture_writer_number(link->store.writer) == 0)
        return;
    if (!tick_files(m, link, now_ms, ret_wait_ms, &err)) {
        switch_off(m, link, &err);
        return;
    }
    if (m->peer == NULL && now_ms >= m->retry_ms)
        connect_again(m, link, now_ms);
    else
        tick_peer(m, link, now_ms, ret_wait_ms);
    if (m->peer == NULL) {
        capture_sooner(ret_wait_ms, m->retry_ms > now_ms ? m->retry_ms - now_ms : 1);
        return;
    }
    ret_poll->fd = client_peer_fd(m->peer);
    ret_poll->events = client_peer_events(m->peer, m->out.len > 0);
}

static bool read_input(struct capture_monitor *m, struct capture_link *link, uint64_t now_ms,
                       struct rd_err *err)
{
    for (int i = 0; i < READS_A_TURN && m->peer != NULL; i++) {
        struct rd_err why = {0};
        size_t len = 0;
        switch (client_peer_read_some(m->peer, link->capture->buf, CAPTURE_READ, &len, &why)) {
        case CLIENT_OK:
            if (!take_bytes(m, link, rd_slice(link->capture->buf, len), now_ms, err))
                return false;
            break;
        case CLIENT_WAIT:
            return true;
        case CLIENT_END:
            lose(m, link, "the master closed the connection", now_ms);
            break;
        default:
            lose_for(m, link, &why, now_ms);
        }
    }
    return true;
}

void capture_monitor_work(struct capture_monitor *m, struct capture_link *link, short revents,
                          uint64_t now_ms)
{
    struct rd_err err = {0};
    if (revents == 0 || m->peer == NULL)
        return;
    if (!m->connected)
        go_on_connecting(m, link, now_ms);
    if (m->peer == NULL || !m->connected)
        return;
    bool ok = read_input(m, link, now_ms, &err);
    if (ok && m->writer != NULL && !m->syncing &&
        repl_monitor_writer_pending(m->writer) > PENDING_MAX)
        ok = flush(m, link, &err);
    if (!ok)
        switch_off(m, link, &err);
    else
        send_output(m, link, now_ms);
}

void capture_monitor_drop(struct capture_monitor *m, uint64_t now_ms)
{
    disconnect(m);
    m->retry_ms = now_ms;
}

void capture_monitor_close(struct capture_monitor *m, struct capture_link *link)
{
    struct rd_err err = {0};
    disconnect(m);
    settle_sync(m);
    bool ok = m->writer == NULL || link->store.writer == NULL || m->off || flush(m, link, &err);
    ok = repl_monitor_writer_close(m->writer, ok ? &err : NULL) && ok;
    if (!ok && !m->off)
        switch_off(m, link, &err);
    m->writer = NULL;
    m->off = true;
    if (m->syncer != NULL)
        capture_job_free(m->syncer);
    rd_free(m->syncer);
    m->syncer = NULL;
    rd_buf_done(&m->out);
    rd_buf_done(&m->line);
}
