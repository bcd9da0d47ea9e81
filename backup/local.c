#include "backup/local.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { LOOK_BYTES = 16 << 20, PATH_MAX_BYTES = 4096 };

/* ---- the file ---- */

/* Where files need a name, it has one for a moment. */
static int open_unnamed(const char *folder)
{
    char path[PATH_MAX_BYTES];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    int len = snprintf(path, sizeof path, "%s/snapshot-XXXXXX", folder);
    if (len < 0 || (size_t)len >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC); /* mode 0600 */
    if (fd >= 0)
        unlink(path);
    return fd;
}

bool backup_local_open(struct backup_local *local, const char *folder, struct rd_err *err)
{
    *local = (struct backup_local){.fd = open_unnamed(folder)};
    if (local->fd >= 0)
        return true;
    rd_err_sys(err, errno, "cannot create a file in the spool");
    rd_err_origin(err, folder);
    return false;
}

void backup_local_close(struct backup_local *local)
{
    if (local->fd >= 0)
        close(local->fd);
    local->fd = -1;
}

/* ---- writing ---- */

static bool has_room(const struct backup_local *local)
{
    struct statvfs fs;
    if (fstatvfs(local->fd, &fs) != 0)
        return true; /* the write will fail */
    uint64_t free = (uint64_t)fs.f_bavail * fs.f_frsize;
    uint64_t all = (uint64_t)fs.f_blocks * fs.f_frsize;
    return free >= BACKUP_LOCAL_RESERVE + LOOK_BYTES && free >= all / 100 + LOOK_BYTES;
}

static bool is_full(int sys)
{
    return sys == ENOSPC || sys == EDQUOT || sys == EFBIG;
}

/* *ret_len: bytes that are in the file now. False with err, or, if the disk is full, without. */
static bool append(struct backup_local *local, struct rd_slice s, size_t *ret_len,
                   struct rd_err *err)
{
    *ret_len = 0;
    while (*ret_len < s.len) {
        ssize_t n = pwrite(local->fd, s.ptr + *ret_len, s.len - *ret_len, (off_t)local->size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return (n < 0 && !is_full(errno)) && rd_err_sys(err, errno, "cannot write the spool");
        *ret_len += (size_t)n;
        local->size += (uint64_t)n;
    }
    return true;
}

bool backup_local_copy(struct backup_local *local, struct rd_src *src, const atomic_bool *cancel,
                       struct rd_err *err)
{
    struct rd_slice s;
    struct rd_err failed = {0};
    for (uint64_t next_look = 0;;) {
        if (cancel != NULL && atomic_load(cancel))
            return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "stopped");
        if (local->size >= next_look) {
            if (!has_room(local))
                return true;
            next_look = local->size + LOOK_BYTES;
        }
        enum rd_src_status status = rd_src_need(src, 1, &s);
        if (status == RD_SRC_END) {
            local->whole = true;
            return true;
        }
        if (status != RD_SRC_OK) {
            rd_err_adopt(err, rd_src_err(src));
            return false;
        }
        size_t len;
        bool ok = append(local, s, &len, &failed);
        rd_src_consume(src, len);
        if (!ok && failed.code == RD_ERR_OK)
            return true;
        if (!ok) {
            rd_err_adopt(err, &failed);
            return false;
        }
    }
}

/* ---- reading ---- */

struct both {
    const struct backup_local *local;
    struct rd_src *rest;
    uint64_t at;
};

static enum rd_src_status read_rest(struct both *both, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err)
{
    struct rd_slice s;
    if (both->local->whole)
        return RD_SRC_END;
    enum rd_src_status status = rd_src_need(both->rest, 1, &s);
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(both->rest));
    if (status != RD_SRC_OK)
        return status;
    *ret_len = s.len < cap ? s.len : cap;
    memcpy(buf, s.ptr, *ret_len);
    rd_src_consume(both->rest, *ret_len);
    return RD_SRC_OK;
}

static enum rd_src_status both_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err)
{
    struct both *both = impl;
    uint64_t left = both->local->size - both->at;
    *ret_len = 0;
    if (left == 0)
        return read_rest(both, buf, cap, ret_len, err);
    size_t want = left < cap ? (size_t)left : cap;
    ssize_t n;
    do
        n = pread(both->local->fd, buf, want, (off_t)both->at);
    while (n < 0 && errno == EINTR);
    if (n <= 0) {
        rd_err_sys(err, n < 0 ? errno : EIO, "cannot read the spool");
        return RD_SRC_FAIL;
    }
    both->at += (uint64_t)n;
    *ret_len = (size_t)n;
    return RD_SRC_OK;
}

bool backup_local_source(struct backup_local *local, struct rd_src **ret, struct rd_src *rest,
                         struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = both_read, .close = rd_free};
    const struct rd_src_opts opts =
        RD_SRC_OPTS(.origin = rd_src_origin(rest),
                    .total = local->whole ? local->size : rd_src_size(rest));
    struct both *both = rd_calloc(1, sizeof *both);
    if (both == NULL)
        return rd_err_nomem(err, sizeof *both);
    *both = (struct both){.local = local, .rest = rest};
    return rd_src_new(ret, &ops, both, &opts, err);
}
