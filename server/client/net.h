/* net.h - the sockets that the server listens on.
 */
#ifndef SERVER_CLIENT_NET_H
#define SERVER_CLIENT_NET_H

#include "base/err.h"
#include "server/core/server.h"

/* Opens all that the settings ask for (bind, port, tls-port, unixsocket, unixsocketperm,
 * tcp-backlog). An address with '-' in front may be unavailable. Nothing is accepted yet. */
bool net_listen(struct server *srv, struct rd_err *err);

/* Accepts from now on. */
void net_start(struct server *srv);

/* The connection of c stands (with TLS: after the handshake): counts it. False: protected mode
 * turns it away, and it is closed before the loop sleeps. */
bool net_accepted(struct client *c);

/* CONFIG SET bind, port, tls-port, tls-*: opens what the settings say now, if it can before it
 * closes what was open. On failure nothing may be open: take the settings back and call it again.
 */
bool net_change(struct server *srv, struct rd_err *err);

/* Closes all; removes the unix socket. */
void net_stop(struct server *srv);

#endif
