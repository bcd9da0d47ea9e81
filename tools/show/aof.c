/* aof.c - the commands of a log. */
#include "rdb/version.h"
#include "tools/cli/file_hint.h"
#include "tools/show/show.h"

static bool put_snapshot(struct show *show, const struct aof_event *ev, struct rd_err *err)
{
    struct show_snapshot s = {.file = ev->name};
    struct rdb_release writer = {0};
    struct rdb_event inner;
    char tmp[RD_NUM_I64_MAX];
    enum rdb_status status;
    while ((status = rdb_reader_next(ev->snapshot, &inner)) == RDB_EVENT) {
        if (inner.kind == RDB_AUX)
            rdb_release_take(&writer, inner.aux.name, rdb_string_bytes(&inner.aux.value, tmp));
        if (inner.kind != RDB_KEY)
            continue;
        s.keys++;
        if (rdb_reader_skip_value(ev->snapshot) != RDB_EVENT)
            break;
    }
    if (status != RDB_END)
        return true; /* the log reader reports why */
    if (writer.version[0] != '\0')
        snprintf(s.writer, sizeof s.writer, "%s %s", writer.valkey ? "Valkey" : "Redis",
                 writer.version);
    rd_buf_reset(&show->line);
    if (!show_line_snapshot(&show->line, &s, show->form.json))
        return rd_err_nomem(err, show->line.len);
    show_put_line(show);
    return true;
}

static int64_t microseconds(int64_t time_s)
{
    if (time_s == AOF_NO_TIME)
        return SHOW_NO_TIME;
    return time_s > INT64_MAX / 1000000 ? INT64_MAX : time_s * 1000000;
}

static bool take_command(struct show *show, const struct aof_event *ev, struct rd_err *err)
{
    const struct show_item item = {
        .command = &ev->entry.command,
        .file = ev->name,
        .index = ev->index,
        .number = ev->number + show->n_passed,
        .offset = ev->offset,
        .len = ev->entry.len,
        .db = ev->db,
        .in_multi = ev->in_multi,
        .time_us = microseconds(ev->time_s),
    };
    show->number = item.number;
    *(item.time_us == SHOW_NO_TIME ? &show->n_untimed : &show->n_timed) += 1;
    return show_put_item(show, &item, err);
}

static bool take_event(struct show *show, struct aof_event *ev, struct rd_err *err)
{
    if (!show->job.has_manifest)
        ev->name = show->job.name;
    switch (ev->kind) {
    case AOF_FILE_BEGIN:
        rebuild_place_begin_file(&show->pick.from, ev->name, ev->index);
        rebuild_place_begin_file(&show->pick.until, ev->name, ev->index);
        return true;
    case AOF_RDB:
        return !show_put_notes(show) || put_snapshot(show, ev, err);
    case AOF_COMMAND:
        return take_command(show, ev, err);
    default:
        return true;
    }
}

static bool wants_times(const struct show_pick *pick)
{
    return pick->from_ms != INT64_MIN || pick->until_ms != INT64_MIN;
}

static bool refuse_times(struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "the log has no time annotations (the server writes them with "
                      "aof-timestamp-enabled yes; the default is no)");
}

/* Reads ahead to the first command with a time, before anything is printed. The reader is freed. A
 * log that cannot be read to that point is left to the pass that prints it. */
static bool require_times(struct aof_reader *reader, struct rd_err *err)
{
    enum aof_status status;
    struct aof_event ev;
    bool timed = false, untimed = false;
    while (!timed && (status = aof_reader_next(reader, &ev)) == AOF_EVENT)
        if (ev.kind == AOF_COMMAND)
            *(ev.time_s != AOF_NO_TIME ? &timed : &untimed) = true;
    aof_reader_free(reader);
    return timed || !untimed || status != AOF_END || refuse_times(err);
}

/* Commands without a time were selected or skipped although their time is unknown. */
static bool check_times(struct show *show, struct rd_err *err)
{
    if (show->n_untimed == 0 || !wants_times(&show->pick))
        return true;
    if (show->n_timed == 0)
        return refuse_times(err);
    cli_warn(show->cli, "%s command%s no time annotation before %s: %s treated as the earliest",
             rd_show_count(show->n_untimed).s, show->n_untimed == 1 ? " has" : "s have",
             show->n_untimed == 1 ? "it" : "them", show->n_untimed == 1 ? "it is" : "they are");
    return true;
}

static bool read_all(struct show *show, struct rd_err *err)
{
    struct aof_event ev;
    for (;;) {
        switch (aof_reader_next(show->reader, &ev)) {
        case AOF_EVENT:
            if (!take_event(show, &ev, err))
                return false;
            break;
        case AOF_MORE:
            if (!show_put_caught_up(show, err))
                return false;
            show_follow_wait(&show->waiting);
            break;
        case AOF_END:
            return check_times(show, err);
        default:
            rd_err_adopt(err, aof_reader_err(show->reader));
            if (file_hint(err, show->cli->tool, show->cli->args[0]) == NULL)
                cli_hint(show->cli, "run check-aof to find and repair the damage");
            return false;
        }
    }
}

static bool open_file(void *ctx, const struct aof_file *file, struct rd_src **ret,
                      struct rd_err *err)
{
    struct show *show = ctx;
    char path[PATH_MAX];
    const struct aof_file *last = aof_manifest_last_incr(&show->manifest);
    if (!show->follow || file != last)
        return aof_job_open(&show->job, file, ret, err);
    show->waiting.seq = file->seq;
    return aof_job_full_path(&show->job, file->name, path, sizeof path, err) &&
           show_follow_open(&show->waiting, path, true, ret, err);
}

static bool read_manifest(struct show *show, struct rd_err *err)
{
    struct rd_src *src;
    if (!aof_job_open_manifest(&show->job, &src, err))
        return false;
    bool ok = aof_manifest_read(&show->manifest, src, NULL, NULL, err);
    rd_src_close(src);
    rd_err_origin(err, show->job.name);
    return ok;
}

/* After a rotation, the manifest names a file after the one that was read. */
static bool read_rest(struct show *show, uint64_t seq, struct rd_err *err)
{
    aof_manifest_done(&show->manifest);
    aof_manifest_init(&show->manifest);
    if (!read_manifest(show, err))
        return false;
    for (size_t i = aof_manifest_count(&show->manifest); i-- > 0;)
        if (aof_manifest_file(&show->manifest, i)->type != AOF_INCR ||
            aof_manifest_file(&show->manifest, i)->seq <= seq)
            aof_manifest_remove(&show->manifest, i);
    return true;
}

static bool show_folder(struct show *show, struct rd_err *err)
{
    const struct aof_reader_opts opts =
        AOF_READER_OPTS(.open = open_file, .ctx = show, .log = &AOF_LOG_OPTS(.whole = true));
    struct aof_reader *ahead;
    bool ok = read_manifest(show, err);
    if (ok && wants_times(&show->pick) && !show->follow)
        ok = aof_reader_new(&ahead, &show->manifest, &opts, err) && require_times(ahead, err);
    while (ok && aof_manifest_count(&show->manifest) > 0) {
        show->waiting.seq = 0;
        ok = aof_reader_new(&show->reader, &show->manifest, &opts, err) && read_all(show, err);
        aof_reader_free(show->reader);
        show->reader = NULL;
        if (!ok || show->waiting.seq == 0)
            break;
        show->n_passed = show->number;
        ok = read_rest(show, show->waiting.seq, err);
    }
    return ok;
}

/* A log on standard input can be read only once. */
static bool file_has_times(struct show *show, const struct aof_reader_opts *opts,
                           struct rd_err *err)
{
    struct rd_src *src;
    struct aof_reader *ahead;
    if (!wants_times(&show->pick) || show->follow || show->job.is_stdin)
        return true;
    if (!cli_open_in(show->cli, show->job.path, &src, err))
        return false;
    bool ok = aof_reader_new_file(&ahead, src, opts, err) && require_times(ahead, err);
    cli_close_in(show->cli, src);
    return ok;
}

static bool show_one(struct show *show, struct rd_err *err)
{
    const struct aof_reader_opts opts = AOF_READER_OPTS(.log = &AOF_LOG_OPTS(.whole = true));
    struct rd_src *src;
    bool wait = show->follow && !show->job.is_stdin;
    if (!file_has_times(show, &opts, err)) {
        rd_err_origin(err, show->job.shown);
        return false;
    }
    if (!(wait ? show_follow_open(&show->waiting, show->job.path, false, &src, err)
               : cli_open_in(show->cli, show->job.path, &src, err)))
        return false;
    bool ok = aof_reader_new_file(&show->reader, src, &opts, err) && read_all(show, err);
    aof_reader_free(show->reader);
    show->reader = NULL;
    if (wait)
        rd_src_close(src);
    else
        cli_close_in(show->cli, src);
    rd_err_origin(err, show->job.shown);
    return ok;
}

bool show_aof(struct show *show, struct rd_err *err)
{
    show->waiting.job = &show->job;
    return aof_job_find(&show->job, err) &&
           (show->job.has_manifest ? show_folder(show, err) : show_one(show, err));
}
