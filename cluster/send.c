/* Messages to other nodes. */
#include <stdio.h>

#include "cluster/cluster_impl.h"

/* A shard is a master and its replicas. */
static const struct cluster_node *head_of(const struct cluster_node *n)
{
    return n->master != NULL ? n->master : n;
}

/* Everything but the body. A replica speaks for its master. */
static struct cluster_message header(struct cluster *c, enum cluster_message_type type)
{
    const struct cluster_node *me = c->myself, *master = head_of(me);
    struct cluster_message m = {.type = type,
                                .current_epoch = c->current_epoch,
                                .config_epoch = master->epoch,
                                .offset = c->replication.offset,
                                .sender = me->id,
                                .slots = master->slots,
                                .port = c->settings.port,
                                .plain_port = c->settings.plain_port,
                                .bus_port = c->settings.bus_port,
                                .flags = me->flags,
                                .down = !c->ok};
    m.message_flags[0] = CLUSTER_MESSAGE_HAS_EXTENSIONS;
    if (cluster_is_master(me) && c->manual.replica != NULL)
        m.message_flags[0] |= CLUSTER_MESSAGE_PAUSED;
    if (me->master != NULL)
        m.master = me->master->id;
    snprintf(m.address, sizeof m.address, "%s", c->settings.address);
    return m;
}

/* NULL: out of memory. */
static struct cluster_shared *write_message(struct cluster *c, const struct cluster_message *m)
{
    struct cluster_shared *bytes = cluster_alloc(c, sizeof *bytes);
    if (bytes == NULL)
        return NULL;
    bytes->users = 1;
    if (cluster_message_write(m, &bytes->buf))
        return bytes;
    c->no_memory = true;
    cluster_unshare(bytes);
    return NULL;
}

static void send_bytes(struct cluster *c, const struct cluster_link *link,
                       enum cluster_message_type type, struct cluster_shared *bytes)
{
    cluster_act_send(c, link->number, bytes);
    c->stats.sent[type]++;
}

static void send(struct cluster *c, const struct cluster_link *link,
                 const struct cluster_message *m)
{
    struct cluster_shared *bytes = link->up ? write_message(c, m) : NULL;
    if (bytes != NULL)
        send_bytes(c, link, m->type, bytes);
    cluster_unshare(bytes);
}

static bool is_audience(const struct cluster_node *n)
{
    return n->linked && !cluster_is(n, CLUSTER_BUS_MYSELF | CLUSTER_BUS_HANDSHAKE);
}

/* shard: only to the nodes of that of this node. */
static void send_all(struct cluster *c, const struct cluster_message *m, bool shard)
{
    struct cluster_shared *bytes = write_message(c, m);
    for (size_t i = 0; bytes != NULL && i < c->n_nodes; i++) {
        const struct cluster_node *n = c->nodes[i];
        if (is_audience(n) && (!shard || head_of(n) == head_of(c->myself)))
            send_bytes(c, n->link, m->type, bytes);
    }
    cluster_unshare(bytes);
}

/* ---- PING, PONG, MEET ---- */

void cluster_send_ping(struct cluster *c, struct cluster_link *link, enum cluster_message_type type)
{
    struct cluster_message m = header(c, type);
    struct cluster_words words = {.n_gossip = 0};
    if (link->node != NULL && type == CLUSTER_MESSAGE_PING)
        link->node->ping_ms = c->now_ms;
    cluster_gossip_choose(c, link, &words);
    cluster_extensions_choose(c, link, &words);
    m.gossip = rd_buf_slice(&words.gossip);
    m.n_gossip = words.n_gossip;
    m.extensions = rd_buf_slice(&words.extensions);
    m.n_extensions = words.n_extensions;
    send(c, link, &m);
    rd_buf_done(&words.gossip);
    rd_buf_done(&words.extensions);
}

void cluster_ping_node(struct cluster *c, struct cluster_node *n)
{
    if (n->linked)
        cluster_send_ping(c, n->link, CLUSTER_MESSAGE_PING);
}

void cluster_broadcast_pong(struct cluster *c)
{
    for (size_t i = 0; i < c->n_nodes; i++) {
        if (is_audience(c->nodes[i]))
            cluster_send_ping(c, c->nodes[i]->link, CLUSTER_MESSAGE_PONG);
    }
}

void cluster_pong_siblings(struct cluster *c)
{
    for (size_t i = 0; i < c->n_nodes; i++) {
        struct cluster_node *n = c->nodes[i];
        if (is_audience(n) && n->master != NULL && n->master == c->myself->master)
            cluster_send_ping(c, n->link, CLUSTER_MESSAGE_PONG);
    }
}

/* ---- the others ---- */

void cluster_send_fail(struct cluster *c, const struct cluster_node *n)
{
    struct cluster_message m = header(c, CLUSTER_MESSAGE_FAIL);
    m.about = n->id;
    send_all(c, &m, false);
}

void cluster_send_update(struct cluster *c, struct cluster_link *link,
                         const struct cluster_node *about)
{
    struct cluster_message m = header(c, CLUSTER_MESSAGE_UPDATE);
    m.about = about->id;
    m.about_epoch = about->epoch;
    m.about_slots = about->slots;
    send(c, link, &m);
}

void cluster_send_plain(struct cluster *c, struct cluster_node *to, enum cluster_message_type type)
{
    struct cluster_message m = header(c, type);
    if (to->linked)
        send(c, to->link, &m);
}

void cluster_send_request(struct cluster *c)
{
    struct cluster_message m = header(c, CLUSTER_MESSAGE_AUTH_REQUEST);
    if (c->manual.end_ms != 0)
        m.message_flags[0] |= CLUSTER_MESSAGE_FORCE_ACK;
    send_all(c, &m, false);
}

void cluster_publish(struct cluster *c, struct rd_slice channel, struct rd_slice payload,
                     bool sharded)
{
    struct cluster_message m =
        header(c, sharded ? CLUSTER_MESSAGE_PUBLISH_SHARD : CLUSTER_MESSAGE_PUBLISH);
    m.channel = channel;
    m.payload = payload;
    send_all(c, &m, sharded);
}
