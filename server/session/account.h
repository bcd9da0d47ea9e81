/* account.h - accounts for a command after it ran: counters, latency and the slow log.
 *
 *     if (c->flags & CLIENT_BLOCKED)
 *         account_waits(c, &request, began_us);                // it is answered later
 *     else
 *         account_ran(&request, began_us);
 *     ...
 *     account_served(c, reply, us);                            // now it was answered
 *
 * A blocked command is counted when it is answered. It enters the slow log only if a key served it,
 * not after a timeout or a disconnect.
 */
#ifndef SERVER_SESSION_ACCOUNT_H
#define SERVER_SESSION_ACCOUNT_H

#include "server/session/client/client.h"

/* The session is that of a client, or of its script. `began_us` is monotonic, like
 * loop.mono_us, which must be up to date. */
void account_ran(const struct engine_request *request, int64_t began_us);

/* The command blocks, and becomes c->last_command. */
void account_waits(struct client *c, const struct engine_request *request, int64_t began_us);

/* A key has unblocked it, with this reply, which took `us` to make. */
void account_served(struct client *c, struct engine_reply *reply, uint64_t us);

/* Something else has unblocked it, with this reply. */
void account_ended(struct client *c, struct engine_reply *reply);

#endif
