/* psync.h - the replica side of replication, without sockets or clocks.
 *
 * A struct repl_psync is one connection to a master, from the first PING to the last command. The
 * caller transfers the bytes in both directions and supplies the time.
 *
 * Example: one turn of a loop around a socket.
 *
 *     struct rd_err err = {0};
 *     struct repl_psync *p;
 *     struct repl_psync_opts opts = REPL_PSYNC_OPTS(.port = 6380);
 *     struct repl_event ev;
 *     if (!repl_psync_new(&p, &opts, &err))
 *         return 1;
 *     struct rd_slice out = repl_psync_output(p); // write it to the socket
 *     repl_psync_sent(p, out.len);
 *     uint64_t wait_ms = repl_psync_tick(p, 0); // wait for the socket, at most so long
 *     struct rd_slice in = rd_slice_str("+PONG\r\n"); // read from the socket
 *     while (in.len > 0) {
 *         size_t used = repl_psync_feed(p, in);
 *         in = rd_slice(in.ptr + used, in.len - used);
 *         while (repl_psync_next(p, &ev) != REPL_MORE) {
 *             if (ev.kind == REPL_END || ev.kind == REPL_ERROR) // the connection is over
 *                 return 1;
 *             printf("%s, at most %llu ms\n", repl_step_word(ev.step),
 *                    (unsigned long long)wait_ms);
 *         }
 *     }
 *     // repl_psync_cut(p): the socket was closed
 *     repl_psync_free(p);
 *
 * The handshake, in this order; each command waits for the answer to the previous one:
 *
 *     PING, AUTH, REPLCONF listening-port, REPLCONF ip-address, REPLCONF rdb-only,
 *     REPLCONF rdb-filter-only, REPLCONF capa eof capa psync2, REPLCONF version,
 *     PSYNC ID OFFSET  ->  +FULLRESYNC, payload, stream  |  +CONTINUE, stream
 *     SYNC             ->  payload, stream                   if the master does not support PSYNC
 *
 * If a master refuses a REPLCONF command, the refusal is ignored, because old masters support few
 * options. Only the capabilities eof and psync2 are announced, so that every master since 2.4 uses
 * the plain protocol: one connection, no compression.
 *
 * Events. A whole replication is
 *
 *     REPLY… (FULL | SYNC) PAYLOAD_BEGIN PAYLOAD… PAYLOAD_END COMMAND…
 *     REPLY… CONTINUE COMMAND…
 *
 * with KEEPALIVE in between, then END (rdb_only) or ERROR. Borrowed data in an event is valid until
 * the next call with this repl_psync, except for repl_psync_place() and _safe_place(), _output(),
 * _sent(), _tick() and _ack().
 *
 * Acknowledging. From the first event after the payload or after CONTINUE on, an offset is sent to
 * the master: at once, every second, and on request (a COMMAND of kind REPL_GETACK; the answer is
 * sent by the next call of repl_psync_next()). A diskless master (payload by mark) sends nothing
 * before the first acknowledgement. The offset is that of the returned events (of a transaction:
 * not before its EXEC), or the one set with repl_psync_ack(). A caller that needs a long time to
 * load the payload loads it before it requests the event after PAYLOAD_END, and calls
 * repl_psync_tick() meanwhile: the master then knows that the replica is alive but not ready.
 *
 * After an ERROR whose class allows it, connect again later, and resume from repl_psync_place() or
 * repl_psync_safe_place().
 *
 * Memory: the window and, for a command that does not fit it, a buffer that grows as the command
 * arrives, up to max_command.
 *
 * Threads: one thread at a time uses a connection; different connections are independent.
 * Ownership: the caller frees the connection. Options are copied.
 * Errors: an event of kind REPL_ERROR ends the connection; its class is the possible reaction.
 * Cost: linear in the bytes.
 */
#ifndef REPL_PSYNC_H
#define REPL_PSYNC_H

#include "base/resp.h"
#include "repl/payload.h"
#include "repl/replid.h"
#include "repl/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- options ---- */

/* A position in a history. An unset id means no position. Open: programs store positions and load
 * them. */
struct repl_resume {
    struct repl_replid replid;
    uint64_t offset;
    uint64_t db;   /* selected there */
    bool in_multi; /* it is inside a transaction */
};

enum {
    REPL_PSYNC_WINDOW = 256 * 1024,
    REPL_PSYNC_WINDOW_MIN = 16 * 1024,
    REPL_PSYNC_LINE_MAX = 8 * 1024, /* bytes of an answer */
    REPL_PSYNC_TIMEOUT_MS = 60 * 1000,
    REPL_PSYNC_ACK_MS = 1000
};

/* All zeros: a plain replica that starts with a full sync. Strings are copied. */
struct repl_psync_opts {
    size_t size;            /* of this struct: set by REPL_PSYNC_OPTS() */
    const char *user;       /* NULL: the default user, with AUTH without a name */
    const char *password;   /* NULL: no AUTH. Never part of an event or an error. */
    size_t password_len;    /* 0: up to its first NUL byte */
    uint16_t port;          /* port of this replica, for the master's list; 0: not sent */
    const char *ip;         /* its address; NULL: not sent */
    const char *version;    /* "7.0.15": some masters choose the format of the snapshot by it; NULL:
                            not sent */
    bool rdb_only;          /* the snapshot without the stream; resume is then ignored */
    const char *rdb_filter; /* the part of the data in the snapshot: "functions", or "" for nothing;
                               NULL: all. REPL_UNSUPPORTED if the master lacks this. */
    bool no_eof;            /* do not announce eof: the payload comes by length */
    bool no_psync2;         /* do not announce psync2: CONTINUE comes without an id */
    bool old_sync;          /* SYNC, without trying PSYNC */
    bool failover;          /* PSYNC with FAILOVER: the replica that is asked becomes the master.
                               A refusal is an error, and SYNC is not tried */
    struct repl_resume resume;
    uint64_t timeout_ms; /* error after this time without data; 0: REPL_PSYNC_TIMEOUT_MS */
    uint64_t ack_ms;     /* between two acknowledgements; 0: REPL_PSYNC_ACK_MS */
    size_t window;       /* bytes; 0: REPL_PSYNC_WINDOW, at least REPL_PSYNC_WINDOW_MIN */
    size_t max_command;  /* bytes of one command, beyond the window; 0: RESP_MAX_MEMORY */
};
#define REPL_PSYNC_OPTS(...) RD_SIZED(repl_psync_opts, __VA_ARGS__)

/* ---- events ---- */

enum repl_step {
    REPL_STEP_PING = 0,
    REPL_STEP_AUTH = 1,
    REPL_STEP_PORT = 2,
    REPL_STEP_ADDRESS = 3,
    REPL_STEP_RDB_ONLY = 4,
    REPL_STEP_RDB_FILTER = 5,
    REPL_STEP_CAPA = 6,
    REPL_STEP_VERSION = 7,
    REPL_STEP_PSYNC = 8,
    REPL_STEP_SYNC = 9,
    REPL_STEP_HEADER = 10, /* waiting for the payload */
    REPL_STEP_PAYLOAD = 11,
    REPL_STEP_LOADED = 12, /* the payload is complete, the next event was not requested yet */
    REPL_STEP_STREAM = 13,
    REPL_STEP_END = 14
};

enum repl_event_kind {
    REPL_MORE = 0,      /* no event until more bytes are fed */
    REPL_REPLY = 1,     /* an answer: step, text */
    REPL_KEEPALIVE = 2, /* an empty line: bytes. In the stream it counts; offset is its position. */
    REPL_FULL = 3,      /* a new history begins here: replid, offset. Old data is invalid. */
    REPL_SYNC = 4,      /* the same from a master without PSYNC: no id, offset 0 */
    REPL_CONTINUE = 5,  /* the old one continues: replid, offset; changed: under a new id */
    REPL_PAYLOAD_BEGIN = 6, /* payload: how it is framed */
    REPL_PAYLOAD = 7,       /* bytes of the snapshot; offset is their position in it */
    REPL_PAYLOAD_END = 8,   /* it is complete: payload.done bytes */
    REPL_COMMAND = 9,       /* command, place, bytes: as in the stream */
    REPL_END = 10,          /* all requested data was received. Permanent. */
    REPL_ERROR = 11         /* class, step, err. Permanent. */
};

/* Classes of errors, by the possible reaction. */
enum repl_class {
    REPL_RETRY = 0,       /* the master is not ready: NOMASTERLINK, LOADING and similar errors, and
                         errors without a class; retry later */
    REPL_CLOSED = 1,      /* the connection ended; connect again, and resume */
    REPL_TIMEOUT = 2,     /* no data from the master; the same */
    REPL_AUTH = 3,        /* NOAUTH, WRONGPASS, NOPERM, DENIED: needs a change by the user */
    REPL_UNSUPPORTED = 4, /* the master does not support the request */
    REPL_PROTOCOL = 5,    /* invalid bytes from the master, or a limit */
    REPL_NOMEM = 6        /* out of memory */
};

/* Open: events are read by the million, into a struct of the caller. */
struct repl_event {
    enum repl_event_kind kind;
    enum repl_step step;
    struct rd_slice text;      /* REPLY, and ERROR because of an answer: the line without its end.
                              For a refused AUTH, text that may repeat the password is removed. */
    struct rd_slice bytes;     /* KEEPALIVE, PAYLOAD, COMMAND */
    uint64_t offset;           /* in the history; PAYLOAD: in the snapshot */
    struct repl_replid replid; /* FULL, CONTINUE */
    bool changed;              /* CONTINUE */
    struct repl_payload payload;
    struct repl_place place;
    struct resp_command command; /* command.offset is the position on the connection, see below */
    enum repl_class error_class;
    const struct rd_err *err;
};

/* ---- functions ---- */

struct repl_psync;

/* RD_ERR_USAGE: a user without a password. RD_ERR_MEMORY. */
RD_API bool repl_psync_new(struct repl_psync **ret, const struct repl_psync_opts *opts,
                           struct rd_err *err);

/* Feeds bytes from the master and returns the number of consumed bytes. This may be fewer, even 0,
 * while events are pending. After END or ERROR all bytes are consumed and dropped. */
RD_API size_t repl_psync_feed(struct repl_psync *p, struct rd_slice bytes);

/* Bytes that were fed and that no event has returned. After a COMMAND they begin with the next one.
 * Valid until the next call of another function. */
RD_API struct rd_slice repl_psync_rest(const struct repl_psync *p);

/* Reports that the connection was closed or failed: after the pending events follows REPL_ERROR of
 * class REPL_CLOSED, or REPL_END. */
RD_API void repl_psync_cut(struct repl_psync *p);

/* Gets the next event and returns its kind. Fields that the kind does not use are zero.
 *
 * Offsets in errors are positions on the connection: the number of bytes that the master sent
 * before the wrong byte. The codes are RD_ERR_CORRUPT, RD_ERR_LIMIT, RD_ERR_MEMORY, and
 * RD_ERR_PROTOCOL for all other errors. */
RD_API enum repl_event_kind repl_psync_next(struct repl_psync *p, struct repl_event *ret);

/* The bytes to send, borrowed until the next call other than repl_psync_sent(), which removes the
 * bytes that were sent. */
RD_API struct rd_slice repl_psync_output(const struct repl_psync *p);
RD_API void repl_psync_sent(struct repl_psync *p, size_t len);

/* Sets the time, by any monotonic clock. Sends an acknowledgement if one is due, and detects a
 * timeout (no data for timeout_ms since the last tick after which data was fed). Returns the
 * maximum number of milliseconds until the next call. */
RD_API uint64_t repl_psync_tick(struct repl_psync *p, uint64_t now_ms);

/* Bytes arrived that the caller will feed later: the master is alive. */
RD_API void repl_psync_heard(struct repl_psync *p);

/* Sets the acknowledged offset, and `synced` as the offset that is durable (RD_NO_OFFSET: not
 * sent). */
RD_API void repl_psync_ack(struct repl_psync *p, uint64_t offset, uint64_t synced);

/* Sends an acknowledgement now; no effect before the stream. */
RD_API void repl_psync_ack_now(struct repl_psync *p);

/* Sets the database selected at the start of the stream, from the AUX field repl-stream-db of the
 * snapshot. Call it before the event after PAYLOAD_END. Default: 0. */
RD_API void repl_psync_set_db(struct repl_psync *p, uint64_t db);

/* The position after the last event, possibly inside a transaction. False, with *ret empty, if the
 * replica cannot resume: before FULL or CONTINUE, while the payload is incomplete, and with SYNC.
 * Before CONTINUE it is opts.resume. */
RD_API bool repl_psync_place(const struct repl_psync *p, struct repl_resume *ret);

/* The same, but before the MULTI of an open transaction: for callers that drop an incomplete
 * transaction. */
RD_API bool repl_psync_safe_place(const struct repl_psync *p, struct repl_resume *ret);

RD_API enum repl_step repl_psync_step(const struct repl_psync *p);

/* Words for people and logs: "PING", "REPLCONF capa"; "retry", "closed". */
RD_API const char *repl_step_word(enum repl_step step);
RD_API const char *repl_class_word(enum repl_class error_class);

/* NULL is allowed. */
RD_API void repl_psync_free(struct repl_psync *p);

#ifdef __cplusplus
}
#endif

#endif
