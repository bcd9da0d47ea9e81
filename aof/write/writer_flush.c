/* Writes the buffer to the file, and the file to the disk. */
#include <errno.h>

#include "aof/write/writer_impl.h"

enum { SHRINK_ABOVE = 1024 * 1024 };

uint64_t aof_flush_end(const struct aof_writer *w)
{
    return w->kept + (w->in_multi ? w->multi_at : w->buf.len);
}

/* Drops bytes before `upto`, which are no longer needed. */
static void forget(struct aof_writer *w, uint64_t upto)
{
    if (upto <= w->kept)
        return;
    size_t n = (size_t)(upto - w->kept);
    w->buf.len -= n;
    if (w->buf.len > 0)
        memmove(w->buf.ptr, w->buf.ptr + n, w->buf.len);
    else if (w->buf.cap > SHRINK_ABOVE)
        rd_buf_done(&w->buf);
    w->kept = upto;
    if (w->in_multi) {
        w->multi_at -= n;
        w->multi_empty -= n;
    }
}

bool aof_flush_dead(const struct aof_writer *w, struct rd_err *err)
{
    if (w->dead)
        rd_err_adopt(err, &w->err);
    return w->dead;
}

const char *aof_flush_file(const struct aof_writer *w)
{
    const struct aof_file *incr =
        w->begin == AOF_WRITER_CONTINUE ? aof_manifest_last_incr(&w->manifest) : NULL;
    return incr != NULL ? incr->name : w->name;
}

static int cut_back(struct aof_writer *w, uint64_t to)
{
    int result = w->fs.truncate(w->fs.ctx, w->fd, to + w->shift);
    if (result == 0)
        w->written = w->whole = to;
    return result;
}

static bool write_failed(struct aof_writer *w, int result, struct rd_err *err)
{
    struct rd_err why = {0};
    const char *name = aof_flush_file(w);
    aof_folder_err(&why, result, "cannot write", name);
    uint64_t torn = w->written - w->whole;
    if (torn > 0 && (result = cut_back(w, w->whole)) < 0)
        rd_err_doing(&why, "the file ends %llu bytes after its last whole command: cannot cut: %s",
                     (unsigned long long)torn, strerror(-result));
    w->write_failed = true;
    w->err = why;
    rd_err_adopt(err, &why);
    return false;
}

/* After a failed fsync, the data that it should have made durable is removed from the file and
 * written again. Otherwise later bytes could reach the disk without it, which would leave a gap. */
static bool begin_again(struct aof_writer *w, struct rd_err *err)
{
    int result = cut_back(w, w->kept);
    w->doubt = result < 0;
    return result == 0 ||
           aof_folder_err(err, result, "cannot truncate bytes that may not be durable in",
                          aof_flush_file(w));
}

bool aof_writer_flush(struct aof_writer *w, struct rd_err *err)
{
    if (aof_flush_dead(w, err) || (w->doubt && !begin_again(w, err)))
        return false;
    uint64_t end = aof_flush_end(w);
    while (w->written < end) {
        const uint8_t *from = w->buf.ptr + (w->written - w->kept);
        ssize_t n = w->fs.write(w->fs.ctx, w->fd, from, (size_t)(end - w->written));
        if (n <= 0)
            return write_failed(w, n == 0 ? -EIO : (int)n, err);
        w->written += (uint64_t)n;
    }
    w->whole = end;
    w->write_failed = false;
    if (!w->sync_failed)
        rd_err_reset(&w->err);
    if (w->fsync == AOF_FSYNC_NO)
        forget(w, w->whole);
    return true;
}

void aof_flush_sync_failed(struct aof_writer *w, const struct rd_err *why)
{
    w->sync_failed = true;
    if (w->fsync == AOF_FSYNC_ALWAYS)
        w->dead = true;
    w->err = *why;
}

bool aof_writer_sync_begin(struct aof_writer *w, struct aof_sync *ret, struct rd_err *err)
{
    if (w->syncing)
        return rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "an fsync of the log is running");
    if (aof_flush_dead(w, err))
        return false;
    if (w->fd < 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the log has no file so far");
    /* The manifest must name the current file before anything in it counts as durable. */
    if (w->file_pending && !aof_folder_settle(w, err))
        return false;
    if (w->doubt && !aof_writer_flush(w, err))
        return false;
    w->syncing = true;
    *ret = (struct aof_sync){.fd = w->fd, .upto = w->whole};
    return true;
}

bool aof_writer_sync_end(struct aof_writer *w, const struct aof_sync *sync, int result,
                         struct rd_err *err)
{
    w->syncing = false;
    if (result < 0) {
        struct rd_err why = {0};
        aof_folder_err(&why, result, "cannot fsync", aof_flush_file(w));
        /* Under `no` the bytes are no longer in memory to be written again. */
        if (w->fsync != AOF_FSYNC_NO)
            begin_again(w, &why);
        aof_flush_sync_failed(w, &why);
        rd_err_adopt(err, &why);
        return false;
    }
    w->durable = sync->upto;
    w->sync_failed = false;
    if (!w->write_failed)
        rd_err_reset(&w->err);
    forget(w, w->durable);
    return true;
}

bool aof_writer_sync(struct aof_writer *w, struct rd_err *err)
{
    struct aof_sync sync;
    return aof_writer_sync_begin(w, &sync, err) &&
           aof_writer_sync_end(w, &sync, w->fs.sync(w->fs.ctx, sync.fd), err);
}
