/* hosts.h - finds the masters: the target itself, what sentinels name, all of a cluster, or that of
 * one shard (shard.h).
 */
#ifndef CAPTURE_HOSTS_H
#define CAPTURE_HOSTS_H

#include "capture/job.h"
#include "client/peer.h"
#include "client/topology.h"

struct capture;

struct capture_watch {
    struct capture_job job;
    struct client_opts opts; /* of the target, with a shorter timeout */
    struct client_target target;
    struct client_target *seeds; /* of a cluster: the members to ask */
    size_t n_seeds;
    bool ok; /* the result of the job */
    struct rd_err err;
    struct client_target master;
    struct client_topology cluster;
    char id[CLIENT_TOPOLOGY_ID_MAX]; /* of the target, if it is asked for its shard */
    bool member;                     /* it is a member of a cluster */
    bool hidden;                     /* or may be: the user may not know it */
    uint64_t next_ms;
};

/* Finds the masters and creates the first links. */
bool capture_hosts_begin(struct capture *capture, struct rd_err *err);
/* Asks again from time to time, and moves links. */
bool capture_hosts_tick(struct capture *capture, uint64_t now_ms, uint64_t *ret_wait_ms,
                        struct rd_err *err);
/* A connection was lost: asks again soon. */
void capture_hosts_hurry(struct capture *capture, uint64_t now_ms);
/* Finds the master once, for --rdb-only. */
bool capture_hosts_find_master(struct capture *capture, struct client_target *ret,
                               struct rd_err *err);
void capture_hosts_end(struct capture *capture);

#endif
