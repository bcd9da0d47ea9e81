#include "tools/compact_impl.h"

#include <inttypes.h>
#include <sys/stat.h>

bool compact_add_skip(void *ctx, const char *value, struct rd_err *err)
{
    struct compact_opts *opts = ctx;
    if (opts->n_skip == COMPACT_SKIPS_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "at most %d --skip-command options are allowed", COMPACT_SKIPS_MAX);
    opts->skip[opts->n_skip++] = value;
    return true;
}

bool compact_wanted(const struct compact_opts *opts)
{
    return opts->until_offset != NULL || opts->until_ms != INT64_MIN || opts->n_skip > 0;
}

/* ---- what is a log ---- */

/* A snapshot with which a log was begun has a field that says so; it precedes the data.
 */
static bool has_preamble_mark(struct rd_src *src)
{
    const struct rdb_reader_opts opts = {.detail = RDB_DETAIL_FRAMES, .no_sum = true};
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

/* Nine bytes from its end a snapshot has the mark of the end, before the sum. */
static bool ends_as_snapshot(struct rd_src *src)
{
    enum { TRAILER = 9, END_MARK = 0xff };
    struct rd_slice s;
    return src->size >= TRAILER && rd_src_seek(src, src->size - TRAILER, NULL) &&
           rd_src_need(src, TRAILER, &s) == RD_SRC_OK && s.ptr[0] == END_MARK;
}

static bool is_begun_log(struct rd_src *src)
{
    return rd_src_can_seek(src) && src->size != RD_NO_OFFSET && has_preamble_mark(src) &&
           !ends_as_snapshot(src);
}

bool compact_is_log(const char *path, bool *ret, struct rd_err *err)
{
    enum { LOOK = 5 };
    struct stat st;
    struct rd_src *src;
    struct rd_slice s;
    *ret = false;
    if (strcmp(path, "-") == 0)
        return true;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        *ret = S_ISDIR(st.st_mode); /* what a pipe gives is gone when it was looked at */
        return true;
    }
    if (!rd_src_open_file(&src, path, NULL, err))
        return false;
    if (!rd_src_decompress(&src, err)) {
        rd_src_close(src);
        return false;
    }
    if (rd_src_need(src, LOOK, &s) != RD_SRC_FAIL && s.len > 0)
        *ret = s.ptr[0] == '*' || s.ptr[0] == '#' ||
               (s.len >= LOOK && memcmp(s.ptr, "file ", LOOK) == 0) ||
               ((s.ptr[0] == 'R' || s.ptr[0] == 'V') && is_begun_log(src));
    rd_src_close(src);
    return true;
}

/* ---- places ---- */

static bool parse_places(struct compact_run *run, struct rd_err *err)
{
    run->has_until = run->opts->until_offset != NULL;
    if (run->has_until && !log_place_parse(&run->until, run->opts->until_offset, err))
        return false;
    for (size_t i = 0; i < run->opts->n_skip; i++)
        if (!log_place_parse(&run->skips[i], run->opts->skip[i], err))
            return false;
    return true;
}

static void begin_file(struct compact_run *run, const struct aof_event *ev)
{
    log_place_begin_file(&run->until, ev->name, ev->index);
    for (size_t i = 0; i < run->opts->n_skip; i++)
        log_place_begin_file(&run->skips[i], ev->name, ev->index);
}

static bool is_after(const struct compact_run *run, const struct aof_event *ev)
{
    return run->has_until && log_place_compare(&run->until, ev->index, ev->offset) >= 0;
}

static bool is_skipped(const struct compact_run *run, const struct aof_event *ev)
{
    for (size_t i = 0; i < run->opts->n_skip; i++) {
        const struct log_place *p = &run->skips[i];
        if (p->file[0] == '\0' ? p->number == ev->number
                               : p->index == ev->index && p->number == ev->offset)
            return true;
    }
    return false;
}

/* A file that was named and is not there is a mistake, not a wish for everything. */
static bool check_places(const struct compact_run *run, struct rd_err *err)
{
    const char *missing = run->has_until && log_place_missing(&run->until) ? run->until.file : NULL;
    for (size_t i = 0; i < run->opts->n_skip && !run->stopped; i++)
        if (log_place_missing(&run->skips[i]))
            missing = run->skips[i].file;
    if (missing != NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the log has no file \"%.100s\"",
                          missing);
    return compact_check_skips(run, err);
}

/* ---- what the log holds ---- */

static bool take_command(struct compact_run *run, const struct aof_event *ev, struct rd_err *err)
{
    const struct compact_step step = {
        .command = &ev->entry.command,
        .name = ev->name,
        .offset = ev->offset,
        .now_us = ev->time_s == AOF_NO_TIME ? run->now_us : ev->time_s * 1000000,
    };
    if (is_after(run, ev)) {
        run->stopped = true;
        return true;
    }
    if (ev->entry.ahead.argc > 1)
        engine_db_ahead(engine_db(run->engine, run->session.db), &run->keys_ahead,
                        ev->entry.ahead.argv[1]);
    if (!is_skipped(run, ev))
        return compact_apply(run, &step, err);
    run->result->skipped++;
    return true;
}

static bool has_time(const struct compact_run *run)
{
    return run->opts->until_ms != INT64_MIN;
}

static bool is_base(const struct aof_event *ev)
{
    return ev->file != NULL && ev->file->type == AOF_BASE;
}

/* A place inside of a snapshot: what the data was before it was made is not in the log. */
static bool ends_in_snapshot(const struct compact_run *run, const struct aof_event *ev,
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

static bool take_snapshot(struct compact_run *run, const struct aof_event *ev, struct rd_err *err)
{
    int64_t saved_s = AOF_NO_TIME;
    return compact_load(run, ev->snapshot, ev->name, &saved_s, err) &&
           (!has_time(run) || aof_timeline_snapshot(&run->line, saved_s, ev->name, err));
}

static bool take_annotation(struct compact_run *run, const struct aof_event *ev, struct rd_err *err)
{
    int64_t t;
    if (!has_time(run) || !aof_annotation_time(ev->entry.bytes, &t))
        return true;
    enum aof_timeline_step step =
        aof_timeline_annotation(&run->line, t, is_base(ev), ev->name, err);
    run->stopped = step == AOF_TIMELINE_STOP;
    return step != AOF_TIMELINE_REFUSE;
}

/* A place after the end of the file that it names is a mistake. */
static bool end_file(struct compact_run *run, const struct aof_event *ev, struct rd_err *err)
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

static bool take_event(struct compact_run *run, struct aof_event *ev, struct rd_err *err)
{
    if (!run->job.has_manifest)
        ev->name = run->job.name;
    bool after = run->behind_snapshot;
    run->behind_snapshot = ev->kind == AOF_RDB;
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

/* The log ended before the place or the time that was asked for. */
static bool check_reached(struct compact_run *run, struct rd_err *err)
{
    if (run->has_until && run->until.file[0] == '\0' && run->until.number > run->end)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "no file of the log is as long as %" PRIu64 " bytes; the longest has "
                          "%" PRIu64,
                          run->until.number, run->end);
    if (!has_time(run))
        return true;
    if (!aof_timeline_end(&run->line, err))
        return false;
    cli_warn(run->cli, "the log ends before that time: its last time annotation is %s",
             aof_job_time(run->line.last_s).s);
    return true;
}

/* ---- reading ---- */

static bool read_all(struct compact_run *run, struct rd_err *err)
{
    struct aof_event ev;
    enum aof_status status;
    while (!run->stopped && (status = aof_reader_next(run->reader, &ev)) != AOF_END) {
        if (status != AOF_EVENT) {
            cli_hint(run->cli, "check-aof --fix cuts a torn end, --salvage saves intact commands; "
                               "--until-offset ends before the damage");
            rd_err_adopt(err, aof_reader_err(run->reader));
            return false;
        }
        if (!take_event(run, &ev, err))
            return false;
    }
    return check_places(run, err) && (run->stopped || check_reached(run, err));
}

static bool open_file(void *ctx, const struct aof_file *file, struct rd_src **ret,
                      struct rd_err *err)
{
    struct compact_run *run = ctx;
    if (!aof_job_open(&run->job, file, ret, err))
        return false;
    cli_progress_begin(run->cli, file->name, (*ret)->size);
    run->cli->progress.src = *ret;
    return true;
}

static struct aof_reader_opts reader_opts(struct compact_run *run)
{
    return (struct aof_reader_opts){
        .open = open_file,
        .ctx = run,
        .log = {.whole = true, .ahead = true},
        .rdb = {.detail = RDB_DETAIL_PACKED},
    };
}

static bool read_folder(struct compact_run *run, struct rd_err *err)
{
    const struct aof_reader_opts opts = reader_opts(run);
    struct rd_src *src;
    if (!aof_job_open_manifest(&run->job, &src, err))
        return false;
    bool ok = aof_manifest_read(&run->manifest, src, NULL, NULL, err);
    rd_src_close(src);
    if (!ok) {
        rd_err_origin(err, run->job.name);
        return false;
    }
    /* From here on errors are of one of its files, and name it. */
    return aof_reader_new(&run->reader, &run->manifest, &opts, err) && read_all(run, err);
}

static bool read_file(struct compact_run *run, struct rd_err *err)
{
    const struct aof_reader_opts opts = reader_opts(run);
    struct rd_src *src;
    if (!cli_open_in(run->cli, run->job.path, &src, err))
        return false;
    bool ok = aof_reader_new_file(&run->reader, src, &opts, err) && read_all(run, err);
    aof_reader_free(run->reader);
    run->reader = NULL;
    cli_close_in(run->cli, src);
    rd_err_origin(err, run->job.shown);
    return ok;
}

static bool read_log(struct compact_run *run, struct rd_err *err)
{
    return aof_job_find(&run->job, err) &&
           (run->job.has_manifest ? read_folder(run, err) : read_file(run, err));
}

/* ---- the whole ---- */

bool compact_run(struct cli *cli, const char *path, const struct compact_opts *opts,
                 struct rd_sink *out, struct compact_result *ret, struct rd_err *err)
{
    struct compact_run run = {
        .cli = cli, .opts = opts, .result = ret, .job = {.cli = cli, .path = path}};
    *ret = (struct compact_result){0};
    compact_begin(&run);
    aof_timeline_init(&run.line, opts->until_ms == INT64_MIN ? INT64_MAX : opts->until_ms / 1000);
    bool ok = parse_places(&run, err) &&
              (stream_in_is(path) ? compact_read_capture(&run, path, err) : read_log(&run, err)) &&
              compact_save(&run, out, err);
    cli_progress_end(cli);
    compact_end(&run);
    return ok;
}

/* ---- in the place of a snapshot ---- */

static void print_result(struct cli *cli, const struct compact_result *done)
{
    cli_debug(cli, "%s command%s, %s key%s", cli_count(done->commands).s,
              cli_plural(done->commands), cli_count(done->keys).s, cli_plural(done->keys));
    if (done->refused == 0)
        return;
    cli->partial = true; /* each succeeded originally, so the data set is different now */
    cli_warn(cli, "%s command%s failed, and the effect of %s is not in the result; the first is %s",
             cli_count(done->refused).s, cli_plural(done->refused),
             done->refused == 1 ? "it" : "them", done->first_refused);
}

static bool compact_into(struct cli *cli, const char *path, const struct compact_opts *opts,
                         struct spool *spool, struct rd_err *err)
{
    struct compact_result done;
    struct rd_sink *sink;
    if (!spool_sink(spool, &sink, err))
        return false;
    bool ok = compact_run(cli, path, opts, sink, &done, err);
    if (!ok) {
        rd_sink_abort(sink);
        return false;
    }
    print_result(cli, &done);
    return rd_sink_close(sink, err);
}

bool compact_open_in(struct cli *cli, const char *path, const struct compact_opts *opts,
                     struct spool *spool, struct rd_src **ret, struct rd_err *err)
{
    static const struct compact_opts all = {.until_ms = INT64_MIN};
    int from = opts != NULL ? opts->from : COMPACT_FROM_ANY;
    bool is_log =
        from == COMPACT_FROM_AOF || (opts != NULL && (opts->is_log || compact_wanted(opts)));
    if (!is_log && from == COMPACT_FROM_ANY && !compact_is_log(path, &is_log, err))
        return false;
    if (!is_log)
        return cli_open_in(cli, path, ret, err);
    if (!compact_into(cli, path, opts != NULL ? opts : &all, spool, err) ||
        !spool_source(spool, path, ret, err))
        return false;
    cli_progress_begin(cli, path, (*ret)->size);
    cli->progress.src = *ret;
    return true;
}

static bool check_after(struct cli *cli, struct rd_src *src, struct rd_err *err)
{
    struct rd_slice s;
    enum rd_src_status status = rd_src_need(src, 1, &s);
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(src));
    if (status != RD_SRC_OK || (s.ptr[0] != '*' && s.ptr[0] != '#'))
        return status != RD_SRC_FAIL;
    if (cli != NULL)
        cli_hint(cli, "--from aof replays them, --from rdb uses the snapshot only");
    return rd_err_set(err, RD_ERR_USAGE, rd_src_offset(src),
                      "commands follow the snapshot, from byte %" PRIu64, rd_src_offset(src));
}

bool compact_check_end(struct cli *cli, struct rd_src *src, const struct compact_opts *opts,
                       const struct rdb_event *ev, struct rd_err *err)
{
    if (ev->trailer.summed && ev->trailer.stored != 0 && ev->trailer.stored != ev->trailer.computed)
        return rd_err_set(err, RD_ERR_CHECKSUM, ev->offset,
                          "stored %016" PRIx64 ", computed %016" PRIx64, ev->trailer.stored,
                          ev->trailer.computed);
    return (opts != NULL && opts->from == COMPACT_FROM_RDB) || check_after(cli, src, err);
}

void compact_close_in(struct cli *cli, struct rd_src *src, struct spool *spool)
{
    if (src != NULL)
        cli_close_in(cli, src);
    spool_done(spool);
}
