#include "server/session/client/client.h"

#include "base/mem.h"
#include "server/loop/log.h"
#include "server/session/account.h"
#include "server/session/dispatch/dispatch.h"
#include "server/session/tracking/tracking.h"

/* ---- a heap of the clients with a deadline ---- */

static bool earlier(const struct client *a, const struct client *b)
{
    return a->wait_deadline_us < b->wait_deadline_us;
}

static void put(struct clients *all, size_t at, struct client *c)
{
    all->waiting[at - 1] = c;
    c->wait_index = at;
}

static void sift_up(struct clients *all, size_t at, struct client *c)
{
    for (; at > 1 && earlier(c, all->waiting[at / 2 - 1]); at /= 2)
        put(all, at, all->waiting[at / 2 - 1]);
    put(all, at, c);
}

static void sift_down(struct clients *all, size_t at, struct client *c)
{
    for (size_t child; (child = at * 2) <= all->n_waiting; at = child) {
        if (child < all->n_waiting && earlier(all->waiting[child], all->waiting[child - 1]))
            child++;
        if (!earlier(all->waiting[child - 1], c))
            break;
        put(all, at, all->waiting[child - 1]);
    }
    put(all, at, c);
}

static void heap_add(struct clients *all, struct client *c)
{
    if (all->n_waiting == all->cap_waiting) {
        size_t cap = all->cap_waiting == 0 ? 16 : all->cap_waiting * 2;
        struct client **waiting = rd_realloc(all->waiting, cap * sizeof(struct client *));
        if (waiting == NULL)
            log_panic("out of memory");
        all->waiting = waiting;
        all->cap_waiting = cap;
    }
    sift_up(all, ++all->n_waiting, c);
}

static void heap_remove(struct clients *all, struct client *c)
{
    size_t at = c->wait_index;
    struct client *last = all->waiting[--all->n_waiting];
    c->wait_index = 0;
    if (last == c)
        return;
    if (at > 1 && earlier(last, all->waiting[at / 2 - 1]))
        sift_up(all, at, last);
    else
        sift_down(all, at, last);
}

/* ---- ending a wait ---- */

static void on_deadline(uv_timer_t *timer);

/* The first millisecond, on the clock of the clients, after the deadline. */
static int64_t over_ms(const struct client *c)
{
    return (c->wait_deadline_us + 999) / 1000 + 1;
}

/* The timer fires at the first deadline. */
static void set_timer(struct sessions *sessions)
{
    struct clients *all = sessions->clients;
    if (all->n_waiting == 0) {
        uv_timer_stop(&all->timer);
        return;
    }
    int64_t left_ms = over_ms(all->waiting[0]) - loop_mono_ms(sessions->loop);
    uv_timer_start(&all->timer, on_deadline, left_ms > 0 ? (uint64_t)left_ms : 0, 0);
}

void clients_end_waits(struct sessions *sessions)
{
    struct clients *all = sessions->clients;
    while (all->n_waiting > 0 && over_ms(all->waiting[0]) <= loop_mono_ms(sessions->loop))
        client_wait_end(all->waiting[0], ENGINE_TIMEOUT);
}

/* The turn that follows runs the next commands of these clients, so the loop must not sleep now. */
static void on_deadline(uv_timer_t *timer)
{
    struct sessions *sessions = timer->data;
    loop_clock(sessions->loop);
    clients_end_waits(sessions);
    set_timer(sessions);
    uv_stop(sessions->loop->uv);
}

void client_block(struct client *c, enum client_wait why, int64_t deadline_us)
{
    struct clients *all = c->sessions->clients;
    c->flags |= CLIENT_BLOCKED;
    c->waits = why;
    c->wait_deadline_us = deadline_us;
    all->n_blocked++;
    if (deadline_us == INT64_MAX)
        return;
    heap_add(all, c);
    if (all->waiting[0] == c)
        set_timer(c->sessions);
}

void client_unblock(struct client *c)
{
    struct clients *all = c->sessions->clients;
    if ((c->flags & CLIENT_BLOCKED) == 0)
        return;
    all->n_blocked--;
    if (c->waits == CLIENT_WAITS_ACKS)
        c->sessions->hooks.acks_ended(c);
    c->flags &= ~(uint32_t)CLIENT_BLOCKED;
    if (c->waits != CLIENT_WAITS_PAUSE)
        client_end_reply(c);
    c->waits = CLIENT_WAITS_NOT;
    if (c->wait_index > 0)
        heap_remove(all, c);
    c->wait_deadline_us = INT64_MAX;
    if (c->flags & CLIENT_UNBLOCKED)
        return;
    c->flags |= CLIENT_UNBLOCKED;
    c->run_next = NULL;
    if (all->to_run_last != NULL)
        all->to_run_last->run_next = c;
    else
        all->to_run = c;
    all->to_run_last = c;
}

/* WAIT: the number of replicas that have the client's writes. */
static void end_acks(struct client *c, enum engine_unblock why)
{
    if (why == ENGINE_UNBLOCKED)
        engine_reply_error(client_reply(c), "UNBLOCKED client unblocked via CLIENT UNBLOCK");
    else
        engine_reply_int(client_reply(c), c->sessions->hooks.acked(c));
}

bool client_wait_end(struct client *c, enum engine_unblock why)
{
    if (c->waits == CLIENT_WAITS_KEY)
        engine_block_cancel(&c->session, why, client_reply(c));
    else if (c->waits == CLIENT_WAITS_ACKS)
        end_acks(c, why);
    else
        return false;
    account_ended(c, client_reply(c));
    client_unblock(c);
    client_queue_write(c);
    return true;
}

void client_wait_fail(struct client *c, const char *error)
{
    if (c->waits == CLIENT_WAITS_KEY)
        engine_block_cancel(&c->session, ENGINE_GONE, NULL);
    engine_reply_error(client_reply(c), error);
    account_ended(c, client_reply(c));
    client_unblock(c);
    client_queue_write(c);
}

/* ---- clients that were served ---- */

void clients_serve(struct sessions *sessions)
{
    struct engine_env env = session_env(sessions);
    struct engine_reply reply = {.proto = 2};
    struct engine_effects fx = {.off = sessions->fx.off};
    struct engine_session *session;
    tracking_serve_begin(sessions);
    while (engine_serve(sessions->engine, &env, &session, &reply, &fx)) {
        struct client *c = session->ctx;
        int64_t began_us = sessions->loop->mono_us;
        loop_clock(sessions->loop);
        sessions_propagate(sessions, &fx);
        account_served(c, &reply, (uint64_t)(sessions->loop->mono_us - began_us));
        if (!c->reply.off && !rd_buf_add(&c->reply.buf, reply.buf.ptr, reply.buf.len))
            client_close_asap(c);
        tracking_served(sessions, c);
        client_unblock(c);
        client_queue_write(c);
    }
    tracking_serve_end(sessions);
    sessions_propagate(sessions, &fx);
    engine_effects_done(&fx);
    engine_reply_done(&reply);
}

void clients_run_unblocked(struct sessions *sessions)
{
    struct clients *all = sessions->clients;
    while (all->to_run != NULL) {
        struct client *c = all->to_run;
        all->to_run = c->run_next;
        if (all->to_run == NULL)
            all->to_run_last = NULL;
        c->run_next = NULL;
        c->flags &= ~(uint32_t)CLIENT_UNBLOCKED;
        if ((c->flags & CLIENT_BLOCKED) == 0)
            client_run_input(c);
    }
}
