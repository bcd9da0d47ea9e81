/* Clients that wait for keys, or are subscribed to channels, of slots that this node has lost. */
#include <stdio.h>

#include "engine/block.h"
#include "server/session/client/client.h"
#include "server/session/pubsub.h"
#include "server/surface/node/node_impl.h"

enum { TEXT_MAX = 512 };

/* ---- keys ---- */

/* False: *text is the error. */
static bool keeps(const struct node *n, const struct client *c, char text[TEXT_MAX])
{
    struct rd_slice key;
    const struct cluster_node *me = cluster_myself(n->cluster);
    if (!cluster_is_ok(n->cluster)) {
        snprintf(text, TEXT_MAX, "CLUSTERDOWN The cluster is down");
        return false;
    }
    if (!engine_block_key(&c->session, &key))
        return true;
    unsigned slot = rd_hash_slot(key);
    const struct cluster_node *owner = cluster_owner(n->cluster, slot);
    bool reads = (c->flags & CLIENT_READONLY) != 0 && c->last_command != NULL &&
                 (c->last_command->flags & ENGINE_CMD_WRITE) == 0;
    if (owner == me || cluster_importing(n->cluster, slot) != NULL ||
        (owner != NULL && reads && me->master == owner))
        return true;
    if (owner == NULL)
        snprintf(text, TEXT_MAX, "CLUSTERDOWN Hash slot not served");
    else
        node_redirect(n, c, "MOVED", slot, owner, text, TEXT_MAX);
    return false;
}

static void check_waiting(struct node *n)
{
    const struct clients *all = n->srv->sessions.clients;
    char text[TEXT_MAX];
    for (struct client *c = all->first; all->n_blocked > 0 && c != NULL; c = c->next) {
        if (c->waits == CLIENT_WAITS_KEY && !keeps(n, c, text))
            client_wait_fail(c, text);
    }
}

/* ---- channels ---- */

struct lost {
    struct cluster_slots slots;
    struct rd_slice channel; /* the first one in them; ptr NULL: none */
};

static void find_lost(void *ctx, struct rd_slice channel)
{
    struct lost *lost = ctx;
    if (lost->channel.ptr == NULL && cluster_slots_has(&lost->slots, rd_hash_slot(channel)))
        lost->channel = channel;
}

static void check_channels(struct node *n, const struct cluster_slots *now)
{
    struct sessions *sessions = &n->srv->sessions;
    struct lost lost = {.slots = {{0}}};
    for (size_t i = 0; i < sizeof now->bits; i++)
        lost.slots.bits[i] = (uint8_t)(n->served.bits[i] & ~now->bits[i]);
    for (;;) {
        lost.channel = rd_slice(NULL, 0);
        pubsub_each(sessions, PUBSUB_SHARD, find_lost, &lost);
        if (lost.channel.ptr == NULL)
            return;
        pubsub_end_channel(sessions, PUBSUB_SHARD, lost.channel);
    }
}

/* ---- both ---- */

void node_check_clients(struct node *n)
{
    const struct cluster_node *me = cluster_myself(n->cluster);
    const struct cluster_node *head = me->master != NULL ? me->master : me;
    if (memcmp(&n->served, &head->slots, sizeof n->served) != 0) {
        check_channels(n, &head->slots);
        n->served = head->slots;
        n->check_waiting = true;
    }
    if (!n->check_waiting)
        return;
    n->check_waiting = false;
    check_waiting(n);
}
