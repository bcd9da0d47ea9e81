/* topology.h - finds servers: the masters of a cluster, and the master that sentinels know.
 *
 *     struct client_topology cluster = {0};
 *     struct client_target target;
 *     if (!client_topology_read(&cluster, peer, &err))
 *         ...
 *     for (size_t i = 0; i < cluster.n; i++)
 *         client_target_at(&target, like, rd_slice_str(cluster.nodes[i].host),
 *                        cluster.nodes[i].port, &err);
 *     client_topology_done(&cluster);
 *
 * Or, of several sentinels, the first that knows:
 *
 *     client_topology_find_master(&target, sentinels, n_sentinels, "mymaster", &like, &err)
 *
 * The topology may change at any moment: ask again when a connection fails.
 */
#ifndef CLIENT_TOPOLOGY_H
#define CLIENT_TOPOLOGY_H

#include "client/peer.h"

enum { CLIENT_TOPOLOGY_ID_MAX = 64 };

struct client_topology_range {
    uint16_t first;
    uint16_t last;
};

/* A master with slots. */
struct client_topology_node {
    char host[CLIENT_HOST_MAX];
    uint16_t port;
    char id[CLIENT_TOPOLOGY_ID_MAX];
    struct client_topology_range *ranges; /* in the order of slots; owned */
    size_t n_ranges;
    char (*members)[CLIENT_TOPOLOGY_ID_MAX]; /* ids of the master and its replicas; owned */
    size_t n_members;
};

struct client_topology {
    bool partial; /* set by the caller: slots without a master are left out, and no error */
    struct client_topology_node *nodes; /* in the order of their first slots */
    size_t n;
    unsigned n_slots; /* assigned to a master, of RD_HASH_SLOTS */
};

/* Whether a server is a member of a cluster, by its INFO. A user without the right to know it needs
 * none on a server that is no cluster: false, and *ret_hidden, unless it is NULL, is set. */
bool client_topology_exists(struct client_peer *peer, bool *ret, bool *ret_hidden,
                            struct rd_err *err);

/* Asks a member with CLUSTER SHARDS, or CLUSTER SLOTS before Redis 7.0. With TLS, the ports are
 * those of TLS. A member that does not know its own address gets the one at which it was asked.
 * RD_ERR_PROTOCOL if it is not a member of a cluster, or its reply is invalid. *ret is zeroed but
 * for `partial`, or contains an earlier answer. */
bool client_topology_read(struct client_topology *ret, struct client_peer *peer,
                          struct rd_err *err);
void client_topology_done(struct client_topology *topology);

/* The id of a member. */
bool client_topology_my_id(struct client_peer *peer, char ret[CLIENT_TOPOLOGY_ID_MAX],
                           struct rd_err *err);

/* Finds the master that sentinels know by this name. Each sentinel is asked in turn until one gives
 * the address of a server that reports itself as a master. A server that does not allow ROLE is
 * taken for a master. The login is that of `like`. End *ret with client_target_done(). The error is
 * that of the last sentinel. */
bool client_topology_find_master(struct client_target *ret, const struct client_target *sentinels,
                                 size_t n, const char *name, const struct client_target *like,
                                 struct rd_err *err);

#endif
