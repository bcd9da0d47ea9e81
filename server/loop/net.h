/* net.h - the sockets that the server listens on.
 */
#ifndef SERVER_LOOP_NET_H
#define SERVER_LOOP_NET_H

#include "base/err.h"
#include "server/surface/server.h"

/* Opens all listening sockets in the settings (bind, port, tls-port, unixsocket, unixsocketperm,
 * tcp-backlog). An address with a leading '-' may be unavailable. Does not accept connections
 * yet. */
bool net_listen(struct server *srv, struct rd_err *err);

/* Starts to accept connections. */
void net_start(struct server *srv);

/* Accepts the connections that the loop has reported. It is called in the order of the events: a
 * client that disconnected before does not count for maxclients, and commands that arrived later
 * apply to the new client. */
void net_accept(struct server *srv);

/* The connection of c is established (with TLS: after the handshake): counts it. False: protected
 * mode refuses the client, and it is closed before the loop sleeps. */
bool net_accepted(struct client *c);

/* CONFIG SET bind, port, tls-port, tls-*: opens the new sockets, if possible before closing the old
 * ones. After a failure possibly nothing is open: restore the settings and call it again.
 */
bool net_change(struct server *srv, struct rd_err *err);

/* Closes all sockets and removes the Unix socket file. */
void net_stop(struct server *srv);

#endif
