#include "backup/archiver_impl.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include "backup/login.h"
#include "backup/merge.h"
#include "backup/metrics.h"
#include "backup/prune.h"
#include "backup/system.h"
#include "base/thread.h"
#include "capture/clock.h"

enum { INTERVAL_MS = 10000, BASE_HOURS = 24 };

/* ---- events ---- */

void backup_archiver_say(struct backup_archiver *a, const char *event, bool trouble,
                         const char *fmt, ...)
{
    va_list args;
    pthread_mutex_lock(&a->mutex);
    if (a->n_events < BACKUP_ARCHIVER_EVENTS) {
        struct backup_event *e = &a->events[a->n_events++];
        e->name = event;
        e->trouble = trouble;
        va_start(args, fmt);
        vsnprintf(e->text, sizeof e->text, fmt, args);
        va_end(args);
    } else {
        a->n_dropped++;
    }
    pthread_mutex_unlock(&a->mutex);
}

void backup_archiver_give_up(struct backup_archiver *a, const struct rd_err *err)
{
    pthread_mutex_lock(&a->mutex);
    if (a->fatal.code == RD_ERR_OK)
        rd_err_adopt(&a->fatal, err);
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
}

size_t backup_archiver_events(struct backup_archiver *a,
                              struct backup_event ret[BACKUP_ARCHIVER_EVENTS],
                              uint64_t *ret_dropped)
{
    pthread_mutex_lock(&a->mutex);
    size_t n = a->n_events;
    *ret_dropped = a->n_dropped;
    memcpy(ret, a->events, n * sizeof *ret);
    a->n_events = 0;
    a->n_dropped = 0;
    pthread_mutex_unlock(&a->mutex);
    return n;
}

/* ---- figures ---- */

/* Without a connection, the state of the master is unknown: the time since the last byte counts. */
static int64_t oldest_us(const struct backup_archiver *a, int64_t now_us)
{
    int64_t oldest = a->shipped.oldest_us;
    if (a->roll.dirty_ms != 0 && a->dirty_us < oldest)
        oldest = a->dirty_us;
    if (a->up || a->heard_ms == 0)
        return oldest;
    int64_t heard_us = now_us - (int64_t)(capture_now_ms() - a->heard_ms) * 1000;
    return heard_us < oldest ? heard_us : oldest;
}

static uint64_t rpo_ms(struct backup_archiver *a)
{
    int64_t now_us = capture_now_us();
    pthread_mutex_lock(&a->mutex);
    int64_t oldest = oldest_us(a, now_us);
    pthread_mutex_unlock(&a->mutex);
    return oldest < now_us ? (uint64_t)(now_us - oldest) / 1000 : 0;
}

/* Of the writer, as long as it is open. */
static void note_received(struct backup_archiver *a)
{
    struct repl_capture_point point;
    if (a->writer != NULL && repl_capture_writer_point(a->writer, &point))
        a->received = repl_capture_writer_received(a->writer);
}

struct backup_figures backup_archiver_figures(struct backup_archiver *a)
{
    struct backup_figures f = {.rpo_ms = rpo_ms(a), .up = a->up};
    if (f.rpo_ms > a->worst_rpo_ms)
        a->worst_rpo_ms = f.rpo_ms;
    note_received(a);
    f.received = a->received;
    pthread_mutex_lock(&a->mutex);
    f.shipped = a->shipped;
    f.bases = a->bases;
    f.merged = a->merged;
    pthread_mutex_unlock(&a->mutex);
    f.worst_rpo_ms = a->worst_rpo_ms;
    f.gaps = a->gaps + f.shipped.gaps;
    return f;
}

bool backup_archiver_is_covered(const struct backup_archiver *a)
{
    return a->bases.covers && !a->want_base;
}

/* ---- all threads ---- */

bool backup_archiver_path(char ret[BACKUP_PATH_MAX], const struct backup_archiver *a,
                          const char *name, struct rd_err *err)
{
    int len = snprintf(ret, BACKUP_PATH_MAX, "%s/%s", a->spool, name);
    return (len > 0 && len < BACKUP_PATH_MAX) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path of the spool is too long");
}

void backup_archiver_wait(struct backup_archiver *a, uint64_t ms)
{
    const struct timespec until = backup_after_ms(ms);
    pthread_cond_timedwait(&a->changed, &a->mutex, &until);
}

bool backup_archiver_next(struct backup_archiver *a)
{
    pthread_mutex_lock(&a->mutex);
    bool next = !atomic_load(&a->cancel) && a->fatal.code == RD_ERR_OK;
    if (next)
        backup_archiver_wait(a, BACKUP_ARCHIVER_LOOK_MS);
    pthread_mutex_unlock(&a->mutex);
    return next && !atomic_load(&a->cancel);
}

uint64_t backup_archiver_backoff(uint64_t *ms, uint64_t min_ms, uint64_t max_ms)
{
    uint64_t now = *ms < min_ms ? min_ms : *ms;
    *ms = 2 * now < max_ms ? 2 * now : max_ms;
    return now;
}

void backup_archiver_uncover(struct backup_archiver *a)
{
    pthread_mutex_lock(&a->mutex);
    a->bases.covers = false;
    pthread_mutex_unlock(&a->mutex);
}

/* ---- the main thread, in every turn ---- */

static void note_link(struct backup_archiver *a, const struct capture_link *link)
{
    bool full = link->n_full > a->n_full;
    note_received(a);
    pthread_mutex_lock(&a->mutex);
    a->streamed.offset = a->received;
    a->streamed.commands = link->n_changes;
    if (a->streamed.first == 0)
        a->streamed.first = a->received;
    a->streaming = link->stream_ms != 0;
    memcpy(a->server_host, link->target.host, sizeof a->server_host);
    a->server_port = link->target.port;
    pthread_mutex_unlock(&a->mutex);
    a->up = link->stream_ms != 0;
    a->heard_ms = link->heard_ms;
    a->n_full = link->n_full;
    a->changes = link->n_changes;
    if (full && a->had_stream) {
        a->gaps++;
        backup_archiver_say(a, "gap", true,
                            "the master no longer has the stream after the end of the archive: "
                            "the archive has a gap, and a new base is taken");
    }
    /* A snapshot that was cut before the first stream leaves nothing that could have a gap. */
    a->had_stream = a->had_stream || a->up;
}

/* Before its snapshot is complete, and so before that can be a base. */
static void on_full(struct capture *c)
{
    backup_archiver_uncover(c->ctx);
}

static bool roll(struct backup_archiver *a, struct rd_err *err)
{
    if (!repl_capture_writer_roll(a->writer, err)) {
        rd_err_origin(err, a->spool);
        return false;
    }
    backup_roll_done(&a->roll, repl_capture_writer_written(a->writer), a->changes);
    pthread_mutex_lock(&a->mutex);
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
    return true;
}

static bool roll_if_due(struct backup_archiver *a, bool busy, uint64_t now_ms,
                        uint64_t *ret_wait_ms, struct rd_err *err)
{
    struct repl_capture_point point;
    uint64_t left_ms;
    if (a->writer == NULL || !repl_capture_writer_point(a->writer, &point))
        return true;
    uint64_t received = repl_capture_writer_received(a->writer);
    a->changes = a->of_log ? received : a->changes;
    if (backup_roll_note(&a->roll, received, a->changes, now_ms))
        a->dirty_us = capture_now_us();
    if (!backup_roll_due(&a->roll, now_ms, &left_ms)) {
        if (left_ms != UINT64_MAX)
            capture_sooner(ret_wait_ms, left_ms);
        return true;
    }
    if (busy) {
        capture_sooner(ret_wait_ms, 10);
        return true;
    }
    return roll(a, err);
}

static bool is_dead(struct backup_archiver *a, struct rd_err *err)
{
    pthread_mutex_lock(&a->mutex);
    rd_err_adopt(err, &a->fatal);
    bool dead = a->fatal.code != RD_ERR_OK;
    pthread_mutex_unlock(&a->mutex);
    return dead;
}

bool backup_archiver_stopped(const struct backup_archiver *a)
{
    return a->stop != NULL && *a->stop != 0;
}

bool backup_archiver_tick(struct backup_archiver *a, uint64_t now_ms, uint64_t *ret_wait_ms,
                          struct rd_err *err)
{
    const struct capture_link *link = a->capture.n_links > 0 ? a->capture.links[0] : NULL;
    bool busy = link != NULL && (link->store.syncing || link->store.loading);
    if (is_dead(a, err) || !roll_if_due(a, busy, now_ms, ret_wait_ms, err))
        return false;
    if (a->tick != NULL)
        a->tick(a, now_ms, ret_wait_ms);
    return true;
}

static void on_event(struct capture *c, const struct capture_link *link, const char *event,
                     bool trouble, const char *text)
{
    struct backup_archiver *a = c->ctx;
    if (a->link_event != NULL)
        a->link_event(a, link, event, trouble, text);
}

static bool tick(struct capture *c, uint64_t now_ms, uint64_t *ret_wait_ms, struct rd_err *err)
{
    struct backup_archiver *a = c->ctx;
    const struct capture_link *link = c->n_links > 0 ? c->links[0] : NULL;
    capture_sooner(ret_wait_ms, BACKUP_ARCHIVER_LOOK_MS);
    if (link != NULL && link->store.writer != NULL) {
        a->writer = link->store.writer;
        note_link(a, link);
    }
    return backup_archiver_tick(a, now_ms, ret_wait_ms, err);
}

/* ---- begin and end ---- */

static bool start_threads(struct backup_archiver *a, struct rd_err *err)
{
    a->has_ship = rd_thread_start(&a->ship_thread, backup_ship_run, a);
    a->has_base = a->has_ship && rd_thread_start(&a->base_thread, backup_base_run, a);
    a->has_merger = a->has_base && rd_thread_start(&a->merger_thread, backup_merger_run, a);
    return a->has_merger || rd_err_sys(err, EAGAIN, "cannot start a thread");
}

/* Ships everything that was captured, if the repositories accept it. */
static void end_threads(struct backup_archiver *a)
{
    atomic_store(&a->cancel, true);
    pthread_mutex_lock(&a->mutex);
    atomic_store(&a->draining, true);
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
    if (a->has_merger)
        pthread_join(a->merger_thread, NULL);
    if (a->has_base)
        pthread_join(a->base_thread, NULL);
    if (a->has_ship)
        pthread_join(a->ship_thread, NULL);
    if (a->has_base)
        backup_base_look(a);
}

/* The next run begins another one. */
static void close_segment(struct backup_archiver *a)
{
    struct repl_capture_point point;
    if (a->writer != NULL && repl_capture_writer_point(a->writer, &point))
        repl_capture_writer_roll(a->writer, NULL);
}

void backup_archiver_close_writer(struct backup_archiver *a)
{
    close_segment(a);
    if (a->writer != NULL)
        repl_capture_writer_close(a->writer, NULL);
    a->writer = NULL;
}

/* Before the threads begin: they ship and remove what is in the spool. */
static bool lock_spool(struct backup_archiver *a, struct rd_err *err)
{
    a->has_fs = rd_fs_open_folder(&a->fs, a->spool, true, err);
    a->locked = a->has_fs && repl_capture_lock(&a->lock, &a->fs, err);
    if (!a->locked)
        rd_err_origin(err, a->spool);
    a->capture.lock = &a->lock;
    return a->locked;
}

static void unlock_spool(struct backup_archiver *a)
{
    if (a->locked)
        repl_capture_unlock(&a->lock, &a->fs);
    if (a->has_fs)
        rd_fs_close_posix(&a->fs);
}

static bool remember_stream(struct backup_archiver *a, struct rd_err *err)
{
    struct repl_capture_list list;
    if (!repl_capture_list(&list, &a->fs, err)) {
        rd_err_origin(err, a->spool);
        return false;
    }
    a->had_stream = a->resumes = list.n > 0;
    repl_capture_list_done(&list);
    return true;
}

static bool begin(struct backup_archiver *a, struct rd_err *err)
{
    return lock_spool(a, err) && remember_stream(a, err) && start_threads(a, err);
}

/* The source is a server, or the folder of a log. */
static bool run_source(struct backup_archiver *a, struct rd_err *err)
{
    struct capture *c = &a->capture;
    const char *source = backup_get(a->target, BACKUP_KEY_SOURCE);
    if (a->of_log) {
        snprintf(a->source, sizeof a->source, "%s", source);
        return begin(a, err) && backup_tail_run(a, err);
    }
    if (!capture_init(c, backup_random, err) ||
        !backup_login_find(a->target, source, &a->opts, &c->target, err) ||
        !backup_login_sentinels(a->target, &c->target, c->sentinels, CAPTURE_SENTINELS_MAX,
                                &c->n_sentinels, err))
        return false;
    snprintf(a->source, sizeof a->source, "%s", c->target.name);
    return begin(a, err) && capture_begin(c, err) && capture_run(c, err);
}

/* ---- settings ---- */

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) != 0 || S_ISDIR(st.st_mode);
}

/* What only a base would notice. */
static bool check_settings_of_bases(const struct backup_target *target, struct rd_err *err)
{
    struct archive_retention rules;
    uint64_t wait_ms;
    struct backup_merge merge;
    bool prune;
    return backup_merge_init(&merge, target, err) &&
           backup_get_time(target, BACKUP_KEY_LOCK_WAIT, &wait_ms, err) &&
           backup_get_bool(target, BACKUP_KEY_PRUNE, &prune, err) &&
           (!prune || backup_prune_rules(target, &rules, err)) && backup_metrics_check(target, err);
}

static bool get_settings(struct backup_archiver *a, struct rd_err *err)
{
    const struct backup_target *target = a->target;
    struct capture *c = &a->capture;
    const char *source = backup_get(target, BACKUP_KEY_SOURCE);
    *c = (struct capture){.ack = CAPTURE_ACK_SYNCED,
                          .wait = true,
                          .master = backup_login_master(target),
                          .event = on_event,
                          .tick = tick,
                          .on_full = on_full,
                          .ctx = a};
    a->roll.interval_ms = INTERVAL_MS;
    a->base_ms = (uint64_t)BASE_HOURS * 3600 * 1000;
    if (source == NULL && backup_get(target, BACKUP_KEY_SENTINEL) == NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no source is given");
    bool cluster, scan, index;
    if (!backup_get_bool(target, BACKUP_KEY_CLUSTER, &cluster, err) ||
        !backup_get_bool(target, BACKUP_KEY_SCAN, &scan, err) ||
        !backup_get_bool(target, BACKUP_KEY_KEY_INDEX, &index, err))
        return false;
    if (scan)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                          "a server that refuses PSYNC has no stream to archive");
    if (cluster)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                          "the stream of a cluster is archived with a target for each shard");
    a->of_log = source != NULL && !client_target_is_url(source);
    if (a->of_log && !is_folder(source)) {
        rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                   "a stream is archived from the URL of a server or the folder of its log");
        rd_err_origin(err, source);
        return false;
    }
    return check_settings_of_bases(target, err) &&
           backup_get_interval(target, BACKUP_KEY_ARCHIVE_INTERVAL, &a->roll.interval_ms, err) &&
           backup_get_interval(target, BACKUP_KEY_BASE_INTERVAL, &a->base_ms, err) &&
           backup_get_interval(target, BACKUP_KEY_RESTORE_TIME, &a->restore_ms, err) &&
           backup_get_size(target, BACKUP_KEY_SEGMENT_SIZE, &c->segment_size, err) &&
           backup_get_size(target, BACKUP_KEY_SPOOL_SIZE, &c->max_size, err);
}

/* ---- the spool ---- */

/* The newest capture in the spool; an empty id if there is none. */
static bool find_old_run(struct backup_archiver *a, const char *folder, struct rd_err *err)
{
    const struct dirent *entry;
    int64_t time_ms;
    DIR *dir = opendir(folder);
    if (dir == NULL && errno == ENOENT)
        return true;
    while (dir != NULL && (errno = 0, entry = readdir(dir)) != NULL) {
        size_t len = strlen(entry->d_name);
        if (len < sizeof a->run && archive_id_time(entry->d_name, &time_ms) &&
            strcmp(entry->d_name, a->run) > 0)
            memcpy(a->run, entry->d_name, len + 1);
    }
    if (errno != 0) {
        rd_err_sys(err, errno, "cannot list the spool");
        rd_err_origin(err, folder);
    }
    if (dir != NULL)
        closedir(dir);
    return err->code == RD_ERR_OK;
}

static bool find_run(struct backup_archiver *a, const char *folder, struct rd_err *err)
{
    uint32_t chance;
    if (!find_old_run(a, folder, err))
        return false;
    if (a->run[0] != '\0')
        return true;
    if (!backup_random(&chance, sizeof chance, err))
        return false;
    archive_make_id(a->run, backup_now_ms(), chance);
    return true;
}

static bool open_spool(struct backup_archiver *a, struct rd_err *err)
{
    char folder[BACKUP_PATH_MAX];
    if (!backup_spool(a->target, folder, err) || !backup_spool_claim(a->target, folder, err) ||
        !find_run(a, folder, err))
        return false;
    int len = snprintf(a->spool, sizeof a->spool, "%s/%s", folder, a->run);
    int shard = snprintf(a->shard, sizeof a->shard, "%s/shard", folder);
    a->capture.out = a->spool;
    a->capture.shard.file = a->shard;
    return ((size_t)len < sizeof a->spool && (size_t)shard < sizeof a->shard) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path of the spool is too long");
}

/* ---- the whole ---- */

void backup_archiver_init(struct backup_archiver *a, const struct backup_target *target)
{
    pthread_condattr_t monotonic;
    *a = (struct backup_archiver){.target = target, .shipped.oldest_us = INT64_MAX};
    pthread_mutex_init(&a->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&a->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void backup_archiver_done(struct backup_archiver *a)
{
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->mutex);
}

bool backup_archiver_open(struct backup_archiver *a, struct rd_err *err)
{
    return get_settings(a, err) && open_spool(a, err);
}

bool backup_archiver_run(struct backup_archiver *a, struct rd_err *err)
{
    uint64_t wait_ms = BACKUP_ARCHIVER_LOOK_MS;
    struct rd_err failed = {0};
    a->capture.stop = a->stop;
    a->capture.waiting = a->waiting;
    bool ok = run_source(a, &failed);
    close_segment(a);
    end_threads(a);
    if (a->tick != NULL)
        a->tick(a, capture_now_ms(), &wait_ms);
    note_received(a);
    a->writer = NULL;
    capture_close(&a->capture, ok ? &failed : NULL);
    unlock_spool(a);
    rd_err_adopt(err, &failed);
    return failed.code == RD_ERR_OK;
}
