/* convert - converts a snapshot or log to another format, version or dialect. */
#include "rdb/version.h"
#include "tools/cli/filter.h"
#include "tools/cli/watch.h"
#include "tools/convert/convert.h"
#include "tools/input/snapshot_in.h"
#include "tools/tools.h"

#include <unistd.h>

struct run {
    struct cli *cli;
    const char *out_path;
    bool force;
    struct filter filter;
    struct peer_opts servers;
    struct snapshot_in_opts log;
    struct convert_opts opts;
    struct convert_result result;
    struct omitted omitted;
};

/* Indexed by enum convert_target. */
static const char *const target_names[] = {"rdb", "aof", "resp", "ndjson", "csv", "sqlite"};

/* ---- the report ---- */

static void put_written(struct run *run)
{
    struct json_write *json = &run->cli->out;
    json_put_uint(json, "keys", run->result.keys);
    json_put_uint(json, "bytes", run->result.bytes);
    json_put_str(json, "format", target_names[run->opts.target]);
    if (run->result.version == 0)
        return;
    json_put_str(json, "dialect", rdb_dialect_name(run->result.dialect));
    json_put_int(json, "version", run->result.version);
}

/* On a terminal. */
static void print_written(const struct run *run)
{
    const struct convert_result *result = &run->result;
    const char *path = run->out_path;
    if (path == NULL || strcmp(path, "-") == 0 || isatty(STDERR_FILENO) != 1)
        return;
    cli_note(run->cli, "%s: %s%s%s key%s, %s%s", rd_show_plain(rd_slice_str(path)).s,
             result->version != 0 ? rdb_version_text(result->dialect, result->version).s : "",
             result->version != 0 ? ", " : "", rd_show_count(result->keys).s,
             rd_show_plural(result->keys), rd_show_bytes(result->bytes).s,
             cli_is_compressed_out(path) ? " before compression" : "");
}

/* Names the modules that the server of --for needs. */
static void warn_modules(struct cli *cli, const struct convert_needs *needs)
{
    char names[sizeof needs->names * 2] = "";
    for (size_t i = 0; i < needs->n; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i > 0 ? ", " : "",
                 needs->names[i]);
    if (needs->n > 0)
        cli_warn(cli,
                 "the output needs the module%s %s%s: a server without %s does not load it; "
                 "--not --type module leaves the data of modules out",
                 rd_show_plural(needs->n), names, needs->more ? " and others" : "",
                 needs->n == 1 ? "it" : "them");
}

static bool report(struct run *run, struct rd_err *err)
{
    if (run->cli->json)
        put_written(run);
    else
        print_written(run);
    warn_modules(run->cli, &run->result.needs);
    return omitted_report(&run->omitted, run->cli->json ? &run->cli->out : NULL, err);
}

/* ---- the tool ---- */

static bool open_out(void *ctx, bool binary, struct rd_sink **ret, struct rd_err *err)
{
    struct run *run = ctx;
    return cli_open_out(run->cli, run->out_path, run->force, binary, ret, err);
}

static bool rebuild(void *ctx, convert_open_fn *open, void *open_ctx, bool *ret_done,
                    uint64_t *ret_keys, struct rd_err *err)
{
    struct run *run = ctx;
    const char *path = run->cli->args[0];
    struct rebuild_opts opts = run->log.rebuild;
    opts.open_out = open;
    opts.out_ctx = open_ctx;
    return snapshot_in_replays(path, &run->log, ret_done, err) &&
           (!*ret_done || snapshot_in_rebuild(run->cli, path, &opts, ret_keys, err));
}

static int convert(struct run *run)
{
    const struct rd_watch watch = cli_job_watch(run->cli);
    const struct snapshot_in_job in = {.cli = run->cli, .opts = &run->log};
    struct rd_err err = {0};
    omitted_init(&run->omitted, &watch, run->cli->json);
    run->log.is_log = run->opts.from == FROM_AOF;
    if (run->opts.from == FROM_RDB || run->opts.from == FROM_NDJSON)
        run->log.from = SNAPSHOT_IN_FROM_RDB;
    run->opts.in = snapshot_in_job(&in, run->cli->args[0]);
    run->opts.filter = &run->filter;
    run->opts.omitted = &run->omitted;
    run->opts.open_out = open_out;
    run->opts.rebuild = rebuild;
    run->opts.ctx = run;
    bool ok = convert_run(&run->opts, &watch, &run->result, &err) &&
              (run->result.is_void || report(run, &err));
    omitted_done(&run->omitted);
    if (!ok) {
        omitted_hint(&watch, convert_server_name(&run->opts), &err);
        return cli_fail(run->cli, &err);
    }
    return run->result.is_void ? cli_filter_nothing(run->cli, "written") : CLI_OK;
}

/* An option that does not apply to the target, or NULL. It must not be ignored silently. */
static const char *misfit(const struct run *run)
{
    bool commands = run->opts.target == TO_RESP || run->opts.target == TO_AOF;
    bool snapshot = run->opts.target == TO_RDB;
    const struct {
        bool given, fits;
        const char *name;
    } options[] = {
        {run->opts.server >= 0, snapshot || commands, "--for"},
        {run->opts.version != 0, snapshot || commands, "--rdb-version"},
        {run->opts.dialect >= 0, snapshot || commands, "--dialect"},
        {run->opts.lossy, snapshot || commands, "--lossy"},
        {run->opts.rewrite, snapshot, "--rewrite"},
        {run->opts.restore, commands, "--restore"},
        {run->opts.replace, commands, "--replace"},
        {run->opts.max_elems != 0, commands, "--max-elements"},
        {run->opts.max_bytes != 0, commands, "--max-bytes"},
        {run->opts.meta, run->opts.target == TO_NDJSON, "--meta"},
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

static int check_options(struct run *run)
{
    bool to_stdout = run->out_path == NULL || strcmp(run->out_path, "-") == 0;
    struct rd_err err = {0};
    if (run->opts.target == TO_NOTHING)
        run->opts.target = target_of_name(run->out_path);
    if (run->opts.target == TO_NOTHING)
        return cli_usage_error(run->cli,
                               "missing output format: use --to rdb, resp, aof, ndjson, csv or "
                               "sqlite");
    if (run->cli->json && to_stdout)
        return cli_usage_error(run->cli,
                               "--json requires -o OUT: both would write to standard output");
    if (run->opts.version > 999)
        return cli_usage_error(run->cli, "RDB version %llu does not exist",
                               (unsigned long long)run->opts.version);
    if (!filter_check(&run->filter, &err))
        return cli_fail(run->cli, &err);
    const char *option = misfit(run);
    if (option != NULL)
        return cli_usage_error(run->cli, "%s cannot be used with the format %s", option,
                               target_names[run->opts.target]);
    return convert_choose_server(run->cli, &run->opts);
}

int tool_convert(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli, .opts = CONVERT_OPTS, .log = SNAPSHOT_IN_ALL};
    const struct cli_opt opts[] = {
        {.name = "to",
         .kind = CLI_ENUM,
         .arg = "FORMAT",
         .words = "rdb|aof|resp|ndjson|csv|sqlite",
         .choice = &run.opts.target,
         .help = "rdb, resp or aof (commands), ndjson, csv, sqlite"},
        FORMAT_OPTIONS(&run.opts.from),
        {.name = "output",
         .letter = 'o',
         .kind = CLI_STRING,
         .arg = "OUT",
         .string = &run.out_path,
         .help = "output file; default: standard output"},
        SNAPSHOT_IN_OPTIONS(&run.log),
        SERVER_IN_OPTIONS(&run.log.server.scan, &run.servers),
        FOR_OPTION(&run.opts.server),
        {.name = "rdb-version",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &run.opts.version,
         .help = "rdb, resp: 6 to 15 (redis), 80, 81 (valkey)"},
        {.name = "dialect",
         .kind = CLI_ENUM,
         .arg = "NAME",
         .words = "redis|valkey",
         .choice = &run.opts.dialect,
         .help = "rdb, resp: redis, or valkey (9 and later)"},
        {.name = "lossy",
         .kind = CLI_FLAG,
         .flag = &run.opts.lossy,
         .help = "omit what the target cannot hold, and name it"},
        {.name = "rewrite",
         .kind = CLI_FLAG,
         .flag = &run.opts.rewrite,
         .help = "rdb: rewrite all values instead of copying them",
         .brief = true},
        {.name = "restore",
         .kind = CLI_FLAG,
         .flag = &run.opts.restore,
         .help = "resp: RESTORE with serialized values"},
        {.name = "replace",
         .kind = CLI_FLAG,
         .flag = &run.opts.replace,
         .help = "resp: replace keys that exist",
         .brief = true},
        {.name = "max-elements",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &run.opts.max_elems,
         .help = "resp: elements per command; default 64",
         .brief = true},
        {.name = "max-bytes",
         .kind = CLI_SIZE,
         .arg = "SIZE",
         .number = &run.opts.max_bytes,
         .help = "resp: bytes per command, except for larger elements; default 64kb",
         .brief = true},
        {.name = "meta",
         .kind = CLI_FLAG,
         .flag = &run.opts.meta,
         .help = "ndjson: add version, aux fields, functions",
         .brief = true},
        {.name = "strings",
         .kind = CLI_ENUM,
         .arg = "FORM",
         .words = "utf8|hex|base64",
         .choice = &run.opts.strings,
         .help = "ndjson, csv: encoding of strings",
         .brief = true},
        {.name = "force", .kind = CLI_FLAG, .flag = &run.force, .help = "replace OUT if it exists"},
        FILTER_OPTIONS(&run.filter),
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
    cli_filter_init(&run.filter, cli, cli_now_ms());
    peer_opts_init(&run.servers);
    run.log.server.servers = &run.servers;
    if (cli_parse(cli, &usage, argc, argv, &status)) {
        status = peer_choose_argument(cli, &run.servers, &usage);
        if (status == CLI_OK) {
            status = check_options(&run);
        }
        if (status == CLI_OK)
            status = convert(&run);
    }
    peer_opts_done(&run.servers);
    filter_done(&run.filter);
    return status;
}
