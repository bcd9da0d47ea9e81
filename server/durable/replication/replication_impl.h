/* replication_impl.h - shared by the parts of replication; private to this folder and its commands.
 */
#ifndef SERVER_DURABLE_REPLICATION_REPLICATION_IMPL_H
#define SERVER_DURABLE_REPLICATION_REPLICATION_IMPL_H

#include "repl/psync.h"
#include "server/session/dispatch/ahead.h"
#include "server/durable/replication/replication.h"

/* 40 random digits. */
struct repl_replid replication_fresh_id(void);

_Noreturn void replication_no_memory(void);

/* From now on the stream is kept, under a new id if it was not kept before. */
void replication_keep(struct durable *durable);

/* ---- replicas.c ---- */

enum { REPLICA_NAME = REPL_ADDRESS_MAX + 32 }; /* bytes of its address and port as text */

/* What the server knows about a replica beyond the protocol; client.replica. */
struct replica {
    struct repl_peer peer;
    struct client *client;
    int file; /* its snapshot; -1: none */
    uint64_t file_len, file_at;
    size_t piped;        /* bytes of the current part of a diskless snapshot that were sent */
    bool piped_left;     /* some of them were not */
    int64_t progress_ms; /* when it last took bytes of this part, or when the part began */
};

static inline struct replica *replica_of_peer(const struct repl_peer *peer)
{
    return peer->ctx;
}

/* The states of peers have changed: sends headers, closes those that failed. */
void replicas_advance(struct durable *durable);

void replica_log_success(const struct client *c);

/* Its address without the port: announced or seen. */
void replica_address(const struct replica *replica, char *dst, size_t size);
/* "wait_bgsave", "send_bulk", "online" */
const char *replica_state_word(const struct repl_peer *peer);

/* ---- failover.c ---- */

struct dispatch_call;
void failover_step(struct durable *durable);
void failover_abort(struct durable *durable, const char *why);
/* The target of a failover has answered PSYNC. */
void failover_answered(struct durable *durable, bool accepted);
/* PSYNC with FAILOVER: this replica becomes the master. False: an error was replied. */
bool failover_accept(struct dispatch_call *call);
const char *failover_word(const struct durable *durable);

/* "WHAT enabled (WHY request from 'line of CLIENT LIST')" */
void replication_log_role(const struct client *c, const char *what, const char *why);

/* ---- snapshots.c ---- */

/* Starts the snapshot that replicas wait for, if one is due. */
void replicas_snapshot_try(struct durable *durable);
/* A replica has just asked for a full sync. */
void replicas_snapshot_wanted(struct durable *durable, struct replica *replica);
/* For the timer: removes the file that was made for replicas, if the settings say so. */
void replicas_remove_file(struct durable *durable);
/* A replica that waited for a snapshot on disk is gone. If it was the last one, the snapshot is
 * cancelled. */
void replicas_snapshot_unwanted(struct durable *durable);
/* Continues the diskless transfer: a replica can receive more, or is gone. */
void replicas_snapshot_go_on(struct durable *durable);
bool replicas_snapshot_is_diskless(const struct durable *durable);

/* ---- link.c ---- */

enum repl_link_state {
    REPL_LINK_CONNECT,    /* to be connected by the timer, or its host is being looked up */
    REPL_LINK_CONNECTING, /* TCP, TLS */
    REPL_LINK_HANDSHAKE,
    REPL_LINK_TRANSFER, /* a snapshot arrives or is being loaded */
    REPL_LINK_CONNECTED
};

enum { REPL_LINK_REASON = 600 };

struct receive; /* receive.c */

struct repl_link {
    struct durable *durable;
    char *host;
    int port;
    enum repl_link_state state;
    struct lookup *lookup;          /* of the host; NULL: none is under way */
    struct addrinfo *addresses;     /* what was found, until the master is connected */
    const struct addrinfo *untried; /* the rest of them */
    struct conn *conn;              /* NULL: none. Owned by `client` if there is one */
    struct client *client;          /* runs the stream; NULL until it begins */
    struct repl_psync *psync;

    bool has_place;          /* the data is that of the history: a partial sync is possible */
    unsigned db;             /* selected in the stream at that place */
    struct rd_buf held;      /* bytes of an open transaction, which sub-replicas get at its end */
    struct rd_buf unread;    /* bytes that arrived while the stream was held */
    struct ahead ahead;      /* of the stream */
    struct receive *receive; /* NULL: no snapshot is arriving */

    int64_t since_ms;     /* of the state */
    int64_t heard_ms;     /* by loop_mono_ms() */
    int64_t down_since_s; /* by persist_mono_s(); 0: never up */
    bool master_is_old;   /* its snapshot was of Redis 7.0 or older; false: that is not known */
    char unsupported[REPL_LINK_REASON]; /* why the connection was closed by this side, until data of
                                           the master is here again */
    int64_t retry_ms;                   /* not before this time, by loop_mono_ms() … */
    int64_t retry_wait_ms;              /* … which was the end of a pause of this length */
    bool late;     /* the master did not answer in time: connect again at once */
    bool rejected; /* a failover: the target refused PSYNC */
    bool in_event; /* events are being taken: do not free psync */
    bool cut;      /* … and the connection will be closed after this event */
};

struct repl_link *link_new(struct durable *durable, const char *host, int port);
void link_free(struct repl_link *link);
void link_connect(struct repl_link *link);
void link_cron(struct repl_link *link);
/* Logs that the connection is about to be closed, if it is up. */
void link_log_lost(const struct repl_link *link);
/* From here on the data is not that of the history of the master. */
void link_forget_place(struct repl_link *link);
/* Closes the connection; the timer connects again. */
void link_drop(struct repl_link *link);
/* The master sent something that this version does not have, so the connection is about to be
 * closed. The next one begins after a pause, which grows with each failure, and with a full sync,
 * which is work for the master. `what`: "the command \"x\""; why: an error, or "". */
void link_unsupported(struct repl_link *link, const char *what, const char *why);
/* Handles the pending events, then reads and writes more. */
void link_go_on(struct repl_link *link);
/* Handles the bytes that waited for the end of a pause. */
void link_resume(struct repl_link *link);
void link_watch(struct repl_link *link);
bool link_is_up(const struct durable *durable);

/* ---- receive.c ---- */

/* same_history: the snapshot is a later state of the history of this dataset. */
struct receive *receive_new(struct repl_link *link, bool same_history);
void receive_free(struct receive *receive);
/* Bytes of a data set that is being loaded while the old one is served. */
uint64_t receive_memory(const struct repl_link *link);
/* False: failed and logged. */
bool receive_begin(struct repl_link *link, const struct repl_event *ev);
bool receive_bytes(struct repl_link *link, const struct repl_event *ev);
bool receive_end(struct repl_link *link);
bool receive_is_loading(const struct repl_link *link);
/* The snapshot is in memory: the stream may begin. */
bool receive_is_done(const struct repl_link *link);
/* Of a snapshot that arrives: bytes in total (0: unknown), and so far. */
void receive_progress(const struct repl_link *link, uint64_t *ret_total, uint64_t *ret_read,
                      int64_t *ret_last_s);

/* ---- apply.c ---- */

void apply_begin(struct repl_link *link);
void apply_command(struct repl_link *link, const struct repl_event *ev);
void apply_pass(struct repl_link *link, struct rd_slice bytes);

#endif
