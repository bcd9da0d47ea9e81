/* tracking.h - client-side caching: notifies clients of changes to keys that they may have cached
 * (CLIENT TRACKING).
 *
 *     tracking_read(c, command, argc, argv);   // after each command: its keys may be cached
 *     tracking_after(sessions);                // a command has ended
 *
 * Without BCAST the server remembers which clients read a key, and sends each of them one message
 * when the key changes. With BCAST it remembers nothing: before the loop sleeps, it sends the keys
 * that changed to the clients that registered a prefix of them.
 *
 * A message goes to the client, as a RESP3 push, or to the connection that REDIRECT names, which
 * can also be a RESP2 client that has subscribed. Messages that the client causes itself follow the
 * reply to its command; all others are sent at once.
 *
 *     tracking.c   the modes of a client
 *     keys.c       which clients have read which key
 *     prefixes.c   BCAST
 *     send.c       messages
 */
#ifndef SERVER_SESSION_TRACKING_TRACKING_H
#define SERVER_SESSION_TRACKING_TRACKING_H

#include "server/session/client/client.h"

struct tracking;

/* The options of CLIENT TRACKING, and the state of a client. */
enum tracking_flag {
    TRACKING_ON = 1 << 0,
    TRACKING_BCAST = 1 << 1,
    TRACKING_OPTIN = 1 << 2,
    TRACKING_OPTOUT = 1 << 3,
    TRACKING_NOLOOP = 1 << 4,
    TRACKING_CACHING = 1 << 5, /* CLIENT CACHING was called for the next command */
    TRACKING_BROKEN = 1 << 6   /* the client of REDIRECT is gone */
};

struct tracking *tracking_new(struct sessions *sessions);
void tracking_free(struct sessions *sessions);

/* ---- CLIENT TRACKING ---- */

/* Turns tracking on, or changes its options. The prefixes (with BCAST; none: all keys) are added to
 * those of the client. redirect 0: none. */
void tracking_begin(struct client *c, unsigned options, uint64_t redirect,
                    const struct rd_slice *prefixes, size_t n);
void tracking_end(struct client *c);

/* enum tracking_flag; 0: tracking was never on. */
unsigned tracking_flags(const struct client *c);
uint64_t tracking_redirect(const struct client *c);

/* CLIENT CACHING. The flag ends with the next command or transaction. */
void tracking_set_caching(struct client *c);
void tracking_next_command(struct client *c, const struct engine_command *command);

/* The prefixes of a client, in order. */
size_t tracking_prefix_count(const struct client *c);
struct rd_slice tracking_prefix(const struct client *c, size_t index);

/* The client is about to be freed. */
void tracking_forget(struct client *c);

/* ---- what happened ---- */

/* The client, or a script for it, has run a command. If it reads, its keys are remembered; for a
 * script, the keys of EVAL or FCALL. */
void tracking_read(struct client *c, const struct engine_command *command, size_t argc,
                   const struct rd_slice *argv);

/* Sends the messages that had to wait for the reply. */
void tracking_after(struct sessions *sessions);

/* While the engine serves blocked clients, and after the reply of each. */
void tracking_serve_begin(struct sessions *sessions);
void tracking_served(struct sessions *sessions, const struct client *c);
void tracking_serve_end(struct sessions *sessions);

/* Before the loop sleeps: BCAST. */
void tracking_broadcast(struct sessions *sessions);

/* Forgets random keys beyond tracking-table-max-keys, with messages: some in each call. */
void tracking_limit(struct sessions *sessions);

/* ---- INFO ---- */

struct tracking_figures {
    size_t clients, keys, items, prefixes;
};
void tracking_figures(const struct sessions *sessions, struct tracking_figures *ret);

/* Bytes of a client's state. */
size_t tracking_memory(const struct client *c);

#endif
