/* log.c - a log as a dataset: which commands run, and where to end. */
#include "rdb/reader.h"
#include "rebuild/rebuild_impl.h"

#include <inttypes.h>

/* ---- what is a log ---- */

/* A snapshot at the start of a log has an aux field before the data that marks it. */
static bool has_preamble_mark(struct rd_src *src)
{
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES, .no_sum = true);
    struct rdb_reader *reader;
    struct rdb_event ev;
    char tmp[RD_NUM_I64_MAX];
    bool found = false;
    if (!rdb_reader_new(&reader, src, &opts, NULL))
        return false;
    while (!found && rdb_reader_next(reader, &ev) == RDB_EVENT &&
           (ev.kind == RDB_HEADER || ev.kind == RDB_AUX))
        found = ev.kind == RDB_AUX && rd_slice_is(ev.aux.name, "aof-preamble") &&
                rd_slice_is(rdb_string_bytes(&ev.aux.value, tmp), "1");
    rdb_reader_free(reader);
    return found;
}

bool rebuild_ends_as_snapshot(struct rd_src *src)
{
    enum { TRAILER = 9, END_MARK = 0xff };
    struct rd_slice s;
    return rd_src_can_seek(src) && rd_src_size(src) != RD_NO_OFFSET &&
           rd_src_size(src) >= TRAILER && rd_src_seek(src, rd_src_size(src) - TRAILER, NULL) &&
           rd_src_need(src, TRAILER, &s) == RD_SRC_OK && s.ptr[0] == END_MARK;
}

static bool is_begun_log(struct rd_src *src)
{
    return rd_src_can_seek(src) && rd_src_size(src) != RD_NO_OFFSET && has_preamble_mark(src) &&
           !rebuild_ends_as_snapshot(src);
}

bool rebuild_is_log(struct rd_src *src)
{
    enum { LOOK = 5 };
    struct rd_slice s;
    if (rd_src_need(src, LOOK, &s) == RD_SRC_FAIL || s.len == 0)
        return false;
    return s.ptr[0] == '*' || s.ptr[0] == '#' ||
           (s.len >= LOOK && memcmp(s.ptr, "file ", LOOK) == 0) ||
           ((s.ptr[0] == 'R' || s.ptr[0] == 'V') && is_begun_log(src));
}

/* ---- places ---- */

static bool parse_places(struct rebuild_run *run, struct rd_err *err)
{
    run->has_until = run->opts->until_offset != NULL;
    if (run->has_until && !rebuild_place_parse(&run->until, run->opts->until_offset, err))
        return false;
    for (size_t i = 0; i < run->opts->n_skip; i++)
        if (!rebuild_place_parse(&run->skips[i], run->opts->skip[i], err))
            return false;
    return true;
}

static void begin_file(struct rebuild_run *run, const struct aof_event *ev)
{
    rebuild_place_begin_file(&run->until, ev->name, ev->index);
    for (size_t i = 0; i < run->opts->n_skip; i++)
        rebuild_place_begin_file(&run->skips[i], ev->name, ev->index);
}

static bool is_after(const struct rebuild_run *run, const struct aof_event *ev)
{
    return run->has_until && rebuild_place_compare(&run->until, ev->index, ev->offset) >= 0;
}

static bool is_skipped(const struct rebuild_run *run, const struct aof_event *ev)
{
    for (size_t i = 0; i < run->opts->n_skip; i++) {
        const struct rebuild_place *p = &run->skips[i];
        if (p->file[0] == '\0' ? p->number == ev->number
                               : p->index == ev->index && p->number == ev->offset)
            return true;
    }
    return false;
}

/* A file that was named but does not exist is an error. */
static bool check_places(const struct rebuild_run *run, struct rd_err *err)
{
    const char *missing =
        run->has_until && rebuild_place_missing(&run->until) ? run->until.file : NULL;
    for (size_t i = 0; i < run->opts->n_skip && !run->stopped; i++)
        if (rebuild_place_missing(&run->skips[i]))
            missing = run->skips[i].file;
    if (missing != NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the log has no file \"%.100s\"",
                          missing);
    return rebuild_check_skips(run, err);
}

/* ---- the range of the log ---- */

static bool take_command(struct rebuild_run *run, const struct aof_event *ev, struct rd_err *err)
{
    const struct rebuild_step step = {
        .command = &ev->entry.command,
        .name = ev->name,
        .offset = ev->offset,
        .now_us = ev->time_s == AOF_NO_TIME ? run->data.now_us : ev->time_s * 1000000,
    };
    if (is_after(run, ev)) {
        run->stopped = true;
        return true;
    }
    if (ev->entry.ahead.argc > 1)
        rebuild_data_ahead(&run->data, ev->entry.ahead.argv[1]);
    if (ev->inner)
        return true;
    if (!is_skipped(run, ev))
        return rebuild_data_apply(&run->data, &step, err);
    run->data.counts.skipped++;
    return true;
}

static bool has_time(const struct rebuild_run *run)
{
    return run->opts->until_ms != INT64_MIN;
}

static bool is_base(const struct aof_event *ev)
{
    return ev->file != NULL && ev->file->type == AOF_BASE;
}

/* A position inside a snapshot: the log does not contain the data from before the snapshot. */
static bool ends_in_snapshot(const struct rebuild_run *run, const struct aof_event *ev,
                             uint64_t end, struct rd_err *err)
{
    bool named = run->until.file[0] != '\0' && run->until.index == ev->index;
    if (!run->has_until || run->until.number >= end || !(named || ev->file == NULL))
        return false;
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
               "byte %" PRIu64 " is inside the snapshot that ends at byte %" PRIu64
               ": the log cannot end there",
               run->until.number, end);
    rd_err_origin(err, ev->name);
    return true;
}

static bool take_snapshot(struct rebuild_run *run, const struct aof_event *ev, struct rd_err *err)
{
    int64_t saved_s = AOF_NO_TIME;
    return rebuild_data_load(&run->data, ev->snapshot, ev->name, &saved_s, err) &&
           (!has_time(run) || aof_timeline_snapshot(&run->line, saved_s, ev->name, err));
}

static bool take_annotation(struct rebuild_run *run, const struct aof_event *ev, struct rd_err *err)
{
    int64_t t;
    if (!has_time(run) || !aof_annotation_time(ev->entry.bytes, &t))
        return true;
    enum aof_timeline_step step =
        aof_timeline_annotation(&run->line, t, is_base(ev), ev->name, err);
    run->stopped = step == AOF_TIMELINE_STOP;
    return step != AOF_TIMELINE_REFUSE;
}

/* A position after the end of the named file is an error. */
static bool end_file(struct rebuild_run *run, const struct aof_event *ev, struct rd_err *err)
{
    bool named = run->has_until && run->until.file[0] != '\0' && run->until.index == ev->index;
    run->end = ev->whole > run->end ? ev->whole : run->end;
    if (!named || run->until.number <= ev->whole)
        return true;
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
               "the file ends at byte %" PRIu64 ", before byte %" PRIu64, ev->whole,
               run->until.number);
    rd_err_origin(err, ev->name);
    return false;
}

static bool take_event(struct rebuild_run *run, struct aof_event *ev, struct rd_err *err)
{
    if (run->log->manifest == NULL)
        ev->name = run->log->name;
    bool after = run->after_snapshot;
    run->after_snapshot = ev->kind == AOF_RDB;
    if (after && ends_in_snapshot(run, ev, ev->kind == AOF_FILE_END ? ev->whole : ev->offset, err))
        return false;
    switch (ev->kind) {
    case AOF_FILE_BEGIN:
        begin_file(run, ev);
        return true;
    case AOF_RDB:
        return take_snapshot(run, ev, err);
    case AOF_COMMAND:
        if (has_time(run))
            aof_timeline_command(&run->line, is_base(ev));
        return take_command(run, ev, err);
    case AOF_ANNOTATION:
        return take_annotation(run, ev, err);
    case AOF_FILE_END:
        return end_file(run, ev, err);
    default:
        return true;
    }
}

/* The log ended before the requested position or time. */
static bool check_reached(struct rebuild_run *run, struct rd_err *err)
{
    if (run->has_until && run->until.file[0] == '\0' && run->until.number > run->end)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "no file of the log is as long as %" PRIu64 " bytes; the longest has "
                          "%" PRIu64,
                          run->until.number, run->end);
    if (!has_time(run))
        return true;
    run->ended_early = aof_timeline_end(&run->line, err);
    return run->ended_early;
}

/* ---- reading ---- */

static bool read_all(struct rebuild_run *run, struct rd_err *err)
{
    struct aof_event ev;
    enum aof_status status;
    while (!run->stopped && (status = aof_reader_next(run->reader, &ev)) != AOF_END) {
        if (status != AOF_EVENT) {
            run->data.advice = REBUILD_LOG_DAMAGED;
            rd_err_adopt(err, aof_reader_err(run->reader));
            return false;
        }
        if (!take_event(run, &ev, err))
            return false;
    }
    return check_places(run, err) && (run->stopped || check_reached(run, err));
}

static bool read_log(struct rebuild_run *run, struct rd_err *err)
{
    const struct rebuild_log *log = run->log;
    const struct aof_reader_opts opts =
        AOF_READER_OPTS(.open = log->open, .ctx = log->ctx,
                        .log = &AOF_LOG_OPTS(.whole = true, .ahead = true),
                        .rdb = &RDB_READER_OPTS(.detail = RDB_DETAIL_PACKED, .updates = true));
    return (log->manifest != NULL ? aof_reader_new(&run->reader, log->manifest, &opts, err)
                                  : aof_reader_new_file(&run->reader, log->src, &opts, err)) &&
           read_all(run, err);
}

/* ---- the whole ---- */

bool rebuild_check_skips(const struct rebuild_run *run, struct rd_err *err)
{
    uint64_t skipped = run->data.counts.skipped;
    if (skipped >= run->opts->n_skip || run->stopped)
        return true;
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "not found in the log: %zu of the commands to skip",
                      run->opts->n_skip - (size_t)skipped);
}

/* Of a log, or of the capture at `path`. */
static bool rebuild(struct rebuild_run *run, const char *path, struct rd_sink *out,
                    struct rebuild_result *ret, struct rd_err *err)
{
    int64_t until_ms = run->opts->until_ms;
    rebuild_data_begin(&run->data, run->opts->now_ms * 1000);
    run->data.keep_unknown = run->opts->keep_unknown;
    aof_timeline_init(&run->line, until_ms == INT64_MIN ? INT64_MAX : until_ms / 1000);
    bool ok = parse_places(run, err) &&
              (run->log != NULL ? read_log(run, err) : rebuild_read_capture(run, path, err)) &&
              (out != NULL || run->opts->open_out(run->opts->out_ctx, &out, err)) &&
              rebuild_data_save(&run->data, out, err);
    *ret = (struct rebuild_result){.counts = run->data.counts,
                                   .advice = run->data.advice,
                                   .ended_early = run->ended_early,
                                   .unrecorded = run->unrecorded,
                                   .last_s = run->log != NULL ? run->line.last_s : AOF_NO_TIME};
    aof_reader_free(run->reader);
    rebuild_stream_close(&run->capture);
    if (run->opts->leave != NULL) {
        *run->opts->leave = run->data.engine;
        run->data.engine = NULL;
    }
    rebuild_data_end(&run->data);
    return ok;
}

bool rebuild_from_log(const struct rebuild_opts *opts, const struct rebuild_log *log,
                      struct rd_sink *out, struct rebuild_result *ret, struct rd_err *err)
{
    struct rebuild_run run = {.opts = opts, .log = log};
    return rebuild(&run, NULL, out, ret, err);
}

bool rebuild_from_capture(const struct rebuild_opts *opts, const char *path, struct rd_sink *out,
                          struct rebuild_result *ret, struct rd_err *err)
{
    struct rebuild_run run = {.opts = opts};
    return rebuild(&run, path, out, ret, err);
}
