/* Loading a snapshot that arrives, into the data set or into a second one.
 *
 * Loading continues in steps between the events of the loop, so that clients are answered. While
 * there is something left to load, the link is not read.
 */
#include "base/mem.h"
#include "rdb/version.h"
#include "server/loop/log.h"
#include "server/session/dispatch/script.h"
#include "server/durable/persist/persist_impl.h"
#include "server/durable/replication/receive_impl.h"

enum {
    STEP_KEYS = 512,
    STEP_US = 5000, /* of loading, before clients are answered */
    DELAYED_KEYS = 1
};

/* ---- the end ---- */

static void on_idle_closed(uv_handle_t *handle)
{
    rd_free(handle);
}

static void stop_idle(struct receive *r)
{
    if (r->idle == NULL)
        return;
    uv_idle_stop(r->idle);
    uv_close((uv_handle_t *)r->idle, on_idle_closed);
    r->idle = NULL;
}

static void leave_loading(struct receive *r)
{
    struct durable *durable = r->durable;
    if (!r->loading)
        return;
    r->loading = false;
    stop_idle(r);
    engine_loader_free(r->loader);
    r->loader = NULL;
    rd_src_close(r->src);
    r->src = NULL;
    persist_loading_end(durable);
    durable->sessions->state = SESSIONS_RUNNING;
}

static void restart_log(struct receive *r)
{
    if (!r->log_was_on)
        return;
    r->log_was_on = false;
    if (!persist_set_appendonly(r->durable, true))
        log_warning("FATAL: this replica instance finished the synchronization with its master, "
                    "but the AOF can't be turned on");
}

void receive_load_stop(struct receive *r)
{
    struct durable *durable = r->durable;
    bool broken = r->loading && r->beside == NULL;
    stop_idle(r); /* it may wait to load what was checked */
    leave_loading(r);
    if (broken) { /* half of a data set must not be served */
        persist_empty(durable);
        persist_reset_dirty(durable, engine_stats(durable->sessions->engine)->dirty);
    }
    if (r->beside != NULL) {
        log_notice("MASTER <-> REPLICA sync: Discarding temporary DB in background");
        engine_discard(durable->sessions->engine, r->beside);
        r->beside = NULL;
    }
    restart_log(r);
    if (r->src != NULL) {
        rd_src_close(r->src);
        r->src = NULL;
    }
}

/* ---- the beginning ---- */

static void on_aux(void *ctx, struct rd_slice name, struct rd_slice value)
{
    struct receive *r = ctx;
    persist_report_aux_field(r->durable, name, value);
    replication_place_read(&r->place, name, value);
}

void receive_kill_child(const struct receive *r)
{
    struct durable *durable = r->durable;
    if (r->target == RECEIVE_FILE && persist_info(durable)->child == PERSIST_CHILD_RDB &&
        !replicas_snapshot_is_diskless(durable))
        log_notice("Replica is about to load the RDB file received from the master, but there is a "
                   "pending RDB child running. Killing process %d and removing its temp file to "
                   "avoid any race",
                   persist_info(durable)->child_pid);
    persist_kill_child(durable);
}

/* From here on the old data is gone, and with it the position in its history. */
static void leave_history(struct receive *r)
{
    struct durable *durable = r->durable;
    link_forget_place(r->link);
    replicas_disconnect(durable);
    receive_kill_child(r);
    r->log_was_on = persist_info(durable)->aof != PERSIST_AOF_OFF;
    persist_set_appendonly(durable, false);
}

static void empty(struct receive *r)
{
    leave_history(r);
    log_notice("MASTER <-> REPLICA sync: Flushing old data");
    persist_empty_as(r->durable, r->durable->loop->settings.replica_lazy_flush);
}

static void load_failed(const struct receive *r, const struct rd_err *err)
{
    persist_report_rdb_error(err);
    log_warning("Failed trying to load the MASTER synchronization DB from %s: %s",
                r->target == RECEIVE_FILE ? "disk" : "socket", err->text);
    receive_failed(r, err);
}

static bool make_loader(struct receive *r)
{
    struct durable *durable = r->durable;
    struct engine_load_opts opts;
    struct engine_env env = session_env(durable->sessions);
    struct rd_err err = {0};
    persist_load_opts(durable, &opts);
    opts.keep_expired = true;
    opts.on_empty = NULL;
    opts.on_aux = on_aux;
    opts.on_update = receive_update;
    opts.ctx = r;
    r->place = (struct replication_place){.offset = -1};
    if (engine_loader_new(&r->loader, r->beside != NULL ? r->beside : durable->sessions->engine,
                          r->src, &opts, &env, &err))
        return true;
    load_failed(r, &err);
    return false;
}

/* Clients may use old data only if it is an earlier state of the same data. */
bool receive_load_begin(struct receive *r)
{
    struct durable *durable = r->durable;
    if (r->target == RECEIVE_BESIDE)
        r->beside = engine_new_beside(durable->sessions->engine);
    else
        empty(r);
    r->served = r->beside != NULL && r->same_history;
    log_notice("MASTER <-> REPLICA sync: Loading DB in memory");
    if (!make_loader(r))
        return false;
    r->loading = true;
    persist_loading_begin(durable, r->total);
    durable->sessions->async_loading = r->served;
    if (!r->served)
        durable->sessions->state = SESSIONS_LOADING;
    return true;
}

/* ---- steps ---- */

static void adopt(struct receive *r)
{
    struct durable *durable = r->durable;
    struct engine_env env = session_env(durable->sessions);
    leave_history(r);
    log_notice("MASTER <-> REPLICA sync: Swapping active DB with loaded DB");
    engine_adopt(durable->sessions->engine, r->beside, &env);
    r->beside = NULL;
    log_notice("MASTER <-> REPLICA sync: Discarding old DB in background");
}

/* The snapshot is the data set: its history begins here. */
static void loaded(struct receive *r)
{
    struct durable *durable = r->durable;
    struct repl_resume at;
    struct repl_replid id = replication_fresh_id();
    const struct engine_load_info *info = engine_loader_info(r->loader);
    persist_report_loaded(info);
    persist_info(durable)->loaded_keys = info->keys;
    persist_info(durable)->loaded_expired = info->expired;
    r->link->master_is_old = info->dialect == RDB_REDIS && info->version <= RDB_VERSION_OF_7_0;
    leave_loading(r);
    if (r->beside != NULL)
        adopt(r);
    persist_reset_dirty(durable, engine_stats(durable->sessions->engine)->dirty);
    if (r->target != RECEIVE_FILE || !receive_install(r))
        persist_count_dirty(durable, 1); /* no file has this data */
    repl_psync_set_db(r->link->psync, r->place.db);
    r->link->db = r->place.db;
    bool known = repl_psync_place(r->link->psync, &at);
    if (!repl_master_become(durable->replication->master, known ? &at.replid : &id,
                            known ? at.offset : 0))
        replication_no_memory();
    r->link->has_place = known;
    restart_log(r);
    r->done = true;
    log_notice("MASTER <-> REPLICA sync: Finished with success");
}

static bool push_rest(struct receive *r)
{
    size_t left = r->rest.len - r->rest_at, room = rd_src_push_room(r->src);
    size_t n = left < room ? left : room;
    if (n > 0 && !rd_src_push(r->src, rd_slice(r->rest.ptr + r->rest_at, n)))
        return false;
    r->rest_at += n;
    if (r->rest_at < r->rest.len)
        return true;
    rd_buf_reset(&r->rest);
    r->rest_at = 0;
    if (r->ended && r->target != RECEIVE_FILE)
        rd_src_push_end(r->src);
    return true;
}

/* One step. RDB_EVENT: there is more to do; RDB_MORE: bytes are missing. */
static enum rdb_status step(struct receive *r, struct rd_err *err)
{
    int64_t delay = r->durable->loop->settings.key_load_delay;
    size_t left = r->rest.len - r->rest_at;
    if (left > 0 && !push_rest(r))
        return RDB_FAIL;
    enum rdb_status status =
        engine_loader_step(r->loader, delay != 0 ? DELAYED_KEYS : STEP_KEYS, err);
    if (delay != 0)
        persist_delay(delay);
    persist_info(r->durable)->loading_read = engine_loader_info(r->loader)->offset;
    if (status != RDB_MORE || left == 0)
        return status;
    /* Otherwise a record does not fit into the window. */
    return r->rest.len - r->rest_at < left ? RDB_EVENT : RDB_FAIL;
}

static enum rdb_status steps(struct receive *r, struct rd_err *err)
{
    struct durable *durable = r->durable;
    enum rdb_status status;
    loop_clock(durable->loop);
    int64_t end_us = durable->loop->mono_us + STEP_US;
    do {
        status = step(r, err);
        loop_clock(durable->loop);
    } while (status == RDB_EVENT && durable->loop->mono_us < end_us);
    return status;
}

static void on_idle(uv_idle_t *idle);

void receive_load_wake(struct receive *r)
{
    if (r->idle != NULL)
        return;
    r->idle = rd_calloc(1, sizeof *r->idle);
    if (r->idle == NULL)
        replication_no_memory();
    uv_idle_init(r->durable->loop->uv, r->idle);
    r->idle->data = r;
    uv_idle_start(r->idle, on_idle);
}

/* Loads for a while; the rest follows after clients were served. */
static bool go_on(struct receive *r)
{
    struct rd_err err = {0};
    switch (steps(r, &err)) {
    case RDB_EVENT:
        receive_load_wake(r);
        return true;
    case RDB_FAIL:
        load_failed(r, &err);
        return false;
    case RDB_END:
        if (r->ended)
            loaded(r);
        break;
    default: /* the link brings more bytes */
        break;
    }
    stop_idle(r);
    return true;
}

/* A file that was received and checked. */
static bool begin_file(struct receive *r)
{
    stop_idle(r);
    return receive_check_end(r) && receive_load_begin(r) && receive_load_end(r);
}

static void on_idle(uv_idle_t *idle)
{
    struct receive *r = idle->data;
    struct repl_link *link = r->link;
    if (dispatch_script_busy(link->durable->sessions) != 0)
        return; /* a script runs: the dataset must not change now */
    if (r->check != NULL ? !begin_file(r) : !go_on(r))
        link_drop(link);
    else if (!receive_is_loading(link))
        link_go_on(link);
}

bool receive_load_bytes(struct receive *r, struct rd_slice bytes)
{
    if (!rd_buf_add(&r->rest, bytes.ptr, bytes.len))
        replication_no_memory();
    return go_on(r);
}

bool receive_load_end(struct receive *r)
{
    r->ended = true;
    if (r->target != RECEIVE_FILE && r->rest.len == 0)
        rd_src_push_end(r->src);
    return go_on(r);
}
