#include "repl/capture_reader.h"

#include <inttypes.h>

#include "base/mem.h"
#include "repl/capture/file.h"
#include "repl/capture/folder.h"
#include "repl/capture/walk.h"

struct repl_capture_reader {
    struct rd_fs fs;
    struct repl_capture_reader_opts opts;
    struct rd_err err;
    struct capture_folder folder; /* as it was last listed */

    bool is_open;
    struct capture_file file;
    struct capture_cursor cursor;
    bool chapter_due; /* the chapter comes next */
    bool fresh;       /* the next block sets the context; otherwise it must match it */
    struct capture_walk walk;

    struct capture_piece piece;
    size_t pos; /* in its data; equal to its length: all was returned */
    struct capture_times times;

    /* A command that is longer than a block: */
    uint64_t long_at;     /* of its first block in the file */
    uint64_t long_offset; /* of its first byte */
    uint64_t given;       /* bytes of the stream before this were returned */
    bool spilled;         /* it is too long to be collected */
    struct rd_buf gathered;

    struct rd_buf argv;
    uint64_t skip_offset; /* commands that end here or before are skipped */
    int64_t skip_us;      /* and earlier commands; or NO_TIME */
    uint64_t torn;
};

static enum repl_capture_status fail(struct repl_capture_reader *r, enum rd_err_code code,
                                     const char *what)
{
    rd_err_set(&r->err, code, r->piece.at, "%s", what);
    rd_err_origin(&r->err, r->file.seg.name);
    return REPL_CAPTURE_FAIL;
}

/* ---- from segment to segment ---- */

static void close_file(struct repl_capture_reader *r)
{
    if (r->is_open)
        repl_capture_file_close(&r->file);
    r->is_open = false;
    r->piece = (struct capture_piece){.head.len = 0};
    r->pos = 0;
    rd_buf_reset(&r->gathered);
}

static bool list(struct repl_capture_reader *r)
{
    struct capture_folder folder;
    if (!repl_capture_folder_list(&folder, &r->fs, ".seg", &r->err))
        return false;
    repl_capture_folder_done(&r->folder);
    r->folder = folder;
    return true;
}

/* The first name with a higher number; NULL: none. */
static const struct capture_name *name_after(const struct repl_capture_reader *r, uint64_t number)
{
    size_t low = 0, high = r->folder.n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (r->folder.name[mid].number > number)
            high = mid;
        else
            low = mid + 1;
    }
    return low < r->folder.n ? &r->folder.name[low] : NULL;
}

static void enter(struct repl_capture_reader *r, struct capture_file *f, bool chapter_due)
{
    close_file(r);
    r->file = *f;
    r->is_open = true;
    r->chapter_due = chapter_due;
    r->fresh = true;
    r->torn = 0;
    r->given = 0;
    repl_capture_cursor_init(&r->cursor, &r->file);
    repl_capture_walk_init(&r->walk, f->seg.start, f->seg.db, f->seg.in_multi);
}

static enum repl_capture_status at_end(const struct repl_capture_reader *r)
{
    return r->opts.follow ? REPL_CAPTURE_MORE : REPL_CAPTURE_END;
}

/* The segment after number `after`; lists the folder again if necessary. NULL: none, or an
 * error. */
static const struct capture_name *find_next(struct repl_capture_reader *r, uint64_t after)
{
    const struct capture_name *name = name_after(r, after);
    if (name != NULL && name->number == after + 1)
        return name;
    return list(r) ? name_after(r, after) : NULL;
}

static enum repl_capture_status open_next(struct repl_capture_reader *r,
                                          const struct capture_name *name, struct capture_file *f)
{
    char text[REPL_CAPTURE_NAME];
    bool last = name == &r->folder.name[r->folder.n - 1];
    repl_capture_name_put(text, name->number, name->start, ".seg");
    switch (repl_capture_file_open(f, &r->fs, text, &r->err)) {
    case CAPTURE_OPEN_OK:
        return REPL_CAPTURE_EVENT;
    case CAPTURE_OPEN_GONE:
        return REPL_CAPTURE_MORE;
    case CAPTURE_OPEN_TORN:
        if (last)
            return at_end(r);
        rd_err_set(&r->err, RD_ERR_CORRUPT, 0,
                   "incomplete header, although another segment follows");
        rd_err_origin(&r->err, text);
        return REPL_CAPTURE_FAIL;
    default:
        return REPL_CAPTURE_FAIL;
    }
}

/* Continues with the segment after number `after`. EVENT: it exists. */
static enum repl_capture_status next_file(struct repl_capture_reader *r, uint64_t after)
{
    struct capture_file f;
    const struct capture_name *name = find_next(r, after);
    if (name == NULL)
        return r->err.code != RD_ERR_OK ? REPL_CAPTURE_FAIL : at_end(r);
    enum repl_capture_status st = open_next(r, name, &f);
    /* The segment was deleted meanwhile: continue with the oldest one. */
    if (st == REPL_CAPTURE_MORE && list(r) && (name = name_after(r, after)) != NULL)
        st = open_next(r, name, &f);
    if (st != REPL_CAPTURE_EVENT)
        return st;
    if (r->is_open && !repl_capture_follows(&r->file.seg, r->cursor.offset, &f.seg, &r->err)) {
        repl_capture_file_close(&f);
        return REPL_CAPTURE_FAIL;
    }
    enter(r, &f, !r->is_open || f.seg.begins);
    return REPL_CAPTURE_EVENT;
}

/* A segment that is not closed has no further complete block. */
static enum repl_capture_status client_live_end(struct repl_capture_reader *r)
{
    if (r->cursor.inside && r->file.seg.size != r->cursor.at) {
        /* The segment was truncated here and is being written again, maybe in other blocks. */
        r->cursor.at = r->long_at;
        r->cursor.offset = r->long_offset;
        r->cursor.inside = false;
    }
    r->torn = r->file.seg.size > r->cursor.at ? r->file.seg.size - r->cursor.at : 0;
    if (!list(r))
        return REPL_CAPTURE_FAIL;
    if (name_after(r, repl_capture_last(&r->file.seg)) == NULL)
        return at_end(r);
    /* It may have been closed in between: writers do so before they begin another one. */
    if (!repl_capture_file_refresh(&r->file, &r->err))
        return REPL_CAPTURE_FAIL;
    if (r->file.seg.closed)
        return REPL_CAPTURE_EVENT;
    r->piece.at = r->cursor.at;
    return fail(r, RD_ERR_CORRUPT, "the segment was not closed, although another one follows");
}

/* ---- blocks ---- */

static bool agrees(const struct repl_capture_reader *r)
{
    const struct capture_block *head = &r->piece.head;
    return head->db == r->walk.stream.db &&
           ((head->flags & CAPTURE_IN_MULTI) != 0) == r->walk.stream.in_multi;
}

static enum repl_capture_status take_block(struct repl_capture_reader *r)
{
    const struct capture_block *head = &r->piece.head;
    r->pos = 0;
    r->torn = 0;
    repl_capture_times_init(&r->times, head, r->piece.times);
    if ((head->flags & CAPTURE_IN_TIME) != 0 && !r->file.seg.closed)
        r->file.seg.until_us = head->first_us;
    if ((head->flags & CAPTURE_BEGINS_INSIDE) != 0)
        return REPL_CAPTURE_EVENT;
    r->long_at = r->piece.at;
    r->long_offset = head->offset;
    if (r->fresh)
        repl_capture_walk_init(&r->walk, head->offset, head->db,
                               (head->flags & CAPTURE_IN_MULTI) != 0);
    r->fresh = false;
    if (!agrees(r))
        return fail(r, RD_ERR_CORRUPT, "the block is in another database or transaction");
    return REPL_CAPTURE_EVENT;
}

/* EVENT: r->piece has data at r->pos, or a new chapter must be reported. */
static enum repl_capture_status next_block(struct repl_capture_reader *r)
{
    if (!r->is_open)
        return next_file(r, 0);
    r->piece.head.len = 0;
    r->pos = 0;
    switch (repl_capture_cursor_next(&r->cursor, &r->piece, &r->err)) {
    case CAPTURE_NEXT_BLOCK:
        return take_block(r);
    case CAPTURE_NEXT_END:
        r->piece.head.len = 0;
        return next_file(r, repl_capture_last(&r->file.seg));
    case CAPTURE_NEXT_LIVE:
        r->piece.head.len = 0;
        return client_live_end(r);
    default:
        return REPL_CAPTURE_FAIL;
    }
}

/* ---- commands ---- */

static bool set_time(struct repl_capture_reader *r, struct repl_capture_event *ev)
{
    return repl_capture_times_at(&r->times, r->pos - 1, &ev->time_us);
}

static enum repl_capture_status give_args(struct repl_capture_reader *r,
                                          struct repl_capture_event *ev)
{
    size_t argc = 0;
    if (!repl_capture_walk_args(ev->bytes, &r->argv, &argc)) {
        rd_err_nomem(&r->err, r->argv.len);
        return REPL_CAPTURE_FAIL;
    }
    ev->kind = REPL_CAPTURE_COMMAND;
    ev->place = r->walk.place;
    ev->command = (struct resp_command){.argc = argc,
                                        .argv = (const void *)r->argv.ptr,
                                        .offset = ev->offset,
                                        .len = ev->bytes.len};
    return REPL_CAPTURE_EVENT;
}

static bool is_skipped(const struct repl_capture_reader *r, uint64_t end, int64_t time_us)
{
    return end <= r->skip_offset || (r->skip_us != REPL_CAPTURE_NO_TIME && time_us < r->skip_us);
}

static void stop_skipping(struct repl_capture_reader *r)
{
    r->skip_offset = 0;
    r->skip_us = REPL_CAPTURE_NO_TIME;
}

/* The rest of a command that came in pieces, was truncated, and is in one block now. */
static enum repl_capture_status give_rest(struct repl_capture_reader *r,
                                          struct repl_capture_event *ev)
{
    size_t known = (size_t)(r->given - ev->offset);
    ev->kind = REPL_CAPTURE_PIECE;
    ev->place = r->walk.place;
    if (known > ev->bytes.len)
        return fail(r, RD_ERR_CORRUPT, "the command here has changed");
    ev->bytes = rd_slice(ev->bytes.ptr + known, ev->bytes.len - known);
    ev->offset = r->given;
    ev->last = true;
    return REPL_CAPTURE_EVENT;
}

/* A block of whole commands. MORE: the command was skipped. */
static enum repl_capture_status give_command(struct repl_capture_reader *r,
                                             struct repl_capture_event *ev)
{
    const uint8_t *ptr = r->piece.data + r->pos;
    size_t taken;
    ev->offset = r->walk.stream.offset;
    enum capture_walk_status st =
        repl_capture_walk_step(&r->walk, ptr, r->piece.head.len - r->pos, &taken, NULL);
    if (st == CAPTURE_WALK_FAIL || st == CAPTURE_WALK_MORE)
        return fail(r, RD_ERR_CORRUPT,
                    "the checksum of the block matches, but it does not contain whole commands");
    r->pos += taken;
    ev->bytes = rd_slice(ptr, taken);
    if (!set_time(r, ev))
        return fail(r, RD_ERR_CORRUPT, "invalid times");
    if (is_skipped(r, ev->offset + taken, ev->time_us))
        return REPL_CAPTURE_MORE;
    stop_skipping(r);
    if (st == CAPTURE_WALK_WHOLE)
        return r->given > ev->offset && r->spilled ? give_rest(r, ev) : give_args(r, ev);
    ev->kind = REPL_CAPTURE_BLANK;
    ev->place = (struct repl_place){.offset = ev->offset,
                                    .len = taken,
                                    .db = r->walk.stream.db,
                                    .in_multi = r->walk.stream.in_multi};
    return REPL_CAPTURE_EVENT;
}

/* ---- long commands ---- */

/* Whether the long command that begins in this block is skipped completely. */
static bool skips_long(struct repl_capture_reader *r)
{
    struct capture_cursor c = r->cursor, back = c;
    struct capture_block block = r->piece.head;
    if (r->skip_offset == 0 && r->skip_us == REPL_CAPTURE_NO_TIME)
        return false;
    while ((block.flags & CAPTURE_ENDS_INSIDE) != 0 && repl_capture_cursor_hop(&c, &block, &r->err))
        ;
    if ((block.flags & CAPTURE_ENDS_INSIDE) == 0 && is_skipped(r, c.offset, block.latest_us)) {
        r->cursor = c;
        r->given = c.offset;
        repl_stream_pass(&r->walk.stream, c.offset - r->walk.stream.offset);
        return true;
    }
    /* Looking ahead moved the window, so the block is read again. */
    back.at = r->piece.at;
    back.offset = r->piece.head.offset;
    back.inside = false;
    if (r->err.code == RD_ERR_OK &&
        repl_capture_cursor_next(&back, &r->piece, &r->err) == CAPTURE_NEXT_BLOCK)
        repl_capture_times_init(&r->times, &r->piece.head, r->piece.times);
    else
        fail(r, RD_ERR_CORRUPT, "the block has changed");
    return false;
}

static enum repl_capture_status give_gathered(struct repl_capture_reader *r,
                                              struct repl_capture_event *ev)
{
    size_t taken;
    ev->offset = r->walk.stream.offset;
    ev->bytes = rd_buf_slice(&r->gathered);
    enum capture_walk_status st =
        repl_capture_walk_step(&r->walk, ev->bytes.ptr, ev->bytes.len, &taken, NULL);
    if (st != CAPTURE_WALK_WHOLE || taken != ev->bytes.len)
        return fail(r, RD_ERR_CORRUPT,
                    "the checksums of the blocks match, but they are not a command");
    return give_args(r, ev);
}

/* The collected bytes and those of this block, as a piece. */
static enum repl_capture_status give_piece(struct repl_capture_reader *r,
                                           struct repl_capture_event *ev, struct rd_slice bytes,
                                           bool last)
{
    struct repl_stream *stream = &r->walk.stream;
    ev->kind = REPL_CAPTURE_PIECE;
    ev->bytes = bytes;
    ev->offset = r->given - bytes.len;
    ev->first = ev->offset == stream->offset;
    ev->last = last;
    ev->place = (struct repl_place){.offset = stream->offset,
                                    .db = stream->db,
                                    .in_multi = stream->in_multi,
                                    .multi = stream->safe};
    if (last) {
        ev->place.len = r->given - stream->offset;
        repl_stream_pass(stream, ev->place.len);
    }
    return REPL_CAPTURE_EVENT;
}

/* A block that is part of a command. MORE: continue with the next one. */
static enum repl_capture_status give_long(struct repl_capture_reader *r,
                                          struct repl_capture_event *ev)
{
    const struct capture_block *head = &r->piece.head;
    bool last = (head->flags & CAPTURE_ENDS_INSIDE) == 0;
    if ((head->flags & CAPTURE_BEGINS_INSIDE) == 0 && r->given <= head->offset) {
        r->given = head->offset;
        r->spilled = r->opts.max_whole == 0;
        rd_buf_reset(&r->gathered);
        if (skips_long(r)) {
            r->pos = head->len;
            return REPL_CAPTURE_MORE;
        }
        if (r->err.code != RD_ERR_OK)
            return REPL_CAPTURE_FAIL;
        stop_skipping(r);
    }
    /* The block was read again; some of its bytes were returned before. */
    uint64_t known = r->given > head->offset ? r->given - head->offset : 0;
    size_t from = known < head->len ? (size_t)known : head->len;
    struct rd_slice bytes = rd_slice(r->piece.data + from, head->len - from);
    r->pos = head->len;
    if (!set_time(r, ev))
        return fail(r, RD_ERR_CORRUPT, "invalid times");
    if (bytes.len == 0 && !last)
        return REPL_CAPTURE_MORE;
    r->given += bytes.len;
    if (r->spilled)
        return give_piece(r, ev, bytes, last);
    if (!rd_buf_add(&r->gathered, bytes.ptr, bytes.len)) {
        rd_err_nomem(&r->err, r->gathered.len + bytes.len);
        return REPL_CAPTURE_FAIL;
    }
    r->spilled = r->gathered.len > r->opts.max_whole;
    if (r->spilled)
        return give_piece(r, ev, rd_buf_slice(&r->gathered), last);
    return last ? give_gathered(r, ev) : REPL_CAPTURE_MORE;
}

/* ---- next ---- */

static enum repl_capture_status give_event(struct repl_capture_reader *r,
                                           struct repl_capture_event *ev)
{
    enum { PART = CAPTURE_BEGINS_INSIDE | CAPTURE_ENDS_INSIDE };
    *ev = (struct repl_capture_event){.segment = &r->file.seg};
    if (r->chapter_due) {
        r->chapter_due = false;
        ev->kind = REPL_CAPTURE_CHAPTER;
        ev->offset = r->file.seg.start;
        ev->time_us = r->file.seg.start_us;
        return REPL_CAPTURE_EVENT;
    }
    return (r->piece.head.flags & PART) != 0 ? give_long(r, ev) : give_command(r, ev);
}

enum repl_capture_status repl_capture_reader_next(struct repl_capture_reader *r,
                                                  struct repl_capture_event *ret)
{
    struct repl_capture_event ev;
    if (r->err.code != RD_ERR_OK)
        return REPL_CAPTURE_FAIL;
    for (;;) {
        while (!r->chapter_due && r->pos == r->piece.head.len) {
            enum repl_capture_status st = next_block(r);
            if (st != REPL_CAPTURE_EVENT)
                return st;
        }
        enum repl_capture_status st = give_event(r, &ev);
        if (st == REPL_CAPTURE_EVENT)
            *ret = ev;
        if (st != REPL_CAPTURE_MORE)
            return st;
    }
}

void repl_capture_reader_mark(const struct repl_capture_reader *r, struct repl_capture_mark *ret)
{
    const struct capture_piece *piece = &r->piece;
    *ret = (struct repl_capture_mark){r->file.seed, piece->at, piece->head.offset, piece->head.crc};
}

/* ---- seeking ---- */

static void begin_anew(struct repl_capture_reader *r)
{
    rd_err_reset(&r->err);
    stop_skipping(r);
    r->chapter_due = false;
    r->given = 0;
}

/* In the segment that is open. */
static bool move_to(struct repl_capture_reader *r, uint64_t offset, int64_t time_us,
                    struct rd_err *err)
{
    if (!repl_capture_cursor_seek(&r->cursor, offset, time_us, err)) {
        close_file(r);
        return false;
    }
    r->skip_offset = time_us == REPL_CAPTURE_NO_TIME ? offset : 0;
    r->skip_us = time_us;
    r->walk.stream.offset = r->cursor.offset;
    return true;
}

/* A few: the caller wants a few commands, not all that follow. */
static bool go_to(struct repl_capture_reader *r, const struct repl_capture_segment *seg, bool few,
                  uint64_t offset, int64_t time_us, struct rd_err *err)
{
    struct capture_file f;
    close_file(r);
    enum capture_open open = few ? repl_capture_file_open_at(&f, &r->fs, seg->name, err)
                                 : repl_capture_file_open(&f, &r->fs, seg->name, err);
    if (open != CAPTURE_OPEN_OK)
        return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "the segment %s was removed", seg->name);
    enter(r, &f, true);
    return move_to(r, offset, time_us, err);
}

static const struct repl_capture_segment *find_offset(const struct repl_capture_list *all,
                                                      uint64_t chapter, uint64_t offset)
{
    for (size_t i = all->n; i-- > 0;) {
        const struct repl_capture_segment *seg = &all->segments[i];
        bool ends = i + 1 == all->n || all->segments[i + 1].chapter != seg->chapter;
        if ((chapter == 0 || seg->chapter == chapter) && seg->start <= offset &&
            (!seg->closed || offset < seg->end || (ends && offset == seg->end)))
            return seg;
    }
    return NULL;
}

bool repl_capture_reader_seek(struct repl_capture_reader *r, uint64_t chapter, uint64_t offset,
                              struct rd_err *err)
{
    struct repl_capture_list all;
    begin_anew(r);
    close_file(r);
    if (!repl_capture_list(&all, &r->fs, err))
        return false;
    const struct repl_capture_segment *seg = find_offset(&all, chapter, offset);
    bool ok = seg != NULL ? go_to(r, seg, false, offset, REPL_CAPTURE_NO_TIME, err)
                          : rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                                       "offset %" PRIu64 " is not in the capture", offset);
    repl_capture_list_done(&all);
    return ok;
}

bool repl_capture_reader_seek_in(struct repl_capture_reader *r,
                                 const struct repl_capture_segment *segment, uint64_t offset,
                                 struct rd_err *err)
{
    begin_anew(r);
    bool few = offset != segment->start;
    if (!few || !r->is_open || !r->file.seg.closed || strcmp(r->file.seg.name, segment->name) != 0)
        return go_to(r, segment, few, offset, REPL_CAPTURE_NO_TIME, err);
    struct capture_file f = r->file;
    r->is_open = false;
    enter(r, &f, true);
    return move_to(r, offset, REPL_CAPTURE_NO_TIME, err);
}

bool repl_capture_reader_seek_time(struct repl_capture_reader *r, int64_t time_us,
                                   struct rd_err *err)
{
    struct repl_capture_list all;
    size_t i = 0;
    begin_anew(r);
    close_file(r);
    if (!repl_capture_list(&all, &r->fs, err))
        return false;
    while (i + 1 < all.n && all.segments[i].closed && all.segments[i].latest_us < time_us)
        i++;
    bool ok = all.n == 0 || go_to(r, &all.segments[i], false, 0, time_us, err);
    repl_capture_list_done(&all);
    return ok;
}

/* ---- the rest ---- */

bool repl_capture_reader_open(struct repl_capture_reader **ret, const struct rd_fs *fs,
                              const struct repl_capture_reader_opts *opts, struct rd_err *err)
{
    struct repl_capture_reader *r = rd_calloc(1, sizeof *r);
    if (r == NULL)
        return rd_err_nomem(err, sizeof *r);
    r->fs = *fs;
    if (opts != NULL)
        r->opts = *opts;
    begin_anew(r);
    *ret = r;
    return true;
}

const struct rd_err *repl_capture_reader_err(const struct repl_capture_reader *r)
{
    return &r->err;
}

uint64_t repl_capture_reader_offset(const struct repl_capture_reader *r)
{
    return r->walk.stream.offset > r->given ? r->walk.stream.offset : r->given;
}

uint64_t repl_capture_reader_torn(const struct repl_capture_reader *r)
{
    return r->torn;
}

void repl_capture_reader_close(struct repl_capture_reader *r)
{
    if (r == NULL)
        return;
    close_file(r);
    repl_capture_folder_done(&r->folder);
    rd_buf_done(&r->gathered);
    rd_buf_done(&r->argv);
    rd_free(r);
}
