#include "capture/segment_in.h"

#include "base/digest.h"
#include "rebuild/stream.h"
#include "data/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>
#include <stdio.h>

enum { VERIFY_READ = 64 * 1024 };

/* ---- a folder with one file ---- */

static int one_open(void *ctx, const char *name, enum rd_fs_mode mode)
{
    const struct segment_in *in = ctx;
    if (mode != RD_FS_READ && mode != RD_FS_READ_AT)
        return -EROFS;
    if (strcmp(name, in->name) != 0)
        return -ENOENT;
    if (in->folder != NULL)
        return in->folder->open(in->folder->ctx, name, RD_FS_READ_AT);
    int fd = fcntl(in->fd, F_DUPFD_CLOEXEC, 0);
    return fd >= 0 ? fd : -errno;
}

static int one_close(void *ctx, int fd)
{
    const struct segment_in *in = ctx;
    if (in->folder != NULL)
        return in->folder->close(in->folder->ctx, fd);
    return close(fd) == 0 ? 0 : -errno;
}

static ssize_t one_read_at(void *ctx, int fd, void *dst, size_t size, uint64_t offset)
{
    const struct segment_in *in = ctx;
    ssize_t n;
    if (in->folder != NULL)
        return in->folder->read_at(in->folder->ctx, fd, dst, size, offset);
    while ((n = pread(fd, dst, size, (off_t)offset)) < 0 && errno == EINTR)
        ;
    return n >= 0 ? n : -errno;
}

static int one_size(void *ctx, const char *name, uint64_t *ret)
{
    const struct segment_in *in = ctx;
    *ret = in->size;
    return strcmp(name, in->name) == 0 ? 0 : -ENOENT;
}

static int one_list(void *ctx, void (*each)(void *arg, const char *name), void *arg)
{
    const struct segment_in *in = ctx;
    each(arg, in->name);
    return 0;
}

/* ---- open ---- */

static bool read_header(struct segment_in *in, struct rd_err *err)
{
    struct repl_capture_list list;
    if (!repl_capture_list(&list, &in->fs, err))
        return false;
    bool ok = list.n == 1 && list.segments[0].closed;
    if (ok)
        in->header = list.segments[0];
    repl_capture_list_done(&list);
    return ok || rd_err_set(err, RD_ERR_CORRUPT, in->size, "the segment has no end");
}

static void set_name(struct segment_in *in, uint64_t number, uint64_t start)
{
    snprintf(in->name, sizeof in->name, "%08" PRIu64 "-%" PRIu64 ".seg", number, start);
}

static bool open_reader(struct segment_in *in, struct rd_err *err)
{
    const struct repl_capture_reader_opts opts = {.max_whole = REBUILD_STREAM_COMMAND};
    in->fs = (struct rd_fs){.ctx = in,
                            .open = one_open,
                            .close = one_close,
                            .read_at = one_read_at,
                            .size = one_size,
                            .list = one_list};
    return read_header(in, err) && repl_capture_reader_open(&in->reader, &in->fs, &opts, err);
}

bool segment_in_open(struct segment_in *in, struct rd_src *src, uint64_t number, uint64_t start,
                     struct rd_err *err)
{
    *in = (struct segment_in){.fd = -1};
    set_name(in, number, start);
    bool ok = spool_copy(&in->spool, src, NULL, NULL, err);
    in->fd = in->spool.open ? in->spool.fd : -1;
    in->size = in->spool.size;
    ok = ok && (in->fd >= 0 || rd_err_set(err, RD_ERR_TRUNCATED, 0, "the segment is empty")) &&
         open_reader(in, err);
    if (!ok)
        rd_err_origin(err, rd_src_origin(src));
    rd_src_close(src);
    if (!ok)
        segment_in_close(in);
    return ok;
}

bool segment_in_open_file(struct segment_in *in, const char *path, uint64_t number, uint64_t start,
                          struct rd_err *err)
{
    struct stat st;
    *in = (struct segment_in){.owns_fd = true};
    set_name(in, number, start);
    in->fd = regular_file_open(path, err);
    bool ok = in->fd >= 0 && fstat(in->fd, &st) == 0;
    if (ok)
        in->size = (uint64_t)st.st_size;
    if (ok && open_reader(in, err))
        return true;
    rd_err_origin(err, path);
    segment_in_close(in);
    return false;
}

bool segment_in_open_in(struct segment_in *in, const struct rd_fs *folder, uint64_t number,
                        uint64_t start, struct rd_err *err)
{
    *in = (struct segment_in){.folder = folder, .fd = -1, .owns_fd = true};
    set_name(in, number, start);
    int sys = folder->size(folder->ctx, in->name, &in->size);
    if (sys == 0)
        sys = in->fd = folder->open(folder->ctx, in->name, RD_FS_READ_AT);
    bool ok = sys >= 0 || rd_err_sys(err, -sys, "cannot open");
    if (ok && open_reader(in, err))
        return true;
    segment_in_close(in);
    return false;
}

/* ---- reading ---- */

bool segment_in_next(struct segment_in *in, struct repl_capture_event *ret, struct rd_err *err)
{
    enum repl_capture_status status;
    do
        status = repl_capture_reader_next(in->reader, ret);
    while (status == REPL_CAPTURE_EVENT && ret->kind == REPL_CAPTURE_CHAPTER);
    in->failed = status == REPL_CAPTURE_FAIL;
    if (in->failed)
        rd_err_adopt(err, repl_capture_reader_err(in->reader));
    if (status != REPL_CAPTURE_EVENT || ret->kind != REPL_CAPTURE_PIECE)
        return status == REPL_CAPTURE_EVENT;
    in->failed = true;
    return rd_err_set(err, RD_ERR_LIMIT, ret->offset, "a command is larger than one gigabyte");
}

bool segment_in_verify(struct segment_in *in, struct rd_err *err)
{
    uint8_t bytes[VERIFY_READ], sum[RD_DIGEST_MAX];
    struct rd_digest *digest;
    uint64_t end = in->size - REPL_CAPTURE_SHA;
    if (!rd_digest_new(&digest, RD_DIGEST_SHA256, err))
        return false;
    bool ok = true;
    for (uint64_t at = 0; ok && at < end;) {
        size_t want = end - at < sizeof bytes ? (size_t)(end - at) : sizeof bytes;
        ssize_t n = one_read_at(in, in->fd, bytes, want, at);
        ok = n > 0 || rd_err_sys(err, n < 0 ? (int)-n : EIO, "cannot read");
        ok = ok && rd_digest_update(digest, bytes, (size_t)n, err);
        at += ok ? (uint64_t)n : 0;
    }
    ok = ok && rd_digest_end(digest, sum, err);
    rd_digest_free(digest);
    return ok && (memcmp(sum, in->header.sha256, REPL_CAPTURE_SHA) == 0 ||
                  rd_err_set(err, RD_ERR_CHECKSUM, RD_NO_OFFSET,
                             "the digest at the end of the segment does not match"));
}

void segment_in_close(struct segment_in *in)
{
    repl_capture_reader_close(in->reader);
    if (in->owns_fd && in->fd >= 0)
        one_close(in, in->fd);
    spool_done(&in->spool);
    *in = (struct segment_in){.fd = -1};
}
