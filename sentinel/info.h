/* info.h - what a Sentinel learns from the reply of a master or a replica to INFO.
 *
 *     struct sentinel_info info;
 *     sentinel_info_read(text, &info);
 *     if (info.role == SENTINEL_INFO_MASTER)
 *         sentinel_info_replicas(text, on_replica, world);
 *
 * Lines that are unknown, or whose value makes no sense, are passed over: a server can announce
 * anything.
 *
 * Threads: any thread may call everything. Ownership: what is read borrows from the text. Errors:
 * none; a field that was not found keeps the value that says so. Cost: linear in the text.
 */
#ifndef SENTINEL_INFO_H
#define SENTINEL_INFO_H

#include "base/slice.h"

enum sentinel_info_role { SENTINEL_INFO_NO_ROLE, SENTINEL_INFO_MASTER, SENTINEL_INFO_REPLICA };

struct sentinel_info {
    enum sentinel_info_role role;
    struct rd_slice run_id;     /* 40 characters; empty: not found */
    int64_t master_link_down_s; /* -1: not found */

    /* Of a replica. */
    struct rd_slice master_host; /* empty: not found */
    int master_port;             /* -1: not found */
    int link;                    /* to its master: 1 is up, 0 is down, -1: not found */
    int64_t priority;            /* -1: not found */
    int64_t offset;              /* -1: not found */
    int announced;               /* 1 yes, 0 no, -1: not found */
};

void sentinel_info_read(struct rd_slice text, struct sentinel_info *ret);

/* The replicas of a master: slave0:ip=…,port=… and, before Redis 2.8, slave0:HOST,PORT,STATE. */
void sentinel_info_replicas(struct rd_slice text,
                            void (*replica)(void *ctx, struct rd_slice host, int port), void *ctx);

#endif
