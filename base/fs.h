/* fs.h - the system calls needed to write files safely, as a table of functions.
 *
 * A writer that must survive crashes (a log, a capture) accesses files only through a struct rd_fs.
 * Tests supply a file system in memory that fails and crashes on request; a server can run the
 * calls on its own threads. Names are file names in one folder, never paths.
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
    RD_FS_READ_AT, /* the same, for a few places: the system need not read ahead of them */
    RD_FS_APPEND,  /* the file is there; writes go to its end */
    RD_FS_CREATE,  /* a new file, or one that is emptied; writes go to its end */
};

/* Each function returns 0 (or the value documented below) or a negative errno, never -EINTR. */
struct rd_fs {
    void *ctx;

    /* A descriptor, 0 or more. Opens only regular files: a symbolic link gives -ELOOP, any other
     * file type -EINVAL. */
    int (*open)(void *ctx, const char *name, enum rd_fs_mode mode);
    int (*close)(void *ctx, int fd);
    /* Bytes read, 0 at the end. Bytes written, which may be fewer than asked for. */
    ssize_t (*read)(void *ctx, int fd, void *dst, size_t size);
    ssize_t (*write)(void *ctx, int fd, const void *src, size_t size);
    /* Like read, at an offset of the file; does not move the read position. */
    ssize_t (*read_at)(void *ctx, int fd, void *dst, size_t size, uint64_t offset);
    int (*truncate)(void *ctx, int fd, uint64_t size);
    /* fdatasync(). May be called on another thread, while others write to the same file. */
    int (*sync)(void *ctx, int fd);

    int (*size)(void *ctx, const char *name, uint64_t *ret);
    /* Atomically replaces the file `to`, if it exists. */
    int (*rename)(void *ctx, const char *from, const char *to);
    /* Freeing the blocks of a huge file may take seconds. To avoid the delay, a server opens the
     * file first and closes it on another thread. */
    int (*unlink)(void *ctx, const char *name);
    /* Makes all names in the folder durable, or (outside) those in its parent folder. */
    int (*sync_folder)(void *ctx, bool outside);
    /* Calls each(arg, name) for all names in the folder, in no order. */
    int (*list)(void *ctx, void (*each)(void *arg, const char *name), void *arg);
    /* Opens and locks the file `name`, creating it if missing, and returns its descriptor. Until it
     * is closed or the process ends, all other calls, in any process, return -EWOULDBLOCK. */
    int (*lock)(void *ctx, const char *name);

    /* A file in the parent folder (a log from before Redis 7.0). outside() returns 1 if the file
     * exists, else 0; -ELOOP: it is a symbolic link, which open() would refuse in the folder.
     * adopt() moves the file into the folder. NULL: not supported. */
    int (*outside)(void *ctx, const char *name);
    int (*adopt)(void *ctx, const char *name);
};

/* Opens the folder `folder` in the folder `dir`. Both stay open, so renaming them is harmless.
 * Creates `folder` if it is missing. */
bool rd_fs_open_posix(struct rd_fs *ret, const char *dir, const char *folder, struct rd_err *err);

/* Opens one folder by its path, without access to its parent (outside and adopt are NULL). create:
 * a missing folder is created and made durable; its parent must exist. Only the owner can access
 * the new folder and the new files in it. */
bool rd_fs_open_folder(struct rd_fs *ret, const char *path, bool create, struct rd_err *err);

/* Closes a struct rd_fs opened by either function. */
void rd_fs_close_posix(struct rd_fs *fs);

#endif
