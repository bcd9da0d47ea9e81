/* judge_backup.c - the age of the newest good backup, and where it is. */
#include "archive/pause.h"
#include "archive/stream.h"
#include "tools/doctor/doctor.h"

#include <sys/vfs.h>

enum { CLOCK_TOLERANCE_MS = 300000 };

/* ---- the repositories ---- */

typedef bool judge_repo_fn(const struct doctor *d, struct archive_repo *repo,
                           struct doctor_verdict *v, struct rd_err *err);

static const char *repository(const struct backup_target *target, size_t i)
{
    return i == 0 ? backup_get(target, BACKUP_KEY_REPOSITORY) : target->conf.more[i - 1];
}

static bool is_store(const char *where)
{
    return strstr(where, "://") != NULL;
}

static bool judge_target(const struct doctor *d, const struct backup_target *target,
                         bool stores_only, judge_repo_fn *judge, struct doctor_verdict *v,
                         struct rd_err *err)
{
    struct backup_open open;
    if (!backup_open(target, BACKUP_LIST, &open, err))
        return false;
    bool ok = true;
    for (size_t i = 0; ok && i < open.n; i++)
        ok = (stores_only && !is_store(repository(target, i))) ||
             (backup_is_open(&open, i, err) && judge(d, &open.repos[i], v, err));
    backup_close(&open);
    return ok;
}

/* Judges each repository of each target, until one cannot be examined. */
static void judge_all(const struct doctor *d, struct doctor_verdict *v, bool stores_only,
                      judge_repo_fn *judge)
{
    struct rd_err err = {0};
    char line[DOCTOR_TEXT_MAX];
    if (!d->with_backup) {
        doctor_skipped(v, "--target or --repository is not given");
        return;
    }
    for (size_t i = 0; i < d->vault.config.n_targets; i++)
        if (!judge_target(d, &d->vault.config.targets[i], stores_only, judge, v, &err)) {
            if (v->state != DOCTOR_FOUND)
                doctor_unknown(v, "%s", rd_err_render(&err, line, sizeof line));
            return;
        }
}

/* ---- the age ---- */

/* The age of the newest good set; INT64_MAX: there is none. */
static bool newest_age(struct archive_repo *repo, int64_t now_ms, int64_t *ret, struct rd_err *err)
{
    struct archive_sets sets;
    if (!archive_repo_list(repo, &sets, err))
        return false;
    const struct archive_set *newest = archive_sets_newest(&sets, now_ms);
    *ret = newest != NULL ? now_ms - newest->time_ms : INT64_MAX;
    archive_sets_done(&sets);
    return true;
}

static bool judge_age(const struct doctor *d, struct archive_repo *repo, struct doctor_verdict *v,
                      struct rd_err *err)
{
    int64_t age;
    if (!newest_age(repo, cli_now_ms(), &age, err))
        return false;
    if (age == INT64_MAX)
        doctor_found(v, "no good set of %s in %s", repo->target,
                     rd_show_plain(rd_slice_str(repo->store->origin)).s);
    else if (age < -CLOCK_TOLERANCE_MS)
        doctor_found(v, "all good sets of %s are in the future: a clock is wrong", repo->target);
    else if (age > (int64_t)d->max_age_ms)
        doctor_found(v, "the newest good set of %s is %s old; --max-age is %s", repo->target,
                     rd_show_duration((uint64_t)age).s, rd_show_duration(d->max_age_ms).s);
    else if (v->state != DOCTOR_FOUND)
        doctor_passed(v, "the newest good set of %s is %s old", repo->target,
                      rd_show_duration(age > 0 ? (uint64_t)age : 0).s);
    return true;
}

void doctor_judge_backup_age(const struct doctor *d, struct doctor_verdict *v)
{
    judge_all(d, v, false, judge_age);
}

/* ---- pauses ---- */

static bool judge_pause(const struct doctor *d, struct archive_repo *repo, struct doctor_verdict *v,
                        struct rd_err *err)
{
    struct archive_pause pause;
    (void)d;
    if (!archive_pause_read(repo, &pause, err))
        return false;
    if (pause.paused)
        doctor_found(v, "backups of %s in %s are paused since %s%s%s", repo->target,
                     rd_show_plain(rd_slice_str(repo->store->origin)).s,
                     rd_show_time(pause.since_ms).s, pause.reason[0] != '\0' ? ": " : "",
                     rd_show_plain(rd_slice_str(pause.reason)).s);
    else if (v->state != DOCTOR_FOUND)
        doctor_passed(v, "backups of %s are not paused", repo->target);
    return true;
}

void doctor_judge_backup_paused(const struct doctor *d, struct doctor_verdict *v)
{
    judge_all(d, v, false, judge_pause);
}

/* ---- the stream ---- */

static bool judge_stream(const struct doctor *d, struct archive_repo *repo,
                         struct doctor_verdict *v, struct rd_err *err)
{
    const struct rd_shown_name origin = rd_show_plain(rd_slice_str(repo->store->origin));
    struct archive_stream stream;
    uint64_t lost = 0;
    (void)d;
    if (!archive_stream_list(repo, &stream, err))
        return false;
    size_t n = stream.n;
    for (size_t i = 1; i < n; i++)
        lost += archive_segment_lost(&stream.segments[i - 1], &stream.segments[i]);
    archive_stream_done(&stream);
    if (lost > 0)
        doctor_found(v, "%llu segment%s of the stream of %s missing in %s",
                     (unsigned long long)lost, lost == 1 ? "" : "s", repo->target, origin.s);
    else if (n > 0 && v->state != DOCTOR_FOUND)
        doctor_passed(v, "no segment of the stream of %s is missing in %s", repo->target, origin.s);
    return true;
}

void doctor_judge_backup_stream(const struct doctor *d, struct doctor_verdict *v)
{
    doctor_none(v, "no stream is archived");
    judge_all(d, v, false, judge_stream);
}

/* ---- elsewhere ---- */

/* Whether a folder is on a file system of another host, as far as its type shows that. */
static bool is_network(const char *path)
{
    /* NFS, SMB, CIFS, SMB 2, FUSE, Ceph, 9P, AFS */
    static const unsigned types[] = {0x6969,     0x517b,     0xff534d42, 0xfe534d42,
                                     0x65735546, 0x00c36400, 0x01021997, 0x5346414f};
    struct statfs fs;
    if (statfs(path, &fs) != 0)
        return false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if ((unsigned)fs.f_type == types[i])
            return true;
    return false;
}

static bool is_elsewhere(const struct backup_target *target)
{
    for (size_t i = 0; i <= target->conf.n_more; i++)
        if (is_store(repository(target, i)) || is_network(repository(target, i)))
            return true;
    return false;
}

void doctor_judge_backup_elsewhere(const struct doctor *d, struct doctor_verdict *v)
{
    if (!d->with_backup) {
        doctor_skipped(v, "--target or --repository is not given");
        return;
    }
    if (d->folder == NULL && !d->host.here) {
        doctor_none(v, "%s", d->host.why);
        return;
    }
    for (size_t i = 0; i < d->vault.config.n_targets; i++) {
        const struct backup_target *target = &d->vault.config.targets[i];
        if (!is_elsewhere(target))
            doctor_found(v, "all repositories of %s are folders on the host of the data",
                         target->name);
        else if (v->state != DOCTOR_FOUND)
            doctor_passed(v, "%s has a repository that is not on the host of the data",
                          target->name);
    }
}

/* ---- sealed ---- */

static bool judge_seal(const struct doctor *d, struct archive_repo *repo, struct doctor_verdict *v,
                       struct rd_err *err)
{
    struct archive_sets sets;
    (void)d;
    if (!archive_repo_list(repo, &sets, err))
        return false;
    const struct archive_set *newest = archive_sets_newest(&sets, cli_now_ms());
    bool sealed = newest != NULL && newest->m.key_id[0] != '\0';
    size_t n_refused = 0; /* newer ones */
    for (size_t i = newest != NULL ? (size_t)(newest - sets.sets) : 0; i < sets.n; i++)
        n_refused += sets.sets[i].refused;
    if (n_refused > 0)
        doctor_found(v, "%zu newer set%s of %s in %s: not sealed, although there is a key",
                     n_refused, rd_show_plural(n_refused), repo->target,
                     rd_show_plain(rd_slice_str(repo->store->origin)).s);
    else if (newest != NULL && !sealed)
        doctor_found(v, "the newest good set of %s in %s is not sealed", repo->target,
                     rd_show_plain(rd_slice_str(repo->store->origin)).s);
    else if (newest != NULL && v->state != DOCTOR_FOUND)
        doctor_passed(v, "the newest good set of %s in %s is sealed", repo->target,
                      rd_show_plain(rd_slice_str(repo->store->origin)).s);
    archive_sets_done(&sets);
    return true;
}

/* Only of stores: who can read a folder of this host can often read the data as well. */
void doctor_judge_backup_sealed(const struct doctor *d, struct doctor_verdict *v)
{
    doctor_none(v, "no set is in a store on another host");
    judge_all(d, v, true, judge_seal);
}
