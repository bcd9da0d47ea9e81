/* client.h - a client connection: input, output and session.
 *
 *     struct client *c = client_new(sessions, conn);
 *     ... the loop calls client_readable(c), which runs the received commands ...
 *     append replies to client_reply(c); they are sent before the loop sleeps
 *     client_close_soon(c): after what is pending has been sent
 *     client_free(c): immediately
 *
 * A command may run the loop: a script or the loading of a log that takes long. The client of such
 * a command is running (client_is_running()): no input of it is read or run, its buffers keep their
 * place, and client_free() becomes client_close_asap(). This holds for every client whose input is
 * on the C stack, not only for that of the current command.
 */
#ifndef SERVER_SESSION_CLIENT_CLIENT_H
#define SERVER_SESSION_CLIENT_CLIENT_H

#include "base/buf.h"
#include "engine/session.h"
#include "engine/table.h"
#include "server/loop/conn.h"
#include "server/session/sessions.h"

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
    X(UNBLOCKED, 12, 0) /* its input is processed before the loop sleeps */                        \
    X(WRITE_QUEUED, 13, 0)                                                                         \
    X(PROTOCOL_ERROR, 14, 0)                                                                       \
    X(REPLICA, 15, 'S')                                                                            \
    X(MASTER, 16, 'M')   /* the connection to this server's own master */                          \
    X(RUNNING, 17, 0)    /* client_is_running() */                                                 \
    X(READONLY, 18, 'r') /* READONLY: a replica of a cluster may answer it */                      \
    X(ASKING, 19, 0)     /* ASKING: until the next command */

enum client_flag {
#define X(name, bit, letter) CLIENT_##name = 1 << (bit),
    CLIENT_FLAGS(X)
#undef X
};

/* The reason why it is blocked. */
enum client_wait {
    CLIENT_WAITS_NOT,
    CLIENT_WAITS_KEY,   /* engine/block.h */
    CLIENT_WAITS_ACKS,  /* WAIT */
    CLIENT_WAITS_PAUSE, /* CLIENT PAUSE */
    CLIENT_WAITS_END    /* SHUTDOWN in progress */
};

/* Bytes that were not run yet, and the parsed part of the command at their start. */
struct client_input {
    struct rd_buf buf;
    const uint8_t *base; /* the command's first byte: in buf, or in the shared buffer */
    size_t at;           /* where the parser resumes, from base */
    size_t need;         /* minimum bytes of the command before the parser can make progress */
    uint64_t n_args;     /* number of arguments that the command announces; 0: no command begun */
    size_t argc;         /* number of arguments read so far */
    bool in_bulk;        /* the length of the next argument is known: bulk_len */
    uint64_t bulk_len;
    struct rd_slice *argv;
    size_t cap_argv;
    uint64_t peak;     /* of the length of buf since the cron looked at it */
    size_t shared_len; /* bytes read into the shared buffer, while they are run */
};

struct acl_user;

struct client {
    struct sessions *sessions;
    struct conn *conn; /* NULL: a client without a connection (used to load a log) */
    uint64_t id;
    uint32_t flags; /* enum client_flag */
    enum client_wait waits;
    int64_t wait_deadline_us; /* by server.mono_us; INT64_MAX: never */

    struct engine_session session; /* .ctx is this client */
    struct client_input in;
    struct engine_reply reply; /* .buf: the output, to be sent from `sent` on; .proto 2 or 3 */
    size_t sent;

    struct rd_buf name;    /* CLIENT SETNAME */
    struct acl_user *user; /* server/session/acl/acl.h; NULL: may do everything */
    bool authenticated;
    const struct engine_command *last_command;
    int ldb_mode; /* enum ldb_mode */

    char peer[80];      /* "127.0.0.1:50512", "[::1]:50512", or its socket */
    char local[80];     /* its own address of that connection */
    int64_t created_ms; /* by loop_mono_ms(), as are the next fields */
    int64_t active_ms;  /* last time it sent or received something */

    int64_t soft_limit_since_ms; /* since when the output is over the soft limit; 0: it is not */
    size_t output_peak;          /* peak of reply.buf since … */
    int64_t output_peak_since_ms;
    size_t counted;   /* bytes of it in clients.memory */
    size_t anonymous; /* bytes of it in clients.anonymous */

    /* the blocked command */
    uint64_t worked_us;         /* the command before it */
    struct slowlog_entry *slow; /* its slow log entry; NULL: nothing to log */

    struct replica *replica; /* replication.h; NULL: no REPLCONF or PSYNC was received */
    uint64_t write_offset;   /* of the stream after its last command: WAIT */
    int64_t wait_acks;       /* number of replicas that it waits for */

    int slot; /* of the keys of its command, in a cluster; -1: it has none */

    struct pubsub_client *pubsub; /* of pubsub.c; NULL: no subscriptions */
    struct tracker *tracker; /* server/session/tracking/tracking.h; NULL: tracking was never on */

    struct client *prev, *next;             /* list of all clients */
    struct client *write_prev, *write_next; /* list of those with output or about to be closed */
    struct client *run_next;                /* list of those that were unblocked */
    size_t wait_index;                      /* position in the heap of deadlines, from 1; 0: not in
                                             * it */
};

/* The reasons for a pause. */
enum client_pauser {
    CLIENT_PAUSE_COMMAND,
    CLIENT_PAUSE_SHUTDOWN,
    CLIENT_PAUSE_FAILOVER,
    CLIENT_PAUSES
};

struct client_pause {
    int64_t until_ms; /* by loop_mono_ms(); 0: no pause */
    bool writes_only;
};

/* All of them. */
struct clients {
    struct client *first, *last; /* by id */
    struct engine_table by_id;
    struct client *cron_next; /* the client that the cron checks next; NULL: the first */
    size_t n;
    uint64_t next_id;
    struct client *to_write;             /* CLIENT_WRITE_QUEUED, in reverse order of arrival */
    struct client *to_run, *to_run_last; /* CLIENT_UNBLOCKED, in order of arrival */
    bool shared_busy;                    /* a command is in `shared`, which must not be reused */
    size_t n_blocked;
    size_t n_pubsub;
    struct client_pause pauses[CLIENT_PAUSES];
    int64_t pause_until_ms; /* of all of them together */
    bool pause_writes_only;
    uint8_t *shared; /* buffer for input that is run immediately */
    uint64_t recent_max_input, recent_max_output;
    /* maxmemory-clients: bytes of all clients that are not replicas, among those that are counted.
     */
    bool counting;
    size_t memory;
    size_t anonymous; /* bytes of the buffers of those who have not logged in */
    /* DEBUG REPLYBUFFER */
    bool output_keeps_size;
    int64_t output_peak_ms; /* how long a peak counts */
    /* The deadlines of blocked clients: a heap by time. */
    struct client **waiting;
    size_t n_waiting, cap_waiting;
    uv_timer_t timer;
};

enum {
    CLIENT_SHARED_INPUT = 64 * 1024,
    CLIENT_READ_SIZE = 16 * 1024, /* into a client's own buffer */
    CLIENT_OUTPUT_MIN = 1024,     /* of the reply buffer, between them */
    CLIENT_OUTPUT_KEEP = 16 * 1024,
    CLIENT_OUTPUT_PEAK_MS = 5000,   /* output_peak_ms by default; tests change it */
    CLIENT_IDLE_MS = 2000,          /* a client idle for longer needs no input buffer */
    CLIENT_ANONYMOUS_MAX = 16 << 20 /* bytes of the buffers of all who have not logged in */
};

struct clients *clients_new(struct sessions *sessions);
void clients_free(struct clients *clients);

/* Takes ownership of the connection. conn NULL: an internal client of the server. */
struct client *client_new(struct sessions *sessions, struct conn *conn);
void client_free(struct client *c);

/* Handles the events of its connection from now on. */
void client_watch(struct client *c);

/* New connections of the loop become clients. accept.c */
void clients_accept(struct loop *loop);

/* Sends the pending output, then closes. Further input is discarded. */
void client_close_soon(struct client *c);

/* Closes before the loop sleeps, even with pending output. */
void client_close_asap(struct client *c);

/* Its input is being run, or a command of it. No other code may run its input, move or free its
 * buffers, or free it. */
static inline bool client_is_running(const struct client *c)
{
    return (c->flags & CLIENT_RUNNING) != 0;
}

/* Marks it as running; returns whether it was not. client_run_end() takes that answer. */
bool client_run_begin(struct client *c);
void client_run_end(struct client *c, bool begun);

/* NULL: no such client. */
struct client *client_find(struct sessions *sessions, uint64_t id);
/* CLIENT_TYPES: the connection to the master. */
enum client_type client_type(const struct client *c);

/* ---- input: input.c ---- */

/* Reads the available input and runs it. May free c. */
void client_readable(struct client *c);

/* The socket accepts more output. May free c. */
void client_writable(struct client *c);

/* Runs the commands in its buffer, after it was unblocked or a pause ended. Does nothing if it is
 * running: the caller above continues with its input. */
void client_run_input(struct client *c);
void client_input_done(struct client *c);

/* Releases unused space of the input buffer. */
void client_input_trim(struct client *c);

/* Bytes that its input takes. */
size_t client_input_memory(const struct client *c);

/* ---- output: output.c ---- */

/* Replies and pushed messages are appended here; call client_queue_write() afterwards. Output is
 * dropped if CLIENT REPLY says so, and above the hard limit of the client's class once
 * client_output_limit() was called. */
static inline struct engine_reply *client_reply(struct client *c)
{
    return &c->reply;
}

/* A command has replied: CLIENT REPLY SKIP applies to the one after it. Does nothing while the
 * client is blocked, as its reply is still to come. */
void client_end_reply(struct client *c);

/* Output was appended: it is sent before the loop sleeps, or, if it is over the hard limit of the
 * class, the client is closed then. */
void client_queue_write(struct client *c);

/* Before a command runs: limits its reply to the hard limit. */
void client_output_limit(struct client *c);

/* Returns whether the output is over the hard limit, or has been over the soft limit for too long.
 * If so, it is logged and counted, and the caller closes the client. */
bool client_over_limit(struct client *c, bool by_cron);

/* Allocates the initial reply buffer. */
void client_output_begin(struct client *c);

/* DEBUG REPLYBUFFER RESIZING 0: the reply buffer neither grows nor shrinks with the output. */
void clients_keep_output_size(struct sessions *sessions, bool yes);

/* Releases space of the reply buffer that was not needed recently. */
void client_output_trim(struct client *c);

/* Sends the output of all clients that have some; called before the loop sleeps. */
void clients_flush(struct sessions *sessions);
static inline size_t client_pending_output(const struct client *c)
{
    return c->reply.buf.len - c->sent;
}
size_t client_output_memory(const struct client *c);

/* Closes clients whose output is over the soft limit for too long, and idle ones (timeout). Each
 * call checks a share of all clients. */
void clients_cron(struct sessions *sessions);

/* ---- waiting: wait.c ---- */

/* Runs no further commands of the client until client_unblock(). The deadline is a time of the
 * monotonic clock; INT64_MAX: none. */
void client_block(struct client *c, enum client_wait why, int64_t deadline_us);
void client_unblock(struct client *c);

/* Unblocks the client with the reply of a timeout or (CLIENT UNBLOCK) with an error. False: the
 * client is not blocked in a way that can be ended like this. */
bool client_wait_end(struct client *c, enum engine_unblock why);

/* The same with this error. */
void client_wait_fail(struct client *c, const char *error);

/* Unblocks the clients whose deadline has passed. Called by a timer and, since the clock can be
 * set, in every turn of the loop. */
void clients_end_waits(struct sessions *sessions);

/* Serves sessions whose keys became ready. Called after each command. */
void clients_serve(struct sessions *sessions);

/* ---- pauses: pause.c ---- */

void clients_pause(struct sessions *sessions, enum client_pauser who, int64_t until_ms,
                   bool writes_only);

/* This pause is over: runs the commands that are not postponed by another one. */
void clients_unpause(struct sessions *sessions, enum client_pauser who);

/* The same for all pauses that have ended. */
void clients_end_pauses(struct sessions *sessions);

/* Runs the remaining input of clients that were unblocked. Called before the loop sleeps. */
void clients_run_unblocked(struct sessions *sessions);

/* ---- one line of CLIENT LIST ---- */
void client_describe(const struct client *c, struct rd_buf *out);

/* Total bytes that a client uses. Constant time. */
size_t client_memory(const struct client *c);

/* ---- maxmemory-clients: evict.c ---- */

/* The memory of the client has changed. Cheap without a limit. Also closes clients that have not
 * logged in, those with the largest buffers first, while all of them together take more than
 * CLIENT_ANONYMOUS_MAX. Their own limits are in output.c and parse.c. */
void client_count(struct client *c);

/* The client is about to be freed. */
void client_uncount(struct client *c);

/* Closes the clients that use the most memory until the total is within the limit. May free any
 * client. */
void clients_evict(struct sessions *sessions);

/* The same before a command of the client. True: this client is one of them and will be closed. */
bool clients_evict_before(struct client *c);

#endif
