/* tls.h - TLS for clients and to masters: a context made from the tls-* settings.
 */
#ifndef SERVER_LOOP_TLS_H
#define SERVER_LOOP_TLS_H

#include "server/loop/conn.h"
#include "server/settings/settings.h"

struct tls;

/* Loads certificates, keys, the CA file or directory, protocols and ciphers. The error messages are
 * those of Redis 7.0. */
bool tls_new(struct tls **ret, const struct settings *settings, struct rd_err *err);
void tls_free(struct tls *tls);

/* The same for connections to other servers, whose certificates are verified. */
bool tls_new_client(struct tls **ret, const struct settings *settings, struct rd_err *err);
bool tls_begin_client(struct tls *tls, struct conn *conn);

/* A session for an accepted socket; conn.c drives it. */
bool tls_begin(struct tls *tls, struct conn *conn);

/* Like conn_read() and conn_write(); tls_wants_* of conn say which event to wait for. */
ssize_t tls_handshake(struct conn *conn); /* 1: done, CONN_AGAIN, CONN_FAIL */
ssize_t tls_read(struct conn *conn, void *dst, size_t size);
ssize_t tls_write(struct conn *conn, const void *src, size_t len);
void tls_end(struct conn *conn);

/* Decrypted bytes are buffered inside: the socket does not report them. */
bool tls_pending(const struct conn *conn);

#endif
