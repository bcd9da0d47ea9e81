#include "client/topology.h"

#include "base/crc16.h"
#include "base/mem.h"
#include "base/num.h"
#include "client/info.h"

#include <stdlib.h>

static bool strange(const struct client_peer *peer, const char *what, struct rd_err *err)
{
    rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "unexpected reply to %s", what);
    rd_err_origin(err, client_peer_target(peer)->name);
    return false;
}

void client_topology_done(struct client_topology *topology)
{
    for (size_t i = 0; i < topology->n; i++) {
        rd_free(topology->nodes[i].ranges);
        rd_free(topology->nodes[i].members);
    }
    rd_free(topology->nodes);
    *topology = (struct client_topology){0};
}

/* ---- nodes ---- */

static bool has(const struct client_topology_node *node, struct rd_slice host, uint64_t port)
{
    return node->port == port && rd_slice_is(host, node->host);
}

/* The node at an address, which is added if it is new. */
static struct client_topology_node *find_node(struct client_topology *t, struct rd_slice host,
                                              uint64_t port, struct rd_slice id, struct rd_err *err)
{
    for (size_t i = 0; i < t->n; i++)
        if (has(&t->nodes[i], host, port))
            return &t->nodes[i];
    size_t size = (t->n + 1) * sizeof *t->nodes;
    struct client_topology_node *nodes = rd_realloc(t->nodes, size);
    if (nodes == NULL) {
        rd_err_nomem(err, size);
        return NULL;
    }
    t->nodes = nodes;
    struct client_topology_node *node = &t->nodes[t->n++];
    *node = (struct client_topology_node){.port = (uint16_t)port};
    memcpy(node->host, host.ptr, host.len);
    memcpy(node->id, id.ptr, id.len);
    return node;
}

static bool has_member(const struct client_topology_node *node, const char *id)
{
    for (size_t i = 0; i < node->n_members; i++)
        if (strcmp(node->members[i], id) == 0)
            return true;
    return strcmp(node->id, id) == 0;
}

/* Of Redis before 4.0, members have no id here. */
static bool add_member(struct client_topology_node *node, struct rd_slice id, struct rd_err *err)
{
    char text[CLIENT_TOPOLOGY_ID_MAX] = "";
    if (id.len == 0 || id.len >= sizeof text || memchr(id.ptr, '\0', id.len) != NULL)
        return true;
    memcpy(text, id.ptr, id.len);
    if (has_member(node, text))
        return true;
    size_t size = (node->n_members + 1) * sizeof *node->members;
    char(*members)[CLIENT_TOPOLOGY_ID_MAX] = rd_realloc(node->members, size);
    if (members == NULL)
        return rd_err_nomem(err, size);
    node->members = members;
    memcpy(node->members[node->n_members++], text, sizeof text);
    return true;
}

static bool add_range(struct client_topology *t, struct client_topology_node *node, uint64_t first,
                      uint64_t last, struct rd_err *err)
{
    size_t size = (node->n_ranges + 1) * sizeof *node->ranges;
    struct client_topology_range *ranges = rd_realloc(node->ranges, size);
    if (ranges == NULL)
        return rd_err_nomem(err, size);
    node->ranges = ranges;
    ranges[node->n_ranges++] =
        (struct client_topology_range){.first = (uint16_t)first, .last = (uint16_t)last};
    t->n_slots += (unsigned)(last - first + 1);
    return true;
}

/* An address as a member reports it. An empty one, a null or "?" means the address at which the
 * member was asked. */
struct place {
    struct rd_slice host;
    uint64_t port;
    struct rd_slice id;
};

static bool check_place(const struct client_peer *peer, struct place *place)
{
    const struct client_target *target = client_peer_target(peer);
    if (place->host.len == 0 || rd_slice_is(place->host, "?"))
        place->host = rd_slice_str(target->host);
    return place->host.len > 0 && place->host.len < CLIENT_HOST_MAX &&
           memchr(place->host.ptr, '\0', place->host.len) == NULL &&
           place->id.len < CLIENT_TOPOLOGY_ID_MAX &&
           memchr(place->id.ptr, '\0', place->id.len) == NULL && place->port > 0 &&
           place->port <= UINT16_MAX;
}

/* Slots that are assigned twice would make the count wrong. Returns the node, or NULL. */
static struct client_topology_node *put(struct client_topology *t, const struct client_peer *peer,
                                        const struct place *place, int64_t first, int64_t last,
                                        struct rd_err *err)
{
    if (first < 0 || last < first || last >= RD_HASH_SLOTS ||
        t->n_slots + (uint64_t)(last - first) >= RD_HASH_SLOTS) {
        strange(peer, "CLUSTER", err);
        return NULL;
    }
    struct client_topology_node *node = find_node(t, place->host, place->port, place->id, err);
    return node != NULL && add_range(t, node, (uint64_t)first, (uint64_t)last, err) ? node : NULL;
}

/* ---- CLUSTER SHARDS ----
 *
 *     [ { slots: [first, last, …], nodes: [ { id, ip, endpoint, port, tls-port, role, health } … ]
 * } … ]
 */

static struct rd_slice text_of(const struct client_peer_item *node, const char *name)
{
    const struct client_peer_item *item = client_peer_item_find(node, name);
    return item != NULL ? item->text : rd_slice("", 0);
}

static bool is_master(const struct client_peer_item *node)
{
    return rd_slice_is(text_of(node, "role"), "master") &&
           !rd_slice_is(text_of(node, "health"), "fail");
}

static bool place_of(const struct client_peer *peer, const struct client_peer_item *node,
                     struct place *ret)
{
    const struct client_peer_item *port = NULL;
    if (client_peer_target(peer)->tls)
        port = client_peer_item_find(node, "tls-port");
    if (port == NULL)
        port = client_peer_item_find(node, "port");
    struct rd_slice host = text_of(node, "endpoint");
    if (host.len == 0 || rd_slice_is(host, "?"))
        host = text_of(node, "ip");
    *ret = (struct place){host, port != NULL ? (uint64_t)port->integer : 0, text_of(node, "id")};
    return check_place(peer, ret);
}

static bool take_shard(struct client_topology *t, const struct client_peer *peer,
                       const struct client_peer_item *shard, struct rd_err *err)
{
    const struct client_peer_item *slots = client_peer_item_find(shard, "slots");
    const struct client_peer_item *nodes = client_peer_item_find(shard, "nodes");
    struct place place = {0};
    bool found = false;
    if (slots == NULL || nodes == NULL || slots->n_children % 2 != 0)
        return strange(peer, "CLUSTER SHARDS", err);
    const struct client_peer_item *node = nodes + 1;
    for (size_t i = 0; i < nodes->n_children && !found; i++, node += node->span)
        found = is_master(node) && place_of(peer, node, &place);
    /* A shard without slots belongs to a master that has none yet. */
    if (!found && t->partial)
        return true;
    if (!found && slots->n_children > 0) {
        rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "slots from %lld have no master",
                   (long long)slots[1].integer);
        rd_err_origin(err, client_peer_target(peer)->name);
        return false;
    }
    struct client_topology_node *master = NULL;
    for (size_t i = 0; i < slots->n_children; i += 2) {
        master = put(t, peer, &place, slots[1 + i].integer, slots[2 + i].integer, err);
        if (master == NULL)
            return false;
    }
    node = nodes + 1;
    for (size_t i = 0; master != NULL && i < nodes->n_children; i++, node += node->span)
        if (!add_member(master, text_of(node, "id"), err))
            return false;
    return true;
}

/* An aggregate in place of a number would shift the positions. */
static bool is_flat(const struct client_peer_item *item)
{
    return item == NULL || item->span == item->n_children + 1;
}

static bool take_shards(struct client_topology *t, const struct client_peer *peer,
                        const struct client_peer_item *top, struct rd_err *err)
{
    const struct client_peer_item *shard = top + 1;
    for (size_t i = 0; i < top->n_children; i++, shard += shard->span)
        if (!is_flat(client_peer_item_find(shard, "slots")) || !take_shard(t, peer, shard, err))
            return strange(peer, "CLUSTER SHARDS", err);
    return true;
}

/* ---- CLUSTER SLOTS ----
 *
 *     [ [ first, last, [ host, port, id … ] of the master, … of its replicas ] … ]
 */

static bool take_slots(struct client_topology *t, const struct client_peer *peer,
                       const struct client_peer_item *top, struct rd_err *err)
{
    const struct client_peer_item *range = top + 1;
    for (size_t i = 0; i < top->n_children; i++, range += range->span) {
        const struct client_peer_item *last = client_peer_item_at(range, 1),
                                      *node = client_peer_item_at(range, 2);
        if (node == NULL || node->n_children < 2)
            return strange(peer, "CLUSTER SLOTS", err);
        const struct client_peer_item *id = client_peer_item_at(node, 2);
        struct place place = {.host = node[1].text,
                              .port = (uint64_t)client_peer_item_at(node, 1)->integer,
                              .id = id != NULL ? id->text : rd_slice("", 0)};
        if (!check_place(peer, &place))
            return strange(peer, "CLUSTER SLOTS", err);
        struct client_topology_node *master =
            put(t, peer, &place, range[1].integer, last->integer, err);
        if (master == NULL)
            return false;
        for (size_t k = 2; k < range->n_children; k++) {
            id = client_peer_item_at(client_peer_item_at(range, k), 2);
            if (id != NULL && !add_member(master, id->text, err))
                return false;
        }
    }
    return true;
}

/* ---- either ---- */

static int by_first(const void *a, const void *b)
{
    const struct client_topology_range *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static int by_ranges(const void *a, const void *b)
{
    const struct client_topology_node *x = a, *y = b;
    return by_first(x->ranges, y->ranges);
}

static void sort(struct client_topology *t)
{
    for (size_t i = 0; i < t->n; i++)
        qsort(t->nodes[i].ranges, t->nodes[i].n_ranges, sizeof *t->nodes[i].ranges, by_first);
    if (t->n > 0)
        qsort(t->nodes, t->n, sizeof *t->nodes, by_ranges);
}

/* Redis before 7.0 does not have the subcommand SHARDS. */
static bool ask(struct client_peer *peer, struct client_peer_reply *reply, bool *ret_shards,
                struct rd_err *err)
{
    struct rd_err why = {0};
    *ret_shards = client_peer_ask(peer, "CLUSTER SHARDS", reply, &why);
    if (*ret_shards)
        return true;
    bool unknown = reply->n > 0 && reply->items[0].type == RESP_ERROR &&
                   why.reason.id != RESP_REASON_NO_CLUSTER;
    if (unknown)
        return client_peer_ask(peer, "CLUSTER SLOTS", reply, err);
    rd_err_adopt(err, &why);
    return false;
}

bool client_topology_exists(struct client_peer *peer, bool *ret, bool *ret_hidden,
                            struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    struct rd_err why = {0};
    uint64_t enabled = 0;
    bool ok = client_peer_ask(peer, "INFO cluster", &reply, &why);
    if (ok)
        client_info_u64(reply.items[0].text, "cluster_enabled", &enabled);
    client_peer_reply_done(&reply);
    bool hidden = !ok && why.reason.id == RESP_REASON_NOPERM;
    *ret = enabled != 0;
    if (ret_hidden != NULL)
        *ret_hidden = hidden;
    if (ok || hidden)
        return true;
    rd_err_adopt(err, &why);
    return false;
}

bool client_topology_my_id(struct client_peer *peer, char ret[CLIENT_TOPOLOGY_ID_MAX],
                           struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    bool ok = client_peer_ask(peer, "CLUSTER MYID", &reply, err);
    struct rd_slice id = ok ? reply.items[0].text : rd_slice("", 0);
    if (ok && (id.len == 0 || id.len >= CLIENT_TOPOLOGY_ID_MAX || memchr(id.ptr, '\0', id.len)))
        ok = strange(peer, "CLUSTER MYID", err);
    if (ok) {
        memset(ret, 0, CLIENT_TOPOLOGY_ID_MAX);
        memcpy(ret, id.ptr, id.len);
    }
    client_peer_reply_done(&reply);
    return ok;
}

bool client_topology_read(struct client_topology *ret, struct client_peer *peer, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    struct client_topology t = {.partial = ret->partial};
    bool shards;
    bool ok =
        ask(peer, &reply, &shards, err) &&
        (reply.items[0].type == RESP_ARRAY || strange(peer, "CLUSTER", err)) &&
        (shards ? take_shards(&t, peer, reply.items, err) : take_slots(&t, peer, reply.items, err));
    client_peer_reply_done(&reply);
    if (ok && t.n == 0)
        ok = rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the cluster has no slots");
    if (!ok) {
        rd_err_origin(err, client_peer_target(peer)->name);
        client_topology_done(&t);
        return false;
    }
    sort(&t);
    client_topology_done(ret);
    *ret = t;
    return true;
}
