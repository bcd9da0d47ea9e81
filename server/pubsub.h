/* pubsub.h - channels, patterns, shard channels, and who listens.
 */
#ifndef SERVER_PUBSUB_H
#define SERVER_PUBSUB_H

#include "server/client.h"

enum pubsub_kind { PUBSUB_CHANNEL, PUBSUB_PATTERN, PUBSUB_SHARD, PUBSUB_KINDS };

struct pubsub *pubsub_new(struct server *srv);
void pubsub_free(struct pubsub *pubsub);

/* How many got it. The message is pushed to each (RESP3: a push; RESP2: an array). */
uint64_t pubsub_publish(struct server *srv, enum pubsub_kind kind, struct rd_slice channel,
                        struct rd_slice message);

/* Number of subscriptions of a client: channels and patterns; shard channels. */
size_t pubsub_count(const struct client *c, enum pubsub_kind kind);

/* All kinds; says nothing. RESET, and a client that goes away. */
void pubsub_forget(struct client *c);

/* INFO: how many there are. */
size_t pubsub_total(const struct server *srv, enum pubsub_kind kind);
size_t pubsub_memory(const struct client *c);

/* Keyspace events as messages: engine_hooks.notify. */
void pubsub_keyspace_event(void *ctx, enum engine_notify class, const char *event,
                           struct rd_slice key, unsigned db);

#endif
