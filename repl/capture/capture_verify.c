#include <inttypes.h>

#include "base/crc64.h"
#include "base/digest.h"
#include "base/mem.h"
#include "base/src.h"
#include "rdb/reader.h"
#include "repl/capture/file.h"
#include "repl/capture/folder.h"
#include "repl/capture/snapshot.h"
#include "repl/capture/walk.h"
#include "repl/monitor_reader.h"

enum { CHUNK = 128 * 1024 };

struct verify {
    struct rd_fs fs;
    const struct repl_capture_verify_opts *opts;
    struct repl_capture_verify_result res;
    struct rd_err err; /* it cannot be done */
    struct rd_digest *digest;
    struct capture_file file;
    struct capture_walk walk;
    bool has_last;
    struct repl_capture_segment last; /* the one before */
    uint64_t last_end;
    bool last_open; /* it is not closed, or its end was not found */
};

/* I/O and memory errors end the verification; all others are findings. Returns false. */
static bool finding(struct verify *v, const struct rd_err *why, const char *name)
{
    struct repl_capture_finding found = {name, why};
    if (why->code == RD_ERR_IO || why->code == RD_ERR_MEMORY) {
        rd_err_adopt(&v->err, why);
        return false;
    }
    v->res.findings++;
    if (v->opts->finding != NULL)
        v->opts->finding(v->opts->ctx, &found);
    return false;
}

static bool wrong(struct verify *v, enum rd_err_code code, uint64_t at, const char *what)
{
    struct rd_err why = {0};
    rd_err_set(&why, code, at, "%s", what);
    rd_err_origin(&why, v->file.seg.name);
    return finding(v, &why, v->file.seg.name);
}

static void tick(struct verify *v, uint64_t n_bytes)
{
    if (v->opts->tick != NULL)
        v->opts->tick(v->opts->ctx, n_bytes);
}

/* ---- blocks ---- */

static bool check_times(struct verify *v, const struct capture_piece *piece)
{
    struct capture_times times;
    int64_t now_us, latest_us = INT64_MIN;
    repl_capture_times_init(&times, &piece->head, piece->times);
    for (uint64_t at = 0; at < piece->head.len; at = times.upto) {
        if (!repl_capture_times_at(&times, at, &now_us))
            return wrong(v, RD_ERR_CORRUPT, piece->at, "invalid times");
        latest_us = now_us > latest_us ? now_us : latest_us;
    }
    if (times.cur != times.end || latest_us != piece->head.latest_us)
        return wrong(v, RD_ERR_CORRUPT, piece->at, "the block has a different latest time");
    return true;
}

static bool check_commands(struct verify *v, const struct capture_piece *piece)
{
    const uint8_t *ptr = piece->data;
    size_t taken, len = piece->head.len;
    while (len > 0) {
        enum capture_walk_status st = repl_capture_walk_step(&v->walk, ptr, len, &taken, NULL);
        if (st == CAPTURE_WALK_FAIL)
            return wrong(v, RD_ERR_CORRUPT, piece->at,
                         "the checksum of the block matches, but it does not contain commands");
        v->res.commands += st == CAPTURE_WALK_WHOLE;
        ptr += taken;
        len -= taken;
    }
    if (capture_walk_inside(&v->walk) != ((piece->head.flags & CAPTURE_ENDS_INSIDE) != 0))
        return wrong(v, RD_ERR_CORRUPT, piece->at,
                     "the block does not end at the end of a command");
    return true;
}

static bool check_block(struct verify *v, const struct capture_piece *piece)
{
    const struct capture_block *head = &piece->head;
    bool in_multi = (head->flags & CAPTURE_IN_MULTI) != 0;
    v->res.blocks++;
    v->res.bytes += head->len;
    tick(v, CAPTURE_BLOCK + (uint64_t)head->len + head->times_len);
    if (v->walk.stream.db != head->db || v->walk.stream.in_multi != in_multi)
        return wrong(v, RD_ERR_CORRUPT, piece->at,
                     "the block is in another database or transaction");
    return check_times(v, piece) && check_commands(v, piece);
}

/* ---- the end of a closed segment ---- */

static bool check_index(struct verify *v)
{
    struct capture_cursor c;
    const uint8_t *entries;
    struct rd_err why = {0};
    struct capture_file *f = &v->file;
    size_t size = (size_t)f->trailer.n_entries * CAPTURE_ENTRY;
    if (!repl_capture_file_index(f, &entries, &why))
        return finding(v, &why, f->seg.name);
    uint8_t *copy = rd_alloc(size + 1);
    if (copy == NULL)
        return rd_err_nomem(&v->err, size + 1);
    if (size > 0)
        memcpy(copy, entries, size);
    bool ok = true, more = true;
    repl_capture_cursor_init(&c, f);
    for (uint32_t i = 0; ok && i < f->trailer.n_entries; i++) {
        struct capture_entry entry;
        struct capture_block block;
        repl_capture_entry_get(copy + (size_t)i * CAPTURE_ENTRY, &entry);
        while (more && c.at < entry.at)
            more = repl_capture_cursor_hop(&c, &block, &why);
        ok = c.at == entry.at && c.offset == entry.offset && c.latest_us == entry.latest_us &&
             !c.inside;
    }
    rd_free(copy);
    return ok ||
           wrong(v, RD_ERR_CORRUPT, f->trailer.index_at, "the index does not match the blocks");
}

static bool digest_file(struct verify *v, struct capture_file *f, uint64_t size, uint8_t *ret)
{
    for (uint64_t at = 0; at < size;) {
        const uint8_t *bytes;
        size_t len, n = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        if (!repl_capture_file_read(f, at, n, &bytes, &len, &v->err) ||
            !rd_digest_update(v->digest, bytes, len, &v->err))
            return false;
        if (len == 0)
            return wrong(v, RD_ERR_TRUNCATED, at, "it was truncated");
        at += len;
    }
    return rd_digest_end(v->digest, ret, &v->err);
}

static bool check_closed(struct verify *v, const struct capture_cursor *c, int64_t last_us)
{
    uint8_t sum[RD_DIGEST_MAX];
    const struct repl_capture_segment *seg = &v->file.seg;
    uint64_t at = v->file.trailer.index_at;
    const struct repl_stream *stream = &v->walk.stream;
    v->res.closed++;
    if (seg->latest_us != c->latest_us || seg->last_us != last_us || seg->end_db != stream->db ||
        seg->end_in_multi != stream->in_multi)
        wrong(v, RD_ERR_CORRUPT, at, "the trailer has a different end than the blocks");
    check_index(v);
    if (!digest_file(v, &v->file, seg->size - REPL_CAPTURE_SHA, sum))
        return false;
    if (memcmp(sum, seg->sha256, REPL_CAPTURE_SHA) != 0)
        return wrong(v, RD_ERR_CHECKSUM, seg->size - REPL_CAPTURE_SHA,
                     "the SHA-256 does not match");
    return true;
}

/* ---- snapshots ---- */

struct snapshot_src {
    struct rd_fs fs;
    int fd;
    uint64_t at;
    struct rd_digest *digest;
    struct verify *v;
};

static enum rd_src_status read_snapshot(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                        struct rd_err *err)
{
    struct snapshot_src *s = impl;
    ssize_t n = s->fs.read(s->fs.ctx, s->fd, buf, cap);
    if (n < 0) {
        rd_err_sys(err, (int)-n, "cannot read");
        return RD_SRC_FAIL;
    }
    if (n == 0)
        return RD_SRC_END;
    s->at += (uint64_t)n;
    tick(s->v, (uint64_t)n);
    *ret_len = (size_t)n;
    return rd_digest_update(s->digest, buf, (size_t)n, err) ? RD_SRC_OK : RD_SRC_FAIL;
}

static bool read_records(struct rd_src *src, struct rd_err *err)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES);
    struct rdb_reader *reader;
    struct rdb_event event;
    struct rd_slice rest;
    enum rdb_status st;
    if (!rdb_reader_new(&reader, src, &opts, err))
        return false;
    while ((st = rdb_reader_next(reader, &event)) == RDB_EVENT)
        if (!repl_capture_snapshot_sum(&event, err))
            break;
    if (st == RDB_FAIL)
        rd_err_adopt(err, rdb_reader_err(reader));
    rdb_reader_free(reader);
    if (st == RDB_END && rd_src_need(src, 1, &rest) == RD_SRC_OK)
        return rd_err_set(err, RD_ERR_CORRUPT, rd_src_offset(src), "bytes after the end");
    return st == RDB_END;
}

static bool check_records(struct verify *v, struct snapshot_src *from, struct rd_err *why)
{
    static const struct rd_src_ops ops = {.read = read_snapshot};
    const struct repl_capture_segment *seg = &v->file.seg;
    uint8_t sum[RD_DIGEST_MAX];
    struct rd_src *src;
    if (!rd_src_new(&src, &ops, from, NULL, why))
        return false;
    bool ok = read_records(src, why);
    rd_src_close(src);
    if (!rd_digest_end(v->digest, sum, why) || !ok)
        return false;
    if (from->at != seg->snapshot_size)
        return rd_err_set(why, RD_ERR_CORRUPT, RD_NO_OFFSET,
                          "%" PRIu64 " bytes instead of %" PRIu64, from->at, seg->snapshot_size);
    if (memcmp(sum, seg->snapshot_sha256, REPL_CAPTURE_SHA) != 0)
        return rd_err_set(why, RD_ERR_CHECKSUM, RD_NO_OFFSET, "the SHA-256 does not match");
    return true;
}

static void check_snapshot(struct verify *v)
{
    char name[REPL_CAPTURE_NAME];
    struct rd_err why = {0};
    struct snapshot_src from = {.fs = v->fs, .digest = v->digest, .v = v};
    repl_capture_snapshot_name(&v->file.seg, name);
    v->res.snapshots++;
    from.fd = v->fs.open(v->fs.ctx, name, RD_FS_READ);
    if (from.fd < 0) {
        rd_err_set(&why, RD_ERR_CORRUPT, RD_NO_OFFSET, "the snapshot is missing");
    } else {
        check_records(v, &from, &why);
        v->fs.close(v->fs.ctx, from.fd);
    }
    rd_err_origin(&why, name);
    if (why.code != RD_ERR_OK)
        finding(v, &why, name);
}

/* ---- segments ---- */

/* After damage to the framing or the state, the following bytes cannot be verified. */
static bool check_blocks(struct verify *v, struct capture_cursor *c)
{
    struct capture_piece piece;
    struct rd_err why = {0};
    int64_t last_us = REPL_CAPTURE_NO_TIME;
    for (;;)
        switch (repl_capture_cursor_next(c, &piece, &why)) {
        case CAPTURE_NEXT_BLOCK: {
            struct capture_times times;
            if (!check_block(v, &piece))
                return false;
            repl_capture_times_init(&times, &piece.head, piece.times);
            repl_capture_times_at(&times, piece.head.len - 1, &last_us);
            break;
        }
        case CAPTURE_NEXT_END:
            return check_closed(v, c, last_us) || v->err.code == RD_ERR_OK;
        case CAPTURE_NEXT_LIVE:
            v->res.torn = v->file.seg.size - c->at;
            return true;
        default:
            return finding(v, &why, v->file.seg.name);
        }
}

static void check_order(struct verify *v)
{
    const struct repl_capture_segment *seg = &v->file.seg;
    struct rd_err why = {0};
    v->res.chapters += !v->has_last || seg->chapter != v->last.chapter;
    if (!v->has_last)
        return;
    uint64_t end = v->last_end;
    if (v->last_open && seg->continues && seg->number == repl_capture_last(&v->last) + 1)
        end = seg->start; /* the end of the previous segment is unknown */
    if (!repl_capture_follows(&v->last, end, seg, &why))
        finding(v, &why, seg->name);
}

static void check_segment(struct verify *v, const char *name, bool last)
{
    struct rd_err why = {0};
    struct capture_cursor c;
    enum capture_open open = repl_capture_file_open(&v->file, &v->fs, name, &why);
    if (open == CAPTURE_OPEN_TORN && !last)
        rd_err_set(&why, RD_ERR_CORRUPT, 0, "incomplete header, although another segment follows");
    if (open != CAPTURE_OPEN_OK) {
        rd_err_origin(&why, name);
        if (why.code != RD_ERR_OK)
            finding(v, &why, name);
        return;
    }
    v->res.segments++;
    check_order(v);
    if (v->file.seg.has_snapshot)
        check_snapshot(v);
    repl_capture_cursor_init(&c, &v->file);
    repl_capture_walk_init(&v->walk, v->file.seg.start, v->file.seg.db, v->file.seg.in_multi);
    bool ok = check_blocks(v, &c);
    if (ok && !v->file.seg.closed && !last)
        wrong(v, RD_ERR_CORRUPT, c.at, "the segment was not closed, although another one follows");
    v->last_open = !v->file.seg.closed;
    v->last_end = v->file.seg.closed ? v->file.seg.end : c.offset;
    v->has_last = true;
    v->last = v->file.seg;
    repl_capture_file_close(&v->file);
}

/* ---- recordings of MONITOR ---- */

static void check_monitor(struct verify *v, const char *name)
{
    struct repl_monitor_reader *reader;
    struct repl_monitor_record record;
    struct rd_err why = {0};
    enum repl_monitor_status status;
    if (repl_monitor_reader_open(&reader, &v->fs, name, &why)) {
        while ((status = repl_monitor_reader_next(reader, &record, &why)) == REPL_MONITOR_RECORD)
            if (record.kind != REPL_MONITOR_AT_BLOCK)
                tick(v, record.text.len);
        repl_monitor_reader_close(reader);
    }
    if (why.code == RD_ERR_MEMORY)
        rd_err_adopt(&v->err, &why);
    else if (why.code != RD_ERR_OK)
        finding(v, &why, name);
}

static bool check_monitors(struct verify *v)
{
    char(*names)[REPL_CAPTURE_NAME];
    size_t n;
    if (!repl_monitor_list(&names, &n, &v->fs, &v->err))
        return false;
    for (size_t i = 0; i < n && v->err.code == RD_ERR_OK; i++)
        check_monitor(v, names[i]);
    rd_free(names);
    return v->err.code == RD_ERR_OK;
}

bool repl_capture_verify(const struct rd_fs *fs, const struct repl_capture_verify_opts *opts,
                         struct repl_capture_verify_result *ret, struct rd_err *err)
{
    static const struct repl_capture_verify_opts none = {0};
    struct capture_folder folder;
    struct verify v = {.fs = *fs, .opts = opts != NULL ? opts : &none, .file = {.fd = -1}};
    if (!repl_capture_folder_list(&folder, fs, ".seg", err))
        return false;
    bool ok = rd_digest_new(&v.digest, RD_DIGEST_SHA256, &v.err);
    for (size_t i = 0; ok && i < folder.n; i++) {
        char name[REPL_CAPTURE_NAME];
        repl_capture_name_put(name, folder.name[i].number, folder.name[i].start, ".seg");
        check_segment(&v, name, i + 1 == folder.n);
        ok = v.err.code == RD_ERR_OK;
    }
    repl_capture_folder_done(&folder);
    ok = ok && check_monitors(&v);
    rd_digest_free(v.digest);
    rd_err_adopt(err, &v.err);
    *ret = v.res;
    return ok;
}
