#include <stdio.h>

#include "base/num.h"
#include "repl/capture/snapshot.h"
#include "repl/capture/writer_impl.h"

/* ---- the parts of it ---- */

static void free_snapshot(struct capture_snapshot *snap)
{
    rdb_reader_free(snap->reader);
    rd_src_close(snap->src);
    rd_digest_free(snap->digest);
    *snap = (struct capture_snapshot){.fd = -1};
}

void repl_capture_snapshot_drop(struct repl_capture_writer *w)
{
    if (w->snap.fd >= 0) {
        w->fs.close(w->fs.ctx, w->snap.fd);
        w->fs.unlink(w->fs.ctx, w->snap.part);
    }
    free_snapshot(&w->snap);
}

static bool open_snapshot(struct repl_capture_writer *w)
{
    struct capture_snapshot *snap = &w->snap;
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES);
    repl_capture_snapshot_name(&snap->seg, snap->name);
    snprintf(snap->part, sizeof snap->part, "%s%s", snap->name, CAPTURE_PART);
    if (!rd_digest_new(&snap->digest, RD_DIGEST_SHA256, &w->err) ||
        !rd_src_open_push(&snap->src, NULL, &w->err) ||
        !rdb_reader_new(&snap->reader, snap->src, &opts, &w->err))
        return false;
    snap->fd = w->fs.open(w->fs.ctx, snap->part, RD_FS_CREATE);
    return repl_capture_sys(w, snap->fd, snap->part, "cannot create");
}

bool repl_capture_writer_begin(struct repl_capture_writer *w, const struct repl_replid *id,
                               uint64_t offset, int64_t now_us, struct rd_err *err)
{
    if (!repl_capture_alive(w, err))
        return false;
    repl_capture_snapshot_drop(w);
    if (!repl_capture_drop_part(w))
        return repl_capture_done(w, false, err);
    w->snap.seg = (struct repl_capture_segment){.number = w->seg.number + 1,
                                                .start = offset,
                                                .start_us = now_us,
                                                .run = w->opts.run,
                                                .replid = *id,
                                                .chapter = w->seg.chapter + 1,
                                                .chapter_start = offset,
                                                .begins = true,
                                                .has_snapshot = true};
    return repl_capture_done(w, open_snapshot(w), err);
}

/* ---- its bytes ---- */

bool repl_capture_snapshot_sum(const struct rdb_event *event, struct rd_err *err)
{
    if (event->kind != RDB_TRAILER || !event->trailer.present || event->trailer.stored == 0 ||
        event->trailer.stored == event->trailer.computed)
        return true;
    return rd_err_set(err, RD_ERR_CHECKSUM, event->offset,
                      "the checksum of the snapshot does not match");
}

/* The database that is selected where the stream begins. A master selects one itself; what a
 * replica passes on from its own master continues in this one. */
static void note_db(struct capture_snapshot *snap, const struct rdb_event *event)
{
    char digits[RD_NUM_I64_MAX];
    uint64_t db;
    if (event->kind != RDB_AUX || !rd_slice_is(event->aux.name, "repl-stream-db"))
        return;
    if (rd_num_get_u64(rdb_string_bytes(&event->aux.value, digits), &db))
        snap->seg.db = db;
}

static bool failed(struct repl_capture_writer *w, const struct rd_err *why)
{
    rd_err_adopt(&w->err, why);
    rd_err_origin(&w->err, w->snap.name);
    return false;
}

/* Reads the events that are complete. */
static bool read_records(struct repl_capture_writer *w)
{
    struct capture_snapshot *snap = &w->snap;
    struct rdb_event event;
    struct rd_err why = {0};
    while (!snap->ended)
        switch (rdb_reader_next(snap->reader, &event)) {
        case RDB_EVENT:
            if (!repl_capture_snapshot_sum(&event, &why))
                return failed(w, &why);
            note_db(snap, &event);
            break;
        case RDB_MORE:
            return true;
        case RDB_END:
            snap->ended = true;
            break;
        default:
            return failed(w, rdb_reader_err(snap->reader));
        }
    if (rd_src_avail(snap->src) == 0)
        return true;
    rd_err_set(&why, RD_ERR_CORRUPT, rd_src_offset(snap->src), "bytes after the snapshot's end");
    return failed(w, &why);
}

static bool check(struct repl_capture_writer *w, struct rd_slice bytes)
{
    while (bytes.len > 0) {
        size_t room = rd_src_push_room(w->snap.src);
        size_t n = bytes.len < room ? bytes.len : room;
        if (!rd_src_push(w->snap.src, rd_slice(bytes.ptr, n)))
            return failed(w, rd_src_err(w->snap.src));
        bytes.ptr += n;
        bytes.len -= n;
        if (!read_records(w))
            return false;
    }
    return true;
}

/* Whether a snapshot is being written. */
static bool expects(const struct repl_capture_writer *w, struct rd_err *err)
{
    if (!repl_capture_alive(w, err))
        return false;
    return w->snap.fd >= 0 ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no snapshot was announced");
}

bool repl_capture_writer_snapshot(struct repl_capture_writer *w, struct rd_slice bytes,
                                  struct rd_err *err)
{
    struct capture_snapshot *snap = &w->snap;
    if (!expects(w, err))
        return false;
    bool ok = check(w, bytes) && rd_digest_update(snap->digest, bytes.ptr, bytes.len, &w->err) &&
              repl_capture_write_all(w, snap->fd, snap->part, bytes.ptr, bytes.len);
    snap->seg.snapshot_size += bytes.len;
    return repl_capture_done(w, ok, err);
}

/* ---- its end ---- */

static bool complete(struct repl_capture_writer *w)
{
    struct capture_snapshot *snap = &w->snap;
    rd_src_push_end(snap->src);
    if (!read_records(w))
        return false;
    return rd_digest_end(snap->digest, snap->seg.snapshot_sha256, &w->err) &&
           repl_capture_sys(w, w->fs.sync(w->fs.ctx, snap->fd), snap->part, "cannot sync it");
}

/* The old chapter ends, then the snapshot gets its name, then the new chapter begins. After a crash
 * between these steps the capture can be continued. */
static bool begin_chapter(struct repl_capture_writer *w)
{
    struct capture_snapshot *snap = &w->snap;
    struct rd_fs *fs = &w->fs;
    if (!repl_capture_end_segment(w) ||
        !repl_capture_sys(w, fs->rename(fs->ctx, snap->part, snap->name), snap->part,
                          "cannot rename") ||
        !repl_capture_sys(w, fs->sync_folder(fs->ctx, false), snap->name, "cannot sync the folder"))
        return false;
    fs->close(fs->ctx, snap->fd);
    snap->fd = -1;
    w->seg = snap->seg;
    repl_capture_interrupt_chapter(w);
    w->snapshot_size = snap->seg.snapshot_size;
    free_snapshot(snap);
    repl_capture_stream_begin(w, w->seg.start, w->seg.db, false);
    w->written = w->synced = w->seg.start;
    return repl_capture_segment_create(w) && repl_capture_keep_within(w);
}

bool repl_capture_writer_snapshot_end(struct repl_capture_writer *w, int64_t now_us,
                                      struct rd_err *err)
{
    if (!expects(w, err))
        return false;
    w->snap.seg.start_us = now_us;
    return repl_capture_done(w, complete(w) && begin_chapter(w), err);
}
