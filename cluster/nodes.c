/* The table of nodes, their roles, and those that were forgotten. */
#include <stdio.h>

#include "base/mem.h"
#include "cluster/cluster_impl.h"

/* ---- the table ---- */

struct cluster_node *cluster_node_find(const struct cluster *c, const struct cluster_id *id)
{
    for (size_t i = 0; i < c->n_nodes; i++) {
        if (cluster_id_eq(&c->nodes[i]->id, id))
            return c->nodes[i];
    }
    return NULL;
}

struct cluster_node *cluster_node_add(struct cluster *c, const struct cluster_id *id,
                                      unsigned flags)
{
    struct cluster_node *n;
    if (c->n_nodes == CLUSTER_NODES_MAX ||
        !cluster_grow(c, (void **)&c->nodes, c->n_nodes, &c->cap_nodes,
                      sizeof(struct cluster_node *)))
        return NULL;
    n = cluster_alloc(c, sizeof *n);
    if (n == NULL)
        return NULL;
    n->id = *id;
    n->flags = flags;
    n->created_ms = c->now_ms;
    c->nodes[c->n_nodes++] = n;
    return n;
}

static void forget_in_slots(struct cluster *c, const struct cluster_node *n)
{
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        if (c->owner[slot] == n)
            c->owner[slot] = NULL;
        if (c->migrating[slot] == n)
            c->migrating[slot] = NULL;
        if (c->importing[slot] == n)
            c->importing[slot] = NULL;
    }
}

void cluster_node_remove(struct cluster *c, struct cluster_node *n)
{
    size_t kept = 0;
    cluster_link_close(c, n);
    forget_in_slots(c, n);
    for (size_t i = 0; i < c->n_nodes; i++) {
        struct cluster_node *other = c->nodes[i];
        cluster_unreport(other, n);
        if (other->master == n)
            other->master = NULL;
        if (other != n)
            c->nodes[kept++] = other;
    }
    c->n_nodes = kept;
    if (c->manual.replica == n)
        cluster_manual_end(c);
    rd_free(n->reports);
    rd_free(n);
}

void cluster_node_set_address(struct cluster_node *n, const char *host, uint16_t port,
                              uint16_t plain_port, uint16_t bus_port)
{
    snprintf(n->host, sizeof n->host, "%s", host);
    n->port = port;
    n->plain_port = plain_port;
    n->bus_port = bus_port;
}

void cluster_refresh_myself(struct cluster *c)
{
    const struct cluster_settings *s = &c->settings;
    struct cluster_node *me = c->myself;
    if (s->address[0] != 0)
        snprintf(me->host, sizeof me->host, "%s", s->address);
    me->port = s->port;
    me->plain_port = s->plain_port;
    me->bus_port = s->bus_port;
    snprintf(me->hostname, sizeof me->hostname, "%s", s->hostname);
    snprintf(me->human_name, sizeof me->human_name, "%s", s->human_name);
    me->flags &= ~(unsigned)CLUSTER_BUS_NO_FAILOVER;
    if (s->replica_no_failover)
        me->flags |= CLUSTER_BUS_NO_FAILOVER;
}

/* ---- roles ---- */

static bool has_replicas(const struct cluster *c, const struct cluster_node *master)
{
    for (size_t i = 0; i < c->n_nodes; i++) {
        if (c->nodes[i]->master == master)
            return true;
    }
    return false;
}

/* A master that has or had replicas may get others. */
static void leave_master(struct cluster *c, struct cluster_node *n)
{
    struct cluster_node *master = n->master;
    n->master = NULL;
    if (master != NULL && !has_replicas(c, master))
        master->flags &= ~(unsigned)CLUSTER_BUS_MIGRATE_TO;
}

void cluster_node_set_master(struct cluster *c, struct cluster_node *n, struct cluster_node *master)
{
    if (n->master != master)
        leave_master(c, n);
    n->flags &= ~(unsigned)(CLUSTER_BUS_MASTER | CLUSTER_BUS_MIGRATE_TO);
    n->flags |= CLUSTER_BUS_REPLICA;
    n->master = master;
    if (master != NULL)
        master->flags |= CLUSTER_BUS_MIGRATE_TO;
}

void cluster_node_make_master(struct cluster *c, struct cluster_node *n)
{
    if (cluster_is_master(n))
        return;
    leave_master(c, n);
    if (n != c->myself)
        n->flags |= CLUSTER_BUS_MIGRATE_TO;
    n->flags &= ~(unsigned)CLUSTER_BUS_REPLICA;
    n->flags |= CLUSTER_BUS_MASTER;
}

void cluster_refollow(struct cluster *c)
{
    const struct cluster_node *master = c->myself->master;
    if (master == NULL || master->host[0] == 0)
        return;
    cluster_act(c, &(struct cluster_action){
                       .kind = CLUSTER_REPLICATE, .host = master->host, .port = master->port});
}

void cluster_follow(struct cluster *c, struct cluster_node *master)
{
    struct cluster_node *me = c->myself;
    if (master == me)
        return;
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++)
        c->migrating[slot] = c->importing[slot] = NULL;
    cluster_take_all_slots(c, me, NULL);
    cluster_node_set_master(c, me, master);
    me->shard = master->shard.s[0] != 0 ? master->shard : master->id;
    c->election = (struct cluster_election){.at_ms = 0};
    cluster_manual_end(c);
    cluster_save_synced(c);
    cluster_log(c, CLUSTER_LEVEL_NOTICE, "this node is a replica of %s", master->id.s);
    cluster_refollow(c);
}

/* ---- forgotten nodes ---- */

static void drop_old_bans(struct cluster *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->n_forgotten; i++) {
        if (c->forgotten[i].until_ms > c->now_ms)
            c->forgotten[kept++] = c->forgotten[i];
    }
    c->n_forgotten = kept;
}

bool cluster_is_banned(struct cluster *c, const struct cluster_id *id)
{
    drop_old_bans(c);
    for (size_t i = 0; i < c->n_forgotten; i++) {
        if (cluster_id_eq(&c->forgotten[i].id, id))
            return true;
    }
    return false;
}

void cluster_ban(struct cluster *c, const struct cluster_id *id, int64_t ms, bool told)
{
    drop_old_bans(c);
    for (size_t i = 0; i < c->n_forgotten; i++) {
        if (cluster_id_eq(&c->forgotten[i].id, id)) {
            c->forgotten[i].until_ms = c->now_ms + ms;
            c->forgotten[i].told |= told;
            return;
        }
    }
    if (cluster_grow(c, (void **)&c->forgotten, c->n_forgotten, &c->cap_forgotten,
                     sizeof *c->forgotten))
        c->forgotten[c->n_forgotten++] = (struct cluster_forgotten){*id, c->now_ms + ms, told};
}

/* ---- new nodes ---- */

static bool is_being_met(const struct cluster *c, const char *host, unsigned bus_port)
{
    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct cluster_node *n = c->nodes[i];
        if (cluster_is(n, CLUSTER_BUS_HANDSHAKE) && n->bus_port == bus_port &&
            strcmp(n->host, host) == 0)
            return true;
    }
    return false;
}

bool cluster_handshake(struct cluster *c, const char *host, unsigned port, unsigned plain_port,
                       unsigned bus_port, unsigned flags)
{
    struct cluster_id id;
    struct cluster_node *n;
    if (host[0] == 0 || !cluster_is_address(rd_slice_str(host)) || port == 0 || port > UINT16_MAX ||
        bus_port == 0 || bus_port > UINT16_MAX)
        return false;
    if (is_being_met(c, host, bus_port))
        return true;
    cluster_draw_id(c, &id); /* until it tells its own */
    n = cluster_node_add(c, &id, CLUSTER_BUS_HANDSHAKE | flags);
    if (n != NULL)
        cluster_node_set_address(n, host, (uint16_t)port, (uint16_t)plain_port, (uint16_t)bus_port);
    return true;
}
