/* Messages to clients. */
#include "server/session/tracking/tracking_impl.h"

#include "base/num.h"

#define ADD_TEXT(out, text) rd_buf_add((out), (text), sizeof(text) - 1)

static void put_head(struct rd_buf *out, char type, uint64_t n)
{
    char head[RD_NUM_I64_MAX + 3];
    size_t len = 1;
    head[0] = type;
    len += rd_num_put_u64(head + 1, n);
    head[len++] = '\r';
    head[len++] = '\n';
    rd_buf_add(out, head, len);
}

void tracking_put_array(struct rd_buf *out, uint64_t n)
{
    put_head(out, '*', n);
}

void tracking_put_bulk(struct rd_buf *out, struct rd_slice bytes)
{
    put_head(out, '$', bytes.len);
    rd_buf_add(out, bytes.ptr, bytes.len);
    ADD_TEXT(out, "\r\n");
}

static void sent(struct client *c)
{
    client_queue_write(c);
    client_count(c);
}

/* The connection that REDIRECT named is closed. */
static void report_broken(struct tracker *t)
{
    struct client *c = t->client;
    struct rd_buf *out = &client_reply(c)->buf;
    t->flags |= TRACKING_BROKEN;
    if (c->reply.proto < 3)
        return;
    ADD_TEXT(out, ">2\r\n$21\r\ntracking-redir-broken\r\n");
    put_head(out, ':', t->redirect);
    sent(c);
}

/* The client that receives the messages of this one. NULL: its connection is closed. */
static struct client *receiver_of(const struct tracker *t)
{
    return t->redirect != 0 ? client_find(t->client->sessions, t->redirect) : t->client;
}

bool tracking_waits_for_reply(const struct tracking *tracking, const struct tracker *t)
{
    const struct client *current = tracking->sessions->current;
    const struct client *c = receiver_of(t);
    if (c == NULL)
        c = t->client;
    return c == current || t->client == current ||
           (tracking->serving && ((c->flags | t->client->flags) & CLIENT_BLOCKED) != 0);
}

/* CLIENT REPLY OFF affects replies only. RESP2 has no messages for a client that did not
 * subscribe. */
void tracking_send(struct tracker *t, struct rd_slice value)
{
    struct client *c = receiver_of(t);
    if (c == NULL) {
        report_broken(t);
        return;
    }
    struct rd_buf *out = &client_reply(c)->buf;
    if (c->reply.proto >= 3)
        ADD_TEXT(out, ">2\r\n$10\r\ninvalidate\r\n");
    else if (t->redirect != 0 && (c->flags & CLIENT_PUBSUB) != 0)
        ADD_TEXT(out, "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n");
    else
        return;
    rd_buf_add(out, value.ptr, value.len);
    sent(c);
}

void tracking_send_key(struct tracker *t, struct rd_slice key)
{
    struct rd_buf value = {0};
    tracking_put_array(&value, 1);
    tracking_put_bulk(&value, key);
    tracking_send(t, rd_buf_slice(&value));
    rd_buf_done(&value);
}

/* All keys. The null is that of the tracking client, even if another one receives it. */
void tracking_send_null(struct tracker *t)
{
    tracking_send(t, rd_slice_str(t->client->reply.proto >= 3 ? "_\r\n" : "$-1\r\n"));
}

/* ---- after the reply ---- */

struct pending {
    struct tracker *tracker;
    size_t len; /* SIZE_MAX: all keys */
};

void tracking_send_later(struct tracking *tracking, struct tracker *t, const struct rd_slice *key)
{
    struct pending p = {.tracker = t, .len = key != NULL ? key->len : SIZE_MAX};
    rd_buf_add(&tracking->pending, &p, sizeof p);
    if (key != NULL)
        rd_buf_add(&tracking->pending, key->ptr, key->len);
    tracking->n_pending++;
}

/* NOLOOP: not to the client that caused it. */
static void send_pending(struct tracking *tracking, const struct client *served)
{
    const uint8_t *at = tracking->pending.ptr;
    for (; tracking->n_pending > 0; tracking->n_pending--) {
        struct pending p;
        memcpy(&p, at, sizeof p);
        at += sizeof p;
        struct rd_slice key = rd_slice(at, p.len != SIZE_MAX ? p.len : 0);
        at += key.len;
        if (p.tracker->client == served && (p.tracker->flags & TRACKING_NOLOOP) != 0)
            continue;
        if (p.len == SIZE_MAX)
            tracking_send_null(p.tracker);
        else
            tracking_send_key(p.tracker, key);
    }
    rd_buf_reset(&tracking->pending);
}

void tracking_after(struct sessions *sessions)
{
    if (RD_UNLIKELY(sessions->tracking->n_pending > 0))
        send_pending(sessions->tracking, NULL);
}

void tracking_serve_begin(struct sessions *sessions)
{
    sessions->tracking->serving = true;
}

void tracking_served(struct sessions *sessions, const struct client *c)
{
    tracking_prefixes_served(sessions->tracking, c);
    send_pending(sessions->tracking, c);
}

void tracking_serve_end(struct sessions *sessions)
{
    tracking_served(sessions, NULL);
    sessions->tracking->serving = false;
}
