/* INFO replication and ROLE. */
#include "server/surface/cmd/commands.h"
#include "server/loop/log.h"
#include "server/surface/observe/info.h"
#include "server/durable/replication/priv.h"
#include "server/settings/text.h"

#include <stdio.h>
#include <string.h>

#define NO_ID "0000000000000000000000000000000000000000"

/* ---- the link to the master ---- */

static const char *state_word(const struct repl_link *link)
{
    static const char *const words[] = {
        [REPL_LINK_CONNECT] = "connect",     [REPL_LINK_CONNECTING] = "connecting",
        [REPL_LINK_HANDSHAKE] = "handshake", [REPL_LINK_TRANSFER] = "sync",
        [REPL_LINK_CONNECTED] = "connected",
    };
    return words[link->state];
}

static void put_transfer(const struct repl_link *link, struct rd_buf *out)
{
    uint64_t total, read;
    int64_t last_s;
    receive_progress(link, &total, &read, &last_s);
    info_num(out, "master_sync_total_bytes", (int64_t)total);
    info_num(out, "master_sync_read_bytes", (int64_t)read);
    info_num(out, "master_sync_left_bytes", (int64_t)total - (int64_t)read);
    info_real(out, "master_sync_perc", total > 0 ? (double)read * 100 / (double)total : 0);
    info_num(out, "master_sync_last_io_seconds_ago", link->srv->mono_us / 1000000 - last_s);
}

static void put_link(const struct server *srv, const struct repl_link *link, struct rd_buf *out)
{
    const struct settings *s = &srv->settings;
    bool up = link->state == REPL_LINK_CONNECTED;
    int64_t offset = link->has_place ? (int64_t)srv->replication->master->offset : 0;
    info_str(out, "master_host", link->host);
    info_num(out, "master_port", link->port);
    info_str(out, "master_link_status", up ? "up" : "down");
    info_num(out, "master_last_io_seconds_ago",
             up ? (server_mono_ms(srv) - link->heard_ms) / 1000 : -1);
    info_num(out, "master_sync_in_progress", link->state == REPL_LINK_TRANSFER);
    info_num(out, "slave_read_repl_offset", offset + (int64_t)(link->held.len + link->unread.len));
    info_num(out, "slave_repl_offset", offset);
    if (link->state == REPL_LINK_TRANSFER)
        put_transfer(link, out);
    if (!up)
        info_num(out, "master_link_down_since_seconds",
                 srv->mono_us / 1000000 - link->down_since_s);
    info_num(out, "slave_priority", s->replica_priority);
    info_num(out, "slave_read_only", s->replica_read_only);
    info_num(out, "replica_announced", s->replica_announced);
}

/* ---- the replicas ---- */

void replica_address(const struct replica *replica, char *dst, size_t size)
{
    const char *colon = strrchr(replica->client->peer, ':');
    if (replica->peer.address[0] != '\0')
        snprintf(dst, size, "%s", replica->peer.address);
    else
        snprintf(dst, size, "%.*s", (int)(colon != NULL ? colon - replica->client->peer : 0),
                 replica->client->peer);
}

const char *replica_state_word(const struct repl_peer *peer)
{
    switch (peer->state) {
    case REPL_PEER_WAITS:
    case REPL_PEER_SAVES:
        return "wait_bgsave";
    case REPL_PEER_PAYLOAD:
        return "send_bulk";
    case REPL_PEER_PROVES:
    case REPL_PEER_ONLINE:
        return "online";
    default:
        return "rdb_transmitted";
    }
}

static void put_replicas(const struct server *srv, struct rd_buf *out)
{
    const struct repl_master *m = srv->replication->master;
    unsigned i = 0;
    for (const struct repl_peer *peer = m->first; peer != NULL; peer = peer->next) {
        char address[REPLICA_NAME];
        bool online = repl_peer_is_online(peer);
        replica_address(replica_of_peer(peer), address, sizeof address);
        rd_buf_printf(out, "slave%u:ip=%s,port=%u,state=%s,offset=%llu,lag=%lld\r\n", i++, address,
                      (unsigned)peer->port, replica_state_word(peer), (unsigned long long)peer->ack,
                      online ? (long long)(server_mono_ms(srv) - peer->ack_ms) / 1000 : 0);
    }
}

static void put_history(const struct server *srv, struct rd_buf *out)
{
    const struct repl_master *m = srv->replication->master;
    bool second = repl_replid_is_set(&m->id2);
    info_str(out, "master_replid", m->id.hex);
    info_str(out, "master_replid2", second ? m->id2.hex : NO_ID);
    info_num(out, "master_repl_offset", (int64_t)m->offset);
    info_num(out, "second_repl_offset", second ? (int64_t)m->second + 1 : -1);
    uint64_t start = m->backlog != NULL ? repl_backlog_start(m->backlog) : 0;
    info_num(out, "repl_backlog_active", m->backlog != NULL);
    info_num(out, "repl_backlog_size", (int64_t)srv->settings.repl_backlog_size);
    info_num(out, "repl_backlog_first_byte_offset", m->backlog != NULL ? (int64_t)start + 1 : 0);
    info_num(out, "repl_backlog_histlen", m->backlog != NULL ? (int64_t)(m->offset - start) : 0);
}

void info_section_replication(struct server *srv, struct rd_buf *out)
{
    const struct replication *r = srv->replication;
    const struct settings *s = &srv->settings;
    info_str(out, "role", r->link != NULL ? "slave" : "master");
    if (r->link != NULL)
        put_link(srv, r->link, out);
    info_num(out, "connected_slaves", r->master->n_peers);
    if (s->min_replicas_to_write > 0 && s->min_replicas_max_lag > 0)
        info_num(out, "min_slaves_good_slaves",
                 repl_master_good(r->master, s->min_replicas_max_lag * 1000, server_mono_ms(srv)));
    put_replicas(srv, out);
    info_str(out, "master_failover_state", failover_word(srv));
    put_history(srv, out);
}

void replication_log_latest(const struct server *srv)
{
    enum { SHOWN = 256 };
    const struct repl_master *m = srv->replication->master;
    uint64_t start = m->backlog != NULL ? repl_backlog_start(m->backlog) : m->offset;
    uint64_t from = m->offset > start + SHOWN ? m->offset - SHOWN : start;
    struct repl_reader r = {0};
    struct rd_buf bytes = {0}, line = {0};
    if (from == m->offset || !repl_reader_open(&r, m->backlog, from))
        return;
    for (struct rd_slice s; (s = repl_reader_bytes(&r)).len > 0; repl_reader_take(&r, s.len))
        rd_buf_add(&bytes, s.ptr, s.len);
    repl_reader_close(&r);
    settings_text_quote_bytes(rd_buf_slice(&bytes), &line);
    log_warning("Latest backlog is: '%.*s'", (int)line.len, (const char *)line.ptr);
    rd_buf_done(&bytes);
    rd_buf_done(&line);
}

/* ---- ROLE ---- */

static void reply_number(struct engine_reply *reply, long long n)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", n);
    engine_reply_str(reply, text);
}

static void role_of_replica(struct dispatch_call *call, const struct repl_link *link)
{
    const struct repl_master *m = call->srv->replication->master;
    engine_reply_array(call->reply, 5);
    engine_reply_str(call->reply, "slave");
    engine_reply_str(call->reply, link->host);
    engine_reply_int(call->reply, link->port);
    engine_reply_str(call->reply, state_word(link));
    engine_reply_int(call->reply, link->state == REPL_LINK_CONNECTED ? (int64_t)m->offset : -1);
}

void server_cmd_role(struct dispatch_call *call)
{
    const struct replication *r = call->srv->replication;
    if (r->link != NULL) {
        role_of_replica(call, r->link);
        return;
    }
    size_t n = 0;
    for (const struct repl_peer *peer = r->master->first; peer != NULL; peer = peer->next)
        n += repl_peer_is_online(peer);
    engine_reply_array(call->reply, 3);
    engine_reply_str(call->reply, "master");
    engine_reply_int(call->reply, (int64_t)r->master->offset);
    engine_reply_array(call->reply, n);
    for (const struct repl_peer *peer = r->master->first; peer != NULL; peer = peer->next) {
        char address[REPLICA_NAME];
        if (!repl_peer_is_online(peer))
            continue;
        replica_address(replica_of_peer(peer), address, sizeof address);
        engine_reply_array(call->reply, 3);
        engine_reply_str(call->reply, address);
        reply_number(call->reply, peer->port);
        reply_number(call->reply, (long long)peer->ack);
    }
}
