/* monitor.h - MONITOR: shows commands as they run.
 *
 *     monitor_command(sessions, &request);     // after each command that ran
 *
 * A line is "1339518083.107412 [0 127.0.0.1:60866] "keys" "*"". Administrative commands and
 * passwords are not shown (redact.h).
 */
#ifndef SERVER_SESSION_MONITOR_H
#define SERVER_SESSION_MONITOR_H

#include "server/session/dispatch/dispatch.h"

struct monitors *monitors_new(void);
void monitors_free(struct monitors *monitors);

/* Sends the command to the monitors; cheap without monitors. */
void monitor_command(struct sessions *sessions, const struct engine_request *request);

/* The same for a command that runs a script, before the script runs. */
void monitor_script(struct sessions *sessions, const struct engine_request *request);

DISPATCH_HANDLER(monitor);

/* A monitor disconnects, or is reset. */
void monitor_forget(struct client *c);

#endif
