#include "repl/monitor_reader.h"

#include "base/crc64.h"
#include "base/endian.h"
#include "base/mem.h"
#include "repl/capture/folder.h"
#include "repl/capture/monitor_format.h"

struct repl_monitor_reader {
    struct rd_fs fs;
    int fd;
    char name[REPL_CAPTURE_NAME];
    uint64_t at, seed; /* of the next block */
    bool closed;       /* it ends with a block that says so */
    uint64_t size;
    uint8_t head[MONITOR_BLOCK];
    uint8_t *data;
    struct monitor_block block;
    size_t taken; /* bytes of its data */
};

/* *ret_len < len: the file ends. */
static bool read_at(struct repl_monitor_reader *r, uint64_t at, uint8_t *dst, size_t len,
                    size_t *ret_len, struct rd_err *err)
{
    size_t have = 0;
    while (have < len) {
        ssize_t n = r->fs.read_at(r->fs.ctx, r->fd, dst + have, len - have, at + have);
        if (n < 0) {
            rd_err_sys(err, (int)-n, "cannot read");
            rd_err_origin(err, r->name);
            return false;
        }
        if (n == 0)
            break;
        have += (size_t)n;
    }
    *ret_len = have;
    return true;
}

static bool find_end(struct repl_monitor_reader *r, struct rd_err *err)
{
    struct monitor_block end;
    size_t len;
    if (r->size < MONITOR_HEADER + MONITOR_BLOCK)
        return true;
    if (!read_at(r, r->size - MONITOR_BLOCK, r->head, MONITOR_BLOCK, &len, err))
        return false;
    r->closed = len == MONITOR_BLOCK && repl_monitor_block_get(r->head, r->seed, &end) &&
                (end.flags & MONITOR_END) != 0;
    return true;
}

/* A file of which not even the header was written is empty. */
static bool read_header(struct repl_monitor_reader *r, struct rd_err *err)
{
    uint8_t bytes[MONITOR_HEADER];
    struct monitor_header header;
    uint64_t number, start;
    size_t len;
    if (!read_at(r, 0, bytes, sizeof bytes, &len, err))
        return false;
    r->at = len;
    if (len < sizeof bytes)
        return true;
    if (!repl_monitor_header_get(bytes, &header, &r->seed, err)) {
        rd_err_origin(err, r->name);
        return false;
    }
    if (!repl_capture_name_get(r->name, REPL_MONITOR_ENDING, &number, &start) ||
        number != header.number || (int64_t)start != header.start_us) {
        rd_err_set(err, RD_ERR_CORRUPT, 16, "the header belongs to another file");
        rd_err_origin(err, r->name);
        return false;
    }
    return find_end(r, err);
}

bool repl_monitor_reader_open(struct repl_monitor_reader **ret, const struct rd_fs *fs,
                              const char *name, struct rd_err *err)
{
    struct repl_monitor_reader *r = rd_calloc(1, sizeof *r);
    if (r == NULL)
        return rd_err_nomem(err, sizeof *r);
    r->fs = *fs;
    memcpy(r->name, name, strlen(name) + 1);
    r->data = rd_alloc(REPL_MONITOR_BLOCK_MAX);
    r->fd = fs->open(fs->ctx, name, RD_FS_READ);
    bool ok = r->data != NULL || rd_err_nomem(err, REPL_MONITOR_BLOCK_MAX);
    int result = r->fd < 0 ? r->fd : fs->size(fs->ctx, name, &r->size);
    if (ok && result < 0) {
        ok = rd_err_sys(err, -result, "cannot open it");
        rd_err_origin(err, name);
    }
    ok = ok && read_header(r, err);
    if (ok)
        *ret = r;
    else
        repl_monitor_reader_close(r);
    return ok;
}

void repl_monitor_reader_close(struct repl_monitor_reader *r)
{
    if (r == NULL)
        return;
    if (r->fd >= 0)
        r->fs.close(r->fs.ctx, r->fd);
    rd_free(r->data);
    rd_free(r);
}

/* ---- blocks ---- */

static enum repl_monitor_status damaged(const struct repl_monitor_reader *r, uint64_t at,
                                        struct rd_err *err)
{
    rd_err_set(err, RD_ERR_CHECKSUM, at, "checksum mismatch in the block");
    rd_err_origin(err, r->name);
    return REPL_MONITOR_FAIL;
}

/* Blocks are written one after the other: if one comes after bytes that are none, these were
 * damaged later. */
static bool is_torn(struct repl_monitor_reader *r, bool *ret, struct rd_err *err)
{
    struct monitor_block block;
    size_t len;
    uint64_t at = r->at;
    *ret = true;
    do {
        if (!read_at(r, at, r->data, REPL_MONITOR_BLOCK_MAX, &len, err))
            return false;
        for (size_t i = at == r->at; i + MONITOR_BLOCK <= len && *ret; i++)
            *ret = r->data[i] != 0xf1 || !repl_monitor_block_get(r->data + i, r->seed, &block);
        at += len - MONITOR_BLOCK + 1;
    } while (*ret && len == REPL_MONITOR_BLOCK_MAX);
    return true;
}

static enum repl_monitor_status no_block(struct repl_monitor_reader *r, struct rd_err *err)
{
    bool torn = true;
    if (r->closed)
        return damaged(r, r->at, err);
    if (!is_torn(r, &torn, err))
        return REPL_MONITOR_FAIL;
    return torn ? REPL_MONITOR_OVER : damaged(r, r->at, err);
}

static enum repl_monitor_status next_block(struct repl_monitor_reader *r,
                                           struct repl_monitor_record *ret, struct rd_err *err)
{
    size_t len;
    r->taken = 0;
    r->block.len = 0;
    if (!read_at(r, r->at, r->head, MONITOR_BLOCK, &len, err))
        return REPL_MONITOR_FAIL;
    if (len == 0 && !r->closed)
        return REPL_MONITOR_OVER;
    struct monitor_block block;
    if (len < MONITOR_BLOCK || !repl_monitor_block_get(r->head, r->seed, &block))
        return no_block(r, err);
    if ((block.flags & MONITOR_END) != 0)
        return block.crc == r->seed && r->at + MONITOR_BLOCK == r->size ? REPL_MONITOR_OVER
                                                                        : damaged(r, r->at, err);
    if (!read_at(r, r->at + MONITOR_BLOCK, r->data, block.len, &len, err))
        return REPL_MONITOR_FAIL;
    if (len < block.len || rd_crc64(r->seed, r->data, len) != block.crc)
        return no_block(r, err);
    r->block = block;
    r->at += MONITOR_BLOCK + block.len;
    *ret = (struct repl_monitor_record){.kind = REPL_MONITOR_AT_BLOCK,
                                        .time_us = block.base_us,
                                        .flags = block.flags,
                                        .until_us = block.until_us};
    return REPL_MONITOR_RECORD;
}

enum repl_monitor_status repl_monitor_reader_next(struct repl_monitor_reader *r,
                                                  struct repl_monitor_record *ret,
                                                  struct rd_err *err)
{
    if (r->taken == r->block.len)
        return next_block(r, ret, err);
    const uint8_t *at = r->data + r->taken;
    size_t left = r->block.len - r->taken;
    uint32_t len = left >= MONITOR_RECORD ? rd_get_le32(at) : 0;
    size_t n = len & ~MONITOR_WAITS;
    if (left < MONITOR_RECORD || n > left - MONITOR_RECORD) {
        rd_err_set(err, RD_ERR_CORRUPT, r->at - left, "a line is longer than its block");
        rd_err_origin(err, r->name);
        return REPL_MONITOR_FAIL;
    }
    *ret = (struct repl_monitor_record){
        .kind = (len & MONITOR_WAITS) != 0 ? REPL_MONITOR_AT_WAITS : REPL_MONITOR_AT_LINE,
        .time_us =
            (int64_t)((uint64_t)r->block.base_us + (uint64_t)(int64_t)(int32_t)rd_get_le32(at + 4)),
        .text = rd_slice(at + MONITOR_RECORD, n)};
    r->taken += MONITOR_RECORD + n;
    return REPL_MONITOR_RECORD;
}

bool repl_monitor_list(char (**ret)[REPL_CAPTURE_NAME], size_t *ret_n, const struct rd_fs *fs,
                       struct rd_err *err)
{
    struct capture_folder folder;
    if (!repl_capture_folder_list(&folder, fs, REPL_MONITOR_ENDING, err))
        return false;
    char(*names)[REPL_CAPTURE_NAME] = rd_calloc(folder.n + 1, sizeof *names);
    for (size_t i = 0; names != NULL && i < folder.n; i++)
        repl_capture_name_put(names[i], folder.name[i].number, folder.name[i].start,
                              REPL_MONITOR_ENDING);
    *ret_n = folder.n;
    *ret = names;
    repl_capture_folder_done(&folder);
    return names != NULL || rd_err_nomem(err, sizeof *names);
}
