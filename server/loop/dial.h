/* dial.h - connections to other servers: masters, replicas and Sentinels.
 *
 *     int fd = dial(&loop->settings, addresses);      // of lookup.h
 *     if (fd >= 0) {
 *         conn = conn_new(loop, fd, false, NULL);
 *         if (!dial_tls(conn, &err))
 *             ... log err.text if it has one, conn_free(conn) ...
 *         ... the socket is writable once it is connected, or cannot be ...
 *     }
 */
#ifndef SERVER_LOOP_DIAL_H
#define SERVER_LOOP_DIAL_H

#include <netdb.h>

#include "server/loop/conn.h"
#include "server/settings/settings.h"

/* A socket that is being connected to the first address that allows it, from bind-source-addr. -1:
 * errno. */
int dial(const struct settings *s, const struct addrinfo *all);

/* With tls-replication: begins a session. False: it cannot. */
bool dial_tls(struct conn *conn, struct rd_err *err);

#endif
