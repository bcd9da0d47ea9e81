/* Loading at the start: the log, or the snapshot. If a file cannot be used, the process ends: it
 * must not continue with less data than before. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "engine/db.h"
#include "engine/script.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist_impl.h"

enum { STEP_KEYS = 512, WINDOW = 1024 * 1024, AUX_MAX = 64, EMPTY_LOGGED = 10 };

/* ---- clients meanwhile ---- */

void persist_loading_begin(struct durable *durable, uint64_t bytes)
{
    struct persist_info *info = persist_info(durable);
    durable->sessions->loading = true;
    info->loading_start_s = persist_now_s(durable);
    info->loading_total = bytes;
    info->loading_read = 0;
    persist_state(durable)->next_events_at =
        (uint64_t)durable->loop->settings.loading_process_events_interval_bytes;
}

void persist_loading_end(struct durable *durable)
{
    durable->sessions->loading = false;
    durable->sessions->async_loading = false;
    persist_info(durable)->loading_used_mem = 0;
}

void persist_loading_at(struct durable *durable, uint64_t read)
{
    struct persist_state *state = persist_state(durable);
    struct persist_info *info = persist_info(durable);
    if (read < state->next_events_at)
        return;
    info->loading_read = read;
    state->next_events_at =
        read + (uint64_t)durable->loop->settings.loading_process_events_interval_bytes;
    loop_clock(durable->loop);
    /* Clients wait for DEBUG RELOAD. */
    if (state->may_run_loop)
        sessions_turn_meanwhile(durable->sessions);
}

/* ---- log lines about a snapshot ---- */

static void log_aux_field(const char *name, const char *value)
{
    if (strcmp(name, "redis-ver") == 0) {
        log_notice("Loading RDB produced by version %s", value);
    } else if (strcmp(name, "ctime") == 0) {
        long long age = (long long)time(NULL) - strtoll(value, NULL, 10);
        log_notice("RDB age %lld seconds", age > 0 ? age : 0);
    } else if (strcmp(name, "used-mem") == 0) {
        log_notice("RDB memory usage when created %.2f Mb",
                   (double)strtoll(value, NULL, 10) / (1024 * 1024));
    } else if (strcmp(name, "aof-base") == 0 && strtoll(value, NULL, 10) != 0) {
        log_notice("RDB is base AOF");
    }
}

void persist_report_aux_field(struct durable *durable, struct rd_slice name, struct rd_slice value)
{
    char name_text[AUX_MAX], text[AUX_MAX];
    snprintf(name_text, sizeof name_text, "%.*s", (int)(name.len < AUX_MAX ? name.len : 0),
             (const char *)name.ptr);
    snprintf(text, sizeof text, "%.*s", (int)(value.len < AUX_MAX ? value.len : 0),
             (const char *)value.ptr);
    if (strcmp(name_text, "used-mem") == 0)
        persist_info(durable)->loading_used_mem = strtoull(text, NULL, 10);
    log_aux_field(name_text, text);
}

static void log_aux(struct durable *durable, const struct rdb_event *ev)
{
    char value[AUX_MAX];
    const struct rdb_string *s = &ev->aux.value;
    if (!s->first || s->more)
        return;
    if (s->is_int)
        snprintf(value, sizeof value, "%" PRId64, s->num);
    else
        snprintf(value, sizeof value, "%.*s", (int)(s->len < AUX_MAX ? s->len : 0),
                 (const char *)s->ptr);
    persist_report_aux_field(durable, ev->aux.name, rd_slice_str(value));
}

void persist_report_aux(struct durable *durable, const char *path)
{
    struct rd_src *src;
    struct rdb_reader *reader;
    struct rdb_event ev;
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES, .no_sum = true);
    if (!rd_src_open_file(&src, path, &RD_SRC_OPTS(.window = 4096), NULL))
        return;
    if (rdb_reader_new(&reader, src, &opts, NULL)) {
        while (rdb_reader_next(reader, &ev) == RDB_EVENT &&
               (ev.kind == RDB_HEADER || ev.kind == RDB_AUX))
            if (ev.kind == RDB_AUX)
                log_aux(durable, &ev);
        rdb_reader_free(reader);
    }
    rd_src_close(src);
}

void persist_report_loaded(const struct engine_load_info *info)
{
    if (info->empty > 0)
        log_notice("Done loading RDB, keys loaded: %" PRIu64 ", keys expired: %" PRIu64
                   ", empty keys skipped: %" PRIu64 ".",
                   info->keys, info->expired, info->empty);
    else
        log_notice("Done loading RDB, keys loaded: %" PRIu64 ", keys expired: %" PRIu64 ".",
                   info->keys, info->expired);
}

static void log_internal_error(const struct rd_err *err, const char *text)
{
    log_warning("Internal error in RDB reading offset %" PRIu64
                ", function at rdb_reader_next -> %s",
                err->offset == RD_NO_OFFSET ? 0 : err->offset, text);
}

/* Details for the operator: the position, and how to recover. */
static void log_error_details(const struct rd_err *err)
{
    if (err->inner != RD_NO_OFFSET)
        log_warning("[additional info] The integrity check failed at byte %" PRIu64
                    " of the packed value",
                    err->inner);
    for (unsigned i = 0; i < err->n_doing; i++)
        log_warning("[additional info] While reading %s", err->doing[i]);
    if (err->origin[0] == '\0')
        return; /* it came from a socket */
    log_warning("'redoubt check-rdb %s' reports all errors in the file; with --salvage FILE it "
                "saves every intact key.",
                err->origin);
}

/* The texts are those that programs look for. */
enum persist_loaded persist_report_rdb_error(const struct rd_err *err)
{
    char line[512];
    const uint64_t *args = err->reason.args;
    rd_err_render(err, line, sizeof line);
    switch (err->code) {
    case RD_ERR_TRUNCATED:
        log_warning("Short read or OOM loading DB. Unrecoverable error, aborting now.");
        log_internal_error(err, "Unexpected EOF reading RDB file");
        log_warning("[additional info] %s", line);
        log_error_details(err);
        return PERSIST_FAILED;
    case RD_ERR_CHECKSUM:
        log_warning("Wrong RDB checksum expected: (%" PRIx64 ") but got (%" PRIx64
                    "). Aborting now.",
                    args[1], args[0]);
        log_internal_error(err, "RDB CRC error");
        log_error_details(err);
        return PERSIST_FAILED;
    case RD_ERR_UNSUPPORTED:
        if (err->reason.id == RDB_REASON_VERSION) {
            log_warning("Can't handle RDB format version %d", (int)args[0]);
            return PERSIST_REFUSED;
        }
        if (err->reason.id == RDB_REASON_TYPE)
            snprintf(line, sizeof line, "Unknown RDB encoding type %" PRIu64, args[0]);
        break;
    case RD_ERR_CORRUPT:
        if (err->offset != 0)
            break;
        log_warning("Wrong signature trying to load DB from file");
        return PERSIST_REFUSED;
    case RD_ERR_LIMIT:
        if (err->reason.id == RDB_REASON_DB)
            log_warning("FATAL: Data file was created with a Redis server configured to handle "
                        "more than %" PRIu64 " databases. Exiting",
                        args[1]);
        break;
    default:
        break;
    }
    bool damaged = err->code == RD_ERR_CORRUPT;
    if (damaged && err->inner != RD_NO_OFFSET)
        log_internal_error(err, "Packed value integrity check failed.");
    log_internal_error(err, line);
    if (damaged)
        log_error_details(err);
    return damaged ? PERSIST_DAMAGED : PERSIST_FAILED;
}

/* ---- steps ---- */

static void on_empty(void *ctx, struct rd_slice key)
{
    char text[128];
    struct persist_state *state = ctx;
    if (state->empty_logged++ >= EMPTY_LOGGED)
        return;
    rd_err_quote(text, sizeof text, key);
    size_t len = strlen(text);
    log_notice("rdbLoadObject skipping empty key: %.*s", (int)(len >= 2 ? len - 2 : 0), text + 1);
}

void persist_load_opts(struct durable *durable, struct engine_load_opts *ret)
{
    struct persist_state *state = persist_state(durable);
    state->empty_logged = 0;
    *ret = (struct engine_load_opts){
        .no_sum = !durable->loop->settings.rdbchecksum || durable->skip_checksum,
        .no_aux = true,
        .on_empty = on_empty,
        .ctx = state,
    };
}

bool persist_load_steps(struct durable *durable, struct engine_loader *loader, uint64_t before,
                        struct rd_err *err)
{
    const struct engine_load_info *info = engine_loader_info(loader);
    int64_t delay = durable->loop->settings.key_load_delay;
    for (;;) {
        enum rdb_status status = engine_loader_step(loader, delay != 0 ? 1 : STEP_KEYS, err);
        if (delay != 0)
            persist_delay(delay);
        persist_loading_at(durable, before + info->offset);
        delay = durable->loop->settings.key_load_delay;
        if (status != RDB_EVENT)
            return status == RDB_END;
    }
}

/* ---- a snapshot ---- */

static void on_aux(void *ctx, struct rd_slice name, struct rd_slice value)
{
    struct persist_state *state = ctx;
    replication_place_read(&state->place, name, value);
}

/* Replicas that resume after the restart of their master still have such keys; the log and all
 * replicas have them after DEBUG RELOAD. */
static void on_expired(void *ctx, unsigned db, struct rd_slice key)
{
    struct persist_state *state = ctx;
    const struct rd_slice argv[] = {rd_slice_str("DEL"), key};
    if (state->reload_fx != NULL)
        engine_effects_add(state->reload_fx, db, 2, argv);
    else if (repl_replid_is_set(&state->place.id))
        engine_effects_add(&state->dropped, db, 2, argv);
}

static bool load_source(struct durable *durable, struct rd_src *src, bool merge, struct rd_err *err)
{
    struct persist_info *info = persist_info(durable);
    struct engine_load_opts opts;
    struct engine_env env = session_env(durable->sessions);
    struct engine_loader *loader;
    struct persist_state *state = persist_state(durable);
    persist_load_opts(durable, &opts);
    opts.merge = merge;
    opts.keep_expired = durable->loop->settings.replicaof_host != NULL;
    if (durable->sessions->state == SESSIONS_LOADING) {
        state->place = (struct replication_place){.offset = -1};
        opts.on_aux = on_aux;
    }
    if (durable->sessions->state == SESSIONS_LOADING || state->reload_fx != NULL)
        opts.on_expired = on_expired;
    if (!engine_loader_new(&loader, durable->sessions->engine, src, &opts, &env, err))
        return false;
    bool ok = persist_load_steps(durable, loader, 0, err);
    info->loaded_keys = engine_loader_info(loader)->keys;
    info->loaded_expired = engine_loader_info(loader)->expired;
    if (ok)
        persist_report_loaded(engine_loader_info(loader));
    engine_loader_free(loader);
    return ok;
}

enum persist_loaded persist_load_snapshot(struct durable *durable, const char *path, bool merge)
{
    struct stat st;
    struct rd_src *src;
    struct rd_err err = {0};
    if (stat(path, &st) != 0 && errno == ENOENT)
        return PERSIST_NOTHING;
    if (!rd_src_open_file(&src, path, &RD_SRC_OPTS(.window = WINDOW), &err)) {
        log_warning("Fatal error: can't open the RDB file %s for reading: %s", path,
                    strerror(err.sys));
        return PERSIST_FAILED;
    }
    persist_report_aux(durable, path);
    persist_loading_begin(durable, rd_src_size(src) == RD_NO_OFFSET ? 0 : rd_src_size(src));
    bool ok = load_source(durable, src, merge, &err);
    persist_loading_end(durable);
    rd_src_close(src);
    return ok ? PERSIST_LOADED : persist_report_rdb_error(&err);
}

static void continue_history(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    replication_restored(durable, &state->place);
    replication_append(durable, &state->dropped);
    engine_effects_done(&state->dropped);
}

static bool start_from_snapshot(struct durable *durable)
{
    int64_t from = durable->loop->mono_us;
    switch (persist_load_snapshot(durable, durable->loop->settings.dbfilename, false)) {
    case PERSIST_LOADED:
        loop_clock(durable->loop);
        log_notice("DB loaded from disk: %.3f seconds",
                   (double)(durable->loop->mono_us - from) / 1e6);
        continue_history(durable);
        return true;
    case PERSIST_NOTHING:
        return true;
    case PERSIST_REFUSED:
        log_warning("Fatal error loading the DB: Invalid argument. Exiting.");
        return false;
    case PERSIST_DAMAGED:
        log_warning("Terminating server after rdb file reading failure.");
        return false;
    default:
        return false;
    }
}

static bool run_flush(struct durable *durable, size_t argc, const struct rd_slice *argv)
{
    struct engine_env env = session_env(durable->sessions);
    struct engine_session session;
    struct engine_reply reply = {.proto = 2, .off = true};
    struct engine_effects fx = {.off = true};
    engine_session_init(&session, durable->sessions->engine, ENGINE_LOADING);
    enum engine_status status =
        engine_apply(durable->sessions->engine, &session, argc, argv, &env, &reply, &fx);
    engine_session_done(&session);
    engine_effects_done(&fx);
    engine_reply_done(&reply);
    persist_state(durable)->seen_flushes = engine_stats(durable->sessions->engine)->flushes;
    return status == ENGINE_OK && !reply.error;
}

bool persist_empty(struct durable *durable)
{
    const struct rd_slice argv[] = {rd_slice_str("FLUSHALL")};
    return run_flush(durable, 1, argv);
}

bool persist_empty_as(struct durable *durable, bool lazily)
{
    const struct rd_slice argv[] = {rd_slice_str("FLUSHALL"),
                                    rd_slice_str(lazily ? "ASYNC" : "SYNC")};
    return run_flush(durable, 2, argv);
}

static bool start_from_log(struct durable *durable)
{
    int64_t from = durable->loop->mono_us;
    enum persist_loaded loaded = persist_load_log(durable);
    if (loaded == PERSIST_FAILED)
        return false;
    loop_clock(durable->loop);
    if (loaded == PERSIST_LOADED)
        log_notice("DB loaded from append only file: %.3f seconds",
                   (double)(durable->loop->mono_us - from) / 1e6);
    return persist_open_log(durable, loaded == PERSIST_LOADED, persist_state(durable)->has_incr);
}

/* A data set is useless without the functions that programs call. */
static bool compile_libraries(struct durable *durable)
{
    struct rd_err err = {0};
    if (engine_script_check_libraries(durable->sessions->engine, &err))
        return true;
    log_warning("Failed creating a library of functions: %s", err.text);
    return false;
}

bool persist_load(struct durable *durable)
{
    struct persist_state *state = persist_state(durable);
    loop_clock(durable->loop);
    state->may_run_loop = true;
    bool ok =
        durable->loop->settings.appendonly ? start_from_log(durable) : start_from_snapshot(durable);
    ok = ok && compile_libraries(durable);
    state->may_run_loop = false;
    loop_clock(durable->loop);
    state->seen_flushes = engine_stats(durable->sessions->engine)->flushes;
    persist_reset_dirty(durable, engine_stats(durable->sessions->engine)->dirty);
    persist_info(durable)->last_save_s = persist_now_s(durable);
    persist_state(durable)->saved_at_s = persist_mono_s(durable);
    return ok;
}
