/* conn.h - a connection: a non-blocking socket, plain or with TLS.
 *
 *     struct conn *conn = conn_new(loop, fd, is_unix, tls);
 *     conn_watch(conn, true, false);          // calls conn->ready(conn, events)
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
struct loop;
struct tls; /* tls.h: a context made from the settings */

enum { CONN_NAME = 80 }; /* bytes of a name that CLIENT LIST can show */
enum { CONN_AGAIN = 0, CONN_END = -1, CONN_FAIL = -2 };

struct conn {
    struct loop *loop;
    struct client *client; /* NULL: none, or after conn_free() */
    /* Handles events; may free the connection. NULL: they are dropped. */
    void (*ready)(struct conn *conn, int events);
    void *owner; /* of `ready` */
    int fd;
    uv_poll_t poll;
    int events; /* events watched now */
    /* Reported by the loop and not handled yet; 0: not in the queue of the server. */
    int pending;
    bool failed; /* the loop does not watch it until this is handled */
    struct conn *before, *after;
    void *ssl; /* NULL: plain */
    bool tls_wants_write, tls_wants_read;
    bool shakes_hands; /* TLS: the handshake is not complete */
    bool is_unix;
    char error[128]; /* reason of a failure */
};

/* Takes ownership of fd. tls NULL: plain. The caller sets `ready`; with TLS, it
 * drives the handshake. NULL: the library failed,
 * and fd is closed. */
struct conn *conn_new(struct loop *loop, int fd, bool is_unix, struct tls *tls);

/* Closes the socket; the struct is freed by the loop later. */
void conn_free(struct conn *conn);

/* Selects the events that call `ready`. */
void conn_watch(struct conn *conn, bool read, bool write);

/* Handles the events that the loop has reported: runs the commands of clients. Such a command may
 * run the loop (loop_events()), which is not possible in a callback of the loop. */
void conn_run_events(struct loop *loop);

/* Calls net_accept() when the events so far are handled, and before later ones. */
void conn_accept_in_order(struct loop *loop);

ssize_t conn_read(struct conn *conn, void *dst, size_t size);
ssize_t conn_write(struct conn *conn, const void *src, size_t len);

/* "ip:port" of the peer of a socket; dst is unchanged if that is not known. */
void conn_peer_name(int fd, char *dst, size_t size);

/* "ip:port" of the peer and of the local side. */
void conn_names(struct conn *conn, char *peer, char *local, size_t size);

#endif
