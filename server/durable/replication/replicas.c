/* Connections of replicas: their commands, and the data that is sent to them. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "server/session/dispatch/dispatch.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist.h"
#include "server/durable/replication/replication_impl.h"

enum { SEND_TURN = 1024 * 1024, FILE_PART = 64 * 1024 };

/* ---- life ---- */

static struct replica *replica_of(struct client *c)
{
    if (c->replica != NULL)
        return c->replica;
    struct replica *replica = rd_calloc(1, sizeof *replica);
    if (replica == NULL)
        replication_no_memory();
    repl_peer_init(&replica->peer, c->sessions->durable->replication->master, &c->reply.buf);
    replica->peer.ctx = replica;
    replica->client = c;
    replica->file = -1;
    c->replica = replica;
    return replica;
}

static void log_lost(const struct client *c)
{
    char name[REPLICA_NAME];
    replica_name(c, name, sizeof name);
    log_warning("Connection with replica %s lost.", name);
}

void replication_forget(struct client *c)
{
    struct replication *r = c->sessions->durable->replication;
    if (r->link != NULL && r->link->client == c) {
        r->link->client = NULL;
        r->link->conn = NULL; /* it is closed with the client */
        link_drop(r->link);
    }
    struct replica *replica = c->replica;
    if (replica == NULL)
        return;
    bool enlisted = replica->peer.state != REPL_PEER_TALKS;
    if (enlisted)
        log_lost(c);
    c->replica = NULL;
    bool waited = replica->peer.state == REPL_PEER_SAVES && !replica->peer.by_mark;
    repl_peer_done(&replica->peer);
    if (replica->file >= 0)
        close(replica->file);
    rd_free(replica);
    if (r->master->n_peers == 0)
        r->master->alone_since_ms = loop_mono_ms(c->sessions->loop);
    if (waited)
        replicas_snapshot_unwanted(c->sessions->durable);
    if (enlisted)
        replicas_snapshot_go_on(c->sessions->durable);
}

void replica_heard(struct client *c)
{
    repl_peer_heard(&c->replica->peer, loop_mono_ms(c->sessions->loop));
}

void replicas_disconnect(struct durable *durable)
{
    for (struct repl_peer *peer = durable->replication->master->first, *next; peer != NULL;
         peer = next) {
        next = peer->next;
        client_free(replica_of_peer(peer)->client);
    }
}

void replica_name(const struct client *c, char *dst, size_t size)
{
    const struct repl_peer *peer = &c->replica->peer;
    char address[REPLICA_NAME];
    replica_address(c->replica, address, sizeof address);
    if (peer->port != 0)
        snprintf(dst, size, "%s:%u", address, (unsigned)peer->port);
    else
        snprintf(dst, size, "%s:<unknown-replica-port>", address);
}

/* ---- before the end ---- */

bool replicas_in_sync(const struct durable *durable)
{
    const struct repl_master *m = durable->replication->master;
    for (const struct repl_peer *peer = m->first; peer != NULL; peer = peer->next)
        if (peer->ack != m->offset)
            return false;
    return true;
}

void replicas_report_lag(const struct durable *durable)
{
    const struct repl_master *m = durable->replication->master;
    unsigned n_lagging = 0;
    for (const struct repl_peer *peer = m->first; peer != NULL; peer = peer->next) {
        char name[REPLICA_NAME];
        if (peer->ack == m->offset)
            continue;
        n_lagging++;
        replica_name(replica_of_peer(peer)->client, name, sizeof name);
        bool online = repl_peer_is_online(peer);
        log_warning("Lagging replica %s has not acknowledged %lld bytes, lag=%lld, state=%s.", name,
                    (long long)(m->offset - peer->ack),
                    online ? (long long)(loop_mono_ms(durable->loop) - peer->ack_ms) / 1000 : 0,
                    replica_state_word(peer));
    }
    if (m->n_peers > 0)
        log_notice("%u of %u replicas are in sync when shutting down.", m->n_peers - n_lagging,
                   m->n_peers);
}

/* ---- REPLCONF ---- */

void replica_log_success(const struct client *c)
{
    char name[REPLICA_NAME];
    replica_name(c, name, sizeof name);
    log_notice("Synchronization with replica %s succeeded", name);
}

/* A command's error gets the prefix of errors; the other replies are sent unchanged. */
static void give_reply(struct dispatch_call *call, struct rd_buf *said)
{
    if (said->len > 3 && said->ptr[0] == '-')
        engine_reply_errorf(call->reply, "%.*s", (int)said->len - 3, (const char *)said->ptr + 1);
    else if (said->len > 0)
        rd_buf_add(&call->reply->buf, said->ptr, said->len);
    rd_buf_done(said);
}

void server_cmd_replconf(struct dispatch_call *call)
{
    struct client *c = call->c;
    struct rd_buf said = {0};
    if (c->conn == NULL)
        return;
    struct replica *replica = replica_of(c);
    replica->peer.out = &said;
    enum repl_said what = repl_peer_replconf(&replica->peer, call->argc, call->argv,
                                             loop_mono_ms(call->sessions->loop));
    replica->peer.out = &c->reply.buf;
    give_reply(call, &said);
    call->sessions->durable->replication->acked |=
        what == REPL_SAID_ACK || what == REPL_SAID_ONLINE;
    if (what == REPL_SAID_ONLINE)
        client_queue_write(c);
}

/* ---- PSYNC and SYNC ---- */

static void log_verdict(const struct client *c, enum repl_verdict verdict, struct rd_slice id,
                        long long wanted)
{
    const struct repl_master *m = c->sessions->durable->replication->master;
    char name[REPLICA_NAME], asked[REPL_REPLID_LEN + 1];
    replica_name(c, name, sizeof name);
    snprintf(asked, sizeof asked, "%.*s", (int)(id.len < sizeof asked ? id.len : 0),
             (const char *)id.ptr);
    switch (verdict) {
    case REPL_CONTINUES:
        log_notice("Partial resynchronization request from %s accepted. Sending %llu bytes of "
                   "backlog starting from offset %lld.",
                   name, (unsigned long long)repl_peer_pending(&c->replica->peer), wanted);
        break;
    case REPL_OTHER_ID:
        log_notice("Partial resynchronization not accepted: Replication ID mismatch (Replica asked "
                   "for '%s', my replication IDs are '%s' and '%s')",
                   asked, m->id.hex,
                   repl_replid_is_set(&m->id2) ? m->id2.hex
                                               : "0000000000000000000000000000000000000000");
        break;
    case REPL_PAST_SECOND:
        log_notice("Partial resynchronization not accepted: Requested offset for second ID was "
                   "%lld, but I can reply up to %llu",
                   wanted, (unsigned long long)m->second + 1);
        break;
    case REPL_NOT_HELD:
    case REPL_AHEAD:
        log_notice("Unable to partial resync with replica %s for lack of backlog (Replica request "
                   "was: %lld).",
                   name, wanted);
        if (verdict == REPL_AHEAD)
            log_warning("Warning: replica %s tried to PSYNC with an offset that is greater than "
                        "the master replication offset.",
                        name);
        break;
    default:
        log_notice("Full resync requested by replica %s", name);
        break;
    }
}

static void count(struct replication *r, enum repl_verdict verdict)
{
    r->partial_syncs += verdict == REPL_CONTINUES;
    r->full_syncs += verdict != REPL_CONTINUES;
    r->partial_refused += verdict != REPL_CONTINUES && verdict != REPL_ASKS_FULL;
}

/* The connection is that of a replica from here on. */
static void become_replica(struct client *c)
{
    int on = !c->sessions->loop->settings.repl_disable_tcp_nodelay;
    c->flags |= CLIENT_REPLICA;
    setsockopt(c->conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    client_uncount(c);
}

static void log_new_history(struct durable *durable)
{
    log_notice("Replication backlog created, my new replication IDs are '%s' and '%s'",
               durable->replication->master->id.hex, "0000000000000000000000000000000000000000");
}

static void log_asks(const struct client *c)
{
    char name[REPLICA_NAME];
    replica_name(c, name, sizeof name);
    log_notice("Replica %s asks for synchronization", name);
}

static void log_wrong_offset(struct client *c)
{
    char name[REPLICA_NAME];
    replica_of(c);
    log_asks(c);
    replica_name(c, name, sizeof name);
    log_warning("Replica %s asks for synchronization but with a wrong offset", name);
}

static void synchronize(struct dispatch_call *call, bool by_id, int64_t wanted)
{
    struct durable *durable = call->sessions->durable;
    struct client *c = call->c;
    struct replica *replica = replica_of(c);
    struct rd_buf said = {0};
    struct rd_slice id = by_id ? call->argv[1] : rd_slice_str("?");
    int64_t now_ms = loop_mono_ms(durable->loop);
    replica->peer.out = &said;
    enum repl_verdict verdict = by_id ? repl_peer_psync(&replica->peer, id, wanted, now_ms)
                                      : repl_peer_sync(&replica->peer, now_ms);
    replica->peer.out = &c->reply.buf;
    give_reply(call, &said);
    if (verdict == REPL_SYNC_NOMEM)
        replication_no_memory();
    if (verdict == REPL_SYNC_REFUSED)
        return;
    log_asks(c);
    become_replica(c);
    if (by_id)
        log_verdict(c, verdict, id, (long long)wanted);
    count(durable->replication, verdict);
    if (verdict == REPL_CONTINUES) {
        client_queue_write(c);
        return;
    }
    if (durable->replication->master->backlog == NULL) {
        replication_keep(durable);
        log_new_history(durable);
    }
    replicas_snapshot_wanted(durable, replica);
}

void server_cmd_sync(struct dispatch_call *call)
{
    struct durable *durable = call->sessions->durable;
    struct client *c = call->c;
    bool by_id = call->argc >= 3;
    int64_t wanted = -1;
    if ((c->flags & (CLIENT_REPLICA | CLIENT_MASTER | CLIENT_MONITOR)) || c->conn == NULL)
        return;
    if (call->argc > 3 && dispatch_arg_is(call->argv[3], "failover") && !failover_accept(call))
        return;
    if (durable->replication->failover.state != FAILOVER_NONE) {
        engine_reply_error(call->reply, "NOMASTERLINK Can't SYNC while failing over");
        return;
    }
    if (replication_is_replica(durable) && !link_is_up(durable)) {
        engine_reply_error(call->reply,
                           "NOMASTERLINK Can't SYNC while not connected with my master");
        return;
    }
    if (client_pending_output(c) > 0) {
        engine_reply_error(call->reply, "ERR SYNC and PSYNC are invalid with pending output");
        return;
    }
    if (by_id && !dispatch_arg_i64(call, call->argv[2], INT64_MIN, INT64_MAX, &wanted, NULL)) {
        log_wrong_offset(c);
        return;
    }
    synchronize(call, by_id, wanted);
}

/* ---- a snapshot by length ---- */

static bool open_file(struct replica *replica)
{
    struct stat st;
    const struct settings *s = &replica->client->sessions->loop->settings;
    replica->file = open(s->dbfilename, O_RDONLY | O_CLOEXEC);
    if (replica->file < 0 || fstat(replica->file, &st) != 0) {
        log_warning("SYNC failed. Can't open/stat DB after BGSAVE: %s", strerror(errno));
        return false;
    }
    replica->file_len = (uint64_t)st.st_size;
    replica->file_at = 0;
    repl_peer_payload(&replica->peer, replica->file_len);
    return true;
}

static ssize_t send_part(struct replica *replica)
{
    struct conn *conn = replica->client->conn;
    uint8_t part[FILE_PART];
    off_t at = (off_t)replica->file_at;
    if (conn->ssl == NULL) {
        ssize_t n = sendfile(conn->fd, replica->file, &at, SEND_TURN);
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? CONN_AGAIN : n <= 0 ? CONN_FAIL : n;
    }
    ssize_t n = pread(replica->file, part, sizeof part, at);
    return n <= 0 ? CONN_FAIL : conn_write(conn, part, (size_t)n);
}

static bool send_file(struct client *c)
{
    struct replica *replica = c->replica;
    if (replica->file < 0 || replica->file_at == replica->file_len)
        return true;
    ssize_t n = send_part(replica);
    if (n < 0) {
        log_warning("Write error sending DB to replica: %s", strerror(errno));
        return false;
    }
    replica->file_at += (uint64_t)n;
    c->sessions->durable->replication->bytes_out += (uint64_t)n;
    if (replica->file_at < replica->file_len)
        return true;
    close(replica->file);
    replica->file = -1;
    repl_peer_payload_sent(&replica->peer, loop_mono_ms(c->sessions->loop));
    if (replica->peer.state == REPL_PEER_ONLINE) {
        replica_log_success(c);
        client_queue_write(c);
    } else {
        replicas_advance(c->sessions->durable);
    }
    return true;
}

/* ---- the stream ---- */

static bool send_stream(struct client *c)
{
    struct replica *replica = c->replica;
    struct rd_slice s;
    for (size_t turn = 0; turn < SEND_TURN && (s = repl_peer_stream(&replica->peer)).len > 0;) {
        ssize_t n = conn_write(c->conn, s.ptr, s.len);
        c->sessions->loop->stats.writes++;
        if (n == CONN_AGAIN)
            return true;
        if (n < 0)
            return false;
        repl_peer_sent(&replica->peer, (size_t)n);
        turn += (size_t)n;
        c->sessions->durable->replication->bytes_out += (uint64_t)n;
        c->sessions->loop->stats.net_out += (uint64_t)n;
        c->active_ms = loop_mono_ms(c->sessions->loop);
    }
    return true;
}

bool replica_send(struct client *c)
{
    struct replica *replica = c->replica;
    if (replica == NULL || client_pending_output(c) > 0)
        return true;
    if (replica->peer.state == REPL_PEER_PAYLOAD)
        return send_file(c);
    if (replica->peer.state == REPL_PEER_SAVES && replica->peer.by_mark)
        replicas_snapshot_go_on(c->sessions->durable);
    return send_stream(c);
}

bool replica_pending(const struct client *c)
{
    const struct replica *replica = c->replica;
    if (replica == NULL)
        return false;
    return replica->file >= 0 || replica->piped_left ||
           (replica->peer.state == REPL_PEER_ONLINE && repl_peer_pending(&replica->peer) > 0);
}

uint64_t replica_backlog(const struct client *c)
{
    return c->replica != NULL ? repl_peer_pending(&c->replica->peer) : 0;
}

/* ---- after a snapshot ---- */

static void log_complete(const struct client *c)
{
    char name[REPLICA_NAME];
    if (c->flags & CLIENT_CLOSE_SOON)
        return;
    replica_name(c, name, sizeof name);
    log_notice("RDB transfer completed, rdb only replica (%s) should be disconnected asap", name);
}

void replicas_advance(struct durable *durable)
{
    for (struct repl_peer *peer = durable->replication->master->first, *next; peer != NULL;
         peer = next) {
        struct replica *replica = replica_of_peer(peer);
        next = peer->next;
        switch (peer->state) {
        case REPL_PEER_PAYLOAD:
            if (replica->file < 0 && !open_file(replica))
                client_close_asap(replica->client);
            client_queue_write(replica->client);
            break;
        case REPL_PEER_ENDS:
            log_complete(replica->client);
            client_close_soon(replica->client);
            break;
        case REPL_PEER_FAILS:
            client_close_soon(replica->client);
            break;
        default:
            break;
        }
    }
}

void replicas_snapshot_saved(struct durable *durable, bool ok)
{
    struct replication *r = durable->replication;
    if (!ok)
        for (struct repl_peer *peer = r->master->first; peer != NULL; peer = peer->next)
            if (peer->state == REPL_PEER_SAVES && !peer->by_mark)
                log_warning("SYNC failed. BGSAVE child returned an error");
    repl_master_end_snapshot(r->master, false, ok, loop_mono_ms(durable->loop));
    replicas_advance(durable);
    replicas_snapshot_try(durable);
}
