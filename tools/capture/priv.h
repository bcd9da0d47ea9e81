/* priv.h - shared by the parts of `redoubt capture`, and with `redoubt archive`, which is a capture
 * into a spool.
 *
 * One loop around ppoll() serves all links. A link is one master: a connection (client/peer.h), the
 * replica's side of the protocol (repl/psync.h), and a store, which is a folder on disk
 * (repl/capture_writer.h). Blocking operations run as jobs on another thread: fsync, and queries to
 * sentinels or cluster members for the masters.
 */
#ifndef TOOLS_CAPTURE_PRIV_H
#define TOOLS_CAPTURE_PRIV_H

#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/crc16.h"
#include "rebuild/knows.h"
#include "base/worker.h"
#include "repl/capture_writer.h"
#include "repl/psync.h"
#include "client/peer.h"
#include "client/topology.h"
#include "tools/cli/peer_options.h"

enum {
    CAPTURE_READ = 256 * 1024, /* bytes per read */
    CAPTURE_FLUSH_MS = 100,    /* delay until commands are written */
    CAPTURE_SYNC_MS = 1000,    /* delay until commands are synced */
    CAPTURE_LATE_MS = 500,     /* resolution of times: see timely.c */
    CAPTURE_REPORT_MS = 1000,  /* between two lines of progress */
    CAPTURE_BACKOFF_MS = 100,  /* before the first try to connect again, then doubled */
    CAPTURE_BACKOFF_MAX_MS = 10000,
    /* Each snapshot that is cut has cost the master a fork: the waits after these are longer. */
    CAPTURE_CUTS = 3,              /* in a row, without these waits */
    CAPTURE_CUT_BACKOFF_MS = 5000, /* then doubled */
    CAPTURE_CUT_BACKOFF_MAX_MS = 15 * 60000,
    CAPTURE_DOUBT_MS = 3000,   /* delay until a master without slots is dropped */
    CAPTURE_STEADY_MS = 10000, /* a stream of this duration resets the backoff */
    CAPTURE_FOLDER_MAX = 300,
    CAPTURE_SENTINELS_MAX = 16,
    CAPTURE_SENTINEL_PORT = 26379
};

enum capture_ack { CAPTURE_ACK_RECEIVED, CAPTURE_ACK_WRITTEN, CAPTURE_ACK_SYNCED };

/* ---- jobs on another thread ---- */

struct capture_job {
    struct rd_worker *worker; /* NULL with a single processor: jobs run synchronously */
    void (*run)(void *arg);
    void *arg;
    bool busy;
    atomic_bool done;
};

void capture_job_init(struct capture_job *job);
void capture_job_start(struct capture_job *job, void (*run)(void *arg), void *arg);
/* Whether the started job has ended; true once per job. */
bool capture_job_ended(struct capture_job *job);
/* Waits for the running job. */
void capture_job_free(struct capture_job *job);

/* ---- tools/capture/store.c: a folder ---- */

struct capture_store {
    struct rd_fs fs;
    bool has_fs;
    struct repl_capture_writer *writer; /* NULL: closed */
    struct capture_job *syncer;         /* shared by all stores */
    bool syncing;
    bool sync_wanted; /* the master asked for an acknowledgement of durable data */
    struct repl_capture_sync sync;
    int sync_result;
    uint64_t synced_ms;
    uint64_t flush_ms; /* when to flush; 0: nothing to flush */
    uint64_t commands;
    int64_t now_us; /* arrival time of the current bytes; the caller sets it */
    bool loading;   /* a snapshot is being received */
    bool by_sync;   /* from a master without PSYNC */
    struct rd_buf words;
    enum capture_ack ack;
};

struct capture_store_opts {
    const char *path;
    uint64_t max_size, segment_size;
    struct repl_replid run;
    enum capture_ack ack;
    const struct repl_capture_lock *lock; /* NULL: it is not locked yet */
};

/* The error names the process that has the lock. err may be NULL. */
void capture_store_locked(const char *path, struct rd_err *err);
bool capture_store_open(struct capture_store *store, const struct capture_store_opts *opts,
                        struct capture_job *syncer, struct rd_err *err);
/* Writes and syncs all complete commands. May be called twice. */
bool capture_store_close(struct capture_store *store, struct rd_err *err);

/* The history and offset to request with PSYNC. */
bool capture_store_resume(struct capture_store *store, struct repl_resume *ret, struct rd_err *err);

/* Handles FULL, SYNC, CONTINUE, PAYLOAD, PAYLOAD_END, COMMAND and KEEPALIVE of the stream. */
bool capture_store_take(struct capture_store *store, const struct repl_event *ev, uint64_t now_ms,
                        struct rd_err *err);

/* Flushes and syncs if due; returns the milliseconds until it must be called again. */
bool capture_store_tick(struct capture_store *store, uint64_t now_ms, uint64_t *ret_wait_ms,
                        struct rd_err *err);
bool capture_store_flush(struct capture_store *store, struct rd_err *err);
/* Waits until all complete commands are durable. */
bool capture_store_sync(struct capture_store *store, struct rd_err *err);

/* Interruptions, as in repl/capture_writer.h. */
bool capture_store_interrupted(struct capture_store *store, int64_t since_us, int64_t now_us,
                               struct rd_err *err);
bool capture_store_in_time(struct capture_store *store, int64_t now_us, struct rd_err *err);
bool capture_store_clock(struct capture_store *store, int64_t before_us, int64_t now_us,
                         struct rd_err *err);

uint64_t capture_store_received(const struct capture_store *store);
uint64_t capture_store_acked(const struct capture_store *store);

/* ---- tools/capture/timely.c: whether the stream arrives as the master writes it ---- */

struct capture_stamp {
    int64_t boot_us; /* a clock that is never set */
    int64_t us;      /* Unix time */
};

struct capture_timely {
    bool known;                 /* this run had a stream */
    bool late;                  /* what arrives may be older than its time */
    bool drained;               /* the last read found nothing */
    bool silent;                /* the system of the master does not acknowledge what is sent */
    struct capture_stamp empty; /* everything that had arrived was read */
    struct capture_stamp heard; /* the last bytes */
    struct capture_stamp asked; /* when a snapshot was announced */
    struct capture_stamp alive; /* if silent: the last acknowledgement */
    struct capture_stamp began; /* if late: when the stream went on */
    int64_t wait_ms;            /* if late: after this time all has arrived */
    struct capture_stamp pinged;
    int64_t ping_ms; /* the shortest interval between two PINGs */
    unsigned n_pings;
};

struct capture;
struct capture_link;

struct capture_stamp capture_stamp_now(void);
/* The stream continues after a lost connection, or in another run. */
bool capture_timely_continue(struct capture_link *link, struct rd_err *err);
/* It begins after a snapshot: what the master kept in the meantime arrives late. */
bool capture_timely_full(struct capture_link *link, struct rd_err *err);
/* Bytes were read, which are appended next. */
bool capture_timely_read(struct capture_link *link, struct rd_err *err);
/* They contained a PING. */
void capture_timely_ping(struct capture_link *link);
/* A read that began at the stamp found nothing; the same for a poll. */
void capture_timely_empty(struct capture_link *link, const struct capture_stamp *stamp);
void capture_timely_idle(struct capture_link *link, const struct capture_stamp *stamp);
bool capture_timely_tick(struct capture_link *link, uint64_t *ret_wait_ms, struct rd_err *err);
/* Whether the clock was set since the last call. */
bool capture_timely_clock(struct capture *capture, struct rd_err *err);

/* ---- tools/capture/link.c: a master ---- */

enum capture_state {
    CAPTURE_WAITING, /* until retry_ms */
    CAPTURE_CONNECTING,
    CAPTURE_TALKING,
    CAPTURE_DONE
};

struct capture_slots {
    uint64_t words[RD_HASH_SLOTS / 64];
};

struct capture_link {
    struct capture *capture;
    struct client_target target;
    char folder[CAPTURE_FOLDER_MAX]; /* its name in OUT; "": OUT itself */
    struct capture_slots slots;      /* of a cluster */
    char id[CLIENT_TOPOLOGY_ID_MAX];
    bool known;          /* in the topology that was read last */
    uint64_t doubted_ms; /* since when it has no slots; 0: it has slots */
    bool gone;           /* dropped because it had no slots for too long */

    enum capture_state state;
    struct client_peer *peer;
    struct repl_psync *psync;
    struct capture_store store;
    struct capture_timely timely;
    uint64_t retry_ms;
    unsigned tries;     /* since the last success */
    unsigned n_cut;     /* snapshots that were cut, in a row */
    bool in_snapshot;   /* the master has begun one on this connection */
    bool resumed;       /* this connection resumes where the previous one ended */
    bool accepted;      /* a master has accepted PSYNC in this run */
    uint64_t stream_ms; /* start of the stream on this connection; 0: none */
    uint64_t began_ms;  /* start of the first stream; 0: not yet */
    uint64_t heard_ms;  /* time of the last byte */
    uint64_t mark;      /* an offset received at mark_ms and not acknowledged yet */
    uint64_t mark_ms;
    uint64_t n_bytes;    /* of the stream, in this run */
    uint64_t n_before;   /* of these, before this connection */
    uint64_t n_snapshot; /* bytes of snapshots, in this run */
    uint64_t n_full, n_partial, n_lost;
    struct rebuild_unsupported unsupported;
};

bool capture_link_new(struct capture_link **ret, struct capture *capture,
                      const struct client_target *target, const char *folder, struct rd_err *err);
void capture_link_free(struct capture_link *link);

/* Runs the timers: connects, acknowledges, flushes. *ret_poll is the event to wait for (fd -1:
 * none); *ret_wait_ms is the maximum time. False: the capture has failed. */
bool capture_link_prepare(struct capture_link *link, uint64_t now_ms, struct pollfd *ret_poll,
                          uint64_t *ret_wait_ms, struct rd_err *err);
bool capture_link_work(struct capture_link *link, short revents, uint64_t now_ms,
                       struct rd_err *err);
/* The master has moved: connects to the new address at once. Takes ownership of the target. */
void capture_link_move(struct capture_link *link, struct client_target *target, uint64_t now_ms);
/* Sends the last acknowledgement to the master, and syncs everything to disk. */
bool capture_link_finish(struct capture_link *link, uint64_t now_ms, struct rd_err *err);
/* The same with the data received so far, for a server that is not a master any more. */
bool capture_link_leave(struct capture_link *link, uint64_t now_ms, struct rd_err *err);

/* ---- tools/capture/hosts.c: finding the masters ---- */

struct capture_watch {
    struct capture_job job;
    struct client_opts opts; /* of the command line, with a shorter timeout */
    struct client_target target;
    struct client_target *seeds; /* of a cluster: the members to ask */
    size_t n_seeds;
    bool ok; /* the result of the job */
    struct rd_err err;
    struct client_target master;
    struct client_topology cluster;
    uint64_t next_ms;
};

/* Finds the masters and creates the first links. */
bool capture_hosts_begin(struct capture *capture, struct rd_err *err);
/* Asks again from time to time, and moves links. */
bool capture_hosts_tick(struct capture *capture, uint64_t now_ms, uint64_t *ret_wait_ms,
                        struct rd_err *err);
/* A connection was lost: asks again soon. */
void capture_hosts_hurry(struct capture *capture, uint64_t now_ms);
/* Finds the master once, for --rdb-only. */
bool capture_hosts_find_master(struct capture *capture, struct client_target *ret,
                               struct rd_err *err);
void capture_hosts_end(struct capture *capture);

/* tools/capture/topology.c: the shards of a cluster and their folders. */
bool capture_topology_load(struct capture *capture, struct rd_err *err);
bool capture_topology_apply(struct capture *capture, const struct client_topology *cluster,
                            uint64_t now_ms, struct rd_err *err);

/* ---- tools/capture/report.c ---- */

struct capture_report {
    const char *metrics; /* the Prometheus file, or NULL */
    bool metrics_failed;
    uint64_t next_ms;
    uint64_t bytes; /* received up to the last line */
    uint64_t bytes_ms;
};

/* Sets the hint for an error of a connection. */
void capture_hint(struct capture *capture, const struct rd_err *err);

void capture_report_begin(struct capture *capture);
/* Reports an event: a line on stderr, an object in JSON. `trouble`: as a warning. */
void capture_event(struct capture *capture, const struct capture_link *link, const char *event,
                   bool trouble, const char *fmt, ...) RD_PRINTF(5, 6);
void capture_report_tick(struct capture *capture, uint64_t now_ms, uint64_t *ret_wait_ms);
void capture_report_end(struct capture *capture);

/* ---- tools/capture/rdb.c: the snapshot only ---- */

int capture_rdb(struct capture *capture);

/* ---- capture.c ---- */

struct capture {
    struct cli *cli;
    struct peer_opts servers;
    struct client_target target; /* from the command line */
    const char *out;
    const char *rdb_only;
    const char *replica_version; /* NULL: RDB_REPLICA_VERSION */
    bool functions_only;
    bool force;
    bool wait;
    bool cluster;
    int ack; /* enum capture_ack */
    bool has_until;
    uint64_t until;
    uint64_t duration_ms; /* 0: no end */
    uint64_t max_size, segment_size;
    const char *sentinel_texts[CAPTURE_SENTINELS_MAX];
    size_t n_sentinels;
    const char *sentinel_pass_file;
    const char *master;
    struct repl_replid run;
    const struct repl_capture_lock *lock; /* of the folder `out`; NULL: a link locks its own */

    struct capture_link **links;
    size_t n_links, cap_links;
    struct client_target sentinels[CAPTURE_SENTINELS_MAX];
    struct capture_watch watch;
    struct capture_job syncer;
    struct capture_report report;
    struct capture_stamp clock; /* when it was looked at last */
    uint8_t *buf;               /* CAPTURE_READ bytes */

    /* Called in every turn, after the links; NULL: not. *ret_wait_ms as in capture_link_prepare().
     */
    bool (*tick)(struct capture *capture, uint64_t now_ms, uint64_t *ret_wait_ms,
                 struct rd_err *err);
    void (*on_full)(struct capture *capture); /* a master begins a snapshot; NULL: not */
    void *ctx;                                /* of these */
    sigset_t waiting;                         /* the mask of signals while the loop waits */
    bool catching;
};

/* Catches the signals that end a capture, and blocks them outside of ppoll(). Threads that are
 * started later inherit the mask. capture_run() calls it unless that was done before. */
void capture_catch_signals(struct capture *capture);
/* The signal that ended the capture; 0: none did. */
int capture_stopped(void);

/* Prepares a capture whose options are set. capture_close() is called in any case. */
bool capture_prepare(struct capture *capture, const char *url, struct rd_err *err);
/* Captures until it is over or a signal comes. Everything received is stored, however it ends.
 * Finds the masters unless the caller has added links. */
bool capture_run(struct capture *capture, struct rd_err *err);
void capture_close(struct capture *capture, struct rd_err *err);

bool capture_add_link(struct capture *capture, const struct client_target *target,
                      const char *folder, struct capture_link **ret, struct rd_err *err);
uint64_t capture_now_ms(void);
int64_t capture_now_us(void);

static inline void capture_sooner(uint64_t *wait_ms, uint64_t ms)
{
    if (ms < *wait_ms)
        *wait_ms = ms;
}

#endif
