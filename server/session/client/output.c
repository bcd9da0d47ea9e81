#include "server/session/client/client.h"

#include <errno.h>

#include "base/mem.h"
#include "server/session/acl/acl.h"
#include "server/loop/log.h"

enum { WRITE_TURN = 1024 * 1024 }; /* bytes for one client before the next one */

/* Most clients are not replicas: they need no call. */
static inline uint64_t stream_pending(const struct client *c)
{
    return RD_LIKELY(c->replica == NULL) ? 0 : c->sessions->hooks.stream_pending(c);
}

static inline bool stream_unsent(const struct client *c)
{
    return RD_UNLIKELY(c->replica != NULL) && c->sessions->hooks.stream_unsent(c);
}

static inline bool stream_send(struct client *c)
{
    return RD_LIKELY(c->replica == NULL) || c->sessions->hooks.stream_send(c);
}

void client_queue_write(struct client *c)
{
    struct clients *all = c->sessions->clients;
    bool much = client_pending_output(c) + stream_pending(c) > CLIENT_OUTPUT_KEEP;
    if (c->conn != NULL && RD_UNLIKELY(much) && (c->flags & CLIENT_CLOSE_ASAP) == 0 &&
        client_over_limit(c, false))
        c->flags |= CLIENT_CLOSE_ASAP;
    if (c->conn == NULL || (c->flags & CLIENT_WRITE_QUEUED))
        return;
    c->flags |= CLIENT_WRITE_QUEUED;
    c->write_prev = NULL;
    c->write_next = all->to_write;
    if (all->to_write != NULL)
        all->to_write->write_prev = c;
    all->to_write = c;
}

size_t client_output_memory(const struct client *c)
{
    size_t replies = c->reply.buf.cap > CLIENT_OUTPUT_KEEP ? client_pending_output(c) : 0;
    return replies + (size_t)stream_pending(c);
}

static struct settings_limit limit_of(const struct client *c)
{
    const struct settings *s = &c->sessions->loop->settings;
    enum client_type type = client_type(c);
    struct settings_limit limit =
        s->client_output_buffer_limit[type < CLIENT_TYPES ? type : CLIENT_TYPE_NORMAL];
    if (acl_login_needed(c) && (limit.hard == 0 || limit.hard > CLIENT_OUTPUT_KEEP))
        limit.hard = CLIENT_OUTPUT_KEEP; /* errors and HELLO are short */
    /* A replica that has just resumed may lack the whole backlog. */
    if (type == CLIENT_TYPE_REPLICA && limit.hard > 0 && limit.hard < s->repl_backlog_size)
        limit.hard = s->repl_backlog_size;
    return limit;
}

/* Over the soft limit for longer than its seconds, without interruption. */
static bool over_soft_limit(struct client *c, const struct settings_limit *limit, size_t size)
{
    int64_t now_ms = c->sessions->loop->mono_us / 1000;
    if (limit->soft == 0 || size < limit->soft) {
        c->soft_limit_since_ms = 0;
        return false;
    }
    if (c->soft_limit_since_ms == 0)
        c->soft_limit_since_ms = now_ms;
    /* In whole seconds, as in redis-server: never too early. */
    return now_ms / 1000 - c->soft_limit_since_ms / 1000 > limit->soft_seconds;
}

/* A client that does not read its replies must not use all memory. */
bool client_over_limit(struct client *c, bool by_cron)
{
    const struct settings_limit limit = limit_of(c);
    size_t size = client_output_memory(c);
    if (size > c->sessions->clients->recent_max_output)
        c->sessions->clients->recent_max_output = size;
    bool hard = limit.hard != 0 && (size >= limit.hard || c->reply.over);
    if (!over_soft_limit(c, &limit, size) && !hard)
        return false;
    struct rd_buf line = {0};
    client_describe(c, &line);
    rd_buf_add_byte(&line, 0);
    log_warning("Client %s %s for overcoming of output buffer limits.", (const char *)line.ptr,
                by_cron ? "closed" : "scheduled to be closed ASAP");
    rd_buf_done(&line);
    c->sessions->loop->stats.output_buffer_limit_closed++;
    return true;
}

void client_output_limit(struct client *c)
{
    uint64_t hard = limit_of(c).hard;
    c->reply.limit = hard > 0 && hard < SIZE_MAX / 2 ? c->sent + hard + CLIENT_OUTPUT_KEEP : 0;
}

static void set_room(struct client *c, size_t size)
{
    rd_buf_done(&c->reply.buf);
    c->reply.buf = (struct rd_buf){0};
    rd_buf_reserve(&c->reply.buf, size);
}

/* The peak of an expired period is reset by the first check after its end. */
void client_output_trim(struct client *c)
{
    const struct clients *all = c->sessions->clients;
    int64_t now_ms = loop_mono_ms(c->sessions->loop);
    size_t cap = c->reply.buf.cap;
    if (c->reply.buf.len > 0 || client_is_running(c) || all->output_keeps_size)
        return;
    if (cap > CLIENT_OUTPUT_MIN && c->output_peak < cap / 2) {
        set_room(c, c->output_peak > CLIENT_OUTPUT_MIN ? c->output_peak : CLIENT_OUTPUT_MIN);
        c->sessions->loop->stats.output_shrinks++;
    }
    if (now_ms - c->output_peak_since_ms < all->output_peak_ms)
        return;
    c->output_peak = 0;
    c->output_peak_since_ms = now_ms;
}

void client_output_begin(struct client *c)
{
    size_t size = c->sessions->clients->output_keeps_size ? CLIENT_OUTPUT_KEEP : CLIENT_OUTPUT_MIN;
    if (c->reply.buf.cap < size)
        rd_buf_reserve(&c->reply.buf, size - c->reply.buf.len);
}

void clients_keep_output_size(struct sessions *sessions, bool yes)
{
    sessions->clients->output_keeps_size = yes;
    for (struct client *c = sessions->clients->first; c != NULL; c = c->next)
        client_output_begin(c);
}

static void all_sent(struct client *c)
{
    c->sent = 0;
    if (c->reply.buf.cap > CLIENT_OUTPUT_KEEP) {
        set_room(c, CLIENT_OUTPUT_KEEP);
        c->sessions->loop->stats.output_expands++;
    } else {
        rd_buf_reset(&c->reply.buf);
    }
}

/* False: the connection is broken. */
static bool send_some(struct client *c)
{
    size_t turn = 0;
    if (c->reply.buf.len > c->output_peak)
        c->output_peak = c->reply.buf.len;
    while (client_pending_output(c) > 0 && turn < WRITE_TURN) {
        ssize_t n = conn_write(c->conn, c->reply.buf.ptr + c->sent, client_pending_output(c));
        c->sessions->loop->stats.writes++;
        if (n == CONN_AGAIN)
            return true;
        if (n < 0)
            return false;
        c->sent += (size_t)n;
        turn += (size_t)n;
        c->sessions->loop->stats.net_out += (uint64_t)n;
        c->active_ms = loop_mono_ms(c->sessions->loop);
    }
    if (client_pending_output(c) == 0 && c->reply.buf.len > 0)
        all_sent(c);
    return stream_send(c);
}

/* Sent bytes are at the front; they are removed when they are the larger part. */
static void squeeze(struct client *c)
{
    size_t left = client_pending_output(c);
    if (c->sent < CLIENT_OUTPUT_KEEP || c->sent < left)
        return;
    memmove(c->reply.buf.ptr, c->reply.buf.ptr + c->sent, left);
    c->reply.buf.len = left;
    c->sent = 0;
}

/* May free c. */
static void flush(struct client *c)
{
    bool cut =
        c->reply.over && client_over_limit(c, false); /* the rest of the reply was not built */
    if (cut || (c->flags & CLIENT_CLOSE_ASAP) || !send_some(c)) {
        client_free(c);
        return;
    }
    bool pending = client_pending_output(c) > 0 || stream_unsent(c);
    if (!pending && (c->flags & CLIENT_CLOSE_SOON) && !client_is_running(c)) {
        client_free(c);
        return;
    }
    squeeze(c);
    if ((pending || c->soft_limit_since_ms != 0) && client_over_limit(c, false)) {
        client_free(c);
        return;
    }
    client_count(c);
    conn_watch(c->conn, true, pending);
}

void client_end_reply(struct client *c)
{
    if (c->flags & CLIENT_BLOCKED)
        return;
    bool skip = (c->flags & CLIENT_REPLY_SKIP_NEXT) != 0;
    c->flags &= ~(uint32_t)(CLIENT_REPLY_SKIP | CLIENT_REPLY_SKIP_NEXT);
    if (skip)
        c->flags |= CLIENT_REPLY_SKIP;
    c->reply.off = (c->flags & (CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP)) != 0;
}

void client_writable(struct client *c)
{
    /* The output may acknowledge changes made in this turn of the loop. */
    c->sessions->hooks.make_durable(c->sessions->durable);
    flush(c);
}

void clients_flush(struct sessions *sessions)
{
    struct clients *all = sessions->clients;
    struct client *c = all->to_write;
    all->to_write = NULL; /* clients queued meanwhile are handled next time */
    while (c != NULL) {
        struct client *next = c->write_next;
        if (next != NULL)
            next->write_prev = NULL;
        c->write_next = NULL;
        c->flags &= ~(uint32_t)CLIENT_WRITE_QUEUED;
        flush(c);
        c = next;
    }
}
