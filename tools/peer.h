/* peer.h - a connection to a server, blocking or not.
 *
 * Blocking, a command and its reply:
 *
 *     struct peer *peer;
 *     struct peer_reply reply = {0};
 *     if (!peer_open(&peer, &target, &err) || !peer_ask(peer, "INFO keyspace", &reply, &err)) {
 *         peer_hint(cli, &err);
 *         return cli_fail(cli, &err);
 *     }
 *     ... reply.items[0].text ...
 *     peer_reply_done(&reply);
 *     peer_close(peer);
 *
 * Many commands in one turn; what long strings the replies hold is never in memory as a whole:
 *
 *     for (i = 0; i < n; i++)
 *         peer_send(peer, argv[i], argc[i], &err);
 *     for (i = 0; i < n; i++) {
 *         peer_next(peer, &node, &err);               // or peer_next_header() and peer_src()
 *         ...
 *     }
 *
 * In a loop around poll(), if the caller implements the protocol:
 *
 *     peer_begin(&peer, &target, &err);
 *     while ((status = peer_connect(peer, &err)) == PEER_WAIT)
 *         poll peer_fd() for peer_events(peer, false), for at most peer_wait_ms(peer)
 *     for (;;) {
 *         poll peer_fd() for peer_events(peer, there is something to write)
 *         while ((status = peer_read_some(peer, buf, sizeof buf, &len, &err)) == PEER_OK)
 *             ... len bytes ...
 *         while (left > 0 &&
 *                (status = peer_write_some(peer, bytes, &len, &err)) == PEER_OK)
 *             ... len bytes are written ...
 *     }
 *
 * Read until PEER_WAIT: TLS may hold bytes back that poll() knows nothing of. Logging in is then
 * the caller's, with target->user and target->password; so are its timeouts once it is connected.
 *
 * Errors are RD_ERR_PROTOCOL, exit status 6, with errno in `sys` where there is one, and the peer's
 * name as origin; what a server says is quoted in them, and secrets never are. A connection that
 * failed once is good for peer_close() only.
 *
 * Time limits are those of target->opts: connecting (of all addresses of a name together, with the
 * handshake of TLS), and each wait for the peer to give or take a byte.
 */
#ifndef TOOLS_PEER_H
#define TOOLS_PEER_H

#include "base/buf.h"
#include "base/resp.h"
#include "tools/peer_target.h"

struct peer;

enum peer_status {
    PEER_OK,
    PEER_WAIT, /* poll() and call again */
    PEER_END,  /* the peer has closed the connection, between two bytes */
    PEER_FAIL
};

/* Connects, logs in where there is a password or user, selects the database where there is one. The
 * target is borrowed and must outlive the peer. */
bool peer_open(struct peer **ret, const struct peer_target *target, struct rd_err *err);

/* NULL is allowed. */
void peer_close(struct peer *peer);

const struct peer_target *peer_target_of(const struct peer *peer);

/* ---- not blocking ---- */

/* Begins to connect; only the search for the name's addresses takes its time here. */
bool peer_begin(struct peer **ret, const struct peer_target *target, struct rd_err *err);

/* PEER_OK: connected, with TLS where it is asked for. Never PEER_END. */
enum peer_status peer_connect(struct peer *peer, struct rd_err *err);

/* How long poll() may wait before peer_connect() wants to be called: for its time limit. -1: as
 * long as it likes. */
int peer_wait_ms(const struct peer *peer);

int peer_fd(const struct peer *peer);

/* What to ask poll() for. */
short peer_events(const struct peer *peer, bool want_write);

/* PEER_OK: *ret_len is 1 or more. */
enum peer_status peer_read_some(struct peer *peer, void *buf, size_t cap, size_t *ret_len,
                                struct rd_err *err);
/* Never PEER_END. After PEER_WAIT the same bytes, or more, must be offered again. */
enum peer_status peer_write_some(struct peer *peer, struct rd_slice bytes, size_t *ret_len,
                                 struct rd_err *err);

/* ---- commands, blocking ---- */

/* Queues a command. Queued bytes are sent when there are many, and when a reply is waited for. A
 * peer that answers as it reads could fill both directions: bound what is on the way. */
bool peer_send(struct peer *peer, const struct rd_slice *argv, size_t argc, struct rd_err *err);

/* The same, of words between blanks: for commands without bytes of others. */
bool peer_send_line(struct peer *peer, const char *line, struct rd_err *err);

/* Bytes of commands that are encoded already, cut anywhere. */
bool peer_send_bytes(struct peer *peer, struct rd_slice bytes, struct rd_err *err);

bool peer_flush(struct peer *peer, struct rd_err *err);

/* AUTH and SELECT as the target wants them: what peer_open() does after peer_connect(). */
bool peer_login(struct peer *peer, struct rd_err *err);

/* The next node of a reply, parents first; node.last ends it. Its text lives until the next call.
 * RESP_ERROR is a node like others. Strings of more than 512 MB are RD_ERR_LIMIT. */
bool peer_next(struct peer *peer, struct resp_node *ret, struct rd_err *err);

/* A reply that is a single string or number; what the server answers with an error is an error. */
bool peer_next_value(struct peer *peer, struct resp_node *ret, struct rd_err *err);

/* Where the next reply is a string, only its length, which is not bounded: the caller consumes as
 * many bytes from peer_src(), and then calls peer_end_string(). Else *ret_is_string is false and
 * nothing was taken; the reply is read by peer_next(). Between two replies only. */
bool peer_next_header(struct peer *peer, bool *ret_is_string, uint64_t *ret_len,
                      struct rd_err *err);
bool peer_end_string(struct peer *peer, struct rd_err *err);

/* The bytes of the peer, blocking: for strings as above, and for what follows a reply that begins
 * something else. RD_SRC_END where the peer has closed the connection. */
struct rd_src *peer_src(struct peer *peer);

/* The source's error, with the name of the peer. Returns false. */
bool peer_fail(const struct peer *peer, struct rd_err *err);

/* An error that the server answered with. Returns false. */
bool peer_refused(const struct peer *peer, struct rd_slice text, struct rd_err *err);

/* ---- whole replies ---- */

enum { PEER_REPLY_MAX = 64 * 1024 * 1024 };

struct peer_item {
    enum resp_type type;
    bool null;
    int64_t integer;
    struct rd_slice text; /* lives as long as the reply */
    size_t n_children;
    size_t span; /* items of this one and of what it holds */
};

struct peer_reply {
    struct peer_item *items; /* items[0] is the reply; parents first */
    size_t n;
    size_t cap;
    struct rd_buf bytes;
};

/* One command of words between blanks, and its reply, at most PEER_REPLY_MAX bytes of memory. An
 * error at its top is an error. *reply is zeroed or holds an earlier reply. */
bool peer_ask(struct peer *peer, const char *line, struct peer_reply *reply, struct rd_err *err);
bool peer_ask_argv(struct peer *peer, const struct rd_slice *argv, size_t argc,
                   struct peer_reply *reply, struct rd_err *err);
bool peer_read_reply(struct peer *peer, struct peer_reply *reply, struct rd_err *err);
void peer_reply_done(struct peer_reply *reply);

/* The child of an aggregate at a place; NULL where there are not so many. O(place). */
const struct peer_item *peer_item_at(const struct peer_item *item, size_t place);

/* The value after a name, in a map or in an array of names and values; NULL where it is not. */
const struct peer_item *peer_item_find(const struct peer_item *item, const char *name);

/* ---- for people ---- */

/* A cli_hint() about what can be done about the error, where something is known. */
void peer_hint(struct cli *cli, const struct rd_err *err);

#endif
