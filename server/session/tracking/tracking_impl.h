/* tracking_impl.h - the state of client-side caching. Private to server/session/tracking/.
 */
#ifndef SERVER_SESSION_TRACKING_TRACKING_IMPL_H
#define SERVER_SESSION_TRACKING_TRACKING_IMPL_H

#include "engine/table.h"
#include "server/session/tracking/tracking.h"

struct tracking_prefix;

/* A client that has used tracking. Lives as long as keys refer to it, which can be longer than the
 * client. */
struct tracker {
    struct client *client;             /* NULL: gone */
    uint64_t id;                       /* of the client */
    size_t n_refs;                     /* keys, and the client */
    unsigned flags;                    /* enum tracking_flag */
    uint64_t redirect;                 /* 0: none */
    struct tracking_prefix **prefixes; /* by name */
    size_t n_prefixes, cap_prefixes;
};

struct tracking {
    struct sessions *sessions;
    size_t n_clients;
    struct engine_table keys; /* keys.c */
    size_t n_items;
    unsigned n_over; /* calls in a row that left too many keys */
    uint64_t chance;

    struct tracking_prefix **prefixes; /* by name */
    size_t n_prefixes, cap_prefixes;

    /* Messages that follow a reply: struct pending and the key, one after the other. */
    struct rd_buf pending;
    size_t n_pending;
    bool serving; /* the engine serves a blocked client */

    /* Keys that the client that is served changes, until it is known: struct changed *. */
    struct rd_buf served_changes;

    struct engine_listener listener; /* changes of keys */
};

static inline bool tracker_is_on(const struct tracker *t)
{
    return t != NULL && (t->flags & TRACKING_ON) != 0;
}

void tracker_release(struct tracker *t);

/* ---- keys.c ---- */
void tracking_keys_add(struct tracking *tracking, struct rd_slice key, struct tracker *t);

/* Sends a message to the clients that have read the key, and forgets them. */
void tracking_keys_invalidate(struct tracking *tracking, struct rd_slice key);
void tracking_keys_clear(struct tracking *tracking);

/* ---- prefixes.c ---- */
void tracking_prefix_join(struct tracking *tracking, struct tracker *t, struct rd_slice name);
void tracking_prefixes_leave(struct tracking *tracking, struct tracker *t);
void tracking_prefixes_touched(struct tracking *tracking, struct rd_slice key, struct client *by);

/* The client that was served made these changes. */
void tracking_prefixes_served(struct tracking *tracking, const struct client *c);
struct rd_slice tracking_prefix_name(const struct tracking_prefix *prefix);

/* ---- send.c ---- */

/* A message with this value (RESP): an array of keys, or null. */
void tracking_send(struct tracker *t, struct rd_slice value);
void tracking_send_key(struct tracker *t, struct rd_slice key);
void tracking_send_null(struct tracker *t);

void tracking_put_array(struct rd_buf *out, uint64_t n);
void tracking_put_bulk(struct rd_buf *out, struct rd_slice bytes);

/* The client or its receiver runs the current command, or is a blocked client that is being served:
 * the reply comes first. */
bool tracking_waits_for_reply(const struct tracking *tracking, const struct tracker *t);

/* The same after the reply to the current command. NULL: all keys. */
void tracking_send_later(struct tracking *tracking, struct tracker *t, const struct rd_slice *key);

#endif
