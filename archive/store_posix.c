/* store_posix.c - a repository in a folder.
 *
 * An object is written to a file without a name, synced, and gets its name by a link, which fails
 * if the name exists. A killed process leaves nothing. If the file system does not support unnamed
 * files, the object is written as NAME.new in the same folder; the next run removes such remains.
 * If it does not support links either, the file is renamed, in a way that fails if the name exists.
 */
#include "archive/store.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER_MODE = 0700, FILE_MODE = 0600, DEPTH_MAX = 8 };

struct posix {
    struct archive_store store;
    int root;
    int lock; /* -1: not held */
    char lock_name[ARCHIVE_NAME_MAX];
};

static struct posix *posix_of(struct archive_store *store)
{
    return (struct posix *)store;
}

static bool failed(const char *name, int sys, const char *what, struct rd_err *err)
{
    rd_err_sys(err, sys, "%s", what);
    rd_err_origin(err, name);
    return false;
}

/* ---- folders ---- */

/* Opens the folder of a name, and creates it if it is missing; returns a descriptor, or -1 with
 * errno. */
static int open_parent(const struct posix *p, const char *name, bool make)
{
    char part[ARCHIVE_NAME_MAX];
    int fd = openat(p->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (const char *slash; fd >= 0 && (slash = strchr(name, '/')) != NULL; name = slash + 1) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - name), name);
        bool made = make && mkdirat(fd, part, FOLDER_MODE) == 0;
        int refused = make && !made && errno != EEXIST ? errno : 0;
        int inner = made && fsync(fd) != 0
                        ? -1
                        : openat(fd, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        /* The reason why the folder could not be created is more useful than that it is missing. */
        int sys = inner < 0 && refused != 0 ? refused : errno;
        close(fd);
        errno = sys;
        fd = inner;
    }
    return fd;
}

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash != NULL ? slash + 1 : name;
}

/* ---- put ---- */

struct put {
    int dir, fd;
    bool named; /* it has the name `temp` */
    char name[ARCHIVE_NAME_MAX];
    char temp[ARCHIVE_NAME_MAX + 4];
    char origin[ARCHIVE_NAME_MAX];
};

static bool put_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct put *put = impl;
    while (len > 0) {
        ssize_t n = write(put->fd, ptr, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return failed(put->origin, n < 0 ? errno : ENOSPC, "cannot write", err);
        ptr += n;
        len -= (size_t)n;
    }
    return true;
}

static bool put_sync(void *impl, struct rd_err *err)
{
    struct put *put = impl;
    return fdatasync(put->fd) == 0 || failed(put->origin, errno, "cannot sync", err);
}

static bool give_name(struct put *put)
{
    char self[40];
    if (put->named)
        return linkat(put->dir, put->temp, put->dir, put->name, 0) == 0;
    snprintf(self, sizeof self, "/proc/self/fd/%d", put->fd);
    return linkat(AT_FDCWD, self, put->dir, put->name, AT_SYMLINK_FOLLOW) == 0;
}

/* Whether the object that exists has the same bytes as the new file. */
static bool is_same(const struct put *put)
{
    uint8_t a[8192], b[sizeof a];
    struct stat x, y;
    int fd = openat(put->dir, put->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool same = fd >= 0 && fstat(fd, &x) == 0 && fstat(put->fd, &y) == 0 && S_ISREG(x.st_mode) &&
                x.st_size == y.st_size;
    for (off_t at = 0; same && at < x.st_size;) {
        ssize_t n = pread(put->fd, a, sizeof a, at);
        same = n > 0 && pread(fd, b, (size_t)n, at) == n && memcmp(a, b, (size_t)n) == 0;
        at += n;
    }
    if (fd >= 0)
        close(fd);
    return same;
}

/* An answer can be lost here, too: NFS may repeat a link that was made. */
static bool judge_existing(const struct put *put, struct rd_err *err)
{
    return is_same(put) || archive_store_set_exists(err, put->origin);
}

/* What link() says on file systems without links: FAT and exFAT, SMB, many of FUSE. */
static bool has_no_links(int sys)
{
    return sys == EPERM || sys == EOPNOTSUPP || sys == ENOSYS || sys == EMLINK;
}

/* A rename that would replace an existing object is not used. */
static bool rename_new(struct put *put, struct rd_err *err)
{
    if (rd_rename_new(put->dir, put->temp, put->dir, put->name) == 0)
        return true;
    if (errno == EEXIST)
        return judge_existing(put, err);
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        return failed(put->origin, errno, "cannot give the object its name", err);
    rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
               "the file system has neither hard links nor a rename that never replaces a file");
    rd_err_origin(err, put->origin);
    return false;
}

static bool commit(struct put *put, struct rd_err *err)
{
    if (fsync(put->fd) != 0)
        return failed(put->origin, errno, "cannot sync", err);
    if (give_name(put))
        return true;
    int sys = errno;
    if (sys == EEXIST)
        return judge_existing(put, err);
    if (!has_no_links(sys) || !put->named)
        return failed(put->origin, sys, "cannot give the object its name", err);
    return rename_new(put, err);
}

static bool put_close(void *impl, bool may, struct rd_err *err)
{
    struct put *put = impl;
    bool ok = !may || commit(put, err);
    if (put->named)
        unlinkat(put->dir, put->temp, 0);
    if (may && ok && fsync(put->dir) != 0)
        ok = failed(put->origin, errno, "cannot sync the folder", err);
    close(put->fd);
    close(put->dir);
    rd_free(put);
    return ok;
}

/* A file without a name, or NAME.new if the file system does not support that. */
static bool open_new(struct put *put)
{
    put->fd = openat(put->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, FILE_MODE);
    if (put->fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return put->fd >= 0;
    put->named = true;
    put->fd =
        openat(put->dir, put->temp, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    return put->fd >= 0;
}

static bool posix_put(struct archive_store *store, const char *name, struct rd_sink **ret,
                      struct rd_err *err)
{
    static const struct rd_sink_ops ops = {put_write, put_sync, put_close};
    struct put *put = rd_calloc(1, sizeof *put);
    if (put == NULL)
        return rd_err_nomem(err, sizeof *put);
    snprintf(put->origin, sizeof put->origin, "%s", name);
    snprintf(put->name, sizeof put->name, "%s", last_part(name));
    snprintf(put->temp, sizeof put->temp, "%s.new", put->name);
    put->dir = open_parent(posix_of(store), name, true);
    if (put->dir < 0 || !open_new(put)) {
        failed(name, errno, "cannot create the object", err);
        if (put->dir >= 0)
            close(put->dir);
        rd_free(put);
        return false;
    }
    const struct rd_sink_opts opts = RD_SINK_OPTS(.origin = name);
    return rd_sink_new(ret, &ops, put, &opts, err);
}

/* ---- the rest ---- */

/* Only regular files are objects. A FIFO would block, and reading a device never ends. */
static int open_object(const struct posix *p, const char *name)
{
    struct stat st;
    int dir = open_parent(p, name, false);
    int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = dir >= 0 ? openat(dir, last_part(name), flags) : -1;
    int sys = errno;
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        fd = -1;
        sys = EINVAL;
    }
    if (dir >= 0)
        close(dir);
    errno = sys;
    return fd;
}

static bool posix_get(struct archive_store *store, const char *name, struct rd_src **ret,
                      struct rd_err *err)
{
    int fd = open_object(posix_of(store), name);
    if (fd < 0)
        return errno == ENOENT ? archive_store_set_missing(err, name)
                               : failed(name, errno, "cannot open the object", err);
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = name);
    return rd_src_open_fd(ret, fd, true, &opts, err);
}

static bool posix_range(struct archive_store *store, const char *name, uint64_t offset, size_t len,
                        struct rd_buf *ret, struct rd_err *err)
{
    int fd = open_object(posix_of(store), name);
    if (fd < 0)
        return errno == ENOENT ? archive_store_set_missing(err, name)
                               : failed(name, errno, "cannot open the object", err);
    bool ok = rd_buf_reserve(ret, len) || rd_err_nomem(err, len);
    for (size_t got = 0; ok && got < len;) {
        ssize_t n = pread(fd, ret->ptr + ret->len, len - got, (off_t)(offset + got));
        if (n < 0 && errno == EINTR)
            continue;
        ok = n > 0 || failed(name, n < 0 ? errno : EIO, "cannot read the object", err);
        got += ok ? (size_t)n : 0;
        ret->len += ok ? (size_t)n : 0;
    }
    close(fd);
    return ok;
}

static bool posix_stat(struct archive_store *store, const char *name, struct archive_object *ret,
                       struct rd_err *err)
{
    struct stat st;
    int fd = open_object(posix_of(store), name);
    *ret = (struct archive_object){0};
    if (fd < 0)
        return errno == ENOENT || failed(name, errno, "cannot open the object", err);
    bool ok = fstat(fd, &st) == 0 || failed(name, errno, "cannot stat", err);
    close(fd);
    if (ok)
        *ret = (struct archive_object){.there = true, .size = (uint64_t)st.st_size};
    return ok;
}

/* The time of the file system, which may be that of another host: that of a file written now. */
static bool time_now(const struct posix *p, const char *name, struct stat *ret)
{
    struct put put = {.fd = -1};
    snprintf(put.temp, sizeof put.temp, "%s.new", last_part(name));
    put.dir = open_parent(p, name, false);
    bool ok = put.dir >= 0 && open_new(&put) && fstat(put.fd, ret) == 0;
    int sys = errno;
    if (put.fd >= 0)
        close(put.fd);
    if (put.named && put.fd >= 0)
        unlinkat(put.dir, put.temp, 0);
    if (put.dir >= 0)
        close(put.dir);
    errno = sys;
    return ok;
}

static bool posix_age(struct archive_store *store, const char *name, int64_t *ret_ms,
                      struct rd_err *err)
{
    struct stat then, now;
    int fd = open_object(posix_of(store), name);
    if (fd < 0)
        return errno == ENOENT ? archive_store_set_missing(err, name)
                               : failed(name, errno, "cannot open the object", err);
    bool ok = fstat(fd, &then) == 0 && time_now(posix_of(store), name, &now);
    int sys = errno;
    close(fd);
    if (!ok)
        return failed(name, sys, "cannot learn the time", err);
    int64_t ms = (now.st_mtim.tv_sec - then.st_mtim.tv_sec) * 1000 +
                 (now.st_mtim.tv_nsec - then.st_mtim.tv_nsec) / 1000000;
    *ret_ms = ms;
    return ms >= 0 || rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "its time is in the future");
}

struct walk {
    archive_each_fn *each;
    void *arg;
    struct rd_err *err;
};

static bool walk_folder(const struct walk *walk, int fd, const char *path, unsigned depth);

static bool walk_entry(const struct walk *walk, int fd, const char *path, const char *name,
                       unsigned depth)
{
    char full[ARCHIVE_NAME_MAX];
    struct stat st;
    int len = snprintf(full, sizeof full, "%s/%s", path, name);
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return true;
    if (len < 0 || (size_t)len >= sizeof full)
        return true; /* not an object */
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || failed(full, errno, "cannot stat", walk->err);
    if (S_ISREG(st.st_mode)) {
        const struct archive_listed object = {.name = full, .size = (uint64_t)st.st_size};
        walk->each(walk->arg, &object);
    }
    if (!S_ISDIR(st.st_mode) || depth == DEPTH_MAX)
        return true;
    int inner = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (inner < 0)
        return errno == ENOENT || failed(full, errno, "cannot open the folder", walk->err);
    return walk_folder(walk, inner, full, depth + 1);
}

/* Takes fd. */
static bool walk_folder(const struct walk *walk, int fd, const char *path, unsigned depth)
{
    DIR *dir = fdopendir(fd);
    const struct dirent *entry;
    bool ok = true;
    if (dir == NULL) {
        close(fd);
        return rd_err_nomem(walk->err, 0);
    }
    while ((void)(errno = 0), ok && (entry = readdir(dir)) != NULL)
        ok = walk_entry(walk, fd, path, entry->d_name, depth);
    if (ok && errno != 0)
        ok = failed(path, errno, "cannot read the folder", walk->err);
    closedir(dir);
    return ok;
}

static bool posix_list(struct archive_store *store, const char *folder, archive_each_fn *each,
                       void *arg, struct rd_err *err)
{
    const struct walk walk = {each, arg, err};
    char inside[ARCHIVE_NAME_MAX];
    snprintf(inside, sizeof inside, "%s/.", folder);
    int fd = open_parent(posix_of(store), inside, false);
    if (fd < 0)
        return errno == ENOENT || failed(folder, errno, "cannot open the folder", err);
    return walk_folder(&walk, fd, folder, 0);
}

static void posix_tidy(struct archive_store *store, const char *folder)
{
    char inside[ARCHIVE_NAME_MAX];
    snprintf(inside, sizeof inside, "%s/.", folder);
    int fd = open_parent(posix_of(store), inside, false);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            unlinkat(fd, entry->d_name, AT_REMOVEDIR);
    if (dir != NULL)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
}

/* The folders of an object are removed with their last object. */
static void remove_folder(const struct posix *p, const char *name)
{
    char folder[ARCHIVE_NAME_MAX];
    snprintf(folder, sizeof folder, "%s", name);
    char *slash = strrchr(folder, '/');
    if (slash != NULL) {
        *slash = '\0';
        unlinkat(p->root, folder, AT_REMOVEDIR);
    }
}

static bool posix_remove(struct archive_store *store, const char *name, struct rd_err *err)
{
    const struct posix *p = posix_of(store);
    int dir = open_parent(p, name, false);
    if (dir < 0)
        return errno == ENOENT || failed(name, errno, "cannot open the folder", err);
    bool ok = unlinkat(dir, last_part(name), 0) == 0 || errno == ENOENT;
    if (!ok)
        failed(name, errno, "cannot remove the object", err);
    else if (fsync(dir) != 0)
        ok = failed(name, errno, "cannot sync the folder", err);
    close(dir);
    if (ok)
        remove_folder(p, name);
    return ok;
}

/* ---- the lock ---- */

static void read_owner(int fd, char ret[ARCHIVE_OWNER_MAX])
{
    ssize_t len = pread(fd, ret, ARCHIVE_OWNER_MAX - 1, 0);
    ret[len > 0 ? len : 0] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
}

static bool locked(int fd, const char *name, struct rd_err *err)
{
    char owner[ARCHIVE_OWNER_MAX];
    char quoted[ARCHIVE_OWNER_MAX];
    read_owner(fd, owner);
    rd_err_quote(quoted, sizeof quoted, rd_slice_str(owner));
    rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "locked by %s",
               owner[0] != '\0' ? quoted : "another process");
    rd_err_origin(err, name);
    return false;
}

/* Returns a descriptor, or -1 with errno. */
static int open_lock(const struct posix *p, const char *name, bool make)
{
    int dir = open_parent(p, name, make);
    int flags = O_RDWR | (make ? O_CREAT : 0) | O_CLOEXEC | O_NOFOLLOW;
    int fd = dir >= 0 ? openat(dir, last_part(name), flags, FILE_MODE) : -1;
    int sys = errno;
    if (dir >= 0)
        close(dir);
    errno = sys;
    return fd;
}

/* Whether the file is still the one with this name: `redoubt unlock` removes it. */
static bool has_name(const struct posix *p, int fd, const char *name)
{
    struct stat own, named;
    int other = open_lock(p, name, false);
    bool same = other >= 0 && fstat(fd, &own) == 0 && fstat(other, &named) == 0 &&
                own.st_dev == named.st_dev && own.st_ino == named.st_ino;
    if (other >= 0)
        close(other);
    return same;
}

static bool posix_lock(struct archive_store *store, const char *name, const char *owner,
                       struct rd_err *err)
{
    struct posix *p = posix_of(store);
    int fd = open_lock(p, name, true);
    if (fd < 0)
        return failed(name, errno, "cannot open the lock", err);
    bool ok = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!ok && errno == EWOULDBLOCK)
        locked(fd, name, err);
    else if (!ok || ftruncate(fd, 0) != 0 ||
             pwrite(fd, owner, strlen(owner), 0) != (ssize_t)strlen(owner))
        ok = failed(name, errno, "cannot take the lock", err);
    else if (!has_name(p, fd, name))
        ok = rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "the lock was removed meanwhile");
    if (!ok) {
        close(fd);
        return false;
    }
    p->lock = fd;
    snprintf(p->lock_name, sizeof p->lock_name, "%s", name);
    return true;
}

static bool posix_held(struct archive_store *store, struct rd_err *err)
{
    const struct posix *p = posix_of(store);
    if (p->lock >= 0 && has_name(p, p->lock, p->lock_name))
        return true;
    rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "the file of the lock was removed or replaced");
    rd_err_origin(err, p->lock_name);
    return false;
}

static bool posix_lock_owner(struct archive_store *store, const char *name,
                             char ret[ARCHIVE_OWNER_MAX], bool *ret_held, struct rd_err *err)
{
    int fd = open_lock(posix_of(store), name, false);
    ret[0] = '\0';
    *ret_held = false;
    if (fd < 0)
        return errno == ENOENT || failed(name, errno, "cannot open the lock", err);
    *ret_held = flock(fd, LOCK_SH | LOCK_NB) != 0;
    bool ok = !*ret_held || errno == EWOULDBLOCK || failed(name, errno, "cannot lock", err);
    read_owner(fd, ret);
    close(fd);
    return ok;
}

static void posix_unlock(struct archive_store *store)
{
    struct posix *p = posix_of(store);
    if (p->lock < 0)
        return;
    /* The name of the owner is not needed any more; if it cannot be removed, the lock is free
     * anyway. */
    bool cleared = ftruncate(p->lock, 0) == 0;
    (void)cleared;
    close(p->lock);
    p->lock = -1;
}

static void posix_close_store(struct archive_store *store)
{
    struct posix *p = posix_of(store);
    posix_unlock(store);
    close(p->root);
    rd_free(p);
}

/* If the folder is created, its parent is synced too. */
static int open_root(const char *path, bool create)
{
    bool made = create && mkdir(path, FOLDER_MODE) == 0;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int parent = made && fd >= 0 ? openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (parent >= 0) {
        fsync(parent);
        close(parent);
    }
    return fd;
}

bool archive_store_open_posix(struct archive_store **ret, const char *path, bool create,
                              struct rd_err *err)
{
    static const struct archive_store_ops ops = {
        .shared = true,
        .settles = true,
        .put = posix_put,
        .get = posix_get,
        .range = posix_range,
        .stat = posix_stat,
        .list = posix_list,
        .remove = posix_remove,
        .tidy = posix_tidy,
        .age = posix_age,
        .lock = posix_lock,
        .held = posix_held,
        .lock_owner = posix_lock_owner,
        .unlock = posix_unlock,
        .close = posix_close_store,
    };
    struct posix *p = rd_calloc(1, sizeof *p);
    if (p == NULL)
        return rd_err_nomem(err, sizeof *p);
    p->store.ops = &ops;
    p->lock = -1;
    snprintf(p->store.origin, sizeof p->store.origin, "%s", path);
    p->root = open_root(path, create);
    if (p->root < 0) {
        failed(path, errno, "cannot open the repository", err);
        rd_free(p);
        return false;
    }
    *ret = &p->store;
    return true;
}
