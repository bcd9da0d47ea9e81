/* persist.h - snapshots and the log: when and by which process they are written, and how writes are
 * handled after errors.
 *
 * rdb/ and aof/ handle the formats, engine/ the data. This part handles save points, child
 * processes, the flush in the loop, the start and the shutdown.
 *
 *     persist_load(durable)             once, at the start
 *     persist_append(durable, fx)       after every command
 *     persist_before_sleep(durable)     writes the log, fsyncs it under `always`; before replies
 *     persist_cron(durable)             save points, rewrites, retries
 *     persist_child_ended(durable, pid, …)  SIGCHLD
 *
 * The sources describe details where they are implemented.
 */
#ifndef SERVER_DURABLE_PERSIST_PERSIST_H
#define SERVER_DURABLE_PERSIST_PERSIST_H

#include "aof/writer.h"
#include "engine/snapshot.h"
#include "repl/master.h"
#include "server/durable/durable.h"

enum persist_child { PERSIST_NO_CHILD, PERSIST_CHILD_RDB, PERSIST_CHILD_AOF };
enum persist_aof { PERSIST_AOF_OFF, PERSIST_AOF_ON, PERSIST_AOF_WAIT_REWRITE };

/* Read by INFO; written in server/durable/persist/ only. */
struct persist_info {
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

struct persist *persist_new(struct durable *durable);
void persist_free(struct persist *persist);

/* Loads the log (appendonly yes) or the snapshot, with the log lines of redis-server, and opens the
 * log for writing. Answers clients meanwhile (-LOADING) every
 * loading-process-events-interval-bytes. False: the server must not start; the reason was
 * logged. */
bool persist_load(struct durable *durable);

/* Appends the effects of a command to the log; counts changes. */
void persist_append(struct durable *durable, const struct engine_effects *fx);
void persist_count_dirty(struct durable *durable, uint64_t changes);

/* Returns whether effects are needed at all. */
bool persist_wants_effects(const struct durable *durable);

void persist_before_sleep(struct durable *durable);
void persist_cron(struct durable *durable);
void persist_child_ended(struct durable *durable, int pid, int status);

/* Starts a snapshot; false: logged. */
bool persist_bgsave(struct durable *durable);

/* A child that writes a snapshot with its frame to a stream socket, for replicas. It ends when its
 * peer has closed the other direction: until then the transfer runs. */
struct repl_payload;
bool persist_transfer(struct durable *durable, int fd, const struct repl_payload *payload,
                      enum repl_filter filter);
bool persist_transfer_runs(const struct durable *durable);
bool persist_transfer_ok(const struct durable *durable); /* the last one */
void persist_kill_transfer(struct durable *durable);
void persist_kill_bgsave(struct durable *durable);

/* NULL, or the reason why writes are refused now: "MISCONF …". */
const char *persist_refusal(const struct durable *durable);

/* The work of SHUTDOWN: kills children, flushes and syncs the log, saves if `save`. False: that
 * failed (logged). */
bool persist_shutdown(struct durable *durable, bool save, bool nosave, bool force);
bool persist_shutdown_prepare(struct durable *durable, bool force); /* an initial rewrite is in
                                                                * progress */

/* CONFIG SET appendonly, appendfsync, …: to be called after the setting has changed. False: the
 * change could not be applied. */
bool persist_set_appendonly(struct durable *durable, bool on);
void persist_settings_changed(struct durable *durable);

/* FLUSHALL: kills a snapshot in progress and, with save points, writes an empty one. */
void persist_flushed_all(struct durable *durable);

/* CONFIG RESETSTAT: resets the counts of snapshots and rewrites. */
void persist_reset_stats(struct durable *durable);

/* DEBUG RELOAD [MERGE] [NOFLUSH] [NOSAVE]; DEBUG LOADAOF. Returns the error for the client, or
 * NULL. fx receives the deletion of expired keys, which a master does not load. */
const char *persist_debug_reload(struct durable *durable, bool save, bool flush, bool merge,
                                 struct engine_effects *fx);
const char *persist_debug_loadaof(struct durable *durable);

/* Memory of the log's buffers: mem_aof_buffer. */
uint64_t persist_memory(const struct durable *durable);
uint64_t persist_aof_size(const struct durable *durable);      /* aof_current_size */
uint64_t persist_aof_base_size(const struct durable *durable); /* aof_base_size */
uint64_t persist_aof_buffered(const struct durable *durable);  /* aof_buffer_length */

/* The hook of the engine for RESTORE payloads that it refuses: logs the reason. */
struct rdb_type;
void persist_refused(const struct rdb_type *type, const struct rd_err *err);

#endif
