#include "base/sink.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os.h"
#include "base/sink_fd.h"
#include "base/sink_impl.h"
#include "base/sized.h"

/* Temporary files in use, where a signal handler can find them. A slot's fields change only while
 * its state is SLOT_BUSY. */
enum slot_state { SLOT_FREE, SLOT_BUSY, SLOT_USED };

enum { N_SLOTS = 256, NAME_KEPT = 200, RANDOM_DIGITS = 16 };

enum { WRITEBACK = 16 << 20 /* bytes */ };

static const char temp_end[] = ".tmp";

struct slot {
    atomic_int state;
    pid_t owner; /* a child after fork() must not remove its parent's files */
    int dir;
    char name[NAME_MAX + 1];
};

static struct slot slots[N_SLOTS];

struct file {
    int fd;
    bool own;
    bool no_sync;
    /* Only of a file that appears under its name when it is closed: */
    uint64_t written, pushed; /* bytes, and how many of them go to the disk */
    bool replace;
    bool unnamed; /* it has no name yet, also no temporary one */
    int dir;
    int lock; /* locks the temporary file: see remove_stale() */
    struct slot *slot;
    char name[NAME_MAX + 1];
};

static bool wait_writable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    return poll(&p, 1, -1) >= 0 || errno == EINTR;
}

static bool file_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct file *file = impl;
    while (len > 0) {
        ssize_t n = write(file->fd, ptr, len);
        if (n >= 0) {
            ptr += n;
            len -= (size_t)n;
        } else if (errno != EINTR && !(errno == EAGAIN && wait_writable(file->fd))) {
            return rd_err_sys(err, errno, "cannot write");
        }
    }
    return true;
}

/* Pipes, terminals and the folders of some file systems cannot be synced. */
static bool sync_fd(int fd, const char *what, struct rd_err *err)
{
    int rc;
    do {
        rc = fsync(fd);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS)
        return rd_err_sys(err, errno, "cannot sync %s", what);
    return true;
}

static bool file_sync(void *impl, struct rd_err *err)
{
    struct file *file = impl;
    return file->no_sync || sync_fd(file->fd, "file", err);
}

static bool close_fd(struct file *file, struct rd_err *err)
{
    /* On EINTR, Linux has closed the descriptor. */
    int rc = file->own ? close(file->fd) : 0;
    file->own = false;
    if (rc != 0 && errno != EINTR)
        return rd_err_sys(err, errno, "cannot close");
    return true;
}

static bool stream_close(void *impl, bool commit, struct rd_err *err)
{
    struct file *file = impl;
    (void)commit;
    bool ok = close_fd(file, err);
    rd_free(file);
    return ok;
}

static const struct rd_sink_ops stream_ops = {file_write, file_sync, stream_close};

bool rd_sink_open_fd(struct rd_sink **ret, int fd, bool own, const struct rd_sink_opts *opts,
                     struct rd_err *err)
{
    struct rd_sink_opts known;
    bool ok = rd_sized_copy(&known, sizeof known, opts, err);
    struct file *file = ok ? rd_calloc(1, sizeof *file) : NULL;
    if (file == NULL) {
        if (own)
            close(fd);
        if (ok)
            rd_err_nomem(err, sizeof *file);
        rd_err_origin(err, known.origin);
        return false;
    }
    file->fd = fd;
    file->own = own;
    file->no_sync = known.no_sync;
    return rd_sink_new(ret, &stream_ops, file, &known, err);
}

static struct slot *take_slot(int dir)
{
    for (size_t i = 0; i < N_SLOTS; i++) {
        int expected = SLOT_FREE;
        if (!atomic_compare_exchange_strong(&slots[i].state, &expected, SLOT_BUSY))
            continue;
        slots[i].dir = dir;
        slots[i].owner = getpid();
        return &slots[i];
    }
    return NULL;
}

static void release_slot(struct slot *slot)
{
    if (slot != NULL)
        atomic_store(&slot->state, SLOT_FREE);
}

void rd_sink_unlink_all(void)
{
    int saved = errno;
    pid_t self = getpid();
    for (size_t i = 0; i < N_SLOTS; i++)
        if (atomic_load(&slots[i].state) == SLOT_USED && slots[i].owner == self)
            unlinkat(slots[i].dir, slots[i].name, 0);
    errno = saved;
}

/* ".NAME.redoubt-", to which random digits and an end are added. */
static size_t put_temp_begin(const struct file *file, char *dst, size_t size)
{
    return (size_t)snprintf(dst, size, ".%.*s.redoubt-", NAME_KEPT, file->name);
}

/* Gives the slot an unpredictable name. */
static bool choose_temp_name(struct file *file, struct rd_err *err)
{
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return rd_err_sys(err, errno, "cannot get a random name");
    atomic_store(&file->slot->state, SLOT_BUSY);
    size_t len = put_temp_begin(file, file->slot->name, sizeof file->slot->name);
    snprintf(file->slot->name + len, sizeof file->slot->name - len, "%016" PRIx64 "%s", number,
             temp_end);
    atomic_store(&file->slot->state, SLOT_USED);
    return true;
}

static bool is_temp_name(const char *name, const char *begin, size_t len)
{
    return strncmp(name, begin, len) == 0 &&
           strspn(name + len, "0123456789abcdef") == RANDOM_DIGITS &&
           strcmp(name + len + RANDOM_DIGITS, temp_end) == 0;
}

/* A file that another process is writing is locked. */
static void remove_unless_used(int dir, const char *name)
{
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(dir, name, 0);
    close(fd);
}

/* Removes the temporary files that killed processes left for this name. */
static void remove_stale(const struct file *file)
{
    char begin[NAME_MAX + 1];
    size_t len = put_temp_begin(file, begin, sizeof begin);
    int fd = openat(file->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while ((entry = readdir(dir)) != NULL)
        if (is_temp_name(entry->d_name, begin, len))
            remove_unless_used(file->dir, entry->d_name);
    closedir(dir);
}

struct proc_path {
    char s[40];
};

static struct proc_path proc_path(int fd)
{
    struct proc_path path;
    snprintf(path.s, sizeof path.s, "/proc/self/fd/%d", fd);
    return path;
}

/* Creates a file without a name, which leaves nothing if the process is killed. False if the file
 * system does not support it, or if the file could not get a name later. */
static bool create_unnamed(struct file *file)
{
    struct stat st;
    int fd = openat(file->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    if (stat(proc_path(fd).s, &st) != 0) {
        close(fd);
        return false;
    }
    file->fd = fd;
    file->unnamed = true;
    return true;
}

/* Locks the temporary file. False: another process removed it as a leftover. */
static bool lock_temp(struct file *file)
{
    struct stat st;
    (void)flock(file->fd, LOCK_EX); /* without lock support no process gets a lock */
    if (fstat(file->fd, &st) != 0 || st.st_nlink > 0)
        return true;
    close(file->fd);
    file->fd = -1;
    return false;
}

/* The name is in the table before the file exists, so that a signal handler always finds it. */
static bool create_named(struct file *file, struct rd_err *err)
{
    int sys;
    remove_stale(file);
    do {
        if (!choose_temp_name(file, err))
            return false;
        file->fd = openat(file->dir, file->slot->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        sys = errno;
    } while (file->fd < 0 ? sys == EEXIST || sys == EINTR : !lock_temp(file));
    if (file->fd < 0)
        return rd_err_sys(err, sys, "cannot create");
    return true;
}

/* If the file cannot get the requested group, its group gets no permissions. */
static bool set_access(struct file *file, const struct rd_sink_opts *opts, struct rd_err *err)
{
    unsigned mode = opts->mode != 0 ? opts->mode & 07777 : 0600;
    if (opts->set_owner && fchown(file->fd, opts->uid, opts->gid) != 0 &&
        fchown(file->fd, (uid_t)-1, opts->gid) != 0)
        mode &= ~(unsigned)S_IRWXG;
    if (opts->mode != 0 && fchmod(file->fd, mode) != 0)
        return rd_err_sys(err, errno, "cannot set the permissions");
    return true;
}

static bool create_temp(struct file *file, const struct rd_sink_opts *opts, struct rd_err *err)
{
    file->slot = take_slot(file->dir);
    if (file->slot == NULL)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "more than %d files to write at a time",
                          N_SLOTS);
    if (!create_unnamed(file) && !create_named(file, err))
        return false;
    file->own = true;
    return set_access(file, opts, err);
}

static bool refuse_existing(struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "already exists");
}

/* Where rd_rename_new() is not supported. */
static bool give_name_by_link(struct file *file, struct rd_err *err)
{
    if (linkat(file->dir, file->slot->name, file->dir, file->name, 0) != 0)
        return errno == EEXIST ? refuse_existing(err)
                               : rd_err_sys(err, errno, "cannot give the file its name");
    unlinkat(file->dir, file->slot->name, 0);
    return true;
}

/* Keeps the replaced file open a moment longer: the system then frees its blocks when it is closed,
 * not while it changes the folder, which other processes may be waiting for. */
static int rename_temp(const struct file *file)
{
    int old = file->replace ? openat(file->dir, file->name, O_PATH | O_CLOEXEC | O_NOFOLLOW) : -1;
    int rc = file->replace ? renameat(file->dir, file->slot->name, file->dir, file->name)
                           : rd_rename_new(file->dir, file->slot->name, file->dir, file->name);
    int sys = errno;
    if (old >= 0)
        close(old);
    errno = sys;
    return rc;
}

static int link_unnamed(const struct file *file, const char *name)
{
    return linkat(AT_FDCWD, proc_path(file->fd).s, file->dir, name, AT_SYMLINK_FOLLOW);
}

/* A link replaces nothing: to replace a file, it takes a temporary name for a moment. */
static bool name_unnamed(struct file *file, struct rd_err *err)
{
    int rc;
    if (!file->replace) {
        if (link_unnamed(file, file->name) == 0)
            return true;
        return errno == EEXIST ? refuse_existing(err)
                               : rd_err_sys(err, errno, "cannot give the file its name");
    }
    remove_stale(file);
    (void)flock(file->fd, LOCK_EX);
    do {
        if (!choose_temp_name(file, err))
            return false;
        rc = link_unnamed(file, file->slot->name);
    } while (rc != 0 && errno == EEXIST);
    return (rc == 0 && rename_temp(file) == 0) ||
           rd_err_sys(err, errno, "cannot give the file its name");
}

static bool give_name(struct file *file, struct rd_err *err)
{
    if (file->unnamed)
        return name_unnamed(file, err);
    if (rename_temp(file) == 0)
        return true;
    if (!file->replace && errno == EEXIST)
        return refuse_existing(err);
    if (!file->replace && (errno == EINVAL || errno == ENOSYS))
        return give_name_by_link(file, err);
    return rd_err_sys(err, errno, "cannot give the file its name");
}

/* Removes the temporary file unless it has its final name, and frees everything. */
static void file_free(struct file *file, bool named)
{
    if (file->own)
        close(file->fd);
    if (file->slot != NULL && !named && atomic_load(&file->slot->state) == SLOT_USED)
        unlinkat(file->dir, file->slot->name, 0);
    release_slot(file->slot);
    if (file->lock >= 0)
        close(file->lock);
    close(file->dir);
    rd_free(file);
}

/* Closes a file before it is renamed: some file systems report write errors only then. The lock is
 * held until the file has its name. */
static bool close_named(struct file *file, struct rd_err *err)
{
    file->lock = dup(file->fd);
    return close_fd(file, err);
}

/* A file without a name keeps its descriptor until it has one. */
static bool file_close(void *impl, bool commit, struct rd_err *err)
{
    struct file *file = impl;
    bool named = commit && file_sync(file, err) && (file->unnamed || close_named(file, err)) &&
                 give_name(file, err);
    bool ok = named && close_fd(file, err) && (file->no_sync || sync_fd(file->dir, "folder", err));
    file_free(file, named);
    return ok;
}

/* The disk works while the rest is computed; fsync() would have to write everything otherwise. */
static bool named_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct file *file = impl;
    if (!file_write(impl, ptr, len, err))
        return false;
    file->written += len;
    if (!file->no_sync && file->written - file->pushed >= WRITEBACK) {
        sync_file_range(file->fd, (off_t)file->pushed, (off_t)(file->written - file->pushed),
                        SYNC_FILE_RANGE_WRITE);
        file->pushed = file->written;
    }
    return true;
}

static const struct rd_sink_ops file_ops = {named_write, file_sync, file_close};

int rd_sink_fd(const struct rd_sink *sink)
{
    const struct file *file = sink->state->impl;
    return sink->state->ops == &file_ops ? file->fd : -1;
}

/* Splits a path into an open folder and a name in it. */
static bool open_folder(struct file *file, const char *path, struct rd_err *err)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t len = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    if (len >= sizeof folder || strlen(name) >= sizeof file->name)
        return rd_err_sys(err, ENAMETOOLONG, "cannot create");
    if (name[0] == '\0')
        return rd_err_sys(err, path[0] == '\0' ? ENOENT : EISDIR, "cannot create");
    memcpy(folder, len > 0 ? path : ".", len > 0 ? len : 1);
    folder[len > 0 ? len : 1] = '\0';
    memcpy(file->name, name, strlen(name) + 1);
    file->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file->dir < 0)
        return rd_err_sys(err, errno, "cannot open the folder");
    return true;
}

static bool open_atomic(struct rd_sink **ret, const char *path, const struct rd_sink_opts *opts,
                        struct rd_err *err)
{
    struct file *file = rd_calloc(1, sizeof *file);
    if (file == NULL)
        return rd_err_nomem(err, sizeof *file);
    file->fd = file->lock = -1;
    file->replace = opts->replace;
    file->no_sync = opts->no_sync;
    if (!open_folder(file, path, err)) {
        rd_free(file);
        return false;
    }
    if (!create_temp(file, opts, err)) {
        file_free(file, file->fd < 0);
        return false;
    }
    return rd_sink_new(ret, &file_ops, file, opts, err);
}

static bool open_direct(struct rd_sink **ret, const char *path, const struct rd_sink_opts *opts,
                        struct rd_err *err)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return rd_err_sys(err, errno, "cannot open");
    return rd_sink_open_fd(ret, fd, true, opts, err);
}

/* Decides how a path is written; `resolved` has PATH_MAX bytes. */
static bool open_path(struct rd_sink **ret, const char *path, char *resolved,
                      const struct rd_sink_opts *opts, struct rd_err *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? rd_err_sys(err, EISDIR, "cannot create")
                                   : open_direct(ret, path, opts, err);
    bool exists = lstat(path, &st) == 0;
    if (exists && !opts->replace)
        return refuse_existing(err);
    if (exists && S_ISLNK(st.st_mode)) {
        if (realpath(path, resolved) == NULL)
            return rd_err_sys(err, errno, "cannot follow the symbolic link");
        path = resolved;
    }
    return open_atomic(ret, path, opts, err);
}

bool rd_sink_open_file(struct rd_sink **ret, const char *path, const struct rd_sink_opts *opts,
                       struct rd_err *err)
{
    struct rd_sink_opts named;
    if (!rd_sized_copy(&named, sizeof named, opts, err))
        return false;
    char resolved[PATH_MAX];
    bool is_stdout = strcmp(path, "-") == 0;
    if (named.origin == NULL)
        named.origin = is_stdout ? "standard output" : path;
    bool ok = is_stdout ? rd_sink_open_fd(ret, STDOUT_FILENO, false, &named, err)
                        : open_path(ret, path, resolved, &named, err);
    if (!ok)
        rd_err_origin(err, named.origin);
    return ok;
}
