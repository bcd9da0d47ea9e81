/* folder.c - finds the snapshots in a folder. */
#include "tools/check_rdb/check_rdb.h"

#include "base/mem.h"
#include "rebuild/stream.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

static bool ends_with(const char *name, const char *tail)
{
    size_t len = strlen(name), n = strlen(tail);
    return len > n && strcmp(name + len - n, tail) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool add(struct check_folder *folder, const char *path, struct rd_err *err)
{
    size_t size = (folder->n + 1) * sizeof *folder->paths, len = strlen(path) + 1;
    char **more = rd_realloc(folder->paths, size);
    if (more == NULL)
        return rd_err_nomem(err, size);
    folder->paths = more;
    folder->paths[folder->n] = rd_alloc(len);
    if (folder->paths[folder->n] == NULL)
        return rd_err_nomem(err, len);
    memcpy(folder->paths[folder->n++], path, len);
    return true;
}

/* A server writes a new snapshot under a name that begins with "temp-". */
static bool look_at(struct check_folder *folder, const char *dir, const char *name,
                    struct rd_err *err)
{
    char path[PATH_MAX];
    struct stat st;
    int len = snprintf(path, sizeof path, "%s/%s", dir, name);
    if (len < 0 || (size_t)len >= sizeof path || lstat(path, &st) != 0)
        return true;
    if (S_ISDIR(st.st_mode) && strcmp(name, "appendonlydir") == 0)
        folder->has_log = true;
    if (!S_ISREG(st.st_mode))
        return true;
    folder->has_log |= ends_with(name, ".manifest") || ends_with(name, ".aof");
    return strncmp(name, "temp-", 5) == 0 || !cli_name_ends(name, "rdb") || add(folder, path, err);
}

bool check_folder_list(struct check_folder *folder, const char *path, struct rd_err *err)
{
    *folder = (struct check_folder){.has_log = rebuild_stream_is(path)};
    DIR *dir = opendir(path);
    bool ok = dir != NULL || rd_err_sys(err, errno, "open");
    for (const struct dirent *e; ok && (e = readdir(dir)) != NULL;)
        ok = look_at(folder, path, e->d_name, err);
    if (dir != NULL)
        closedir(dir);
    if (folder->n > 0)
        qsort(folder->paths, folder->n, sizeof *folder->paths, by_name);
    rd_err_origin(err, path);
    return ok;
}

void check_folder_done(struct check_folder *folder)
{
    for (size_t i = 0; i < folder->n; i++)
        rd_free(folder->paths[i]);
    rd_free(folder->paths);
    *folder = (struct check_folder){0};
}
