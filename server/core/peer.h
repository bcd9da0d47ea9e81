/* peer.h - connections to other servers, for MIGRATE: one command asks for a key to be taken over,
 * the next will follow soon, so that they are kept for a while.
 *
 *     struct peer *peer = peer_get(srv, host, port, timeout_ms);
 *     if (peer != NULL && peer_write(peer, bytes) && peer_line(peer, &line))
 *         ...
 *     else
 *         peer_drop(srv, peer);
 *
 * Everything waits, and at most timeout_ms for each step, as in the servers that have the command:
 * the keys must not change meanwhile.
 */
#ifndef SERVER_CORE_PEER_H
#define SERVER_CORE_PEER_H

#include "server/core/server.h"

struct peer {
    struct peer *next;
    char *name; /* "host:port" */
    int fd;
    int timeout_ms;
    bool timed_out; /* the last failure was one of time */
    int64_t db;     /* selected there; -1: unknown */
    int64_t used_s;
    struct rd_buf in;
    size_t read; /* of `in`: bytes that were given out */
};

/* One that is there, or a new one; it stays the server's. NULL: there is nobody, or no answer. */
struct peer *peer_get(struct server *srv, struct rd_slice host, struct rd_slice port,
                      int timeout_ms);

/* Closes and forgets it. */
void peer_drop(struct server *srv, struct peer *peer);

bool peer_write(struct peer *peer, struct rd_slice bytes);

/* The next line, without its end; it lives until the next call. At most 1 KiB. */
bool peer_line(struct peer *peer, struct rd_slice *ret);

/* Closes what was not used for ten seconds. */
void peers_cron(struct server *srv);

size_t peers_count(const struct server *srv);

#endif
