/* peer_impl.h - private to peer*.c.
 *
 *     peer_target.c     options, and which server they mean
 *     peer_url.c        URLs
 *     peer_password.c   a password from the terminal
 *     peer.c            connecting; bytes in and out, not blocking
 *     peer_tls.c        the same through TLS
 *     peer_ask.c        commands and replies, blocking
 *     peer_reply.c      replies as trees
 *     peer_hint.c       what to do about an error
 */
#ifndef TOOLS_PEER_IMPL_H
#define TOOLS_PEER_IMPL_H

#include "tools/peer.h"

#include <netdb.h>

struct peer_tls;

struct peer {
    const struct peer_target *target;
    int fd;
    bool connected; /* all of it: the next bytes are the caller's */
    bool connecting;
    struct addrinfo *addresses; /* of the name; NULL for a socket */
    struct addrinfo *address;   /* which is tried */
    uint64_t limit_ms;          /* for all of connecting; 0: none */
    uint64_t try_limit_ms;      /* for this address */
    struct rd_err tried;        /* why the address before this one failed */
    struct peer_tls *tls;
    short tls_events;  /* what TLS waits for while it is connecting */
    bool write_failed; /* what the peer has said before is still to be read */
    struct rd_sink *out;
    struct rd_src *in;
    struct rd_resp_reply *replies;
};

uint64_t peer_now_ms(void);

/* Waits with poll(). False: nothing came within the target's limit. */
bool peer_poll(struct peer *peer, short events, const char *what, struct rd_err *err);

/* Frees a string and clears it; NULL is allowed. */
void peer_forget(char *secret);
char *peer_keep(struct rd_slice secret, struct rd_err *err);

/* *ret is to be forgotten. */
bool peer_ask_password(const char *name, char **ret, struct rd_err *err);

bool peer_url_parse(struct peer_target *target, const char *url, struct rd_err *err);
bool peer_target_set_place(struct peer_target *target, struct rd_slice host, uint64_t port,
                           struct rd_err *err);
bool peer_target_set_socket(struct peer_target *target, struct rd_slice path, struct rd_err *err);

/* ---- TLS ---- */

bool peer_tls_new(struct peer_tls **ret, const struct peer_target *target, int fd,
                  struct rd_err *err);
void peer_tls_free(struct peer_tls *tls);

/* As peer_connect(), peer_read_some(), peer_write_some(); *ret_events is set with PEER_WAIT. */
enum peer_status peer_tls_shake(struct peer_tls *tls, short *ret_events, struct rd_err *err);
enum peer_status peer_tls_read(struct peer_tls *tls, void *buf, size_t cap, size_t *ret_len,
                               struct rd_err *err);
enum peer_status peer_tls_write(struct peer_tls *tls, struct rd_slice bytes, size_t *ret_len,
                                struct rd_err *err);

#endif
