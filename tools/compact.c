#include "tools/compact.h"

#include "aof/reader.h"
#include "base/prefault.h"
#include "engine/command.h"
#include "engine/db.h"
#include "engine/session.h"
#include "engine/snapshot.h"
#include "tools/check_aof_impl.h"

#include <inttypes.h>
#include <sys/stat.h>

/* Where to stop, or what to leave out: an offset in a file (or in any), or the number of a command.
 */
struct place {
    char file[NAME_MAX + 1]; /* empty: none was named */
    size_t index;            /* of the file among those read; SIZE_MAX: not reached */
    uint64_t number;
};

struct run {
    struct cli *cli;
    const struct compact_opts *opts;
    struct compact_result *result;
    struct aof_job job;
    struct aof_manifest manifest;
    struct aof_reader *reader;
    struct engine *engine;
    struct rd_prefault *ahead;
    struct engine_session session;
    struct engine_reply reply;
    struct engine_effects effects;
    int64_t now_us;
    bool has_until;
    struct place until;
    struct place skips[COMPACT_SKIPS_MAX];
    bool stopped;
};

bool compact_add_skip(void *ctx, const char *value, struct rd_err *err)
{
    struct compact_opts *opts = ctx;
    if (opts->n_skip == COMPACT_SKIPS_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "at most %d --skip-command",
                          COMPACT_SKIPS_MAX);
    opts->skip[opts->n_skip++] = value;
    return true;
}

bool compact_wanted(const struct compact_opts *opts)
{
    return opts->until_offset != NULL || opts->until_ms != INT64_MIN || opts->n_skip > 0;
}

/* ---- what is a log ---- */

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
    if (rd_src_need(src, LOOK, &s) != RD_SRC_FAIL && s.len > 0)
        *ret = s.ptr[0] == '*' || s.ptr[0] == '#' ||
               (s.len >= LOOK && memcmp(s.ptr, "file ", LOOK) == 0);
    rd_src_close(src);
    return true;
}

/* ---- places ---- */

static bool parse_place(const char *text, struct place *ret, struct rd_err *err)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon != NULL ? (size_t)(colon - text) : 0;
    *ret = (struct place){.index = SIZE_MAX};
    if (len >= sizeof ret->file || (colon != NULL && len == 0) ||
        !rd_num_get_u64(rd_slice_str(colon != NULL ? colon + 1 : text), &ret->number))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "\"%.100s\" is no place: it is a number, or FILE:N", text);
    memcpy(ret->file, text, len);
    return true;
}

static bool parse_places(struct run *run, struct rd_err *err)
{
    run->has_until = run->opts->until_offset != NULL;
    if (run->has_until && !parse_place(run->opts->until_offset, &run->until, err))
        return false;
    for (size_t i = 0; i < run->opts->n_skip; i++)
        if (!parse_place(run->opts->skip[i], &run->skips[i], err))
            return false;
    return true;
}

static void begin_file(struct run *run, const struct aof_event *ev)
{
    if (strcmp(run->until.file, ev->name) == 0)
        run->until.index = ev->index;
    for (size_t i = 0; i < run->opts->n_skip; i++)
        if (strcmp(run->skips[i].file, ev->name) == 0)
            run->skips[i].index = ev->index;
}

static bool is_behind(const struct run *run, const struct aof_event *ev)
{
    if (run->opts->until_ms != INT64_MIN && ev->time_s != AOF_NO_TIME &&
        ev->time_s > run->opts->until_ms / 1000)
        return true;
    if (!run->has_until)
        return false;
    if (run->until.file[0] != '\0' && ev->index != run->until.index)
        return run->until.index != SIZE_MAX && ev->index > run->until.index;
    return ev->offset >= run->until.number;
}

static bool is_skipped(const struct run *run, const struct aof_event *ev)
{
    for (size_t i = 0; i < run->opts->n_skip; i++) {
        const struct place *p = &run->skips[i];
        if (p->file[0] == '\0' ? p->number == ev->number
                               : p->index == ev->index && p->number == ev->offset)
            return true;
    }
    return false;
}

/* A file that was named and is not there is a mistake, not a wish for everything. */
static bool check_places(const struct run *run, struct rd_err *err)
{
    const char *missing = NULL;
    if (run->has_until && run->until.file[0] != '\0' && run->until.index == SIZE_MAX)
        missing = run->until.file;
    for (size_t i = 0; i < run->opts->n_skip && !run->stopped; i++)
        if (run->skips[i].file[0] != '\0' && run->skips[i].index == SIZE_MAX)
            missing = run->skips[i].file;
    if (missing != NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the log has no file \"%.100s\"",
                          missing);
    if (run->result->skipped < run->opts->n_skip && !run->stopped)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "%zu of the commands that were to be left out are not in the log",
                          run->opts->n_skip - (size_t)run->result->skipped);
    return true;
}

/* ---- commands ---- */

static bool refuse(const struct aof_event *ev, const char *what, struct rd_err *err)
{
    char name[80];
    rd_err_quote(name, sizeof name, ev->entry.command.argv[0]);
    rd_err_set(err, RD_ERR_UNSUPPORTED, ev->offset, "%s: %s", name, what);
    rd_err_origin(err, ev->name);
    return false;
}

/* A server that loads the log takes no notice of errors either. */
static void note_refusal(struct run *run, const struct aof_event *ev)
{
    if (run->result->refused++ == 0)
        snprintf(run->result->first_refused, sizeof run->result->first_refused,
                 "%.60s at byte %" PRIu64 ": %.100s", ev->name, ev->offset, run->reply.text);
}

/* What speaks of the connection and changes no data. */
static bool is_idle(const struct engine_command *command)
{
    return command->group == ENGINE_GROUP_PUBSUB || strcmp(command->name, "replconf") == 0;
}

static bool take_command(struct run *run, const struct aof_event *ev, struct rd_err *err)
{
    const struct resp_command *cmd = &ev->entry.command;
    const struct engine_command *command = engine_command_resolve(cmd->argv, cmd->argc);
    const struct engine_env env = {.now_us = ev->time_s == AOF_NO_TIME ? run->now_us
                                                                       : ev->time_s * 1000000};
    if (command == NULL)
        return refuse(ev, "the command is not known", err);
    engine_reply_reset(&run->reply);
    enum engine_status status = engine_apply_command(run->engine, &run->session, command, cmd->argc,
                                                     cmd->argv, &env, &run->reply, &run->effects);
    if (status == ENGINE_ELSEWHERE && !is_idle(command)) {
        cli_hint(run->cli, "--until-offset ends in front of it, --skip-command leaves it out");
        return refuse(ev, "what it does is not in the log", err);
    }
    run->result->commands++;
    if (run->reply.error)
        note_refusal(run, ev);
    return true;
}

static bool take_snapshot(struct run *run, const struct aof_event *ev, struct rd_err *err)
{
    const struct engine_load_opts opts = {.keep_expired = true};
    const struct engine_env env = {.now_us = run->now_us};
    struct engine_loader *loader;
    if (!engine_loader_new_reader(&loader, run->engine, ev->snapshot, &opts, &env, err))
        return false;
    bool ok = engine_loader_step(loader, UINT64_MAX, err) == RDB_END;
    engine_loader_free(loader);
    rd_err_origin(err, ev->name);
    return ok;
}

static bool take(struct run *run, struct aof_event *ev, struct rd_err *err)
{
    if (!run->job.has_manifest)
        ev->name = run->job.name;
    switch (ev->kind) {
    case AOF_FILE_BEGIN:
        begin_file(run, ev);
        return true;
    case AOF_RDB:
        return take_snapshot(run, ev, err);
    case AOF_COMMAND:
        if (is_behind(run, ev)) {
            run->stopped = true;
            return true;
        }
        if (!is_skipped(run, ev))
            return take_command(run, ev, err);
        run->result->skipped++;
        return true;
    default:
        return true;
    }
}

/* ---- reading ---- */

static bool read_all(struct run *run, struct rd_err *err)
{
    struct aof_event ev;
    enum aof_status status;
    while (!run->stopped && (status = aof_reader_next(run->reader, &ev)) != AOF_END) {
        if (status != AOF_EVENT) {
            cli_hint(run->cli, "check-aof --fix cuts a torn end; --until-offset ends before it");
            rd_err_adopt(err, aof_reader_err(run->reader));
            return false;
        }
        if (!take(run, &ev, err))
            return false;
    }
    return check_places(run, err);
}

static bool open_file(void *ctx, const struct aof_file *file, struct rd_src **ret,
                      struct rd_err *err)
{
    struct run *run = ctx;
    if (!aof_job_open(&run->job, file, ret, err))
        return false;
    cli_progress_begin(run->cli, file->name, (*ret)->size);
    run->cli->progress.src = *ret;
    return true;
}

static struct aof_reader_opts reader_opts(struct run *run)
{
    return (struct aof_reader_opts){
        .open = open_file,
        .ctx = run,
        .log = {.whole = true},
        .rdb = {.detail = RDB_DETAIL_PACKED},
    };
}

static bool read_folder(struct run *run, struct rd_err *err)
{
    const struct aof_reader_opts opts = reader_opts(run);
    struct rd_src *src;
    if (!aof_job_open_manifest(&run->job, &src, err))
        return false;
    bool ok = aof_manifest_read(&run->manifest, src, NULL, NULL, err);
    rd_src_close(src);
    rd_err_origin(err, run->job.name);
    return ok && aof_reader_new(&run->reader, &run->manifest, &opts, err) && read_all(run, err);
}

static bool read_file(struct run *run, struct rd_err *err)
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

/* ---- the whole ---- */

static uint64_t count_keys(struct engine *e)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < engine_config(e)->databases; i++)
        n += engine_db_count(engine_db(e, i));
    return n;
}

static bool save(struct run *run, struct rd_sink *out, struct rd_err *err)
{
    struct engine_save_opts opts = {
        .compress = true, .keep_expired = true, .now_ms = run->now_us / 1000};
    engine_save_fitting(run->engine, &opts.dialect, &opts.version);
    run->result->keys = count_keys(run->engine);
    return engine_save(run->engine, out, &opts, err);
}

static void begin(struct run *run)
{
    struct engine_config config;
    engine_config_init(&config);
    config.databases = COMPACT_DATABASES;
    run->ahead = rd_prefault_begin();
    run->engine = engine_new(&(struct engine_opts){.seed = 1, .config = &config});
    engine_session_init(&run->session, run->engine, ENGINE_LOADING);
    run->reply = (struct engine_reply){.proto = 2, .off = true};
    run->effects.off = true;
    run->now_us = cli_now_ms() * 1000;
    aof_manifest_init(&run->manifest);
}

static void end(struct run *run)
{
    aof_reader_free(run->reader);
    aof_manifest_done(&run->manifest);
    aof_job_done(&run->job);
    engine_session_done(&run->session);
    engine_effects_done(&run->effects);
    engine_reply_done(&run->reply);
    engine_delete(run->engine);
    rd_prefault_end(run->ahead);
}

bool compact_run(struct cli *cli, const char *path, const struct compact_opts *opts,
                 struct rd_sink *out, struct compact_result *ret, struct rd_err *err)
{
    struct run run = {.cli = cli, .opts = opts, .result = ret, .job = {.cli = cli, .path = path}};
    *ret = (struct compact_result){0};
    begin(&run);
    bool ok = parse_places(&run, err) && aof_job_find(&run.job, err) &&
              (run.job.has_manifest ? read_folder(&run, err) : read_file(&run, err)) &&
              save(&run, out, err);
    cli_progress_end(cli);
    end(&run);
    return ok;
}

/* ---- in the place of a snapshot ---- */

static void tell(struct cli *cli, const struct compact_result *done)
{
    cli_debug(cli, "%s commands, %s keys", cli_count(done->commands).s, cli_count(done->keys).s);
    if (done->refused > 0)
        cli_warn(cli, "%s commands were answered with an error, the first is %s",
                 cli_count(done->refused).s, done->first_refused);
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
    tell(cli, &done);
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

void compact_close_in(struct cli *cli, struct rd_src *src, struct spool *spool)
{
    if (src != NULL)
        cli_close_in(cli, src);
    spool_done(spool);
}
