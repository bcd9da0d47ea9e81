/* log_fs.c - the folder of the log, in which deleted files are closed in the background and renamed
 * files are logged. Its context is the persist_state; all other calls go to state->disk. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "server/loop/background.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist_impl.h"

static const struct rd_fs *disk_of(void *ctx)
{
    return &((const struct persist_state *)ctx)->disk;
}

/* ---- calls that are passed on ---- */

static int fs_open(void *ctx, const char *name, enum rd_fs_mode mode)
{
    return disk_of(ctx)->open(disk_of(ctx)->ctx, name, mode);
}

static int fs_close(void *ctx, int fd)
{
    return disk_of(ctx)->close(disk_of(ctx)->ctx, fd);
}

static ssize_t fs_read(void *ctx, int fd, void *dst, size_t size)
{
    return disk_of(ctx)->read(disk_of(ctx)->ctx, fd, dst, size);
}

static ssize_t fs_write(void *ctx, int fd, const void *src, size_t size)
{
    return disk_of(ctx)->write(disk_of(ctx)->ctx, fd, src, size);
}

static ssize_t fs_read_at(void *ctx, int fd, void *dst, size_t size, uint64_t offset)
{
    return disk_of(ctx)->read_at(disk_of(ctx)->ctx, fd, dst, size, offset);
}

static int fs_truncate(void *ctx, int fd, uint64_t size)
{
    return disk_of(ctx)->truncate(disk_of(ctx)->ctx, fd, size);
}

static int fs_sync(void *ctx, int fd)
{
    return disk_of(ctx)->sync(disk_of(ctx)->ctx, fd);
}

static int fs_size(void *ctx, const char *name, uint64_t *ret)
{
    return disk_of(ctx)->size(disk_of(ctx)->ctx, name, ret);
}

static int fs_sync_folder(void *ctx, bool outside)
{
    return disk_of(ctx)->sync_folder(disk_of(ctx)->ctx, outside);
}

static int fs_list(void *ctx, void (*each)(void *arg, const char *name), void *arg)
{
    return disk_of(ctx)->list(disk_of(ctx)->ctx, each, arg);
}

static int fs_lock(void *ctx, const char *name)
{
    return disk_of(ctx)->lock(disk_of(ctx)->ctx, name);
}

static int fs_outside(void *ctx, const char *name)
{
    return disk_of(ctx)->outside(disk_of(ctx)->ctx, name);
}

static int fs_adopt(void *ctx, const char *name)
{
    return disk_of(ctx)->adopt(disk_of(ctx)->ctx, name);
}

/* ---- calls with additions ---- */

static void close_file(void *arg)
{
    close((int)(intptr_t)arg);
}

static bool is_file_of_log(const struct persist_state *state, const char *name)
{
    uint64_t seq;
    enum aof_type type;
    bool snapshot;
    const char *prefix = state->durable->loop->settings.appendfilename;
    return strcmp(name, prefix) == 0 || aof_file_name_parse(name, prefix, &seq, &type, &snapshot);
}

/* Closing the last descriptor of a huge file frees its blocks: done in the background. */
static int fs_unlink(void *ctx, const char *name)
{
    const struct persist_state *state = ctx;
    bool history = is_file_of_log(state, name);
    if (history && state->durable->loop->settings.aof_disable_auto_gc)
        return -EBUSY;
    int fd = fs_open(ctx, name, RD_FS_READ);
    int result = state->disk.unlink(state->disk.ctx, name);
    if (history && result == 0)
        log_notice("Removing the history file %s in the background", name);
    if (fd >= 0)
        background_run(state->durable->loop, BACKGROUND_CLOSE, close_file, NULL,
                       (void *)(intptr_t)fd);
    return result;
}

static int fs_rename(void *ctx, const char *from, const char *to)
{
    const struct persist_state *state = ctx;
    int result = state->disk.rename(state->disk.ctx, from, to);
    if (result != 0 || state->quiet || !is_file_of_log(state, to))
        return result;
    const char *dot = strrchr(from, '.');
    log_notice("Successfully renamed the temporary AOF %s file %s into %s",
               dot != NULL && strcmp(dot, ".incr") == 0 ? "incr" : "base", from, to);
    return result;
}

void persist_watch_fs(struct persist_state *state)
{
    state->fs = (struct rd_fs){
        .ctx = state,
        .open = fs_open,
        .close = fs_close,
        .read = fs_read,
        .write = fs_write,
        .read_at = fs_read_at,
        .truncate = fs_truncate,
        .sync = fs_sync,
        .size = fs_size,
        .rename = fs_rename,
        .unlink = fs_unlink,
        .sync_folder = fs_sync_folder,
        .list = fs_list,
        .lock = fs_lock,
        .outside = state->disk.outside != NULL ? fs_outside : NULL,
        .adopt = state->disk.adopt != NULL ? fs_adopt : NULL,
    };
}
