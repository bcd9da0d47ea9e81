#include "backup/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backup/replay.h"
#include "backup/stored_log.h"
#include "backup/system.h"
#include "base/pump.h"
#include "base/show.h"

enum { CLOCK_TOLERANCE_MS = 300000, REMOVED_MAX = 3, PROVE_MAX = 100 };

bool backup_restore_is_cluster(const struct archive_set *set)
{
    return set->m.n_nodes > 0;
}

bool backup_restore_is_log(const struct archive_set *set)
{
    return !backup_plan_is_snapshot(set) && !backup_restore_is_cluster(set);
}

bool backup_restore_has_keys(const struct backup_restore *r)
{
    return backup_keys_given(&r->open->keys);
}

/* ---- what is written ---- */

/* Adds the commands that were run for a log, a moment or a master of a cluster. */
static void count(struct backup_restore *r, const struct rebuild_counts *counts)
{
    struct rebuild_counts *sum = &r->counts;
    if (sum->refused == 0)
        memcpy(sum->first_refused, counts->first_refused, sizeof sum->first_refused);
    if (sum->unsupported == 0)
        memcpy(sum->first_unsupported, counts->first_unsupported, sizeof sum->first_unsupported);
    if (sum->unknown == 0)
        memcpy(sum->unknown_names, counts->unknown_names, sizeof sum->unknown_names);
    sum->commands += counts->commands;
    sum->refused += counts->refused;
    sum->unsupported += counts->unsupported;
    sum->unknown += counts->unknown;
    sum->lost |= counts->lost;
}

struct reading {
    const struct rd_watch *watch;
    const struct rd_src *src;
};

static void tick(void *ctx)
{
    const struct reading *reading = ctx;
    rd_watch_at(reading->watch, rd_src_offset(reading->src));
}

static bool open_rest(struct backup_restore *r, const struct archive_file *file,
                      struct rd_src **ret, struct rd_err *err)
{
    if (file->role != ARCHIVE_ROLE_RDB || file->compression != ARCHIVE_COMPRESSION_CHUNKS)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                          "damaged records can be left out only of snapshots in chunks");
    return chunks_open_rest(ret, r->repo, r->set, file, &r->open->keys.ring, &r->lost, err);
}

/* With what the file that is replaced has. */
static bool open_over(struct backup_restore *r, const struct archive_file *file,
                      struct rd_src **ret, struct rd_err *err)
{
    struct stat st;
    if (r->over == NULL || file->role != ARCHIVE_ROLE_RDB ||
        file->compression != ARCHIVE_COMPRESSION_CHUNKS)
        return true;
    int fd = open(r->over, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return true;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return true;
    }
    r->old = (struct spool){.fd = fd, .open = true, .size = (uint64_t)st.st_size};
    bool ok = chunks_open_over(ret, r->repo, &r->source->sets, r->set, file, &r->open->keys.ring,
                               &r->old, &r->kept, err);
    if (!ok || *ret == NULL) {
        spool_done(&r->old);
        r->kept = (struct chunks_over){.kept = 0};
    }
    return ok;
}

/* Where a file is stored as chunks, a few keys need few of them. */
static bool open_file(struct backup_restore *r, const struct archive_file *file,
                      struct rd_src **ret, struct rd_err *err)
{
    const struct rd_seal_ring *ring = &r->open->keys.ring;
    struct chunks_cost cost;
    *ret = NULL;
    if (r->skip_damaged)
        return open_rest(r, file, ret, err);
    if (r->filter != NULL && file->role == ARCHIVE_ROLE_RDB &&
        file->compression == ARCHIVE_COMPRESSION_CHUNKS &&
        !chunks_open_keys(ret, r->repo, r->set, file, ring, r->filter, &cost, err))
        return false;
    if (*ret != NULL) {
        r->cost.n_requests += cost.n_requests;
        r->cost.n_bytes += cost.n_bytes;
        r->cost.set_bytes += cost.set_bytes;
    }
    if (*ret == NULL && !open_over(r, file, ret, err))
        return false;
    return *ret != NULL || archive_set_open(r->repo, r->set, file, ring, ret, err);
}

bool backup_restore_file(struct backup_restore *r, const struct archive_file *file,
                         struct rd_sink *out, struct rd_err *err)
{
    struct rd_src *src;
    if (!open_file(r, file, &src, err))
        return false;
    struct reading reading = {r->watch, src};
    rd_watch_begin(r->watch, file->name, file->plain.bytes, src);
    /* The source verifies the digests at its end. */
    bool ok = rd_pump(src, out, tick, &reading, err);
    rd_watch_end(r->watch);
    rd_src_close(src);
    spool_done(&r->old);
    return ok;
}

/* The snapshot of the moment. */
static bool replay(struct backup_restore *r, struct rd_sink *out, struct rd_err *err)
{
    struct rebuild_data data;
    rebuild_data_begin(&data, r->now_ms * 1000);
    data.keep_unknown = r->keep_unknown;
    bool ok = backup_replay(&r->plan, &data, err) && rebuild_data_save(&data, out, err);
    count(r, &data.counts);
    rebuild_data_end(&data);
    return ok;
}

/* The engine may not know a command that a server knows. */
static bool save_log(struct backup_restore *r, struct rd_sink *out, struct rd_err *err)
{
    struct backup_stored_log log = {.watch = r->watch,
                                    .repo = r->repo,
                                    .set = r->set,
                                    .ring = &r->open->keys.ring,
                                    .now_ms = r->now_ms,
                                    .keep_unknown = r->keep_unknown};
    bool ok = backup_stored_log_save(&log, out, err);
    if (!ok && err != NULL && err->code == RD_ERR_UNSUPPORTED)
        rd_watch_hint(r->watch, "restore the log into a folder, with --layout aof and without "
                                "filters; --keep-unknown omits such commands");
    count(r, &log.counts);
    return ok;
}

bool backup_restore_snapshot(struct backup_restore *r, const struct archive_file *file,
                             struct rd_sink *out, struct rd_err *err)
{
    if (backup_restore_is_log(r->set))
        return save_log(r, out, err);
    if (file->node != 0)
        backup_plan_node(&r->plan, r->set, file);
    if ((r->want.goal == BACKUP_GOAL_SET && file->node == 0) || r->plan.first > r->plan.last)
        return backup_restore_file(r, file, out, err);
    return replay(r, out, err);
}

bool backup_restore_spool(struct backup_restore *r, const struct archive_file *file,
                          struct spool *spool, struct rd_err *err)
{
    struct rd_sink *sink;
    if (!spool_sink(spool, &sink, err))
        return false;
    if (backup_restore_snapshot(r, file, sink, err))
        return rd_sink_close(sink, err);
    rd_sink_abort(sink);
    return false;
}

/* ---- one repository ---- */

/* Ids have seconds only. The time in a manifest that cannot be read is not known. */
static bool is_newer(const struct archive_set *set, const struct archive_set *than)
{
    if (set->time_ms != than->time_ms)
        return set->time_ms > than->time_ms;
    return set->err != NULL || set->m.begin_ms > than->m.begin_ms;
}

static bool wants_newest(const struct backup_restore *r)
{
    return r->want.goal == BACKUP_GOAL_SET &&
           (r->want.id == NULL || strcmp(r->want.id, "latest") == 0);
}

/* Of another repository only the newest good set counts: it could not be restored. */
static bool is_left_out(const struct backup_restore *r, const struct backup_restore_source *source,
                        const struct archive_set *set)
{
    if (set->incomplete || !is_newer(set, r->set))
        return false;
    return !archive_set_good(set) || (source != r->source && set == source->newest);
}

static void warn_of_source(struct backup_restore *r, const struct backup_restore_source *source)
{
    char line[600];
    const struct archive_set *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < source->sets.n; i++) {
        if (!is_left_out(r, source, &source->sets.sets[i]))
            continue;
        first = &source->sets.sets[i];
        n++;
    }
    if (n == 0)
        return;
    const char *why = first->err != NULL        ? rd_err_render(first->err, line, sizeof line)
                      : first->refused          ? "it is not sealed, although there is a key"
                      : first->missing > 0      ? "files are missing or have another size"
                      : archive_set_good(first) ? "it could not be restored"
                                                : "verify found damage";
    rd_watch_warn(r->watch, "%zu newer set%s of %s%s%s left out; %s: %s", n, rd_show_plural(n),
                  r->repo->target, r->open->n > 1 ? " in " : "",
                  r->open->n > 1 ? source->repo->store->origin : "", first->id, why);
}

/* Without a word, an older set would be taken for the newest one. */
static void warn_left_out(struct backup_restore *r)
{
    for (size_t i = 0; i < r->open->n; i++)
        warn_of_source(r, &r->sources[i]);
}

static bool no_set(const struct backup_restore *r, const struct archive_sets *sets,
                   struct rd_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < sets->n; i++)
        n += sets->sets[i].refused;
    if (r->want.id == NULL && n > 0)
        return rd_err_set(err, RD_ERR_CHECKSUM, RD_NO_OFFSET,
                          "%s has no good set that is sealed; %zu %s not, although there is a key, "
                          "and may be forged: see --allow-unsealed",
                          r->repo->target, n, n == 1 ? "is" : "are");
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s has no good set%s%s in %s",
                      r->repo->target, r->want.id != NULL ? " " : "",
                      r->want.id != NULL ? rd_show_quote(rd_slice_str(r->want.id)).s : "",
                      r->repo->store->origin);
}

static bool choose_set(struct backup_restore *r, struct archive_sets *sets, struct rd_err *err)
{
    backup_plan_done(&r->plan);
    r->plan = (struct backup_plan){
        .watch = r->watch, .repo = r->repo, .ring = &r->open->keys.ring, .want = r->want};
    if (r->want.goal != BACKUP_GOAL_SET) {
        if (!backup_plan_make(&r->plan, sets, err))
            return false;
        r->set = r->plan.base;
        return true;
    }
    r->set = archive_sets_find(sets, r->want.id, backup_now_ms());
    if (r->set == NULL)
        return no_set(r, sets, err);
    if (wants_newest(r))
        warn_left_out(r);
    if (r->set->time_ms > backup_now_ms() + CLOCK_TOLERANCE_MS)
        rd_watch_warn(r->watch,
                      "the set %s is in the future: it may not be the newest one, see --set",
                      r->set->id);
    if (r->set->err != NULL)
        rd_err_adopt(err, r->set->err);
    return r->set->err == NULL;
}

/* Names the newest set that can be restored with the given keys. */
static void hint_older(struct backup_restore *r, struct archive_sets *sets)
{
    unsigned n = 0;
    for (size_t i = sets->n; i-- > 0 && n < PROVE_MAX;) {
        struct archive_set *set = &sets->sets[i];
        if (!archive_set_good(set))
            continue;
        if (archive_set_prove(r->repo, set, NULL)) {
            rd_watch_hint(
                r->watch,
                "give the key of this set as well, or restore the newest one that the given "
                "keys open: --set %s",
                set->id);
            return;
        }
        n++;
    }
    rd_watch_hint(r->watch,
                  "give the key of this set as well; `redoubt list` shows others for --set");
}

/* Without the key of a set, a moment can still be restored from another one. */
static bool may_choose_another(const struct backup_restore *r, const struct archive_set *set,
                               const struct rd_err *why)
{
    if (r->want.id != NULL)
        return false;
    return !archive_set_good(set) ||
           (r->want.goal != BACKUP_GOAL_SET && why->reason.id == RD_SEAL_REASON_KEY);
}

/* A set whose signature turns out to be wrong is not good any more, and another one is chosen. */
static bool find_set(struct backup_restore *r, struct archive_sets *sets, struct rd_err *err)
{
    char line[600];
    while (choose_set(r, sets, err)) {
        struct archive_set *set = &sets->sets[r->set - sets->sets];
        struct rd_err why = {0};
        bool was_good = archive_set_good(set);
        if (archive_set_prove(r->repo, set, &why))
            return true;
        rd_err_doing(&why, "the set %s of %s", set->id, r->repo->target);
        if (!was_good || !may_choose_another(r, set, &why)) {
            if (why.reason.id == RD_SEAL_REASON_KEY)
                hint_older(r, sets);
            rd_err_adopt(err, &why);
            return false;
        }
        archive_set_fail(set, &why); /* not good any more */
        rd_watch_warn(r->watch, "left out: %s", rd_err_render(&why, line, sizeof line));
    }
    return false;
}

static bool try_sets(struct backup_restore *r, struct archive_sets *sets, struct rd_err *err)
{
    r->counts = (struct rebuild_counts){0}; /* another repository may have failed before */
    r->lost = (struct chunks_lost){0};
    r->cost = (struct chunks_cost){0};
    r->kept = (struct chunks_over){.kept = 0};
    r->set = NULL;
    return find_set(r, sets, err) && r->write(r, err);
}

/* Whether the set or a segment was removed by `prune` since it was listed. */
static bool is_removed(struct backup_restore *r, const struct rd_err *err)
{
    if (err->code != RD_ERR_IO || err->sys != ENOENT || r->set == NULL)
        return false;
    bool gone = archive_set_gone(r->repo, r->set);
    if (gone)
        rd_watch_note(r->watch, "the set %s was removed meanwhile", r->set->id);
    return gone;
}

/* ---- all repositories ---- */

static void list_source(struct backup_restore *r, struct backup_restore_source *source)
{
    if (source->listed || source->err.code != RD_ERR_OK)
        return;
    source->listed =
        backup_is_open(r->open, (size_t)(source->repo - r->open->repos), &source->err) &&
        backup_list(r->watch, source->repo, &source->sets, &source->err);
    if (source->listed)
        source->newest = archive_sets_find(&source->sets, NULL, backup_now_ms());
}

static void forget_source(struct backup_restore_source *source)
{
    if (source->listed)
        archive_sets_done(&source->sets);
    source->listed = false;
    source->newest = NULL;
}

/* Those that cannot be read come first, because they may have a newer set: their errors are
 * reported. */
static bool comes_before(const struct backup_restore_source *a,
                         const struct backup_restore_source *b)
{
    if (a->listed != b->listed)
        return !a->listed;
    if (a->newest == NULL || b->newest == NULL)
        return a->newest != NULL && b->newest == NULL;
    return is_newer(a->newest, b->newest);
}

/* The repository with the newest set first: a run may have failed to store it in the others. */
static void sort_sources(struct backup_restore *r)
{
    for (size_t i = 0; i < r->open->n; i++)
        list_source(r, &r->sources[i]);
    for (size_t i = 1; i < r->open->n; i++)
        for (size_t k = i; k > 0 && comes_before(&r->sources[k], &r->sources[k - 1]); k--) {
            struct backup_restore_source swapped = r->sources[k];
            r->sources[k] = r->sources[k - 1];
            r->sources[k - 1] = swapped;
        }
}

static bool try_source(struct backup_restore *r, struct backup_restore_source *source,
                       bool *ret_removed, struct rd_err *err)
{
    *ret_removed = false;
    r->source = source;
    r->repo = source->repo;
    list_source(r, source);
    rd_err_adopt(err, &source->err);
    if (!source->listed)
        return false;
    bool ok = try_sets(r, &source->sets, err);
    *ret_removed = !ok && is_removed(r, err);
    backup_plan_done(&r->plan);
    return ok;
}

/* Uses the first repository that has the requested data. */
static bool try_sources(struct backup_restore *r, struct rd_err *err)
{
    unsigned n_removed = 0;
    for (size_t i = 0; i < r->open->n; i++) {
        struct backup_restore_source *source = &r->sources[i];
        struct rd_err failed = {0};
        bool removed;
        if (try_source(r, source, &removed, &failed))
            return true;
        if (removed && !r->final && n_removed++ < REMOVED_MAX) {
            forget_source(source);
            i--; /* with what is there now */
            continue;
        }
        bool last = i + 1 == r->open->n || (source->listed && r->final);
        if (!last && r->failed != NULL)
            r->failed(r, &failed);
        rd_err_reset(err);
        rd_err_adopt(err, &failed);
        if (last)
            break;
    }
    return false;
}

bool backup_restore_from(struct backup_restore *r, struct backup_open *open, struct rd_err *err)
{
    r->open = open;
    for (size_t i = 0; i < r->open->n; i++)
        r->sources[i] = (struct backup_restore_source){.repo = &r->open->repos[i]};
    if (wants_newest(r))
        sort_sources(r);
    bool ok = try_sources(r, err);
    for (size_t i = 0; i < r->open->n; i++)
        forget_source(&r->sources[i]);
    return ok;
}

bool backup_restore(struct backup_restore *r, const struct backup_target *target,
                    struct rd_err *err)
{
    struct backup_open open;
    if (!backup_open(target, BACKUP_READ, &open, err))
        return false;
    bool ok = backup_restore_from(r, &open, err);
    backup_close(&open);
    return ok;
}
