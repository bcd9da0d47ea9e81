/* dial.h - connections to other servers: masters, replicas and Sentinels.
 *
 *     const struct addrinfo *untried = addresses;     // of lookup.h
 *     int fd = dial(&loop->settings, &untried);
 *     if (fd >= 0) {
 *         conn = conn_new(loop, fd, false, NULL);
 *         if (!dial_tls(conn, s->tls_replication, &err))
 *             ... log err.text if it has one, conn_free(conn) ...
 *         ... the socket is writable once it is connected, or cannot be; then dial() again
 *             while `untried` is not NULL: a host may serve only one of its addresses ...
 *     }
 */
#ifndef SERVER_LOOP_DIAL_H
#define SERVER_LOOP_DIAL_H

#include <netdb.h>

#include "server/loop/conn.h"
#include "server/settings/settings.h"

/* A socket that is being connected to the first address that allows it, from bind-source-addr; the
 * addresses after it are left in *untried. -1: none does, by errno. */
int dial(const struct settings *s, const struct addrinfo **untried);

/* Begins a session if `wanted` (tls-replication, tls-cluster). False: it cannot. */
bool dial_tls(struct conn *conn, bool wanted, struct rd_err *err);

#endif
