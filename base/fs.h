/* fs.h - the few system calls that writing files safely needs, as a table.
 *
 * A writer that must survive crashes (a log, a capture) does all its work on files through a struct
 * rd_fs: tests put a file system in memory after it that fails and crashes where they say, a
 * server may put its own threads after it. Names are names in one folder, never paths.
 *
 *     struct rd_fs fs;
 *     if (!rd_fs_open_posix(&fs, "/var/lib/redis", "appendonlydir", &err))
 *         ...
 *     ... aof_writer_open(&w, &fs, &opts, &err) ... aof_writer_close(w, &err) ...
 *     rd_fs_close_posix(&fs);
 */
#ifndef BASE_FS_H
#define BASE_FS_H

#include <sys/types.h>

#include "base/api.h"
#include "base/err.h"

enum rd_fs_mode {
    RD_FS_READ,
    RD_FS_APPEND, /* the file is there; writes go to its end */
    RD_FS_CREATE, /* a new file, or one that is emptied; writes go to its end */
};

/* Each returns 0 (or what it says) or a negative errno. None returns -EINTR. */
struct rd_fs {
    void *ctx;

    /* A descriptor, 0 or more. Only a regular file is opened: a symbolic link is -ELOOP, anything
     * else -EINVAL. */
    int (*open)(void *ctx, const char *name, enum rd_fs_mode mode);
    int (*close)(void *ctx, int fd);
    /* Bytes read, 0 at the end. Bytes written, which may be fewer than asked for. */
    ssize_t (*read)(void *ctx, int fd, void *dst, size_t size);
    ssize_t (*write)(void *ctx, int fd, const void *src, size_t size);
    /* Like read, at an offset of the file; does not move the place that read is at. */
    ssize_t (*read_at)(void *ctx, int fd, void *dst, size_t size, uint64_t offset);
    int (*truncate)(void *ctx, int fd, uint64_t size);
    /* fdatasync(). May be called on another thread, while others write to the same file. */
    int (*sync)(void *ctx, int fd);

    int (*size)(void *ctx, const char *name, uint64_t *ret);
    /* What has the name `to` is replaced in one step. */
    int (*rename)(void *ctx, const char *from, const char *to);
    /* Freeing the blocks of a huge file may take seconds. A server opens the file first, and closes
     * it on another thread. */
    int (*unlink)(void *ctx, const char *name);
    /* Makes all names in the folder durable, or (outside) those in the folder around it. */
    int (*sync_folder)(void *ctx, bool outside);
    /* Calls each(arg, name) for all names in the folder, in no order. */
    int (*list)(void *ctx, void (*each)(void *arg, const char *name), void *arg);
    /* A descriptor of the file `name`, created where it is missing, which no other process (or
     * other call) gets until it is closed or the process has ended: -EWOULDBLOCK. */
    int (*lock)(void *ctx, const char *name);

    /* A file beside the folder (a log from before Redis 7.0): is there such a file (1 or 0)? And
     * moves it into the folder. NULL: there are none. */
    int (*outside)(void *ctx, const char *name);
    int (*adopt)(void *ctx, const char *name);
};

/* The folder `folder` in the folder `dir`, both held open, so that renaming them does no harm. It
 * is created where it is missing. */
RD_API bool rd_fs_open_posix(struct rd_fs *ret, const char *dir, const char *folder,
                             struct rd_err *err);

/* One folder by its path, with nothing around it (outside and adopt are NULL). create: it is made,
 * and made durable, where it is missing; the folder around it must be there. The new folder and the
 * new files in it are for their owner alone. */
RD_API bool rd_fs_open_folder(struct rd_fs *ret, const char *path, bool create, struct rd_err *err);

/* Of either kind. */
RD_API void rd_fs_close_posix(struct rd_fs *fs);

#endif
