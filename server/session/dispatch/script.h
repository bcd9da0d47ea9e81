/* script.h - scripts and the server: conditions for their commands, and slow scripts.
 *
 * A script that runs for longer than busy-reply-threshold no longer blocks all other clients: the
 * loop runs inside its hook, and clients get -BUSY for all commands except a few, such as SCRIPT
 * KILL. Nothing changes the data set in the meantime: no expiry, no eviction, no cron.
 */
#ifndef SERVER_SESSION_DISPATCH_SCRIPT_H
#define SERVER_SESSION_DISPATCH_SCRIPT_H

#include "engine/admit.h"
#include "engine/script.h"
#include "server/session/client/client.h"

void dispatch_script_hooks(struct engine_hooks *hooks);

/* The bit of enum engine_admit_state for a script that runs too long; 0: there is none. */
uint32_t dispatch_script_busy(const struct sessions *sessions);

#endif
