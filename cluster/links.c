/* Connections, and the messages in what arrives. */
#include <stdio.h>

#include "base/mem.h"
#include "cluster/cluster_impl.h"

enum { INPUT_KEPT = 8192 };

struct cluster_link *cluster_link_find(const struct cluster *c, uint64_t number)
{
    for (size_t i = 0; i < c->n_links; i++) {
        if (c->links[i]->number == number)
            return c->links[i];
    }
    return NULL;
}

static struct cluster_link *add(struct cluster *c)
{
    struct cluster_link *link;
    if (!cluster_grow(c, (void **)&c->links, c->n_links, &c->cap_links,
                      sizeof(struct cluster_link *)))
        return NULL;
    link = cluster_alloc(c, sizeof *link);
    if (link == NULL)
        return NULL;
    link->number = ++c->last_conn;
    link->created_ms = c->now_ms;
    c->links[c->n_links++] = link;
    return link;
}

static void drop(struct cluster *c, struct cluster_link *link)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->n_links; i++) {
        if (c->links[i] != link)
            c->links[kept++] = c->links[i];
    }
    c->n_links = kept;
    if (link->node != NULL) {
        link->node->link = NULL;
        link->node->linked = false;
    }
    rd_buf_done(&link->input);
    rd_free(link);
}

bool cluster_link_at(const struct cluster *c, size_t i, struct cluster_link_info *ret)
{
    if (i >= c->n_links)
        return false;
    const struct cluster_link *link = c->links[i];
    *ret = (struct cluster_link_info){
        .conn = link->number,
        .inbound = link->node == NULL,
        .node = link->node != NULL ? link->node : cluster_node_find(c, &link->from),
        .created_ms = link->created_ms};
    return true;
}

bool cluster_link_with(const struct cluster *c, const struct cluster_node *node, bool inbound,
                       size_t *at, struct cluster_link_info *ret)
{
    while (*at < c->n_links) {
        const struct cluster_link *link = c->links[(*at)++];
        bool found = inbound ? link->node == NULL && cluster_id_eq(&link->from, &node->id)
                             : link->node == node;
        if (!found)
            continue;
        *ret = (struct cluster_link_info){
            .conn = link->number, .inbound = inbound, .node = node, .created_ms = link->created_ms};
        return true;
    }
    return false;
}

void cluster_links_free(struct cluster *c)
{
    while (c->n_links > 0) {
        c->links[0]->node = NULL;
        drop(c, c->links[0]);
    }
    rd_free(c->links);
}

void cluster_link_open(struct cluster *c, struct cluster_node *n)
{
    struct cluster_link *link = add(c);
    if (link == NULL)
        return;
    link->node = n;
    n->link = link;
    if (n->ping_ms == 0) /* it is down if this connection never comes */
        n->ping_ms = c->now_ms;
    cluster_act(c, &(struct cluster_action){.kind = CLUSTER_CONNECT,
                                            .conn = link->number,
                                            .host = n->host,
                                            .port = n->bus_port});
}

static void close_link(struct cluster *c, struct cluster_link *link)
{
    cluster_act(c, &(struct cluster_action){.kind = CLUSTER_CLOSE, .conn = link->number});
    drop(c, link);
}

void cluster_link_close(struct cluster *c, struct cluster_node *n)
{
    if (n->link != NULL)
        close_link(c, n->link);
}

/* ---- reports of the caller ---- */

uint64_t cluster_accepted(struct cluster *c, const char *own_address, const char *peer_address)
{
    struct cluster_link *link = add(c);
    if (link == NULL)
        return 0;
    link->up = true;
    snprintf(link->own, sizeof link->own, "%s", own_address);
    snprintf(link->peer, sizeof link->peer, "%s", peer_address);
    return link->number;
}

void cluster_connected(struct cluster *c, uint64_t conn, const char *own_address)
{
    struct cluster_link *link = cluster_link_find(c, conn);
    if (link == NULL || link->node == NULL)
        return;
    struct cluster_node *n = link->node;
    int64_t ping_ms = n->ping_ms;
    link->up = true;
    n->linked = true;
    snprintf(link->own, sizeof link->own, "%s", own_address);
    snprintf(link->peer, sizeof link->peer, "%s", n->host);
    cluster_send_ping(
        c, link, cluster_is(n, CLUSTER_BUS_MEET) ? CLUSTER_MESSAGE_MEET : CLUSTER_MESSAGE_PING);
    n->ping_ms = ping_ms; /* since when it has not answered */
    n->flags &= ~(unsigned)CLUSTER_BUS_MEET;
}

void cluster_closed(struct cluster *c, uint64_t conn)
{
    struct cluster_link *link = cluster_link_find(c, conn);
    if (link != NULL)
        drop(c, link);
}

/* A message that cannot be read is passed over; if its length is wrong, nothing can be read. */
static void on_bytes(struct cluster *c, struct cluster_link *link, struct rd_slice bytes)
{
    struct cluster_message m;
    struct rd_err err = {0};
    if (cluster_message_read(&m, bytes, &err)) {
        c->stats.received[m.type]++;
        if ((int)m.type == c->settings.dropped)
            return;
        cluster_on_message(c, link, &m);
        return;
    }
    c->stats.refused++;
    cluster_log(c, CLUSTER_LEVEL_DEBUG, "a message of %s: %s", link->peer, err.text);
}

/* A message of which a part is missing, and which is too long to wait for it. */
static bool is_too_long(const struct cluster *c, struct rd_slice begun, size_t len)
{
    struct cluster_id sender;
    if (len <= CLUSTER_SHORT_MAX)
        return false;
    cluster_message_sender(begun, &sender);
    const struct cluster_node *n = cluster_node_find(c, &sender);
    bool known = n != NULL && n != c->myself && !cluster_is(n, CLUSTER_BUS_HANDSHAKE);
    return len > cluster_message_max(begun, known);
}

/* Bytes of a message that is passed over. */
static struct rd_slice pass_over(struct cluster_link *link, struct rd_slice bytes)
{
    size_t n = bytes.len < link->n_passed_over ? bytes.len : link->n_passed_over;
    link->n_passed_over -= n;
    return rd_slice(bytes.ptr + n, bytes.len - n);
}

/* Reads the messages in `input`, and sets *ret_at to the end of them. False: the link has ended. */
static bool take_messages(struct cluster *c, uint64_t conn, struct rd_slice input, size_t *ret_at)
{
    struct rd_err err = {0};
    size_t len, at = 0;
    for (;;) {
        struct cluster_link *link = cluster_link_find(c, conn);
        struct rd_slice rest = rd_slice(input.ptr + at, input.len - at);
        if (link == NULL)
            return false;
        switch (cluster_message_frame(rest, &len, &err)) {
        case CLUSTER_FRAME_READY:
            on_bytes(c, link, rd_slice(rest.ptr, len));
            at += len;
            break;
        case CLUSTER_FRAME_MORE:
            if (rest.len >= CLUSTER_HEADER_LEN && is_too_long(c, rest, len)) {
                c->stats.refused++;
                link->n_passed_over = len - rest.len;
                at = input.len;
            }
            *ret_at = at;
            return true;
        case CLUSTER_FRAME_BAD:
            close_link(c, link);
            return false;
        }
    }
}

/* Memory for a long message is not kept for the next one. */
static void forget_read(struct rd_buf *input, size_t at)
{
    if (at > 0)
        memmove(input->ptr, input->ptr + at, input->len - at);
    input->len -= at;
    if (input->len == 0 && input->cap > INPUT_KEPT)
        rd_buf_done(input);
}

void cluster_received(struct cluster *c, uint64_t conn, struct rd_slice bytes)
{
    struct cluster_link *link = cluster_link_find(c, conn);
    size_t at = 0;
    if (link == NULL)
        return;
    bytes = pass_over(link, bytes);
    struct rd_buf input = link->input; /* the message may end the link */
    link->input = (struct rd_buf){0};
    if (!rd_buf_add(&input, bytes.ptr, bytes.len)) {
        c->no_memory = true;
        rd_buf_done(&input);
        return;
    }
    if (!take_messages(c, conn, rd_buf_slice(&input), &at)) {
        rd_buf_done(&input);
        return;
    }
    forget_read(&input, at);
    cluster_link_find(c, conn)->input = input;
}

size_t cluster_input_memory(const struct cluster *c)
{
    size_t sum = 0;
    for (size_t i = 0; i < c->n_links; i++)
        sum += c->links[i]->input.cap;
    return sum;
}
