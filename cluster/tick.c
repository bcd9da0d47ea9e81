/* The regular work. */
#include "cluster/cluster_impl.h"

enum { HANDSHAKE_MIN_MS = 1000, TICKS_OF_SECOND = 10, SAMPLES = 5 };

static bool has_address(const struct cluster_node *n)
{
    return !cluster_is(n, CLUSTER_BUS_MYSELF | CLUSTER_BUS_NO_ADDRESS) && n->host[0] != 0 &&
           n->bus_port != 0;
}

static void drop_old_handshakes(struct cluster *c)
{
    int64_t limit_ms = cluster_max(c->settings.node_timeout_ms, HANDSHAKE_MIN_MS);
    for (size_t i = c->n_nodes; i-- > 0;) {
        if (cluster_is(c->nodes[i], CLUSTER_BUS_HANDSHAKE) &&
            c->now_ms - c->nodes[i]->created_ms > limit_ms)
            cluster_node_remove(c, c->nodes[i]);
    }
}

static void connect_all(struct cluster *c)
{
    for (size_t i = 0; i < c->n_nodes; i++) {
        if (has_address(c->nodes[i]) && c->nodes[i]->link == NULL)
            cluster_link_open(c, c->nodes[i]);
    }
}

/* Of some random nodes, that of which nothing was heard for the longest time. */
static void ping_one(struct cluster *c)
{
    struct cluster_node *oldest = NULL;
    for (int i = 0; i < SAMPLES; i++) {
        struct cluster_node *n = c->nodes[cluster_random(c, c->n_nodes)];
        if (n->linked && n->ping_ms == 0 && !cluster_is(n, CLUSTER_BUS_HANDSHAKE) &&
            (oldest == NULL || n->pong_ms < oldest->pong_ms))
            oldest = n;
    }
    if (oldest != NULL)
        cluster_ping_node(c, oldest);
}

/* A connection over which nothing comes back any more may be at fault itself. */
static bool is_stuck(const struct cluster *c, const struct cluster_node *n)
{
    const struct cluster_link *link = n->link;
    int64_t half_ms = c->settings.node_timeout_ms / 2;
    return link != NULL && c->now_ms - link->created_ms > c->settings.node_timeout_ms &&
           n->ping_ms != 0 && c->now_ms - n->ping_ms > half_ms && c->now_ms - n->heard_ms > half_ms;
}

static void suspect(struct cluster *c, struct cluster_node *n)
{
    int64_t since_ms = cluster_max(n->ping_ms, n->heard_ms);
    if (n->ping_ms == 0 || c->now_ms - since_ms <= c->settings.node_timeout_ms ||
        cluster_is(n, CLUSTER_FAILING))
        return;
    n->flags |= CLUSTER_BUS_MAYBE_FAILED;
    cluster_log(c, CLUSTER_LEVEL_DEBUG, "%s may have failed", n->id.s);
    cluster_save_synced(c);
}

static void watch(struct cluster *c, struct cluster_node *n)
{
    if (is_stuck(c, n))
        cluster_link_close(c, n);
    if (n->linked && n->ping_ms == 0 && c->now_ms - n->pong_ms > c->settings.node_timeout_ms / 2)
        cluster_ping_node(c, n);
    suspect(c, n);
    cluster_judge(c, n);
}

void cluster_tick(struct cluster *c, int64_t now_ms)
{
    cluster_clock(c, now_ms);
    cluster_refresh_myself(c);
    if (c->save_due)
        cluster_save_synced(c);
    drop_old_handshakes(c);
    connect_all(c);
    if (++c->ticks % TICKS_OF_SECOND == 0)
        ping_one(c);
    for (size_t i = 0; i < c->n_nodes; i++) {
        if (!cluster_is(c->nodes[i],
                        CLUSTER_BUS_MYSELF | CLUSTER_BUS_NO_ADDRESS | CLUSTER_BUS_HANDSHAKE))
            watch(c, c->nodes[i]);
    }
    cluster_manual_tick(c);
    cluster_elect(c);
    cluster_move_replica(c);
    cluster_update_state(c);
}
