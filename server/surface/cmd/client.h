/* client.h - shared by the files of CLIENT.
 */
#ifndef SERVER_SURFACE_CMD_CLIENT_H
#define SERVER_SURFACE_CMD_CLIENT_H

#include "server/session/dispatch/dispatch.h"

/* Parses the word of a client type; CLIENT_TYPES means "master", a type that no client has. False:
 * an error was returned to the client. */
bool cmd_client_type(struct dispatch_call *call, struct rd_slice word, enum client_type *ret);

void cmd_client_kill(struct dispatch_call *call);

/* client_tracking.c */
void cmd_client_tracking(struct dispatch_call *call);
void cmd_client_caching(struct dispatch_call *call);
void cmd_client_getredir(struct dispatch_call *call);
void cmd_client_trackinginfo(struct dispatch_call *call);

#endif
