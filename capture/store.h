/* store.h - the data from a master, in the folder of a capture (repl/capture_writer.h).
 *
 *     struct capture_store store;
 *     const struct capture_store_opts opts = {.path = folder, .ack = CAPTURE_ACK_WRITTEN};
 *     if (!capture_store_open(&store, &opts, &syncer, &err))
 *         ...
 *     capture_store_take(&store, &ev, now_ms, &err);      // each event of the stream
 *     capture_store_tick(&store, now_ms, &wait_ms, &err); // each turn of the loop
 *     capture_store_close(&store, &err);
 *
 * Threads: one thread at a time; fsync runs as a job on another one.
 */
#ifndef CAPTURE_STORE_H
#define CAPTURE_STORE_H

#include "base/buf.h"
#include "base/fs.h"
#include "capture/job.h"
#include "repl/capture_writer.h"
#include "repl/psync.h"

enum {
    CAPTURE_FLUSH_MS = 100, /* delay until commands are written */
    CAPTURE_SYNC_MS = 1000  /* delay until commands are synced */
};

/* What is acknowledged to the master. */
enum capture_ack { CAPTURE_ACK_RECEIVED, CAPTURE_ACK_WRITTEN, CAPTURE_ACK_SYNCED };

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

#endif
