/* A snapshot from the master: to a file and then into memory, or directly.
 *
 * Loading continues in steps between the events of the loop, so that clients are answered. The link
 * is not read meanwhile, except that a snapshot without a file is loaded as it arrives.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/db.h"
#include "engine/snapshot.h"
#include "server/core/background.h"
#include "server/core/log.h"
#include "server/persist/priv.h"
#include "server/replication/priv.h"

enum {
    SYNC_EVERY = 8 * 1024 * 1024,
    STEP_KEYS = 512,
    STEP_US = 5000, /* of loading, before clients are answered */
    WINDOW = 1024 * 1024,
    NO_DELAY_KEYS = 1
};

struct receive {
    struct server *srv;
    struct repl_link *link;
    bool to_memory;
    uint64_t total, read; /* bytes; total 0: unknown */
    int64_t last_s;       /* when the last byte arrived */

    struct repl_replid id;
    uint64_t offset;

    char temp[64];
    int file;
    uint64_t synced;

    struct rd_src *src;
    struct engine_loader *loader;
    struct replication_place place;
    uv_idle_t *idle; /* loading from the file; NULL: not */
    bool loading, done;
    bool log_was_on; /* the append-only file, which is closed while the data is replaced */
    int64_t began_us;
};

/* ---- life ---- */

struct receive *receive_new(struct repl_link *link)
{
    struct receive *r = rd_calloc(1, sizeof *r);
    if (r == NULL)
        replication_no_memory(link->srv);
    r->srv = link->srv;
    r->link = link;
    r->file = -1;
    r->last_s = link->srv->mono_us / 1000000;
    return r;
}

static void close_file(void *arg)
{
    close((int)(intptr_t)arg);
}

static void drop_file(struct receive *r)
{
    if (r->file >= 0) {
        unlink(r->temp);
        close(r->file);
    }
    r->file = -1;
}

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

/* The data set is not that of any history now. */
static void leave_loading(struct receive *r)
{
    struct server *srv = r->srv;
    if (!r->loading)
        return;
    r->loading = false;
    stop_idle(r);
    engine_loader_free(r->loader);
    r->loader = NULL;
    rd_src_close(r->src);
    r->src = NULL;
    persist_loading_end(srv);
    srv->state = SERVER_RUNNING;
    persist_reset_dirty(srv, engine_stats(srv->engine)->dirty);
}

static void restart_log(struct receive *r)
{
    if (!r->log_was_on)
        return;
    r->log_was_on = false;
    if (!persist_set_appendonly(r->srv, true))
        log_warning("FATAL: this replica instance finished the synchronization with its master, "
                    "but the AOF can't be turned on");
}

void receive_free(struct receive *r)
{
    if (r == NULL)
        return;
    bool broken = r->loading;
    leave_loading(r);
    if (broken) /* half of a data set must not be served */
        persist_empty(r->srv);
    restart_log(r);
    drop_file(r);
    rd_free(r);
}

bool receive_is_loading(const struct repl_link *link)
{
    return link->receive != NULL && link->receive->loading && !link->receive->to_memory;
}

bool receive_is_done(const struct repl_link *link)
{
    return link->receive != NULL && link->receive->done;
}

void receive_progress(const struct repl_link *link, uint64_t *ret_total, uint64_t *ret_read,
                      int64_t *ret_last_s)
{
    const struct receive *r = link->receive;
    *ret_total = r != NULL ? r->total : 0;
    *ret_read = r != NULL ? r->read : 0;
    *ret_last_s = r != NULL ? r->last_s : 0;
}

/* ---- where to ---- */

static bool has_keys(struct server *srv)
{
    return persist_count_keys(srv) > 0;
}

static bool goes_to_memory(struct server *srv)
{
    switch (srv->settings.repl_diskless_load) {
    case SETTINGS_DISKLESS_LOAD_EMPTY:
        return !has_keys(srv);
    default:
        return false;
    }
}

static bool open_temp(struct receive *r)
{
    snprintf(r->temp, sizeof r->temp, "temp-%lld.%ld.rdb", (long long)persist_now_s(r->srv),
             (long)getpid());
    r->file = open(r->temp, O_CREAT | O_WRONLY | O_EXCL | O_CLOEXEC, 0644);
    if (r->file >= 0)
        return true;
    log_warning("Opening the temp file needed for MASTER <-> REPLICA synchronization: %s",
                strerror(errno));
    return false;
}

static bool begin_load(struct receive *r);

bool receive_begin(struct repl_link *link, const struct repl_event *ev)
{
    struct receive *r = link->receive;
    r->total = ev->payload.by_mark ? 0 : ev->payload.len;
    r->to_memory = goes_to_memory(r->srv);
    const char *to = r->to_memory ? "parser" : "disk";
    if (ev->payload.by_mark)
        log_notice("MASTER <-> REPLICA sync: receiving streamed RDB from master with EOF to %s",
                   to);
    else
        log_notice("MASTER <-> REPLICA sync: receiving %llu bytes from master to %s",
                   (unsigned long long)r->total, to);
    if (!r->to_memory)
        return open_temp(r);
    return rd_src_open_push(&r->src, &(struct rd_src_opts){.window = WINDOW}, NULL) &&
           begin_load(r);
}

/* ---- a file ---- */

static bool write_all(struct receive *r, struct rd_slice bytes)
{
    while (bytes.len > 0) {
        ssize_t n = write(r->file, bytes.ptr, bytes.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            log_warning("Write error or short write writing to the DB dump file needed for MASTER "
                        "<-> REPLICA synchronization: %s",
                        n < 0 ? strerror(errno) : "short write");
            return false;
        }
        bytes = rd_slice(bytes.ptr + n, bytes.len - (size_t)n);
    }
    return true;
}

static bool to_file(struct receive *r, struct rd_slice bytes)
{
    if (!write_all(r, bytes))
        return false;
    if (r->read - r->synced < SYNC_EVERY)
        return true;
    /* Not all at the end, when it would take long. */
    sync_file_range(r->file, (off_t)r->synced, (off_t)(r->read - r->synced),
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE);
    r->synced = r->read;
    return true;
}

/* ---- loading ---- */

static void on_aux(void *ctx, struct rd_slice name, struct rd_slice value)
{
    struct receive *r = ctx;
    replication_place_read(&r->place, name, value);
}

static void kill_child(struct server *srv)
{
    if (persist_info(srv)->child == PERSIST_CHILD_RDB && !replicas_snapshot_is_diskless(srv))
        log_notice("Replica is about to load the RDB file received from the master, but there is a "
                   "pending RDB child running. Killing process %d and removing its temp file to "
                   "avoid any race",
                   persist_info(srv)->child_pid);
    persist_kill_child(srv);
}

/* From here on the old data is gone, and with it the place in its history. */
static void empty(struct receive *r)
{
    struct server *srv = r->srv;
    r->link->has_place = false;
    replicas_disconnect(srv);
    kill_child(srv);
    r->log_was_on = persist_info(srv)->aof != PERSIST_AOF_OFF;
    persist_set_appendonly(srv, false);
    log_notice("MASTER <-> REPLICA sync: Flushing old data");
    persist_empty_as(srv, srv->settings.replica_lazy_flush);
}

static bool begin_load(struct receive *r)
{
    struct server *srv = r->srv;
    struct engine_load_opts opts;
    struct engine_env env = server_env(srv);
    struct rd_err err = {0};
    empty(r);
    log_notice("MASTER <-> REPLICA sync: Loading DB in memory");
    persist_load_opts(srv, &opts);
    opts.keep_expired = true;
    opts.on_empty = NULL;
    opts.on_aux = on_aux;
    opts.ctx = r;
    r->place = (struct replication_place){.offset = -1};
    if (!engine_loader_new(&r->loader, srv->engine, r->src, &opts, &env, &err)) {
        log_warning("Failed trying to load the MASTER synchronization DB: %s", err.text);
        return false;
    }
    r->loading = true;
    r->began_us = srv->mono_us;
    persist_loading_begin(srv, r->total);
    srv->state = SERVER_LOADING;
    return true;
}

/* The snapshot is the data set: its history begins here. */
static void loaded(struct receive *r)
{
    struct server *srv = r->srv;
    struct repl_resume at;
    struct repl_replid id = replication_fresh_id();
    persist_report_loaded(engine_loader_info(r->loader));
    leave_loading(r);
    repl_psync_set_db(r->link->psync, r->place.db);
    r->link->db = r->place.db;
    bool known = repl_psync_place(r->link->psync, &at);
    if (!repl_master_become(srv->replication->master, known ? &at.replid : &id,
                            known ? at.offset : 0))
        replication_no_memory(srv);
    r->link->has_place = known;
    restart_log(r);
    r->done = true;
    log_notice("MASTER <-> REPLICA sync: Finished with success");
}

static void load_failed(const struct rd_err *err)
{
    persist_report_rdb_error(err);
    log_warning("Failed trying to load the MASTER synchronization DB, check server logs.");
}

/* RDB_EVENT: there is more to do; RDB_MORE: bytes are missing. */
static enum rdb_status step(struct receive *r, struct rd_err *err)
{
    struct server *srv = r->srv;
    int64_t delay = srv->settings.key_load_delay;
    server_clock(srv);
    int64_t end_us = srv->mono_us + STEP_US;
    enum rdb_status status;
    do {
        status = engine_loader_step(r->loader, delay != 0 ? NO_DELAY_KEYS : STEP_KEYS, err);
        if (delay != 0)
            persist_delay(delay);
        persist_info(srv)->loading_read = engine_loader_info(r->loader)->offset;
        server_clock(srv);
    } while (status == RDB_EVENT && srv->mono_us < end_us);
    return status;
}

static void on_idle(uv_idle_t *idle)
{
    struct receive *r = idle->data;
    struct repl_link *link = r->link;
    struct rd_err err = {0};
    enum rdb_status status = step(r, &err);
    if (status == RDB_EVENT)
        return;
    if (status == RDB_END) {
        loaded(r);
        link_go_on(link);
    } else {
        load_failed(&err);
        link_drop(link);
    }
}

static bool start_idle(struct receive *r)
{
    r->idle = rd_calloc(1, sizeof *r->idle);
    if (r->idle == NULL)
        replication_no_memory(r->srv);
    uv_idle_init(r->srv->loop, r->idle);
    r->idle->data = r;
    uv_idle_start(r->idle, on_idle);
    return true;
}

/* ---- as it arrives ---- */

static bool to_memory(struct receive *r, struct rd_slice bytes)
{
    struct rd_err err = {0};
    while (bytes.len > 0) {
        size_t room = rd_src_push_room(r->src), n = bytes.len < room ? bytes.len : room;
        enum rdb_status status = RDB_EVENT;
        if (n == 0 || !rd_src_push(r->src, rd_slice(bytes.ptr, n)))
            return false;
        bytes = rd_slice(bytes.ptr + n, bytes.len - n);
        while (status == RDB_EVENT)
            status = step(r, &err);
        if (status == RDB_FAIL) {
            load_failed(&err);
            return false;
        }
    }
    return true;
}

static bool end_in_memory(struct receive *r)
{
    struct rd_err err = {0};
    enum rdb_status status;
    rd_src_push_end(r->src);
    do
        status = step(r, &err);
    while (status == RDB_EVENT);
    if (status == RDB_END) {
        loaded(r);
        return true;
    }
    load_failed(&err);
    return false;
}

/* ---- events ---- */

bool receive_bytes(struct repl_link *link, const struct repl_event *ev)
{
    struct receive *r = link->receive;
    r->read += ev->bytes.len;
    r->last_s = r->srv->mono_us / 1000000;
    return r->to_memory ? to_memory(r, ev->bytes) : to_file(r, ev->bytes);
}

/* The file becomes that of the server: after a crash, it loads the newer data. */
static bool install(struct receive *r)
{
    struct server *srv = r->srv;
    const char *final = srv->settings.dbfilename;
    struct rd_err err = {0};
    int old = open(final, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool ok = fsync(r->file) == 0 && rename(r->temp, final) == 0;
    if (old >= 0) /* the last link to the old data: freeing its blocks takes time */
        background_run(srv, BACKGROUND_CLOSE, close_file, NULL, (void *)(intptr_t)old);
    if (!ok) {
        log_warning("Failed trying to rename the temp DB into %s in MASTER <-> REPLICA "
                    "synchronization: %s",
                    final, strerror(errno));
        return false;
    }
    persist_sync_folder(final);
    close(r->file);
    r->file = -1;
    if (rd_src_open_file(&r->src, final, &(struct rd_src_opts){.window = WINDOW}, &err))
        return true;
    log_warning("Failed trying to load the MASTER synchronization DB: %s", err.text);
    return false;
}

static void remove_sync_file(const struct server *srv)
{
    const struct settings *s = &srv->settings;
    if (!s->rdb_del_sync_files || s->appendonly || s->n_save > 0)
        return;
    log_notice("Removing the RDB file obtained from the master. This replica has persistence "
               "disabled");
    unlink(s->dbfilename);
}

bool receive_end(struct repl_link *link)
{
    struct receive *r = link->receive;
    if (r->to_memory)
        return end_in_memory(r);
    kill_child(r->srv);
    if (!install(r) || !begin_load(r))
        return false;
    remove_sync_file(r->srv); /* it stays open */
    return start_idle(r);
}
