/* A snapshot that arrives from the master: to a file, or directly into memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/db.h"
#include "server/loop/background.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist_impl.h"
#include "server/durable/replication/receive_impl.h"

enum { SYNC_EVERY = 8 * 1024 * 1024 };

/* ---- life ---- */

struct receive *receive_new(struct repl_link *link, bool same_history)
{
    struct receive *r = rd_calloc(1, sizeof *r);
    if (r == NULL)
        replication_no_memory();
    r->durable = link->durable;
    r->link = link;
    r->same_history = same_history;
    r->file = -1;
    r->last_s = link->durable->loop->mono_us / 1000000;
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

void receive_free(struct receive *r)
{
    if (r == NULL)
        return;
    receive_check_stop(r);
    receive_load_stop(r);
    drop_file(r);
    rd_buf_done(&r->rest);
    rd_free(r);
}

bool receive_is_loading(const struct repl_link *link)
{
    const struct receive *r = link->receive;
    return r != NULL && (r->idle != NULL || receive_check_runs(r));
}

bool receive_is_done(const struct repl_link *link)
{
    return link->receive != NULL && link->receive->done;
}

uint64_t receive_memory(const struct repl_link *link)
{
    const struct receive *r = link->receive;
    return r != NULL && r->beside != NULL ? engine_memory(r->beside, NULL) : 0;
}

void receive_progress(const struct repl_link *link, uint64_t *ret_total, uint64_t *ret_read,
                      int64_t *ret_last_s)
{
    const struct receive *r = link->receive;
    *ret_total = r != NULL ? r->total : 0;
    *ret_read = r != NULL ? r->read : 0;
    *ret_last_s = r != NULL ? r->last_s : 0;
}

/* ---- the destination ---- */

static bool has_keys(struct durable *durable)
{
    return persist_count_keys(durable) > 0;
}

static enum receive_target choose_target(struct durable *durable)
{
    switch (durable->loop->settings.repl_diskless_load) {
    case SETTINGS_DISKLESS_LOAD_EMPTY:
        return has_keys(durable) ? RECEIVE_FILE : RECEIVE_MEMORY;
    case SETTINGS_DISKLESS_LOAD_SWAPDB:
        return RECEIVE_BESIDE;
    default:
        return RECEIVE_FILE;
    }
}

static bool open_temp(struct receive *r)
{
    snprintf(r->temp, sizeof r->temp, "temp-%lld.%ld.rdb", (long long)persist_now_s(r->durable),
             (long)getpid());
    r->file = open(r->temp, O_CREAT | O_WRONLY | O_EXCL | O_CLOEXEC, 0644);
    if (r->file >= 0)
        return true;
    log_warning("Opening the temp file needed for MASTER <-> REPLICA synchronization: %s",
                strerror(errno));
    return false;
}

bool receive_begin(struct repl_link *link, const struct repl_event *ev)
{
    struct receive *r = link->receive;
    r->total = ev->payload.by_mark ? 0 : ev->payload.len;
    r->target = choose_target(r->durable);
    const char *to = r->target == RECEIVE_FILE ? "disk" : "parser";
    if (ev->payload.by_mark)
        log_notice("MASTER <-> REPLICA sync: receiving streamed RDB from master with EOF to %s",
                   to);
    else
        log_notice("MASTER <-> REPLICA sync: receiving %llu bytes from master to %s",
                   (unsigned long long)r->total, to);
    if (r->target == RECEIVE_FILE)
        return open_temp(r);
    return rd_src_open_push(&r->src, &RD_SRC_OPTS(.window = RECEIVE_WINDOW), NULL) &&
           receive_load_begin(r);
}

void receive_failed(const struct receive *r, const struct rd_err *err)
{
    if (err->code == RD_ERR_UNSUPPORTED)
        link_unsupported(r->link, "the snapshot", err->text);
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
    /* Syncs regularly, because a sync at the end would take long. */
    sync_file_range(r->file, (off_t)r->synced, (off_t)(r->read - r->synced),
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE);
    r->synced = r->read;
    return true;
}

static void remove_sync_file(const struct durable *durable)
{
    const struct settings *s = &durable->loop->settings;
    if (!s->rdb_del_sync_files || s->appendonly || s->n_save > 0)
        return;
    log_notice("Removing the RDB file obtained from the master. This replica has persistence "
               "disabled");
    unlink(s->dbfilename);
}

bool receive_install(struct receive *r)
{
    struct durable *durable = r->durable;
    const char *final = durable->loop->settings.dbfilename;
    int old = open(final, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool ok = fsync(r->file) == 0 && rename(r->temp, final) == 0;
    if (old >= 0) /* the last link to the old data: freeing its blocks takes time */
        background_run(durable->loop, BACKGROUND_CLOSE, close_file, NULL, (void *)(intptr_t)old);
    if (!ok) {
        log_warning("Failed trying to rename the temp DB into %s in MASTER <-> REPLICA "
                    "synchronization: %s",
                    final, strerror(errno));
        return false;
    }
    persist_sync_folder(final);
    close(r->file);
    r->file = -1;
    remove_sync_file(durable);
    return true;
}

/* ---- events ---- */

bool receive_bytes(struct repl_link *link, const struct repl_event *ev)
{
    struct receive *r = link->receive;
    r->read += ev->bytes.len;
    r->last_s = r->durable->loop->mono_us / 1000000;
    return r->target == RECEIVE_FILE ? to_file(r, ev->bytes) : receive_load_bytes(r, ev->bytes);
}

bool receive_end(struct repl_link *link)
{
    struct receive *r = link->receive;
    return r->target == RECEIVE_FILE ? receive_check_begin(r) : receive_load_end(r);
}
