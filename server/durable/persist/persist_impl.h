/* persist_impl.h - shared by the parts of persistence; private to this folder and to
 * server/surface/cmd/persist.c.
 *
 *     persist.c           state, dirt, save points, refusals, the end
 *     rdb.c        SAVE, BGSAVE
 *     file.c       a snapshot or a base, written to a file
 *     load.c       loading at the start: the choice of files, and the log lines
 *     load_log.c   replaying the log
 *     aof.c        the log while the server runs
 *     rewrite.c    BGREWRITEAOF
 */
#ifndef SERVER_DURABLE_PERSIST_PERSIST_IMPL_H
#define SERVER_DURABLE_PERSIST_PERSIST_IMPL_H

#include "server/loop/child.h"
#include "server/durable/persist/persist.h"
#include "server/durable/replication/replication.h"

enum {
    PERSIST_BGSAVE_RETRY_S = 5, /* delay of a save point after a failed BGSAVE */
    PERSIST_LOG_ERROR_S = 30,   /* at most one log line about a full disk in this time */
    PERSIST_PATH = 512
};

struct persist_state {
    struct durable *durable;

    /* Changes that are not in the last snapshot. */
    uint64_t dirty_base;    /* changes counted by the engine at that time */
    uint64_t dirty_at_fork; /* … at the start of the snapshot in progress */
    int64_t last_try_s;     /* the last BGSAVE, by persist_mono_s() */
    int64_t saved_at_s;     /* the last snapshot, by persist_mono_s() */
    uint64_t seen_flushes;  /* number of FLUSHALLs before the snapshot */

    /* The log. */
    struct rd_fs fs;   /* of the server: closes files in the background */
    struct rd_fs disk; /* the folder of the log, without that */
    bool quiet;        /* do not log the first base of a start as a rewrite */
    bool has_fs;
    int lock_fd;               /* while has_fs: of the lock of this log; -1: cannot be locked */
    struct aof_writer *writer; /* NULL: not open */
    bool feeding;              /* commands are appended to it */
    bool postponed;            /* a write waits for the previous fsync */
    struct aof_pace pace;
    struct aof_retry retry;
    bool limit_logged;
    bool syncing; /* an fsync runs in the background */
    struct aof_sync sync;
    int sync_result;
    int64_t error_logged_s; /* when the last error of the log was logged */
    bool has_incr;          /* the log at the start has a file of commands */
    bool cut;               /* the start found an incomplete end */
    uint64_t cut_to;

    /* The child. */
    struct child child;
    char temp[64];      /* the file that it writes */
    bool base_snapshot; /* a base: as a snapshot */
    bool killed;        /* killed by the server: do not log it */
    bool transfers;     /* the snapshot goes to replicas, not to a file */
    bool transfer_ok;   /* the last one that did */

    bool may_run_loop; /* loading at the start: clients are answered meanwhile */
    uint64_t next_events_at;
    unsigned empty_logged; /* empty collections */

    /* The snapshot at the start: its position in a history, and expired keys that were dropped. */
    struct replication_place place;
    struct engine_effects dropped;
    struct engine_effects *reload_fx; /* the same of DEBUG RELOAD */
};

static inline struct persist_state *persist_state(const struct durable *durable)
{
    return durable->persist->state;
}

static inline struct persist_info *persist_info(const struct durable *durable)
{
    return &durable->persist->info;
}

static inline int64_t persist_now_s(const struct durable *durable)
{
    return durable->loop->now_us / 1000000;
}

/* Times of a clock that is never set. */
static inline int64_t persist_mono_s(const struct durable *durable)
{
    return durable->loop->mono_us / 1000000;
}

static inline bool persist_has_child(const struct durable *durable)
{
    return persist_info(durable)->child != PERSIST_NO_CHILD;
}

/* In EXEC no child is forked. */
bool persist_in_exec(const struct durable *durable);

/* info.dirty: changes counted by the engine since the last snapshot. */
void persist_refresh_dirty(struct durable *durable);
void persist_reset_dirty(struct durable *durable, uint64_t counted);

uint64_t persist_count_keys(struct durable *durable);

/* Microseconds, as in key-load-delay and rdb-key-save-delay; below 0: one microsecond per that many
 * keys, on average. */
void persist_delay(int64_t us);

/* ---- file.c  ---- */

struct persist_file {
    const char *path;
    bool base;              /* of a log */
    bool commands;          /* RESP instead of a snapshot; only of a base */
    bool incremental_fsync; /* sync regularly while writing, not only at the end */
    struct child *child;    /* receives the progress; NULL: none */
    enum repl_filter filter;
};

bool persist_file_open(struct rd_sink **ret, const struct persist_file *how, struct rd_err *err);

/* Writes the data set to the file and makes it durable; removes the file after a failure. Takes
 * ownership of the sink in any case. */
bool persist_file_write(struct durable *durable, const struct persist_file *how,
                        struct rd_sink *sink, struct rd_err *err);
bool persist_sync_folder(const char *path);

/* In a child: writes the snapshot with its frame to a socket, and waits until it was read. */
bool persist_file_stream(struct durable *durable, struct child *child, int fd,
                         const struct repl_payload *payload, enum repl_filter filter);

/* ---- rdb.c  ---- */

bool persist_save(struct durable *durable); /* SAVE */
void persist_bgsave_ended(struct durable *durable, int status, int by_signal);
void persist_kill_child(struct durable *durable); /* any child; waits for its end */

/* ---- load.c  ---- */

/* REFUSED: not a known file type or version. DAMAGED: a value that servers do not write. */
enum persist_loaded {
    PERSIST_LOADED,
    PERSIST_NOTHING,
    PERSIST_FAILED,
    PERSIST_REFUSED,
    PERSIST_DAMAGED
};

enum persist_loaded persist_load_snapshot(struct durable *durable, const char *path, bool merge);
enum persist_loaded persist_load_log(struct durable *durable);

void persist_loading_begin(struct durable *durable, uint64_t bytes);
void persist_loading_end(struct durable *durable);
/* `read` bytes have been read so far: answers clients if it is time. */
void persist_loading_at(struct durable *durable, uint64_t read);

/* Logs the AUX fields of a snapshot; opens and closes path. */
void persist_report_aux(struct durable *durable, const char *path);
/* Logs one AUX field. */
void persist_report_aux_field(struct durable *durable, struct rd_slice name, struct rd_slice value);
/* Runs a loader to the end of its input. */
bool persist_load_steps(struct durable *durable, struct engine_loader *loader, uint64_t before,
                        struct rd_err *err);
void persist_load_opts(struct durable *durable, struct engine_load_opts *ret);
void persist_report_loaded(const struct engine_load_info *info);
enum persist_loaded persist_report_rdb_error(const struct rd_err *err);
bool persist_empty(struct durable *durable); /* removes all keys */
bool persist_empty_as(struct durable *durable, bool lazily);

/* ---- aof.c  ---- */

bool persist_log_path(const struct durable *durable, const char *name, char *dst, size_t size);
bool persist_open_fs(struct durable *durable, struct rd_err *err);
void persist_close_fs(struct persist_state *state);

/* log_fs.c: makes state->fs from state->disk. */
void persist_watch_fs(struct persist_state *state);
/* At the start: continues the log, or begins one; has_incr: it has a file of commands. */
bool persist_open_log(struct durable *durable, bool has_log, bool has_incr);
/* Opens a log that becomes valid with its first rewrite: see AOF_WRITER_FRESH. */
bool persist_open_beside(struct durable *durable, bool commands, struct rd_err *err);
void persist_close_log(struct durable *durable);
/* Writes the buffer; force: even if an fsync is running. */
void persist_flush(struct durable *durable, bool force);
/* The same, and waits until it is durable. */
bool persist_flush_all(struct durable *durable);
void persist_wait_sync(struct durable *durable);

/* ---- rewrite.c  ---- */

bool persist_rewrite(struct durable *durable); /* False: logged */
void persist_rewrite_ended(struct durable *durable, int status, int by_signal);
void persist_rewrite_cron(struct durable *durable);
/* Writes the first base of a log without files now, in this process. */
bool persist_first_base(struct durable *durable, struct rd_err *err);

#endif
