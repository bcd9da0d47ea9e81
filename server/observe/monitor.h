/* monitor.h - MONITOR: everything that is run, as it is run.
 *
 *     monitor_command(srv, c, command, argc, argv);     // after each command that ran
 *
 * A line is "1339518083.107412 [0 127.0.0.1:60866] "keys" "*"". Commands of administrators are not
 * shown, passwords neither (redact.h).
 */
#ifndef SERVER_OBSERVE_MONITOR_H
#define SERVER_OBSERVE_MONITOR_H

#include "server/client/client.h"

/* Tells those who watch; cheap when nobody does. */
void monitor_command(struct server *srv, struct client *c, const struct engine_command *command,
                     size_t argc, const struct rd_slice *argv);

/* A client that watches goes away, or is reset. */
void monitor_forget(struct client *c);

#endif
