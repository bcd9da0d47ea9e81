/* judge_files.c - the folder of a server: its contents, and the free space. */
#include "tools/check_aof/check_aof.h"
#include "tools/doctor/doctor.h"
#include "data/sound.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum { LEFTOVER_MS = 3600000 };

static bool ends_with(const char *name, const char *tail)
{
    size_t len = strlen(name), n = strlen(tail);
    return len >= n && strcmp(name + len - n, tail) == 0;
}

static bool begins_with(const char *name, const char *head)
{
    return strncmp(name, head, strlen(head)) == 0;
}

/* A regular file of the folder; false: not found. */
static bool look_at(const struct doctor *d, const char *name, char path[PATH_MAX], struct stat *ret)
{
    int len = snprintf(path, PATH_MAX, "%s/%s", d->folder, name);
    return len > 0 && len < PATH_MAX && lstat(path, ret) == 0 && S_ISREG(ret->st_mode);
}

/* Snapshots that a server may load, not the base of a log or what a killed child left. */
static bool is_snapshot(const char *name)
{
    return ends_with(name, ".rdb") && !ends_with(name, ".base.rdb") && !begins_with(name, "temp-");
}

/* Calls visit() for each regular file until it returns false. */
static void each_file(const struct doctor *d,
                      bool (*visit)(void *ctx, const char *name, const char *path,
                                    const struct stat *st),
                      void *ctx)
{
    char path[PATH_MAX];
    struct stat st;
    const struct dirent *entry;
    DIR *dir = opendir(d->folder);
    bool more = dir != NULL;
    while (more && (entry = readdir(dir)) != NULL)
        if (look_at(d, entry->d_name, path, &st))
            more = visit(ctx, entry->d_name, path, &st);
    if (dir != NULL)
        closedir(dir);
}

/* ---- snapshots ---- */

struct snapshots {
    struct doctor_verdict *v;
    size_t n;
};

static bool check_snapshot(void *ctx, const char *name, const char *path, const struct stat *st)
{
    struct snapshots *s = ctx;
    struct sound sound = {.name = name};
    struct rd_err err = {0};
    struct rd_src *src;
    char line[DOCTOR_TEXT_MAX];
    const struct rd_src_opts opts = RD_SRC_OPTS(.regular = true, .origin = name);
    if (!is_snapshot(name))
        return true;
    s->n++;
    cli_seed(sound.seed);
    bool ok = rd_src_open_unwrapped(&src, path, &opts, &err);
    if (ok) {
        ok = sound_check(&sound, src, &err);
        rd_src_close(src);
    }
    if (ok) {
        doctor_passed(s->v, "%s: %s key%s, saved at %s", rd_show_plain(rd_slice_str(name)).s,
                      rd_show_count(sound.res.keys).s, rd_show_plural(sound.res.keys),
                      rd_show_time((int64_t)st->st_mtime * 1000).s);
        return true;
    }
    rd_err_render(&err, line, sizeof line);
    if (rd_err_exit_status(err.code) == CLI_FINDINGS)
        doctor_found(s->v, "%s", line);
    else
        doctor_unknown(s->v, "%s", line);
    return s->v->state != DOCTOR_FOUND;
}

void doctor_judge_snapshot(const struct doctor *d, struct doctor_verdict *v)
{
    struct snapshots s = {.v = v};
    each_file(d, check_snapshot, &s);
    if (s.n == 0)
        doctor_none(v, "there is no snapshot");
}

/* ---- the log ---- */

static bool see_manifest(void *ctx, const char *name, const char *path, const struct stat *st)
{
    bool *found = ctx;
    (void)path;
    (void)st;
    *found = ends_with(name, ".manifest") && !begins_with(name, "temp-");
    return !*found;
}

/* The path that check-aof takes: the folder of a manifest, or the one file of older servers. False:
 * there is no log. */
static bool find_log(const struct doctor *d, char path[PATH_MAX])
{
    struct stat st;
    bool manifest = false;
    each_file(d, see_manifest, &manifest);
    int len = snprintf(path, PATH_MAX, "%s/appendonlydir", d->folder);
    if (!manifest && (len < 0 || len >= PATH_MAX || stat(path, &st) != 0))
        return look_at(d, "appendonly.aof", path, &st);
    len = snprintf(path, PATH_MAX, "%s", d->folder);
    return len > 0 && len < PATH_MAX;
}

/* The first finding of the worst severity. */
static struct rd_slice worst_text(const struct findings *found)
{
    const struct finding *worst = NULL;
    for (size_t i = 0; i < found->n; i++)
        if (worst == NULL ||
            (found->all[i].severity == RDB_SEVERITY_ERROR && worst->severity != RDB_SEVERITY_ERROR))
            worst = &found->all[i];
    return worst != NULL ? findings_slice(found, worst->text) : (struct rd_slice){0};
}

static void judge_found(const struct aof_job_found *found, struct doctor_verdict *v)
{
    const char *word = aof_verdict_word(found->res.verdict);
    switch (found->res.verdict) {
    case AOF_VERDICT_SOUND:
    case AOF_VERDICT_WRITTEN:
        doctor_passed(v, "%s, %s commands, %s", word, rd_show_count(found->res.commands).s,
                      rd_show_bytes(found->res.bytes).s);
        break;
    case AOF_VERDICT_WARNED:
        v->severity = DOCTOR_WARNING;
        doctor_found(v, "%s", rd_show_sentence(worst_text(&found->findings)).s);
        break;
    default:
        doctor_found(v, "%s: %s", word, rd_show_sentence(worst_text(&found->findings)).s);
    }
}

/* Whether something is wrong with the files, which were read. */
static bool is_finding(const struct rd_err *err)
{
    return rd_err_exit_status(err->code) == CLI_FINDINGS ||
           err->reason.id == AOF_JOB_REASON_SEVERAL || err->reason.id == AOF_JOB_REASON_CAPTURE;
}

void doctor_judge_log(const struct doctor *d, struct doctor_verdict *v)
{
    char path[PATH_MAX], line[DOCTOR_TEXT_MAX];
    struct rd_err err = {0};
    if (!find_log(d, path)) {
        doctor_none(v, "there is no log");
        return;
    }
    struct aof_job job = {.cli = d->cli, .path = path};
    if (aof_job_find(&job, &err) && aof_job_check(&job, &job.found, &err)) {
        judge_found(&job.found, v);
    } else {
        rd_err_render(&err, line, sizeof line);
        if (is_finding(&err))
            doctor_found(v, "%s", line);
        else
            doctor_unknown(v, "%s", line);
    }
    aof_job_done(&job);
    cli_hint(d->cli, "%s", "");
}

static bool see_snapshot(void *ctx, const char *name, const char *path, const struct stat *st)
{
    bool *found = ctx;
    (void)path;
    (void)st;
    *found = is_snapshot(name);
    return !*found;
}

void doctor_judge_no_data(const struct doctor *d, struct doctor_verdict *v)
{
    char path[PATH_MAX];
    bool snapshot = false;
    each_file(d, see_snapshot, &snapshot);
    bool log = find_log(d, path);
    if (snapshot || log)
        doctor_passed(v, "%s", snapshot && log ? "snapshot and log" : log ? "log" : "snapshot");
    else
        doctor_found(v, "neither a snapshot nor a log");
}

/* ---- leftovers ---- */

/* Files of one age. The first ones are named. */
struct leftovers {
    uint64_t n, bytes;
    char names[DOCTOR_TEXT_MAX / 2];
};

struct search {
    struct leftovers old, young;
    const char *folder; /* below that of the server, with a slash; or "" */
    int64_t now_ms;
};

static void add_leftover(struct leftovers *l, const char *folder, const char *name, uint64_t size)
{
    enum { NAMED = 3 };
    size_t len = strlen(l->names);
    l->bytes += size;
    if (l->n++ < NAMED)
        snprintf(l->names + len, sizeof l->names - len, "%s%s%.60s (%s)", len > 0 ? ", " : "",
                 folder, rd_show_plain(rd_slice_str(name)).s, rd_show_bytes(size).s);
    else if (l->n == NAMED + 1)
        snprintf(l->names + len, sizeof l->names - len, " and others");
}

/* Servers write snapshots, logs and manifests under such names, and rename them when they are
 * complete: temp-PID.rdb, temp-TIME.PID.rdb, temp-rewriteaof-PID.aof, temp-NAME.manifest. */
static bool see_leftover(void *ctx, const char *name, const char *path, const struct stat *st)
{
    struct search *s = ctx;
    bool old = (int64_t)st->st_mtime * 1000 + LEFTOVER_MS < s->now_ms;
    (void)path;
    if (begins_with(name, "temp-") &&
        (ends_with(name, ".rdb") || ends_with(name, ".aof") || ends_with(name, ".manifest")))
        add_leftover(old ? &s->old : &s->young, s->folder, name, (uint64_t)st->st_size);
    return true;
}

void doctor_judge_leftovers(const struct doctor *d, struct doctor_verdict *v)
{
    struct search s = {.folder = "", .now_ms = cli_now_ms()};
    char path[PATH_MAX];
    struct doctor log = {.folder = path};
    each_file(d, see_leftover, &s);
    int len = snprintf(path, sizeof path, "%s/appendonlydir", d->folder);
    s.folder = "appendonlydir/";
    if (len > 0 && (size_t)len < sizeof path)
        each_file(&log, see_leftover, &s);
    if (s.old.n > 0)
        doctor_found(v, "%s file%s of %s that no process has written to for an hour: %s",
                     rd_show_count(s.old.n).s, rd_show_plural(s.old.n),
                     rd_show_bytes(s.old.bytes).s, s.old.names);
    else if (s.young.n > 0)
        doctor_passed(v, "a process may still write to %s", s.young.names);
    else
        doctor_passed(v, "no temporary file");
}

/* ---- free space ---- */

static bool add_size(void *ctx, const char *name, const char *path, const struct stat *st)
{
    uint64_t *largest = ctx;
    (void)path;
    if (!begins_with(name, "temp-") && (uint64_t)st->st_size > *largest)
        *largest = (uint64_t)st->st_size;
    return true;
}

/* A rewrite needs room for a new base beside all existing files. */
static void compare_room(const char *folder, uint64_t needed, struct doctor_verdict *v)
{
    struct statvfs fs;
    struct rd_shown_name shown = rd_show_plain(rd_slice_str(folder));
    if (statvfs(folder, &fs) != 0) {
        doctor_unknown(v, "%.200s: %s", shown.s, strerror(errno));
        return;
    }
    uint64_t room = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (room < needed)
        doctor_found(v, "%s free in %.200s, a snapshot or rewrite may need %s",
                     rd_show_bytes(room).s, shown.s, rd_show_bytes(needed).s);
    else
        doctor_passed(v, "%s free, a snapshot or rewrite may need %s", rd_show_bytes(room).s,
                      rd_show_bytes(needed).s);
}

void doctor_judge_disk_room(const struct doctor *d, struct doctor_verdict *v)
{
    struct rd_slice dir, file;
    uint64_t needed = doctor_info_or_0(d, "used_memory");
    char folder[PATH_MAX], path[PATH_MAX + NAME_MAX];
    struct stat st;
    if (d->folder != NULL) {
        each_file(d, add_size, &needed);
        compare_room(d->folder, needed, v);
        return;
    }
    if (!d->host.here) {
        doctor_unknown(v, "%s", d->host.why);
        return;
    }
    if (!doctor_config(d, v, "dir", &dir) || !doctor_config(d, v, "dbfilename", &file))
        return;
    snprintf(folder, sizeof folder, "%.*s", (int)dir.len, (const char *)dir.ptr);
    snprintf(path, sizeof path, "%s/%.*s", folder, (int)(file.len < NAME_MAX ? file.len : 0),
             (const char *)file.ptr);
    if (stat(path, &st) == 0 && (uint64_t)st.st_size > needed)
        needed = (uint64_t)st.st_size;
    if (doctor_info_or_0(d, "aof_base_size") > needed)
        needed = doctor_info_or_0(d, "aof_base_size");
    compare_room(folder, needed, v);
}
