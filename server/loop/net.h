/* net.h - the sockets that the server listens on.
 */
#ifndef SERVER_LOOP_NET_H
#define SERVER_LOOP_NET_H

#include "base/err.h"
#include "server/loop/loop.h"

/* Opens all listening sockets in the settings (bind, port, tls-port, unixsocket, unixsocketperm,
 * tcp-backlog). An address with a leading '-' may be unavailable. Does not accept connections
 * yet. */
bool net_listen(struct loop *loop, struct rd_err *err);

/* Starts to accept connections. */
void net_start(struct loop *loop);

/* Accepts the connections that the loop has reported. It is called in the order of the events: a
 * client that disconnected before does not count for maxclients, and commands that arrived later
 * apply to the new client. */
void net_accept(struct loop *loop);

/* CONFIG SET bind, port, tls-port, tls-*: opens the new sockets, if possible before closing the old
 * ones. After a failure possibly nothing is open: restore the settings and call it again.
 */
bool net_change(struct loop *loop, struct rd_err *err);

/* Closes all sockets and removes the Unix socket file. */
void net_stop(struct loop *loop);

/* The same without the file and the log line. */
void net_free(struct loop *loop);

#endif
