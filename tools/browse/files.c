#include "tools/browse/items.h"

#include "base/seal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH_MAX = 4, NAME_ROOM = 4096, SEAL_ROOM = 64 };

/* ---- what is served ---- */

/* Names of the files of snapshots, logs and captures. Nothing else of a folder is served. */
static bool is_data(const char *name)
{
    static const char *const ends[] = {".rdb", ".aof", ".manifest", ".seg", ".segment"};
    static const char *const packed[] = {"", ".gz", ".lz4", ".zst"};
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        for (size_t k = 0; k < sizeof packed / sizeof *packed; k++) {
            char end[24];
            int n = snprintf(end, sizeof end, "%s%s", ends[i], packed[k]);
            if (len > (size_t)n && strcmp(name + len - (size_t)n, end) == 0)
                return true;
        }
    return false;
}

/* A folder that is being listed, and its name in the page. */
struct listing {
    struct browse_items *items;
    const char *name;
};

static bool add_folder(const struct listing *l, int at, const char *path, int depth,
                       struct rd_err *err);

/* `path` is that below the folder. */
static bool add_file(const struct listing *l, const char *path, uint64_t size, struct rd_err *err)
{
    struct rd_buf shown = {0};
    bool ok = (rd_buf_add(&shown, l->name, strlen(l->name)) && rd_buf_add(&shown, "/", 1) &&
               rd_buf_add(&shown, path, strlen(path) + 1)) ||
              rd_err_nomem(err, strlen(path));
    struct browse_item *item =
        ok ? browse_items_add(l->items, BROWSE_FILE, (const char *)shown.ptr, path, err) : NULL;
    rd_buf_done(&shown);
    if (item == NULL)
        return false;
    item->size = size;
    item->beneath = true;
    return true;
}

static bool add_entry(const struct listing *l, int at, const char *path, const char *name,
                      int depth, struct rd_err *err)
{
    struct stat st;
    char below[NAME_ROOM];
    int n = snprintf(below, sizeof below, "%s%s%s", path, path[0] != '\0' ? "/" : "", name);
    if (n < 0 || (size_t)n >= sizeof below)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the path of %s is too long", name);
    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || rd_err_sys(err, errno, "cannot examine %s", below);
    if (S_ISREG(st.st_mode) && is_data(name))
        return add_file(l, below, (uint64_t)st.st_size, err);
    if (!S_ISDIR(st.st_mode) || depth == DEPTH_MAX)
        return true;
    int inner = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        return rd_err_sys(err, errno, "cannot read the folder %s", below);
    return add_folder(l, inner, below, depth + 1, err);
}

static int by_name(const void *va, const void *vb)
{
    return strcmp(*(char *const *)va, *(char *const *)vb);
}

/* Adopts each name. */
static bool read_names(DIR *dir, struct rd_buf *names, struct rd_err *err)
{
    const struct dirent *entry;
    while (errno = 0, (entry = readdir(dir)) != NULL) {
        char *name = entry->d_name[0] != '.' ? strdup(entry->d_name) : NULL;
        if (entry->d_name[0] == '.')
            continue;
        if (name == NULL || !rd_buf_add(names, &name, sizeof name)) {
            free(name);
            return rd_err_nomem(err, sizeof name);
        }
    }
    return errno == 0 || rd_err_sys(err, errno, "cannot read the folder");
}

/* Adopts `at`. */
static bool add_folder(const struct listing *l, int at, const char *path, int depth,
                       struct rd_err *err)
{
    struct rd_buf names = {0};
    DIR *dir = fdopendir(at);
    if (dir == NULL) {
        rd_err_sys(err, errno, "cannot read the folder");
        close(at);
        return false;
    }
    bool ok = read_names(dir, &names, err);
    char **list = (char **)(void *)names.ptr;
    size_t n = names.len / sizeof *list;
    if (n > 0)
        qsort(list, n, sizeof *list, by_name);
    for (size_t i = 0; i < n; i++) {
        ok = ok && add_entry(l, dirfd(dir), path, list[i], depth, err);
        free(list[i]);
    }
    rd_buf_done(&names);
    closedir(dir);
    return ok;
}

static bool add_root(struct browse_items *items, const char *path, const char *name,
                     struct rd_err *err)
{
    const struct listing l = {items, name};
    items->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    items->has_folder = items->folder >= 0;
    int again = items->has_folder ? fcntl(items->folder, F_DUPFD_CLOEXEC, 3) : -1;
    if (again < 0)
        return rd_err_sys(err, errno, "cannot read the folder");
    return add_folder(&l, again, "", 1, err) &&
           (browse_items_n(items) > 0 || rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                                                    "the folder has no snapshot, log or capture"));
}

static const char *last_name(char *path)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        path[--len] = '\0';
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL && slash[1] != '\0' ? slash + 1 : path;
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "/") == 0 ? "folder"
                                                                                       : name;
}

/* The page has no keys. */
static bool is_not_sealed(const char *path, struct rd_err *err)
{
    uint8_t begin[SEAL_ROOM];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return rd_err_sys(err, errno, "cannot open");
    ssize_t n = read(fd, begin, sizeof begin);
    int failure = errno;
    close(fd);
    if (n < 0)
        return rd_err_sys(err, failure, "cannot read");
    return !rd_seal_is(rd_slice(begin, (size_t)n)) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "is sealed: redoubt unseal FILE | redoubt browse -");
}

static bool add_one(struct browse_items *items, const char *path, const char *name,
                    const struct stat *st, struct rd_err *err)
{
    if (!is_not_sealed(path, err))
        return false;
    struct browse_item *item = browse_items_add(items, BROWSE_FILE, name, path, err);
    if (item == NULL)
        return false;
    item->size = (uint64_t)st->st_size;
    return true;
}

bool browse_add_path(struct browse_items *items, const char *path, const struct stat *st,
                     struct rd_err *err)
{
    char *own = strdup(path);
    bool ok = own != NULL || rd_err_nomem(err, strlen(path));
    const char *name = ok ? last_name(own) : "";
    if (ok && S_ISDIR(st->st_mode))
        ok = add_root(items, own, name, err);
    else if (ok && S_ISREG(st->st_mode))
        ok = add_one(items, path, name, st, err);
    else if (ok)
        ok = rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "neither a file nor a folder");
    if (!ok && err->origin[0] == '\0')
        rd_err_origin(err, path);
    free(own);
    return ok;
}

/* ---- opening ---- */

/* Opens a path below a folder, and follows no symbolic link on the way. Sets errno. */
static int open_beneath(int folder, const char *path)
{
    int at = fcntl(folder, F_DUPFD_CLOEXEC, 3);
    while (at >= 0) {
        char name[NAME_ROOM];
        size_t len = strcspn(path, "/");
        bool last = path[len] == '\0';
        if (len >= sizeof name) {
            close(at);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, path, len);
        name[len] = '\0';
        int how = last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY;
        int next = openat(at, name, how | O_NOFOLLOW | O_CLOEXEC);
        int failure = errno;
        close(at);
        errno = failure;
        if (last || next < 0)
            return next;
        at = next;
        path += len + 1;
    }
    return -1;
}

bool browse_open_file(const struct browse_items *items, const struct browse_item *item, int *ret_fd,
                      uint64_t *ret_len, struct rd_err *err)
{
    struct stat st;
    int fd = item->beneath ? open_beneath(items->folder, item->from)
                           : open(item->from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0) {
        rd_err_sys(err, errno, "cannot open");
    } else if (!S_ISREG(st.st_mode)) {
        rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "is no file any more");
    } else {
        *ret_fd = fd;
        *ret_len = (uint64_t)st.st_size;
        return true;
    }
    if (fd >= 0)
        close(fd);
    rd_err_origin(err, item->path);
    return false;
}
