/* psync.h - the replica's side of replication, without a socket and without a clock.
 *
 * A struct repl_psync is one connection to a master, from the first PING to the last command. The
 * caller carries bytes both ways and tells the time:
 *
 *     struct repl_psync *p;
 *     struct repl_event ev;
 *     if (!repl_psync_new(&p, &opts, &err))
 *         ...
 *     for (;;) {
 *         struct rd_slice out = repl_psync_output(p);
 *         if (out.len > 0)
 *             repl_psync_sent(p, write(fd, out.ptr, out.len));      // when the socket takes bytes
 *         wait until the socket is ready, at most repl_psync_tick(p, now_ms) milliseconds
 *         n = read(fd, buf, sizeof buf);
 *         if (n == 0)
 *             repl_psync_cut(p);
 *         at = 0;
 *         do {
 *             at += repl_psync_feed(p, rd_slice(buf + at, n - at));
 *             while (repl_psync_next(p, &ev) != REPL_MORE)
 *                 ... ev; REPL_END and REPL_ERROR come for ever: the connection is of no more use
 * ... } while (at < n);
 *     }
 *     repl_psync_free(p);
 *
 * The conversation, in this order, each command after the answer to the one before:
 *
 *     PING, AUTH, REPLCONF listening-port, REPLCONF ip-address, REPLCONF rdb-only,
 *     REPLCONF rdb-filter-only, REPLCONF capa eof capa psync2, REPLCONF version,
 *     PSYNC ID OFFSET  ->  +FULLRESYNC, payload, stream  |  +CONTINUE, stream
 *     SYNC             ->  payload, stream                   where the master knows no PSYNC
 *
 * What a master refuses of REPLCONF is passed over, for old ones know little of it. Of the
 * capabilities only eof and psync2 are told, so that every master since 2.4 speaks the plain
 * protocol: one connection, nothing compressed.
 *
 * Events. A whole replication is
 *
 *     REPLY… (FULL | SYNC) PAYLOAD_BEGIN PAYLOAD… PAYLOAD_END COMMAND…
 *     REPLY… CONTINUE COMMAND…
 *
 * with KEEPALIVE among them, then END (rdb_only) or ERROR. What they borrow lives until the next
 * call that takes the repl_psync, except repl_psync_place() and _safe_place(), _output(), _sent(),
 * _tick() and _ack().
 *
 * Acknowledging. From the first event after the payload or after CONTINUE on, the master is told
 * an offset: at once, every second, and when it asks (a COMMAND of kind REPL_GETACK), then with the
 * call of repl_psync_next() that follows that event. A master without a file (payload by mark)
 * sends nothing before it has heard the first. The offset is that of what was handed out (of a
 * transaction: not before its EXEC), or what the caller says with repl_psync_ack(). A caller that
 * takes long to load the payload does so before it asks for the event after PAYLOAD_END, and ticks
 * meanwhile: the master then hears that the replica is alive and not that it is ready.
 *
 * After ERROR of a class that says so one connects again, later, and resumes with what
 * repl_psync_place() or repl_psync_safe_place() tells.
 *
 * Memory is the window, and for a command that does not fit it a buffer that grows as the command
 * arrives, up to max_command.
 */
#ifndef REPL_PSYNC_H
#define REPL_PSYNC_H

#include "base/resp.h"
#include "repl/payload.h"
#include "repl/replid.h"
#include "repl/stream.h"

/* ---- options ---- */

/* A point of a history. An id that is not set is the point of nothing. */
struct repl_resume {
    struct repl_replid replid;
    uint64_t offset;
    uint64_t db;   /* selected there */
    bool in_multi; /* it lies inside of a transaction */
};

enum {
    REPL_PSYNC_WINDOW = 256 * 1024,
    REPL_PSYNC_WINDOW_MIN = 16 * 1024,
    REPL_PSYNC_LINE_MAX = 8 * 1024, /* bytes of an answer */
    REPL_PSYNC_TIMEOUT_MS = 60 * 1000,
    REPL_PSYNC_ACK_MS = 1000
};

/* All zeros are a plain replica that starts from nothing. Strings are copied. */
struct repl_psync_opts {
    const char *user;     /* NULL: the default user, and AUTH without a name */
    const char *password; /* NULL: no AUTH. Stands in no event and in no error. */
    uint16_t port;  /* where this replica would be reached, for the master's list; 0: not told */
    const char *ip; /* the same; NULL: not told */
    const char *version; /* "7.0.15": told to masters that choose the format of the snapshot by it;
                            NULL: not told */
    bool rdb_only;       /* the snapshot and no stream; resume does not count then */
    const char *rdb_filter; /* what of the data the snapshot shall hold: "functions", or "" for
                               nothing; NULL: all. A master that cannot is REPL_UNSUPPORTED. */
    bool no_eof;            /* do not tell the capability eof: the payload comes by length */
    bool no_psync2;         /* do not tell psync2: CONTINUE comes without an id */
    bool old_sync;          /* SYNC, without trying PSYNC */
    struct repl_resume resume;
    uint64_t timeout_ms; /* silence of the master that is an error; 0: REPL_PSYNC_TIMEOUT_MS */
    uint64_t ack_ms;     /* between two acknowledgements; 0: REPL_PSYNC_ACK_MS */
    size_t window;       /* bytes; 0: REPL_PSYNC_WINDOW, at least REPL_PSYNC_WINDOW_MIN */
    size_t max_command;  /* bytes of one command, beyond the window; 0: RESP_MAX_MEMORY */
};

/* ---- events ---- */

enum repl_step {
    REPL_STEP_PING,
    REPL_STEP_AUTH,
    REPL_STEP_PORT,
    REPL_STEP_ADDRESS,
    REPL_STEP_RDB_ONLY,
    REPL_STEP_RDB_FILTER,
    REPL_STEP_CAPA,
    REPL_STEP_VERSION,
    REPL_STEP_PSYNC,
    REPL_STEP_SYNC,
    REPL_STEP_HEADER, /* waits for the payload */
    REPL_STEP_PAYLOAD,
    REPL_STEP_LOADED, /* the payload is whole, what follows was not asked for yet */
    REPL_STEP_STREAM,
    REPL_STEP_END
};

enum repl_event_kind {
    REPL_MORE,          /* nothing before more is fed */
    REPL_REPLY,         /* an answer: step, text */
    REPL_KEEPALIVE,     /* an empty line: bytes. In the stream it counts: offset is its place. */
    REPL_FULL,          /* a new history begins here: replid, offset. Old data is void. */
    REPL_SYNC,          /* the same from a master that knows no PSYNC: no id, offset 0 */
    REPL_CONTINUE,      /* the old one continues: replid, offset; changed: under a new id */
    REPL_PAYLOAD_BEGIN, /* payload: how it is framed */
    REPL_PAYLOAD,       /* bytes of the snapshot; offset is their place in it */
    REPL_PAYLOAD_END,   /* it is whole: payload.done bytes */
    REPL_COMMAND,       /* command, place, bytes: as they stood in the stream */
    REPL_END,           /* all that was asked for is there. Sticks. */
    REPL_ERROR          /* class, step, err. Sticks. */
};

/* Why it went wrong, by what can be done. */
enum repl_class {
    REPL_RETRY,       /* the master cannot now: NOMASTERLINK, LOADING and the like, also errors that
                         have no class of their own; try later */
    REPL_CLOSED,      /* the connection ended; connect again, and resume */
    REPL_TIMEOUT,     /* the master is silent; the same */
    REPL_AUTH,        /* NOAUTH, WRONGPASS, NOPERM, DENIED: until somebody changes that */
    REPL_UNSUPPORTED, /* the master does not know what was asked for */
    REPL_PROTOCOL,    /* bytes that no master sends, or a limit */
    REPL_NOMEM        /* memory is short here */
};

struct repl_event {
    enum repl_event_kind kind;
    enum repl_step step;
    struct rd_slice text;  /* REPLY: the line without its end. Of a refused AUTH what might repeat
                              the password is taken out. */
    struct rd_slice bytes; /* KEEPALIVE, PAYLOAD, COMMAND */
    uint64_t offset;       /* in the history; PAYLOAD: in the snapshot */
    struct repl_replid replid; /* FULL, CONTINUE */
    bool changed;              /* CONTINUE */
    struct repl_payload payload;
    struct repl_place place;
    struct resp_command command; /* command.offset is the place on the connection, see below */
    enum repl_class class;
    const struct rd_err *err;
};

/* ---- functions ---- */

struct repl_psync;

/* RD_ERR_USAGE: a user without a password. RD_ERR_MEMORY. */
RD_API bool repl_psync_new(struct repl_psync **ret, const struct repl_psync_opts *opts,
                           struct rd_err *err);

/* Bytes from the master; returns how many were taken, which may be fewer than there are, even none,
 * where events wait. After END or ERROR all are taken and dropped. */
RD_API size_t repl_psync_feed(struct repl_psync *p, struct rd_slice bytes);

/* The master has closed the connection, or it broke: after the events that wait comes REPL_ERROR
 * of class REPL_CLOSED, or REPL_END. */
RD_API void repl_psync_cut(struct repl_psync *p);

/* The next event; returns its kind. Fields that the kind does not name are zero.
 *
 * Offsets in errors are places on the connection: the number of bytes that the master sent before
 * the wrong one. RD_ERR_CORRUPT, RD_ERR_LIMIT and RD_ERR_MEMORY are what they say; all else is
 * RD_ERR_PROTOCOL. */
RD_API enum repl_event_kind repl_psync_next(struct repl_psync *p, struct repl_event *ret);

/* What has to be sent; borrowed until the next call but repl_psync_sent(), which says how much of
 * it was. */
RD_API struct rd_slice repl_psync_output(const struct repl_psync *p);
RD_API void repl_psync_sent(struct repl_psync *p, size_t len);

/* What time it is, by any clock that does not jump. Acknowledges where it is time to, and finds out
 * whether the master is silent (for timeout_ms since the last tick after which something was fed).
 * Returns after how many milliseconds it wants to be called again at the latest. */
RD_API uint64_t repl_psync_tick(struct repl_psync *p, uint64_t now_ms);

/* From now on `offset` is acknowledged, and `synced` as what is safe on disk (RD_NO_OFFSET: nothing
 * is said about that). */
RD_API void repl_psync_ack(struct repl_psync *p, uint64_t offset, uint64_t synced);

/* An acknowledgement now, and not only when it is time; nothing before the stream. */
RD_API void repl_psync_ack_now(struct repl_psync *p);

/* The database that is selected where the stream begins, which the snapshot tells (AUX field
 * repl-stream-db): before the event after PAYLOAD_END. Without it, it is 0. */
RD_API void repl_psync_set_db(struct repl_psync *p, uint64_t db);

/* Where one stands: after the last event, perhaps inside of a transaction. False, and *ret empty,
 * where there is no point to resume from: before FULL or CONTINUE, while the payload is not whole,
 * and with SYNC. Before CONTINUE came, it is what opts.resume said. */
RD_API bool repl_psync_place(const struct repl_psync *p, struct repl_resume *ret);

/* The same, but before the MULTI of a transaction that is open: for whoever drops what he has of
 * one. */
RD_API bool repl_psync_safe_place(const struct repl_psync *p, struct repl_resume *ret);

RD_API enum repl_step repl_psync_step(const struct repl_psync *p);

/* Words for people and logs: "PING", "REPLCONF capa"; "retry", "closed". */
RD_API const char *repl_step_word(enum repl_step step);
RD_API const char *repl_class_word(enum repl_class class);

/* NULL is allowed. */
RD_API void repl_psync_free(struct repl_psync *p);

#endif
