#include "repl/monitor_writer.h"

#include "base/buf.h"
#include "base/crc64.h"
#include "base/endian.h"
#include "base/mem.h"
#include "repl/capture/format.h"
#include "repl/capture/monitor_format.h"

struct repl_monitor_writer {
    struct rd_fs fs;
    int fd; /* -1: none */
    char name[REPL_CAPTURE_NAME];
    uint64_t number, seed, size;
    bool recording; /* a piece has begun */

    struct rd_buf block; /* the blocks to be written, with room for the header of the last one */
    size_t at;           /* of this header */
    bool open;           /* there is a last one that is filled */
    struct monitor_block head;
    int64_t until_us; /* of the piece */
};

bool repl_monitor_writer_new(struct repl_monitor_writer **ret, const struct rd_fs *fs,
                             struct rd_err *err)
{
    struct repl_monitor_writer *w = rd_calloc(1, sizeof *w);
    if (w == NULL)
        return rd_err_nomem(err, sizeof *w);
    w->fs = *fs;
    w->fd = -1;
    *ret = w;
    return true;
}

static bool sys(const struct repl_monitor_writer *w, int result, const char *what,
                struct rd_err *err)
{
    if (result >= 0)
        return true;
    rd_err_sys(err, -result, "%s", what);
    rd_err_origin(err, w->name);
    return false;
}

/* ---- blocks ---- */

static bool open_block(struct repl_monitor_writer *w, int64_t now_us, uint32_t flags,
                       struct rd_err *err)
{
    static const uint8_t room[MONITOR_BLOCK];
    w->at = w->block.len;
    w->head =
        (struct monitor_block){.flags = flags, .base_us = now_us, .until_us = REPL_CAPTURE_NO_TIME};
    w->open = rd_buf_add(&w->block, room, sizeof room);
    return w->open || rd_err_nomem(err, w->block.len);
}

/* Its header is written with the checksums of the file, which is not known before. */
static void end_block(struct repl_monitor_writer *w)
{
    if (!w->open)
        return;
    w->head.len = (uint32_t)(w->block.len - w->at - MONITOR_BLOCK);
    memcpy(w->block.ptr + w->at, &w->head, sizeof w->head);
    w->open = false;
}

static bool add(struct repl_monitor_writer *w, struct rd_slice bytes, uint32_t kind, int64_t now_us,
                struct rd_err *err)
{
    uint8_t head[MONITOR_RECORD];
    int64_t after_us = now_us - w->head.base_us;
    if (w->open && (w->block.len - w->at + MONITOR_RECORD + bytes.len > REPL_MONITOR_BLOCK_MAX ||
                    after_us != (int32_t)after_us))
        end_block(w);
    if (!w->open && !open_block(w, now_us, 0, err))
        return false;
    rd_put_le32(head, (uint32_t)bytes.len | kind);
    rd_put_le32(head + 4, (uint32_t)(int32_t)(now_us - w->head.base_us));
    if (!rd_buf_reserve(&w->block, sizeof head + bytes.len))
        return rd_err_nomem(err, w->block.len);
    rd_buf_add(&w->block, head, sizeof head);
    rd_buf_add(&w->block, bytes.ptr, bytes.len);
    w->head.n_lines++;
    return true;
}

bool repl_monitor_writer_begin(struct repl_monitor_writer *w, int64_t now_us, unsigned flags,
                               struct rd_err *err)
{
    end_block(w);
    w->recording = true;
    return open_block(w, now_us, REPL_MONITOR_BEGINS | flags, err);
}

bool repl_monitor_writer_waits(struct repl_monitor_writer *w, struct rd_slice address,
                               int64_t now_us, struct rd_err *err)
{
    return address.len > REPL_MONITOR_LINE_MAX || add(w, address, MONITOR_WAITS, now_us, err);
}

bool repl_monitor_writer_line(struct repl_monitor_writer *w, struct rd_slice line, int64_t now_us,
                              struct rd_err *err)
{
    if (line.len > REPL_MONITOR_LINE_MAX)
        return repl_monitor_writer_begin(w, now_us, 0, err);
    return add(w, line, 0, now_us, err);
}

void repl_monitor_writer_complete(struct repl_monitor_writer *w, int64_t until_us)
{
    struct rd_err ignored = {0};
    if (w->recording && (w->open || open_block(w, until_us, 0, &ignored)))
        w->head.until_us = until_us;
}

size_t repl_monitor_writer_pending(const struct repl_monitor_writer *w)
{
    return w->block.len;
}

uint64_t repl_monitor_writer_size(const struct repl_monitor_writer *w)
{
    return w->size;
}

int repl_monitor_writer_fd(const struct repl_monitor_writer *w)
{
    return w->fd;
}

/* ---- files ---- */

static bool write_all(struct repl_monitor_writer *w, const uint8_t *bytes, size_t len,
                      struct rd_err *err)
{
    while (len > 0) {
        ssize_t n = w->fs.write(w->fs.ctx, w->fd, bytes, len);
        if (n < 0)
            return sys(w, (int)n, "cannot write", err);
        bytes += n;
        len -= (size_t)n;
        w->size += (uint64_t)n;
    }
    return true;
}

static bool end_file(struct repl_monitor_writer *w, struct rd_err *err)
{
    uint8_t head[MONITOR_BLOCK];
    const struct monitor_block end = {
        .flags = MONITOR_END, .until_us = REPL_CAPTURE_NO_TIME, .crc = w->seed};
    if (w->fd < 0)
        return true;
    repl_monitor_block_put(head, &end, w->seed);
    bool ok = write_all(w, head, sizeof head, err);
    ok = ok && sys(w, w->fs.sync(w->fs.ctx, w->fd), "cannot sync", err);
    w->fs.close(w->fs.ctx, w->fd);
    w->fd = -1;
    return ok;
}

static bool begin_file(struct repl_monitor_writer *w, uint64_t number, int64_t now_us,
                       struct rd_err *err)
{
    uint8_t bytes[MONITOR_HEADER];
    const struct monitor_header header = {number, now_us};
    w->number = number;
    repl_capture_name_put(w->name, number, (uint64_t)now_us, REPL_MONITOR_ENDING);
    w->fd = w->fs.open(w->fs.ctx, w->name, RD_FS_CREATE);
    if (!sys(w, w->fd, "cannot create it", err)) {
        w->fd = -1;
        return false;
    }
    repl_monitor_header_put(bytes, &header, &w->seed);
    return write_all(w, bytes, sizeof bytes, err) &&
           sys(w, w->fs.sync_folder(w->fs.ctx, false), "cannot sync the folder", err);
}

/* The headers get their final form in place. */
static void seal_blocks(struct repl_monitor_writer *w)
{
    for (size_t at = 0; at < w->block.len;) {
        struct monitor_block head;
        memcpy(&head, w->block.ptr + at, sizeof head);
        head.crc = rd_crc64(w->seed, w->block.ptr + at + MONITOR_BLOCK, head.len);
        repl_monitor_block_put(w->block.ptr + at, &head, w->seed);
        at += MONITOR_BLOCK + head.len;
    }
}

bool repl_monitor_writer_flush(struct repl_monitor_writer *w, uint64_t number, int64_t now_us,
                               struct rd_err *err)
{
    end_block(w);
    if (w->fd >= 0 && w->number != number && !end_file(w, err))
        return false;
    if (w->block.len == 0)
        return true;
    if (w->fd < 0 && !begin_file(w, number, now_us, err))
        return false;
    seal_blocks(w);
    bool ok = write_all(w, w->block.ptr, w->block.len, err);
    rd_buf_reset(&w->block);
    return ok;
}

bool repl_monitor_writer_close(struct repl_monitor_writer *w, struct rd_err *err)
{
    if (w == NULL)
        return true;
    end_block(w);
    bool ok = w->fd < 0 || (repl_monitor_writer_flush(w, w->number, 0, err) && end_file(w, err));
    if (w->fd >= 0)
        w->fs.close(w->fs.ctx, w->fd);
    rd_buf_done(&w->block);
    rd_free(w);
    return ok;
}
