/* tls.h - TLS for clients: a context made of the tls-* settings.
 */
#ifndef SERVER_CLIENT_TLS_H
#define SERVER_CLIENT_TLS_H

#include "server/client/conn.h"
#include "server/settings/settings.h"

struct tls;

/* From certificates, keys, CA file or folder, protocols, ciphers. Errors as 7.0 words them. */
bool tls_new(struct tls **ret, const struct settings *settings, struct rd_err *err);
void tls_free(struct tls *tls);

/* A session for a socket that was accepted; conn.c drives it. */
bool tls_begin(struct tls *tls, struct conn *conn);

/* As conn_read() and conn_write(); tls_wants_* of conn tell what to wait for. */
ssize_t tls_handshake(struct conn *conn); /* 1: done, CONN_AGAIN, CONN_FAIL */
ssize_t tls_read(struct conn *conn, void *dst, size_t size);
ssize_t tls_write(struct conn *conn, const void *src, size_t len);
void tls_end(struct conn *conn);

/* Decrypted bytes wait inside: the socket will not tell. */
bool tls_pending(const struct conn *conn);

#endif
