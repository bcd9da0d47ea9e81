/* Messages of other nodes. */
#include <stdio.h>

#include "cluster/cluster_impl.h"

static bool is_ping(const struct cluster_message *m)
{
    return m->type == CLUSTER_MESSAGE_PING || m->type == CLUSTER_MESSAGE_PONG ||
           m->type == CLUSTER_MESSAGE_MEET;
}

/* ---- the header of a known node ---- */

static void note_header(struct cluster *c, struct cluster_node *sender,
                        const struct cluster_message *m)
{
    struct cluster_manual *manual = &c->manual;
    sender->heard_ms = c->now_ms;
    sender->offset = m->offset;
    if (m->current_epoch > c->current_epoch) {
        c->current_epoch = m->current_epoch;
        cluster_save_synced(c);
    }
    if (m->config_epoch > sender->epoch) {
        sender->epoch = m->config_epoch;
        cluster_save_synced(c);
    }
    if (manual->end_ms != 0 && c->myself->master == sender && !manual->has_offset &&
        (m->message_flags[0] & CLUSTER_MESSAGE_PAUSED) != 0) {
        manual->has_offset = true;
        manual->offset = m->offset;
    }
}

/* ---- addresses ---- */

/* What the other end of a connection is called, unless it announces an address. */
static const char *address_of(const struct cluster_link *link, const struct cluster_message *m)
{
    return m->address[0] != 0 ? m->address : link->peer;
}

static void learn_own_address(struct cluster *c, const struct cluster_link *link,
                              const struct cluster_message *m)
{
    struct cluster_node *me = c->myself;
    if (c->settings.address[0] != 0 || link->own[0] == 0 ||
        (me->host[0] != 0 && m->type != CLUSTER_MESSAGE_MEET) || strcmp(me->host, link->own) == 0)
        return;
    snprintf(me->host, sizeof me->host, "%s", link->own);
    cluster_save_synced(c);
}

/* A node that opened a connection from elsewhere has moved. */
static void note_address(struct cluster *c, struct cluster_node *sender,
                         const struct cluster_link *link, const struct cluster_message *m)
{
    const char *host = address_of(link, m);
    if (link->node != NULL || host[0] == 0 || sender == c->myself ||
        (strcmp(sender->host, host) == 0 && sender->port == m->port &&
         sender->plain_port == m->plain_port && sender->bus_port == m->bus_port))
        return;
    cluster_link_close(c, sender);
    cluster_node_set_address(sender, host, m->port, m->plain_port, m->bus_port);
    sender->flags &= ~(unsigned)CLUSTER_BUS_NO_ADDRESS;
    cluster_log(c, CLUSTER_LEVEL_NOTICE, "%s is at %s port %u now", sender->id.s, host, m->port);
    cluster_save_synced(c);
    if (c->myself->master == sender)
        cluster_refollow(c);
}

/* ---- getting to know each other ---- */

static void become_known(struct cluster *c, struct cluster_node *n, const struct cluster_message *m)
{
    const unsigned roles = CLUSTER_BUS_MASTER | CLUSTER_BUS_REPLICA;
    n->id = m->sender;
    n->flags &= ~(unsigned)CLUSTER_BUS_HANDSHAKE;
    n->flags |= m->flags & roles ? m->flags & roles : CLUSTER_BUS_MASTER;
    n->epoch = m->config_epoch;
    cluster_log(c, CLUSTER_LEVEL_NOTICE, "met %s at %s port %u", n->id.s, n->host, n->port);
    cluster_save_synced(c);
}

/* The node to which this connection was opened answers. False: it is not what it was taken for. */
static bool check_name(struct cluster *c, struct cluster_link *link,
                       const struct cluster_message *m)
{
    struct cluster_node *n = link->node, *known = cluster_node_find(c, &m->sender);
    if (cluster_is(n, CLUSTER_BUS_HANDSHAKE)) {
        if (known != NULL) { /* under another address, or it was met twice */
            cluster_node_remove(c, n);
            return false;
        }
        become_known(c, n, m);
        return true;
    }
    if (cluster_id_eq(&n->id, &m->sender))
        return true;
    cluster_log(c, CLUSTER_LEVEL_NOTICE, "%s is at the address of %s", m->sender.s, n->id.s);
    n->flags |= CLUSTER_BUS_NO_ADDRESS;
    cluster_node_set_address(n, "", 0, 0, 0);
    cluster_link_close(c, n);
    cluster_save_synced(c);
    return false;
}

static void on_pong(struct cluster *c, struct cluster_node *n)
{
    n->pong_ms = c->now_ms;
    n->ping_ms = 0;
    if (cluster_is(n, CLUSTER_BUS_MAYBE_FAILED)) {
        n->flags &= ~(unsigned)CLUSTER_BUS_MAYBE_FAILED;
        cluster_save_synced(c);
    } else if (cluster_is(n, CLUSTER_BUS_FAILED)) {
        cluster_on_alive(c, n);
    }
}

/* ---- roles and slots ---- */

static void note_role(struct cluster *c, struct cluster_node *sender,
                      const struct cluster_message *m)
{
    struct cluster_node *master;
    if (m->master.s[0] == 0) {
        if (!cluster_is_master(sender))
            cluster_save_synced(c);
        cluster_node_make_master(c, sender);
        return;
    }
    master = cluster_node_find(c, &m->master);
    if (master == sender)
        return;
    if (cluster_is_master(sender))
        cluster_take_all_slots(c, sender, NULL);
    if (sender->master != master || cluster_is_master(sender)) {
        cluster_node_set_master(c, sender, master);
        cluster_save_synced(c);
    }
}

/* The master of this replica follows another one now: so does this replica. */
static void follow_chain(struct cluster *c)
{
    const struct cluster_node *me = c->myself, *master = me->master;
    if (master == NULL || master->master == NULL || master->master == me ||
        !cluster_is_master(master->master))
        return;
    cluster_follow(c, master->master);
}

/* The sender claims a slot that belongs to another one since. */
static void correct(struct cluster *c, struct cluster_node *sender, struct cluster_link *link,
                    const struct cluster_message *m)
{
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        const struct cluster_node *owner = c->owner[slot];
        if (!cluster_slots_has(&m->slots, slot) || owner == NULL || owner == sender ||
            owner->epoch <= m->config_epoch || cluster_slots_has(&c->unclaimed, slot))
            continue;
        cluster_send_update(c, sender->linked ? sender->link : link, owner);
        return;
    }
}

static void note_slots(struct cluster *c, struct cluster_node *sender, struct cluster_link *link,
                       const struct cluster_message *m)
{
    const struct cluster_node *of = cluster_is_master(sender) ? sender : sender->master;
    if (of == NULL || memcmp(&of->slots, &m->slots, sizeof m->slots) == 0)
        return;
    if (cluster_is_master(sender))
        cluster_claim(c, sender, m->config_epoch, &m->slots);
    correct(c, sender, link, m);
}

/* ---- messages ---- */

static void on_ping(struct cluster *c, struct cluster_node *sender, struct cluster_link *link,
                    const struct cluster_message *m)
{
    sender->flags &= ~(unsigned)CLUSTER_BUS_NO_FAILOVER;
    sender->flags |= m->flags & CLUSTER_BUS_NO_FAILOVER;
    if (m->type != CLUSTER_MESSAGE_PONG)
        note_address(c, sender, link, m);
    if (m->type == CLUSTER_MESSAGE_PONG && link->node == sender)
        on_pong(c, sender);
    note_role(c, sender, m);
    follow_chain(c);
    note_slots(c, sender, link, m);
    if (cluster_is_master(sender))
        cluster_settle_epochs(c, sender);
    cluster_on_gossip(c, sender, m);
    cluster_on_extensions(c, sender, m);
    cluster_update_state(c);
}

static void receive_ping(struct cluster *c, struct cluster_link *link,
                         const struct cluster_message *m)
{
    struct cluster_node *sender = cluster_node_find(c, &m->sender);
    if (m->type != CLUSTER_MESSAGE_PONG) {
        learn_own_address(c, link, m);
        if (sender == NULL && m->type == CLUSTER_MESSAGE_MEET)
            cluster_handshake(c, address_of(link, m), m->port, m->plain_port, m->bus_port, 0);
        cluster_send_ping(c, link, CLUSTER_MESSAGE_PONG);
    }
    if (link->node != NULL && !check_name(c, link, m))
        return;
    sender = cluster_node_find(c, &m->sender);
    if (sender == NULL || sender == c->myself || cluster_is(sender, CLUSTER_BUS_HANDSHAKE))
        return;
    note_header(c, sender, m);
    on_ping(c, sender, link, m);
}

static void on_update(struct cluster *c, const struct cluster_message *m)
{
    struct cluster_node *n = cluster_node_find(c, &m->about);
    if (n == NULL || n == c->myself || n->epoch >= m->about_epoch)
        return;
    cluster_node_make_master(c, n);
    n->epoch = m->about_epoch;
    cluster_save_synced(c);
    cluster_claim(c, n, m->about_epoch, &m->about_slots);
}

static void on_fail(struct cluster *c, const struct cluster_message *m)
{
    struct cluster_node *n = cluster_node_find(c, &m->about);
    if (n != NULL && !cluster_is(n, CLUSTER_BUS_MYSELF | CLUSTER_BUS_FAILED))
        cluster_set_failed(c, n);
}

static void on_publish(struct cluster *c, const struct cluster_message *m)
{
    cluster_act(c, &(struct cluster_action){.kind = CLUSTER_PUBLISH,
                                            .channel = m->channel,
                                            .bytes = m->payload,
                                            .sharded = m->type == CLUSTER_MESSAGE_PUBLISH_SHARD});
}

static void on_module(struct cluster *c, const struct cluster_message *m)
{
    cluster_act(c, &(struct cluster_action){.kind = CLUSTER_MODULE,
                                            .module = m->module,
                                            .module_type = m->module_type,
                                            .bytes = m->payload,
                                            .sender = m->sender});
}

static void receive_other(struct cluster *c, struct cluster_node *sender,
                          const struct cluster_message *m)
{
    switch (m->type) {
    case CLUSTER_MESSAGE_FAIL:
        on_fail(c, m);
        break;
    case CLUSTER_MESSAGE_PUBLISH:
    case CLUSTER_MESSAGE_PUBLISH_SHARD:
        on_publish(c, m);
        break;
    case CLUSTER_MESSAGE_AUTH_REQUEST:
        cluster_on_request(c, sender, m);
        break;
    case CLUSTER_MESSAGE_AUTH_ACK:
        cluster_on_vote(c, sender, m);
        break;
    case CLUSTER_MESSAGE_UPDATE:
        on_update(c, m);
        break;
    case CLUSTER_MESSAGE_MFSTART:
        cluster_on_mfstart(c, sender);
        break;
    case CLUSTER_MESSAGE_MODULE:
        on_module(c, m);
        break;
    case CLUSTER_MESSAGE_PING:
    case CLUSTER_MESSAGE_PONG:
    case CLUSTER_MESSAGE_MEET:
        break;
    }
}

void cluster_on_message(struct cluster *c, struct cluster_link *link,
                        const struct cluster_message *m)
{
    link->reads_extensions |= (m->message_flags[0] & CLUSTER_MESSAGE_HAS_EXTENSIONS) != 0;
    link->from = m->sender;
    if (is_ping(m)) {
        receive_ping(c, link, m);
        return;
    }
    struct cluster_node *sender = cluster_node_find(c, &m->sender);
    if (sender == NULL || sender == c->myself || cluster_is(sender, CLUSTER_BUS_HANDSHAKE))
        return;
    note_header(c, sender, m);
    receive_other(c, sender, m);
    cluster_update_state(c);
}
