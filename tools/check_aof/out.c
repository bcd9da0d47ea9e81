#include "tools/check_aof/check_aof.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_empty_folder(const char *path)
{
    DIR *dir = opendir(path);
    unsigned n = 0;
    while (dir != NULL && n < 3 && readdir(dir) != NULL)
        n++;
    if (dir != NULL)
        closedir(dir);
    return dir != NULL && n <= 2;
}

static bool make_folder(struct aof_job_out *out, struct aof_job *job, struct rd_err *err)
{
    out->made = mkdir(job->out, 0700) == 0;
    if (out->made || (errno == EEXIST && (job->force || is_empty_folder(job->out))))
        return true;
    if (errno != EEXIST) {
        rd_err_sys(err, errno, "cannot create the folder");
    } else {
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "already exists and is not an empty folder");
        cli_hint(job->cli, "--force writes into it");
    }
    rd_err_origin(err, job->out);
    return false;
}

bool aof_job_out_begin(struct aof_job_out *out, struct aof_job *job, struct rd_err *err)
{
    *out = (struct aof_job_out){.path = job->out};
    if (!make_folder(out, job, err))
        return false;
    int len = snprintf(out->stage, sizeof out->stage, "%s/.unfinished-XXXXXX", job->out);
    if (len < 0 || (size_t)len >= sizeof out->stage)
        return rd_err_sys(err, ENAMETOOLONG, "%.100s", job->out);
    out->staged = mkdtemp(out->stage) != NULL;
    if (!out->staged)
        rd_err_sys(err, errno, "cannot create a folder in it");
    if (!out->staged)
        rd_err_origin(err, job->out);
    return out->staged;
}

static bool join(char *ret, size_t size, const char *folder, const char *name, struct rd_err *err)
{
    int len = snprintf(ret, size, "%s/%s", folder, name);
    return (len >= 0 && (size_t)len < size) || rd_err_sys(err, ENAMETOOLONG, "%.100s", name);
}

bool aof_job_out_create(struct aof_job_out *out, struct aof_job *job, const char *name,
                        struct rd_sink **ret, struct rd_err *err)
{
    char path[PATH_MAX], at[PATH_MAX];
    struct rd_sink_opts opts = RD_SINK_OPTS();
    if (!join(at, sizeof at, out->path, name, err) ||
        !join(path, sizeof path, out->stage, name, err))
        return false;
    cli_choose_access(job->cli, at, &opts);
    return rd_sink_open_file(ret, path, &opts, err);
}

static bool sync_folder(const char *path, struct rd_err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    if (!ok)
        rd_err_sys(err, errno, "cannot sync the folder");
    if (fd >= 0)
        close(fd);
    return ok;
}

bool aof_job_out_move(struct aof_job_out *out, const char *name, struct rd_err *err)
{
    char from[PATH_MAX], to[PATH_MAX];
    if (!join(from, sizeof from, out->stage, name, err) ||
        !join(to, sizeof to, out->path, name, err))
        return false;
    if (rename(from, to) == 0)
        return sync_folder(out->path, err);
    rd_err_sys(err, errno, "cannot rename");
    rd_err_origin(err, to);
    return false;
}

void aof_job_out_end(struct aof_job_out *out)
{
    const struct dirent *entry;
    DIR *dir = out->staged ? opendir(out->stage) : NULL;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir != NULL)
        closedir(dir);
    if (out->staged)
        rmdir(out->stage);
    if (out->made)
        rmdir(out->path); /* fails if it has a log */
}
