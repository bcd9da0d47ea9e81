#include "repl/capture_merge.h"

#include <errno.h>

#include "base/crc64.h"
#include "base/mem.h"
#include "repl/capture/writer_impl.h"

/* Writes with the functions of the writer, into a folder that is the sink. */
struct repl_capture_merge {
    struct repl_capture_writer w;
    struct rd_sink *sink;
    struct repl_capture_segment last, before;
    bool has_before;
    uint8_t *block;
    size_t cap;
};

/* ---- the folder ---- */

static int sink_open(void *ctx, const char *name, enum rd_fs_mode mode)
{
    (void)ctx;
    (void)name;
    (void)mode;
    return 0;
}

static int sink_close(void *ctx, int fd)
{
    (void)ctx;
    (void)fd;
    return 0;
}

static ssize_t sink_write(void *ctx, int fd, const void *src, size_t size)
{
    struct repl_capture_merge *m = ctx;
    (void)fd;
    return rd_sink_write(m->sink, src, size) ? (ssize_t)size : -EIO;
}

static int sink_sync(void *ctx, int fd)
{
    (void)ctx;
    (void)fd;
    return 0;
}

static int sink_sync_folder(void *ctx, bool outside)
{
    (void)ctx;
    (void)outside;
    return 0;
}

/* ---- the segment ---- */

static bool failed(struct repl_capture_merge *m, struct rd_err *err)
{
    const struct rd_err *sink = rd_sink_err(m->sink);
    rd_err_adopt(err, sink->code != RD_ERR_OK ? sink : &m->w.err);
    return false;
}

static bool apart(struct rd_err *err, const char *why)
{
    const struct rd_err_reason reason = {.id = REPL_CAPTURE_REASON_APART};
    return rd_err_set_reason(err, RD_ERR_USAGE, RD_NO_OFFSET, reason, "%s", why);
}

static bool may_merge(const struct repl_capture_segment *first,
                      const struct repl_capture_segment *last, struct rd_err *err)
{
    return (first->closed && last->closed && first->recorded && last->recorded &&
            first->number < last->number && first->chapter == last->chapter) ||
           apart(err, "these segments cannot be merged");
}

static bool begin(struct repl_capture_merge *m, const struct repl_capture_segment *first,
                  struct rd_err *err)
{
    struct repl_capture_writer *w = &m->w;
    w->fs = (struct rd_fs){.ctx = m,
                           .open = sink_open,
                           .close = sink_close,
                           .write = sink_write,
                           .sync = sink_sync,
                           .sync_folder = sink_sync_folder};
    w->seg = *first;
    w->seg.last = repl_capture_last(&m->last);
    memcpy(w->seg.last_sha256, m->last.last != 0 ? m->last.last_sha256 : m->last.sha256,
           REPL_CAPTURE_SHA);
    w->index = rd_calloc(CAPTURE_INDEX_MAX, sizeof *w->index);
    if (w->index == NULL)
        return rd_err_nomem(err, CAPTURE_INDEX_MAX * sizeof *w->index);
    return rd_digest_new(&w->digest, RD_DIGEST_SHA256, err) &&
           (repl_capture_segment_create(w) || failed(m, err));
}

bool repl_capture_merge_begin(struct repl_capture_merge **ret,
                              const struct repl_capture_segment *first,
                              const struct repl_capture_segment *last, struct rd_sink *sink,
                              struct rd_err *err)
{
    if (!may_merge(first, last, err))
        return false;
    struct repl_capture_merge *m = rd_calloc(1, sizeof *m);
    if (m == NULL)
        return rd_err_nomem(err, sizeof *m);
    m->sink = sink;
    m->last = *last;
    if (begin(m, first, err)) {
        *ret = m;
        return true;
    }
    repl_capture_merge_free(m);
    return false;
}

static bool reserve(struct repl_capture_merge *m, size_t size, struct rd_err *err)
{
    if (size <= m->cap)
        return true;
    uint8_t *grown = rd_realloc(m->block, size);
    if (grown == NULL)
        return rd_err_nomem(err, size);
    m->block = grown;
    m->cap = size;
    return true;
}

/* Its checksums begin with that of the header of the segment. */
static bool add_block(struct repl_capture_merge *m, const struct capture_piece *piece,
                      struct rd_err *err)
{
    struct repl_capture_writer *w = &m->w;
    struct capture_block block = piece->head;
    size_t body = (size_t)block.len + block.times_len;
    if (!reserve(m, CAPTURE_BLOCK + body, err))
        return false;
    memcpy(m->block + CAPTURE_BLOCK, piece->data, body);
    block.crc = rd_crc64(w->seed, m->block + CAPTURE_BLOCK, body);
    repl_capture_block_put(m->block, &block, w->seed);
    repl_capture_segment_index(w, &block);
    return repl_capture_segment_write(w, m->block, CAPTURE_BLOCK + body) || failed(m, err);
}

static bool add_blocks(struct repl_capture_merge *m, struct capture_file *file, struct rd_err *err)
{
    struct capture_cursor c;
    struct capture_piece piece;
    enum capture_next next;
    repl_capture_cursor_init(&c, file);
    while ((next = repl_capture_cursor_next(&c, &piece, err)) == CAPTURE_NEXT_BLOCK)
        if (!add_block(m, &piece, err))
            return false;
    return next == CAPTURE_NEXT_END ||
           (next == CAPTURE_NEXT_LIVE &&
            rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the segment has no end"));
}

/* Whether the stream goes on in it without an interruption. */
static bool is_next(const struct repl_capture_merge *m, const struct repl_capture_segment *segment)
{
    const struct repl_capture_segment *before = &m->before;
    if (!segment->closed || !segment->recorded || segment->number < m->w.seg.number ||
        repl_capture_last(segment) > repl_capture_last(&m->last))
        return false;
    if (!m->has_before)
        return segment->number == m->w.seg.number && segment->start == m->w.seg.start;
    return !segment->interrupted && !segment->begins && segment->db == before->end_db &&
           segment->in_multi == before->end_in_multi &&
           repl_replid_is_set(&segment->run) == repl_replid_is_set(&before->run) &&
           (!before->interrupted || before->until_us != REPL_CAPTURE_NEVER) &&
           repl_capture_follows(before, before->end, segment, NULL);
}

static void note(struct repl_capture_merge *m, const struct repl_capture_segment *segment)
{
    struct repl_capture_writer *w = &m->w;
    if (!m->has_before)
        w->seg.until_us = segment->until_us;
    w->written = segment->end;
    w->db = segment->end_db;
    w->in_multi = segment->end_in_multi;
    if (segment->last_us != REPL_CAPTURE_NO_TIME)
        w->last_us = segment->last_us;
    m->before = *segment;
    m->has_before = true;
}

bool repl_capture_merge_add(struct repl_capture_merge *m, const struct rd_fs *fs,
                            const struct repl_capture_segment *segment, struct rd_err *err)
{
    struct capture_file file;
    if (!is_next(m, segment))
        return apart(err, "the segment does not continue the one before it");
    enum capture_open open = repl_capture_file_open(&file, fs, segment->name, err);
    if (open != CAPTURE_OPEN_OK)
        return open != CAPTURE_OPEN_FAIL &&
               rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the segment was removed");
    bool ok = add_blocks(m, &file, err);
    repl_capture_file_close(&file);
    if (ok)
        note(m, segment);
    return ok;
}

bool repl_capture_merge_end(struct repl_capture_merge *m, struct rd_err *err)
{
    if (!m->has_before || repl_capture_last(&m->before) != repl_capture_last(&m->last))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the last segment was not added");
    return repl_capture_segment_close(&m->w) || failed(m, err);
}

void repl_capture_merge_free(struct repl_capture_merge *m)
{
    if (m == NULL)
        return;
    rd_digest_free(m->w.digest);
    rd_buf_done(&m->w.kept);
    rd_free(m->w.index);
    rd_free(m->block);
    rd_free(m);
}
