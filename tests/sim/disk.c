#include "tests/sim/disk.h"

#include <errno.h>

#define CALL(disk, call, ...) ((disk)->calls.call((disk)->calls.ctx, __VA_ARGS__))

static bool is_dead(struct disk *disk)
{
    return bucket_dies(disk->process);
}

static int disk_open(void *ctx, const char *name, enum rd_fs_mode mode)
{
    struct disk *disk = ctx;
    return is_dead(disk) ? -EIO : CALL(disk, open, name, mode);
}

static int disk_close(void *ctx, int fd)
{
    struct disk *disk = ctx;
    return CALL(disk, close, fd);
}

static ssize_t disk_read(void *ctx, int fd, void *dst, size_t size)
{
    struct disk *disk = ctx;
    return is_dead(disk) ? -EIO : CALL(disk, read, fd, dst, size);
}

/* A write that is cut has happened in part. */
static ssize_t disk_write(void *ctx, int fd, const void *src, size_t size)
{
    struct disk *disk = ctx;
    bool before = disk->process->dead;
    if (!is_dead(disk))
        return CALL(disk, write, fd, src, size);
    if (!before && size > 1)
        (void)!CALL(disk, write, fd, src, size / 2);
    return -EIO;
}

static ssize_t disk_read_at(void *ctx, int fd, void *dst, size_t size, uint64_t offset)
{
    struct disk *disk = ctx;
    return is_dead(disk) ? -EIO : CALL(disk, read_at, fd, dst, size, offset);
}

static int disk_truncate(void *ctx, int fd, uint64_t size)
{
    struct disk *disk = ctx;
    return is_dead(disk) ? -EIO : CALL(disk, truncate, fd, size);
}

static int disk_sync(void *ctx, int fd)
{
    struct disk *disk = ctx;
    return is_dead(disk) ? -EIO : CALL(disk, sync, fd);
}

static int disk_size(void *ctx, const char *name, uint64_t *ret)
{
    struct disk *disk = ctx;
    return is_dead(disk) ? -EIO : CALL(disk, size, name, ret);
}

static int disk_rename(void *ctx, const char *from, const char *to)
{
    struct disk *disk = ctx;
    if (disk->before_rename != NULL)
        disk->before_rename(disk->ctx, from, to);
    return is_dead(disk) ? -EIO : CALL(disk, rename, from, to);
}

static int disk_sync_folder(void *ctx, bool outside)
{
    struct disk *disk = ctx;
    return is_dead(disk) ? -EIO : CALL(disk, sync_folder, outside);
}

static int disk_list(void *ctx, void (*each)(void *arg, const char *name), void *arg)
{
    struct disk *disk = ctx;
    return is_dead(disk) ? -EIO : CALL(disk, list, each, arg);
}

static int disk_lock(void *ctx, const char *name)
{
    struct disk *disk = ctx;
    return is_dead(disk) ? -EIO : CALL(disk, lock, name);
}

static int disk_unlink(void *ctx, const char *name)
{
    struct disk *disk = ctx;
    if (is_dead(disk))
        return -EIO;
    if (disk->before_unlink != NULL)
        disk->before_unlink(disk->ctx, name);
    return CALL(disk, unlink, name);
}

struct rd_fs disk_calls(struct disk *disk)
{
    return (struct rd_fs){.ctx = disk,
                          .open = disk_open,
                          .close = disk_close,
                          .read = disk_read,
                          .write = disk_write,
                          .read_at = disk_read_at,
                          .truncate = disk_truncate,
                          .sync = disk_sync,
                          .size = disk_size,
                          .rename = disk_rename,
                          .unlink = disk_unlink,
                          .sync_folder = disk_sync_folder,
                          .list = disk_list,
                          .lock = disk_lock};
}
