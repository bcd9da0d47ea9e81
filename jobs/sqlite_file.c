#include "jobs/sqlite_impl.h"

#include "base/sink_fd.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* SQLite allocates one of these for the database. */
struct handle {
    sqlite3_file base;
    struct sqlite_file *file;
};

static struct sqlite_file *file_of(sqlite3_file *base)
{
    return ((struct handle *)(void *)base)->file;
}

static int refuse(struct sqlite_file *file, int sys, const char *what, int code)
{
    rd_err_sys(&file->err, sys, "%s", what);
    return code;
}

static int do_close(sqlite3_file *base)
{
    (void)base;
    return SQLITE_OK;
}

static int read_file(struct sqlite_file *file, uint8_t *to, size_t len, uint64_t at)
{
    while (len > 0) {
        ssize_t n = pread(file->fd, to, len, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return refuse(file, n < 0 ? errno : EIO, "cannot read back", SQLITE_IOERR_READ);
        to += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return SQLITE_OK;
}

/* SQLite wants zeros for what is beyond the end. */
static int do_read(sqlite3_file *base, void *to, int len, sqlite3_int64 offset)
{
    struct sqlite_file *file = file_of(base);
    uint64_t at = (uint64_t)offset, size = (unsigned)len;
    uint64_t left = at < file->size ? file->size - at : 0;
    size_t have = (size_t)(left < size ? left : size);
    int status = SQLITE_OK;
    if (file->fd >= 0)
        status = read_file(file, to, have, at);
    else if (!spool_read(&file->spool, at, to, have, &file->err))
        status = SQLITE_IOERR_READ;
    if (status != SQLITE_OK || have == size)
        return status;
    memset((uint8_t *)to + have, 0, size - have);
    return SQLITE_IOERR_SHORT_READ;
}

static int write_file(struct sqlite_file *file, const uint8_t *from, size_t len, uint64_t at)
{
    while (len > 0) {
        ssize_t n = pwrite(file->fd, from, len, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return refuse(file, errno, "cannot write", SQLITE_IOERR_WRITE);
        from += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return SQLITE_OK;
}

static bool write_spool(struct sqlite_file *file, const void *from, size_t len, uint64_t at)
{
    struct spool *spool = &file->spool;
    return (at + len <= spool->size || spool_resize(spool, at + len, &file->err)) &&
           spool_write(spool, at, from, len, &file->err);
}

static int do_write(sqlite3_file *base, const void *from, int len, sqlite3_int64 offset)
{
    struct sqlite_file *file = file_of(base);
    uint64_t at = (uint64_t)offset, end = at + (unsigned)len;
    int status = SQLITE_OK;
    if (file->fd >= 0)
        status = write_file(file, from, (size_t)len, at);
    else if (!write_spool(file, from, (size_t)len, at))
        status = SQLITE_IOERR_WRITE;
    if (status == SQLITE_OK && end > file->size)
        file->size = end;
    return status;
}

/* A database that only grows is never truncated, and the sink syncs the file. */
static int do_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    return (uint64_t)size >= file_of(base)->size ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

static int do_sync(sqlite3_file *base, int flags)
{
    (void)base;
    (void)flags;
    return SQLITE_OK;
}

static int do_size(sqlite3_file *base, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)file_of(base)->size;
    return SQLITE_OK;
}

/* No other process sees the file. */
static int do_lock(sqlite3_file *base, int level)
{
    (void)base;
    (void)level;
    return SQLITE_OK;
}

static int do_check_lock(sqlite3_file *base, int *ret)
{
    (void)base;
    *ret = 0;
    return SQLITE_OK;
}

static int do_control(sqlite3_file *base, int op, void *arg)
{
    (void)base;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int do_sector(sqlite3_file *base)
{
    (void)base;
    return 4096;
}

static int do_traits(sqlite3_file *base)
{
    (void)base;
    return 0;
}

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = do_close,
    .xRead = do_read,
    .xWrite = do_write,
    .xTruncate = do_truncate,
    .xSync = do_sync,
    .xFileSize = do_size,
    .xLock = do_lock,
    .xUnlock = do_lock,
    .xCheckReservedLock = do_check_lock,
    .xFileControl = do_control,
    .xSectorSize = do_sector,
    .xDeviceCharacteristics = do_traits,
};

/* The database is the only file: there is no journal, and nothing is sorted. */
static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *ret)
{
    struct handle *handle = (struct handle *)(void *)base;
    *handle = (struct handle){0};
    if (name == NULL || (flags & SQLITE_OPEN_MAIN_DB) == 0)
        return SQLITE_CANTOPEN;
    handle->base.pMethods = &methods;
    handle->file = vfs->pAppData;
    if (ret != NULL)
        *ret = flags;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs;
    (void)name;
    (void)sync;
    return SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
    (void)vfs;
    (void)name;
    (void)flags;
    *ret = 0;
    return SQLITE_OK;
}

static int vfs_full_name(sqlite3_vfs *vfs, const char *name, int size, char *to)
{
    (void)vfs;
    snprintf(to, (size_t)size, "%s", name);
    return SQLITE_OK;
}

/* The same input gives the same database. */
static int vfs_randomness(sqlite3_vfs *vfs, int size, char *to)
{
    (void)vfs;
    memset(to, 0, (size_t)size);
    return size;
}

static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return us;
}

static int vfs_time(sqlite3_vfs *vfs, double *ret)
{
    (void)vfs;
    *ret = 0;
    return SQLITE_OK;
}

static int vfs_error(sqlite3_vfs *vfs, int size, char *to)
{
    (void)vfs;
    (void)size;
    (void)to;
    return 0;
}

bool sqlite_file_begin(struct sqlite_file *file, sqlite3 **ret, struct rd_err *err)
{
    enum { PATH = 64 };
    file->fd = rd_sink_fd(file->out);
    snprintf(file->name, sizeof file->name, "redoubt-%p", (void *)file);
    file->vfs = (sqlite3_vfs){
        .iVersion = 1,
        .szOsFile = sizeof(struct handle),
        .mxPathname = PATH,
        .zName = file->name,
        .pAppData = file,
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_full_name,
        .xRandomness = vfs_randomness,
        .xSleep = vfs_sleep,
        .xCurrentTime = vfs_time,
        .xGetLastError = vfs_error,
    };
    *ret = NULL;
    int rc = sqlite3_vfs_register(&file->vfs, 0);
    if (rc == SQLITE_OK)
        rc = sqlite3_open_v2("keys.db", ret,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                             file->name);
    if (rc == SQLITE_OK)
        return true;
    sqlite3_close(*ret);
    *ret = NULL;
    return rd_err_set(err, rc == SQLITE_NOMEM ? RD_ERR_MEMORY : RD_ERR_IO, RD_NO_OFFSET,
                      "SQLite cannot begin a database: %s", sqlite3_errstr(rc));
}

bool sqlite_file_commit(struct sqlite_file *file, struct rd_err *err)
{
    if (!spool_move(&file->spool, file->out, err))
        return false;
    struct rd_sink *out = file->out;
    file->out = NULL;
    return rd_sink_close(out, err);
}

void sqlite_file_end(struct sqlite_file *file)
{
    sqlite3_vfs_unregister(&file->vfs);
    spool_done(&file->spool);
    rd_sink_abort(file->out);
    file->out = NULL;
}
