#include "base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

struct posix {
    int dir;     /* the folder around it */
    int folder;  /* the one that names are in */
    mode_t mode; /* of new files */
};

/* Repeats calls that a signal interrupted. Returns a negative errno instead of -1. */
#define CALL(type, call)                                                                           \
    __extension__({                                                                                \
        type n_;                                                                                   \
        do                                                                                         \
            n_ = (call);                                                                           \
        while (n_ < 0 && errno == EINTR);                                                          \
        n_ < 0 ? (type)-errno : n_;                                                                \
    })

static int open_folder(int at, const char *path)
{
    return CALL(int, openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/* Only regular files: a FIFO may block forever, and a link may point outside of the folder. */
static int regular_only(int fd)
{
    struct stat st;
    int sys = fd < 0 ? fd : fstat(fd, &st) != 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
    if (fd >= 0 && sys != 0)
        close(fd);
    return sys != 0 ? sys : fd;
}

static int posix_open(void *ctx, const char *name, enum rd_fs_mode mode)
{
    const struct posix *p = ctx;
    static const int flags[] = {
        [RD_FS_READ] = O_RDONLY,
        [RD_FS_READ_AT] = O_RDONLY,
        [RD_FS_APPEND] = O_WRONLY | O_APPEND,
        [RD_FS_CREATE] = O_WRONLY | O_APPEND | O_CREAT | O_TRUNC,
    };
    int fd = regular_only(
        CALL(int, openat(p->folder, name,
                         flags[mode] | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, p->mode)));
    if (fd >= 0 && mode == RD_FS_READ_AT)
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    return fd;
}

static int posix_close_fd(void *ctx, int fd)
{
    (void)ctx;
    /* On EINTR the descriptor is closed, too. */
    return close(fd) == 0 || errno == EINTR ? 0 : -errno;
}

static ssize_t posix_read(void *ctx, int fd, void *dst, size_t size)
{
    (void)ctx;
    return CALL(ssize_t, read(fd, dst, size));
}

static ssize_t posix_write(void *ctx, int fd, const void *src, size_t size)
{
    (void)ctx;
    return CALL(ssize_t, write(fd, src, size));
}

static ssize_t posix_read_at(void *ctx, int fd, void *dst, size_t size, uint64_t offset)
{
    (void)ctx;
    return CALL(ssize_t, pread(fd, dst, size, (off_t)offset));
}

static int posix_truncate(void *ctx, int fd, uint64_t size)
{
    (void)ctx;
    return CALL(int, ftruncate(fd, (off_t)size));
}

static int posix_sync(void *ctx, int fd)
{
    (void)ctx;
    return CALL(int, fdatasync(fd));
}

static int posix_size(void *ctx, const char *name, uint64_t *ret)
{
    const struct posix *p = ctx;
    struct stat st;
    if (fstatat(p->folder, name, &st, 0) != 0)
        return -errno;
    *ret = (uint64_t)st.st_size;
    return 0;
}

static int posix_rename(void *ctx, const char *from, const char *to)
{
    const struct posix *p = ctx;
    return CALL(int, renameat(p->folder, from, p->folder, to));
}

static int posix_unlink(void *ctx, const char *name)
{
    const struct posix *p = ctx;
    return CALL(int, unlinkat(p->folder, name, 0));
}

static int posix_sync_folder(void *ctx, bool outside)
{
    const struct posix *p = ctx;
    return CALL(int, fsync(outside ? p->dir : p->folder));
}

static int posix_list(void *ctx, void (*each)(void *arg, const char *name), void *arg)
{
    const struct posix *p = ctx;
    int fd = open_folder(p->folder, ".");
    if (fd < 0)
        return fd;
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        close(fd);
        return -ENOMEM;
    }
    const struct dirent *entry;
    while ((void)(errno = 0), (entry = readdir(dir)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            each(arg, entry->d_name);
    int result = -errno;
    closedir(dir);
    return result;
}

static int posix_lock(void *ctx, const char *name)
{
    const struct posix *p = ctx;
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int fd = regular_only(CALL(int, openat(p->folder, name, flags, p->mode)));
    if (fd < 0)
        return fd;
    int result = CALL(int, flock(fd, LOCK_EX | LOCK_NB));
    if (result < 0)
        close(fd);
    return result < 0 ? result : fd;
}

static int posix_outside(void *ctx, const char *name)
{
    const struct posix *p = ctx;
    struct stat st;
    if (fstatat(p->dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : -errno;
    return S_ISLNK(st.st_mode) ? -ELOOP : S_ISREG(st.st_mode);
}

static int posix_adopt(void *ctx, const char *name)
{
    const struct posix *p = ctx;
    return CALL(int, renameat(p->dir, name, p->folder, name));
}

static bool open_both(struct posix *p, const char *dir, const char *folder, struct rd_err *err)
{
    p->dir = open_folder(AT_FDCWD, dir);
    if (p->dir < 0)
        return rd_err_sys(err, -p->dir, "cannot open the parent folder");
    if (mkdirat(p->dir, folder, 0755) == 0) {
        if (fsync(p->dir) != 0)
            return rd_err_sys(err, errno, "cannot sync the parent folder");
    } else if (errno != EEXIST) {
        return rd_err_sys(err, errno, "cannot create the folder");
    }
    p->folder = open_folder(p->dir, folder);
    return p->folder >= 0 || rd_err_sys(err, -p->folder, "cannot open the folder");
}

static void close_both(struct posix *p)
{
    if (p->dir >= 0)
        close(p->dir);
    if (p->folder >= 0)
        close(p->folder);
    rd_free(p);
}

static struct rd_fs calls(struct posix *p)
{
    return (struct rd_fs){
        .ctx = p,
        .open = posix_open,
        .close = posix_close_fd,
        .read = posix_read,
        .write = posix_write,
        .read_at = posix_read_at,
        .truncate = posix_truncate,
        .sync = posix_sync,
        .size = posix_size,
        .rename = posix_rename,
        .unlink = posix_unlink,
        .sync_folder = posix_sync_folder,
        .list = posix_list,
        .lock = posix_lock,
    };
}

bool rd_fs_open_posix(struct rd_fs *ret, const char *dir, const char *folder, struct rd_err *err)
{
    struct posix *p = rd_alloc(sizeof *p);
    if (p == NULL)
        return rd_err_nomem(err, sizeof *p);
    *p = (struct posix){.dir = -1, .folder = -1, .mode = 0644};
    if (!open_both(p, dir, folder, err)) {
        rd_err_origin(err, p->dir < 0 ? dir : folder);
        close_both(p);
        return false;
    }
    *ret = calls(p);
    ret->outside = posix_outside;
    ret->adopt = posix_adopt;
    return true;
}

static bool open_path(struct posix *p, const char *path, bool create, struct rd_err *err)
{
    bool made = create && mkdir(path, 0700) == 0;
    if (create && !made && errno != EEXIST)
        return rd_err_sys(err, errno, "cannot create the folder");
    p->folder = open_folder(AT_FDCWD, path);
    if (p->folder < 0)
        return rd_err_sys(err, -p->folder, "cannot open the folder");
    if (!made)
        return true;
    p->dir = open_folder(p->folder, "..");
    if (p->dir < 0 || fsync(p->dir) != 0)
        return rd_err_sys(err, errno, "cannot sync the parent folder");
    return true;
}

bool rd_fs_open_folder(struct rd_fs *ret, const char *path, bool create, struct rd_err *err)
{
    struct posix *p = rd_alloc(sizeof *p);
    if (p == NULL)
        return rd_err_nomem(err, sizeof *p);
    *p = (struct posix){.dir = -1, .folder = -1, .mode = 0600};
    if (!open_path(p, path, create, err)) {
        rd_err_origin(err, path);
        close_both(p);
        return false;
    }
    *ret = calls(p);
    return true;
}

void rd_fs_close_posix(struct rd_fs *fs)
{
    if (fs->ctx != NULL)
        close_both(fs->ctx);
    *fs = (struct rd_fs){0};
}
