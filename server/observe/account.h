/* account.h - what is told about a command afterwards: its counters, the latency, the slow log.
 *
 *     if (c->flags & CLIENT_BLOCKED)
 *         account_waits(c, command, argc, argv, began_us);     // its answer comes later
 *     else
 *         account_ran(c, command, argc, argv, began_us);
 *     ...
 *     account_served(c, reply, us);                            // now it came
 *
 * A command that waits has counted when its answer comes; the slow log has it only if it was served
 * by a key, not if the time was over or its client went.
 */
#ifndef SERVER_OBSERVE_ACCOUNT_H
#define SERVER_OBSERVE_ACCOUNT_H

#include "server/client/client.h"

/* The answer lies in client_reply(c). `began_us` is of the monotonic clock, as is srv->mono_us,
 * which must be of now. */
void account_ran(struct client *c, const struct engine_command *command, size_t argc,
                 const struct rd_slice *argv, int64_t began_us);

/* The command waits, and will be c->last_command. */
void account_waits(struct client *c, const struct engine_command *command, size_t argc,
                   const struct rd_slice *argv, int64_t began_us);

/* A key has ended the waiting: with this answer, which took `us` to make. */
void account_served(struct client *c, struct engine_reply *reply, uint64_t us);

/* Something else has, with this answer. */
void account_ended(struct client *c, struct engine_reply *reply);

#endif
