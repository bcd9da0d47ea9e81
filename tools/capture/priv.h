/* priv.h - what the parts of `redoubt capture` share; private to tools/capture*.c.
 *
 * One loop around ppoll() carries all links. A link is one master: a connection (tools/peer.h), the
 * replica's side of the protocol (repl/psync.h), and a store, which is a folder on disk
 * (repl/capture_writer.h). What would block is a job on another thread: fsync, and asking
 * sentinels or a cluster who the masters are.
 */
#ifndef TOOLS_CAPTURE_PRIV_H
#define TOOLS_CAPTURE_PRIV_H

#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/crc16.h"
#include "base/worker.h"
#include "repl/capture_writer.h"
#include "repl/psync.h"
#include "tools/peer.h"
#include "tools/topology.h"

enum {
    CAPTURE_READ = 256 * 1024, /* bytes that are read at once */
    CAPTURE_FLUSH_MS = 100,    /* whole commands are with the system after so long */
    CAPTURE_SYNC_MS = 1000,    /* and durable after so long */
    CAPTURE_REPORT_MS = 1000,  /* between two lines of progress */
    CAPTURE_BACKOFF_MS = 100,  /* before the first try to connect again, then doubled */
    CAPTURE_BACKOFF_MAX_MS = 10000,
    CAPTURE_DOUBT_MS = 3000,   /* a master without slots is left after so long */
    CAPTURE_STEADY_MS = 10000, /* a stream that lasted so long was a good one */
    CAPTURE_FOLDER_MAX = 300,
    CAPTURE_SENTINELS_MAX = 16
};

enum capture_ack { CAPTURE_ACK_RECEIVED, CAPTURE_ACK_WRITTEN, CAPTURE_ACK_SYNCED };

/* ---- jobs on another thread ---- */

struct capture_job {
    struct rd_worker *worker; /* NULL: there is one processor only, and jobs are done at once */
    void (*run)(void *arg);
    void *arg;
    bool busy;
    atomic_bool done;
};

void capture_job_init(struct capture_job *job);
void capture_job_start(struct capture_job *job, void (*run)(void *arg), void *arg);
/* Whether the job that was started has ended; true once. */
bool capture_job_ended(struct capture_job *job);
/* Waits for what is under way. */
void capture_job_free(struct capture_job *job);

/* ---- tools/capture/store.c: a folder ---- */

struct capture_store {
    struct rd_fs fs;
    bool has_fs;
    struct repl_capture_writer *writer; /* NULL: closed */
    struct capture_job *syncer;         /* shared by all stores */
    bool syncing;
    bool sync_wanted; /* the master has asked, and what is durable is told */
    struct repl_capture_sync sync;
    int sync_result;
    uint64_t synced_ms;
    uint64_t flush_ms; /* when to flush; 0: there is nothing to */
    uint64_t commands;
    int64_t now_us; /* when the bytes that are taken arrived; the caller sets it */
    bool loading;   /* a snapshot is under way */
    bool by_sync;   /* from a master that knows no PSYNC */
    struct rd_buf words;
    enum capture_ack ack;
};

struct capture_store_opts {
    const char *path;
    uint64_t max_size, segment_size;
    struct repl_replid run;
    enum capture_ack ack;
};

bool capture_store_open(struct capture_store *store, const struct capture_store_opts *opts,
                        struct capture_job *syncer, struct rd_err *err);
/* Writes and syncs what is whole. May be called twice. */
bool capture_store_close(struct capture_store *store, struct rd_err *err);

/* Where to ask the master to continue. */
bool capture_store_resume(struct capture_store *store, struct repl_resume *ret, struct rd_err *err);

/* FULL, SYNC, CONTINUE, PAYLOAD, PAYLOAD_END, COMMAND and KEEPALIVE of the stream. */
bool capture_store_take(struct capture_store *store, const struct repl_event *ev, uint64_t now_ms,
                        struct rd_err *err);

/* Flushes and syncs where it is time to; returns in how many milliseconds it wants to be called
 * again. */
bool capture_store_tick(struct capture_store *store, uint64_t now_ms, uint64_t *ret_wait_ms,
                        struct rd_err *err);
bool capture_store_flush(struct capture_store *store, struct rd_err *err);
/* Waits until everything whole is durable. */
bool capture_store_sync(struct capture_store *store, struct rd_err *err);

uint64_t capture_store_received(const struct capture_store *store);
uint64_t capture_store_acked(const struct capture_store *store);

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
    struct peer_target target;
    char folder[CAPTURE_FOLDER_MAX]; /* its name in OUT; "": OUT itself */
    struct capture_slots slots;      /* of a cluster */
    char id[TOPOLOGY_ID_MAX];
    bool known;          /* by the topology that was read last */
    uint64_t doubted_ms; /* since then it has no slots; 0: it has some */
    bool gone;           /* it is left, for it had none for long enough */

    enum capture_state state;
    struct peer *peer;
    struct repl_psync *psync;
    struct capture_store store;
    uint64_t retry_ms;
    unsigned tries;     /* since it went well */
    bool resumed;       /* this connection continues where the one before ended */
    bool accepted;      /* a master has answered to PSYNC, in this run */
    uint64_t stream_ms; /* since when the stream flows, on this connection; 0: it does not */
    uint64_t began_ms;  /* when it flowed first; 0: not yet */
    uint64_t heard_ms;  /* when a byte came */
    uint64_t mark;      /* this offset was received at mark_ms, and is not acknowledged yet */
    uint64_t mark_ms;
    uint64_t n_bytes;    /* of the stream, in this run */
    uint64_t n_before;   /* of them, before this connection */
    uint64_t n_snapshot; /* bytes of snapshots, in this run */
    uint64_t n_full, n_partial, n_lost;
};

bool capture_link_new(struct capture_link **ret, struct capture *capture,
                      const struct peer_target *target, const char *folder, struct rd_err *err);
void capture_link_free(struct capture_link *link);

/* Does what time asks for: connects, acknowledges, flushes. *ret_poll is what to wait for (fd -1:
 * nothing). Returns for how long at most. False: the capture has failed. */
bool capture_link_prepare(struct capture_link *link, uint64_t now_ms, struct pollfd *ret_poll,
                          uint64_t *ret_wait_ms, struct rd_err *err);
bool capture_link_work(struct capture_link *link, short revents, uint64_t now_ms,
                       struct rd_err *err);
/* The master is elsewhere now: connects there at once. Takes over the target. */
void capture_link_move(struct capture_link *link, struct peer_target *target, uint64_t now_ms);
/* Last words to the master, and everything on disk. */
bool capture_link_finish(struct capture_link *link, uint64_t now_ms, struct rd_err *err);
/* The same with what has arrived by now, for a master that is none any more. */
bool capture_link_leave(struct capture_link *link, uint64_t now_ms, struct rd_err *err);

/* ---- tools/capture/hosts.c: who the masters are ---- */

struct capture_watch {
    struct capture_job job;
    struct peer_opts opts; /* as the command line has them, with less patience */
    struct peer_target target;
    struct peer_target *seeds; /* of a cluster: who is asked */
    size_t n_seeds;
    bool ok; /* what the job has found out */
    struct rd_err err;
    struct peer_target master;
    struct topology cluster;
    uint64_t next_ms;
};

/* Finds the masters and makes the first links. */
bool capture_hosts_begin(struct capture *capture, struct rd_err *err);
/* Asks again now and then, and moves links. */
bool capture_hosts_tick(struct capture *capture, uint64_t now_ms, uint64_t *ret_wait_ms,
                        struct rd_err *err);
/* A connection was lost: asks soon. */
void capture_hosts_hurry(struct capture *capture, uint64_t now_ms);
/* Once, for who wants a snapshot alone. */
bool capture_hosts_find_master(struct capture *capture, struct peer_target *ret,
                               struct rd_err *err);
void capture_hosts_end(struct capture *capture);

/* tools/capture/topology.c: the shards of a cluster and their folders. */
bool capture_topology_load(struct capture *capture, struct rd_err *err);
bool capture_topology_apply(struct capture *capture, const struct topology *cluster,
                            uint64_t now_ms, struct rd_err *err);

/* ---- tools/capture/report.c ---- */

struct capture_report {
    const char *metrics; /* the Prometheus file, or NULL */
    bool metrics_failed;
    uint64_t next_ms;
    uint64_t bytes; /* received up to the last line */
    uint64_t bytes_ms;
};

/* What can be done about an error of a connection. */
void capture_hint(struct capture *capture, const struct rd_err *err);

void capture_report_begin(struct capture *capture);
/* Something has happened: a line on stderr, an object in JSON. `trouble`: a warning. */
void capture_event(struct capture *capture, const struct capture_link *link, const char *event,
                   bool trouble, const char *fmt, ...) RD_PRINTF(5, 6);
void capture_report_tick(struct capture *capture, uint64_t now_ms, uint64_t *ret_wait_ms);
void capture_report_end(struct capture *capture);

/* ---- tools/capture/rdb.c: the snapshot alone ---- */

int capture_rdb(struct capture *capture);

/* ---- capture.c ---- */

struct capture {
    struct cli *cli;
    struct peer_opts servers;
    struct peer_target target; /* what the command line names */
    const char *out;
    const char *rdb_only;
    const char *replica_version; /* or NULL: nothing is said */
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

    struct capture_link **links;
    size_t n_links, cap_links;
    struct peer_target sentinels[CAPTURE_SENTINELS_MAX];
    struct capture_watch watch;
    struct capture_job syncer;
    struct capture_report report;
    uint8_t *buf; /* CAPTURE_READ bytes */
};

bool capture_add_link(struct capture *capture, const struct peer_target *target, const char *folder,
                      struct capture_link **ret, struct rd_err *err);
uint64_t capture_now_ms(void);
int64_t capture_now_us(void);

static inline void capture_sooner(uint64_t *wait_ms, uint64_t ms)
{
    if (ms < *wait_ms)
        *wait_ms = ms;
}

#endif
