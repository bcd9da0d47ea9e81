#include "base/crc64.h"
#include "base/mem.h"
#include "repl/capture/writer_impl.h"

#include <errno.h>

bool repl_capture_sys(struct repl_capture_writer *w, int result, const char *name, const char *what)
{
    if (result >= 0)
        return true;
    rd_err_sys(&w->err, -result, "%s", what);
    rd_err_origin(&w->err, name);
    return false;
}

bool repl_capture_write_all(struct repl_capture_writer *w, int fd, const char *name,
                            const uint8_t *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = w->fs.write(w->fs.ctx, fd, bytes, len);
        if (n <= 0) /* a write of 0 bytes would be repeated forever */
            return repl_capture_sys(w, n == 0 ? -EIO : (int)n, name, "cannot write");
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

bool repl_capture_segment_write(struct repl_capture_writer *w, const uint8_t *bytes, size_t len)
{
    if (!repl_capture_write_all(w, w->fd, w->seg.name, bytes, len) ||
        !rd_digest_update(w->digest, bytes, len, &w->err))
        return false;
    w->at += len;
    return true;
}

/* ---- the beginning ---- */

static void begin_index(struct repl_capture_writer *w)
{
    w->n_index = 0;
    w->stride = CAPTURE_STRIDE;
    w->next_entry = 0;
    w->n_blocks = 0;
    w->last_us = w->latest_us = REPL_CAPTURE_NO_TIME;
}

bool repl_capture_segment_create(struct repl_capture_writer *w)
{
    uint8_t header[CAPTURE_HEADER];
    uint8_t sum[RD_DIGEST_MAX];
    struct rd_fs *fs = &w->fs;
    repl_capture_name_put(w->seg.name, w->seg.number, w->seg.start, ".seg");
    repl_capture_header_put(header, &w->seg, &w->seed);
    w->fd = fs->open(fs->ctx, w->seg.name, RD_FS_CREATE);
    if (!repl_capture_sys(w, w->fd, w->seg.name, "cannot create"))
        return false;
    begin_index(w);
    w->at = 0;
    w->whole = (struct capture_whole){0, REPL_CAPTURE_NO_TIME, REPL_CAPTURE_NO_TIME};
    /* No block is written before the header is durable: a segment without one is empty. */
    if (!rd_digest_end(w->digest, sum, &w->err) ||
        !repl_capture_segment_write(w, header, sizeof header) ||
        !repl_capture_sys(w, fs->sync(fs->ctx, w->fd), w->seg.name, "cannot sync it") ||
        !repl_capture_sys(w, fs->sync_folder(fs->ctx, false), w->seg.name,
                          "cannot sync the folder"))
        return false;
    w->whole.at = w->synced_at = w->at;
    w->has_segment = true;
    return true;
}

void repl_capture_segment_next(struct repl_capture_writer *w, int64_t now_us,
                               struct repl_capture_segment *ret)
{
    struct repl_capture_segment seg = w->seg;
    seg.number++;
    seg.start = w->written;
    seg.start_us = now_us;
    seg.db = w->db;
    seg.in_multi = w->in_multi;
    seg.run = w->opts.run;
    seg.begins = seg.has_snapshot = false;
    seg.continues = true;
    seg.snapshot_size = 0;
    repl_capture_interrupt_segment(w, &seg);
    memset(seg.snapshot_sha256, 0, sizeof seg.snapshot_sha256);
    *ret = seg;
}

/* ---- the index ---- */

/* Every second entry goes. */
static void thin_index(struct repl_capture_writer *w)
{
    w->n_index /= 2;
    for (size_t i = 0; i < w->n_index; i++)
        w->index[i] = w->index[2 * i];
    w->stride *= 2;
    w->next_entry = w->index[w->n_index - 1].at + w->stride;
}

void repl_capture_segment_index(struct repl_capture_writer *w, const struct capture_block *block)
{
    w->n_blocks++;
    if ((block->flags & CAPTURE_BEGINS_INSIDE) == 0 && w->at >= w->next_entry) {
        if (w->n_index == CAPTURE_INDEX_MAX)
            thin_index(w);
        w->index[w->n_index++] = (struct capture_entry){w->at, block->offset, w->latest_us};
        w->next_entry = w->at + w->stride;
    }
    if (block->latest_us > w->latest_us)
        w->latest_us = block->latest_us;
}

uint64_t repl_capture_index_size(const struct repl_capture_writer *w)
{
    return (w->n_index + 1) * CAPTURE_ENTRY + CAPTURE_TRAILER;
}

/* ---- the end ---- */

bool repl_capture_segment_hash(struct repl_capture_writer *w, struct capture_file *f)
{
    uint8_t sum[RD_DIGEST_MAX];
    if (!rd_digest_end(w->digest, sum, &w->err))
        return false;
    for (uint64_t at = 0; at < w->whole.at;) {
        const uint8_t *bytes;
        uint64_t left = w->whole.at - at;
        size_t len, n = left < REPL_CAPTURE_BLOCK ? (size_t)left : REPL_CAPTURE_BLOCK;
        if (!repl_capture_file_read(f, at, n, &bytes, &len, &w->err))
            return false;
        if (len == 0) {
            rd_err_set(&w->err, RD_ERR_TRUNCATED, at, "it was truncated");
            return false;
        }
        if (!rd_digest_update(w->digest, bytes, len, &w->err))
            return false;
        at += len;
    }
    return true;
}

bool repl_capture_segment_cut(struct repl_capture_writer *w)
{
    struct capture_file f;
    struct rd_fs *fs = &w->fs;
    if (!repl_capture_sys(w, fs->truncate(fs->ctx, w->fd, w->whole.at), w->seg.name,
                          "cannot cut") ||
        !repl_capture_sys(w, fs->sync(fs->ctx, w->fd), w->seg.name, "cannot sync it"))
        return false;
    w->at = w->synced_at = w->whole.at;
    w->synced = w->written;
    w->last_us = w->whole.last_us;
    w->latest_us = w->whole.latest_us;
    while (w->n_index > 0 && w->index[w->n_index - 1].at >= w->at)
        w->n_index--;
    w->next_entry = w->n_index > 0 ? w->index[w->n_index - 1].at + w->stride : 0;
    enum capture_open open = repl_capture_file_open(&f, fs, w->seg.name, &w->err);
    if (open != CAPTURE_OPEN_OK)
        return rd_err_set(&w->err, RD_ERR_CORRUPT, 0, "the segment was removed");
    bool ok = repl_capture_segment_hash(w, &f);
    repl_capture_file_close(&f);
    return ok;
}

static bool put_end(struct repl_capture_writer *w, uint8_t *bytes)
{
    size_t size = w->n_index * CAPTURE_ENTRY;
    uint8_t *trailer = bytes + size;
    for (size_t i = 0; i < w->n_index; i++)
        repl_capture_entry_put(bytes + i * CAPTURE_ENTRY, &w->index[i]);
    struct capture_trailer t = {.n_entries = (uint32_t)w->n_index,
                                .in_multi = w->in_multi,
                                .index_at = w->at,
                                .end = w->written,
                                .last_us = w->last_us,
                                .latest_us = w->latest_us,
                                .until_us = w->seg.interrupted ? w->seg.until_us : 0,
                                .db = w->db,
                                .index_crc = rd_crc64(w->seed, bytes, size)};
    repl_capture_trailer_put(trailer, &t, w->seed);
    size += CAPTURE_TRAILER - REPL_CAPTURE_SHA;
    return rd_digest_update(w->digest, bytes, size, &w->err) &&
           rd_digest_end(w->digest, bytes + size, &w->err);
}

bool repl_capture_segment_close(struct repl_capture_writer *w)
{
    struct rd_fs *fs = &w->fs;
    size_t size = w->n_index * CAPTURE_ENTRY + CAPTURE_TRAILER;
    uint8_t *bytes = rd_alloc(size);
    if (bytes == NULL)
        return rd_err_nomem(&w->err, size);
    bool ok = put_end(w, bytes) && repl_capture_write_all(w, w->fd, w->seg.name, bytes, size) &&
              repl_capture_sys(w, fs->sync(fs->ctx, w->fd), w->seg.name, "cannot sync it");
    rd_free(bytes);
    if (!ok)
        return false;
    w->at += size;
    fs->close(fs->ctx, w->fd);
    w->fd = -1;
    w->in_time = false;
    w->synced = w->written;
    return repl_capture_keep(w);
}
