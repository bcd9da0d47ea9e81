/* INFO replication and ROLE. */
#include "server/session/dispatch/dispatch.h"
#include "server/loop/log.h"
#include "server/loop/stats.h"
#include "server/durable/replication/replication_impl.h"
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
    stats_info_num(out, "master_sync_total_bytes", (int64_t)total);
    stats_info_num(out, "master_sync_read_bytes", (int64_t)read);
    stats_info_num(out, "master_sync_left_bytes", (int64_t)total - (int64_t)read);
    stats_info_real(out, "master_sync_perc", total > 0 ? (double)read * 100 / (double)total : 0);
    stats_info_num(out, "master_sync_last_io_seconds_ago",
                   link->durable->loop->mono_us / 1000000 - last_s);
}

static void put_link(const struct durable *durable, const struct repl_link *link,
                     struct rd_buf *out)
{
    const struct settings *s = &durable->loop->settings;
    bool up = link->state == REPL_LINK_CONNECTED;
    int64_t offset = link->has_place ? (int64_t)durable->replication->master->offset : 0;
    stats_info_str(out, "master_host", link->host);
    stats_info_num(out, "master_port", link->port);
    stats_info_str(out, "master_link_status", up ? "up" : "down");
    stats_info_num(out, "master_last_io_seconds_ago",
                   up ? (loop_mono_ms(durable->loop) - link->heard_ms) / 1000 : -1);
    stats_info_num(out, "master_sync_in_progress", link->state == REPL_LINK_TRANSFER);
    stats_info_num(out, "slave_read_repl_offset",
                   offset + (int64_t)(link->held.len + link->unread.len));
    stats_info_num(out, "slave_repl_offset", offset);
    if (link->state == REPL_LINK_TRANSFER)
        put_transfer(link, out);
    if (!up)
        stats_info_num(out, "master_link_down_since_seconds",
                       durable->loop->mono_us / 1000000 - link->down_since_s);
    if (!up && link->unsupported[0] != '\0')
        stats_info_str(out, "master_link_down_reason", link->unsupported);
    stats_info_num(out, "slave_priority", s->replica_priority);
    stats_info_num(out, "slave_read_only", s->replica_read_only);
    stats_info_num(out, "replica_announced", s->replica_announced);
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

static void put_replicas(const struct durable *durable, struct rd_buf *out)
{
    const struct repl_master *m = durable->replication->master;
    unsigned i = 0;
    for (const struct repl_peer *peer = m->first; peer != NULL; peer = peer->next) {
        char address[REPLICA_NAME];
        bool online = repl_peer_is_online(peer);
        replica_address(replica_of_peer(peer), address, sizeof address);
        rd_buf_printf(out, "slave%u:ip=%s,port=%u,state=%s,offset=%llu,lag=%lld\r\n", i++, address,
                      (unsigned)peer->port, replica_state_word(peer), (unsigned long long)peer->ack,
                      online ? (long long)(loop_mono_ms(durable->loop) - peer->ack_ms) / 1000 : 0);
    }
}

static void put_history(const struct durable *durable, struct rd_buf *out)
{
    const struct repl_master *m = durable->replication->master;
    bool second = repl_replid_is_set(&m->id2);
    stats_info_str(out, "master_replid", m->id.hex);
    stats_info_str(out, "master_replid2", second ? m->id2.hex : NO_ID);
    stats_info_num(out, "master_repl_offset", (int64_t)m->offset);
    stats_info_num(out, "second_repl_offset", second ? (int64_t)m->second + 1 : -1);
    uint64_t start = m->backlog != NULL ? repl_backlog_start(m->backlog) : 0;
    stats_info_num(out, "repl_backlog_active", m->backlog != NULL);
    stats_info_num(out, "repl_backlog_size", (int64_t)durable->loop->settings.repl_backlog_size);
    stats_info_num(out, "repl_backlog_first_byte_offset",
                   m->backlog != NULL ? (int64_t)start + 1 : 0);
    stats_info_num(out, "repl_backlog_histlen",
                   m->backlog != NULL ? (int64_t)(m->offset - start) : 0);
}

void info_section_replication(struct durable *durable, struct rd_buf *out)
{
    const struct replication *r = durable->replication;
    const struct settings *s = &durable->loop->settings;
    stats_info_str(out, "role", r->link != NULL ? "slave" : "master");
    if (r->link != NULL)
        put_link(durable, r->link, out);
    stats_info_num(out, "connected_slaves", r->master->n_peers);
    if (s->min_replicas_to_write > 0 && s->min_replicas_max_lag > 0)
        stats_info_num(out, "min_slaves_good_slaves",
                       repl_master_good(r->master, s->min_replicas_max_lag * 1000,
                                        loop_mono_ms(durable->loop)));
    put_replicas(durable, out);
    stats_info_str(out, "master_failover_state", failover_word(durable));
    put_history(durable, out);
}

void replication_log_latest(const struct durable *durable)
{
    enum { SHOWN = 256 };
    const struct repl_master *m = durable->replication->master;
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
    const struct repl_master *m = call->sessions->durable->replication->master;
    engine_reply_array(call->reply, 5);
    engine_reply_str(call->reply, "slave");
    engine_reply_str(call->reply, link->host);
    engine_reply_int(call->reply, link->port);
    engine_reply_str(call->reply, state_word(link));
    engine_reply_int(call->reply, link->state == REPL_LINK_CONNECTED ? (int64_t)m->offset : -1);
}

void server_cmd_role(struct dispatch_call *call)
{
    const struct replication *r = call->sessions->durable->replication;
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
