#include "backup/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static const char waiting[] = ".restored";

static size_t n_of(const struct rd_buf *paths)
{
    return paths->len / sizeof(char *);
}

static char **paths_of(const struct rd_buf *paths)
{
    return (char **)(void *)paths->ptr;
}

size_t backup_staging_count(const struct backup_staging *s)
{
    return n_of(&s->staged);
}

static char **staged(const struct backup_staging *s)
{
    return paths_of(&s->staged);
}

static bool add(struct rd_buf *paths, const char *path, struct rd_err *err)
{
    size_t size = strlen(path) + 1;
    char *copy = rd_alloc(size);
    if (copy == NULL || !rd_buf_add(paths, &copy, sizeof copy)) {
        rd_free(copy);
        return rd_err_nomem(err, size);
    }
    memcpy(copy, path, size);
    return true;
}

static bool waiting_name(char ret[BACKUP_PATH_MAX], const char *path)
{
    int len = snprintf(ret, BACKUP_PATH_MAX, "%s%s", path, waiting);
    return len > 0 && len < BACKUP_PATH_MAX;
}

bool backup_staging_folder(struct backup_staging *s, const char *path, struct rd_err *err)
{
    if (!add(&s->made, path, err))
        return false;
    if (mkdir(path, 0755) == 0)
        return true;
    int sys = errno;
    s->made.len -= sizeof(char *);
    rd_free(paths_of(&s->made)[n_of(&s->made)]);
    if (sys == EEXIST)
        return true;
    rd_err_sys(err, sys, "cannot create the folder");
    rd_err_origin(err, path);
    return false;
}

bool backup_staging_file(struct backup_staging *s, char path[BACKUP_PATH_MAX], struct rd_err *err)
{
    char name[BACKUP_PATH_MAX];
    if (!s->check(s->ctx, path, err))
        return false;
    if (!waiting_name(name, path))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path is too long");
    if (!add(&s->staged, path, err))
        return false;
    unlink(name); /* of a run that was killed */
    strcpy(path, name);
    return true;
}

static size_t folder_len(const char *path)
{
    return (size_t)(strrchr(path, '/') - path);
}

static bool sync_folder(const char *file, struct rd_err *err)
{
    char path[BACKUP_PATH_MAX];
    snprintf(path, sizeof path, "%.*s", (int)folder_len(file), file);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (!ok) {
        rd_err_sys(err, errno, "cannot sync the folder");
        rd_err_origin(err, path);
    }
    if (fd >= 0)
        close(fd);
    return ok;
}

/* The files of a folder follow each other. */
static bool sync_folders(const struct backup_staging *s, struct rd_err *err)
{
    const char *last = NULL;
    for (size_t i = 0; i < backup_staging_count(s); i++) {
        const char *path = staged(s)[i];
        size_t len = folder_len(path);
        bool same = last != NULL && folder_len(last) == len && memcmp(last, path, len) == 0;
        if (!same && !sync_folder(path, err))
            return false;
        last = path;
    }
    return true;
}

static bool give_name(struct backup_staging *s, const char *path, struct rd_err *err)
{
    char name[BACKUP_PATH_MAX];
    if (!s->check(s->ctx, path, err))
        return false;
    if (waiting_name(name, path) && rename(name, path) == 0)
        return true;
    rd_err_sys(err, errno, "cannot rename the file to %s", path);
    rd_err_origin(err, name);
    return false;
}

/* Without its manifest a log does not exist, so the manifests are the first to go, and the last to
 * come: a set has the manifest after the other files. */
static void remove_manifests(const struct backup_staging *s)
{
    static const char tail[] = ".manifest";
    for (size_t i = 0; i < backup_staging_count(s); i++) {
        const char *path = staged(s)[i];
        size_t len = strlen(path), n = strlen(tail);
        if (len > n && strcmp(path + len - n, tail) == 0)
            unlink(path);
    }
}

void backup_staging_forget(struct backup_staging *s, size_t n)
{
    char name[BACKUP_PATH_MAX];
    for (size_t i = n; i < backup_staging_count(s); i++) {
        if (waiting_name(name, staged(s)[i]))
            unlink(name);
        rd_free(staged(s)[i]);
    }
    s->staged.len = n * sizeof(char *);
}

bool backup_staging_publish(struct backup_staging *s, struct rd_err *err)
{
    size_t n = backup_staging_count(s);
    bool ok = true;
    if (s->replaces)
        remove_manifests(s);
    for (size_t i = 0; ok && i < n; i++)
        ok = give_name(s, staged(s)[i], err);
    return ok && sync_folders(s, err);
}

static void free_paths(struct rd_buf *paths)
{
    for (size_t i = 0; i < n_of(paths); i++)
        rd_free(paths_of(paths)[i]);
    rd_buf_done(paths);
    *paths = (struct rd_buf){0};
}

void backup_staging_done(struct backup_staging *s, bool complete)
{
    backup_staging_forget(s, 0);
    for (size_t i = n_of(&s->made); i-- > 0 && !complete;)
        rmdir(paths_of(&s->made)[i]); /* unless it has other files */
    free_paths(&s->staged);
    free_paths(&s->made);
}
