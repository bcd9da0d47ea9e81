#include "data/spool.h"

#include "base/mem.h"
#include "base/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *folder(void)
{
    const char *dir = getenv("TMPDIR");
    return dir != NULL && dir[0] != '\0' ? dir : "/tmp";
}

/* On file systems without unnamed files, the file has a name for a moment. */
static int open_named(const char *dir)
{
    char path[4096];
    int len = snprintf(path, sizeof path, "%s/redoubt-XXXXXX", dir);
    if (len < 0 || (size_t)len >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

static bool spool_open(struct spool *spool, struct rd_err *err)
{
    const char *dir = folder();
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
    if (fd < 0)
        fd = open_named(dir);
    if (fd < 0) {
        rd_err_sys(err, errno, "cannot create a temporary file");
        rd_err_origin(err, dir);
        return false;
    }
    spool->fd = fd;
    spool->open = true;
    return true;
}

bool spool_write(struct spool *spool, uint64_t offset, const void *bytes, size_t len,
                 struct rd_err *err)
{
    const uint8_t *p = bytes;
    while (len > 0) {
        ssize_t n = pwrite(spool->fd, p, len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            rd_err_sys(err, n < 0 ? errno : EIO, "cannot write a temporary file");
            rd_err_origin(err, folder());
            return false;
        }
        p += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return true;
}

bool spool_append(struct spool *spool, const void *bytes, size_t len, struct rd_err *err)
{
    if ((!spool->open && !spool_open(spool, err)) ||
        !spool_write(spool, spool->size, bytes, len, err))
        return false;
    spool->size += len;
    return true;
}

bool spool_resize(struct spool *spool, uint64_t size, struct rd_err *err)
{
    if (!spool->open && !spool_open(spool, err))
        return false;
    if (ftruncate(spool->fd, (off_t)size) != 0) {
        rd_err_sys(err, errno, "cannot write a temporary file");
        rd_err_origin(err, folder());
        return false;
    }
    spool->size = size;
    return true;
}

bool spool_map(const struct spool *spool, struct rd_slice *ret, struct rd_err *err)
{
    *ret = rd_slice(NULL, 0);
    if (!spool->open || spool->size == 0)
        return true;
    void *map = mmap(NULL, (size_t)spool->size, PROT_READ, MAP_SHARED, spool->fd, 0);
    if (map == MAP_FAILED) {
        rd_err_sys(err, errno, "cannot map a temporary file");
        rd_err_origin(err, folder());
        return false;
    }
    *ret = rd_slice(map, (size_t)spool->size);
    return true;
}

void spool_unmap(struct rd_slice map)
{
    if (map.len > 0)
        munmap((void *)(uintptr_t)map.ptr, map.len);
}

static bool sink_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    return spool_append(impl, ptr, len, err);
}

static bool sink_close(void *impl, bool commit, struct rd_err *err)
{
    (void)impl;
    (void)commit;
    (void)err;
    return true;
}

bool spool_sink(struct spool *spool, struct rd_sink **ret, struct rd_err *err)
{
    static const struct rd_sink_ops ops = {.write = sink_write, .close = sink_close};
    return rd_sink_new(ret, &ops, spool, NULL, err);
}

/* Reads up to cap bytes; fewer only at the end. */
static bool read_some(int fd, uint64_t offset, uint8_t *buf, size_t cap, size_t *ret_len,
                      struct rd_err *err)
{
    size_t have = 0;
    while (have < cap) {
        ssize_t n = pread(fd, buf + have, cap - have, (off_t)(offset + have));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            rd_err_sys(err, errno, "cannot read a temporary file");
            return false;
        }
        if (n == 0)
            break;
        have += (size_t)n;
    }
    *ret_len = have;
    return true;
}

bool spool_read(const struct spool *spool, uint64_t offset, void *bytes, size_t len,
                struct rd_err *err)
{
    size_t have = 0;
    if (spool->open && !read_some(spool->fd, offset, bytes, len, &have, err))
        return false;
    if (have < len)
        return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "a temporary file was truncated");
    return true;
}

bool spool_move(const struct spool *spool, struct rd_sink *to, struct rd_err *err)
{
    uint8_t piece[16384];
    for (uint64_t at = 0; at < spool->size;) {
        uint64_t left = spool->size - at;
        size_t n = left < sizeof piece ? (size_t)left : sizeof piece;
        if (!spool_read(spool, at, piece, n, err))
            return false;
        if (!rd_sink_write(to, piece, n)) {
            rd_err_adopt(err, rd_sink_err(to));
            return false;
        }
        at += n;
    }
    return true;
}

bool spool_copy(struct spool *spool, struct rd_src *src, void (*tick)(void *ctx), void *ctx,
                struct rd_err *err)
{
    struct rd_sink *sink;
    if (!spool_sink(spool, &sink, err))
        return false;
    bool ok = rd_pump(src, sink, tick, ctx, err);
    return rd_sink_close(sink, ok ? err : NULL) && ok;
}

bool spool_copy_torn(struct spool *spool, struct rd_src *src, void (*tick)(void *ctx), void *ctx,
                     struct rd_err *err)
{
    if (spool_copy(spool, src, tick, ctx, err))
        return true;
    const struct rd_err *why = rd_src_err(src);
    if (why->code != RD_ERR_CORRUPT && why->code != RD_ERR_TRUNCATED)
        return false;
    spool->torn = *why;
    rd_err_reset(err);
    return true;
}

uint64_t spool_torn_at(const struct spool *spool)
{
    return spool->torn.code != RD_ERR_OK ? spool->size : RD_NO_OFFSET;
}

/* ---- as a source ---- */

struct reading {
    const struct spool *spool;
    uint64_t at;
    bool torn; /* fails where the input failed */
};

static enum rd_src_status reading_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                       struct rd_err *err)
{
    struct reading *reading = impl;
    size_t n = 0;
    if (reading->spool->open && !read_some(reading->spool->fd, reading->at, buf, cap, &n, err))
        return RD_SRC_FAIL;
    reading->at += n;
    *ret_len = n;
    if (n == 0 && reading->torn && reading->spool->torn.code != RD_ERR_OK) {
        rd_err_adopt(err, &reading->spool->torn);
        return RD_SRC_FAIL;
    }
    return n > 0 ? RD_SRC_OK : RD_SRC_END;
}

static bool reading_seek(void *impl, uint64_t offset, struct rd_err *err)
{
    struct reading *reading = impl;
    (void)err;
    reading->at = offset;
    return true;
}

static void reading_close(void *impl)
{
    rd_free(impl);
}

static bool open_reading(const struct spool *spool, const char *origin, bool torn,
                         struct rd_src **ret, struct rd_err *err)
{
    if (strcmp(origin, "-") == 0)
        origin = "standard input";
    static const struct rd_src_ops ops = {reading_read, reading_seek, reading_close};
    struct rd_src_opts opts = RD_SRC_OPTS(.origin = origin, .total = spool->size, .sized = true);
    struct reading *reading = rd_calloc(1, sizeof *reading);
    if (reading == NULL)
        return rd_err_nomem(err, sizeof *reading);
    reading->spool = spool;
    reading->torn = torn;
    return rd_src_new(ret, &ops, reading, &opts, err);
}

bool spool_source(const struct spool *spool, const char *origin, struct rd_src **ret,
                  struct rd_err *err)
{
    return open_reading(spool, origin, false, ret, err);
}

bool spool_source_torn(const struct spool *spool, const char *origin, struct rd_src **ret,
                       struct rd_err *err)
{
    return open_reading(spool, origin, true, ret, err);
}

/* ---- storage for hashes of keys ---- */

static bool keys_append(void *ctx, const void *bytes, size_t len, struct rd_err *err)
{
    return spool_append(ctx, bytes, len, err);
}

static bool keys_read(void *ctx, uint64_t offset, void *bytes, size_t len, struct rd_err *err)
{
    return spool_read(ctx, offset, bytes, len, err);
}

struct rdb_spool spool_for_keys(struct spool *spool)
{
    return (struct rdb_spool){.append = keys_append, .read = keys_read, .ctx = spool};
}

void spool_done(struct spool *spool)
{
    if (spool->open)
        close(spool->fd);
    *spool = (struct spool){0};
}
