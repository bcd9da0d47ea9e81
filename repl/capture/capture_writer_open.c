#include <errno.h>

#include "base/mem.h"
#include "repl/capture/writer_impl.h"

/* ---- open and close ---- */

static bool reserve(struct repl_capture_writer *w)
{
    size_t block = CAPTURE_BLOCK + w->opts.block_size + CAPTURE_MARKS * CAPTURE_MARK_MAX;
    w->buf = rd_alloc(block);
    w->spare = rd_alloc(block);
    w->marks = rd_calloc(CAPTURE_MARKS, sizeof *w->marks);
    w->index = rd_calloc(CAPTURE_INDEX_MAX, sizeof *w->index);
    if (w->buf == NULL || w->spare == NULL || w->marks == NULL || w->index == NULL)
        return rd_err_nomem(&w->err, block);
    return rd_digest_new(&w->digest, RD_DIGEST_SHA256, &w->err);
}

bool repl_capture_lock(struct repl_capture_lock *ret, const struct rd_fs *fs, struct rd_err *err)
{
    ret->fd = fs->lock(fs->ctx, CAPTURE_LOCK);
    if (ret->fd >= 0)
        return true;
    if (ret->fd == -EWOULDBLOCK)
        return rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "another process writes this capture");
    rd_err_sys(err, -ret->fd, "cannot lock the capture");
    rd_err_origin(err, CAPTURE_LOCK);
    return false;
}

void repl_capture_unlock(const struct repl_capture_lock *lock, const struct rd_fs *fs)
{
    fs->close(fs->ctx, lock->fd);
}

static bool lock(struct repl_capture_writer *w)
{
    struct repl_capture_lock own;
    if (w->opts.lock != NULL)
        return true;
    if (!repl_capture_lock(&own, &w->fs, &w->err))
        return false;
    w->lock = own.fd;
    return true;
}

bool repl_capture_writer_open(struct repl_capture_writer **ret, const struct rd_fs *fs,
                              const struct repl_capture_writer_opts *opts, struct rd_err *err)
{
    struct repl_capture_writer *w = rd_calloc(1, sizeof *w);
    if (w == NULL)
        return rd_err_nomem(err, sizeof *w);
    w->fs = *fs;
    w->fd = w->lock = w->snap.fd = -1;
    if (opts != NULL)
        w->opts = *opts;
    if (w->opts.segment_size == 0)
        w->opts.segment_size = REPL_CAPTURE_SEGMENT;
    if (w->opts.block_size == 0)
        w->opts.block_size = REPL_CAPTURE_BLOCK;
    if (w->opts.block_size < REPL_CAPTURE_BLOCK_MIN || w->opts.block_size > REPL_CAPTURE_BLOCK_MAX)
        rd_err_set(&w->err, RD_ERR_USAGE, RD_NO_OFFSET, "a block of %zu bytes", w->opts.block_size);
    if (w->err.code == RD_ERR_OK && lock(w) && reserve(w) && repl_capture_resume(w)) {
        *ret = w;
        return true;
    }
    rd_err_adopt(err, &w->err);
    repl_capture_writer_abort(w);
    return false;
}

void repl_capture_writer_abort(struct repl_capture_writer *w)
{
    if (w == NULL)
        return;
    repl_capture_snapshot_drop(w);
    if (w->fd >= 0)
        w->fs.close(w->fs.ctx, w->fd);
    if (w->lock >= 0)
        w->fs.close(w->fs.ctx, w->lock);
    rd_digest_free(w->digest);
    rd_buf_done(&w->kept);
    rd_free(w->index);
    rd_free(w->marks);
    rd_free(w->spare);
    rd_free(w->buf);
    rd_free(w);
}

bool repl_capture_writer_close(struct repl_capture_writer *w, struct rd_err *err)
{
    bool ok = repl_capture_writer_sync(w, err);
    /* The next writer would truncate the rest of a long command. */
    if (ok && w->inside)
        ok = repl_capture_done(w, repl_capture_drop_part(w), err);
    repl_capture_writer_abort(w);
    return ok;
}

/* ---- durability ---- */

bool repl_capture_writer_sync_begin(struct repl_capture_writer *w, struct repl_capture_sync *ret,
                                    struct rd_err *err)
{
    if (!repl_capture_writer_flush(w, err))
        return false;
    *ret = (struct repl_capture_sync){w->fd, w->written, w->whole.at};
    w->syncing = true;
    return true;
}

/* After a failed fsync, the system may have dropped the bytes, and reports that only once. */
static bool lose(struct repl_capture_writer *w, int result)
{
    repl_capture_sys(w, result, w->seg.name, "cannot sync it");
    w->whole.at = w->synced_at;
    w->written = w->synced;
    return false;
}

bool repl_capture_writer_sync_end(struct repl_capture_writer *w,
                                  const struct repl_capture_sync *sync, int result,
                                  struct rd_err *err)
{
    w->syncing = false;
    if (!repl_capture_alive(w, err))
        return false;
    if (sync->fd >= 0 && result < 0)
        return repl_capture_done(w, lose(w, result), err);
    w->synced = sync->upto;
    w->synced_at = sync->at;
    return true;
}

bool repl_capture_writer_sync(struct repl_capture_writer *w, struct rd_err *err)
{
    struct repl_capture_sync sync;
    if (!repl_capture_writer_sync_begin(w, &sync, err))
        return false;
    int result = sync.fd >= 0 ? w->fs.sync(w->fs.ctx, sync.fd) : 0;
    return repl_capture_writer_sync_end(w, &sync, result, err);
}

/* ---- asking ---- */

bool repl_capture_writer_point(const struct repl_capture_writer *w, struct repl_capture_point *ret)
{
    if (!w->has_segment)
        return false;
    *ret = (struct repl_capture_point){.replid = w->seg.replid,
                                       .offset = w->written,
                                       .replid2 = w->seg.replid2,
                                       .offset2 = w->seg.offset2,
                                       .chapter = w->seg.chapter,
                                       .db = w->db,
                                       .in_multi = w->in_multi};
    return true;
}

uint64_t repl_capture_writer_cut(const struct repl_capture_writer *w)
{
    return w->cut;
}

uint64_t repl_capture_writer_received(const struct repl_capture_writer *w)
{
    return w->offset + w->len;
}

uint64_t repl_capture_writer_written(const struct repl_capture_writer *w)
{
    return w->written;
}

uint64_t repl_capture_writer_synced(const struct repl_capture_writer *w)
{
    return w->synced;
}

uint64_t repl_capture_writer_number(const struct repl_capture_writer *w)
{
    return w->has_segment ? w->seg.number : 0;
}

void repl_capture_writer_beside(struct repl_capture_writer *w, uint64_t n_bytes)
{
    w->beside_size += n_bytes;
}

uint64_t repl_capture_writer_size(const struct repl_capture_writer *w)
{
    return w->kept_size + w->beside_size + (w->fd >= 0 ? w->at + w->snapshot_size : 0);
}
