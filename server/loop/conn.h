/* conn.h - a connection: a non-blocking socket, plain or with TLS.
 *
 *     struct conn *conn = conn_new(srv, fd, tls);
 *     conn_watch(conn, true, false);          // calls client_readable(conn->client)
 *     n = conn_read(conn, buf, size);         // > 0, CONN_AGAIN, CONN_END, CONN_FAIL
 *     n = conn_write(conn, bytes, len);
 *     conn_free(conn);
 */
#ifndef SERVER_LOOP_CONN_H
#define SERVER_LOOP_CONN_H

#include <sys/types.h>
#include <uv.h>

#include "base/err.h"
#include "base/slice.h"

struct client;
struct server;
struct tls; /* tls.h: a context made from the settings */

enum { CONN_NAME = 80 }; /* bytes of a name that CLIENT LIST can show */
enum { CONN_AGAIN = 0, CONN_END = -1, CONN_FAIL = -2 };

struct conn {
    struct server *srv;
    struct client *client; /* the client to notify; NULL after conn_free() */
    /* NULL, or called instead of the client's functions; may free the connection. */
    void (*ready)(struct conn *conn, int events);
    void *owner; /* of `ready` */
    int fd;
    uv_poll_t poll;
    int events; /* events watched now */
    /* Reported by the loop and not handled yet; 0: not in the queue of the server. */
    int pending;
    bool failed; /* the loop no longer watches it */
    struct conn *before, *after;
    void *ssl; /* NULL: plain */
    bool tls_wants_write, tls_wants_read;
    bool shakes_hands; /* TLS: the handshake is not complete */
    bool is_unix;
    char error[128]; /* reason of a failure */
};

/* Takes ownership of fd. tls NULL: plain. The caller must create a client for the connection
 * immediately; with TLS, the client's input is read after the handshake. NULL: the library failed,
 * and fd is closed. */
struct conn *conn_new(struct server *srv, int fd, bool is_unix, struct tls *tls);

/* Closes the socket; the struct is freed by the loop later. */
void conn_free(struct conn *conn);

/* Selects the events that call client_readable() and client_writable(). */
void conn_watch(struct conn *conn, bool read, bool write);

/* Handles the events that the loop has reported: runs the commands of clients. Such a command may
 * run the loop (server_events()), which is not possible in a callback of the loop. */
void conn_run_events(struct server *srv);

/* Calls net_accept() when the events so far are handled, and before later ones. */
void conn_accept_in_order(struct server *srv);

ssize_t conn_read(struct conn *conn, void *dst, size_t size);
ssize_t conn_write(struct conn *conn, const void *src, size_t len);

/* "ip:port" of the peer of a socket; dst is unchanged if that is not known. */
void conn_peer_name(int fd, char *dst, size_t size);

/* "ip:port" of the peer and of the local side. */
void conn_names(struct conn *conn, char *peer, char *local, size_t size);

#endif
