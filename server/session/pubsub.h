/* pubsub.h - channels, patterns, shard channels and their subscribers.
 *
 *     if (pubsub_subscribe(c, PUBSUB_CHANNEL, name))
 *         ... it is new to this client ...
 *     n = pubsub_publish(sessions, PUBSUB_CHANNEL, name, message);
 *     while (pubsub_first(c, PUBSUB_CHANNEL, &name))
 *         pubsub_unsubscribe(c, PUBSUB_CHANNEL, name);
 *
 * A channel exists as long as it has subscribers. Messages are encoded once and appended to the
 * output of each subscriber; nothing is sent before the loop sleeps.
 *
 * Subscribing takes constant time, publishing time proportional to the subscribers and patterns.
 */
#ifndef SERVER_SESSION_PUBSUB_H
#define SERVER_SESSION_PUBSUB_H

#include "server/session/client/client.h"

enum pubsub_kind { PUBSUB_CHANNEL, PUBSUB_PATTERN, PUBSUB_SHARD, PUBSUB_KINDS };

struct pubsub *pubsub_new(struct sessions *sessions);

/* All clients must be freed before. */
void pubsub_free(struct sessions *sessions);

/* False: the client has this subscription already. Sets CLIENT_PUBSUB. */
bool pubsub_subscribe(struct client *c, enum pubsub_kind kind, struct rd_slice name);

/* False: the client does not have this subscription. name may come from pubsub_first(). */
bool pubsub_unsubscribe(struct client *c, enum pubsub_kind kind, struct rd_slice name);

/* Ends all subscriptions of a channel, of which the clients are told: "sunsubscribe". */
void pubsub_end_channel(struct sessions *sessions, enum pubsub_kind kind, struct rd_slice channel);

/* The oldest subscription of a client; valid until it is removed. */
bool pubsub_first(const struct client *c, enum pubsub_kind kind, struct rd_slice *ret);

/* Returns the number of receivers. The message is pushed to each (RESP3: a push; RESP2: an array).
 * PUBSUB_CHANNEL also reaches the clients whose patterns match. */
uint64_t pubsub_publish(struct sessions *sessions, enum pubsub_kind kind, struct rd_slice channel,
                        struct rd_slice message);

/* Between these two calls, messages for a RESP3 client are not appended to its output, where the
 * reply to its command is being written, but inserted before that reply: at `at`, the length of the
 * output before the command. False: this is active for another client already; do not release
 * it. */
bool pubsub_hold(struct sessions *sessions, struct client *c);
void pubsub_release(struct sessions *sessions, size_t at);

/* The number of subscriptions of a client: channels and patterns; shard channels. */
size_t pubsub_count(const struct client *c, enum pubsub_kind kind);

/* Removes all kinds without a message: for RESET and a client that disconnects. */
void pubsub_forget(struct client *c);

/* INFO: the numbers of channels and patterns. */
size_t pubsub_total(const struct sessions *sessions, enum pubsub_kind kind);
size_t pubsub_memory(const struct client *c);

/* The number of clients subscribed to a channel. */
size_t pubsub_listeners(const struct sessions *sessions, enum pubsub_kind kind,
                        struct rd_slice name);

/* All channels in the order of their creation. */
typedef void (*pubsub_each_fn)(void *ctx, struct rd_slice name);
void pubsub_each(const struct sessions *sessions, enum pubsub_kind kind, pubsub_each_fn fn,
                 void *ctx);

/* The subscriptions of a client, the oldest first. */
void pubsub_each_of(const struct client *c, enum pubsub_kind kind, pubsub_each_fn fn, void *ctx);

#endif
