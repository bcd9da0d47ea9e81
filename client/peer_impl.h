/* peer_impl.h - private to client/.
 *
 *     target.c       which server is meant
 *     target_url.c   URLs
 *     peer.c         connecting; bytes in and out, not blocking
 *     peer_tls.c     the same through TLS
 *     peer_plain.c   whether a server that does not answer speaks without TLS
 *     peer_ask.c     commands and replies, blocking
 *     peer_reply.c   replies as trees
 */
#ifndef CLIENT_PEER_IMPL_H
#define CLIENT_PEER_IMPL_H

#include "client/peer.h"

#include <netdb.h>

struct client_peer_tls;

struct client_peer {
    const struct client_target *target;
    int fd;
    bool connected; /* completely: the next bytes belong to the caller */
    bool connecting;
    struct addrinfo *addresses; /* of the name; NULL: a socket */
    struct addrinfo *address;   /* the current attempt */
    uint64_t limit_ms;          /* for all of connecting; 0: none */
    uint64_t try_limit_ms;      /* for this address */
    struct rd_err tried;        /* why the address before this one failed */
    struct client_peer_tls *tls;
    short tls_events;  /* the events that TLS needs while it is connecting */
    uint64_t probe_ms; /* when the server is asked without TLS why it does not answer; 0: not yet
                          set; UINT64_MAX: it was asked */
    bool write_failed; /* earlier output of the peer is still to be read */
    struct rd_sink *out;
    struct rd_src *in;
    struct rd_resp_reply *replies;
    struct client_peer_redirect redirect;
};

uint64_t client_peer_now_ms(void);

/* Waits with poll(). False: nothing arrived within the target's limit. */
bool client_peer_poll(struct client_peer *peer, short events, const char *what, struct rd_err *err);

/* Whether the server at the other end of fd answers a PING on a new connection without TLS, within
 * a second. */
bool client_peer_speaks_plain(int fd);

/* ---- TLS ---- */

bool client_peer_tls_new(struct client_peer_tls **ret, const struct client_target *target, int fd,
                         struct rd_err *err);
void client_peer_tls_free(struct client_peer_tls *tls);

/* Like client_peer_connect(), client_peer_read_some() and client_peer_write_some(); *ret_events is
 * set with CLIENT_WAIT. */
enum client_status client_peer_tls_shake(struct client_peer_tls *tls, short *ret_events,
                                         struct rd_err *err);
enum client_status client_peer_tls_read(struct client_peer_tls *tls, void *buf, size_t cap,
                                        size_t *ret_len, struct rd_err *err);
enum client_status client_peer_tls_write(struct client_peer_tls *tls, struct rd_slice bytes,
                                         size_t *ret_len, struct rd_err *err);

#endif
