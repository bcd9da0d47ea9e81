/* client.h - what the files of CLIENT share.
 */
#ifndef SERVER_CMD_CLIENT_H
#define SERVER_CMD_CLIENT_H

#include "server/core/dispatch.h"

/* The word of a type; CLIENT_TYPES: "master", which no client is. False: answered. */
bool cmd_client_type(struct dispatch_call *call, struct rd_slice word, enum client_type *ret);

void cmd_client_kill(struct dispatch_call *call);

#endif
