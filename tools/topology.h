/* topology.h - which servers there are: the masters of a cluster, and the one that sentinels name.
 *
 *     struct topology cluster = {0};
 *     struct peer_target target;
 *     if (!topology_read(&cluster, peer, &err))
 *         ...
 *     for (size_t i = 0; i < cluster.n; i++)
 *         peer_target_at(&target, like, rd_slice_str(cluster.nodes[i].host),
 *                        cluster.nodes[i].port, &err);
 *     topology_done(&cluster);
 *
 * Or, of several sentinels, the first that knows:
 *
 *     topology_find_master(&target, sentinels, n_sentinels, "mymaster", &like, &err)
 *
 * The topology may change at any moment: ask again when a connection fails.
 */
#ifndef TOOLS_TOPOLOGY_H
#define TOOLS_TOPOLOGY_H

#include "tools/peer.h"

enum { TOPOLOGY_ID_MAX = 64 };

struct topology_range {
    uint16_t first;
    uint16_t last;
};

/* A master that has slots. */
struct topology_node {
    char host[PEER_HOST_MAX];
    uint16_t port;
    char id[TOPOLOGY_ID_MAX];
    struct topology_range *ranges; /* in the order of slots; owned */
    size_t n_ranges;
};

struct topology {
    struct topology_node *nodes; /* in the order of their first slots */
    size_t n;
    unsigned n_slots; /* that have a master, of RD_HASH_SLOTS */
};

/* Asks a member, by CLUSTER SHARDS, or CLUSTER SLOTS before Redis 7.0. With TLS, the ports are
 * those of TLS. A member that does not know its own address has the one it was asked at.
 * RD_ERR_PROTOCOL if it is not a member of a cluster, or its reply is invalid. *ret
 * is zeroed or holds an earlier answer. */
bool topology_read(struct topology *ret, struct peer *peer, struct rd_err *err);
void topology_done(struct topology *topology);

/* The master that sentinels know by this name: each is asked in turn until one gives an address at
 * which a server says that it is a master (one whose ROLE we may not ask is taken for one). How to
 * log in there is as `like` has it. *ret is to be ended with peer_target_done(). The error is that
 * of the last sentinel. */
bool topology_find_master(struct peer_target *ret, const struct peer_target *sentinels, size_t n,
                          const char *name, const struct peer_target *like, struct rd_err *err);

#endif
