/* peer.h - connections to other servers, for MIGRATE. They are kept for a while, since one MIGRATE
 * is often followed by another.
 *
 *     struct peer *peer = peer_get(srv, host, port, timeout_ms, &refused);
 *     if (peer != NULL && peer_write(peer, bytes) && peer_line(peer, &line))
 *         ...
 *     else
 *         peer_drop(srv, peer);
 *
 * With tls-cluster, connections use TLS, as in Redis. All functions block, at most timeout_ms for
 * each step, as MIGRATE in redis-server does: the keys must not change meanwhile.
 */
#ifndef SERVER_SURFACE_PEER_H
#define SERVER_SURFACE_PEER_H

#include "server/loop/conn.h"
#include "server/surface/server.h"

struct peer {
    struct peer *next;
    char *name;       /* "host:port" */
    struct conn conn; /* for its socket and session of TLS; the loop does not watch it */
    int timeout_ms;
    bool timed_out; /* the last failure was a timeout */
    int64_t db;     /* database selected there; -1: unknown */
    int64_t used_s;
    struct rd_buf in;
    size_t read; /* bytes of `in` that were already returned */
};

/* An existing connection, or a new one; the server owns it. NULL: the peer cannot be reached, or
 * does not reply. *ret_refused: an answer said so, as that of a closed port. */
struct peer *peer_get(struct server *srv, struct rd_slice host, struct rd_slice port,
                      int timeout_ms, bool *ret_refused);

/* Closes and removes the connection. */
void peer_drop(struct server *srv, struct peer *peer);

bool peer_write(struct peer *peer, struct rd_slice bytes);

/* The next line, without its end; valid until the next call. At most 1 KiB. */
bool peer_line(struct peer *peer, struct rd_slice *ret);

/* Closes connections that were not used for ten seconds. */
void peers_cron(struct server *srv);

void peers_free(struct server *srv);

size_t peers_count(const struct server *srv);

#endif
