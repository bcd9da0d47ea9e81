/* CLUSTER SLOTS, SHARDS and LINKS. */
#include "server/durable/replication/replication.h"
#include "server/session/client/client.h"
#include "server/surface/node/node_impl.h"

static uint64_t offset_of(const struct node *n, const struct cluster_node *node)
{
    return node == cluster_myself(n->cluster) ? replication_offset(&n->srv->durable) : node->offset;
}

static int endpoint_type(const struct dispatch_call *call)
{
    return call->sessions->loop->settings.cluster_preferred_endpoint_type;
}

/* ---- SLOTS ---- */

static void put_endpoint(struct dispatch_call *call, const struct cluster_node *node)
{
    if (endpoint_type(call) == SETTINGS_ENDPOINT_UNKNOWN)
        engine_reply_null(call->reply);
    else if (endpoint_type(call) == SETTINGS_ENDPOINT_IP)
        engine_reply_str(call->reply, node->host);
    else
        engine_reply_str(call->reply, node->hostname[0] != 0 ? node->hostname : "?");
}

/* Where it is besides its endpoint. */
static void put_places(struct dispatch_call *call, const struct cluster_node *node)
{
    bool ip = endpoint_type(call) != SETTINGS_ENDPOINT_IP;
    bool name = endpoint_type(call) != SETTINGS_ENDPOINT_HOSTNAME && node->hostname[0] != 0;
    engine_reply_map(call->reply, (uint64_t)ip + name);
    if (ip) {
        engine_reply_str(call->reply, "ip");
        engine_reply_str(call->reply, node->host);
    }
    if (name) {
        engine_reply_str(call->reply, "hostname");
        engine_reply_str(call->reply, node->hostname);
    }
}

static void put_node_of_slots(struct dispatch_call *call, const struct cluster_node *node)
{
    engine_reply_array(call->reply, 4);
    put_endpoint(call, node);
    engine_reply_int(call->reply, node_port(node_of(call), call->c, node));
    engine_reply_str(call->reply, node->id.s);
    put_places(call, node);
}

static void put_range(struct dispatch_call *call, unsigned first, unsigned last,
                      const struct cluster_node *owner)
{
    const struct node *n = node_of(call);
    uint64_t count = 3;
    size_t mark = engine_reply_mark(call->reply);
    engine_reply_int(call->reply, first);
    engine_reply_int(call->reply, last);
    put_node_of_slots(call, owner);
    for (size_t i = 0; i < cluster_count(n->cluster); i++) {
        const struct cluster_node *node = cluster_at(n->cluster, i);
        if (node->master != owner || (node->flags & CLUSTER_BUS_FAILED) != 0 ||
            offset_of(n, node) == 0)
            continue;
        put_node_of_slots(call, node);
        count++;
    }
    engine_reply_mark_array(call->reply, mark, count);
}

void node_sub_slots(struct dispatch_call *call)
{
    const struct cluster *c = node_of(call)->cluster;
    uint64_t n = 0;
    size_t mark = engine_reply_mark(call->reply);
    for (unsigned first = 0, end; first < RD_HASH_SLOTS; first = end) {
        const struct cluster_node *owner = cluster_owner(c, first);
        for (end = first + 1; end < RD_HASH_SLOTS && cluster_owner(c, end) == owner; end++)
            continue;
        if (owner == NULL)
            continue;
        put_range(call, first, end - 1, owner);
        n++;
    }
    engine_reply_mark_array(call->reply, mark, n);
}

/* ---- SHARDS ---- */

static uint64_t put_port(struct dispatch_call *call, const char *name, unsigned port)
{
    if (port == 0)
        return 0;
    engine_reply_str(call->reply, name);
    engine_reply_int(call->reply, port);
    return 1;
}

static uint64_t put_text(struct dispatch_call *call, const char *name, const char *text)
{
    engine_reply_str(call->reply, name);
    engine_reply_str(call->reply, text);
    return 1;
}

static const char *health(const struct cluster_node *node, uint64_t offset)
{
    if ((node->flags & CLUSTER_BUS_FAILED) != 0)
        return "fail";
    return (node->flags & CLUSTER_BUS_REPLICA) != 0 && offset == 0 ? "loading" : "online";
}

static void put_node_of_shard(struct dispatch_call *call, const struct cluster_node *node)
{
    const struct node *own = node_of(call);
    bool tls = own->srv->loop.settings.tls_cluster;
    uint64_t offset = offset_of(own, node), n;
    bool replica = (node->flags & CLUSTER_BUS_REPLICA) != 0;
    size_t mark = engine_reply_mark(call->reply);
    n = put_text(call, "id", node->id.s);
    n += put_port(call, "port", tls ? node->plain_port : node->port);
    n += put_port(call, "tls-port", tls ? node->port : 0);
    n += put_text(call, "ip", node->host);
    engine_reply_str(call->reply, "endpoint");
    if (endpoint_type(call) == SETTINGS_ENDPOINT_UNKNOWN)
        engine_reply_str(call->reply, "");
    else
        put_endpoint(call, node);
    if (node->hostname[0] != 0)
        n += put_text(call, "hostname", node->hostname);
    n += put_text(call, "role", replica ? "replica" : "master");
    engine_reply_str(call->reply, "replication-offset");
    engine_reply_int(call->reply, (int64_t)offset);
    n += put_text(call, "health", health(node, offset));
    engine_reply_mark_map(call->reply, mark, n + 2);
}

static void put_shard(struct dispatch_call *call, const struct cluster_node *master)
{
    const struct cluster *c = node_of(call)->cluster;
    unsigned first, last;
    uint64_t n = 0;
    engine_reply_map(call->reply, 2);
    engine_reply_str(call->reply, "slots");
    size_t mark = engine_reply_mark(call->reply);
    for (unsigned at = 0; cluster_slots_next_range(&master->slots, at, &first, &last);
         at = last + 1) {
        engine_reply_int(call->reply, first);
        engine_reply_int(call->reply, last);
        n += 2;
    }
    engine_reply_mark_array(call->reply, mark, n);
    engine_reply_str(call->reply, "nodes");
    mark = engine_reply_mark(call->reply);
    put_node_of_shard(call, master);
    n = 1;
    for (size_t i = 0; i < cluster_count(c); i++) {
        if (cluster_at(c, i)->master != master)
            continue;
        put_node_of_shard(call, cluster_at(c, i));
        n++;
    }
    engine_reply_mark_array(call->reply, mark, n);
}

void node_sub_shards(struct dispatch_call *call)
{
    const struct cluster *c = node_of(call)->cluster;
    uint64_t n = 0;
    size_t mark = engine_reply_mark(call->reply);
    for (size_t i = 0; i < cluster_count(c); i++) {
        if ((cluster_at(c, i)->flags & CLUSTER_BUS_MASTER) == 0)
            continue;
        put_shard(call, cluster_at(c, i));
        n++;
    }
    engine_reply_mark_array(call->reply, mark, n);
}

/* ---- LINKS ---- */

static void put_link(struct dispatch_call *call, const struct cluster_link_info *link,
                     const struct node_link_report *report)
{
    engine_reply_map(call->reply, 6);
    put_text(call, "direction", link->inbound ? "from" : "to");
    put_text(call, "node", link->node->id.s);
    engine_reply_str(call->reply, "create-time");
    engine_reply_int(call->reply, link->created_ms);
    put_text(call, "events", report->events);
    engine_reply_str(call->reply, "send-buffer-allocated");
    engine_reply_int(call->reply, (int64_t)report->allocated);
    engine_reply_str(call->reply, "send-buffer-used");
    engine_reply_int(call->reply, (int64_t)report->used);
}

static uint64_t put_links(struct dispatch_call *call, const struct cluster_node *with, bool inbound)
{
    const struct node *own = node_of(call);
    struct cluster_link_info link;
    struct node_link_report report;
    uint64_t n = 0;
    for (size_t at = 0; cluster_link_with(own->cluster, with, inbound, &at, &link);) {
        if (!node_links_report(own, link.conn, &report))
            continue;
        put_link(call, &link, &report);
        n++;
    }
    return n;
}

/* Clients expect both links with a node beside each other: the one to it, and the one from it. */
void node_sub_links(struct dispatch_call *call)
{
    const struct cluster *c = node_of(call)->cluster;
    uint64_t n = 0;
    size_t mark = engine_reply_mark(call->reply);
    for (size_t i = 0; i < cluster_count(c); i++)
        n += put_links(call, cluster_at(c, i), false) + put_links(call, cluster_at(c, i), true);
    engine_reply_mark_array(call->reply, mark, n);
}
