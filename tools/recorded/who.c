#include "tools/recorded/who.h"

#include "base/mem.h"
#include "base/src.h"
#include "repl/monitor_reader.h"

/* ---- files of redis-cli ---- */

struct reading {
    struct history_who *who;
    int64_t first_us, last_us; /* of the lines */
    struct rd_buf line;        /* the beginning of one */
};

static bool take_line(struct reading *in, struct rd_slice text, struct rd_err *err)
{
    int64_t time_us;
    if (!history_who_line(in->who, text, INT64_MIN, &time_us, err))
        return false;
    if (time_us == INT64_MIN)
        return true;
    if (in->first_us == INT64_MAX && !history_who_begin(in->who, time_us, false, err))
        return false;
    in->first_us = time_us < in->first_us ? time_us : in->first_us;
    in->last_us = time_us > in->last_us ? time_us : in->last_us;
    return true;
}

/* Bytes up to a line feed, or a part of a line. */
static bool take_bytes(struct reading *in, struct rd_slice bytes, bool whole, struct rd_err *err)
{
    if (whole && in->line.len == 0)
        return take_line(in, bytes, err);
    if (!rd_buf_add(&in->line, bytes.ptr, bytes.len))
        return rd_err_nomem(err, in->line.len + bytes.len);
    if (!whole)
        return true;
    bool ok = take_line(in, rd_buf_slice(&in->line), err);
    rd_buf_reset(&in->line);
    return ok;
}

static bool take_window(struct reading *in, struct rd_src *src, struct rd_slice window,
                        struct rd_err *err)
{
    const uint8_t *at = window.ptr, *end = at + window.len;
    while (at < end) {
        const uint8_t *lf = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((lf != NULL ? lf : end) - at);
        if (!take_bytes(in, rd_slice(at, len), lf != NULL, err))
            return false;
        at += len + (lf != NULL);
    }
    rd_src_consume(src, window.len);
    return true;
}

/* A last line without its line feed may be torn: it is left out. */
static bool read_lines(struct reading *in, struct rd_src *src, struct rd_err *err)
{
    struct rd_slice window;
    enum rd_src_status status;
    while ((status = rd_src_need(src, 1, &window)) == RD_SRC_OK)
        if (!take_window(in, src, window, err))
            return false;
    if (status == RD_SRC_END)
        return true;
    rd_err_adopt(err, rd_src_err(src));
    return false;
}

static bool read_file(struct history_who *who, const char *path, struct rd_err *err)
{
    struct reading in = {.who = who, .first_us = INT64_MAX, .last_us = INT64_MIN};
    struct rd_src *src;
    if (!rd_src_open_file(&src, path, &RD_SRC_OPTS(.origin = path), err))
        return false;
    bool ok = rd_src_decompress(&src, err) && read_lines(&in, src, err);
    rd_src_close(src);
    rd_buf_done(&in.line);
    if (!ok)
        return false;
    if (in.first_us == INT64_MAX) {
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "it has no line of MONITOR, such as: 1700000000.000000 [0 10.0.0.5:41234] "
                   "\"SET\" \"k\" \"v\"");
        rd_err_origin(err, path);
        return false;
    }
    return history_who_covered(who, in.first_us, in.last_us, err);
}

/* ---- recordings in a capture ---- */

/* A piece is covered from its beginning to the last time at which all had arrived. */
struct piece {
    int64_t from_us, until_us;
    bool begun;
};

static bool end_piece(struct history_who *who, struct piece *piece, struct rd_err *err)
{
    bool any = piece->begun && piece->until_us > piece->from_us;
    piece->begun = false;
    return !any || history_who_covered(who, piece->from_us, piece->until_us, err);
}

static bool take_block(struct history_who *who, struct piece *piece,
                       const struct repl_monitor_record *block, struct rd_err *err)
{
    if ((block->flags & REPL_MONITOR_BEGINS) != 0) {
        if (!end_piece(who, piece, err))
            return false;
        *piece = (struct piece){block->time_us, INT64_MIN, true};
    }
    bool connection = (block->flags & (REPL_MONITOR_WAITING | REPL_MONITOR_UNKNOWN)) != 0;
    if (connection &&
        !history_who_begin(who, block->time_us, (block->flags & REPL_MONITOR_UNKNOWN) == 0, err))
        return false;
    if (block->until_us != REPL_CAPTURE_NO_TIME && block->until_us > piece->until_us)
        piece->until_us = block->until_us;
    return true;
}

static bool take_record(struct history_who *who, struct piece *piece,
                        const struct repl_monitor_record *record, struct rd_err *err)
{
    switch (record->kind) {
    case REPL_MONITOR_AT_BLOCK:
        return take_block(who, piece, record, err);
    case REPL_MONITOR_AT_LINE:
        return history_who_line(who, record->text, record->time_us, NULL, err);
    default:
        return history_who_waits(who, record->text, piece->from_us, err);
    }
}

/* A damaged file is like one that is missing, and is reported. */
static bool read_recording(struct recorded *r, const struct rd_fs *fs, const char *name,
                           struct piece *piece, struct rd_err *err)
{
    struct repl_monitor_reader *reader;
    struct repl_monitor_record record;
    struct rd_err why = {0};
    enum repl_monitor_status status = REPL_MONITOR_FAIL;
    bool ok = true;
    if (repl_monitor_reader_open(&reader, fs, name, &why)) {
        while (ok &&
               (status = repl_monitor_reader_next(reader, &record, &why)) == REPL_MONITOR_RECORD)
            ok = take_record(r->who, piece, &record, err);
        repl_monitor_reader_close(reader);
    }
    if (!ok || status != REPL_MONITOR_FAIL)
        return ok;
    if (why.code == RD_ERR_MEMORY) {
        rd_err_adopt(err, &why);
        return false;
    }
    char text[400];
    rd_err_render(&why, text, sizeof text);
    cli_warn(r->cli, "clients are not known after this: %s", text);
    return end_piece(r->who, piece, err);
}

/* What arrives after an interruption is older than its time. */
static bool note_interruptions(struct recorded *r, struct rd_err *err)
{
    const struct repl_capture_list *list = &r->tape.stream.list;
    for (size_t i = 0; r->tape.is_capture && i < list->n; i++) {
        int64_t until_us;
        if (!list->segments[i].interrupted)
            continue;
        if (!repl_capture_until(&list->segments[i], &r->tape.stream.fs, &until_us, err) ||
            !history_who_late(r->who, list->segments[i].since_us, until_us, err))
            return false;
    }
    return true;
}

static bool read_recordings(struct recorded *r, struct rd_err *err)
{
    const struct rd_fs *fs = &r->tape.stream.fs;
    char(*names)[REPL_CAPTURE_NAME];
    struct piece piece = {0};
    size_t n;
    if (!repl_monitor_list(&names, &n, fs, err))
        return false;
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = read_recording(r, fs, names[i], &piece, err);
    rd_free(names);
    return ok && end_piece(r->who, &piece, err);
}

static bool has_recordings(const struct recorded *r, bool *ret, struct rd_err *err)
{
    char(*names)[REPL_CAPTURE_NAME];
    size_t n = 0;
    *ret = false;
    if (!r->tape.is_capture)
        return true;
    if (!repl_monitor_list(&names, &n, &r->tape.stream.fs, err))
        return false;
    rd_free(names);
    *ret = n > 0;
    return true;
}

/* ---- the commands ---- */

static bool visit(void *ctx, const struct history_visit *visit, struct rd_err *err)
{
    return history_who_visit(ctx, visit, err);
}

static void restart(void *ctx)
{
    history_who_restart(ctx);
}

static bool replay(struct recorded *r, int64_t now_us, struct rd_err *err)
{
    const struct history_replay_opts opts = {.tape = &r->tape,
                                             .indexes = &r->indexes,
                                             .names = &r->names,
                                             .now_us = now_us,
                                             .visit = visit,
                                             .restart = restart,
                                             .ctx = r->who};
    return history_replay(&opts, err);
}

/* The times of a capture are those of arrival, by the clock of the machine that captured, and its
 * recordings have the same. Those of a log are seconds of the clock of the server. The clock of a
 * file may differ. */
enum { APART_US = 1000000 };

static bool read_files(struct recorded *r, struct rd_err *err)
{
    for (size_t i = 0; i < r->n_monitor_files; i++)
        if (!read_file(r->who, r->monitor_files[i], err))
            return false;
    return true;
}

/* Recordings of the same commands would have each line twice. */
bool recorded_who_find(struct recorded *r, int64_t now_us, struct rd_err *err)
{
    struct history_who_opts opts = {.names = &r->names, .early_us = APART_US, .late_us = APART_US};
    bool own = false, files = r->n_monitor_files > 0;
    if (!files && !has_recordings(r, &own, err))
        return false;
    if (!files && !own)
        return true;
    if (own)
        opts.late_us = 0;
    memcpy(opts.salt, r->indexes.salt, sizeof opts.salt);
    if (!history_who_new(&r->who, &opts, err) || !replay(r, now_us, err) ||
        !note_interruptions(r, err) || !(own ? read_recordings(r, err) : read_files(r, err)))
        return false;
    history_who_join(r->who);
    return true;
}

struct rd_slice recorded_who_of(const struct recorded *r, struct history_place place)
{
    return r->who != NULL ? history_who_find(r->who, place) : rd_slice(NULL, 0);
}
