/* monitor.h - MONITOR: everything that is run, as it is run.
 */
#ifndef SERVER_MONITOR_H
#define SERVER_MONITOR_H

#include "server/client.h"

/* Tells those who watch; cheap when nobody does. */
void monitor_command(struct server *srv, struct client *c, const struct engine_command *command,
                     size_t argc, const struct rd_slice *argv);

/* A client that watches goes away, or is reset. */
void monitor_forget(struct client *c);

#endif
