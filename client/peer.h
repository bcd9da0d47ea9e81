/* peer.h - a connection to a server, blocking or not.
 *
 * A command and its reply, blocking:
 *
 *     struct client_peer *peer;
 *     struct client_peer_reply reply = {0};
 *     if (!client_peer_open(&peer, &target, &err) ||
 *         !client_peer_ask(peer, "INFO keyspace", &reply, &err))
 *         return false;
 *     ... reply.items[0].text ...
 *     client_peer_reply_done(&reply);
 *     client_peer_close(peer);
 *
 * Many commands in one turn. Long strings in the replies are never in memory as a whole:
 *
 *     for (i = 0; i < n; i++)
 *         client_peer_send(peer, argv[i], argc[i], &err);
 *     for (i = 0; i < n; i++) {
 *         client_peer_next(peer, &node, &err);  // or client_peer_next_header(), client_peer_src()
 *         ...
 *     }
 *
 * In a loop around poll(), if the caller implements the protocol:
 *
 *     client_peer_begin(&peer, &target, &err);
 *     while ((status = client_peer_connect(peer, &err)) == CLIENT_WAIT)
 *         poll client_peer_fd() for client_peer_events(peer, false),
 *         for at most client_peer_wait_ms(peer)
 *     for (;;) {
 *         poll client_peer_fd() for client_peer_events(peer, there is something to write)
 *         while ((status = client_peer_read_some(peer, buf, sizeof buf, &len, &err)) == CLIENT_OK)
 *             ... len bytes ...
 *         while (left > 0 &&
 *                (status = client_peer_write_some(peer, bytes, &len, &err)) == CLIENT_OK)
 *             ... len bytes are written ...
 *     }
 *
 * Read until CLIENT_WAIT: TLS may hold bytes that poll() does not report. The caller then logs in
 * itself, with target->user and target->password, and has its own timeouts once it is connected.
 *
 * Errors are RD_ERR_PROTOCOL, exit status 6, with errno in `sys` if there is one, and the peer's
 * name as origin. They quote the server's text, but never a secret. After a failure only
 * client_peer_close() may be called.
 *
 * Time limits are those of target->opts: connecting (of all addresses of a name together, with the
 * handshake of TLS), and each wait for the peer to give or take a byte.
 */
#ifndef CLIENT_PEER_H
#define CLIENT_PEER_H

#include "base/buf.h"
#include "base/resp.h"
#include "client/target.h"

struct client_peer;

/* Reasons of errors of connections (rd_err_reason.id). Those of error replies are RESP_REASON_…. */
enum client_reason {
    CLIENT_REASON_CLOSED = 301,  /* the server closed the connection */
    CLIENT_REASON_ADDRESS,       /* the name of the host has no address */
    CLIENT_REASON_TLS,           /* any other failure of TLS */
    CLIENT_REASON_TLS_NAME,      /* the certificate is for another host */
    CLIENT_REASON_TLS_UNTRUSTED, /* the certificate is not accepted */
    CLIENT_REASON_TLS_IDENTITY,  /* the server seems to require a client certificate */
    CLIENT_REASON_TLS_PLAIN      /* the server does not seem to use TLS */
};

enum client_status {
    CLIENT_OK,
    CLIENT_WAIT, /* poll() and call again */
    CLIENT_END,  /* the peer has closed the connection */
    CLIENT_FAIL
};

/* Connects, logs in if the target has a password or user, and selects the database if it has one.
 * The target is borrowed and must outlive the peer. */
bool client_peer_open(struct client_peer **ret, const struct client_target *target,
                      struct rd_err *err);

/* NULL is allowed. */
void client_peer_close(struct client_peer *peer);

const struct client_target *client_peer_target(const struct client_peer *peer);

/* ---- not blocking ---- */

/* Begins to connect. Only the lookup of the name's addresses blocks. */
bool client_peer_begin(struct client_peer **ret, const struct client_target *target,
                       struct rd_err *err);

/* CLIENT_OK: connected, with TLS if it was requested. Never CLIENT_END. */
enum client_status client_peer_connect(struct client_peer *peer, struct rd_err *err);

/* How long poll() may wait before client_peer_connect() must be called; -1: no limit. */
int client_peer_wait_ms(const struct client_peer *peer);

int client_peer_fd(const struct client_peer *peer);

/* The events to poll for. */
short client_peer_events(const struct client_peer *peer, bool want_write);

/* CLIENT_OK: *ret_len is 1 or more. */
enum client_status client_peer_read_some(struct client_peer *peer, void *buf, size_t cap,
                                         size_t *ret_len, struct rd_err *err);
/* Never CLIENT_END. After CLIENT_WAIT pass the same bytes, or more, again. */
enum client_status client_peer_write_some(struct client_peer *peer, struct rd_slice bytes,
                                          size_t *ret_len, struct rd_err *err);

/* ---- commands, blocking ---- */

/* Queues a command. Queued bytes are sent when there are many, and before waiting for a reply. A
 * peer that replies while it reads could fill both directions: limit the number of commands in
 * flight. */
bool client_peer_send(struct client_peer *peer, const struct rd_slice *argv, size_t argc,
                      struct rd_err *err);

/* The same for words separated by spaces: for commands without foreign data. */
bool client_peer_send_line(struct client_peer *peer, const char *line, struct rd_err *err);

/* Bytes of commands that are encoded already, split anywhere. */
bool client_peer_send_bytes(struct client_peer *peer, struct rd_slice bytes, struct rd_err *err);

bool client_peer_flush(struct client_peer *peer, struct rd_err *err);

/* AUTH and SELECT as the target requires. client_peer_open() calls it after connecting. */
bool client_peer_login(struct client_peer *peer, struct rd_err *err);

/* The next node of a reply, parents first; node.last ends it. Its text lives until the next call.
 * RESP_ERROR is a node like others. Strings of more than 512 MB are RD_ERR_LIMIT. */
bool client_peer_next(struct client_peer *peer, struct resp_node *ret, struct rd_err *err);

/* A reply that is a single string or number; an error reply is an error. */
bool client_peer_next_value(struct client_peer *peer, struct resp_node *ret, struct rd_err *err);

/* If the next reply is a string, reads only its length, which is not bounded: the caller consumes
 * as many bytes from client_peer_src() and then calls client_peer_end_string(). Otherwise sets
 * *ret_is_string to false and consumes nothing; client_peer_next() reads the reply. Call it between
 * two replies only. */
bool client_peer_next_header(struct client_peer *peer, bool *ret_is_string, uint64_t *ret_len,
                             struct rd_err *err);
bool client_peer_end_string(struct client_peer *peer, struct rd_err *err);

/* The bytes of the peer, blocking: for strings as above, and for data after a reply. RD_SRC_END if
 * the peer has closed the connection. */
struct rd_src *client_peer_src(struct client_peer *peer);

/* The source's error, with the name of the peer. Returns false. */
bool client_peer_fail(const struct client_peer *peer, struct rd_err *err);

/* Where the server says that a key is, in the last MOVED or ASK; port 0: there was none. */
struct client_peer_redirect {
    unsigned slot;
    uint16_t port;
    char host[CLIENT_HOST_MAX]; /* that of the server itself, if the reply has none */
};
const struct client_peer_redirect *client_peer_redirect(const struct client_peer *peer);

/* An error reply of the server. Returns false. */
bool client_peer_refused(struct client_peer *peer, struct rd_slice text, struct rd_err *err);

/* ---- whole replies ---- */

enum { CLIENT_REPLY_MAX = 64 * 1024 * 1024 };

struct client_peer_item {
    enum resp_type type;
    bool null;
    int64_t integer;
    struct rd_slice text; /* lives as long as the reply */
    size_t n_children;
    size_t span; /* items of this one and its descendants */
};

struct client_peer_reply {
    struct client_peer_item *items; /* items[0] is the reply; parents first */
    size_t n;
    size_t cap;
    struct rd_buf bytes;
};

/* Sends one command of words separated by spaces and reads its reply, at most CLIENT_REPLY_MAX
 * bytes of memory. An error at its top level is an error. *reply is zeroed or contains an earlier
 * reply. */
bool client_peer_ask(struct client_peer *peer, const char *line, struct client_peer_reply *reply,
                     struct rd_err *err);
bool client_peer_ask_argv(struct client_peer *peer, const struct rd_slice *argv, size_t argc,
                          struct client_peer_reply *reply, struct rd_err *err);
bool client_peer_read_reply(struct client_peer *peer, struct client_peer_reply *reply,
                            struct rd_err *err);
void client_peer_reply_done(struct client_peer_reply *reply);

/* The child of an aggregate at an index; NULL: no such child. O(index). */
const struct client_peer_item *client_peer_item_at(const struct client_peer_item *item,
                                                   size_t place);

/* The value after a name, in a map or in an array of names and values; NULL: not found. */
const struct client_peer_item *client_peer_item_find(const struct client_peer_item *item,
                                                     const char *name);

#endif
