/* persist.h - snapshots and the log: when and by which process they are written, and how writes are
 * handled after errors.
 *
 * rdb/ and aof/ handle the formats, engine/ the data. This part handles save points, child
 * processes, the flush in the loop, the start and the shutdown.
 *
 *     persist_load(srv, &err)           once, at the start
 *     persist_append(srv, fx)           after every command
 *     persist_before_sleep(srv)         writes the log, fsyncs it under `always`; before replies
 *     persist_cron(srv)                 save points, rewrites, retries
 *     persist_child_ended(srv, pid, …)  SIGCHLD
 *
 * The sources describe details where they are implemented.
 */
#ifndef SERVER_DURABLE_PERSIST_PERSIST_H
#define SERVER_DURABLE_PERSIST_PERSIST_H

#include "aof/writer.h"
#include "engine/snapshot.h"
#include "repl/master.h"
#include "server/surface/server.h"

enum persist_child { PERSIST_NO_CHILD, PERSIST_CHILD_RDB, PERSIST_CHILD_AOF };
enum persist_aof { PERSIST_AOF_OFF, PERSIST_AOF_ON, PERSIST_AOF_WAIT_REWRITE };

/* Read by INFO; written in server/durable/persist/ only. */
struct persist_info {
    bool loading, async_loading;
    int64_t loading_start_s;
    uint64_t loading_total, loading_read; /* bytes */
    uint64_t loading_used_mem;            /* of the server that wrote the snapshot; 0: unknown */
    uint64_t loaded_keys, loaded_expired; /* of the last snapshot loaded */

    uint64_t dirty; /* changes since the last snapshot */
    int64_t last_save_s;
    bool last_bgsave_ok;
    int64_t last_bgsave_took_s, bgsave_began_s; /* -1: none */
    uint64_t rdb_saves;                         /* SAVE and background saves */
    uint64_t rdb_last_cow, aof_last_cow;
    uint64_t cow_now, cow_peak;
    int64_t cow_age_s;
    uint64_t child_keys, child_keys_total;

    enum persist_aof aof;
    bool rewrite_scheduled, bgsave_scheduled;
    int64_t last_rewrite_took_s, rewrite_began_s; /* -1: none */
    bool last_rewrite_ok;
    uint64_t rewrites, rewrite_failures;
    bool last_write_ok;
    uint64_t delayed_fsync;
    bool pending_fsync;

    enum persist_child child;
    int child_pid;
};

struct persist {
    struct persist_info info;
    struct persist_state *state; /* private */
};

struct persist *persist_new(struct server *srv);
void persist_free(struct persist *persist);

/* Loads the log (appendonly yes) or the snapshot, with the log lines of redis-server, and opens the
 * log for writing. Answers clients meanwhile (-LOADING) every
 * loading-process-events-interval-bytes. False: the server must not start; the reason was
 * logged. */
bool persist_load(struct server *srv);

/* Appends the effects of a command to the log; counts changes. */
void persist_append(struct server *srv, const struct engine_effects *fx);
void persist_count_dirty(struct server *srv, uint64_t changes);

/* Returns whether effects are needed at all. */
bool persist_wants_effects(const struct server *srv);

void persist_before_sleep(struct server *srv);
void persist_cron(struct server *srv);
void persist_child_ended(struct server *srv, int pid, int status);

/* Starts a snapshot; false: logged. */
bool persist_bgsave(struct server *srv);

/* A child that writes a snapshot with its frame to a stream socket, for replicas. It ends when its
 * peer has closed the other direction: until then the transfer runs. */
struct repl_payload;
bool persist_transfer(struct server *srv, int fd, const struct repl_payload *payload,
                      enum repl_filter filter);
bool persist_transfer_runs(const struct server *srv);
bool persist_transfer_ok(const struct server *srv); /* the last one */
void persist_kill_transfer(struct server *srv);
void persist_kill_bgsave(struct server *srv);

/* NULL, or the reason why writes are refused now: "MISCONF …". */
const char *persist_refusal(const struct server *srv);

/* The work of SHUTDOWN: kills children, flushes and syncs the log, saves if `save`. False: that
 * failed (logged). */
bool persist_shutdown(struct server *srv, bool save, bool nosave, bool force);
bool persist_shutdown_prepare(struct server *srv, bool force); /* an initial rewrite is in
                                                                * progress */

/* CONFIG SET appendonly, appendfsync, …: to be called after the setting has changed. False: the
 * change could not be applied. */
bool persist_set_appendonly(struct server *srv, bool on);
void persist_settings_changed(struct server *srv);

/* FLUSHALL: kills a snapshot in progress and, with save points, writes an empty one. */
void persist_flushed_all(struct server *srv);

/* CONFIG RESETSTAT: resets the counts of snapshots and rewrites. */
void persist_reset_stats(struct server *srv);

/* DEBUG RELOAD [MERGE] [NOFLUSH] [NOSAVE]; DEBUG LOADAOF. Returns the error for the client, or
 * NULL. */
const char *persist_debug_reload(struct server *srv, bool save, bool flush, bool merge);
const char *persist_debug_loadaof(struct server *srv);

/* Memory of the log's buffers: mem_aof_buffer. */
uint64_t persist_memory(const struct server *srv);
uint64_t persist_aof_size(const struct server *srv);      /* aof_current_size */
uint64_t persist_aof_base_size(const struct server *srv); /* aof_base_size */
uint64_t persist_aof_buffered(const struct server *srv);  /* aof_buffer_length */

/* The hook of the engine for RESTORE payloads that it refuses: logs the reason. */
struct rdb_type;
void persist_refused(void *ctx, const struct rdb_type *type, const struct rd_err *err);

#endif
