/* shard.h - follows one shard of a cluster: when its master is lost, the link moves to the node
 * that was a replica of it and is the master of the shard now.
 *
 * Nodes are told apart by their ids, because a slot can move to another shard, whose data is not
 * the continuation of this one. A file keeps the ids, and the addresses of all masters, so that the
 * next run finds the shard where the configured server is gone:
 *
 *     shard ID ID…
 *     HOST PORT
 *     HOST PORT…
 *
 * A server that is no member of a cluster is asked once. A replica that is captured by choice, in a
 * shard that was never seen with its master, is not left.
 *
 * Threads: capture_shard_ask() runs as a job; the others where the links run.
 */
#ifndef CAPTURE_SHARD_H
#define CAPTURE_SHARD_H

#include "base/buf.h"
#include "capture/hosts.h"

struct capture_shard {
    const char *file;     /* set by the caller; NULL: no shard is followed */
    bool off;             /* there is no cluster, or it cannot be asked */
    struct rd_buf ids;    /* char[CLIENT_TOPOLOGY_ID_MAX] of each node, once the master is known */
    struct rd_buf places; /* struct capture_place: the masters */
};

struct capture_place {
    char host[CLIENT_HOST_MAX];
    uint16_t port;
};

/* Reads the file, if there is one. */
bool capture_shard_load(struct capture *capture, struct rd_err *err);
/* The masters as capture->watch.seeds. */
bool capture_shard_seeds(struct capture *capture, struct rd_err *err);
/* Asks one of them, or at first the server itself. A job: the argument is the capture. */
void capture_shard_ask(void *capture);
/* Takes the answer. */
bool capture_shard_apply(struct capture *capture, uint64_t now_ms, struct rd_err *err);
/* What the failure of the question says: whether to ask again. */
void capture_shard_failed(struct capture *capture);
void capture_shard_done(struct capture *capture);

#endif
