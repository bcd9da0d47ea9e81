/* The connection to the master, from connect() to the stream. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "rdb/version.h"
#include "server/loop/daemon.h"
#include "server/loop/dial.h"
#include "server/loop/log.h"
#include "server/loop/lookup.h"
#include "server/loop/tls.h"
#include "server/session/dispatch/script.h"
#include "server/durable/persist/persist.h"
#include "server/durable/replication/replication_impl.h"
#include "server/settings/text.h"

enum { READ_SIZE = 256 * 1024, READS_A_TURN = 16, UNREAD_MAX = 16 * 1024 * 1024 };

/* ---- life ---- */

static void tell_status(const struct repl_link *link, const char *state)
{
    daemon_status("Ready to accept connections. The link to the master %s:%d is %s", link->host,
                  link->port, state);
}

struct repl_link *link_new(struct durable *durable, const char *host, int port)
{
    struct repl_link *link = rd_calloc(1, sizeof *link);
    if (link == NULL)
        replication_no_memory();
    link->durable = durable;
    link->host = settings_text_copy(host, strlen(host));
    link->port = port;
    link->state = REPL_LINK_CONNECT;
    link->since_ms = loop_mono_ms(durable->loop);
    link->down_since_s = durable->loop->mono_us / 1000000;
    tell_status(link, "down");
    return link;
}

static void close_conn(struct repl_link *link)
{
    struct client *c = link->client;
    struct conn *conn = link->conn;
    link->client = NULL;
    link->conn = NULL;
    if (conn != NULL)
        conn->ready = NULL;
    if (c != NULL)
        client_free(c); /* with its connection */
    else if (conn != NULL)
        conn_free(conn);
}

static void forget_addresses(struct repl_link *link)
{
    if (link->addresses != NULL)
        freeaddrinfo(link->addresses);
    link->addresses = NULL;
    link->untried = NULL;
}

/* Everything that belongs to one connection. */
static void close_link(struct repl_link *link)
{
    lookup_cancel(link->lookup);
    link->lookup = NULL;
    forget_addresses(link);
    close_conn(link);
    repl_psync_free(link->psync);
    link->psync = NULL;
    receive_free(link->receive);
    link->receive = NULL;
    rd_buf_reset(&link->held);
    rd_buf_reset(&link->unread);
    link->state = REPL_LINK_CONNECT;
    link->late = false;
    link->since_ms = loop_mono_ms(link->durable->loop);
}

static void begin_connection(struct repl_link *link);

void link_free(struct repl_link *link)
{
    if (link == NULL)
        return;
    close_link(link);
    rd_buf_done(&link->held);
    rd_buf_done(&link->unread);
    rd_free(link->host);
    rd_free(link);
}

bool link_is_up(const struct durable *durable)
{
    const struct repl_link *link = durable->replication->link;
    return link != NULL && link->state == REPL_LINK_CONNECTED;
}

void link_log_lost(const struct repl_link *link)
{
    if (link->state != REPL_LINK_CONNECTED)
        return;
    log_warning("Connection with master lost.");
    tell_status(link, "down");
    if (link->has_place)
        log_notice("Caching the disconnected master state.");
}

void link_forget_place(struct repl_link *link)
{
    if (link->has_place)
        log_notice("Discarding previously cached master state.");
    link->has_place = false;
}

void link_drop(struct repl_link *link)
{
    if (link->in_event) {
        link->cut = true;
        return;
    }
    link_log_lost(link);
    if (link->state == REPL_LINK_CONNECTED)
        link->down_since_s = link->durable->loop->mono_us / 1000000;
    bool failed = link->state == REPL_LINK_TRANSFER || link->late;
    bool pauses = link->retry_ms > loop_mono_ms(link->durable->loop);
    bool at_once = !pauses && (link->state == REPL_LINK_CONNECTED || failed);
    bool rejected = link->rejected;
    close_link(link);
    if (rejected) {
        failover_answered(link->durable, false); /* may free the link */
        return;
    }
    if (at_once) {
        log_notice("Reconnecting to MASTER %s:%d%s", link->host, link->port,
                   failed ? " after failure" : "");
        begin_connection(link);
    }
}

static const char *without_code(const char *error)
{
    return strncmp(error, "ERR ", 4) == 0 ? error + 4 : error;
}

void link_unsupported(struct repl_link *link, const char *what, const char *why)
{
    enum { FIRST_MS = 60 * 1000, MOST_MS = 3600 * 1000, CALM_MS = 10 * 60 * 1000 };
    int64_t now_ms = loop_mono_ms(link->durable->loop);
    bool calm = link->state == REPL_LINK_CONNECTED && now_ms - link->since_ms > CALM_MS;
    int64_t wait_ms = calm || link->retry_wait_ms == 0 ? FIRST_MS : 2 * link->retry_wait_ms;
    link->retry_wait_ms = wait_ms < MOST_MS ? wait_ms : MOST_MS;
    link->retry_ms = now_ms + link->retry_wait_ms;
    link->has_place = false;
    snprintf(link->unsupported, sizeof link->unsupported, "%s%s%s", what,
             why[0] != '\0' ? ": " : "", without_code(why));
    log_warning("Closing the connection to the master, because this version does not support %s. "
                "The next full synchronization begins in %lld seconds.",
                link->unsupported, (long long)(link->retry_wait_ms / 1000));
}

/* ---- connecting ---- */

static void on_ready(struct conn *conn, int events);

static void connect_to_next(struct repl_link *link)
{
    struct rd_err err = {0};
    int fd = dial(&link->durable->loop->settings, &link->untried);
    if (fd < 0) {
        log_warning("Unable to connect to MASTER: %s", strerror(errno));
        close_link(link);
        return;
    }
    link->conn = conn_new(link->durable->loop, fd, false, NULL);
    link->conn->ready = on_ready;
    link->conn->owner = link;
    if (!dial_tls(link->conn, link->durable->loop->settings.tls_replication, &err)) {
        if (err.text[0] != '\0')
            log_warning("Unable to connect to MASTER: %s", err.text);
        close_link(link);
        return;
    }
    link->state = REPL_LINK_CONNECTING;
    link->rejected = false;
    link->since_ms = link->heard_ms = loop_mono_ms(link->durable->loop);
    conn_watch(link->conn, false, true);
    log_notice("MASTER <-> REPLICA sync started");
}

static void connect_to(struct repl_link *link, struct addrinfo *all)
{
    link->addresses = all;
    link->untried = all;
    connect_to_next(link);
}

/* The address that is being connected does not answer, or refuses. */
static void not_connected(struct repl_link *link)
{
    if (link->untried == NULL) {
        link_drop(link);
        return;
    }
    close_conn(link);
    connect_to_next(link);
}

static void on_found(void *ctx, struct addrinfo *all, int error)
{
    struct repl_link *link = ctx;
    link->lookup = NULL;
    if (error == 0)
        connect_to(link, all);
    else
        log_warning("Unable to connect to MASTER: %s", gai_strerror(error));
}

static void begin_connection(struct repl_link *link)
{
    struct addrinfo *all;
    char port[16];
    snprintf(port, sizeof port, "%d", link->port);
    if (lookup_numeric(link->host, port, &all)) {
        connect_to(link, all);
        return;
    }
    link->lookup = lookup_start(link->durable->loop, link->host, port, on_found, link);
    if (link->lookup == NULL)
        log_warning("Unable to connect to MASTER: its name cannot be looked up");
}

void link_connect(struct repl_link *link)
{
    if (link->lookup != NULL)
        return;
    log_notice("Connecting to MASTER %s:%d", link->host, link->port);
    begin_connection(link);
}

static bool make_psync(struct repl_link *link)
{
    struct durable *durable = link->durable;
    const struct settings *s = &durable->loop->settings;
    const struct repl_master *m = durable->replication->master;
    struct rd_err err = {0};
    int64_t port = s->replica_announce_port != 0           ? s->replica_announce_port
                   : s->tls_replication && s->tls_port > 0 ? s->tls_port
                                                           : s->port;
    struct repl_psync_opts opts =
        REPL_PSYNC_OPTS(.user = s->masteruser[0] != '\0' && s->masterauth_len > 0 ? s->masteruser
                                                                                  : NULL,
                        .password = s->masterauth_len > 0 ? s->masterauth : NULL,
                        .password_len = s->masterauth_len, .port = (uint16_t)port,
                        .ip = s->replica_announce_ip[0] != '\0' ? s->replica_announce_ip : NULL,
                        .version = RDB_REPLICA_VERSION,
                        .failover = durable->replication->failover.state == FAILOVER_RUNS,
                        .timeout_ms = (uint64_t)s->repl_timeout * 1000);
    if (link->has_place)
        opts.resume = (struct repl_resume){
            .replid = m->id, .offset = m->offset, .db = link->db, .in_multi = false};
    if (repl_psync_new(&link->psync, &opts, &err))
        return true;
    log_warning("Cannot replicate: %s", err.text);
    return false;
}

/* False: the handshake of TLS continues, or the link was dropped. */
static bool shaken(struct repl_link *link)
{
    struct conn *conn = link->conn;
    ssize_t done = tls_handshake(conn);
    if (done == CONN_AGAIN)
        conn_watch(conn, !conn->tls_wants_write, conn->tls_wants_write);
    if (done != CONN_FAIL)
        return done != CONN_AGAIN;
    log_warning("Error condition on socket for SYNC: %s", conn->error);
    link_drop(link);
    return false;
}

/* False: not yet, or the link was dropped. */
static bool connected(struct repl_link *link)
{
    int error = 0;
    socklen_t len = sizeof error;
    struct conn *conn = link->conn;
    getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error != 0) {
        log_warning("Error condition on socket for SYNC: %s", strerror(error));
        not_connected(link);
        return false;
    }
    if (conn->ssl != NULL && !shaken(link))
        return false;
    forget_addresses(link);
    log_notice("Non blocking connect for SYNC fired the event.");
    if (!make_psync(link)) {
        link_drop(link);
        return false;
    }
    link->state = REPL_LINK_HANDSHAKE;
    return true;
}

/* ---- events ---- */

static const char *text_of(struct rd_slice s, char *dst, size_t size)
{
    size_t n = 0;
    for (; n < s.len && n < size - 1; n++)
        dst[n] = (char)(s.ptr[n] >= ' ' && s.ptr[n] < 127 ? s.ptr[n] : ' ');
    dst[n] = '\0';
    return dst;
}

static void log_request(const struct repl_link *link)
{
    const struct repl_master *m = link->durable->replication->master;
    if (link->has_place)
        log_notice("Trying a partial resynchronization (request %s:%llu).", m->id.hex,
                   (unsigned long long)m->offset + 1);
    else
        log_notice("Partial resynchronization not possible (no cached master)");
}

static void on_reply(struct repl_link *link, const struct repl_event *ev)
{
    char text[256];
    bool refused = ev->text.len > 0 && ev->text.ptr[0] == '-';
    text_of(ev->text, text, sizeof text);
    if (ev->step == REPL_STEP_PING && !refused)
        log_notice("Master replied to PING, replication can continue...");
    else if (ev->step == REPL_STEP_PORT && refused)
        log_notice("(Non critical) Master does not understand REPLCONF listening-port: %s", text);
    else if (ev->step == REPL_STEP_ADDRESS && refused)
        log_notice("(Non critical) Master does not understand REPLCONF ip-address: %s", text);
    else if (ev->step == REPL_STEP_CAPA && refused)
        log_notice("(Non critical) Master does not understand REPLCONF capa: %s", text);
    else if (ev->step == REPL_STEP_PSYNC && refused)
        log_notice("Master does not support PSYNC or is in error state (reply: %s)", text);
    enum repl_step next = repl_psync_step(link->psync);
    if (next == REPL_STEP_PSYNC)
        log_request(link);
    else if (next == REPL_STEP_SYNC)
        log_notice("Retrying with SYNC...");
}

static bool has_id(const struct durable *durable, const struct repl_replid *id)
{
    return repl_replid_eq(&durable->replication->master->id, id);
}

/* The data remains that of the old history until the snapshot replaces it. */
static void on_full(struct repl_link *link, const struct repl_event *ev)
{
    if (ev->kind == REPL_FULL)
        log_notice("Full resync from master: %s:%llu", ev->replid.hex,
                   (unsigned long long)ev->offset);
    link->receive = receive_new(link, ev->kind == REPL_FULL && has_id(link->durable, &ev->replid));
    link->state = REPL_LINK_TRANSFER;
    failover_answered(link->durable, true);
}

static void up(struct repl_link *link)
{
    link->state = REPL_LINK_CONNECTED;
    link->since_ms = loop_mono_ms(link->durable->loop);
    link->unsupported[0] = '\0';
    tell_status(link, "up");
    apply_begin(link);
}

static void on_continue(struct repl_link *link, const struct repl_event *ev)
{
    struct durable *durable = link->durable;
    struct repl_master *m = durable->replication->master;
    log_notice("Successful partial resynchronization with master.");
    failover_answered(durable, true);
    if (ev->changed) {
        repl_master_rename(m, &ev->replid);
        log_warning("Master replication ID changed to %s", ev->replid.hex);
        replicas_disconnect(durable);
    }
    if (!repl_master_keep(m))
        replication_no_memory();
    log_notice("MASTER <-> REPLICA sync: Master accepted a Partial Resynchronization.");
    up(link);
}

static void log_closed(enum repl_step step)
{
    if (step == REPL_STEP_STREAM)
        return;
    if (step == REPL_STEP_PAYLOAD || step == REPL_STEP_LOADED) {
        log_warning("I/O error trying to sync with MASTER: connection lost");
        return;
    }
    if (step == REPL_STEP_HEADER || step == REPL_STEP_SYNC) {
        log_warning("I/O error reading bulk count from MASTER: connection lost");
        return;
    }
    log_warning("Failed to read response from the server: connection lost");
    if (step == REPL_STEP_PSYNC)
        log_warning("Master did not reply to PSYNC, will try later");
    else
        log_warning("Master did not respond to command during SYNC handshake");
}

static void log_late(enum repl_step step)
{
    if (step == REPL_STEP_STREAM)
        log_warning("MASTER timeout: no data nor PING received...");
    else if (step >= REPL_STEP_HEADER)
        log_warning("Timeout receiving bulk data from MASTER... If the problem persists try to set "
                    "the 'repl-timeout' parameter in redis.conf to a larger value.");
    else
        log_warning("Timeout connecting to the MASTER...");
}

/* An answer of the master that ends the connection. */
static void log_answer(const struct repl_event *ev)
{
    char text[256];
    text_of(ev->text, text, sizeof text);
    bool psync = ev->step == REPL_STEP_PSYNC, retry = ev->error_class == REPL_RETRY;
    bool error = text[0] == '-', bulk = ev->step == REPL_STEP_HEADER || ev->step == REPL_STEP_SYNC;
    if (psync && retry)
        log_notice("Master is currently unable to PSYNC but should be in the future: %s", text);
    else if (psync && strncmp(text, "+FULLRESYNC", strlen("+FULLRESYNC")) == 0)
        log_warning("Master replied with wrong +FULLRESYNC syntax.");
    else if (psync)
        log_warning("Unexpected reply to PSYNC from master: %s", text);
    else if (bulk && error)
        log_warning("MASTER aborted replication with an error: %s", text + 1);
    else if (bulk && text[0] != '$')
        log_warning("Bad protocol from MASTER, the first byte is not '$' (we received '%s'), are "
                    "you sure the host and port are right?",
                    text);
    else if (ev->error_class == REPL_AUTH)
        log_warning("Unable to AUTH to MASTER: %s", text);
    else if (ev->step == REPL_STEP_PING)
        log_warning("Error reply to PING from master: '%s'", text);
    else
        log_warning("Error from the MASTER: %s", ev->err->text);
}

/* The same bytes would come again after a partial sync. */
static void stream_is_wrong(struct repl_link *link, const char *why)
{
    struct rd_buf line = {0};
    client_describe(link->client, &line);
    rd_buf_add_byte(&line, 0);
    log_warning("Protocol error (%s) from client: %s", why, (const char *)line.ptr);
    rd_buf_done(&line);
    link->has_place = false;
    link->cut = true;
}

static void on_error(struct repl_link *link, const struct repl_event *ev)
{
    link->rejected =
        ev->step == REPL_STEP_PSYNC && link->durable->replication->failover.state == FAILOVER_RUNS;
    link->cut = true;
    if (ev->error_class == REPL_NOMEM)
        replication_no_memory();
    else if (ev->error_class == REPL_TIMEOUT)
        log_late(ev->step);
    else if (ev->error_class == REPL_CLOSED)
        log_closed(ev->step);
    else if (ev->text.len > 0)
        log_answer(ev);
    else if (link->client != NULL)
        stream_is_wrong(link, ev->err->text);
    else
        log_warning("Error from the MASTER: %s", ev->err->text);
    link->late = ev->error_class == REPL_TIMEOUT && ev->step != REPL_STEP_STREAM;
}

/* A master never sends inline commands: parts of the stream are missing, or of another stream. */
static void on_command(struct repl_link *link, const struct repl_event *ev)
{
    if (RD_LIKELY(ev->bytes.ptr[0] == '*')) {
        apply_command(link, ev);
        return;
    }
    log_warning("WARNING: Receiving inline protocol from master, master stream corruption? Closing "
                "the master connection and discarding the cached master.");
    stream_is_wrong(link, "Master using the inline protocol. Desync?");
}

static void on_event(struct repl_link *link, const struct repl_event *ev)
{
    switch (ev->kind) {
    case REPL_REPLY:
        on_reply(link, ev);
        break;
    case REPL_FULL:
    case REPL_SYNC:
        on_full(link, ev);
        break;
    case REPL_CONTINUE:
        on_continue(link, ev);
        break;
    case REPL_PAYLOAD_BEGIN:
        link->cut |= !receive_begin(link, ev);
        break;
    case REPL_PAYLOAD:
        link->cut |= !receive_bytes(link, ev);
        break;
    case REPL_PAYLOAD_END:
        link->cut |= !receive_end(link);
        break;
    case REPL_COMMAND:
        on_command(link, ev);
        break;
    case REPL_KEEPALIVE:
        if (ev->step == REPL_STEP_STREAM)
            apply_pass(link, ev->bytes);
        break;
    case REPL_ERROR:
        on_error(link, ev);
        break;
    default:
        break;
    }
}

/* A snapshot is being loaded, or CLIENT PAUSE stops the stream. */
static bool is_held(const struct repl_link *link)
{
    return receive_is_loading(link) || (link->state == REPL_LINK_CONNECTED &&
                                        link->durable->sessions->clients->pause_until_ms != 0);
}

/* The first event after the snapshot acknowledges it, so it is requested only when the snapshot is
 * loaded. */
static bool may_take(struct repl_link *link)
{
    if (link->cut || is_held(link))
        return false;
    if (link->state == REPL_LINK_TRANSFER && receive_is_done(link)) {
        receive_free(link->receive);
        link->receive = NULL;
        up(link);
    }
    return !is_held(link);
}

/* False: the link was dropped. */
static bool take_events(struct repl_link *link)
{
    struct repl_event ev;
    link->in_event = true;
    while (may_take(link) && repl_psync_next(link->psync, &ev) != REPL_MORE)
        on_event(link, &ev);
    link->in_event = false;
    if (!link->cut)
        return true;
    link->cut = false;
    link_drop(link);
    return false;
}

/* ---- bytes ---- */

static bool write_out(struct repl_link *link)
{
    struct rd_slice out;
    while ((out = repl_psync_output(link->psync)).len > 0) {
        ssize_t n = conn_write(link->conn, out.ptr, out.len);
        if (n == CONN_AGAIN)
            break;
        if (n < 0) {
            if (link->state != REPL_LINK_CONNECTED)
                log_warning("Sending command to master in replication handshake: %s",
                            strerror(errno));
            link_drop(link);
            return false;
        }
        repl_psync_sent(link->psync, (size_t)n);
        link->durable->loop->stats.net_out += (uint64_t)n;
    }
    return true;
}

/* During a pause, data is read up to a limit; the rest stays at the master. */
static bool may_read(const struct repl_link *link)
{
    return !receive_is_loading(link) && link->unread.len < UNREAD_MAX;
}

void link_watch(struct repl_link *link)
{
    if (link->conn == NULL || link->psync == NULL)
        return;
    conn_watch(link->conn, may_read(link), repl_psync_output(link->psync).len > 0);
}

static bool feed(struct repl_link *link, struct rd_slice bytes)
{
    size_t at = 0;
    while (at < bytes.len && !is_held(link)) {
        at += repl_psync_feed(link->psync, rd_slice(bytes.ptr + at, bytes.len - at));
        if (!take_events(link))
            return false;
    }
    if (at == bytes.len)
        return true;
    repl_psync_heard(link->psync);
    return rd_buf_add(&link->unread, bytes.ptr + at, bytes.len - at) ||
           (replication_no_memory(), false);
}

static bool feed_unread(struct repl_link *link)
{
    struct rd_buf rest = link->unread;
    if (rest.len == 0 || is_held(link))
        return true;
    link->unread = (struct rd_buf){0};
    bool ok = feed(link, rd_buf_slice(&rest));
    rd_buf_done(&rest);
    return ok;
}

static void note_read(struct repl_link *link, size_t n)
{
    struct durable *durable = link->durable;
    durable->loop->stats.net_in += n;
    durable->loop->stats.reads++;
    if (link->state >= REPL_LINK_TRANSFER)
        durable->replication->bytes_in += n;
    link->heard_ms = loop_mono_ms(durable->loop);
    if (link->client != NULL)
        link->client->active_ms = link->heard_ms;
}

/* False: the link was dropped. */
static bool read_in(struct repl_link *link)
{
    static uint8_t buf[READ_SIZE];
    if (!take_events(link) || !feed_unread(link))
        return false;
    for (int i = 0; i < READS_A_TURN && may_read(link); i++) {
        ssize_t n = conn_read(link->conn, buf, sizeof buf);
        if (n == CONN_AGAIN)
            return true;
        if (n < 0)
            repl_psync_cut(link->psync);
        else
            note_read(link, (size_t)n);
        if (n < 0 ? !take_events(link) : !feed(link, rd_slice(buf, (size_t)n)))
            return false;
        if (n < 0) {
            link_drop(link);
            return false;
        }
    }
    return true;
}

void link_resume(struct repl_link *link)
{
    if (link->unread.len > 0 && !is_held(link))
        link_go_on(link);
}

void link_go_on(struct repl_link *link)
{
    if (link->psync == NULL || dispatch_script_busy(link->durable->sessions) != 0 ||
        !take_events(link) || !feed_unread(link) || !write_out(link))
        return;
    link_watch(link);
}

static void on_ready(struct conn *conn, int events)
{
    struct repl_link *link = conn->owner;
    loop_awake(link->durable->loop);
    if (dispatch_script_busy(link->durable->sessions) != 0)
        return; /* a script runs: the dataset must not change now */
    if (link->state == REPL_LINK_CONNECTING && !connected(link))
        return;
    if (((events & UV_READABLE) != 0 || conn->ssl != NULL) && !read_in(link))
        return;
    if (!write_out(link))
        return;
    link_watch(link);
}

/* ---- time ---- */

void link_cron(struct repl_link *link)
{
    int64_t now_ms = loop_mono_ms(link->durable->loop);
    if (link->state == REPL_LINK_CONNECT) {
        if (now_ms >= link->retry_ms)
            link_connect(link);
        return;
    }
    if (link->state == REPL_LINK_CONNECTING) {
        if (now_ms - link->since_ms <= link->durable->loop->settings.repl_timeout * 1000)
            return;
        log_late(REPL_STEP_PING);
        link->late = link->untried == NULL;
        not_connected(link);
        return;
    }
    repl_psync_tick(link->psync, (uint64_t)now_ms);
    link_go_on(link);
}
