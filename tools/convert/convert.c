/* convert - converts a snapshot or log to another format, version or dialect. */
#include "rdb/version.h"
#include "tools/convert/convert.h"
#include "jobs/proof.h"
#include "tools/cli/watch.h"
#include "tools/input/server_in.h"
#include "tools/tools.h"

#include <unistd.h>

enum { TEXTS = 64, PLAIN = 64 }; /* strings of a value, and keys, per call */

static bool job_adopt(const struct job *job, struct rd_err *err)
{
    rd_err_adopt(err, rdb_reader_err(job->reader));
    return false;
}

/* With a filter: whether the event describes keys that may have been removed. */
static bool is_about_all_keys(const struct job *job, const struct rdb_event *ev)
{
    return job->target == TO_RDB &&
           (ev->kind == RDB_DB_SIZE || ev->kind == RDB_SLOT ||
            (ev->kind == RDB_AUX && rd_slice_is(ev->aux.name, "slot-info")));
}

static bool skip_value(struct job *job, struct rd_err *err)
{
    job->taken = true;
    return job->value != NULL || rdb_reader_skip_value(job->reader) == RDB_EVENT ||
           job_adopt(job, err);
}

static bool wants(struct job *job, const struct rdb_event *key, bool *ret, struct rd_err *err)
{
    if (job->value == NULL)
        return sized_wants(&job->sized, key, ret, err);
    *ret =
        filter_wants(&job->filter, key) && filter_wants_size(&job->filter, stage_size(job->value));
    return true;
}

/* A wanted key, after the field that belongs to it. */
static bool put_key(struct job *job, const struct rdb_event *key, struct rd_err *err)
{
    struct rdb_event before;
    job->keys++;
    return (!rdb_beside_keep(&job->beside, key, &before) || job->put(job, &before, err)) &&
           job->put(job, key, err);
}

bool job_put(struct job *job, const struct rdb_event *ev, struct rd_err *err)
{
    bool wanted = true, is_key = ev->kind == RDB_KEY;
    if (is_key)
        job->taken = false;
    else if (!rdb_beside_wants(&job->beside, ev))
        return true;
    if (filter_active(&job->filter)) {
        if (is_key && !wants(job, ev, &wanted, err))
            return false;
        if (!wanted) {
            rdb_beside_drop(&job->beside);
            return skip_value(job, err);
        }
        if (is_about_all_keys(job, ev))
            return true;
    }
    return is_key ? put_key(job, ev, err) : job->put(job, ev, err);
}

bool job_put_run(struct job *job, const struct rdb_event *ev, struct rd_err *err)
{
    struct rdb_text texts[TEXTS];
    struct rdb_stream_id id;
    size_t n;
    bool elem = ev->kind == RDB_ELEM && !ev->elem.str.more;
    if (!job_put(job, ev, err))
        return false;
    if (RD_LIKELY(!elem) || job->put_texts == NULL || job->recoder != NULL)
        return true;
    while ((n = rdb_reader_texts(job->reader, texts, TEXTS)) > 0)
        if (!job->put_texts(job, texts, n, err))
            return false;
    while ((n = rdb_plain_entry(job->reader, &id, texts, TEXTS)) > 0)
        if (!job->put_entry(job, id, texts, n, err))
            return false;
    return true;
}

/* Payloads are built from one value at a time. */
bool job_put_plain_run(struct job *job, uint64_t db, uint64_t until, struct rd_err *err)
{
    struct rdb_plain keys[PLAIN];
    size_t n;
    if (job->put_plain == NULL || job->restore || filter_active(&job->filter))
        return true;
    while ((n = rdb_plain_take(job->reader, until, keys, PLAIN)) > 0) {
        job->keys += n;
        if (!job->put_plain(job, db, keys, n, err))
            return false;
    }
    return true;
}

bool job_copy_value(struct job *job, struct rd_sink *to, struct rd_err *err)
{
    job->taken = true;
    if (job->value != NULL)
        return stage_move(job->value, to, err);
    return rdb_reader_copy_value(job->reader, to) == RDB_EVENT || job_adopt(job, err);
}

void job_choose_target(const struct job *job, enum rdb_dialect *ret_dialect, int *ret_version)
{
    *ret_dialect = job->in_dialect;
    *ret_version = (int)job->version;
    if (job->dialect >= 0)
        *ret_dialect = (enum rdb_dialect)job->dialect;
    else if (job->version != 0)
        *ret_dialect = job->version < RDB_VERSION_VALKEY_MIN ? RDB_REDIS : RDB_VALKEY;
    if (job->version == 0 && *ret_dialect == job->in_dialect)
        *ret_version = job->in_version;
}

/* ---- snapshot input ---- */

/* Whether values are copied unchanged to an output that has its own checksum. */
static bool seals(const struct job *job)
{
    return (job->target == TO_RDB && !job->rewrite) || job->restore;
}

static bool check_end(struct job *job, const struct rdb_event *trailer, struct rd_err *err)
{
    const char *path = job->path;
    return snapshot_in_check_end(job->cli, job->src, &job->log, trailer, err) &&
           (!seals(job) || proof_check(&job->watch, path, &job->spool, job->src, trailer, err));
}

struct rdb_reader_opts job_reader_opts(const struct job *job)
{
    struct rdb_reader_opts opts = RDB_READER_OPTS(.long_packed = job->target == TO_SQLITE);
    opts.detail = job->target == TO_CSV ? RDB_DETAIL_CHECK : RDB_DETAIL_ELEMENTS;
    return opts;
}

static bool from_snapshot(struct job *job, struct rd_err *err)
{
    struct rdb_reader_opts opts = job_reader_opts(job);
    opts.attach_meta = true;
    const char *path = job->path;
    if ((seals(job) && !proof_keep(&job->watch, path, &job->spool, &job->src, err)) ||
        !sized_begin(&job->sized, &job->filter, &job->watch, path, &job->spool, &job->src, err) ||
        !rdb_reader_new(&job->reader, job->src, &opts, err))
        return false;
    struct rdb_event ev;
    enum rdb_status status;
    bool whole = !convert_parts_possible(job);
    while ((status = rdb_reader_next(job->reader, &ev)) == RDB_EVENT) {
        cli_tick(job->cli);
        if (ev.kind == RDB_HEADER) {
            job->in_dialect = ev.header.dialect;
            job->in_version = ev.header.version;
        }
        if (RD_UNLIKELY(!whole) && ev.kind == RDB_KEY && ev.raw.len > 0) {
            whole = true;
            if (!convert_parts_run(job, &ev, &status, err))
                return false;
            if (status != RDB_EVENT)
                break;
        }
        if (ev.kind == RDB_TRAILER && !check_end(job, &ev, err))
            return false;
        if (!job_put_run(job, &ev, err))
            return false;
    }
    return status == RDB_END || job_adopt(job, err);
}

/* ---- JSON lines output ---- */

static bool begin_lines(struct job *job, struct rd_err *err)
{
    const struct ndjson_opts opts = {.strings = (enum json_form)job->strings, .meta = job->meta};
    return ndjson_new(&job->lines, job->out, &opts, err);
}

static bool put_lines(struct job *job, const struct rdb_event *ev, struct rd_err *err)
{
    return convert_view_note(job, ev, err) && ndjson_put(job->lines, ev, err);
}

static bool put_line_texts(struct job *job, const struct rdb_text *texts, size_t n,
                           struct rd_err *err)
{
    return ndjson_put_texts(job->lines, texts, n, err);
}

static bool put_line_plain(struct job *job, uint64_t db, const struct rdb_plain *keys, size_t n,
                           struct rd_err *err)
{
    return ndjson_put_plain(job->lines, db, keys, n, err);
}

static bool put_line_entry(struct job *job, struct rdb_stream_id id, const struct rdb_text *texts,
                           size_t n, struct rd_err *err)
{
    return ndjson_put_entry(job->lines, id, texts, n, err);
}

/* ---- the tool ---- */

struct target_ops {
    bool (*begin)(struct job *job, struct rd_err *err);
    bool (*put)(struct job *job, const struct rdb_event *ev, struct rd_err *err);
    bool (*end)(struct job *job, struct rd_err *err);
    bool (*put_texts)(struct job *job, const struct rdb_text *texts, size_t n, struct rd_err *err);
    bool (*put_plain)(struct job *job, uint64_t db, const struct rdb_plain *keys, size_t n,
                      struct rd_err *err);
    bool (*put_entry)(struct job *job, struct rdb_stream_id id, const struct rdb_text *texts,
                      size_t n, struct rd_err *err);
};

static const struct target_ops targets[] = {
    [TO_RDB] = {NULL, convert_put_rdb, convert_end_rdb, NULL, NULL, NULL},
    [TO_AOF] = {convert_begin_commands, convert_put_commands, convert_end_commands,
                convert_put_command_texts, convert_put_command_plain, convert_put_command_entry},
    [TO_RESP] = {convert_begin_commands, convert_put_commands, convert_end_commands,
                 convert_put_command_texts, convert_put_command_plain, convert_put_command_entry},
    [TO_NDJSON] = {begin_lines, put_lines, NULL, put_line_texts, put_line_plain, put_line_entry},
    [TO_CSV] = {convert_begin_csv, convert_put_csv, NULL, NULL, NULL, NULL},
    [TO_SQLITE] = {convert_begin_rows, convert_put_rows, NULL, convert_put_row_texts,
                   convert_put_row_plain, convert_put_row_entry},
};

/* Detects the input format by its first bytes: JSON lines begin with a brace. A log has been
 * converted to a snapshot before. */
static bool run_input(struct job *job, struct rd_err *err)
{
    struct rd_slice s;
    if (rd_src_need(job->src, 5, &s) == RD_SRC_FAIL) {
        rd_err_adopt(err, rd_src_err(job->src));
        return false;
    }
    if (job->input == FROM_NDJSON || (job->input == FROM_ANY && s.len > 0 && s.ptr[0] == '{'))
        return convert_from_lines(job, err);
    if (job->strings != JSON_UTF8 && job->target != TO_NDJSON && job->target != TO_CSV)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "--strings applies to JSON lines only");
    return from_snapshot(job, err);
}

bool job_begin_target(struct job *job, struct rd_err *err)
{
    const struct target_ops *ops = &targets[job->target];
    job->put = ops->put;
    job->put_texts = ops->put_texts;
    job->put_plain = ops->put_plain;
    job->put_entry = ops->put_entry;
    return ops->begin == NULL || ops->begin(job, err);
}

void job_free_target(struct job *job)
{
    ndjson_free(job->lines);
    convert_free_csv(job->csv);
    rows_free(job->rows);
    rdb_commands_free(job->commands);
    rdb_writer_free(job->writer);
    rdb_writer_free(job->recoder);
    stage_done(&job->payload);
    rd_buf_done(&job->key_meta);
    rd_buf_done(&job->module_key);
    rd_buf_done(&job->view.name);
}

/* Indexed by enum target. */
static const char *const target_names[] = {"rdb", "aof", "resp", "ndjson", "csv", "sqlite"};

static void put_written(const struct job *job, uint64_t bytes)
{
    struct json_write *json = &job->cli->out;
    enum rdb_dialect dialect = RDB_REDIS;
    int version = 0;
    if (job->target == TO_RDB)
        job_choose_target(job, &dialect, &version);
    json_put_uint(json, "keys", job->keys);
    json_put_uint(json, "bytes", bytes);
    json_put_str(json, "format", target_names[job->target]);
    if (version == 0)
        return;
    json_put_str(json, "dialect", rdb_dialect_name(dialect));
    json_put_int(json, "version", version);
}

/* On a terminal. */
static void print_written(const struct job *job, uint64_t bytes)
{
    enum rdb_dialect dialect = RDB_REDIS;
    int version = 0;
    const char *path = job->out_path;
    if (path == NULL || strcmp(path, "-") == 0 || isatty(STDERR_FILENO) != 1)
        return;
    if (job->target == TO_RDB)
        job_choose_target(job, &dialect, &version);
    cli_note(job->cli, "%s: %s%s%s key%s, %s%s", rd_show_plain(rd_slice_str(path)).s,
             version != 0 ? rdb_version_text(dialect, version).s : "", version != 0 ? ", " : "",
             rd_show_count(job->keys).s, rd_show_plural(job->keys), rd_show_bytes(bytes).s,
             cli_is_compressed_out(path) ? " before compression" : "");
}

static bool finish(struct job *job, struct rd_err *err)
{
    uint64_t bytes = rd_sink_offset(job->out);
    if (!omitted_end(job->omitted, err))
        return false;
    struct rd_sink *out = job->out;
    job->out = NULL;
    if (!rd_sink_close(out, err))
        return false;
    if (job->target == TO_SQLITE)
        bytes = job->database_size;
    if (job->cli->json) {
        put_written(job, bytes);
    } else {
        print_written(job, bytes);
    }
    convert_warn_modules(job);
    return omitted_report(job->omitted, job->cli->json ? &job->cli->out : NULL, err);
}

static bool open_out(struct job *job, struct rd_err *err)
{
    bool binary = job->target != TO_NDJSON && job->target != TO_CSV;
    return cli_open_out(job->cli, job->out_path, job->force, binary, &job->out, err) &&
           (job->target != TO_SQLITE || convert_open_database(job, err));
}

/* For struct rebuild_opts. */
static bool open_rebuilt(void *ctx, struct rd_sink **ret, struct rd_err *err)
{
    struct job *job = ctx;
    bool ok = open_out(job, err);
    *ret = job->out;
    return ok;
}

/* Whether the snapshot that is built from a log is the output as it is. */
static bool is_rebuilt(const struct job *job)
{
    return job->target == TO_RDB && !job->rewrite && job->version == 0 && job->dialect < 0 &&
           job->server < 0 && job->strings == JSON_UTF8 && !filter_active(&job->filter);
}

static bool rebuild_log(struct job *job, struct rd_err *err)
{
    struct rebuild_opts opts = job->log.rebuild;
    opts.open_out = open_rebuilt;
    opts.out_ctx = job;
    return snapshot_in_rebuild(job->cli, job->path, &opts, &job->keys, err) && finish(job, err);
}

static bool work(struct job *job, struct rd_err *err)
{
    const char *path = job->path;
    const struct target_ops *ops = &targets[job->target];
    bool replays = false;
    job->log.is_log = job->input == FROM_AOF;
    if (job->input == FROM_RDB || job->input == FROM_NDJSON)
        job->log.from = SNAPSHOT_IN_FROM_RDB;
    if (is_rebuilt(job) && !snapshot_in_replays(path, &job->log, &replays, err))
        return false;
    if (replays)
        return rebuild_log(job, err);
    if (!snapshot_in_open(job->cli, path, &job->log, &job->spool, &job->src, err) ||
        !open_out(job, err))
        return false;
    bool ok = job_begin_target(job, err) && run_input(job, err);
    job->is_void = ok && job->keys == 0 && filter_active(&job->filter) && !job->may_be_empty;
    if (job->is_void)
        return true;
    ok = ok && (ops->end == NULL || ops->end(job, err));
    if (!ok) {
        rd_err_origin(err, rd_src_origin(job->src));
        return false;
    }
    return finish(job, err);
}

bool convert_run(struct job *job, struct rd_err *err)
{
    struct omitted omitted;
    omitted_init(&omitted, &job->watch, job->cli->json);
    job->omitted = &omitted;
    job->beside = (struct rdb_beside){.no_modules = !filter_may_want_modules(&job->filter),
                                      OMITTED_CALLBACK(&omitted)};
    bool ok = work(job, err);
    omitted_done(&omitted);
    job_free_target(job);
    rdb_reader_free(job->reader);
    sized_end(&job->sized);
    rd_sink_abort(job->out);
    snapshot_in_close(job->cli, job->src, &job->spool);
    return ok;
}

static int run(struct job *job)
{
    struct rd_err err = {0};
    if (!convert_run(job, &err)) {
        omitted_hint(&job->watch, convert_server_name(job), &err);
        return cli_fail(job->cli, &err);
    }
    return job->is_void ? cli_filter_nothing(job->cli, "written") : CLI_OK;
}

/* An option that does not apply to the target, or NULL. It must not be ignored silently. */
static const char *misfit(const struct job *job)
{
    bool commands = job->target == TO_RESP || job->target == TO_AOF;
    bool snapshot = job->target == TO_RDB;
    const struct {
        bool given, fits;
        const char *name;
    } options[] = {
        {job->server >= 0, snapshot || commands, "--for"},
        {job->version != 0, snapshot || commands, "--rdb-version"},
        {job->dialect >= 0, snapshot || commands, "--dialect"},
        {job->lossy, snapshot || commands, "--lossy"},
        {job->rewrite, snapshot, "--rewrite"},
        {job->restore, commands, "--restore"},
        {job->replace, commands, "--replace"},
        {job->max_elems != 0, commands, "--max-elements"},
        {job->max_bytes != 0, commands, "--max-bytes"},
        {job->meta, job->target == TO_NDJSON, "--meta"},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && !options[i].fits)
            return options[i].name;
    return NULL;
}

/* The format that the name of the output ends in, before the end that asks for compression. */
static int target_of_name(const char *path)
{
    for (int i = 0; i < TO_NOTHING; i++)
        if (cli_name_ends(path, target_names[i]))
            return i;
    if (cli_name_ends(path, "db"))
        return TO_SQLITE;
    return cli_name_ends(path, "jsonl") ? TO_NDJSON : TO_NOTHING;
}

static int check_options(struct job *job)
{
    bool to_stdout = job->out_path == NULL || strcmp(job->out_path, "-") == 0;
    struct rd_err err = {0};
    if (job->target == TO_NOTHING)
        job->target = target_of_name(job->out_path);
    if (job->target == TO_NOTHING)
        return cli_usage_error(job->cli,
                               "missing output format: use --to rdb, resp, aof, ndjson, csv or "
                               "sqlite");
    if (job->cli->json && to_stdout)
        return cli_usage_error(job->cli,
                               "--json requires -o OUT: both would write to standard output");
    if (job->version > 999)
        return cli_usage_error(job->cli, "RDB version %llu does not exist",
                               (unsigned long long)job->version);
    if (!filter_check(&job->filter, &err))
        return cli_fail(job->cli, &err);
    const char *option = misfit(job);
    if (option != NULL)
        return cli_usage_error(job->cli, "%s cannot be used with the format %s", option,
                               target_names[job->target]);
    return convert_choose_server(job);
}

struct job convert_defaults(struct cli *cli)
{
    return (struct job){.cli = cli,
                        .watch = cli_job_watch(cli),
                        .target = TO_NOTHING,
                        .input = FROM_ANY,
                        .dialect = -1,
                        .server = -1,
                        .log = SNAPSHOT_IN_ALL};
}

int tool_convert(struct cli *cli, int argc, char **argv)
{
    struct job job = convert_defaults(cli);
    const struct cli_opt opts[] = {
        {.name = "to",
         .kind = CLI_ENUM,
         .arg = "FORMAT",
         .words = "rdb|aof|resp|ndjson|csv|sqlite",
         .choice = &job.target,
         .help = "rdb, resp or aof (commands), ndjson, csv, sqlite"},
        FORMAT_OPTIONS(&job.input),
        {.name = "output",
         .letter = 'o',
         .kind = CLI_STRING,
         .arg = "OUT",
         .string = &job.out_path,
         .help = "output file; default: standard output"},
        SNAPSHOT_IN_OPTIONS(&job.log),
        SERVER_IN_OPTIONS(&job.log.server.scan, &job.servers),
        FOR_OPTION(&job.server),
        {.name = "rdb-version",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &job.version,
         .help = "rdb, resp: 6 to 15 (redis), 80, 81 (valkey)"},
        {.name = "dialect",
         .kind = CLI_ENUM,
         .arg = "NAME",
         .words = "redis|valkey",
         .choice = &job.dialect,
         .help = "rdb, resp: redis, or valkey (9 and later)"},
        {.name = "lossy",
         .kind = CLI_FLAG,
         .flag = &job.lossy,
         .help = "omit what the target cannot hold, and name it"},
        {.name = "rewrite",
         .kind = CLI_FLAG,
         .flag = &job.rewrite,
         .help = "rdb: rewrite all values instead of copying them",
         .brief = true},
        {.name = "restore",
         .kind = CLI_FLAG,
         .flag = &job.restore,
         .help = "resp: RESTORE with serialized values"},
        {.name = "replace",
         .kind = CLI_FLAG,
         .flag = &job.replace,
         .help = "resp: replace keys that exist",
         .brief = true},
        {.name = "max-elements",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &job.max_elems,
         .help = "resp: elements per command; default 64",
         .brief = true},
        {.name = "max-bytes",
         .kind = CLI_SIZE,
         .arg = "SIZE",
         .number = &job.max_bytes,
         .help = "resp: bytes per command, except for larger elements; default 64kb",
         .brief = true},
        {.name = "meta",
         .kind = CLI_FLAG,
         .flag = &job.meta,
         .help = "ndjson: add version, aux fields, functions",
         .brief = true},
        {.name = "strings",
         .kind = CLI_ENUM,
         .arg = "FORM",
         .words = "utf8|hex|base64",
         .choice = &job.strings,
         .help = "ndjson, csv: encoding of strings",
         .brief = true},
        {.name = "force", .kind = CLI_FLAG, .flag = &job.force, .help = "replace OUT if it exists"},
        FILTER_OPTIONS(&job.filter),
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "[--to FORMAT] [OPTION…] IN [-o OUT]",
        .about = "Converts a snapshot, a log or JSON lines to another format or version.",
        .opts = opts,
        .max_args = 1,
        .example = "redoubt convert --to ndjson dump.rdb | jq -c 'select(.type == \"hash\")'",
    };
    int status;
    cli_filter_init(&job.filter, cli, cli_now_ms());
    peer_opts_init(&job.servers);
    job.log.server.servers = &job.servers;
    if (cli_parse(cli, &usage, argc, argv, &status)) {
        status = peer_choose_argument(cli, &job.servers, &usage);
        if (status == CLI_OK) {
            job.path = cli->args[0];
            status = check_options(&job);
        }
        if (status == CLI_OK)
            status = run(&job);
    }
    peer_opts_done(&job.servers);
    filter_done(&job.filter);
    return status;
}
