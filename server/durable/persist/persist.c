#include "server/durable/persist/persist.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "engine/db.h"
#include "server/session/client/client.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist_impl.h"

/* ---- life ---- */

struct persist *persist_new(struct durable *durable)
{
    struct persist *persist = rd_calloc(1, sizeof *persist);
    struct persist_state *state = rd_calloc(1, sizeof *state);
    if (persist == NULL || state == NULL) {
        log_warning("Out of memory");
        abort();
    }
    state->durable = durable;
    state->child.fd = -1;
    state->saved_at_s = persist_mono_s(durable);
    persist->state = state;
    persist->info = (struct persist_info){
        .last_save_s = durable->loop->now_us / 1000000,
        .last_bgsave_ok = true,
        .last_bgsave_took_s = -1,
        .bgsave_began_s = -1,
        .last_rewrite_took_s = -1,
        .rewrite_began_s = -1,
        .last_rewrite_ok = true,
        .last_write_ok = true,
    };
    return persist;
}

void persist_free(struct persist *persist)
{
    if (persist == NULL)
        return;
    struct persist_state *state = persist->state;
    child_kill(&state->child);
    if (state->child.fd >= 0)
        child_reap(&state->child, 0);
    aof_writer_abort(state->writer);
    persist_close_fs(state);
    rd_free(state);
    rd_free(persist);
}

/* ---- shared by the parts ---- */

bool persist_in_exec(const struct durable *durable)
{
    return durable->sessions->current != NULL && durable->sessions->current->session.in_exec;
}

void persist_refresh_dirty(struct durable *durable)
{
    persist_info(durable)->dirty =
        engine_stats(durable->sessions->engine)->dirty - persist_state(durable)->dirty_base;
}

void persist_reset_dirty(struct durable *durable, uint64_t counted)
{
    persist_state(durable)->dirty_base = counted;
    persist_refresh_dirty(durable);
}

/* In addition to those that the engine counts. */
void persist_count_dirty(struct durable *durable, uint64_t changes)
{
    persist_state(durable)->dirty_base -= changes;
    persist_refresh_dirty(durable);
}

uint64_t persist_count_keys(struct durable *durable)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < engine_config(durable->sessions->engine)->databases; i++)
        n += engine_db_count(engine_db(durable->sessions->engine, i));
    return n;
}

/* ---- refusing writes ---- */

static const char *const refused_for_rdb =
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "
    "disk. Commands that may modify the data set are disabled, because this instance is configured "
    "to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error "
    "option). Please check the Redis logs for details about the RDB error.";

static const char *refused_for_log(const struct aof_writer *writer)
{
    static char text[256];
    const struct rd_err *err = aof_writer_err(writer);
    snprintf(text, sizeof text, "MISCONF Errors writing to the AOF file: %.200s",
             err->sys != 0 ? strerror(err->sys) : err->text);
    return text;
}

const char *persist_refusal(const struct durable *durable)
{
    const struct persist_info *info = persist_info(durable);
    const struct aof_writer *writer = persist_state(durable)->writer;
    if (durable->loop->settings.stop_writes_on_bgsave_error && durable->loop->settings.n_save > 0 &&
        !info->last_bgsave_ok)
        return refused_for_rdb;
    if (info->aof != PERSIST_AOF_OFF && writer != NULL && !info->last_write_ok)
        return refused_for_log(writer);
    return NULL;
}

/* ---- time ---- */

static bool may_try_again(const struct durable *durable)
{
    return persist_info(durable)->last_bgsave_ok ||
           persist_mono_s(durable) - persist_state(durable)->last_try_s > PERSIST_BGSAVE_RETRY_S;
}

static void look_at_save_points(struct durable *durable)
{
    const struct persist_info *info = persist_info(durable);
    for (size_t i = 0; i < durable->loop->settings.n_save; i++) {
        const struct settings_save *point = &durable->loop->settings.save[i];
        if (info->dirty < (uint64_t)point->changes || info->dirty == 0 ||
            persist_mono_s(durable) - persist_state(durable)->saved_at_s <= point->seconds ||
            !may_try_again(durable))
            continue;
        log_notice("%lld changes in %lld seconds. Saving...", (long long)point->changes,
                   (long long)point->seconds);
        persist_bgsave(durable);
        return;
    }
}

static void follow_child(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    struct persist_info *info = persist_info(durable);
    child_poll(&state->child, durable->loop->mono_us);
    info->child_keys = state->child.report.keys;
    info->cow_now = state->child.report.cow;
    info->cow_peak = state->child.report.cow_peak;
    info->cow_age_s = state->child.reported_us > 0
                          ? (durable->loop->mono_us - state->child.reported_us) / 1000000
                          : 0;
}

void persist_cron(struct durable *durable)
{
    struct persist_info *info = persist_info(durable);
    if (durable->sessions->loading)
        return;
    persist_refresh_dirty(durable);
    persist_rewrite_cron(durable);
    if (persist_has_child(durable))
        follow_child(durable);
    else
        look_at_save_points(durable);
    if (info->bgsave_scheduled && !persist_has_child(durable) && may_try_again(durable) &&
        persist_bgsave(durable))
        info->bgsave_scheduled = false;
    if (info->aof != PERSIST_AOF_OFF)
        persist_flush(durable, false);
}

void persist_child_ended(struct durable *durable, int pid, int status)
{
    struct persist_state *state = persist_state(durable);
    struct persist_info *info = persist_info(durable);
    int by_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    enum persist_child was = info->child;
    if (was == PERSIST_NO_CHILD || pid != info->child_pid)
        return;
    if (code == CHILD_SILENT)
        by_signal = SIGUSR1;
    child_reap(&state->child, durable->loop->mono_us);
    engine_hold_tables(durable->sessions->engine, false);
    info->child = PERSIST_NO_CHILD;
    info->child_pid = 0;
    if (was == PERSIST_CHILD_RDB)
        persist_bgsave_ended(durable, code, by_signal);
    else
        persist_rewrite_ended(durable, code, by_signal);
    info->child_keys = info->child_keys_total = 0;
    info->cow_now = info->cow_peak = 0;
}

/* ---- the end ---- */

bool persist_shutdown_prepare(struct durable *durable, bool force)
{
    if (persist_info(durable)->aof != PERSIST_AOF_WAIT_REWRITE)
        return true;
    if (force) {
        log_warning("Writing initial AOF. Exit anyway.");
        return true;
    }
    log_warning("Writing initial AOF, can't exit");
    return false;
}

static void kill_for_end(struct durable *durable)
{
    const struct persist_info *info = persist_info(durable);
    if (info->child == PERSIST_CHILD_RDB)
        log_warning("There is a child saving an .rdb. Killing it!");
    if (info->child == PERSIST_CHILD_AOF)
        log_warning("There is a child rewriting the AOF. Killing it!");
    persist_kill_child(durable);
}

bool persist_shutdown(struct durable *durable, bool save, bool nosave, bool force)
{
    const struct persist_info *info = persist_info(durable);
    if (!persist_shutdown_prepare(durable, force))
        return false;
    kill_for_end(durable);
    if (info->aof != PERSIST_AOF_OFF) {
        log_notice("Calling fsync() on the AOF file.");
        persist_flush_all(durable);
    }
    if (!save && (durable->loop->settings.n_save == 0 || nosave))
        return true;
    log_notice("Saving the final RDB snapshot before exiting.");
    if (persist_save(durable))
        return true;
    log_warning(force ? "Error trying to save the DB. Exit anyway."
                      : "Error trying to save the DB, can't exit.");
    return force;
}

void persist_reset_stats(struct durable *durable)
{
    persist_info(durable)->rdb_saves = 0;
    persist_info(durable)->rewrites = 0;
}

void persist_flushed_all(struct durable *durable)
{
    if (persist_info(durable)->child == PERSIST_CHILD_RDB)
        persist_kill_child(durable);
    if (durable->loop->settings.n_save > 0)
        persist_save(durable);
}
