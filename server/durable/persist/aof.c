/* The log while the server runs: effects are written before the replies are sent. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "server/loop/background.h"
#include "server/loop/latency.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist_impl.h"

/* ---- the folder ---- */

bool persist_log_path(const struct durable *durable, const char *name, char *dst, size_t size)
{
    int len = snprintf(dst, size, "%s/%s", durable->loop->settings.appenddirname, name);
    return len > 0 && (size_t)len < size;
}

/* Two servers that write to the same log destroy each other's data. The lock ends with the process,
 * in any case; a child closes it. A process that was just killed may still hold it. */
static bool lock_log(struct durable *durable, struct rd_err *err)
{
    enum { TRIES = 20, PAUSE_US = 100 * 1000 };
    struct persist_state *state = persist_state(durable);
    int tries = durable->sessions->state == SESSIONS_RUNNING ? 1 : TRIES;
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s.lock", durable->loop->settings.appendfilename);
    int fd = state->disk.lock(state->disk.ctx, name);
    while (fd == -EWOULDBLOCK && --tries > 0) {
        usleep(PAUSE_US);
        fd = state->disk.lock(state->disk.ctx, name);
    }
    if (fd == -EWOULDBLOCK)
        return rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "another server is using the log %s",
                          durable->loop->settings.appendfilename);
    if (fd < 0)
        log_warning("Can't lock the append-only file %s: %s", name, strerror(-fd));
    state->lock_fd = fd;
    return true;
}

bool persist_open_fs(struct durable *durable, struct rd_err *err)
{
    struct persist_state *state = persist_state(durable);
    if (state->has_fs)
        return true;
    if (!rd_fs_open_posix(&state->disk, ".", durable->loop->settings.appenddirname, err))
        return false;
    if (!lock_log(durable, err)) {
        rd_fs_close_posix(&state->disk);
        return false;
    }
    persist_watch_fs(state);
    state->has_fs = true;
    return true;
}

void persist_close_fs(struct persist_state *state)
{
    if (state->has_fs) {
        if (state->lock_fd >= 0)
            close(state->lock_fd);
        rd_fs_close_posix(&state->disk);
    }
    state->has_fs = false;
}

/* ---- opening and closing ---- */

static bool open_writer(struct durable *durable, enum aof_writer_begin begin, struct rd_err *err)
{
    struct persist_state *state = persist_state(durable);
    const struct aof_writer_opts opts = {
        .name = durable->loop->settings.appendfilename,
        .begin = begin,
        .fsync = (enum aof_fsync)durable->loop->settings.appendfsync,
        .timestamps = durable->loop->settings.aof_timestamp_enabled,
        .cut = state->cut && begin == AOF_WRITER_CONTINUE,
        .cut_to = state->cut_to,
    };
    if (!persist_open_fs(durable, err) || !aof_writer_open(&state->writer, &state->fs, &opts, err))
        return false;
    state->cut = false;
    state->feeding = begin == AOF_WRITER_CONTINUE;
    aof_pace_init(&state->pace, opts.fsync, durable->loop->mono_us / 1000);
    return true;
}

static size_t count_incrs(const struct persist_state *state)
{
    const struct aof_manifest *m = aof_writer_manifest(state->writer);
    size_t n = 0;
    for (size_t i = 0; i < aof_manifest_count(m); i++)
        n += aof_manifest_file(m, i)->type == AOF_INCR;
    return n;
}

static void log_opened(struct durable *durable, bool was_there)
{
    const struct aof_file *incr =
        aof_manifest_last_incr(aof_writer_manifest(persist_state(durable)->writer));
    if (incr != NULL)
        log_notice("%s AOF incr file %s on server start", was_there ? "Opening" : "Creating",
                   incr->name);
}

/* A new log: an empty base (or one with the other records of a snapshot) and an incremental file.
 */
static bool begin_log(struct durable *durable, struct rd_err *err)
{
    if (!open_writer(durable, AOF_WRITER_FRESH, err) || !persist_first_base(durable, err))
        return false;
    persist_state(durable)->feeding = true;
    const struct aof_file *base =
        aof_manifest_base(aof_writer_manifest(persist_state(durable)->writer));
    log_notice("Creating AOF base file %s on server start", base->name);
    log_opened(durable, false);
    return true;
}

static bool continue_log(struct durable *durable, bool has_incr, struct rd_err *err)
{
    if (!open_writer(durable, AOF_WRITER_CONTINUE, err))
        return false;
    log_opened(durable, has_incr && count_incrs(persist_state(durable)) > 0);
    return true;
}

bool persist_open_log(struct durable *durable, bool has_log, bool has_incr)
{
    struct persist_info *info = persist_info(durable);
    struct rd_err err = {0};
    bool ok = has_log ? continue_log(durable, has_incr, &err) : begin_log(durable, &err);
    if (!ok) {
        log_warning("Can't open the append-only file: %s", err.text);
        return false;
    }
    info->aof = PERSIST_AOF_ON;
    info->last_write_ok = true;
    return true;
}

void persist_close_log(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    if (state->writer == NULL)
        return;
    persist_wait_sync(durable);
    struct rd_err err = {0};
    if (!aof_writer_close(state->writer, &err))
        log_warning("Fail to fsync the AOF file: %s", err.text);
    state->writer = NULL;
    state->feeding = false;
    persist_close_fs(state);
}

bool persist_open_beside(struct durable *durable, bool commands, struct rd_err *err)
{
    if (open_writer(durable, commands ? AOF_WRITER_FRESH : AOF_WRITER_BASE_ONLY, err))
        return true;
    persist_close_fs(persist_state(durable));
    return false;
}

/* ---- commands ---- */

bool persist_wants_effects(const struct durable *durable)
{
    return persist_state(durable)->feeding;
}

_Noreturn static void give_up(const struct rd_err *err)
{
    log_warning("Can't append to the AOF file: %s", err->text);
    log_panic("Cannot log a command that has already run");
}

static bool append_all(struct aof_writer *w, const struct engine_effects *fx, int64_t now_ms,
                       struct rd_err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < fx->n; i++) {
        const struct engine_effect *effect = &fx->list[i];
        if (i == fx->first && fx->transaction)
            ok = aof_writer_multi_begin(w, effect->db, now_ms, err);
        if (ok && !effect->not_for_log)
            ok = aof_writer_append(w, effect->db, effect->argv, effect->argc, now_ms, err);
    }
    return ok && (!fx->transaction || fx->first >= fx->n || aof_writer_multi_end(w, err));
}

void persist_append(struct durable *durable, const struct engine_effects *fx)
{
    struct persist_state *state = persist_state(durable);
    struct rd_err err;
    if (!state->feeding || fx->n == 0)
        return;
    err.code = RD_ERR_OK;
    err.n_doing = 0;
    if (!append_all(state->writer, fx, durable->loop->now_us / 1000, &err))
        give_up(&err);
}

/* ---- errors ---- */

static const char *reason(const struct rd_err *err)
{
    return err->sys != 0 ? strerror(err->sys) : err->text;
}

static bool may_log_error(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    int64_t now_s = durable->loop->mono_us / 1000000;
    if (state->error_logged_s != 0 && now_s - state->error_logged_s < PERSIST_LOG_ERROR_S)
        return false;
    state->error_logged_s = now_s;
    return true;
}

static bool is_always(const struct durable *durable)
{
    return durable->loop->settings.appendfsync == AOF_FSYNC_ALWAYS;
}

static void write_failed(struct durable *durable, const struct rd_err *err)
{
    if (is_always(durable)) {
        log_warning("Error writing to the AOF file: %s", reason(err));
        log_warning("Can't recover from AOF write error when the AOF fsync policy is 'always'. "
                    "Exiting...");
        exit(1);
    }
    persist_info(durable)->last_write_ok = false;
    if (!may_log_error(durable))
        return;
    log_warning("Error writing to the AOF file: %s", reason(err));
    if (aof_writer_state(persist_state(durable)->writer) == AOF_WRITER_TORN)
        log_warning("Could not remove short write from the append-only file.  Redis may refuse to "
                    "load the AOF the next time it starts.");
}

static void sync_failed(struct durable *durable, const struct rd_err *err)
{
    if (is_always(durable)) {
        log_warning("Can't persist AOF for fsync error when the AOF fsync policy is 'always': %s. "
                    "Exiting...",
                    reason(err));
        exit(1);
    }
    persist_info(durable)->last_write_ok = false;
    if (may_log_error(durable))
        log_warning("Fail to fsync the AOF file: %s", reason(err));
}

static void look_whether_healed(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    struct persist_info *info = persist_info(durable);
    if (info->last_write_ok || aof_writer_state(state->writer) != AOF_WRITER_OK)
        return;
    log_warning("AOF write error looks solved, Redis can write again.");
    info->last_write_ok = true;
    state->error_logged_s = 0;
}

/* ---- writing ---- */

/* With no-appendfsync-on-rewrite nothing is synced while a child runs, so no buffer is kept for a
 * sync. */
static enum aof_fsync policy(const struct durable *durable)
{
    if (persist_has_child(durable) && durable->loop->settings.no_appendfsync_on_rewrite)
        return AOF_FSYNC_NO;
    return (enum aof_fsync)durable->loop->settings.appendfsync;
}

static bool has_to_write(const struct aof_writer *w)
{
    return aof_writer_appended(w) > aof_writer_written(w) || aof_writer_state(w) != AOF_WRITER_OK;
}

static void write_out(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    struct rd_err err = {0};
    int64_t from = latency_begin(durable->loop);
    if (RD_UNLIKELY(durable->sessions->flush_sleep_us > 0))
        usleep((useconds_t)durable->sessions->flush_sleep_us);
    bool ok = aof_writer_flush(state->writer, &err);
    latency_end(durable->loop,
                state->syncing               ? "aof-write-pending-fsync"
                : persist_has_child(durable) ? "aof-write-active-child"
                                             : "aof-write-alone",
                from);
    latency_end(durable->loop, "aof-write", from);
    if (!ok)
        write_failed(durable, &err);
    else
        look_whether_healed(durable);
}

static bool is_time_to_write(struct durable *durable, bool force)
{
    struct persist_state *state = persist_state(durable);
    if (force)
        return true;
    enum aof_pace_write now =
        aof_pace_write(&state->pace, durable->loop->mono_us / 1000, state->syncing);
    if (now == AOF_WRITE_FORCED)
        log_notice("Asynchronous AOF fsync is taking too long (disk is busy?). Writing the AOF "
                   "buffer without waiting for fsync to complete, this may slow down Redis.");
    persist_info(durable)->delayed_fsync = state->pace.n_delayed;
    return now != AOF_WRITE_LATER;
}

/* ---- fsync ---- */

static void sync_here(struct durable *durable)
{
    struct rd_err err = {0};
    int64_t from = latency_begin(durable->loop);
    bool ok = aof_writer_sync(persist_state(durable)->writer, &err);
    latency_end(durable->loop, "aof-fsync-always", from);
    if (!ok)
        sync_failed(durable, &err);
    else
        look_whether_healed(durable);
}

static void sync_work(void *arg)
{
    struct persist_state *state = arg;
    state->sync_result = state->fs.sync(state->fs.ctx, state->sync.fd);
}

static void sync_done(void *arg)
{
    struct persist_state *state = arg;
    struct rd_err err = {0};
    state->syncing = false;
    persist_info(state->durable)->pending_fsync = false;
    if (!aof_writer_sync_end(state->writer, &state->sync, state->sync_result, &err))
        sync_failed(state->durable, &err);
    else
        look_whether_healed(state->durable);
}

static void sync_elsewhere(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    struct rd_err err = {0};
    if (!aof_writer_sync_begin(state->writer, &state->sync, &err)) {
        sync_failed(durable, &err);
        return;
    }
    state->syncing = true;
    persist_info(durable)->pending_fsync = true;
    background_run(durable->loop, BACKGROUND_FSYNC, sync_work, sync_done, state);
}

void persist_wait_sync(struct durable *durable)
{
    if (persist_state(durable)->syncing)
        background_drain(durable->loop, BACKGROUND_FSYNC);
}

static void make_durable(struct durable *durable, enum aof_fsync fsync)
{
    struct persist_state *state = persist_state(durable);
    const struct aof_writer *w = state->writer;
    bool unsynced = aof_writer_written(w) > aof_writer_durable(w) ||
                    aof_writer_state(w) == AOF_WRITER_SYNC_FAILED;
    if (!unsynced || fsync == AOF_FSYNC_NO ||
        !aof_pace_sync(&state->pace, durable->loop->mono_us / 1000, state->syncing, unsynced))
        return;
    if (fsync == AOF_FSYNC_ALWAYS)
        sync_here(durable);
    else
        sync_elsewhere(durable);
}

void persist_flush(struct durable *durable, bool force)
{
    struct persist_state *state = persist_state(durable);
    if (state->writer == NULL || !state->feeding)
        return;
    enum aof_fsync fsync = policy(durable);
    aof_writer_set_fsync(state->writer, fsync);
    if (fsync == AOF_FSYNC_ALWAYS)
        persist_wait_sync(durable);
    if (has_to_write(state->writer) && is_time_to_write(durable, force))
        write_out(durable);
    make_durable(durable, fsync);
}

bool persist_flush_all(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    struct rd_err err = {0};
    if (state->writer == NULL || !state->feeding)
        return true;
    persist_wait_sync(durable);
    if (aof_writer_flush(state->writer, &err) && aof_writer_sync(state->writer, &err))
        return true;
    log_warning("Fail to fsync the AOF file: %s.", reason(&err));
    return false;
}

void persist_before_sleep(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    if (RD_UNLIKELY(durable->sessions->loading))
        return;
    persist_refresh_dirty(durable);
    if (RD_UNLIKELY(engine_stats(durable->sessions->engine)->flushes != state->seen_flushes)) {
        state->seen_flushes = engine_stats(durable->sessions->engine)->flushes;
        persist_flushed_all(durable);
    }
    persist_flush(durable, false);
    durable->sessions->fx.off = !durable_wants_effects(durable);
}

void persist_settings_changed(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    state->pace.fsync = (enum aof_fsync)durable->loop->settings.appendfsync;
    if (state->writer == NULL)
        return;
    aof_writer_set_fsync(state->writer, policy(durable));
    aof_writer_set_timestamps(state->writer, durable->loop->settings.aof_timestamp_enabled);
    if (!durable->loop->settings.aof_disable_auto_gc && !state->syncing)
        aof_writer_delete_history(state->writer, NULL);
}

/* ---- figures ---- */

uint64_t persist_memory(const struct durable *durable)
{
    const struct aof_writer *w = persist_state(durable)->writer;
    return w != NULL ? aof_writer_kept(w) : 0;
}

uint64_t persist_aof_size(const struct durable *durable)
{
    const struct aof_writer *w = persist_state(durable)->writer;
    return w != NULL ? aof_writer_size(w) : 0;
}

uint64_t persist_aof_base_size(const struct durable *durable)
{
    const struct aof_writer *w = persist_state(durable)->writer;
    return w != NULL ? aof_writer_size_rewritten(w) : 0;
}

uint64_t persist_aof_buffered(const struct durable *durable)
{
    const struct aof_writer *w = persist_state(durable)->writer;
    return w != NULL ? aof_writer_appended(w) - aof_writer_written(w) : 0;
}
