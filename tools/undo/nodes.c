/* nodes.c - the server that has a key: the only one, or a master of a cluster.
 *
 * A cluster is asked once which master has which slot. After that, MOVED says what has changed. ASK
 * holds for one attempt: the slot is being moved, and the other server answers after ASKING.
 */
#include "tools/undo/undo.h"

#include <stdio.h>
#include <time.h>

#include "base/crc16.h"
#include "base/mem.h"
#include "client/topology.h"

enum { SOON = 2, PAUSE_NS = 100000000 };

struct undo_node {
    struct client_target target;
    struct client_peer *peer; /* NULL: not connected yet */
    unsigned db;              /* selected */
};

/* ---- a cluster ---- */

static struct undo_node *add_node(struct undo *u, const char *host, uint16_t port,
                                  struct rd_err *err)
{
    size_t size = (u->n_nodes + 1) * sizeof *u->nodes;
    struct undo_node *node = rd_calloc(1, sizeof *node);
    struct undo_node **nodes = rd_realloc(u->nodes, size);
    if (nodes != NULL)
        u->nodes = nodes;
    if (node == NULL || nodes == NULL) {
        rd_free(node);
        rd_err_nomem(err, size);
        return NULL;
    }
    if (!client_target_at(&node->target, &u->server, rd_slice_str(host), port, err)) {
        rd_free(node);
        return NULL;
    }
    node->target.has_db = false;
    u->nodes[u->n_nodes++] = node;
    return node;
}

/* *ret: its number + 1. */
static bool find_node(struct undo *u, const char *host, uint16_t port, uint16_t *ret,
                      struct rd_err *err)
{
    size_t i = 0;
    while (i < u->n_nodes &&
           (u->nodes[i]->target.port != port || strcmp(u->nodes[i]->target.host, host) != 0))
        i++;
    if (i >= UINT16_MAX - 1)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "too many masters");
    if (i == u->n_nodes && add_node(u, host, port, err) == NULL)
        return false;
    *ret = (uint16_t)(i + 1);
    return true;
}

static bool take_topology(struct undo *u, const struct client_topology *t, struct rd_err *err)
{
    uint16_t number;
    for (size_t i = 0; i < t->n; i++) {
        const struct client_topology_node *node = &t->nodes[i];
        if (!find_node(u, node->host, node->port, &number, err))
            return false;
        for (size_t k = 0; k < node->n_ranges; k++)
            for (unsigned slot = node->ranges[k].first; slot <= node->ranges[k].last; slot++)
                u->owners[slot] = number;
    }
    return true;
}

static bool read_topology(struct undo *u, struct rd_err *err)
{
    struct client_topology topology = {0};
    u->owners = rd_calloc(RD_HASH_SLOTS, sizeof *u->owners);
    if (u->owners == NULL)
        return rd_err_nomem(err, RD_HASH_SLOTS * sizeof *u->owners);
    bool ok = client_topology_read(&topology, u->member, err) && take_topology(u, &topology, err);
    client_topology_done(&topology);
    return ok;
}

bool undo_nodes_open(struct undo *u, struct rd_err *err)
{
    if (!client_peer_open(&u->member, &u->server, err) ||
        !client_topology_exists(u->member, &u->cluster, NULL, err))
        return false;
    u->peer_now = u->member;
    u->peer_db = u->server.has_db ? (unsigned)u->server.db : 0;
    return !u->cluster || read_topology(u, err);
}

/* ---- the connection for a key ---- */

static bool go_to(struct undo *u, struct undo_node *node, struct rd_err *err)
{
    if (node->peer == NULL && !client_peer_open(&node->peer, &node->target, err)) {
        node->peer = NULL;
        return false;
    }
    u->peer_now = node->peer;
    u->peer_db = node->db;
    return true;
}

static bool select_db(struct undo *u, unsigned db, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    char line[40];
    if (u->peer_db == db)
        return true;
    snprintf(line, sizeof line, "SELECT %u", db);
    bool ok = client_peer_ask(u->peer_now, line, &reply, err);
    client_peer_reply_done(&reply);
    if (ok)
        u->peer_db = db;
    return ok;
}

/* Valkey 9 has clusters with several databases. */
static bool select_in_cluster(struct undo *u, struct undo_node *node, unsigned db,
                              struct rd_err *err)
{
    struct rd_err why = {0};
    bool ok = select_db(u, db, &why);
    node->db = u->peer_db;
    if (ok)
        return true;
    if (why.code != RD_ERR_PROTOCOL || why.sys != 0 || db == 0) {
        rd_err_adopt(err, &why);
        return false;
    }
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "a key is in database %u, and this cluster has only database 0: --db 0 "
                      "leaves out the others",
                      db);
}

bool undo_nodes_choose(struct undo *u, unsigned db, struct rd_slice name, struct rd_err *err)
{
    if (!u->cluster)
        return select_db(u, db, err);
    uint16_t number = u->asking ? (uint16_t)u->node_now : u->owners[rd_hash_slot(name)];
    if (number == 0)
        return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                          "no master of the cluster has slot %u", rd_hash_slot(name));
    struct undo_node *node = u->nodes[number - 1];
    return go_to(u, node, err) && select_in_cluster(u, node, db, err);
}

bool undo_nodes_follow(struct undo *u, const struct rd_err *why, unsigned tries)
{
    const struct client_peer_redirect *to = client_peer_redirect(u->peer_now);
    struct rd_err ignored = {0};
    uint16_t number;
    bool asks = why->reason.id == RESP_REASON_ASK;
    u->asking = false;
    if (!u->cluster || (why->reason.id != RESP_REASON_MOVED && !asks) || to->port == 0 ||
        !find_node(u, to->host, to->port, &number, &ignored))
        return false;
    if (tries > SOON) /* the servers do not agree yet */
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    u->asking = asks;
    u->node_now = number;
    if (!asks)
        u->owners[to->slot] = number;
    return true;
}

void undo_nodes_done(struct undo *u)
{
    for (size_t i = 0; i < u->n_nodes; i++) {
        client_peer_close(u->nodes[i]->peer);
        client_target_done(&u->nodes[i]->target);
        rd_free(u->nodes[i]);
    }
    rd_free(u->nodes);
    rd_free(u->owners);
    client_peer_close(u->member);
    client_target_done(&u->server);
}
