/* client.h - somebody who is connected: his input, his output, his session.
 *
 *     struct client *c = client_new(srv, conn);
 *     ... the loop calls client_readable(c), which runs what he sent ...
 *     client_reply(c) is where his answers are appended; they go out before the loop sleeps
 *     client_close_soon(c): after what is pending has been sent
 *     client_free(c): now
 *
 * A client that runs a command must not be freed before it returned: client_free() of the current
 * client becomes client_close_asap().
 */
#ifndef SERVER_CLIENT_CLIENT_H
#define SERVER_CLIENT_CLIENT_H

#include "base/buf.h"
#include "engine/session.h"
#include "server/client/conn.h"
#include "server/core/server.h"

/* name, bit, letter in CLIENT LIST (0: none) */
#define CLIENT_FLAGS(X)                                                                            \
    X(MONITOR, 0, 'O')                                                                             \
    X(MULTI, 1, 0)                                                                                 \
    X(BLOCKED, 2, 'b')                                                                             \
    X(CLOSE_SOON, 3, 'c') /* after its output was sent */                                          \
    X(CLOSE_ASAP, 4, 'A') /* before the loop sleeps */                                             \
    X(UNIX_SOCKET, 5, 'U')                                                                         \
    X(PUBSUB, 6, 'P')                                                                              \
    X(NO_EVICT, 7, 'e')                                                                            \
    X(REPLY_OFF, 8, 0)                                                                             \
    X(REPLY_SKIP_NEXT, 9, 0)                                                                       \
    X(REPLY_SKIP, 10, 0)                                                                           \
    X(PAUSED, 11, 0)    /* its command waits for the end of CLIENT PAUSE */                        \
    X(UNBLOCKED, 12, 0) /* its input is to be looked at before the loop sleeps */                  \
    X(WRITE_QUEUED, 13, 0)                                                                         \
    X(PROTOCOL_ERROR, 14, 0)

enum client_flag {
#define X(name, bit, letter) CLIENT_##name = 1 << (bit),
    CLIENT_FLAGS(X)
#undef X
};

enum client_type { CLIENT_TYPE_NORMAL, CLIENT_TYPE_REPLICA, CLIENT_TYPE_PUBSUB, CLIENT_TYPES };

/* What it is blocked for. */
enum client_wait {
    CLIENT_WAITS_NOT,
    CLIENT_WAITS_KEY,   /* engine/block.h */
    CLIENT_WAITS_ACKS,  /* WAIT */
    CLIENT_WAITS_PAUSE, /* CLIENT PAUSE */
    CLIENT_WAITS_END    /* SHUTDOWN that waits for its end */
};

/* Bytes that were not run yet, and how far the command at their begin was understood. */
struct client_input {
    struct rd_buf buf;
    const uint8_t *base; /* the command's first byte: in buf, or in the shared buffer */
    size_t at;           /* where the parser continues, from base */
    size_t need;     /* bytes of the command that must be there before it makes sense to continue */
    uint64_t n_args; /* what the command announces; 0: no command begun */
    size_t argc;     /* of it, how many are there */
    bool in_bulk;    /* the length of the next argument is known: bulk_len */
    uint64_t bulk_len;
    struct rd_slice *argv;
    size_t cap_argv;
    uint64_t peak;     /* the most that buf held of late */
    size_t shared_len; /* bytes that were read into the shared buffer, while they are run */
};

struct client {
    struct server *srv;
    struct conn *conn; /* NULL: a client without a connection (loading a log) */
    uint64_t id;
    uint32_t flags; /* enum client_flag */
    enum client_wait waits;
    int64_t wait_deadline_us; /* by server.mono_us; INT64_MAX: never */

    struct engine_session session; /* .ctx is this client */
    struct client_input in;
    struct engine_reply reply; /* .buf: what is to be sent, from sent on; .proto 2 or 3 */
    size_t sent;

    struct rd_buf name; /* CLIENT SETNAME */
    char *user;         /* ACL user; "default" */
    bool authenticated;
    const struct engine_command *last_command;

    char peer[80];      /* "127.0.0.1:50512", "[::1]:50512", or its socket */
    char local[80];     /* its own address of that connection */
    int64_t created_ms; /* by server_mono_ms(), as are the next ones */
    int64_t active_ms;  /* last time it sent or was sent something */

    int64_t soft_limit_since_ms; /* output over the soft limit; 0: not */
    size_t output_peak;          /* the most that reply.buf held since … */
    int64_t output_peak_since_ms;
    size_t counted; /* bytes of it in clients.memory */

    /* of the command that waits */
    uint64_t worked_us;         /* before it did */
    struct slowlog_entry *slow; /* what may be told of it; NULL: nothing */

    struct pubsub_client *pubsub; /* pubsub.c's; NULL: subscribed to nothing */

    struct client *prev, *next;             /* of all clients */
    struct client *write_prev, *write_next; /* of those with output or an end that is near */
    struct client *run_next;                /* of those that were unblocked */
    size_t wait_index;                      /* in the heap of deadlines, from 1; 0: not there */
};

/* All of them. */
struct clients {
    struct client *first, *last; /* by id */
    struct client *cron_next;    /* whom the cron looks at next; NULL: the first */
    size_t n;
    uint64_t next_id;
    struct client *to_write;             /* CLIENT_WRITE_QUEUED, the last come first */
    struct client *to_run, *to_run_last; /* CLIENT_UNBLOCKED, the first come first */
    bool shared_busy;                    /* a command lies in `shared`: it must stand */
    size_t n_blocked;
    size_t n_pubsub;
    /* CLIENT PAUSE */
    int64_t pause_until_ms; /* by server_mono_ms(); 0: no pause */
    bool pause_writes_only;
    uint8_t *shared; /* where input is read that is run at once */
    uint64_t recent_max_input, recent_max_output;
    /* maxmemory-clients: bytes of all that are not replicas, as far as they were counted. */
    bool counting;
    size_t memory;
    /* DEBUG REPLYBUFFER */
    bool output_keeps_size;
    int64_t output_peak_ms; /* how long a peak is remembered */
    /* Deadlines of those that wait: a heap by time. */
    struct client **waiting;
    size_t n_waiting, cap_waiting;
    uv_timer_t timer;
};

enum {
    CLIENT_SHARED_INPUT = 64 * 1024,
    CLIENT_READ_SIZE = 16 * 1024, /* into a client's own buffer */
    CLIENT_OUTPUT_MIN = 1024,     /* of the buffer of answers, between them */
    CLIENT_OUTPUT_KEEP = 16 * 1024,
    CLIENT_OUTPUT_PEAK_MS = 5000, /* output_peak_ms, unless tests want another */
    CLIENT_IDLE_MS = 2000         /* whoever is idle for longer needs no room for input */
};

struct clients *clients_new(struct server *srv);
void clients_free(struct clients *clients);

/* Takes the connection over. conn NULL: a client of the server's own. */
struct client *client_new(struct server *srv, struct conn *conn);
void client_free(struct client *c);

/* Sends what is pending, then closes. Nothing more is read. */
void client_close_soon(struct client *c);

/* Closes before the loop sleeps, whatever is pending. */
void client_close_asap(struct client *c);

/* NULL: there is none. O(n) */
struct client *client_find(struct server *srv, uint64_t id);
enum client_type client_type(const struct client *c);

/* ---- input: server/client/input.c ---- */

/* Reads what is there and runs it. May free c. */
void client_readable(struct client *c);

/* The socket takes more output. May free c. */
void client_writable(struct client *c);

/* Runs what its buffer holds: after it was unblocked or a pause ended. May free c. */
void client_run_input(struct client *c);
void client_input_done(struct client *c);

/* Gives back room that is there for bytes which do not come. */
void client_input_trim(struct client *c);

/* Bytes that its input takes. */
size_t client_input_memory(const struct client *c);

/* ---- output: server/client/output.c ---- */

/* Where answers and pushed messages are appended; follow it with client_queue_write(). Nothing is
 * kept where CLIENT REPLY says so, nor beyond the hard limit of its class once
 * client_output_limit() was called. */
static inline struct engine_reply *client_reply(struct client *c)
{
    return &c->reply;
}

/* Output was appended: it goes out before the loop sleeps, or, where it is over the hard limit of
 * its class, the client is closed then. */
void client_queue_write(struct client *c);

/* Before a command runs: its answer ends at the hard limit. */
void client_output_limit(struct client *c);

/* Is its output over the hard limit, or over the soft one without a moment below it for too long?
 * Then it is logged and counted: the caller closes it. */
bool client_over_limit(struct client *c, bool by_cron);

/* Makes the first room for answers. */
void client_output_begin(struct client *c);

/* DEBUG REPLYBUFFER RESIZING 0: room for answers neither grows nor shrinks with what is sent. */
void clients_keep_output_size(struct server *srv, bool yes);

/* Gives back room that answers have not needed of late. */
void client_output_trim(struct client *c);

/* Sends to all that have output; called before the loop sleeps. */
void clients_flush(struct server *srv);
static inline size_t client_pending_output(const struct client *c)
{
    return c->reply.buf.len - c->sent;
}
size_t client_output_memory(const struct client *c);

/* Closes clients whose output is over the soft limit for too long, and idle ones (timeout); a share
 * of all at each call. */
void clients_cron(struct server *srv);

/* ---- waiting: server/client/wait.c ---- */

/* The client gets no further commands until client_unblock(). deadline in unix us. */
void client_block(struct client *c, enum client_wait why, int64_t deadline_us);
void client_unblock(struct client *c);

/* Ends the waiting with what the command answers when its time is over, or (CLIENT UNBLOCK) with an
 * error. False: it does not wait for something that can be ended so. */
bool client_wait_end(struct client *c, enum engine_unblock why);

/* Ends the waiting of those whose time is over: a timer does, and, since the clock may be set,
 * every turn of the loop. */
void clients_end_waits(struct server *srv);

/* Serves sessions whose keys became ready. After each command. */
void clients_serve(struct server *srv);

/* CLIENT PAUSE is over: what waited runs. */
void clients_unpause(struct server *srv);

/* Clients that were unblocked have input that nobody has run yet. Before the loop sleeps. */
void clients_run_unblocked(struct server *srv);

/* ---- one line of CLIENT LIST ---- */
void client_describe(const struct client *c, struct rd_buf *out);

/* Bytes that a client takes in all. Constant time. */
size_t client_memory(const struct client *c);

/* ---- maxmemory-clients: server/client/evict.c ---- */

/* What it takes has changed. Cheap where there is no limit. */
void client_count(struct client *c);

/* It is about to be freed. */
void client_uncount(struct client *c);

/* Closes those that take most until all together are within the limit. May free any client. */
void clients_evict(struct server *srv);

/* The same before a command of the client. True: it is one of them, and will be closed. */
bool clients_evict_before(struct client *c);

#endif
