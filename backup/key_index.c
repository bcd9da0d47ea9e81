#include "backup/key_index.h"

#include "base/endian.h"
#include "base/pump.h"

#include <errno.h>

enum { TAIL = 32, MAGIC = 8, PIECE = 64 * 1024 };

static const uint8_t magic[MAGIC] = {'R', 'D', 'K', 'E', 'Y', 'P', '\r', '\n'};

/* ---- making ---- */

bool backup_key_index_begin(struct backup_key_index *ret, const struct repl_capture_segment *header,
                            const uint8_t salt[RD_SIPHASH_KEY], struct rd_err *err)
{
    struct history_index_about about = {.kind = HISTORY_SEGMENT, .size = header->size};
    *ret = (struct backup_key_index){.open = true,
                                     .multi = {.open = header->in_multi, .offset = RD_NO_OFFSET}};
    memcpy(about.digest, header->sha256, sizeof about.digest);
    memcpy(about.salt, salt, sizeof about.salt);
    if (spool_sink(&ret->spool, &ret->sink, err) &&
        history_index_maker_new(&ret->maker, &about, header->end, 0, ret->sink, err))
        return true;
    backup_key_index_done(ret);
    return false;
}

bool backup_key_index_add(struct backup_key_index *index, const struct repl_capture_event *ev,
                          struct rd_err *err)
{
    if (ev->kind != REPL_CAPTURE_COMMAND)
        return true;
    const struct history_command command = history_command_of(ev, 0, &index->multi);
    return history_index_maker_command(index->maker, &command, err);
}

/* Bytes of the segment itself. */
static bool copy(struct rd_sink *to, const struct segment_in *in, uint64_t from, uint64_t upto,
                 struct rd_err *err)
{
    uint8_t bytes[PIECE];
    while (from < upto) {
        size_t want = upto - from < sizeof bytes ? (size_t)(upto - from) : sizeof bytes;
        ssize_t n = in->fs.read_at(in->fs.ctx, in->fd, bytes, want, from);
        if (n <= 0)
            return rd_err_sys(err, n < 0 ? (int)-n : EIO, "cannot read the segment");
        if (!rd_sink_write(to, bytes, (size_t)n)) {
            rd_err_adopt(err, rd_sink_err(to));
            return false;
        }
        from += (uint64_t)n;
    }
    return true;
}

static bool put_tail(struct backup_key_index *index, uint64_t keys, uint64_t end,
                     struct rd_err *err)
{
    uint8_t tail[TAIL];
    memcpy(tail, magic, MAGIC);
    rd_put_le64(tail + 8, keys);
    rd_put_le64(tail + 16, REPL_CAPTURE_HEAD);
    rd_put_le64(tail + 24, end);
    return spool_append(&index->spool, tail, sizeof tail, err);
}

static bool end_keys(struct backup_key_index *index, struct rd_err *err)
{
    struct rd_sink *sink = index->sink;
    index->sink = NULL;
    if (history_index_maker_end(index->maker, err))
        return rd_sink_close(sink, err);
    rd_sink_abort(sink);
    return false;
}

static bool add_ends(struct backup_key_index *index, const struct segment_in *in,
                     struct rd_err *err)
{
    struct rd_sink *sink;
    if (!spool_sink(&index->spool, &sink, err))
        return false;
    if (copy(sink, in, 0, REPL_CAPTURE_HEAD, err) &&
        copy(sink, in, in->header.end_at, in->size, err))
        return rd_sink_close(sink, err);
    rd_sink_abort(sink);
    return false;
}

bool backup_key_index_end(struct backup_key_index *index, const struct segment_in *in,
                          struct rd_err *err)
{
    if (!end_keys(index, err))
        return false;
    uint64_t keys = index->spool.size;
    return add_ends(index, in, err) && put_tail(index, keys, in->size - in->header.end_at, err);
}

bool backup_key_index_make(struct backup_key_index *ret, struct segment_in *in,
                           const uint8_t salt[RD_SIPHASH_KEY], struct rd_err *err)
{
    struct repl_capture_event ev;
    bool ok = backup_key_index_begin(ret, &in->header, salt, err);
    while (ok && segment_in_next(in, &ev, err))
        ok = backup_key_index_add(ret, &ev, err);
    ok = ok && !in->failed && backup_key_index_end(ret, in, err);
    if (!ok)
        backup_key_index_done(ret);
    return ok;
}

bool backup_key_index_copy(const struct backup_key_index *index, struct rd_sink *to,
                           struct rd_err *err)
{
    struct rd_src *src;
    if (!spool_source(&index->spool, "index", &src, err))
        return false;
    bool ok = rd_pump(src, to, NULL, NULL, err);
    rd_src_close(src);
    return ok;
}

void backup_key_index_done(struct backup_key_index *index)
{
    if (!index->open)
        return;
    history_index_maker_free(index->maker);
    if (index->sink != NULL)
        rd_sink_abort(index->sink);
    spool_done(&index->spool);
    *index = (struct backup_key_index){.open = false};
}

/* ---- reading ---- */

static bool corrupt(struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "it is not an index of a segment");
}

bool backup_key_index_find(const struct spool *spool, uint64_t at,
                           struct backup_key_index_parts *ret, struct rd_err *err)
{
    uint8_t tail[TAIL];
    uint64_t len = spool->size - at;
    if (len < TAIL + REPL_CAPTURE_HEAD)
        return corrupt(err);
    if (!spool_read(spool, spool->size - TAIL, tail, TAIL, err))
        return false;
    uint64_t keys = rd_get_le64(tail + 8), end = rd_get_le64(tail + 24);
    len -= TAIL + REPL_CAPTURE_HEAD;
    if (memcmp(tail, magic, MAGIC) != 0 || rd_get_le64(tail + 16) != REPL_CAPTURE_HEAD ||
        keys == 0 || keys > len || end != len - keys || end < REPL_CAPTURE_TAIL)
        return corrupt(err);
    *ret = (struct backup_key_index_parts){.keys_at = at,
                                           .keys_len = keys,
                                           .head_at = at + keys,
                                           .end_at = at + keys + REPL_CAPTURE_HEAD,
                                           .end_len = end};
    return true;
}
