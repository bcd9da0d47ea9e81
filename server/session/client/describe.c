/* One line of CLIENT LIST, and the memory of a client. */
#include "server/session/client/client.h"

#include "server/session/acl/acl.h"
#include "server/session/pubsub.h"
#include "server/session/tracking/tracking.h"

#include <stdio.h>

enum {
    LONG_ARGUMENT = 32 * 1024,
    OUTPUT_FIRST = 16 * 1024, /* output up to this size is the buffer, the rest a list */
    WATCH_SIZE = 64           /* approximate size of a watched key */
};

/* The queued transaction, and the watched keys. */
static size_t queue_memory(const struct client *c)
{
    const struct engine_session *s = &c->session;
    return s->queued_len + s->n_queued * sizeof *s->queue + s->n_watches * WATCH_SIZE;
}

size_t client_memory(const struct client *c)
{
    return sizeof *c + client_input_memory(c) + c->reply.buf.cap + c->name.cap + queue_memory(c) +
           pubsub_memory(c) + tracking_memory(c);
}

/* The unread input: of a long argument in transfer, its own bytes only. */
static size_t input_len(const struct client *c)
{
    const struct client_input *in = &c->in;
    bool is_long = in->in_bulk && in->bulk_len >= LONG_ARGUMENT && in->at <= in->buf.len;
    return in->buf.len + in->shared_len - (is_long ? in->at : 0);
}

/* A client without a buffer of its own reads into the shared one, so that space counts for it,
 * too. */
static size_t input_room(const struct client *c)
{
    if (c->in.shared_len > 0)
        return CLIENT_SHARED_INPUT - c->in.shared_len;
    bool active = loop_mono_ms(c->sessions->loop) - c->active_ms <= CLIENT_IDLE_MS;
    if (c->in.buf.cap == 0)
        return active ? CLIENT_READ_SIZE : 0;
    return c->in.buf.cap - c->in.buf.len;
}

static void put_flags(const struct client *c, char dst[16])
{
    static const char order[] = "SOMPxbtRBdcuAUre"; /* that of redis-server */
    unsigned tracking = tracking_flags(c);
    bool has[128] = {['x'] = c->session.in_multi,
                     ['d'] = c->session.dirty_cas,
                     ['t'] = (tracking & TRACKING_ON) != 0,
                     ['R'] = (tracking & TRACKING_BROKEN) != 0,
                     ['B'] = (tracking & TRACKING_BCAST) != 0};
    size_t n = 0;
#define X(name, bit, letter) has[letter] |= (c->flags & CLIENT_##name) != 0;
    CLIENT_FLAGS(X)
#undef X
    for (const char *letter = order; *letter != '\0'; letter++)
        if (has[(uint8_t)*letter] && n < 15)
            dst[n++] = *letter;
    if (n == 0)
        dst[n++] = 'N';
    dst[n] = '\0';
}

static const char *events(const struct client *c)
{
    if (c->conn == NULL)
        return "";
    bool read = c->conn->events & UV_READABLE, write = c->conn->events & UV_WRITABLE;
    return read && write ? "rw" : write ? "w" : read ? "r" : "";
}

static void put_who(const struct client *c, struct rd_buf *out)
{
    int64_t now_ms = loop_mono_ms(c->sessions->loop);
    char flags[16];
    put_flags(c, flags);
    rd_buf_printf(out, "id=%llu addr=%s laddr=%s fd=%d name=%.*s", (unsigned long long)c->id,
                  c->peer, c->local, c->conn != NULL ? c->conn->fd : -1, (int)c->name.len,
                  (const char *)c->name.ptr);
    rd_buf_printf(
        out, " age=%lld idle=%lld flags=%s db=%u sub=%zu psub=%zu ssub=%zu multi=%lld",
        (long long)((now_ms - c->created_ms) / 1000), (long long)((now_ms - c->active_ms) / 1000),
        flags, c->session.db, pubsub_count(c, PUBSUB_CHANNEL), pubsub_count(c, PUBSUB_PATTERN),
        pubsub_count(c, PUBSUB_SHARD), c->session.in_multi ? (long long)c->session.n_queued : -1LL);
}

void client_describe(const struct client *c, struct rd_buf *out)
{
    size_t pending = client_pending_output(c);
    size_t first = pending < OUTPUT_FIRST ? pending : OUTPUT_FIRST;
    size_t args = 0;
    for (size_t i = 0; i < c->in.argc; i++)
        args += c->in.argv[i].len;
    put_who(c, out);
    rd_buf_printf(out, " qbuf=%zu qbuf-free=%zu argv-mem=%zu multi-mem=%zu", input_len(c),
                  input_room(c), args, queue_memory(c));
    rd_buf_printf(out, " rbs=%zu rbp=%zu obl=%zu oll=%d omem=%zu tot-mem=%zu events=%s",
                  c->reply.buf.cap, c->reply.buf.len, first, pending > first,
                  client_output_memory(c), client_memory(c), events(c));
    bool tracks = (tracking_flags(c) & TRACKING_ON) != 0;
    rd_buf_printf(out, " cmd=%s user=%s redir=%lld resp=%u",
                  c->last_command != NULL ? c->last_command->name : "NULL",
                  (c->flags & CLIENT_MASTER) ? "(superuser)" : acl_user_name(c->user),
                  tracks ? (long long)tracking_redirect(c) : -1LL, c->reply.proto);
}
