/* net.h - the sockets that the server listens on.
 */
#ifndef SERVER_NET_H
#define SERVER_NET_H

#include "base/err.h"
#include "server/server.h"

/* Opens all that the settings ask for (bind, port, tls-port, unixsocket, unixsocketperm,
 * tcp-backlog). An address with '-' in front may be unavailable. Nothing is accepted yet. */
bool net_listen(struct server *srv, struct rd_err *err);

/* Accepts from now on. */
void net_start(struct server *srv);

/* CONFIG SET bind, port, tls-port: opens the new ones before the old ones are closed; on failure
 * the old ones stay. */
bool net_change(struct server *srv, struct rd_err *err);

/* Closes all; removes the unix socket. */
void net_stop(struct server *srv);

#endif
