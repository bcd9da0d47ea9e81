/* A new base for the log, written by a child; and turning the log on and off at run time.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/loop/daemon.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist_impl.h"

static void temp_name(char *dst, size_t size, int pid)
{
    snprintf(dst, size, "temp-rewriteaof-bg-%d.aof", pid);
}

static const char *reason(const struct rd_err *err)
{
    return err->sys != 0 ? strerror(err->sys) : err->text;
}

static bool write_base(struct durable *durable, const char *temp, struct child *child,
                       struct rd_err *err)
{
    char path[PERSIST_PATH];
    const struct persist_file how = {
        .path = path,
        .base = true,
        .commands = !persist_state(durable)->base_snapshot,
        .incremental_fsync = durable->loop->settings.aof_rewrite_incremental_fsync,
        .child = child,
    };
    struct rd_sink *sink;
    return persist_log_path(durable, temp, path, sizeof path) &&
           persist_file_open(&sink, &how, err) && persist_file_write(durable, &how, sink, err);
}

bool persist_first_base(struct durable *durable, struct rd_err *err)
{
    struct persist_state *state = persist_state(durable);
    char temp[64];
    temp_name(temp, sizeof temp, (int)getpid());
    state->base_snapshot = durable->loop->settings.aof_use_rdb_preamble;
    state->quiet = true;
    bool ok = aof_writer_rewrite_begin(state->writer, err) &&
              write_base(durable, temp, NULL, err) &&
              aof_writer_rewrite_commit(state->writer, temp, state->base_snapshot, err);
    state->quiet = false;
    return ok;
}

/* ---- the child ---- */

_Noreturn static void run_child(struct durable *durable, struct child *child)
{
    char temp[64];
    struct rd_err err = {0};
    daemon_title(durable->loop, "redis-aof-rewrite");
    temp_name(temp, sizeof temp, (int)getpid());
    if (!write_base(durable, temp, child, &err)) {
        log_warning("Write error writing append only file on disk: %s", reason(&err));
        child_exit(child, 1);
    }
    log_notice("Successfully created the temporary AOF base file %s", temp);
    child_exit(child, 0);
}

/* ---- begin ---- */

static void begun(struct durable *durable, int pid)
{
    struct persist_state *state = persist_state(durable);
    struct persist_info *info = persist_info(durable);
    log_notice("Background append only file rewriting started by pid %d", pid);
    temp_name(state->temp, sizeof state->temp, pid);
    if (info->aof != PERSIST_AOF_OFF) {
        state->feeding = true;
        durable->sessions->fx.off = false;
    }
    engine_hold_tables(durable->sessions->engine, true);
    info->child = PERSIST_CHILD_AOF;
    info->child_pid = pid;
    info->rewrite_scheduled = false;
    info->rewrite_began_s = persist_now_s(durable);
    info->child_keys = 0;
    info->child_keys_total = persist_count_keys(durable);
}

static void log_new_file(struct durable *durable)
{
    const struct persist_info *info = persist_info(durable);
    const struct aof_manifest *m = aof_writer_manifest(persist_state(durable)->writer);
    const struct aof_file *incr = aof_manifest_last_incr(m);
    if (info->aof == PERSIST_AOF_WAIT_REWRITE)
        log_notice("Creating AOF incr file temp-%s.incr on background rewrite",
                   durable->loop->settings.appendfilename);
    else if (info->aof == PERSIST_AOF_ON && incr != NULL)
        log_notice("Creating AOF incr file %s on background rewrite", incr->name);
}

static bool begin_files(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    struct rd_err err = {0};
    persist_wait_sync(durable);
    if ((state->writer != NULL || persist_open_beside(durable, false, &err)) &&
        aof_writer_rewrite_begin(state->writer, &err)) {
        log_new_file(durable);
        return true;
    }
    log_warning("Can't start a new append only file: %s", reason(&err));
    return false;
}

static void end_without_log(struct durable *durable)
{
    if (persist_info(durable)->aof == PERSIST_AOF_OFF)
        persist_close_log(durable);
}

static void note_failure(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    struct persist_info *info = persist_info(durable);
    info->last_rewrite_ok = false;
    info->rewrite_failures++;
    aof_retry_failed(&state->retry, durable->loop->mono_us / 1000);
    state->limit_logged = false;
}

static void drop_files(struct durable *durable, const char *temp)
{
    struct persist_state *state = persist_state(durable);
    const struct persist_info *info = persist_info(durable);
    if (info->aof == PERSIST_AOF_WAIT_REWRITE) {
        log_notice("Removing the temp incr aof file temp-%s.incr in the background",
                   durable->loop->settings.appendfilename);
        state->feeding = false;
        persist_wait_sync(durable);
    }
    if (state->writer != NULL)
        aof_writer_rewrite_abort(state->writer, temp);
    end_without_log(durable);
}

bool persist_rewrite(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    if (persist_has_child(durable))
        return false;
    state->base_snapshot = durable->loop->settings.aof_use_rdb_preamble;
    if (!begin_files(durable)) {
        note_failure(durable);
        end_without_log(durable);
        return false;
    }
    int pid = child_fork(durable->loop, &state->child, "AOF rewrite",
                         durable->loop->settings.aof_rewrite_cpulist, -1);
    if (pid == 0)
        run_child(durable, &state->child);
    if (pid < 0) {
        log_warning("Can't rewrite append only file in background: fork: %s",
                    strerror(state->child.error));
        note_failure(durable);
        drop_files(durable, NULL);
        return false;
    }
    begun(durable, pid);
    return true;
}

/* ---- end ---- */

static void commit(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    struct persist_info *info = persist_info(durable);
    struct rd_err err = {0};
    persist_wait_sync(durable);
    if (!aof_writer_rewrite_commit(state->writer, state->temp, state->base_snapshot, &err)) {
        log_warning("Error installing the new base file of the AOF: %s", reason(&err));
        note_failure(durable);
        state->feeding = info->aof == PERSIST_AOF_ON;
        return;
    }
    if (info->aof == PERSIST_AOF_WAIT_REWRITE)
        info->aof = PERSIST_AOF_ON;
    info->rewrites++;
    info->last_rewrite_ok = true;
    aof_retry_succeeded(&state->retry);
    log_notice("Background AOF rewrite finished successfully");
}

void persist_rewrite_ended(struct durable *durable, int status, int by_signal)
{
    struct persist_state *state = persist_state(durable);
    struct persist_info *info = persist_info(durable);
    bool ok = status == 0 && by_signal == 0;
    info->aof_last_cow = state->child.report.cow;
    info->last_rewrite_took_s = persist_now_s(durable) - info->rewrite_began_s;
    info->rewrite_began_s = -1;
    if (ok) {
        log_notice("Background AOF rewrite terminated with success");
        commit(durable);
        end_without_log(durable);
    } else {
        if (by_signal == 0)
            log_warning("Background AOF rewrite terminated with error");
        else
            log_warning("Background AOF rewrite terminated by signal %d", by_signal);
        if (by_signal != SIGUSR1)
            note_failure(durable);
        drop_files(durable, state->temp);
    }
    if (info->aof == PERSIST_AOF_WAIT_REWRITE)
        info->rewrite_scheduled = true;
}

/* ---- automatic rewrites ---- */

static bool is_limited(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    int64_t now_ms = durable->loop->mono_us / 1000;
    if (aof_retry_allows(&state->retry, now_ms))
        return false;
    if (!state->limit_logged)
        log_warning("Background AOF rewrite has repeatedly failed and triggered the limit, will "
                    "retry in %" PRId64 " minutes",
                    (state->retry.not_before_ms - now_ms + 59999) / 60000);
    state->limit_logged = true;
    return true;
}

void persist_rewrite_cron(struct durable *durable)
{
    const struct persist_state *state = persist_state(durable);
    struct persist_info *info = persist_info(durable);
    if (persist_has_child(durable))
        return;
    if (info->rewrite_scheduled) {
        if (!is_limited(durable))
            persist_rewrite(durable);
        return;
    }
    if (info->aof != PERSIST_AOF_ON)
        return;
    uint64_t size = aof_writer_size(state->writer);
    uint64_t base = aof_writer_size_rewritten(state->writer);
    if (!aof_pace_rewrite(size, base, (unsigned)durable->loop->settings.auto_aof_rewrite_percentage,
                          durable->loop->settings.auto_aof_rewrite_min_size) ||
        is_limited(durable))
        return;
    base = base > 0 ? base : 1;
    log_notice("Starting automatic rewriting of AOF on %" PRIu64 "%% growth",
               size > base ? (size - base) * 100 / base : 0);
    persist_rewrite(durable);
}

/* ---- CONFIG SET appendonly ---- */

static void turn_off(struct durable *durable)
{
    struct persist_info *info = persist_info(durable);
    if (info->child == PERSIST_CHILD_AOF) {
        log_notice("Killing running AOF rewrite child: %ld", (long)info->child_pid);
        persist_kill_child(durable);
    }
    persist_flush_all(durable);
    info->aof = PERSIST_AOF_OFF;
    info->rewrite_scheduled = false;
    persist_close_log(durable);
    durable->sessions->fx.off = !durable_wants_effects(durable);
}

static bool begin_first_rewrite(struct durable *durable)
{
    struct persist_info *info = persist_info(durable);
    if (info->child == PERSIST_CHILD_RDB) {
        info->rewrite_scheduled = true;
        log_notice("AOF was enabled but there is already another background operation. An AOF "
                   "background was scheduled to start when possible.");
        return true;
    }
    if (persist_in_exec(durable)) {
        info->rewrite_scheduled = true;
        log_notice("AOF was enabled during a transaction. An AOF background was scheduled to start "
                   "when possible.");
        return true;
    }
    return persist_rewrite(durable);
}

static bool turn_on(struct durable *durable)
{
    struct persist_info *info = persist_info(durable);
    struct rd_err err = {0};
    if (info->child == PERSIST_CHILD_AOF) {
        log_notice("AOF was enabled but there is already an AOF rewriting in background. Stopping "
                   "background AOF and starting a rewrite now.");
        persist_kill_child(durable);
    }
    if (!persist_open_beside(durable, true, &err)) {
        log_warning("Can't open or create append-only dir %s: %s",
                    durable->loop->settings.appenddirname, reason(&err));
        return false;
    }
    info->aof = PERSIST_AOF_WAIT_REWRITE;
    info->last_write_ok = true;
    if (begin_first_rewrite(durable))
        return true;
    info->aof = PERSIST_AOF_OFF;
    persist_close_log(durable);
    log_warning("Redis needs to enable the AOF but can't trigger a background AOF rewrite "
                "operation. Check the above logs for more info about the error.");
    return false;
}

bool persist_set_appendonly(struct durable *durable, bool on)
{
    const struct persist_info *info = persist_info(durable);
    if (durable->sessions->loading)
        return false;
    if (on == (info->aof != PERSIST_AOF_OFF))
        return true;
    if (on)
        return turn_on(durable);
    turn_off(durable);
    return true;
}
