/* files.c - finds a log: one file, a manifest with its folder, or the folder alone. */
#include "base/mem.h"
#include "tools/check_aof/check_aof.h"
#include "rebuild/stream.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>

enum { LOOK = 4096 /* bytes of a file that show whether it is a manifest */ };

static const char suffix[] = ".manifest";

static bool is_manifest_name(const char *name)
{
    size_t len = strlen(name), tail = sizeof suffix - 1;
    return len > tail && strcmp(name + len - tail, suffix) == 0;
}

bool aof_job_full_path(const struct aof_job *job, const char *name, char *dst, size_t size,
                       struct rd_err *err)
{
    int len = snprintf(dst, size, "%s/%s", job->folder, name);
    return (len > 0 && (size_t)len < size) || rd_err_sys(err, ENAMETOOLONG, "%.100s", name);
}

static bool set_text(char *dst, size_t size, struct rd_slice text, struct rd_err *err)
{
    if (text.len >= size)
        return rd_err_sys(err, ENAMETOOLONG, "the path");
    memcpy(dst, text.ptr, text.len);
    dst[text.len] = '\0';
    return true;
}

/* "a/b" is "b" in the folder "a". */
static bool split_path(struct aof_job *job, struct rd_err *err)
{
    const char *slash = strrchr(job->path, '/');
    if (slash == NULL)
        return set_text(job->folder, sizeof job->folder, rd_slice_str("."), err) &&
               set_text(job->name, sizeof job->name, rd_slice_str(job->path), err);
    size_t len = slash == job->path ? 1 : (size_t)(slash - job->path);
    return set_text(job->folder, sizeof job->folder, rd_slice(job->path, len), err) &&
           set_text(job->name, sizeof job->name, rd_slice_str(slash + 1), err);
}

/* ---- the folder ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool add_name(struct aof_job *job, size_t *cap, const char *name, struct rd_err *err)
{
    size_t size = strlen(name) + 1;
    if (job->n_names == *cap) {
        size_t more = *cap == 0 ? 16 : 2 * *cap;
        char **bigger = rd_realloc(job->names, more * sizeof *bigger);
        if (bigger == NULL)
            return rd_err_nomem(err, more * sizeof *bigger);
        job->names = bigger;
        *cap = more;
    }
    char *copy = rd_alloc(size);
    if (copy == NULL)
        return rd_err_nomem(err, size);
    memcpy(copy, name, size);
    job->names[job->n_names++] = copy;
    return true;
}

static bool list_folder(struct aof_job *job, struct rd_err *err)
{
    size_t cap = 0;
    DIR *dir = opendir(job->folder);
    if (dir == NULL)
        return rd_err_sys(err, errno, "open");
    bool ok = true;
    for (const struct dirent *e; ok && (e = readdir(dir)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            ok = add_name(job, &cap, e->d_name, err);
    closedir(dir);
    if (job->n_names > 0)
        qsort(job->names, job->n_names, sizeof *job->names, by_name);
    return ok;
}

static void forget_names(struct aof_job *job)
{
    for (size_t i = 0; i < job->n_names; i++)
        rd_free(job->names[i]);
    rd_free(job->names);
    job->names = NULL;
    job->n_names = 0;
}

bool aof_job_look_again(struct aof_job *job, struct rd_err *err)
{
    forget_names(job);
    return !job->has_manifest || list_folder(job, err);
}

static bool holds(const struct aof_job *job, const char *name)
{
    for (size_t i = 0; i < job->n_names; i++)
        if (strcmp(job->names[i], name) == 0)
            return true;
    return false;
}

static bool holds_any(const struct aof_job *job, const char *tail)
{
    size_t n = strlen(tail);
    for (size_t i = 0; i < job->n_names; i++) {
        size_t len = strlen(job->names[i]);
        if (len > n && strcmp(job->names[i] + len - n, tail) == 0)
            return true;
    }
    return false;
}

static bool no_manifest(struct aof_job *job, struct rd_err *err)
{
    const struct rd_err_reason capture = {.id = AOF_JOB_REASON_CAPTURE};
    struct rd_shown_name folder = rd_show_plain(rd_slice_str(job->folder));
    if (job->n_names == 0)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the folder is empty");
    if (rebuild_stream_is(job->folder)) {
        cli_hint(job->cli, "redoubt show, convert and replay read captures");
        return rd_err_set_reason(err, RD_ERR_USAGE, RD_NO_OFFSET, capture,
                                 "the folder holds a capture, not a log");
    }
    if (holds_any(job, ".aof")) {
        cli_hint(job->cli, "check-aof --fix-manifest writes one from the existing files");
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "no manifest in this folder");
    }
    if (holds(job, "dump.rdb"))
        cli_hint(job->cli, "the folder has a snapshot but no log: use %.80s/dump.rdb", folder.s);
    else if (holds_any(job, ".rdb"))
        cli_hint(job->cli, "it has snapshots: redoubt check-rdb %.80s verifies them", folder.s);
    return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "no log in this folder");
}

/* Finds the manifest in the folder. A server writes a new one under a name that begins with "temp".
*/
static bool pick_manifest(struct aof_job *job, struct rd_err *err)
{
    const struct rd_err_reason several = {.id = AOF_JOB_REASON_SEVERAL};
    char all[RD_ERR_TEXT_MAX - 60] = "", quoted[64];
    const char *found = NULL;
    size_t n = 0;
    for (size_t i = 0; i < job->n_names; i++) {
        const char *name = job->names[i];
        if (!is_manifest_name(name) || strncmp(name, "temp", 4) == 0)
            continue;
        size_t len = strlen(all);
        rd_err_quote(quoted, sizeof quoted, rd_slice_str(name));
        snprintf(all + len, sizeof all - len, "%s%s", n > 0 ? ", " : "", quoted);
        found = name;
        n++;
    }
    if (n > 1)
        return rd_err_set_reason(err, RD_ERR_USAGE, RD_NO_OFFSET, several,
                                 "several manifests: %s; specify one", all);
    if (n == 0)
        return no_manifest(job, err);
    return set_text(job->name, sizeof job->name, rd_slice_str(found), err);
}

static bool has_manifest(const struct aof_job *job)
{
    for (size_t i = 0; i < job->n_names; i++)
        if (is_manifest_name(job->names[i]))
            return true;
    return false;
}

/* The data folder of a server has the log in a subfolder. */
static bool go_down(struct aof_job *job, struct rd_err *err)
{
    struct stat st;
    char path[PATH_MAX];
    int len = snprintf(path, sizeof path, "%s/appendonlydir", job->folder);
    if (has_manifest(job) || len < 0 || (size_t)len >= sizeof path || stat(path, &st) != 0 ||
        !S_ISDIR(st.st_mode))
        return true;
    memcpy(job->folder, path, (size_t)len + 1);
    forget_names(job);
    return list_folder(job, err);
}

static bool look(struct aof_job *job, struct rd_err *err);

/* Before Redis 7.0 the log is one file in the folder of the snapshot. */
static bool take_old_log(struct aof_job *job, struct rd_err *err)
{
    int len = snprintf(job->file, sizeof job->file, "%s/appendonly.aof", job->folder);
    if (len < 0 || (size_t)len >= sizeof job->file)
        return rd_err_sys(err, ENAMETOOLONG, "open");
    job->path = job->file;
    rd_show_escape(job->shown, sizeof job->shown, rd_slice_str(job->path));
    forget_names(job);
    return split_path(job, err) && look(job, err);
}

static bool find_in_folder(struct aof_job *job, struct rd_err *err)
{
    size_t len = strlen(job->path);
    while (len > 1 && job->path[len - 1] == '/')
        len--;
    if (!set_text(job->folder, sizeof job->folder, rd_slice(job->path, len), err) ||
        !list_folder(job, err) || !go_down(job, err))
        return false;
    if (!has_manifest(job) && job->change != AOF_JOB_MANIFEST && holds(job, "appendonly.aof"))
        return take_old_log(job, err);
    job->has_manifest = job->in_folder = true;
    if (job->change == AOF_JOB_MANIFEST && !has_manifest(job))
        return true;
    return pick_manifest(job, err);
}

/* ---- one file ---- */

/* Whether the first line that is not a comment begins with a key and a value. */
static bool reads_as_manifest(struct rd_slice s)
{
    const uint8_t *p = s.ptr, *end = s.ptr + s.len;
    while (p < end && *p == '#') {
        const uint8_t *lf = memchr(p, '\n', (size_t)(end - p));
        p = lf != NULL ? lf + 1 : end;
    }
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return end - p > 5 && strncasecmp((const char *)p, "file ", 5) == 0;
}

static bool look(struct aof_job *job, struct rd_err *err)
{
    struct rd_src *src;
    struct rd_slice s;
    job->has_manifest = is_manifest_name(job->name);
    if (job->has_manifest)
        return true;
    if (!rd_src_open_file(&src, job->path, NULL, err))
        return false;
    enum rd_src_status st = rd_src_need(src, LOOK, &s);
    bool ok = st != RD_SRC_FAIL || rd_err_sys(err, rd_src_err(src)->sys, "read");
    job->has_manifest = ok && reads_as_manifest(s);
    rd_src_close(src);
    return ok;
}

bool aof_job_find(struct aof_job *job, struct rd_err *err)
{
    struct stat st;
    rd_show_escape(job->shown, sizeof job->shown, rd_slice_str(job->path));
    job->is_stdin = strcmp(job->path, "-") == 0;
    if (job->is_stdin) {
        snprintf(job->shown, sizeof job->shown, "standard input");
        return set_text(job->name, sizeof job->name, rd_slice_str("standard input"), err);
    }
    bool ok = stat(job->path, &st) == 0 || rd_err_sys(err, errno, "open");
    if (ok && S_ISDIR(st.st_mode))
        ok = find_in_folder(job, err);
    else
        ok = ok && split_path(job, err) && look(job, err) &&
             (!job->has_manifest || list_folder(job, err));
    if (!ok)
        rd_err_origin(err, job->shown);
    return ok;
}

void aof_job_done(struct aof_job *job)
{
    forget_names(job);
    aof_job_found_done(&job->found);
}

/* ---- opening ---- */

bool aof_job_open(void *ctx, const struct aof_file *file, struct rd_src **ret, struct rd_err *err)
{
    struct aof_job *job = ctx;
    char path[PATH_MAX];
    const struct rd_src_opts opts = RD_SRC_OPTS(.regular = file != NULL);
    if (!aof_job_full_path(job, file != NULL ? file->name : job->name, path, sizeof path, err) ||
        !rd_src_open_file(ret, path, &opts, err))
        return false;
    job->passed += job->current;
    job->current = rd_src_size(*ret) != RD_NO_OFFSET ? rd_src_size(*ret) : 0;
    return true;
}

bool aof_job_open_manifest(struct aof_job *job, struct rd_src **ret, struct rd_err *err)
{
    char path[PATH_MAX];
    const struct rd_src_opts opts = RD_SRC_OPTS(.regular = job->in_folder);
    bool ok = aof_job_full_path(job, job->name, path, sizeof path, err) &&
              rd_src_open_file(ret, path, &opts, err);
    if (!ok)
        rd_err_origin(err, job->name);
    return ok;
}

void aof_job_tick(void *ctx, const struct rd_src *src)
{
    struct aof_job *job = ctx;
    cli_progress_at(job->cli, job->passed + rd_src_offset(src));
}
