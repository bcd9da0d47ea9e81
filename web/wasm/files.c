/* files.c - files for the tools: the calls of the C library that they use.
 *
 * A descriptor is an index of `open_files`. Descriptors 0 to 2 are standard input, which is empty,
 * and the outputs, whose bytes go to the page. Nothing is locked, owned or synced: a page has no
 * other processes and no disk. The kinds of calls that a page cannot do fail with ENOSYS or EPERM.
 */
#include "web/wasm/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <wasi/api.h>

enum { N_OPEN = 1024, FIRST = 3, RANDOM_LETTERS = 6, PAGE = 65536 };

struct open_file {
    bool used;
    bool is_folder;
    bool unlinked; /* it has no name: nothing is left of it when it is closed */
    int file;
    off_t at;
    char path[PATH_MAX];
};

static struct open_file open_files[N_OPEN];

struct __dirstream {
    int fd;
    int next;
    bool dots;
    struct dirent entry;
};

static int fail(int sys)
{
    errno = sys;
    return -1;
}

static struct open_file *of(int fd)
{
    if (fd < FIRST || fd >= N_OPEN || !open_files[fd].used) {
        errno = EBADF;
        return NULL;
    }
    return &open_files[fd];
}

/* The whole path of a name relative to a folder that is open, or to "/". */
static bool resolve(int dir, const char *name, char ret[PATH_MAX])
{
    const struct open_file *folder = name[0] != '/' && dir != AT_FDCWD ? of(dir) : NULL;
    if (name[0] != '/' && dir != AT_FDCWD && folder == NULL)
        return false;
    while (name[0] == '.' && name[1] == '/')
        name += 2;
    const char *base = folder != NULL ? folder->path : "";
    int len;
    if (strcmp(name, ".") == 0)
        len = snprintf(ret, PATH_MAX, "%s", folder != NULL ? base : "/");
    else if (name[0] == '/')
        len = snprintf(ret, PATH_MAX, "%s", name);
    else
        len = snprintf(ret, PATH_MAX, "%s/%s", strcmp(base, "/") == 0 ? "" : base, name);
    while (len > 1 && ret[len - 1] == '/')
        ret[--len] = '\0';
    if (len >= 0 && len < PATH_MAX)
        return true;
    errno = ENAMETOOLONG;
    return false;
}

/* ---- opening ---- */

static int take(int file, bool is_folder, const char *path)
{
    for (int fd = FIRST; fd < N_OPEN; fd++) {
        if (open_files[fd].used)
            continue;
        open_files[fd] = (struct open_file){.used = true, .is_folder = is_folder, .file = file};
        snprintf(open_files[fd].path, PATH_MAX, "%s", path);
        return fd;
    }
    return fail(EMFILE);
}

int openat(int dir, const char *name, int flags, ...)
{
    char path[PATH_MAX];
    int file = 0;
    if ((flags & O_TMPFILE) == O_TMPFILE)
        return fail(EOPNOTSUPP);
    if (!resolve(dir, name, path))
        return -1;
    int kind = host_find(path, &file);
    if (kind == HOST_NONE && (flags & O_CREAT) == 0)
        return fail(ENOENT);
    if (kind != HOST_NONE && (flags & O_EXCL) != 0)
        return fail(EEXIST);
    if (kind == HOST_FILE && (flags & O_DIRECTORY) != 0)
        return fail(ENOTDIR);
    if (kind == HOST_FOLDER && (flags & O_ACCMODE) != O_RDONLY)
        return fail(EISDIR);
    if (kind == HOST_NONE)
        file = host_create(path);
    else if (kind == HOST_FILE && (flags & O_TRUNC) != 0)
        host_resize(file, 0);
    return take(file, kind == HOST_FOLDER, path);
}

int open(const char *name, int flags, ...)
{
    return openat(AT_FDCWD, name, flags, 0);
}

int mkostemp(char *template, int flags)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
    uint8_t random[RANDOM_LETTERS];
    size_t len = strlen(template);
    if (len < RANDOM_LETTERS)
        return fail(EINVAL);
    host_random(random, sizeof random);
    for (size_t i = 0; i < RANDOM_LETTERS; i++)
        template[len - RANDOM_LETTERS + i] = letters[random[i] % 32];
    return open(template, flags | O_RDWR | O_CREAT | O_EXCL);
}

int close(int fd)
{
    struct open_file *file = of(fd);
    if (file == NULL)
        return fd >= 0 && fd < FIRST ? 0 : -1;
    if (file->unlinked) {
        for (int i = FIRST; i < N_OPEN; i++)
            if (i != fd && open_files[i].used && open_files[i].file == file->file)
                file->unlinked = false; /* the last one drops it */
        if (file->unlinked)
            host_drop(file->file);
    }
    file->used = false;
    return 0;
}

int dup(int fd)
{
    const struct open_file *file = of(fd);
    if (file == NULL)
        return fd >= 0 && fd < FIRST ? fd : -1;
    int copy = take(file->file, file->is_folder, file->path);
    if (copy >= 0) {
        open_files[copy].unlinked = file->unlinked;
        open_files[copy].at = file->at;
    }
    return copy;
}

/* ---- bytes ---- */

ssize_t pread(int fd, void *buf, size_t len, off_t at)
{
    const struct open_file *file = of(fd);
    if (file == NULL)
        return fd == STDIN_FILENO ? 0 : -1;
    if (file->is_folder)
        return fail(EISDIR);
    int n = host_read(file->file, (double)at, buf, len > INT_MAX ? INT_MAX : (int)len);
    return n < 0 ? fail(EIO) : n;
}

ssize_t read(int fd, void *buf, size_t len)
{
    struct open_file *file = of(fd);
    ssize_t n = pread(fd, buf, len, file != NULL ? file->at : 0);
    if (file != NULL && n > 0)
        file->at += n;
    return n;
}

ssize_t pwrite(int fd, const void *buf, size_t len, off_t at)
{
    const struct open_file *file = of(fd);
    if (file == NULL)
        return -1;
    int n = host_write(file->file, (double)at, buf, len > INT_MAX ? INT_MAX : (int)len);
    return n < 0 ? fail(ENOSPC) : n;
}

ssize_t write(int fd, const void *buf, size_t len)
{
    if (fd == STDOUT_FILENO || fd == STDERR_FILENO) {
        __wasi_ciovec_t piece = {.buf = buf, .buf_len = len};
        __wasi_size_t n;
        return __wasi_fd_write((__wasi_fd_t)fd, &piece, 1, &n) == 0 ? (ssize_t)n : fail(EIO);
    }
    struct open_file *file = of(fd);
    ssize_t n = file != NULL ? pwrite(fd, buf, len, file->at) : -1;
    if (n > 0)
        file->at += n;
    return n;
}

off_t lseek(int fd, off_t offset, int whence)
{
    struct open_file *file = of(fd);
    if (file == NULL)
        return fail(fd >= 0 && fd < FIRST ? ESPIPE : EBADF);
    off_t from = whence == SEEK_CUR   ? file->at
                 : whence == SEEK_END ? (off_t)host_size(file->file)
                                      : 0;
    if (offset < -from)
        return fail(EINVAL);
    file->at = from + offset;
    return file->at;
}

int ftruncate(int fd, off_t size)
{
    const struct open_file *file = of(fd);
    if (file == NULL)
        return -1;
    host_resize(file->file, (double)size);
    return 0;
}

/* ---- streams ---- */

static ssize_t stream_read(void *cookie, char *buf, size_t len)
{
    return read((int)(intptr_t)cookie, buf, len);
}

static ssize_t stream_write(void *cookie, const char *buf, size_t len)
{
    return write((int)(intptr_t)cookie, buf, len);
}

static int stream_seek(void *cookie, off_t *at, int whence)
{
    *at = lseek((int)(intptr_t)cookie, *at, whence);
    return *at < 0 ? -1 : 0;
}

static int stream_close(void *cookie)
{
    return close((int)(intptr_t)cookie);
}

FILE *fdopen(int fd, const char *mode)
{
    const cookie_io_functions_t calls = {stream_read, stream_write, stream_seek, stream_close};
    return fopencookie((void *)(intptr_t)fd, mode, calls);
}

FILE *fopen(const char *restrict name, const char *restrict mode)
{
    int fd = open(name, mode[0] == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC);
    return fd < 0 ? NULL : fdopen(fd, mode);
}

/* ---- what there is ---- */

static int describe(int kind, int file, struct stat *ret)
{
    *ret = (struct stat){.st_dev = 1, .st_ino = (ino_t)file + 2, .st_nlink = 1, .st_blksize = 4096};
    ret->st_mode = kind == HOST_FOLDER ? S_IFDIR | 0755 : S_IFREG | 0644;
    if (kind == HOST_FILE) {
        ret->st_size = (off_t)host_size(file);
        ret->st_blocks = (blkcnt_t)((ret->st_size + 511) / 512);
        ret->st_mtim.tv_sec = (time_t)host_changed(file);
    }
    return 0;
}

int fstatat(int dir, const char *restrict name, struct stat *restrict ret, int flags)
{
    char path[PATH_MAX];
    int file = 0;
    (void)flags;
    if (!resolve(dir, name, path))
        return -1;
    int kind = host_find(path, &file);
    return kind == HOST_NONE ? fail(ENOENT) : describe(kind, file, ret);
}

int stat(const char *restrict name, struct stat *restrict ret)
{
    return fstatat(AT_FDCWD, name, ret, 0);
}

int lstat(const char *restrict name, struct stat *restrict ret)
{
    return fstatat(AT_FDCWD, name, ret, 0);
}

int fstat(int fd, struct stat *ret)
{
    const struct open_file *file = of(fd);
    if (file == NULL && fd >= 0 && fd < FIRST) {
        *ret = (struct stat){
            .st_dev = 2, .st_ino = (ino_t)fd + 1, .st_mode = S_IFIFO | 0600, .st_nlink = 1};
        return 0;
    }
    return file == NULL ? -1 : describe(file->is_folder ? HOST_FOLDER : HOST_FILE, file->file, ret);
}

int access(const char *name, int mode)
{
    struct stat st;
    (void)mode;
    return stat(name, &st);
}

char *realpath(const char *restrict name, char *restrict ret)
{
    char path[PATH_MAX];
    struct stat st;
    if (!resolve(AT_FDCWD, name, path) || stat(path, &st) != 0)
        return NULL;
    return ret != NULL ? strcpy(ret, path) : strdup(path);
}

/* ---- names ---- */

int unlinkat(int dir, const char *name, int flags)
{
    char path[PATH_MAX];
    int file = 0;
    (void)flags;
    if (!resolve(dir, name, path))
        return -1;
    if (host_find(path, &file) != HOST_FILE)
        return fail(ENOENT);
    if (host_remove(path) > 0)
        return 0;
    bool open = false;
    for (int fd = FIRST; fd < N_OPEN; fd++)
        if (open_files[fd].used && !open_files[fd].is_folder && open_files[fd].file == file)
            open = open_files[fd].unlinked = true;
    if (!open)
        host_drop(file);
    return 0;
}

int unlink(const char *name)
{
    return unlinkat(AT_FDCWD, name, 0);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    char old[PATH_MAX], new[PATH_MAX];
    int file;
    if (!resolve(from_dir, from, old) || !resolve(to_dir, to, new))
        return -1;
    if (host_find(old, &file) == HOST_NONE)
        return fail(ENOENT);
    host_rename(old, new);
    return 0;
}

int rename(const char *from, const char *to)
{
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    char old[PATH_MAX], new[PATH_MAX];
    int file;
    (void)flags;
    if (!resolve(from_dir, from, old) || !resolve(to_dir, to, new))
        return -1;
    if (host_find(old, &file) != HOST_FILE)
        return fail(ENOENT);
    if (host_find(new, &file) != HOST_NONE)
        return fail(EEXIST);
    host_link(old, new);
    return 0;
}

int mkdir(const char *name, mode_t mode)
{
    (void)name, (void)mode;
    return 0; /* a folder exists when it has files */
}

/* ---- folders ---- */

DIR *fdopendir(int fd)
{
    const struct open_file *file = of(fd);
    if (file == NULL || !file->is_folder) {
        errno = file == NULL ? EBADF : ENOTDIR;
        return NULL;
    }
    DIR *dir = calloc(1, sizeof *dir);
    if (dir != NULL)
        dir->fd = fd;
    return dir;
}

DIR *opendir(const char *name)
{
    int fd = open(name, O_RDONLY | O_DIRECTORY);
    return fd < 0 ? NULL : fdopendir(fd);
}

struct dirent *readdir(DIR *dir)
{
    const struct open_file *file = of(dir->fd);
    if (file == NULL)
        return NULL;
    int len = host_entry(file->path, dir->next++, dir->entry.d_name, sizeof dir->entry.d_name);
    return len < 0 ? NULL : &dir->entry;
}

int dirfd(DIR *dir)
{
    return dir->fd;
}

int closedir(DIR *dir)
{
    int result = close(dir->fd);
    free(dir);
    return result;
}

/* ---- memory ---- */

/* A mapping of a file is a copy of its bytes. */
void *mmap(void *hint, size_t len, int prot, int flags, int fd, off_t at)
{
    void *ptr;
    (void)hint, (void)prot;
    if (posix_memalign(&ptr, PAGE, len) != 0) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    if ((flags & MAP_ANONYMOUS) != 0) {
        memset(ptr, 0, len);
        return ptr;
    }
    for (size_t have = 0; have < len;) {
        ssize_t n = pread(fd, (char *)ptr + have, len - have, at + (off_t)have);
        if (n < 0) {
            free(ptr);
            return MAP_FAILED;
        }
        if (n == 0)
            memset((char *)ptr + have, 0, len - have);
        have = n == 0 ? len : have + (size_t)n;
    }
    return ptr;
}

int munmap(void *ptr, size_t len)
{
    (void)len;
    free(ptr);
    return 0;
}

int madvise(void *ptr, size_t len, int advice)
{
    (void)ptr, (void)len, (void)advice;
    return 0;
}

/* ---- what has no effect ---- */

int fcntl(int fd, int command, ...)
{
    (void)command;
    return fd < FIRST || of(fd) != NULL ? 0 : -1;
}

int flock(int fd, int operation)
{
    (void)fd, (void)operation;
    return 0;
}

int fsync(int fd)
{
    (void)fd;
    return 0;
}

int sync_file_range(int fd, off_t at, off_t len, unsigned flags)
{
    (void)fd, (void)at, (void)len, (void)flags;
    return 0;
}

int fchmod(int fd, mode_t mode)
{
    (void)fd, (void)mode;
    return 0;
}

int fchown(int fd, uid_t uid, gid_t gid)
{
    (void)fd, (void)uid, (void)gid;
    return 0;
}

mode_t umask(mode_t mask)
{
    (void)mask;
    return 022;
}

int posix_fadvise(int fd, off_t at, off_t len, int advice)
{
    (void)fd, (void)at, (void)len, (void)advice;
    return 0;
}

int isatty(int fd)
{
    (void)fd;
    errno = ENOTTY;
    return 0;
}

int poll(struct pollfd *fds, nfds_t n, int timeout)
{
    (void)fds, (void)timeout;
    return (int)n;
}

ssize_t getrandom(void *buf, size_t len, unsigned flags)
{
    (void)flags;
    host_random(buf, (int)len);
    return (ssize_t)len;
}

/* There is one thread. */
long sysconf(int name)
{
    switch (name) {
    case _SC_PAGESIZE:
        return PAGE;
    case _SC_NPROCESSORS_ONLN:
    case _SC_NPROCESSORS_CONF:
        return 1;
    default:
        return -1;
    }
}
