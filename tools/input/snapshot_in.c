#include "tools/input/snapshot_in.h"

#include "engine/mem.h"
#include "rdb/version.h"
#include "rebuild/stream.h"
#include "tools/check_aof/check_aof.h"
#include "tools/input/server_in.h"

#include <inttypes.h>
#include <sys/stat.h>

/* ---- options ---- */

bool snapshot_in_add_skip(void *ctx, const char *value, struct rd_err *err)
{
    struct rebuild_opts *opts = &((struct snapshot_in_opts *)ctx)->rebuild;
    if (opts->n_skip == REBUILD_SKIPS_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "at most %d --skip-command options are allowed", REBUILD_SKIPS_MAX);
    opts->skip[opts->n_skip++] = value;
    return true;
}

static bool is_wanted(const struct snapshot_in_opts *opts)
{
    const struct rebuild_opts *rebuild = &opts->rebuild;
    return opts->is_log || rebuild->until_offset != NULL || rebuild->until_ms != INT64_MIN ||
           rebuild->n_skip > 0;
}

bool snapshot_in_is_log(const char *path, bool *ret, struct rd_err *err)
{
    struct stat st;
    struct rd_src *src;
    *ret = false;
    if (strcmp(path, "-") == 0)
        return true;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        *ret = S_ISDIR(st.st_mode); /* the bytes of a pipe would be gone after a look */
        return true;
    }
    if (!rd_src_open_file(&src, path, NULL, err))
        return false;
    bool ok = rd_src_decompress(&src, err);
    *ret = ok && rebuild_is_log(src);
    rd_src_close(src);
    return ok;
}

/* ---- the replay ---- */

/* The engine has no error for exhausted memory. */
static struct cli *exhausted_cli;

static void exhausted(size_t size)
{
    cli_hint(exhausted_cli, "the whole data set of a log is held in memory");
    cli_out_of_memory(exhausted_cli, size);
}

void snapshot_in_watch_memory(struct cli *cli)
{
    exhausted_cli = cli;
    engine_mem_on_exhausted(exhausted);
}

static void begin_reading(void *ctx, const char *what, const struct rd_src *src, uint64_t total)
{
    struct cli *cli = ctx;
    if (what == NULL) {
        cli_progress_end(cli);
        return;
    }
    cli_progress_begin(cli, what, total);
    cli->progress.src = src;
}

static void reading_at(void *ctx, uint64_t done)
{
    cli_progress_at(ctx, done);
}

static bool open_file(void *ctx, const struct aof_file *file, struct rd_src **ret,
                      struct rd_err *err)
{
    struct aof_job *job = ctx;
    if (!aof_job_open(job, file, ret, err))
        return false;
    begin_reading(job->cli, file->name, *ret, rd_src_size(*ret));
    return true;
}

static bool replay_folder(struct aof_job *job, const struct rebuild_opts *opts,
                          struct rd_sink *sink, struct rebuild_result *ret, struct rd_err *err)
{
    struct aof_manifest manifest;
    struct rd_src *src;
    if (!aof_job_open_manifest(job, &src, err))
        return false;
    aof_manifest_init(&manifest);
    bool ok = aof_manifest_read(&manifest, src, NULL, NULL, err);
    rd_src_close(src);
    if (!ok)
        rd_err_origin(err, job->name);
    const struct rebuild_log log = {
        .name = job->name, .manifest = &manifest, .open = open_file, .ctx = job};
    ok = ok && rebuild_from_log(opts, &log, sink, ret, err); /* its errors name one of the files */
    aof_manifest_done(&manifest);
    return ok;
}

static bool replay_file(struct aof_job *job, const struct rebuild_opts *opts, struct rd_sink *sink,
                        struct rebuild_result *ret, struct rd_err *err)
{
    struct rebuild_log log = {.name = job->name, .open = open_file, .ctx = job};
    if (!cli_open_in(job->cli, job->path, &log.src, err))
        return false;
    bool ok = rebuild_from_log(opts, &log, sink, ret, err);
    cli_close_in(job->cli, log.src);
    rd_err_origin(err, job->shown);
    return ok;
}

static bool replay_log(struct cli *cli, const char *path, const struct rebuild_opts *opts,
                       struct rd_sink *sink, struct rebuild_result *ret, struct rd_err *err)
{
    struct aof_job job = {.cli = cli, .path = path};
    bool ok = aof_job_find(&job, err) &&
              (job.has_manifest ? replay_folder : replay_file)(&job, opts, sink, ret, err);
    aof_job_done(&job);
    return ok;
}

static void print_advice(struct cli *cli, enum rebuild_advice advice)
{
    if (advice == REBUILD_LOG_DAMAGED)
        cli_hint(cli, "check-aof --fix cuts a torn end, --salvage saves intact commands; "
                      "--until-offset ends before the damage");
    else if (advice == REBUILD_NEEDS_SERVER)
        cli_hint(cli, "--until-offset ends before it, --skip-command omits it; --keep-unknown "
                      "omits all such commands");
}

void snapshot_in_warn_unknown(struct cli *cli, const struct rebuild_counts *counts, bool kept)
{
    if (counts->unsupported == 0)
        return;
    cli_warn(cli, "%s command%s could not be run; the first is %s",
             rd_show_count(counts->unsupported).s, rd_show_plural(counts->unsupported),
             counts->first_unsupported);
    cli->partial |= counts->lost || counts->unknown > 0;
    if (counts->lost)
        cli_warn(cli, "such a command does not name the keys that it changes: any key may differ");
    const char *fate = kept                   ? "may be old"
                       : counts->unknown == 1 ? "it is left out"
                                              : "they are left out";
    if (counts->unknown > 0)
        cli_warn(cli, "the value%s of %s key%s %s not known, and %s: %s",
                 rd_show_plural(counts->unknown), rd_show_count(counts->unknown).s,
                 rd_show_plural(counts->unknown), counts->unknown == 1 ? "is" : "are", fate,
                 counts->unknown_names);
}

void snapshot_in_warn_unrecorded(struct cli *cli)
{
    cli_warn(cli, "the capture was made by an older version, which did not record when it was "
                  "interrupted: the data may be older than the time that was asked for");
}

void snapshot_in_report(struct cli *cli, const struct rebuild_counts *counts, bool kept)
{
    cli_debug(cli, "%s command%s, %s key%s", rd_show_count(counts->commands).s,
              rd_show_plural(counts->commands), rd_show_count(counts->keys).s,
              rd_show_plural(counts->keys));
    snapshot_in_warn_unknown(cli, counts, kept);
    if (counts->refused == 0)
        return;
    cli->partial = true; /* each succeeded originally, so the data set is different now */
    cli_warn(cli, "%s command%s failed, and the effect of %s is not in the result; the first is %s",
             rd_show_count(counts->refused).s, rd_show_plural(counts->refused),
             counts->refused == 1 ? "it" : "them", counts->first_refused);
}

static void print_result(struct cli *cli, const struct rebuild_result *done, bool kept)
{
    if (done->unrecorded)
        snapshot_in_warn_unrecorded(cli);
    if (done->ended_early)
        cli_warn(cli, "the log ends before that time: its last time annotation is %s",
                 aof_job_time(done->last_s).s);
    snapshot_in_report(cli, &done->counts, kept);
}

/* sink NULL: opened by the function of the options. */
static bool replay(struct cli *cli, const char *path, const struct rebuild_opts *wanted,
                   struct rd_sink *sink, uint64_t *ret_keys, struct rd_err *err)
{
    struct rebuild_opts opts = *wanted;
    struct rebuild_result done = {.advice = REBUILD_NO_ADVICE};
    bool is_capture = rebuild_stream_is(path);
    opts.now_ms = cli->began_ms;
    opts.begin = begin_reading;
    opts.at = reading_at;
    opts.ctx = cli;
    snapshot_in_watch_memory(cli);
    bool ok = is_capture ? rebuild_from_capture(&opts, path, sink, &done, err)
                         : replay_log(cli, path, &opts, sink, &done, err);
    cli_progress_end(cli);
    if (!ok) {
        print_advice(cli, done.advice);
        return false;
    }
    print_result(cli, &done, opts.keep_unknown);
    *ret_keys = done.counts.keys;
    return true;
}

static bool replay_to_spool(struct cli *cli, const char *path, const struct rebuild_opts *opts,
                            struct spool *spool, struct rd_err *err)
{
    struct rd_sink *sink;
    uint64_t keys;
    if (!spool_sink(spool, &sink, err))
        return false;
    if (replay(cli, path, opts, sink, &keys, err))
        return rd_sink_close(sink, err);
    rd_sink_abort(sink);
    return false;
}

bool snapshot_in_rebuild(struct cli *cli, const char *path, const struct rebuild_opts *wanted,
                         uint64_t *ret_keys, struct rd_err *err)
{
    static struct engine *left; /* until the process ends */
    struct rebuild_opts opts = *wanted;
    opts.leave = &left;
    return replay(cli, path, &opts, NULL, ret_keys, err);
}

/* ---- in the place of a snapshot ---- */

static bool open_server(struct cli *cli, const char *path, const struct snapshot_in_opts *opts,
                        struct spool *spool, struct rd_src **ret, struct rd_err *err)
{
    if (is_wanted(opts))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "a server has only its present data: use a log or a capture of it");
    if (!server_in_read(cli, path, &opts->server, spool, err) ||
        !spool_source(spool, path, ret, err))
        return false;
    begin_reading(cli, path, *ret, rd_src_size(*ret));
    return true;
}

bool snapshot_in_replays(const char *path, const struct snapshot_in_opts *opts, bool *ret,
                         struct rd_err *err)
{
    *ret = false;
    if (server_in_is(path))
        return true;
    *ret = opts->from == SNAPSHOT_IN_FROM_AOF || is_wanted(opts);
    return *ret || opts->from != SNAPSHOT_IN_FROM_ANY || snapshot_in_is_log(path, ret, err);
}

/* False: the warning about this input was given. A tool may open its inputs more than once. */
static bool is_first_time(struct cli *cli, const char *path)
{
    enum { BITS = 64 };
    size_t i = 0;
    while (i < cli->n_args && cli->args[i] != path)
        i++;
    if (i >= cli->n_args || i >= BITS)
        return true;
    bool first = (cli->warned_version >> i & 1) == 0;
    cli->warned_version |= UINT64_C(1) << i;
    return first;
}

static void warn_version(struct cli *cli, const char *path, struct rd_src *src)
{
    enum rdb_dialect dialect;
    int version;
    struct rd_slice s;
    if (rd_src_need(src, RDB_MAGIC_LEN, &s) == RD_SRC_OK &&
        rdb_header_parse(s, &dialect, &version) && rdb_version_known(dialect, version) &&
        version > (dialect == RDB_VALKEY ? RDB_VERSION_VALKEY_WHOLE : RDB_VERSION_REDIS_WHOLE) &&
        is_first_time(cli, path))
        cli_warn(cli, "%s: %s is read as far as its types are known", rd_src_origin(src),
                 rdb_version_text(dialect, version).s);
}

bool snapshot_in_open(struct cli *cli, const char *path, const struct snapshot_in_opts *opts,
                      struct spool *spool, struct rd_src **ret, struct rd_err *err)
{
    static const struct snapshot_in_opts all = SNAPSHOT_IN_ALL;
    bool is_log;
    if (opts == NULL)
        opts = &all;
    if (server_in_is(path))
        return open_server(cli, path, opts, spool, ret, err);
    if (!snapshot_in_replays(path, opts, &is_log, err))
        return false;
    if (!is_log) {
        if (!cli_open_in(cli, path, ret, err))
            return false;
        warn_version(cli, path, *ret);
        return true;
    }
    if (!replay_to_spool(cli, path, &opts->rebuild, spool, err) ||
        !spool_source(spool, path, ret, err))
        return false;
    begin_reading(cli, path, *ret, rd_src_size(*ret));
    return true;
}

/* Once for each input, which a tool may read more than once. */
static void warn_rest(struct cli *cli, const char *origin, uint64_t at)
{
    enum { BITS = 64 };
    size_t i = 0;
    while (i < cli->n_args && strcmp(cli->args[i], origin) != 0)
        i++;
    uint64_t bit = i < BITS ? UINT64_C(1) << i : 0;
    if ((cli->warned_rest & bit) == 0)
        cli_warn(cli, "%s: the bytes after the snapshot, from byte %" PRIu64 ", are not read",
                 origin, at);
    cli->warned_rest |= bit;
}

/* Servers pass over what follows, which may be data. Zeros are none. */
static bool check_after(struct cli *cli, struct rd_src *src, struct rd_err *err)
{
    enum rdb_dialect dialect;
    int version;
    struct rd_slice s;
    uint64_t at = rd_src_offset(src);
    enum rd_src_status status = rd_src_need(src, RDB_MAGIC_LEN, &s);
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(src));
    if (status == RD_SRC_FAIL || s.len == 0 || s.ptr[0] == 0)
        return status != RD_SRC_FAIL;
    bool commands = s.ptr[0] == '*' || s.ptr[0] == '#';
    if (!commands && !rdb_header_parse(s, &dialect, &version)) {
        if (cli != NULL)
            warn_rest(cli, rd_src_origin(src), at);
        return true;
    }
    if (cli != NULL)
        cli_hint(cli, commands ? "--input-format aof replays them, --input-format rdb uses the "
                                 "snapshot only"
                               : "--input-format rdb uses the first snapshot only");
    return rd_err_set(err, RD_ERR_USAGE, at, "%s the snapshot, from byte %" PRIu64,
                      commands ? "commands follow" : "another snapshot follows", at);
}

bool snapshot_in_check_end(struct cli *cli, struct rd_src *src, const struct snapshot_in_opts *opts,
                           const struct rdb_event *ev, struct rd_err *err)
{
    if (ev->trailer.summed && ev->trailer.stored != 0 && ev->trailer.stored != ev->trailer.computed)
        return rd_err_set(err, RD_ERR_CHECKSUM, ev->offset,
                          "stored %016" PRIx64 ", computed %016" PRIx64, ev->trailer.stored,
                          ev->trailer.computed);
    return (opts != NULL && opts->from == SNAPSHOT_IN_FROM_RDB) || check_after(cli, src, err);
}

static bool job_open(const void *ctx, const char *path, struct spool *spool, struct rd_src **ret,
                     struct rd_err *err)
{
    const struct snapshot_in_job *job = ctx;
    return snapshot_in_open(job->cli, path, job->opts, spool, ret, err);
}

static bool job_check_end(const void *ctx, struct rd_src *src, const struct rdb_event *trailer,
                          struct rd_err *err)
{
    const struct snapshot_in_job *job = ctx;
    return snapshot_in_check_end(job->cli, src, job->opts, trailer, err);
}

struct job_input snapshot_in_job(const struct snapshot_in_job *job, const char *path)
{
    static const struct job_input_ops ops = {.open = job_open, .check_end = job_check_end};
    return (struct job_input){.path = path, .ops = &ops, .ctx = job};
}

void snapshot_in_close(struct cli *cli, struct rd_src *src, struct spool *spool)
{
    if (src != NULL)
        cli_close_in(cli, src);
    spool_done(spool);
}
