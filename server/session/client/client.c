#include "server/session/client/client.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "server/loop/log.h"
#include "server/session/acl/acl.h"
#include "server/session/monitor.h"
#include "server/session/pubsub.h"
#include "server/session/slowlog.h"
#include "server/session/tracking/tracking.h"

static struct rd_slice name_of(const void *item)
{
    const struct client *c = item;
    return rd_slice(&c->id, sizeof c->id);
}

static const struct engine_table_type clients_type = {.name = name_of, .apart = true};

struct clients *clients_new(struct sessions *sessions)
{
    struct clients *all = rd_calloc(1, sizeof *all);
    uint8_t *shared = rd_alloc(CLIENT_SHARED_INPUT);
    if (all == NULL || shared == NULL)
        log_panic("out of memory");
    engine_table_init(&all->by_id, &clients_type, sessions->table_seed);
    all->shared = shared;
    all->next_id = 1;
    all->output_peak_ms = CLIENT_OUTPUT_PEAK_MS;
    uv_timer_init(sessions->loop->uv, &all->timer);
    all->timer.data = sessions;
    return all;
}

static void on_closed(uv_handle_t *timer)
{
    rd_free(timer->data);
}

void clients_free(struct clients *all)
{
    if (all == NULL)
        return;
    while (all->first != NULL)
        client_free(all->first);
    engine_table_done(&all->by_id);
    rd_free(all->shared);
    rd_free(all->waiting);
    all->timer.data = all;
    uv_close((uv_handle_t *)&all->timer, on_closed);
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
    engine_table_add(&all->by_id, c);
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
    engine_table_remove(&all->by_id, name_of(c));
}

struct client *client_new(struct sessions *sessions, struct conn *conn)
{
    struct client *c = rd_calloc(1, sizeof *c);
    if (c == NULL)
        log_panic("out of memory");
    c->sessions = sessions;
    c->conn = conn;
    acl_client_begin(c);
    c->reply.proto = 2;
    c->wait_deadline_us = INT64_MAX;
    c->created_ms = c->active_ms = loop_mono_ms(sessions->loop);
    c->output_peak_since_ms = c->created_ms;
    engine_session_init(&c->session, sessions->engine, ENGINE_CLIENT);
    c->session.ctx = c;
    if (conn == NULL)
        return c;
    conn->client = c;
    if (conn->is_unix)
        c->flags |= CLIENT_UNIX_SOCKET;
    conn_names(conn, c->peer, c->local, sizeof c->peer);
    client_output_begin(c);
    link_client(sessions->clients, c);
    client_watch(c);
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

bool client_run_begin(struct client *c)
{
    bool begun = !client_is_running(c);
    c->flags |= CLIENT_RUNNING;
    return begun;
}

/* The loop may have tried to close it meanwhile. */
void client_run_end(struct client *c, bool begun)
{
    if (!begun)
        return;
    c->flags &= ~(uint32_t)CLIENT_RUNNING;
    if (c->flags & (CLIENT_CLOSE_ASAP | CLIENT_CLOSE_SOON))
        client_queue_write(c);
}

static void leave_lists(struct client *c)
{
    struct clients *all = c->sessions->clients;
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
    if (client_is_running(c)) {
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
    c->sessions->hooks.replica_gone(c);
    tracking_forget(c);
    engine_session_done(&c->session);
    if (c->conn != NULL) {
        leave_lists(c);
        conn_free(c->conn);
    }
    client_input_done(c);
    engine_reply_done(&c->reply);
    rd_buf_done(&c->name);
    rd_free(c);
}

struct client *client_find(struct sessions *sessions, uint64_t id)
{
    return engine_table_find(&sessions->clients->by_id, rd_slice(&id, sizeof id));
}

enum client_type client_type(const struct client *c)
{
    if (c->flags & (CLIENT_REPLICA | CLIENT_MASTER))
        return c->flags & CLIENT_REPLICA ? CLIENT_TYPE_REPLICA : CLIENT_TYPES;
    return (c->flags & CLIENT_PUBSUB) ? CLIENT_TYPE_PUBSUB : CLIENT_TYPE_NORMAL;
}

/* ---- a share of the clients, ten times a second ---- */

enum { CRON_MIN = 5 };

static bool idle(const struct client *c)
{
    int64_t timeout = c->sessions->loop->settings.timeout;
    uint32_t excused =
        CLIENT_BLOCKED | CLIENT_PUBSUB | CLIENT_MONITOR | CLIENT_REPLICA | CLIENT_MASTER;
    return timeout > 0 && (c->flags & excused) == 0 &&
           loop_mono_ms(c->sessions->loop) - c->active_ms > timeout * 1000;
}

static void look_at(struct client *c)
{
    bool shrinks = c->in.buf.len == 0 && c->in.peak < c->in.buf.cap / 2;
    if (shrinks || loop_mono_ms(c->sessions->loop) - c->active_ms > CLIENT_IDLE_MS)
        client_input_trim(c);
    c->in.peak = c->in.buf.len;
    client_output_trim(c);
    client_count(c);
    if ((c->flags & CLIENT_CLOSE_ASAP) == 0 && (idle(c) || client_over_limit(c, true)))
        client_close_asap(c);
}

/* In rotation, so that each client is checked once a second. */
void clients_cron(struct sessions *sessions)
{
    struct clients *all = sessions->clients;
    size_t n = all->n / (size_t)sessions->loop->hz;
    n = n < CRON_MIN ? CRON_MIN : n;
    n = n < all->n ? n : all->n;
    for (size_t i = 0; i < n; i++) {
        struct client *c = all->cron_next != NULL ? all->cron_next : all->first;
        all->cron_next = c->next;
        look_at(c);
    }
}
