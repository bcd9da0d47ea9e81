/* pubsub.h - channels, patterns, shard channels, and who listens.
 *
 *     if (pubsub_subscribe(c, PUBSUB_CHANNEL, name))
 *         ... it is new to this client ...
 *     n = pubsub_publish(srv, PUBSUB_CHANNEL, name, message);
 *     while (pubsub_first(c, PUBSUB_CHANNEL, &name))
 *         pubsub_unsubscribe(c, PUBSUB_CHANNEL, name);
 *
 * A channel is there as long as somebody listens. Messages are encoded once and appended to the
 * output of each listener; nothing is sent before the loop sleeps.
 *
 * Subscribing takes constant time, publishing as many steps as there are listeners and patterns.
 */
#ifndef SERVER_CORE_PUBSUB_H
#define SERVER_CORE_PUBSUB_H

#include "server/client/client.h"

enum pubsub_kind { PUBSUB_CHANNEL, PUBSUB_PATTERN, PUBSUB_SHARD, PUBSUB_KINDS };

struct pubsub *pubsub_new(struct server *srv);

/* All clients must be gone before. */
void pubsub_free(struct pubsub *pubsub);

/* False: the client has this one already. CLIENT_PUBSUB follows. */
bool pubsub_subscribe(struct client *c, enum pubsub_kind kind, struct rd_slice name);

/* False: the client does not have this one. name may be what pubsub_first() gave. */
bool pubsub_unsubscribe(struct client *c, enum pubsub_kind kind, struct rd_slice name);

/* The oldest of a client's subscriptions; it lives until it is unsubscribed. */
bool pubsub_first(const struct client *c, enum pubsub_kind kind, struct rd_slice *ret);

/* How many got it. The message is pushed to each (RESP3: a push; RESP2: an array). PUBSUB_CHANNEL
 * also goes to those whose patterns match. */
uint64_t pubsub_publish(struct server *srv, enum pubsub_kind kind, struct rd_slice channel,
                        struct rd_slice message);

/* Between these, messages for a client that speaks RESP3 do not go to the end of his output, where
 * the answer to his command is being written, but are put before that answer: at `at`, the
 * length of his output before the command. False: this is so for another client already, and
 * nothing is to be released. */
bool pubsub_hold(struct server *srv, struct client *c);
void pubsub_release(struct server *srv, size_t at);

/* Number of subscriptions of a client: channels and patterns; shard channels. */
size_t pubsub_count(const struct client *c, enum pubsub_kind kind);

/* All kinds; says nothing. RESET, and a client that goes away. */
void pubsub_forget(struct client *c);

/* INFO: how many there are. */
size_t pubsub_total(const struct server *srv, enum pubsub_kind kind);
size_t pubsub_memory(const struct client *c);

/* How many clients listen to a channel. */
size_t pubsub_listeners(const struct server *srv, enum pubsub_kind kind, struct rd_slice name);

/* All channels in the order in which they came to be. */
typedef void (*pubsub_each_fn)(void *ctx, struct rd_slice name);
void pubsub_each(const struct server *srv, enum pubsub_kind kind, pubsub_each_fn fn, void *ctx);

/* Keyspace events as messages: engine_hooks.notify. */
void pubsub_keyspace_event(void *ctx, enum engine_notify class, const char *event,
                           struct rd_slice key, unsigned db);

#endif
