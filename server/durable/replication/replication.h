/* replication.h - the server as a master and as a replica.
 *
 * The protocol is in repl/: repl/master.h is the history of the data set with its replicas,
 * repl/psync.h the connection to a master. This folder adds sockets, files, children and time:
 *
 *     replication.c   the history, the stream, timers
 *     replicas.c      connections of replicas: REPLCONF, PSYNC, sending the stream
 *     snapshots.c     the children that make snapshots for them
 *     link.c          the connection to the master
 *     receive.c       a snapshot that arrives from it
 *     receive_load.c  loading it
 *     apply.c         the stream that arrives
 *     failover.c      FAILOVER
 *     report.c        INFO and ROLE
 *
 * Every server has a history. It grows from the first connection of a replica on. Without replicas
 * for repl-backlog-ttl seconds it ends, and the next replica begins a new one.
 */
#ifndef SERVER_DURABLE_REPLICATION_REPLICATION_H
#define SERVER_DURABLE_REPLICATION_REPLICATION_H

#include "engine/snapshot.h"
#include "repl/master.h"
#include "server/durable/durable.h"
#include "server/session/client/client.h"
#include "server/session/dispatch/dispatch.h"

struct replica;
struct repl_link;
struct replicas_snapshot;

enum failover_state { FAILOVER_NONE, FAILOVER_WAITS, FAILOVER_RUNS };

struct failover {
    enum failover_state state;
    char *host; /* of the replica; NULL: any */
    int port;
    bool force;
    int64_t end_ms; /* by loop_mono_ms(); 0: no timeout */
};

struct replication {
    struct repl_master *master;
    struct repl_link *link; /* to the master; NULL: this server is a master */

    uint64_t full_syncs, partial_syncs, partial_refused;
    uint64_t bytes_in, bytes_out; /* of streams and snapshots */

    bool ask_acks;         /* REPLCONF GETACK is due */
    bool acked;            /* an acknowledgement arrived: clients in WAIT may be served */
    size_t n_waiting;      /* clients in WAIT */
    int64_t ticks;         /* calls of the timer, once a second */
    int64_t next_tick_ms;  /* by loop_mono_ms() */
    int64_t disk_logged_s; /* when a failing disk of a replica was logged */
    struct failover failover;
    bool file_for_replicas;             /* the snapshot on disk was made for replicas only */
    struct replicas_snapshot *snapshot; /* the diskless one in progress; NULL: none */
};

void replication_init(struct durable *durable);

/* The connection to the master ends, before the clients are freed. */
void replication_leave(struct durable *durable);
void replication_free(struct durable *durable);

/* At the start, after the data was loaded: follows the master of the configuration. */
void replication_start(struct durable *durable);

static inline bool replication_is_replica(const struct durable *durable)
{
    return durable->replication->link != NULL;
}

/* Whether the stream needs the effects of commands. */
bool replication_wants_effects(const struct durable *durable);

/* The effects of commands of this server's own clients, of expiry and eviction. */
void replication_append(struct durable *durable, const struct engine_effects *fx);

/* A command that replicas run, but that changes no data: PUBLISH. */
void replication_append_command(struct durable *durable, size_t argc, const struct rd_slice *argv);

/* Logs the last bytes of the stream: they may show the cause of an error in it. */
void replication_log_latest(const struct durable *durable);

/* Before replies are sent: asks for acknowledgements, serves WAIT, lets replicas write. */
void replication_before_sleep(struct durable *durable);
void replication_cron(struct durable *durable);

/* The fields about replication for the engine and for snapshots. */
void replication_settings_changed(struct durable *durable);
enum { REPLICATION_AUX = 3, REPLICATION_AUX_TEXT = 64 };

size_t replication_aux(const struct durable *durable, struct engine_aux aux[REPLICATION_AUX],
                       char text[REPLICATION_AUX][REPLICATION_AUX_TEXT]);

/* The position in a history that a snapshot records, as its AUX fields are read. */
struct replication_place {
    struct repl_replid id; /* not set: nothing */
    int64_t offset;        /* -1: nothing */
    unsigned db;
};
void replication_place_read(struct replication_place *place, struct rd_slice name,
                            struct rd_slice value);

/* The dataset is that of a snapshot with this position. Call it when the server starts. */
void replication_restored(struct durable *durable, const struct replication_place *place);

/* How far the data is: bytes of the stream. 0: it is not that of the master, or being replaced. */
uint64_t replication_offset(const struct durable *durable);

/* Of a replica: whether its master is connected, and for how long nothing was heard of it.
 * INT64_MAX: the data was never the master's. */
void replication_link_state(const struct durable *durable, bool *ret_up, int64_t *ret_age_ms);

/* Whether this server follows that one. */
bool replication_follows(const struct durable *durable, const char *host, int port);

/* Limits on commands because of the role: bits of enum engine_admit_state. */
uint32_t replication_limits(const struct durable *durable);

/* ---- roles ---- */

/* REPLICAOF host port, REPLICAOF NO ONE. */
void replication_follow(struct durable *durable, const char *host, int port);
void replication_lead(struct durable *durable);
void replication_change_id(struct durable *durable); /* DEBUG CHANGE-REPL-ID */

/* ---- connections ---- */

/* The client is about to be freed. */
void replication_forget(struct client *c);

/* Sends the stream to a replica, in addition to its replies. False: the connection is broken. */
bool replica_send(struct client *c);
/* Whether a part of the stream is not sent yet. */
bool replica_pending(const struct client *c);
/* Bytes of the stream that were not sent yet; they count as output of the client. */
uint64_t replica_backlog(const struct client *c);
/* An empty line came from the replica. */
void replica_heard(struct client *c);
/* Closes the connections of all replicas: they resume or begin again. */
void replicas_disconnect(struct durable *durable);

/* Requests the offset of all replicas now, also during a pause. */
void replication_ask_acks(struct durable *durable);

/* Whether all replicas, if any, have acknowledged the whole stream. */
bool replicas_in_sync(const struct durable *durable);
/* Logs the replicas that have not acknowledged it, before the server ends. */
void replicas_report_lag(const struct durable *durable);

/* "127.0.0.1:6380": announced or seen. */
void replica_name(const struct client *c, char *dst, size_t size);

/* A snapshot on disk has ended; one may be due. */
void replicas_snapshot_saved(struct durable *durable, bool ok);
/* The child of a diskless one has ended. */
void replicas_snapshot_streamed(struct durable *durable);

/* ---- commands ---- */

DISPATCH_HANDLER(failover);
DISPATCH_HANDLER(replconf);
DISPATCH_HANDLER(role);
DISPATCH_HANDLER(sync); /* and PSYNC */

/* ---- reports ---- */

void replication_reset_stats(struct durable *durable); /* CONFIG RESETSTAT */

void info_section_replication(struct durable *durable, struct rd_buf *out);
uint64_t replication_memory(const struct durable *durable, uint64_t *ret_of_replicas);
/* Of the data set that is being loaded while the old one is served. */
uint64_t replication_beside_memory(const struct durable *durable);

#endif
