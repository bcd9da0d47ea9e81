/* nodes.conf: what a node knows, as a file, and back. */
#include <stdio.h>

#include "cluster/cluster_impl.h"
#include "cluster/nodes_conf_impl.h"

static const struct {
    unsigned bus, file;
} flags[] = {{CLUSTER_BUS_MYSELF, CLUSTER_FLAG_MYSELF},
             {CLUSTER_BUS_MASTER, CLUSTER_FLAG_MASTER},
             {CLUSTER_BUS_REPLICA, CLUSTER_FLAG_REPLICA},
             {CLUSTER_BUS_MAYBE_FAILED, CLUSTER_FLAG_MAYBE_FAILED},
             {CLUSTER_BUS_FAILED, CLUSTER_FLAG_FAILED},
             {CLUSTER_BUS_NO_ADDRESS, CLUSTER_FLAG_NO_ADDRESS},
             {CLUSTER_BUS_NO_FAILOVER, CLUSTER_FLAG_NO_FAILOVER}};

enum { N_FLAGS = sizeof flags / sizeof *flags };

/* ---- writing ---- */

static unsigned file_flags(const struct cluster_node *n)
{
    unsigned ret = 0;
    for (size_t i = 0; i < N_FLAGS; i++)
        ret |= cluster_is(n, flags[i].bus) ? flags[i].file : 0;
    return ret;
}

/* ",host.example,nodename=one,shard-id=…". Servers 7.0 write only the hostname; what they would
 * not write is left out where it can be. */
static bool put_more(const struct cluster_node *n, struct cluster_conf_node *to)
{
    struct rd_buf more = {0};
    bool shard = cluster_is(n, CLUSTER_BUS_MYSELF) && !cluster_id_eq(&n->shard, &n->id);
    bool ok = true;
    if (n->hostname[0] != 0 || n->human_name[0] != 0 || shard)
        ok = rd_buf_printf(&more, ",%s", n->hostname);
    if (n->human_name[0] != 0)
        ok = ok && rd_buf_printf(&more, ",nodename=%s", n->human_name);
    if (shard)
        ok = ok && rd_buf_printf(&more, ",shard-id=%s", n->shard.s);
    if (ok && more.len == 0)
        return true;
    if (!ok || !rd_buf_add_byte(&more, 0)) {
        rd_buf_done(&more);
        return false;
    }
    to->more = (char *)more.ptr;
    return true;
}

static bool put_moves(const struct cluster *c, struct cluster_conf_node *to)
{
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        const struct cluster_node *migrating = c->migrating[slot], *importing = c->importing[slot];
        struct cluster_move move = {.slot = slot, .importing = migrating == NULL};
        if (migrating == NULL && importing == NULL)
            continue;
        memcpy(move.other, (migrating != NULL ? migrating : importing)->id.s, sizeof move.other);
        if (!cluster_conf_node_add_move(to, &move))
            return false;
    }
    return true;
}

static bool put_node(const struct cluster *c, const struct cluster_node *n,
                     struct cluster_conf *conf)
{
    struct cluster_conf_node *to = cluster_conf_add(conf);
    if (to == NULL || !put_more(n, to))
        return false;
    memcpy(to->id, n->id.s, sizeof to->id);
    snprintf(to->host, sizeof to->host, "%s", n->host);
    to->port = n->port;
    to->bus_port = n->bus_port;
    to->flags = file_flags(n);
    if (n->master != NULL)
        memcpy(to->master, n->master->id.s, sizeof to->master);
    to->epoch = n->master != NULL ? n->master->epoch : n->epoch;
    to->connected = n->linked || n == c->myself;
    to->slots = n->slots;
    return n != c->myself || put_moves(c, to);
}

bool cluster_write(const struct cluster *c, struct rd_buf *text)
{
    struct cluster_conf conf = {
        .has_vars = true, .current_epoch = c->current_epoch, .last_vote_epoch = c->last_vote_epoch};
    bool ok = true;
    for (size_t i = 0; ok && i < c->n_nodes; i++)
        ok = cluster_is(c->nodes[i], CLUSTER_BUS_HANDSHAKE) || put_node(c, c->nodes[i], &conf);
    ok = ok && cluster_conf_write(&conf, text);
    cluster_conf_done(&conf);
    return ok;
}

/* ---- reading ---- */

static unsigned bus_flags(unsigned file)
{
    unsigned ret = 0;
    for (size_t i = 0; i < N_FLAGS; i++)
        ret |= file & flags[i].file ? flags[i].bus : 0;
    return ret & CLUSTER_BUS_REPLICA ? ret & ~(unsigned)CLUSTER_BUS_MASTER
                                     : ret | CLUSTER_BUS_MASTER;
}

static bool has_name(struct rd_slice *value, const char *name)
{
    size_t len = strlen(name);
    if (value->len < len || memcmp(value->ptr, name, len) != 0)
        return false;
    *value = rd_slice(value->ptr + len, value->len - len);
    return true;
}

static void get_more(struct cluster_node *n, const char *more)
{
    struct rd_slice rest = rd_slice_str(more), value;
    cluster_conf_take_until(&rest, ','); /* before the first comma there is nothing */
    value = cluster_conf_take_until(&rest, ',');
    if (value.len > 0 && cluster_is_hostname(value))
        cluster_set_text(n->hostname, value);
    while (rest.len > 0) {
        value = cluster_conf_take_until(&rest, ',');
        if (has_name(&value, "nodename=")) {
            if (value.len > 0 && cluster_is_human_name(value))
                cluster_set_text(n->human_name, value);
        } else if (has_name(&value, "shard-id=") && cluster_is_id(value)) {
            cluster_set_text(n->shard.s, value);
        }
    }
}

static void get_node(struct cluster *c, const struct cluster_conf_node *from)
{
    struct cluster_id id;
    struct cluster_node *n;
    memcpy(id.s, from->id, sizeof id.s);
    n = cluster_node_find(c, &id);
    if (n == NULL)
        n = cluster_node_add(c, &id, bus_flags(from->flags));
    if (n == NULL)
        return;
    if (cluster_is_address(rd_slice_str(from->host)))
        cluster_node_set_address(n, from->host, (uint16_t)from->port, 0, (uint16_t)from->bus_port);
    if (n->bus_port == 0 && n->port != 0 && n->port <= UINT16_MAX - CLUSTER_BUS_DISTANCE)
        n->bus_port = (uint16_t)(n->port + CLUSTER_BUS_DISTANCE);
    if (from->more != NULL)
        get_more(n, from->more);
    if ((from->flags & CLUSTER_FLAG_REPLICA) == 0)
        n->epoch = from->epoch; /* that of a replica is its master's */
    if (cluster_is(n, CLUSTER_BUS_FAILED))
        n->fail_ms = c->now_ms;
    if (cluster_is(n, CLUSTER_BUS_MYSELF))
        c->myself = n;
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        if (cluster_slots_has(&from->slots, slot))
            cluster_give_slot(c, slot, n);
    }
}

static void get_relations(struct cluster *c, const struct cluster_conf_node *from)
{
    struct cluster_node *n = cluster_find(c, rd_slice_str(from->id)), *other;
    if (n == NULL)
        return;
    if (from->master[0] != 0 && !cluster_is_master(n)) {
        other = cluster_find(c, rd_slice_str(from->master));
        cluster_node_set_master(c, n, other == n ? NULL : other);
    }
    for (size_t i = 0; n == c->myself && i < from->n_moves; i++) {
        const struct cluster_move *move = &from->moves[i];
        other = cluster_find(c, rd_slice_str(move->other));
        if (move->importing)
            c->importing[move->slot] = other;
        else
            c->migrating[move->slot] = other;
    }
}

static void get_all(struct cluster *c, const struct cluster_conf *conf)
{
    c->current_epoch = conf->current_epoch;
    c->last_vote_epoch = conf->last_vote_epoch;
    for (size_t i = 0; i < conf->n_nodes; i++) {
        if ((conf->nodes[i].flags & CLUSTER_FLAG_HANDSHAKE) == 0)
            get_node(c, &conf->nodes[i]);
    }
    for (size_t i = 0; i < conf->n_nodes; i++)
        get_relations(c, &conf->nodes[i]);
    for (size_t i = 0; i < c->n_nodes; i++) {
        if (c->nodes[i]->epoch > c->current_epoch)
            c->current_epoch = c->nodes[i]->epoch;
    }
}

bool cluster_load(struct cluster *c, struct rd_slice text, int64_t now_ms, struct rd_err *err)
{
    struct cluster_conf conf;
    cluster_clock(c, now_ms);
    if (!cluster_conf_read(&conf, text, NULL, NULL, err))
        return false;
    get_all(c, &conf);
    cluster_conf_done(&conf);
    if (c->no_memory)
        return rd_err_nomem(err, sizeof *c);
    if (c->myself != NULL && c->myself->shard.s[0] == 0)
        c->myself->shard = c->myself->id;
    return c->myself != NULL || rd_err_set(err, RD_ERR_CORRUPT, 0, "no line of this node");
}
