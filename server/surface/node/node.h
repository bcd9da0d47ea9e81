/* node.h - the server as a node of a cluster: cluster-enabled. What a node decides is in cluster/.
 *
 *     node.c       life, time, what the cluster library asks for
 *     bus.c        connections to other nodes
 *     file.c       nodes.conf
 *     route.c      whether this node has the keys of a command
 *     lose.c       clients that wait for keys, or are subscribed, in slots that went elsewhere
 *     commands.c   CLUSTER and the commands that this server answers otherwise
 *     slots.c      CLUSTER ADDSLOTS, SETSLOT and others
 *     describe.c   CLUSTER INFO, NODES and others
 *     shards.c     CLUSTER SLOTS, SHARDS and LINKS
 *
 *     if (settings->cluster_enabled && !node_new(srv, &why))
 *         ... print why, end ...
 */
#ifndef SERVER_SURFACE_NODE_NODE_H
#define SERVER_SURFACE_NODE_NODE_H

#include "base/buf.h"
#include "server/surface/server.h"

/* Makes the server a node, before server_init(): locks and reads nodes.conf. False: *why is the
 * reason; free it in both cases. */
bool node_new(struct server *srv, struct rd_buf *why);

#endif
