#include "repl/capture/file.h"

#include <errno.h>
#include <inttypes.h>

#include "base/crc64.h"
#include "base/mem.h"

enum { WINDOW = 256 * 1024 };

/* ---- bytes ---- */

/* How much of a file is read at once. */
enum reading {
    SEQUENTIALLY, /* as much as the window takes */
    EXACTLY       /* what is needed: many segments are opened only for their headers */
};

static bool reserve(struct capture_file *f, size_t n, enum reading reading, struct rd_err *err)
{
    size_t cap = f->seg.size < WINDOW ? (size_t)f->seg.size : WINDOW;
    if (cap < n || reading == EXACTLY)
        cap = n;
    if (f->cap >= cap && f->cap > 0)
        return true;
    uint8_t *window = rd_realloc(f->window, cap);
    if (window == NULL)
        return rd_err_nomem(err, cap);
    f->window = window;
    f->cap = cap;
    return true;
}

/* Keeps the bytes of the window from `at` on, and reads more after them. */
static bool fill(struct capture_file *f, uint64_t at, size_t n, enum reading reading,
                 struct rd_err *err)
{
    size_t upto = reading == EXACTLY ? n : f->cap;
    size_t keep = at >= f->at && at - f->at <= f->len ? f->len - (size_t)(at - f->at) : 0;
    if (keep > 0)
        memmove(f->window, f->window + (f->len - keep), keep);
    f->at = at;
    f->len = keep;
    while (f->len < n) {
        ssize_t got =
            f->fs.read_at(f->fs.ctx, f->fd, f->window + f->len, upto - f->len, at + f->len);
        if (got < 0) {
            rd_err_sys(err, (int)-got, "cannot read");
            return false;
        }
        if (got == 0)
            break;
        f->len += (size_t)got;
    }
    return true;
}

static bool read_bytes(struct capture_file *f, uint64_t at, size_t n, enum reading reading,
                       const uint8_t **ret, size_t *ret_len, struct rd_err *err)
{
    if (at < f->at || at - f->at > f->len || f->len - (at - f->at) < n) {
        if (!reserve(f, n, reading, err) || !fill(f, at, n, reading, err)) {
            rd_err_origin(err, f->seg.name);
            return false;
        }
    }
    size_t have = f->len - (size_t)(at - f->at);
    *ret = f->window + (at - f->at);
    *ret_len = have < n ? have : n;
    return true;
}

bool repl_capture_file_read(struct capture_file *f, uint64_t at, size_t n, const uint8_t **ret,
                            size_t *ret_len, struct rd_err *err)
{
    return read_bytes(f, at, n, f->few ? EXACTLY : SEQUENTIALLY, ret, ret_len, err);
}

/* ---- open ---- */

static bool load_trailer(struct capture_file *f, struct rd_err *err)
{
    const uint8_t *bytes;
    size_t len;
    struct repl_capture_segment *seg = &f->seg;
    seg->closed = false;
    if (seg->size < CAPTURE_HEADER + CAPTURE_TRAILER)
        return true;
    f->len = 0; /* the block may have been half written when it was read */
    if (!read_bytes(f, seg->size - CAPTURE_TRAILER, CAPTURE_TRAILER, EXACTLY, &bytes, &len, err))
        return false;
    f->len = 0;
    if (len < CAPTURE_TRAILER || !repl_capture_trailer_get(bytes, f->seed, seg->size, &f->trailer))
        return true;
    seg->closed = true;
    seg->end = f->trailer.end;
    seg->end_at = f->trailer.index_at;
    seg->last_us = f->trailer.last_us;
    seg->latest_us = f->trailer.latest_us;
    seg->end_db = f->trailer.db;
    seg->end_in_multi = f->trailer.in_multi;
    seg->until_us = seg->interrupted ? f->trailer.until_us : 0;
    memcpy(seg->sha256, f->trailer.sha256, REPL_CAPTURE_SHA);
    return true;
}

static int get_size(struct capture_file *f)
{
    return f->fs.size(f->fs.ctx, f->seg.name, &f->seg.size);
}

bool repl_capture_file_refresh(struct capture_file *f, struct rd_err *err)
{
    int result = get_size(f);
    if (result < 0) {
        rd_err_sys(err, -result, "cannot stat");
        rd_err_origin(err, f->seg.name);
        return false;
    }
    return load_trailer(f, err);
}

/* Reads the header, which must match the name. */
static enum capture_open load_header(struct capture_file *f, struct rd_err *err)
{
    const uint8_t *bytes;
    struct rd_err why = {0};
    struct repl_capture_segment seg;
    size_t len;
    uint64_t number, start, size = f->seg.size;
    if (!read_bytes(f, 0, CAPTURE_HEADER, EXACTLY, &bytes, &len, err))
        return CAPTURE_OPEN_FAIL;
    if (len < CAPTURE_HEADER)
        return CAPTURE_OPEN_TORN;
    if (!repl_capture_header_get(bytes, &seg, &f->seed, &why)) {
        rd_err_adopt(err, &why);
        return size == CAPTURE_HEADER && why.code != RD_ERR_UNSUPPORTED ? CAPTURE_OPEN_TORN
                                                                        : CAPTURE_OPEN_FAIL;
    }
    if (!repl_capture_name_get(f->seg.name, ".seg", &number, &start) || number != seg.number ||
        start != seg.start) {
        rd_err_set(err, RD_ERR_CORRUPT, 16,
                   "the header belongs to segment %" PRIu64 " from %" PRIu64, seg.number,
                   seg.start);
        return CAPTURE_OPEN_FAIL;
    }
    memcpy(seg.name, f->seg.name, REPL_CAPTURE_NAME);
    seg.size = size;
    f->seg = seg;
    return load_trailer(f, err) ? CAPTURE_OPEN_OK : CAPTURE_OPEN_FAIL;
}

static enum capture_open open_file(struct capture_file *f, const struct rd_fs *fs, const char *name,
                                   enum rd_fs_mode mode, struct rd_err *err)
{
    struct rd_err why = {0};
    enum capture_open result = CAPTURE_OPEN_FAIL;
    *f = (struct capture_file){.fs = *fs, .few = mode == RD_FS_READ_AT};
    memcpy(f->seg.name, name, strlen(name) + 1);
    f->fd = fs->open(fs->ctx, name, mode);
    int sys = f->fd < 0 ? f->fd : get_size(f);
    if (sys < 0)
        rd_err_sys(&why, -sys, "cannot open it");
    else
        result = load_header(f, &why);
    if (sys == -ENOENT)
        result = CAPTURE_OPEN_GONE;
    if (result == CAPTURE_OPEN_OK)
        return result;
    rd_err_origin(&why, name);
    if (result == CAPTURE_OPEN_FAIL)
        rd_err_adopt(err, &why);
    repl_capture_file_close(f);
    return result;
}

enum capture_open repl_capture_file_open(struct capture_file *f, const struct rd_fs *fs,
                                         const char *name, struct rd_err *err)
{
    return open_file(f, fs, name, RD_FS_READ, err);
}

enum capture_open repl_capture_file_open_at(struct capture_file *f, const struct rd_fs *fs,
                                            const char *name, struct rd_err *err)
{
    return open_file(f, fs, name, RD_FS_READ_AT, err);
}

void repl_capture_file_close(struct capture_file *f)
{
    if (f->fd >= 0)
        f->fs.close(f->fs.ctx, f->fd);
    rd_free(f->window);
    *f = (struct capture_file){.fd = -1};
}

/* ---- blocks ---- */

enum found { FOUND, NOT_FOUND, FAILED };

/* False: it is missing or incomplete. */
static enum found find_head(struct capture_file *f, uint64_t at, enum reading reading,
                            struct capture_block *ret, struct rd_err *err)
{
    const uint8_t *bytes;
    size_t len;
    if (!read_bytes(f, at, CAPTURE_BLOCK, reading, &bytes, &len, err))
        return FAILED;
    return len == CAPTURE_BLOCK && repl_capture_block_get(bytes, f->seed, ret) ? FOUND : NOT_FOUND;
}

bool repl_capture_file_head(struct capture_file *f, uint64_t at, struct capture_block *ret)
{
    return find_head(f, at, EXACTLY, ret, NULL) == FOUND;
}

static enum found find_block(struct capture_file *f, uint64_t at, struct capture_piece *ret,
                             struct rd_err *err)
{
    const uint8_t *bytes;
    size_t len, body;
    enum found found = find_head(f, at, f->few ? EXACTLY : SEQUENTIALLY, &ret->head, err);
    if (found != FOUND)
        return found;
    body = (size_t)ret->head.len + ret->head.times_len;
    if (!repl_capture_file_read(f, at + CAPTURE_BLOCK, body, &bytes, &len, err))
        return FAILED;
    if (len < body || rd_crc64(f->seed, bytes, body) != ret->head.crc)
        return NOT_FOUND;
    ret->data = bytes;
    ret->times = bytes + ret->head.len;
    ret->at = at;
    return FOUND;
}

/* Whether a later block shows that the bytes at `at` (`offset` in the stream) were durable when
 * that block was written. Then they were damaged later, and this is not a torn end. */
static enum found find_later(struct capture_file *f, uint64_t at, uint64_t offset,
                             struct rd_err *err)
{
    const uint8_t *bytes, *p;
    struct capture_block block;
    size_t len;
    while (read_bytes(f, at, WINDOW, SEQUENTIALLY, &bytes, &len, err)) {
        if (len < CAPTURE_BLOCK)
            return NOT_FOUND;
        size_t n = len - CAPTURE_BLOCK + 1;
        for (size_t i = 0; i < n && (p = memchr(bytes + i, 0xf1, n - i)) != NULL; i++) {
            i = (size_t)(p - bytes);
            if (repl_capture_block_get(p, f->seed, &block) && block.synced > offset)
                return FOUND;
        }
        at += n;
    }
    return FAILED;
}

static enum capture_next damaged(const struct capture_file *f, uint64_t at, struct rd_err *err)
{
    rd_err_set(err, RD_ERR_CHECKSUM, at, "checksum mismatch in the block");
    rd_err_origin(err, f->seg.name);
    return CAPTURE_NEXT_FAIL;
}

static enum capture_next wrong(const struct capture_file *f, uint64_t at, struct rd_err *err,
                               const char *what)
{
    rd_err_set(err, RD_ERR_CORRUPT, at, "%s", what);
    rd_err_origin(err, f->seg.name);
    return CAPTURE_NEXT_FAIL;
}

void repl_capture_cursor_init(struct capture_cursor *c, struct capture_file *f)
{
    *c = (struct capture_cursor){
        .f = f, .at = CAPTURE_HEADER, .offset = f->seg.start, .latest_us = REPL_CAPTURE_NO_TIME};
}

static void pass(struct capture_cursor *c, const struct capture_block *block)
{
    c->at += CAPTURE_BLOCK + (uint64_t)block->len + block->times_len;
    c->offset += block->len;
    c->inside = (block->flags & CAPTURE_ENDS_INSIDE) != 0;
    if (block->latest_us > c->latest_us)
        c->latest_us = block->latest_us;
}

static enum capture_next at_end(const struct capture_cursor *c, struct rd_err *err)
{
    if (c->offset != c->f->trailer.end || c->inside)
        return wrong(c->f, c->at, err, "the end of the segment has a wrong offset");
    return CAPTURE_NEXT_END;
}

/* There is no block at the position, in a segment that was not closed when it was opened. */
static enum capture_next at_live_end(struct capture_cursor *c, struct capture_piece *ret,
                                     struct rd_err *err)
{
    if (!repl_capture_file_refresh(c->f, err))
        return CAPTURE_NEXT_FAIL;
    if (c->f->seg.closed)
        return repl_capture_cursor_next(c, ret, err);
    switch (find_later(c->f, c->at, c->offset, err)) {
    case FOUND:
        return damaged(c->f, c->at, err);
    case NOT_FOUND:
        c->f->len = 0;
        return CAPTURE_NEXT_LIVE;
    default:
        return CAPTURE_NEXT_FAIL;
    }
}

enum capture_next repl_capture_cursor_next(struct capture_cursor *c, struct capture_piece *ret,
                                           struct rd_err *err)
{
    struct capture_file *f = c->f;
    if (f->seg.closed && c->at == f->trailer.index_at)
        return at_end(c, err);
    switch (find_block(f, c->at, ret, err)) {
    case FAILED:
        return CAPTURE_NEXT_FAIL;
    case NOT_FOUND:
        return f->seg.closed ? damaged(f, c->at, err) : at_live_end(c, ret, err);
    default:
        break;
    }
    if (ret->head.offset != c->offset)
        return wrong(f, c->at, err, "the block has a wrong stream offset");
    if (((ret->head.flags & CAPTURE_BEGINS_INSIDE) != 0) != c->inside)
        return wrong(f, c->at, err, "the block does not continue the command of the previous one");
    pass(c, &ret->head);
    return CAPTURE_NEXT_BLOCK;
}

/* ---- seeking ---- */

bool repl_capture_file_index(struct capture_file *f, const uint8_t **ret, struct rd_err *err)
{
    size_t len, size = (size_t)f->trailer.n_entries * CAPTURE_ENTRY;
    if (!read_bytes(f, f->trailer.index_at, size, EXACTLY, ret, &len, err))
        return false;
    if (len < size || rd_crc64(f->seed, *ret, size) != f->trailer.index_crc) {
        rd_err_set(err, RD_ERR_CHECKSUM, f->trailer.index_at, "checksum mismatch in the index");
        rd_err_origin(err, f->seg.name);
        return false;
    }
    return true;
}

/* Whether the position is at or before the wanted one. */
static bool is_before(const struct capture_cursor *c, uint64_t offset, int64_t time_us)
{
    return time_us == REPL_CAPTURE_NO_TIME ? c->offset <= offset : c->latest_us < time_us;
}

static void move_to(struct capture_cursor *c, const struct capture_entry *entry)
{
    c->at = entry->at;
    c->offset = entry->offset;
    c->latest_us = entry->latest_us;
    c->inside = false;
}

static bool by_index(struct capture_cursor *c, uint64_t offset, int64_t time_us, struct rd_err *err)
{
    const uint8_t *entries;
    size_t low = 0, high = c->f->trailer.n_entries;
    if (!repl_capture_file_index(c->f, &entries, err))
        return false;
    while (low < high) {
        struct capture_entry entry;
        struct capture_cursor there = *c;
        size_t mid = low + (high - low) / 2;
        repl_capture_entry_get(entries + mid * CAPTURE_ENTRY, &entry);
        move_to(&there, &entry);
        if (is_before(&there, offset, time_us)) {
            *c = there;
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return true;
}

bool repl_capture_cursor_hop(struct capture_cursor *c, struct capture_block *ret,
                             struct rd_err *err)
{
    struct capture_block block;
    if (c->f->seg.closed && c->at >= c->f->trailer.index_at)
        return false;
    if (find_head(c->f, c->at, EXACTLY, &block, err) != FOUND)
        return false;
    pass(c, &block);
    *ret = block;
    return true;
}

bool repl_capture_cursor_seek(struct capture_cursor *c, uint64_t offset, int64_t time_us,
                              struct rd_err *err)
{
    struct rd_err why = {0};
    struct capture_block block;
    struct capture_cursor next;
    repl_capture_cursor_init(c, c->f);
    if (c->f->seg.closed && !by_index(c, offset, time_us, err))
        return false;
    next = *c;
    do {
        if (!next.inside)
            *c = next;
    } while (repl_capture_cursor_hop(&next, &block, &why) && is_before(&next, offset, time_us));
    /* If there is no header, the next read reports the error. */
    rd_err_adopt(err, &why);
    return why.code == RD_ERR_OK;
}
