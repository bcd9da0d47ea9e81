#include "server/client/client.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "server/observe/monitor.h"
#include "server/core/pubsub.h"
#include "server/observe/slowlog.h"

struct clients *clients_new(struct server *srv)
{
    struct clients *all = rd_calloc(1, sizeof *all);
    uint8_t *shared = rd_alloc(CLIENT_SHARED_INPUT);
    if (all == NULL || shared == NULL)
        server_panic(srv, "out of memory");
    all->shared = shared;
    all->next_id = 1;
    all->output_peak_ms = CLIENT_OUTPUT_PEAK_MS;
    return all;
}

void clients_free(struct clients *all)
{
    if (all == NULL)
        return;
    while (all->first != NULL)
        client_free(all->first);
    rd_free(all->shared);
    rd_free(all->waiting);
    rd_free(all);
}

static void link_client(struct clients *all, struct client *c)
{
    c->id = all->next_id++;
    c->prev = all->last;
    if (all->last != NULL)
        all->last->next = c;
    else
        all->first = c;
    all->last = c;
    all->n++;
}

static void unlink_client(struct clients *all, struct client *c)
{
    if (all->cron_next == c)
        all->cron_next = c->next;
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        all->first = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    else
        all->last = c->prev;
    all->n--;
}

struct client *client_new(struct server *srv, struct conn *conn)
{
    struct client *c = rd_calloc(1, sizeof *c);
    char *user = c == NULL ? NULL : rd_alloc(sizeof "default");
    if (user == NULL)
        server_panic(srv, "out of memory");
    memcpy(user, "default", sizeof "default");
    c->srv = srv;
    c->conn = conn;
    c->user = user;
    c->authenticated = srv->settings.requirepass_len == 0;
    c->reply.proto = 2;
    c->wait_deadline_us = INT64_MAX;
    c->created_ms = c->active_ms = server_mono_ms(srv);
    c->output_peak_since_ms = c->created_ms;
    engine_session_init(&c->session, srv->engine, ENGINE_CLIENT);
    c->session.ctx = c;
    if (conn == NULL)
        return c;
    conn->client = c;
    if (conn->is_unix)
        c->flags |= CLIENT_UNIX_SOCKET;
    conn_names(conn, c->peer, c->local, sizeof c->peer);
    client_output_begin(c);
    link_client(srv->clients, c);
    conn_watch(conn, true, false);
    return c;
}

void client_close_asap(struct client *c)
{
    if (c->conn == NULL || (c->flags & CLIENT_CLOSE_ASAP))
        return;
    c->flags |= CLIENT_CLOSE_ASAP;
    client_queue_write(c);
}

void client_close_soon(struct client *c)
{
    if (c->conn == NULL)
        return;
    c->flags |= CLIENT_CLOSE_SOON;
    client_queue_write(c);
}

static void leave_lists(struct client *c)
{
    struct clients *all = c->srv->clients;
    unlink_client(all, c);
    client_uncount(c);
    if (c->flags & CLIENT_WRITE_QUEUED) {
        if (c->write_prev != NULL)
            c->write_prev->write_next = c->write_next;
        else
            all->to_write = c->write_next;
        if (c->write_next != NULL)
            c->write_next->write_prev = c->write_prev;
    }
    if (c->flags & CLIENT_UNBLOCKED) {
        struct client **at = &all->to_run, *before = NULL;
        while (*at != c) {
            before = *at;
            at = &(*at)->run_next;
        }
        *at = c->run_next;
        if (all->to_run_last == c)
            all->to_run_last = before;
    }
}

void client_free(struct client *c)
{
    if (c->srv->current == c) {
        client_close_asap(c);
        return;
    }
    if (c->flags & CLIENT_BLOCKED) {
        if (c->session.waiter != NULL)
            engine_block_cancel(&c->session, ENGINE_GONE, NULL);
        client_unblock(c);
    }
    pubsub_forget(c);
    slowlog_entry_free(c->slow);
    monitor_forget(c);
    engine_session_done(&c->session);
    if (c->conn != NULL) {
        leave_lists(c);
        conn_free(c->conn);
    }
    client_input_done(c);
    engine_reply_done(&c->reply);
    rd_buf_done(&c->name);
    rd_free(c->user);
    rd_free(c);
}

struct client *client_find(struct server *srv, uint64_t id)
{
    for (struct client *c = srv->clients->first; c != NULL; c = c->next)
        if (c->id == id)
            return c;
    return NULL;
}

enum client_type client_type(const struct client *c)
{
    return (c->flags & CLIENT_PUBSUB) ? CLIENT_TYPE_PUBSUB : CLIENT_TYPE_NORMAL;
}

/* ---- a share of the clients, ten times a second ---- */

enum { CRON_MIN = 5 };

static bool idle(const struct client *c)
{
    int64_t timeout = c->srv->settings.timeout;
    uint32_t excused = CLIENT_BLOCKED | CLIENT_PUBSUB | CLIENT_MONITOR;
    return timeout > 0 && (c->flags & excused) == 0 &&
           server_mono_ms(c->srv) - c->active_ms > timeout * 1000;
}

static void look_at(struct client *c)
{
    c->in.peak = c->in.buf.len;
    if (server_mono_ms(c->srv) - c->active_ms > CLIENT_IDLE_MS)
        client_input_trim(c);
    client_output_trim(c);
    client_count(c);
    if ((c->flags & CLIENT_CLOSE_ASAP) == 0 && (idle(c) || client_over_limit(c, true)))
        client_close_asap(c);
}

/* In rotation, so that each client is checked once a second. */
void clients_cron(struct server *srv)
{
    struct clients *all = srv->clients;
    size_t n = all->n / (size_t)srv->hz;
    n = n < CRON_MIN ? CRON_MIN : n;
    n = n < all->n ? n : all->n;
    for (size_t i = 0; i < n; i++) {
        struct client *c = all->cron_next != NULL ? all->cron_next : all->first;
        all->cron_next = c->next;
        look_at(c);
    }
}
