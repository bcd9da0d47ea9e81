/* store.c - writes the data from a master to the folder of a capture.
 */
#include "capture/store.h"

#include <poll.h>

#include "capture/clock.h"

/* ---- open and close ---- */

bool capture_store_open(struct capture_store *store, const struct capture_store_opts *opts,
                        struct capture_job *syncer, struct rd_err *err)
{
    const struct repl_capture_writer_opts writer = {.segment_size = opts->segment_size,
                                                    .max_size = opts->max_size,
                                                    .run = opts->run,
                                                    .recorded = true,
                                                    .lock = opts->lock};
    *store = (struct capture_store){.syncer = syncer, .ack = opts->ack};
    store->has_fs = rd_fs_open_folder(&store->fs, opts->path, true, err);
    bool ok = store->has_fs && repl_capture_writer_open(&store->writer, &store->fs, &writer, err);
    if (!ok) {
        rd_err_origin(err, opts->path);
        store->writer = NULL;
    }
    return ok;
}

static void run_sync(void *arg)
{
    struct capture_store *store = arg;
    store->sync_result = store->sync.fd >= 0 ? store->fs.sync(store->fs.ctx, store->sync.fd) : 0;
}

static bool end_sync(struct capture_store *store, struct rd_err *err)
{
    store->syncing = false;
    return repl_capture_writer_sync_end(store->writer, &store->sync, store->sync_result, err);
}

/* The thread may still use the file. */
static bool settle_sync(struct capture_store *store, struct rd_err *err)
{
    if (!store->syncing)
        return true;
    while (!capture_job_ended(store->syncer))
        poll(NULL, 0, 1);
    return end_sync(store, err);
}

bool capture_store_close(struct capture_store *store, struct rd_err *err)
{
    bool ok = true;
    if (store->writer != NULL) {
        ok = settle_sync(store, err);
        ok = repl_capture_writer_close(store->writer, ok ? err : NULL) && ok;
    }
    store->writer = NULL;
    if (store->has_fs)
        rd_fs_close_posix(&store->fs);
    store->has_fs = false;
    rd_buf_done(&store->words);
    return ok;
}

/* ---- the position ---- */

/* Masters before 2.8 have no replication id. */
static const char no_id[] = "0000000000000000000000000000000000000000";

/* The position is the end of the written data. Complete commands must be written first: they stay
 * in the capture, and the master would send them again. */
bool capture_store_resume(struct capture_store *store, struct repl_resume *ret, struct rd_err *err)
{
    struct repl_capture_point at;
    *ret = (struct repl_resume){.offset = 0};
    if (!capture_store_flush(store, err))
        return false;
    if (repl_capture_writer_point(store->writer, &at) && strcmp(at.replid.hex, no_id) != 0)
        *ret = (struct repl_resume){at.replid, at.offset, at.db, at.in_multi};
    return true;
}

uint64_t capture_store_received(const struct capture_store *store)
{
    return repl_capture_writer_received(store->writer);
}

uint64_t capture_store_acked(const struct capture_store *store)
{
    switch (store->ack) {
    case CAPTURE_ACK_RECEIVED:
        return repl_capture_writer_received(store->writer);
    case CAPTURE_ACK_WRITTEN:
        return repl_capture_writer_written(store->writer);
    case CAPTURE_ACK_SYNCED:
    default:
        return repl_capture_writer_synced(store->writer);
    }
}

/* ---- interruptions ---- */

bool capture_store_interrupted(struct capture_store *store, int64_t since_us, int64_t now_us,
                               struct rd_err *err)
{
    return settle_sync(store, err) &&
           repl_capture_writer_interrupted(store->writer, since_us, now_us, err);
}

bool capture_store_in_time(struct capture_store *store, int64_t now_us, struct rd_err *err)
{
    return settle_sync(store, err) && repl_capture_writer_in_time(store->writer, now_us, err);
}

bool capture_store_clock(struct capture_store *store, int64_t before_us, int64_t now_us,
                         struct rd_err *err)
{
    return settle_sync(store, err) &&
           repl_capture_writer_clock(store->writer, before_us, now_us, err);
}

/* ---- events ---- */

/* A chapter may begin or end here, so the sync thread must not run. */
static bool begin(struct capture_store *store, const struct repl_event *ev, struct rd_err *err)
{
    struct repl_replid id = ev->replid;
    int64_t now_us = store->now_us;
    if (!settle_sync(store, err))
        return false;
    store->loading = ev->kind != REPL_CONTINUE;
    store->by_sync = ev->kind == REPL_SYNC;
    if (ev->kind == REPL_CONTINUE)
        return repl_capture_writer_continue(store->writer, ev->changed ? &ev->replid : NULL, now_us,
                                            err);
    if (ev->kind == REPL_SYNC)
        memcpy(id.hex, no_id, sizeof no_id);
    return repl_capture_writer_begin(store->writer, &id, ev->offset, now_us, err);
}

static bool end_snapshot(struct capture_store *store, struct rd_err *err)
{
    if (!settle_sync(store, err) ||
        !repl_capture_writer_snapshot_end(store->writer, capture_now_us(), err))
        return false;
    store->loading = false;
    return true;
}

/* Masters before 2.8 send "select 0" and "PING" as inline commands. A capture has commands as
 * arrays only. Such a master has no offsets: those of the capture are used. */
static bool append_words(struct capture_store *store, const struct resp_command *cmd,
                         struct rd_err *err)
{
    rd_buf_reset(&store->words);
    bool ok = rd_buf_printf(&store->words, "*%zu\r\n", cmd->argc);
    for (size_t i = 0; ok && i < cmd->argc; i++)
        ok = rd_buf_printf(&store->words, "$%zu\r\n", cmd->argv[i].len) &&
             rd_buf_add(&store->words, cmd->argv[i].ptr, cmd->argv[i].len) &&
             rd_buf_add(&store->words, "\r\n", 2);
    if (!ok)
        return rd_err_nomem(err, store->words.len);
    return repl_capture_writer_append(store->writer, rd_buf_slice(&store->words), store->now_us,
                                      err);
}

static bool append(struct capture_store *store, const struct repl_event *ev, uint64_t now_ms,
                   struct rd_err *err)
{
    if (store->flush_ms == 0)
        store->flush_ms = now_ms + CAPTURE_FLUSH_MS;
    store->commands += ev->kind == REPL_COMMAND;
    if (store->by_sync && ev->kind == REPL_COMMAND && ev->bytes.ptr[0] != '*')
        return append_words(store, &ev->command, err);
    return repl_capture_writer_append(store->writer, ev->bytes, store->now_us, err);
}

bool capture_store_take(struct capture_store *store, const struct repl_event *ev, uint64_t now_ms,
                        struct rd_err *err)
{
    switch (ev->kind) {
    case REPL_FULL:
    case REPL_SYNC:
    case REPL_CONTINUE:
        return begin(store, ev, err);
    case REPL_PAYLOAD:
        return repl_capture_writer_snapshot(store->writer, ev->bytes, err);
    case REPL_PAYLOAD_END:
        return end_snapshot(store, err);
    case REPL_COMMAND:
        return append(store, ev, now_ms, err);
    case REPL_KEEPALIVE:
        return ev->step != REPL_STEP_STREAM || append(store, ev, now_ms, err);
    default:
        return true;
    }
}

/* ---- time ---- */

bool capture_store_flush(struct capture_store *store, struct rd_err *err)
{
    store->flush_ms = 0;
    return repl_capture_writer_flush(store->writer, err);
}

bool capture_store_sync(struct capture_store *store, struct rd_err *err)
{
    store->flush_ms = 0;
    return settle_sync(store, err) && repl_capture_writer_sync(store->writer, err);
}

static bool begin_sync(struct capture_store *store, uint64_t now_ms, struct rd_err *err)
{
    if (!repl_capture_writer_sync_begin(store->writer, &store->sync, err))
        return false;
    store->flush_ms = 0;
    store->syncing = true;
    store->sync_wanted = false;
    store->synced_ms = now_ms;
    capture_job_start(store->syncer, run_sync, store);
    return true;
}

bool capture_store_tick(struct capture_store *store, uint64_t now_ms, uint64_t *ret_wait_ms,
                        struct rd_err *err)
{
    const struct repl_capture_writer *w = store->writer;
    if (store->syncing && capture_job_ended(store->syncer) && !end_sync(store, err))
        return false;
    if (store->flush_ms != 0 && now_ms >= store->flush_ms && !capture_store_flush(store, err))
        return false;
    bool unsafe =
        !store->loading && repl_capture_writer_received(w) > repl_capture_writer_synced(w);
    bool due = store->sync_wanted || now_ms - store->synced_ms >= CAPTURE_SYNC_MS;
    if (unsafe && due && !store->syncing && !store->syncer->busy && !begin_sync(store, now_ms, err))
        return false;
    if (store->flush_ms != 0)
        capture_sooner(ret_wait_ms, store->flush_ms - now_ms);
    if (store->syncing || (unsafe && due))
        capture_sooner(ret_wait_ms, 10);
    else if (unsafe)
        capture_sooner(ret_wait_ms, store->synced_ms + CAPTURE_SYNC_MS - now_ms);
    return true;
}
