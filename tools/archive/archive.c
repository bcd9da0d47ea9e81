/* archive.c - `redoubt archive`: the replication stream of a server, kept in its repositories.
 *
 * The stream is written to a spool, which is a capture on the local disk, and closed segments are
 * uploaded to the repositories. So nothing is lost while a repository is unreachable, and a killed
 * run resumes where it stopped.
 */
#include "tools/archive/priv.h"
#include "tools/tools.h"

#include "base/thread.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- both threads ---- */

void archive_wait(struct archiver *a, uint64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + ms % 1000 * 1000000;
    until.tv_sec += (time_t)(ms / 1000 + ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_cond_timedwait(&a->changed, &a->mutex, &until);
}

uint64_t archive_backoff(uint64_t *ms, uint64_t min_ms, uint64_t max_ms)
{
    uint64_t now = *ms < min_ms ? min_ms : *ms;
    *ms = 2 * now < max_ms ? 2 * now : max_ms;
    return now;
}

void archive_uncover(struct archiver *a)
{
    pthread_mutex_lock(&a->mutex);
    a->bases.covers = false;
    pthread_mutex_unlock(&a->mutex);
}

/* ---- the main thread, in every turn ---- */

static void note_link(struct archiver *a, const struct capture_link *link)
{
    bool full = link->n_full > a->n_full;
    pthread_mutex_lock(&a->mutex);
    a->streaming = link->stream_ms != 0;
    memcpy(a->server_host, link->target.host, sizeof a->server_host);
    a->server_port = link->target.port;
    pthread_mutex_unlock(&a->mutex);
    a->up = link->stream_ms != 0;
    a->heard_ms = link->heard_ms;
    a->n_full = link->n_full;
    if (full && a->had_stream) {
        a->gaps++;
        archive_say(a, "gap", true,
                    "the master no longer has the stream after the end of the archive: "
                    "the archive has a gap, and a new base is taken");
    }
    /* A snapshot that was cut before the first stream leaves nothing that could have a gap. */
    a->had_stream = a->had_stream || a->up;
}

/* Before its snapshot is complete, and so before that can be a base. */
static void on_full(struct capture *c)
{
    archive_uncover(c->ctx);
}

static void note_data(struct archiver *a, uint64_t now_ms)
{
    if (a->dirty_ms != 0 || repl_capture_writer_received(a->writer) == a->rolled)
        return;
    a->dirty_ms = now_ms;
    a->dirty_us = capture_now_us();
}

static bool roll(struct archiver *a, struct rd_err *err)
{
    if (!repl_capture_writer_roll(a->writer, err)) {
        rd_err_origin(err, a->spool);
        return false;
    }
    a->rolled = repl_capture_writer_written(a->writer);
    a->dirty_ms = 0;
    pthread_mutex_lock(&a->mutex);
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
    return true;
}

static bool roll_if_due(struct archiver *a, bool busy, uint64_t now_ms, uint64_t *ret_wait_ms,
                        struct rd_err *err)
{
    struct repl_capture_point point;
    if (a->writer == NULL || !repl_capture_writer_point(a->writer, &point))
        return true;
    note_data(a, now_ms);
    if (a->dirty_ms == 0)
        return true;
    if (now_ms - a->dirty_ms < a->interval_ms) {
        capture_sooner(ret_wait_ms, a->dirty_ms + a->interval_ms - now_ms);
        return true;
    }
    if (busy) {
        capture_sooner(ret_wait_ms, 10);
        return true;
    }
    return roll(a, err);
}

static bool is_dead(struct archiver *a, struct rd_err *err)
{
    pthread_mutex_lock(&a->mutex);
    rd_err_adopt(err, &a->fatal);
    bool dead = a->fatal.code != RD_ERR_OK;
    pthread_mutex_unlock(&a->mutex);
    return dead;
}

bool archive_tick(struct archiver *a, uint64_t now_ms, uint64_t *ret_wait_ms, struct rd_err *err)
{
    const struct capture_link *link = a->capture.n_links > 0 ? a->capture.links[0] : NULL;
    bool busy = link != NULL && (link->store.syncing || link->store.loading);
    if (is_dead(a, err) || !roll_if_due(a, busy, now_ms, ret_wait_ms, err))
        return false;
    archive_report_tick(a, now_ms, ret_wait_ms);
    return true;
}

static void on_event(struct capture *c, const struct capture_link *link, const char *event,
                     bool trouble, const char *text)
{
    const struct archiver *a = c->ctx;
    capture_report_event(a->cli, link, event, trouble, text);
}

static bool tick(struct capture *c, uint64_t now_ms, uint64_t *ret_wait_ms, struct rd_err *err)
{
    struct archiver *a = c->ctx;
    const struct capture_link *link = c->n_links > 0 ? c->links[0] : NULL;
    capture_sooner(ret_wait_ms, ARCHIVE_LOOK_MS);
    if (link != NULL && link->store.writer != NULL) {
        a->writer = link->store.writer;
        note_link(a, link);
    }
    return archive_tick(a, now_ms, ret_wait_ms, err);
}

/* ---- begin and end ---- */

static bool start_threads(struct archiver *a, struct rd_err *err)
{
    a->has_ship = rd_thread_start(&a->ship_thread, archive_ship, a);
    a->has_base = a->has_ship && rd_thread_start(&a->base_thread, archive_base, a);
    return a->has_base || rd_err_sys(err, EAGAIN, "cannot start a thread");
}

/* Ships everything that was captured, if the repositories accept it. */
static void end_threads(struct archiver *a)
{
    atomic_store(&a->cancel, true);
    pthread_mutex_lock(&a->mutex);
    atomic_store(&a->draining, true);
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
    if (a->has_base)
        pthread_join(a->base_thread, NULL);
    if (a->has_ship)
        pthread_join(a->ship_thread, NULL);
}

/* The next run begins another one. */
void archive_close_segment(struct archiver *a)
{
    struct repl_capture_point point;
    if (a->writer != NULL && repl_capture_writer_point(a->writer, &point))
        repl_capture_writer_roll(a->writer, NULL);
}

void archive_close_writer(struct archiver *a)
{
    archive_close_segment(a);
    if (a->writer != NULL)
        repl_capture_writer_close(a->writer, NULL);
    a->writer = NULL;
}

/* Before the threads begin: they ship and remove what is in the spool. */
static bool lock_spool(struct archiver *a, struct rd_err *err)
{
    a->has_fs = rd_fs_open_folder(&a->fs, a->spool, true, err);
    a->locked = a->has_fs && repl_capture_lock(&a->lock, &a->fs, err);
    if (!a->locked)
        rd_err_origin(err, a->spool);
    a->capture.lock = &a->lock;
    return a->locked;
}

static void unlock_spool(struct archiver *a)
{
    if (a->locked)
        repl_capture_unlock(&a->lock, &a->fs);
    if (a->has_fs)
        rd_fs_close_posix(&a->fs);
}

static bool remember_stream(struct archiver *a, struct rd_err *err)
{
    struct repl_capture_list list;
    if (!repl_capture_list(&list, &a->fs, err)) {
        rd_err_origin(err, a->spool);
        return false;
    }
    a->had_stream = list.n > 0;
    repl_capture_list_done(&list);
    return true;
}

static bool begin(struct archiver *a, struct rd_err *err)
{
    return lock_spool(a, err) && remember_stream(a, err) && start_threads(a, err);
}

/* The source is a server, or the folder of a log. */
static bool run_source(struct archiver *a, struct rd_err *err)
{
    struct capture *c = &a->capture;
    const char *source = backup_get(a->target, BACKUP_KEY_SOURCE);
    if (a->of_log) {
        snprintf(a->source, sizeof a->source, "%s", source);
        return begin(a, err) && archive_logs_run(a, err);
    }
    uint8_t id[CAPTURE_RUN_BYTES];
    if (!capture_init(c, err) || !backup_random(id, sizeof id, err) ||
        !backup_login_find(a->target, source, &a->opts, &c->target, err) ||
        !backup_login_sentinels(a->target, &c->target, c->sentinels, CAPTURE_SENTINELS_MAX,
                                &c->n_sentinels, err))
        return false;
    capture_set_run(c, id);
    snprintf(a->source, sizeof a->source, "%s", c->target.name);
    return begin(a, err) && capture_begin(c, err) && capture_run(c, err);
}

/* What is in the repositories is of use only with a set to begin from. */
static int conclude(struct archiver *a)
{
    const struct archive_shipped *s = &a->shipped;
    bool waiting = s->n_waiting > 0 || s->failing || s->spool_failing;
    if (s->spool_failing)
        cli_warn(a->cli,
                 "%s cannot be read: what remains in it is not known, the next run ships it",
                 a->spool);
    else if (waiting)
        cli_warn(a->cli, "%" PRIu64 " segment%s in %s: the next run ships them", s->n_waiting,
                 s->n_waiting == 1 ? " remains" : "s remain", a->spool);
    if (!archive_is_covered(a))
        cli_warn(a->cli,
                 "%s: no set is a base for the end of the stream, so it cannot be restored "
                 "yet: the next run takes one",
                 a->target->name);
    return waiting || !archive_is_covered(a) ? CLI_PARTIAL : CLI_OK;
}

static int run(struct archiver *a)
{
    struct capture *c = &a->capture;
    struct rd_err err = {0};
    c->stop = cli_stop_begin(&a->waiting);
    c->waiting = &a->waiting;
    archive_report_begin(a);
    bool ok = run_source(a, &err);
    archive_close_segment(a);
    end_threads(a);
    archive_report_end(a);
    capture_close(c, ok ? &err : NULL);
    unlock_spool(a);
    if (err.code != RD_ERR_OK) {
        capture_servers_holder(&err);
        capture_report_hint(a->cli, &err);
        if (err.reason.id == ARCHIVE_REASON_FOREIGN)
            cli_hint(a->cli, "nothing was overwritten; find out who wrote the object, and move it "
                             "away. The segment stays in the spool until then");
        return cli_fail(a->cli, &err);
    }
    return conclude(a);
}

/* ---- settings ---- */

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) != 0 || S_ISDIR(st.st_mode);
}

static bool get_settings(struct archiver *a, struct rd_err *err)
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
    a->interval_ms = ARCHIVE_INTERVAL_MS;
    a->base_ms = (uint64_t)ARCHIVE_BASE_HOURS * 3600 * 1000;
    if (source == NULL && backup_get(target, BACKUP_KEY_SENTINEL) == NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no source is given");
    bool cluster, scan;
    if (!backup_get_bool(target, BACKUP_KEY_CLUSTER, &cluster, err) ||
        !backup_get_bool(target, BACKUP_KEY_SCAN, &scan, err))
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
    return backup_get_interval(target, BACKUP_KEY_ARCHIVE_INTERVAL, &a->interval_ms, err) &&
           backup_get_interval(target, BACKUP_KEY_BASE_INTERVAL, &a->base_ms, err) &&
           backup_get_size(target, BACKUP_KEY_SEGMENT_SIZE, &c->segment_size, err) &&
           backup_get_size(target, BACKUP_KEY_SPOOL_SIZE, &c->max_size, err);
}

/* ---- the spool ---- */

/* The newest capture in the spool; an empty id if there is none. */
static bool find_old_run(struct archiver *a, const char *folder, struct rd_err *err)
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

static bool find_run(struct archiver *a, const char *folder, struct rd_err *err)
{
    uint32_t chance;
    if (!find_old_run(a, folder, err))
        return false;
    if (a->run[0] != '\0')
        return true;
    if (!backup_random(&chance, sizeof chance, err))
        return false;
    archive_make_id(a->run, cli_now_ms(), chance);
    return true;
}

static bool open_spool(struct archiver *a, struct rd_err *err)
{
    char folder[BACKUP_PATH_MAX];
    if (!backup_spool(a->target, folder, err) || !find_run(a, folder, err))
        return false;
    int len = snprintf(a->spool, sizeof a->spool, "%s/%s", folder, a->run);
    a->capture.out = a->spool;
    return (size_t)len < sizeof a->spool ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path of the spool is too long");
}

/* ---- the tool ---- */

static int archive(struct archiver *a)
{
    struct cli *cli = a->cli;
    struct rd_err err = {0};
    if (!vault_load(&a->vault, cli->args, cli->n_args, &err))
        return cli_fail(cli, &err);
    if (a->vault.config.n_targets != 1)
        return cli_usage_error(cli, "the configuration has several targets: name one");
    a->target = &a->vault.config.targets[0];
    bool ok = get_settings(a, &err) && open_spool(a, &err);
    if (!ok)
        rd_err_doing(&err, "the target %s", a->target->name);
    return ok ? run(a) : cli_fail(cli, &err);
}

static void init(struct archiver *a, struct cli *cli)
{
    pthread_condattr_t monotonic;
    a->cli = cli;
    a->shipped.oldest_us = INT64_MAX;
    pthread_mutex_init(&a->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&a->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    vault_init(&a->vault, cli);
}

int tool_archive(struct cli *cli, int argc, char **argv)
{
    struct archiver a = {.cli = cli};
    struct cli_opt opts[VAULT_OPTS] = {0};
    init(&a, cli);
    vault_options(&a.vault, opts,
                  BACKUP_FOR_REPOSITORY | BACKUP_FOR_KEYS | BACKUP_FOR_SOURCE | BACKUP_FOR_WRITING |
                      BACKUP_FOR_KEEP | BACKUP_FOR_STREAM);
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] [TARGET]",
        .about = "Continuously archives the replication stream of a server, so that restore can\n"
                 "restore any moment. On SIGTERM it uploads the rest and exits.",
        .opts = opts,
        .max_args = 1,
        .example = "redoubt archive nightly",
    };
    int status;
    if (cli_parse(cli, &usage, argc, argv, &status))
        status = archive(&a);
    vault_done(&a.vault);
    pthread_cond_destroy(&a.changed);
    pthread_mutex_destroy(&a.mutex);
    return status;
}
