#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/loop/background.h"
#include "server/loop/daemon.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist_impl.h"
#include "server/durable/replication/replication.h"

static const char *strerror_of(const struct rd_err *err)
{
    return err->code == RD_ERR_IO && err->sys != 0 ? strerror(err->sys) : err->text;
}

static const char *working_folder(char *dst, size_t size)
{
    return getcwd(dst, size) != NULL ? dst : "unknown";
}

/* Writes a temporary file and renames it. In the child and in SAVE. */
static bool write_snapshot(struct durable *durable, struct child *child)
{
    char temp[64], folder[PERSIST_PATH];
    const char *final = durable->loop->settings.dbfilename;
    struct rd_err err = {0};
    snprintf(temp, sizeof temp, "temp-%ld.rdb", (long)getpid());
    const struct persist_file how = {.path = temp,
                                     .incremental_fsync =
                                         durable->loop->settings.rdb_save_incremental_fsync,
                                     .child = child};
    struct rd_sink *sink;
    if (!persist_file_open(&sink, &how, &err)) {
        log_warning("Failed opening the temp RDB file %s (in server root dir %s) for saving: %s",
                    temp, working_folder(folder, sizeof folder), strerror_of(&err));
        return false;
    }
    if (!persist_file_write(durable, &how, sink, &err)) {
        log_warning("Write error saving DB on disk(%.*s): %s", (int)strcspn(err.text, ":"),
                    err.text, strerror_of(&err));
        return false;
    }
    if (rename(temp, final) != 0) {
        log_warning("Error moving temp DB file %s on the final destination %s (in server root dir "
                    "%s): %s",
                    temp, final, working_folder(folder, sizeof folder), strerror(errno));
        unlink(temp);
        return false;
    }
    if (!persist_sync_folder(final)) {
        log_warning("Failed to fsync directory while saving DB: %s", strerror(errno));
        return false;
    }
    log_notice("DB saved on disk");
    return true;
}

bool persist_save(struct durable *durable)
{
    struct persist_info *info = persist_info(durable);
    if (!write_snapshot(durable, NULL))
        return false;
    persist_reset_dirty(durable, engine_stats(durable->sessions->engine)->dirty);
    info->last_save_s = persist_now_s(durable);
    persist_state(durable)->saved_at_s = persist_mono_s(durable);
    info->last_bgsave_ok = true;
    return true;
}

static void begun(struct durable *durable, int pid, bool transfers)
{
    struct persist_info *info = persist_info(durable);
    engine_hold_tables(durable->sessions->engine, true);
    persist_state(durable)->transfers = transfers;
    info->child = PERSIST_CHILD_RDB;
    info->child_pid = pid;
    info->bgsave_began_s = persist_now_s(durable);
    info->child_keys = info->cow_now = info->cow_peak = 0;
    info->child_keys_total = persist_count_keys(durable);
}

static void note_end(struct durable *durable)
{
    struct persist_info *info = persist_info(durable);
    info->rdb_last_cow = persist_state(durable)->child.report.cow;
    info->last_bgsave_took_s = persist_now_s(durable) - info->bgsave_began_s;
    info->bgsave_began_s = -1;
}

bool persist_bgsave(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    struct persist_info *info = persist_info(durable);
    if (persist_has_child(durable))
        return false;
    info->rdb_saves++;
    state->dirty_at_fork = engine_stats(durable->sessions->engine)->dirty;
    state->last_try_s = persist_mono_s(durable);
    int pid =
        child_fork(durable->loop, &state->child, "RDB", durable->loop->settings.bgsave_cpulist, -1);
    if (pid == 0) {
        daemon_title(durable->loop, "redis-rdb-bgsave");
        child_exit(&state->child, write_snapshot(durable, &state->child) ? 0 : 1);
    }
    if (pid < 0) {
        info->last_bgsave_ok = false;
        log_warning("Can't save in background: fork: %s", strerror(state->child.error));
        return false;
    }
    log_notice("Background saving started by pid %d", pid);
    snprintf(state->temp, sizeof state->temp, "temp-%d.rdb", pid);
    begun(durable, pid, false);
    return true;
}

/* ---- for replicas, without a file ---- */

bool persist_transfer(struct durable *durable, int fd, const struct repl_payload *payload,
                      enum repl_filter filter)
{
    struct persist_state *state = persist_state(durable);
    int pid =
        child_fork(durable->loop, &state->child, "RDB", durable->loop->settings.bgsave_cpulist, fd);
    if (pid == 0) {
        daemon_title(durable->loop, "redis-rdb-to-slaves");
        child_exit(&state->child,
                   persist_file_stream(durable, &state->child, fd, payload, filter) ? 0 : 1);
    }
    if (pid < 0) {
        log_warning("Can't save in background: fork: %s", strerror(state->child.error));
        return false;
    }
    log_notice("Background RDB transfer started by pid %d", pid);
    begun(durable, pid, true);
    return true;
}

bool persist_transfer_runs(const struct durable *durable)
{
    return persist_info(durable)->child == PERSIST_CHILD_RDB && persist_state(durable)->transfers;
}

bool persist_transfer_ok(const struct durable *durable)
{
    return persist_state(durable)->transfer_ok;
}

void persist_kill_transfer(struct durable *durable)
{
    if (persist_transfer_runs(durable))
        persist_kill_child(durable);
}

static void transfer_ended(struct durable *durable, int status, int by_signal)
{
    struct persist_state *state = persist_state(durable);
    state->transfers = false;
    state->transfer_ok = by_signal == 0 && status == 0;
    if (state->transfer_ok)
        log_notice("Background RDB transfer terminated with success");
    else if (by_signal == 0)
        log_warning("Background transfer error");
    else
        log_warning("Background transfer terminated by signal %d", by_signal);
    note_end(durable);
    replicas_snapshot_streamed(durable);
}

void persist_bgsave_ended(struct durable *durable, int status, int by_signal)
{
    struct persist_state *state = persist_state(durable);
    struct persist_info *info = persist_info(durable);
    if (state->transfers) {
        transfer_ended(durable, status, by_signal);
        return;
    }
    if (by_signal == 0 && status == 0) {
        log_notice("Background saving terminated with success");
        persist_reset_dirty(durable, state->dirty_at_fork);
        info->last_save_s = persist_now_s(durable);
        persist_state(durable)->saved_at_s = persist_mono_s(durable);
        info->last_bgsave_ok = true;
    } else if (by_signal == 0) {
        log_warning("Background saving error");
        info->last_bgsave_ok = false;
    } else {
        log_warning("Background saving terminated by signal %d", by_signal);
        unlink(state->temp);
        if (by_signal != SIGUSR1)
            info->last_bgsave_ok = false;
    }
    note_end(durable);
    replicas_snapshot_saved(durable, by_signal == 0 && status == 0);
}

void persist_kill_bgsave(struct durable *durable)
{
    if (persist_info(durable)->child == PERSIST_CHILD_RDB)
        persist_kill_child(durable);
}

void persist_kill_child(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    struct persist_info *info = persist_info(durable);
    int pid = info->child_pid;
    if (!persist_has_child(durable))
        return;
    child_kill(&state->child);
    persist_child_ended(durable, pid, CHILD_SILENT << 8); /* as wait() reports an exit */
}
