/* base.c - the thread that takes the sets from which the stream is replayed.
 *
 * The snapshot of a full synchronization is in the spool and becomes a set. Later sets are taken
 * from the server on a schedule, and after a gap in the stream. They are ordinary sets, with their
 * position in the history of the master.
 */
#include "backup/archiver_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "archive/stream.h"
#include "backup/login.h"
#include "backup/pace.h"
#include "backup/source.h"
#include "backup/system.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/show.h"
#include "capture/clock.h"

/* Before the next attempt to take a set for which the master has to fork, then doubled. */
enum { FORK_RETRY_MS = 15000, FORK_RETRY_MAX_MS = 30 * 60000 };

struct backup_base {
    struct backup_archiver *a;
    char hint[300]; /* about the last attempt; may be empty */
    bool known;     /* whether the repository was searched for a base */
    uint64_t wait_ms, next_ms;
    bool failing;
    char snapshot[REPL_CAPTURE_NAME]; /* of the spool: the one that was taken last */
    bool has[BACKUP_STORES];          /* the repositories that have it as a set */
    bool forked;                      /* the last attempt made the master fork */
    bool slow;                        /* the stream after the newest base takes too long */
    struct backup_pace pace;          /* with `restore-time` */
    bool counts;                      /* the commands since the newest base were counted */
    uint64_t commands;                /* of the stream, before the attempt, and the newest base */
    uint64_t commands_at_base;
};

/* ---- what there is ---- */

/* The newest number of the spool. What a repository has under later ones is not of this run. */
static bool newest_number(const struct backup_archiver *a, uint64_t *ret, struct rd_err *err)
{
    struct repl_capture_list list;
    if (!repl_capture_list(&list, &a->fs, err))
        return false;
    *ret = list.n > 0 ? list.segments[list.n - 1].number : 0;
    repl_capture_list_done(&list);
    return true;
}

/* The newest set that is a base for the end of the stream of this run, which has no segments after
 * this number. */
static bool find_base(struct archive_repo *repo, const char *run, uint64_t newest, int64_t *ret_ms,
                      uint64_t *ret_offset, struct rd_err *err)
{
    struct archive_stream stream;
    struct archive_sets sets;
    *ret_ms = 0;
    if (!archive_stream_list(repo, &stream, err))
        return false;
    bool ok = archive_repo_list(repo, &sets, err);
    for (size_t begin = 0, end; ok && begin < stream.n; begin = end) {
        end = archive_stream_chain(&stream, begin);
        if (strcmp(stream.segments[begin].run, run) != 0 || stream.segments[begin].number > newest)
            continue;
        *ret_ms = 0; /* only the last chain counts */
        for (size_t k = 0; k < sets.n; k++)
            if (archive_set_good(&sets.sets[k]) &&
                archive_stream_base(&stream, begin, end, &sets.sets[k].m) != SIZE_MAX &&
                archive_set_prove(repo, &sets.sets[k], NULL)) {
                *ret_ms = sets.sets[k].m.begin_ms;
                *ret_offset = sets.sets[k].m.offset;
            }
    }
    if (ok)
        archive_sets_done(&sets);
    archive_stream_done(&stream);
    return ok;
}

static bool look_up(struct backup_base *base, struct rd_err *err)
{
    struct backup_archiver *a = base->a;
    struct backup_open open;
    int64_t ms = 0;
    uint64_t newest = 0, offset = 0;
    if (!newest_number(a, &newest, err) || !backup_open(a->target, BACKUP_WRITE, &open, err))
        return false;
    size_t i = 0;
    while (open.stores[i] == NULL)
        i++;
    bool ok = find_base(&open.repos[i], a->run, newest, &ms, &offset, err);
    backup_close(&open);
    if (!ok)
        return false;
    base->known = true;
    pthread_mutex_lock(&a->mutex);
    a->bases.last_ms = ms;
    a->bases.offset = offset;
    a->bases.looked = true;
    a->bases.covers = ms != 0;
    pthread_mutex_unlock(&a->mutex);
    return true;
}

/* ---- the snapshot of the spool ---- */

struct found {
    char *name;
    bool any;
};

static void look_at_name(void *arg, const char *name)
{
    struct found *found = arg;
    size_t len = strlen(name);
    if (len < 5 || len >= REPL_CAPTURE_NAME || strcmp(name + len - 4, ".rdb") != 0 ||
        (found->any && strcmp(name, found->name) > 0))
        return;
    memcpy(found->name, name, len + 1);
    found->any = true;
}

/* The oldest one: "00000001-1500.rdb". An empty name: there is none. */
static bool find_snapshot(const struct backup_archiver *a, char ret[REPL_CAPTURE_NAME],
                          struct rd_err *err)
{
    struct found found = {.name = ret};
    ret[0] = '\0';
    int sys = a->fs.list(a->fs.ctx, look_at_name, &found);
    if (sys == 0)
        return true;
    rd_err_sys(err, -sys, "cannot list the spool");
    rd_err_origin(err, a->spool);
    return false;
}

/* The segment next to it has the history. If it does not exist, the writer is about to create it.
 */
static bool find_segment(const struct backup_archiver *a, const char *snapshot,
                         struct repl_capture_segment *ret, struct rd_err *err)
{
    struct repl_capture_list list;
    char name[REPL_CAPTURE_NAME];
    bool found = false;
    if (!repl_capture_list(&list, &a->fs, err))
        return false;
    for (size_t i = 0; i < list.n && !found; i++) {
        repl_capture_snapshot_name(&list.segments[i], name);
        found = list.segments[i].has_snapshot && strcmp(name, snapshot) == 0;
        if (found)
            *ret = list.segments[i];
    }
    repl_capture_list_done(&list);
    return found;
}

/* ---- a set ---- */

static void note_base(struct backup_base *base, const struct backup_set *set)
{
    struct backup_archiver *a = base->a;
    pthread_mutex_lock(&a->mutex);
    a->bases.n++;
    a->bases.last_ms = set->m.begin_ms;
    a->bases.offset = set->m.offset;
    a->bases.replay_ms = 0;
    a->bases.failing = false;
    a->bases.looked = true;
    a->bases.covers = true;
    a->want_base = false;
    pthread_mutex_unlock(&a->mutex);
    base->known = true;
    base->counts = true;
    base->commands_at_base = base->commands;
    base->failing = false;
    base->wait_ms = base->next_ms = 0;
    backup_archiver_say(a, "base", false, "set %s at offset %" PRIu64 ", %s key%s", set->m.id,
                        set->m.offset, rd_show_count(set->m.keys).s, rd_show_plural(set->m.keys));
}

static void say_error(struct backup_base *base, const char *event, const struct rd_err *err)
{
    char line[600];
    if (err->code != RD_ERR_OK)
        backup_archiver_say(base->a, event, true, "%s", rd_err_render(err, line, sizeof line));
}

static void after(struct backup_base *base, const struct backup_set *set,
                  const struct rd_err *failed)
{
    struct backup_after errs;
    backup_after(base->a->target, set, failed, &errs);
    say_error(base, "after-base", &errs.prune);
    say_error(base, "after-base", &errs.metrics);
    say_error(base, "after-base", &errs.hook);
    say_error(base, "heartbeat-failed", &errs.heartbeat);
}

/* Leaves out the repositories that have the snapshot of the spool already. False: none of the
 * others can be opened. */
static bool leave_out(const struct backup_base *base, struct backup_open *open, struct rd_err *err)
{
    bool any = false;
    for (size_t i = 0; i < open->n; i++) {
        if (base->has[i]) {
            archive_store_close(open->stores[i]);
            open->stores[i] = NULL;
            rd_err_reset(&open->errs[i]);
        }
        any = any || open->stores[i] != NULL;
        rd_err_adopt(err, &open->errs[i]);
    }
    if (any)
        rd_err_reset(err);
    return any;
}

/* The first error of a repository that does not have it. */
static bool is_everywhere(struct backup_base *base, const struct backup_open *open,
                          struct rd_err *err)
{
    bool all = true;
    for (size_t i = 0; i < open->n; i++) {
        base->has[i] = base->has[i] || (open->stores[i] != NULL && open->errs[i].code == RD_ERR_OK);
        if (!base->has[i])
            rd_err_adopt(err, &open->errs[i]);
        all = all && base->has[i];
    }
    return all;
}

/* Warnings go to the caller; progress belongs to the main thread. */
static void on_say(void *ctx, enum rd_watch_kind kind, const char *text)
{
    struct backup_base *base = ctx;
    if (kind == RD_WATCH_WARNING)
        rd_watch_warn(base->a->watch, "%s", text);
    else if (kind == RD_WATCH_HINT)
        snprintf(base->hint, sizeof base->hint, "%s", text);
}

/* False for a snapshot of the spool that not all repositories have yet. */
static bool take_base(struct backup_base *base, const struct backup_from *from, struct rd_err *err)
{
    struct backup_open open = {0};
    struct backup_set set = {.open = &open, .from = from};
    static const struct rd_watch_ops ops = {.say = on_say};
    const struct rd_watch watch = {.ops = &ops, .ctx = base, .cancel = &base->a->cancel};
    const struct backup_source source = {.watch = &watch, .tool = "archive"};
    const char *hint;
    if (!backup_open(base->a->target, BACKUP_WRITE, &open, err)) {
        after(base, &set, err);
        return false;
    }
    bool ok = (from->snapshot == NULL || leave_out(base, &open, err)) &&
              backup_source_take(&source, &set, err);
    base->forked = set.asked_server;
    if (!ok && base->a->hint != NULL && (hint = base->a->hint(set.refused, err)) != NULL)
        snprintf(base->hint, sizeof base->hint, "%s", hint);
    for (size_t i = 0; ok && i < open.n; i++)
        say_error(base, "base-failed", &open.errs[i]);
    if (ok)
        note_base(base, &set);
    if (!set.locked_out && !atomic_load(&base->a->cancel))
        after(base, &set, ok ? NULL : err);
    if (ok && from->snapshot != NULL)
        ok = is_everywhere(base, &open, err);
    backup_set_done(&set);
    backup_close(&open);
    return ok;
}

static bool take_snapshot(struct backup_base *base, const char *name, struct rd_err *err)
{
    struct backup_archiver *a = base->a;
    struct repl_capture_segment segment;
    char path[BACKUP_PATH_MAX];
    if (!backup_archiver_path(path, a, name, err))
        return false;
    if (!find_segment(a, name, &segment, err))
        return err->code == RD_ERR_OK; /* later */
    if (strcmp(base->snapshot, name) != 0)
        memset(base->has, 0, sizeof base->has);
    memcpy(base->snapshot, name, sizeof base->snapshot);
    const struct backup_from from = {.snapshot = path,
                                     .spool = &a->fs,
                                     .name = name,
                                     .source = a->source,
                                     .replid = segment.replid.hex,
                                     .offset = segment.start};
    if (!take_base(base, &from, err))
        return false;
    if (a->fs.unlink(a->fs.ctx, name) != 0)
        return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "cannot remove %s", path);
    repl_capture_unlink_keys(&a->fs, name);
    return true;
}

static bool take_server(struct backup_base *base, struct rd_err *err)
{
    struct backup_archiver *a = base->a;
    struct client_opts opts;
    struct client_target seed, master = {.port = 0};
    char host[CLIENT_HOST_MAX];
    pthread_mutex_lock(&a->mutex);
    memcpy(host, a->server_host, sizeof host);
    uint64_t port = a->server_port;
    pthread_mutex_unlock(&a->mutex);
    if (!backup_login_find(a->target, backup_get(a->target, BACKUP_KEY_SOURCE), &opts, &seed, err))
        return false;
    bool moved = seed.socket[0] == '\0' && host[0] != '\0';
    bool ok = (!moved || client_target_at(&master, &seed, rd_slice_str(host), port, err));
    const struct backup_from from = {.server = moved ? &master : &seed};
    ok = ok && take_base(base, &from, err);
    client_target_done(&master);
    client_target_done(&seed);
    return ok;
}

/* ---- the thread ---- */

/* How long it would take to replay the stream after the newest base. What came before this run was
 * not counted. The mutex is held. */
static uint64_t replay_ms(const struct backup_base *base)
{
    const struct backup_archiver *a = base->a;
    const struct backup_streamed *s = &a->streamed;
    uint64_t from = a->bases.offset, n = s->commands;
    if (a->bases.last_ms == 0 || s->first == 0 || s->offset <= from)
        return 0;
    if (base->counts)
        n -= base->commands_at_base < n ? base->commands_at_base : n;
    else if (from < s->first)
        n += (s->first - from) / BACKUP_PACE_COMMAND_BYTES;
    return backup_pace_ms(&base->pace, n, s->offset - from);
}

/* At most one base in this time: a master that writes faster than a replay would fork without end.
 * The mutex is held. */
static bool takes_too_long(struct backup_base *base, int64_t age_ms)
{
    struct backup_archiver *a = base->a;
    if (a->restore_ms == 0)
        return false;
    a->bases.replay_ms = replay_ms(base);
    return a->bases.replay_ms > a->restore_ms && age_ms >= (int64_t)a->restore_ms;
}

static bool is_due(struct backup_base *base)
{
    struct backup_archiver *a = base->a;
    int64_t now_ms = backup_now_ms();
    pthread_mutex_lock(&a->mutex);
    int64_t age_ms = now_ms - a->bases.last_ms;
    base->commands = a->streamed.commands;
    base->slow = takes_too_long(base, age_ms);
    bool due = a->streaming && !a->of_log && a->shipped.looked && a->fatal.code == RD_ERR_OK &&
               (a->want_base || base->slow || a->bases.last_ms == 0 ||
                age_ms >= (int64_t)a->base_ms || age_ms < -(int64_t)a->base_ms);
    pthread_mutex_unlock(&a->mutex);
    return due && base->known;
}

/* An attempt that read the server made the master fork: the next ones come later and later. */
static void failed(struct backup_base *base, const struct rd_err *err)
{
    struct backup_archiver *a = base->a;
    char line[600];
    if (atomic_load(&a->cancel))
        return;
    uint64_t ms = base->forked
                      ? backup_archiver_backoff(&base->wait_ms, FORK_RETRY_MS, FORK_RETRY_MAX_MS)
                      : backup_archiver_backoff(&base->wait_ms, BACKUP_ARCHIVER_RETRY_MS,
                                                BACKUP_ARCHIVER_RETRY_MAX_MS);
    base->next_ms = capture_now_ms() + ms;
    rd_err_render(err, line, sizeof line);
    if (base->forked)
        backup_archiver_say(a, "base-failed", true,
                            "%s%s%s; each attempt makes the master fork, the next one is in %s",
                            line, base->hint[0] != '\0' ? "; hint: " : "", base->hint,
                            rd_show_duration(ms).s);
    else if (!base->failing)
        backup_archiver_say(a, "base-failed", true, "%s", line);
    base->hint[0] = '\0';
    base->failing = true;
    pthread_mutex_lock(&a->mutex);
    a->bases.failing = true;
    pthread_mutex_unlock(&a->mutex);
}

static bool take_due(struct backup_base *base, struct rd_err *err)
{
    struct backup_archiver *a = base->a;
    pthread_mutex_lock(&a->mutex);
    uint64_t ms = a->bases.replay_ms;
    pthread_mutex_unlock(&a->mutex);
    if (base->slow && !base->failing)
        backup_archiver_say(a, "base-due", false,
                            "replaying the stream after the newest base would take about %s: a new "
                            "one is taken",
                            rd_show_duration(ms).s);
    return take_server(base, err);
}

void backup_base_turn(struct backup_base *base)
{
    char name[REPL_CAPTURE_NAME];
    struct rd_err err = {0};
    bool ok = true;
    base->forked = false;
    if (capture_now_ms() < base->next_ms)
        return;
    if (!find_snapshot(base->a, name, &err))
        ok = false;
    else if (name[0] != '\0')
        ok = take_snapshot(base, name, &err);
    else if (!base->known)
        ok = look_up(base, &err);
    else if (is_due(base))
        ok = take_due(base, &err);
    if (!ok)
        failed(base, &err);
}

void backup_base_look(struct backup_archiver *a)
{
    struct backup_base base = {.a = a};
    char name[REPL_CAPTURE_NAME];
    /* With a snapshot in the spool, the next run makes the base. A repository that does not accept
     * segments would only be waited for. */
    if (!a->bases.looked && !a->shipped.failing && a->fatal.code == RD_ERR_OK &&
        find_snapshot(a, name, NULL) && name[0] == '\0')
        look_up(&base, NULL);
}

struct backup_base *backup_base_new(struct backup_archiver *a)
{
    struct backup_base *base = rd_calloc(1, sizeof *base);
    if (base != NULL)
        base->a = a;
    return base;
}

void backup_base_free(struct backup_base *base)
{
    rd_free(base);
}

void *backup_base_run(void *archiver)
{
    struct backup_archiver *a = archiver;
    struct backup_base base = {.a = a};
    struct rd_err err = {0};
    if (a->restore_ms != 0 && !backup_pace_measure(&base.pace, &err))
        backup_archiver_give_up(a, &err);
    do
        backup_base_turn(&base);
    while (backup_archiver_next(a));
    return NULL;
}
