/* durable.h - what outlives the process: snapshots and logs (persist/persist.h), and the copies of
 * other servers (replication/replication.h).
 */
#ifndef SERVER_DURABLE_DURABLE_H
#define SERVER_DURABLE_DURABLE_H

#include "server/session/sessions.h"

struct persist;
struct replication;

struct durable {
    struct loop *loop;
    struct sessions *sessions;
    struct persist *persist;
    struct replication *replication;
    char run_id[41];
    bool skip_checksum; /* DEBUG SET-SKIP-CHECKSUM-VALIDATION 1 */
    /* Bytes of the data set, clients and buffers: set by the layer above. O(clients). */
    uint64_t (*used_memory)(struct sessions *sessions);
};

void durable_init(struct durable *durable, struct sessions *sessions);
void durable_free(struct durable *durable);

/* Whether effects are needed at all. */
bool durable_wants_effects(const struct durable *durable);

#endif
