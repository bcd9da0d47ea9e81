/* topology.h - the shards of a cluster and their folders, which the file OUT/topology lists.
 */
#ifndef CAPTURE_TOPOLOGY_H
#define CAPTURE_TOPOLOGY_H

#include "client/topology.h"

struct capture;

/* Links to the masters that an earlier run has captured. */
bool capture_topology_load(struct capture *capture, struct rd_err *err);
/* Adds, moves and leaves links, as the cluster is now. */
bool capture_topology_apply(struct capture *capture, const struct client_topology *cluster,
                            uint64_t now_ms, struct rd_err *err);

#endif
