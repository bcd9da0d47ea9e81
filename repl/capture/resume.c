#include "repl/capture/folder.h"
#include "repl/capture/writer_impl.h"
#include "repl/monitor.h"

/* ---- the last segment ---- */

static bool bad(struct repl_capture_writer *w, const struct capture_piece *piece, const char *what)
{
    rd_err_set(&w->err, RD_ERR_CORRUPT, piece->at, "%s", what);
    rd_err_origin(&w->err, w->seg.name);
    return false;
}

static bool walk_block(struct repl_capture_writer *w, const struct capture_piece *piece)
{
    struct rd_err why = {0};
    const uint8_t *ptr = piece->data;
    size_t taken, len = piece->head.len;
    while (len > 0) {
        if (repl_capture_walk_step(&w->walk, ptr, len, &taken, &why) == CAPTURE_WALK_FAIL)
            return bad(w, piece,
                       "the checksum of the block matches, but it does not contain commands");
        ptr += taken;
        len -= taken;
    }
    if (capture_walk_inside(&w->walk) != ((piece->head.flags & CAPTURE_ENDS_INSIDE) != 0))
        return bad(w, piece, "the block does not end at the end of a command");
    return true;
}

static bool take_block(struct repl_capture_writer *w, const struct capture_cursor *c,
                       const struct capture_piece *piece)
{
    struct capture_times times;
    w->at = piece->at;
    if ((piece->head.flags & CAPTURE_IN_TIME) != 0)
        w->seg.until_us = piece->head.first_us;
    repl_capture_segment_index(w, &piece->head);
    repl_capture_times_init(&times, &piece->head, piece->times);
    if (!repl_capture_times_at(&times, piece->head.len - 1, &w->last_us))
        return bad(w, piece, "invalid times");
    if (!walk_block(w, piece))
        return false;
    w->at = c->at;
    if (!c->inside) {
        w->whole = (struct capture_whole){c->at, w->last_us, w->latest_us};
        w->written = c->offset;
        w->db = w->walk.stream.db;
        w->in_multi = w->walk.stream.in_multi;
    }
    return true;
}

static bool scan(struct repl_capture_writer *w, struct capture_file *f)
{
    struct capture_cursor c;
    struct capture_piece piece;
    repl_capture_cursor_init(&c, f);
    for (;;)
        switch (repl_capture_cursor_next(&c, &piece, &w->err)) {
        case CAPTURE_NEXT_BLOCK:
            if (!take_block(w, &c, &piece))
                return false;
            break;
        case CAPTURE_NEXT_FAIL:
            return false;
        default:
            return true;
        }
}

/* Truncates the torn end and syncs the rest: later blocks record that it is durable. */
static bool take_open(struct repl_capture_writer *w, struct capture_file *f)
{
    struct rd_fs *fs = &w->fs;
    w->written = w->seg.start;
    w->db = w->seg.db;
    w->in_multi = w->seg.in_multi;
    w->whole = (struct capture_whole){CAPTURE_HEADER, REPL_CAPTURE_NO_TIME, REPL_CAPTURE_NO_TIME};
    w->last_us = w->latest_us = REPL_CAPTURE_NO_TIME;
    w->stride = CAPTURE_STRIDE;
    repl_capture_walk_init(&w->walk, w->written, w->db, w->in_multi);
    if (!scan(w, f))
        return false;
    w->cut += f->seg.size - w->whole.at;
    w->fd = fs->open(fs->ctx, w->seg.name, RD_FS_APPEND);
    return repl_capture_sys(w, w->fd, w->seg.name, "cannot open") && repl_capture_segment_cut(w);
}

static void take_closed(struct repl_capture_writer *w)
{
    w->written = w->seg.end;
    w->db = w->seg.end_db;
    w->in_multi = w->seg.end_in_multi;
    w->at = w->seg.size;
}

static bool take_last(struct repl_capture_writer *w, struct capture_file *f)
{
    bool ok = true;
    w->has_segment = true;
    w->seg = f->seg;
    w->seed = f->seed;
    if (f->seg.closed)
        take_closed(w);
    else
        ok = take_open(w, f);
    w->synced = w->written;
    repl_capture_stream_begin(w, w->written, w->db, w->in_multi);
    if (ok)
        repl_capture_interrupt_resume(w);
    return ok;
}

/* ---- the folder ---- */

static uint64_t size_of(struct repl_capture_writer *w, const struct capture_name *name,
                        const char *ending)
{
    char text[REPL_CAPTURE_NAME];
    uint64_t size;
    repl_capture_name_put(text, name->number, name->start, ending);
    return w->fs.size(w->fs.ctx, text, &size) == 0 ? size : 0;
}

/* Of the recordings of MONITOR up to this segment, from the *at-th on. */
static uint64_t size_of_monitors(struct repl_capture_writer *w,
                                 const struct capture_folder *monitors, size_t *at, uint64_t number)
{
    uint64_t size = 0;
    for (; *at < monitors->n && monitors->name[*at].number <= number; ++*at)
        size += size_of(w, &monitors->name[*at], REPL_MONITOR_ENDING);
    return size;
}

static bool keep_all(struct repl_capture_writer *w, const struct capture_folder *segs, size_t n)
{
    struct capture_folder monitors;
    size_t at = 0;
    if (!repl_capture_folder_list(&monitors, &w->fs, REPL_MONITOR_ENDING, &w->err))
        return false;
    bool ok = true;
    for (size_t i = 0; ok && i + 1 < n; i++) {
        const struct capture_name *name = &segs->name[i];
        struct capture_kept kept = {name->number, name->start,
                                    size_of(w, name, ".seg") + size_of(w, name, ".rdb") +
                                        size_of_monitors(w, &monitors, &at, name->number)};
        ok = rd_buf_add(&w->kept, &kept, sizeof kept) || rd_err_nomem(&w->err, sizeof kept);
        w->kept_size += kept.size;
    }
    if (n > 0)
        w->snapshot_size = size_of(w, &segs->name[n - 1], ".rdb");
    w->beside_size = size_of_monitors(w, &monitors, &at, UINT64_MAX);
    repl_capture_folder_done(&monitors);
    /* The last segment is listed, too, if it is closed. */
    return ok && (n == 0 || w->fd >= 0 || repl_capture_keep(w));
}

/* Deletes incomplete snapshots, and those whose segment was deleted or never created. */
static bool clean(struct repl_capture_writer *w, const char *ending, uint64_t first, uint64_t last)
{
    struct capture_folder folder = {0};
    char text[REPL_CAPTURE_NAME];
    bool ok = repl_capture_folder_list(&folder, &w->fs, ending, &w->err);
    for (size_t i = 0; ok && i < folder.n; i++) {
        if (folder.name[i].number >= first && folder.name[i].number <= last)
            continue;
        repl_capture_name_put(text, folder.name[i].number, folder.name[i].start, ending);
        ok = repl_capture_unlink(w, text);
    }
    repl_capture_folder_done(&folder);
    return ok;
}

static bool open_last(struct repl_capture_writer *w, const struct capture_folder *segs, size_t *n)
{
    struct capture_file f;
    char text[REPL_CAPTURE_NAME];
    for (size_t i = *n; i-- > 0; *n = i) {
        repl_capture_name_put(text, segs->name[i].number, segs->name[i].start, ".seg");
        enum capture_open open = repl_capture_file_open(&f, &w->fs, text, &w->err);
        if (open == CAPTURE_OPEN_OK) {
            bool ok = take_last(w, &f);
            repl_capture_file_close(&f);
            return ok;
        }
        if (open != CAPTURE_OPEN_TORN || i + 1 < segs->n) {
            rd_err_set(&w->err, RD_ERR_CORRUPT, 0,
                       "incomplete header, although another segment followed");
            rd_err_origin(&w->err, text);
            return false;
        }
        if (!repl_capture_unlink(w, text))
            return false;
    }
    return true;
}

bool repl_capture_resume(struct repl_capture_writer *w)
{
    struct capture_folder segs;
    if (!repl_capture_folder_list(&segs, &w->fs, ".seg", &w->err))
        return false;
    size_t n = segs.n;
    uint64_t first = n > 0 ? segs.name[0].number : 1;
    bool ok = open_last(w, &segs, &n);
    uint64_t last = n > 0 ? segs.name[n - 1].number : 0;
    ok = ok && clean(w, ".rdb", first, last) && clean(w, ".rdb" CAPTURE_PART, 1, 0) &&
         keep_all(w, &segs, n);
    if (ok)
        repl_capture_clean_keys(w, n > 0 ? first : UINT64_MAX);
    repl_capture_folder_done(&segs);
    return ok;
}
