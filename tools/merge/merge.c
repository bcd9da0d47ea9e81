/* merge - merges several snapshots into one. */
#include "base/mem.h"
#include "jobs/merge.h"
#include "rdb/version.h"
#include "tools/cli/filter.h"
#include "tools/cli/watch.h"
#include "tools/input/snapshot_in.h"
#include "tools/tools.h"

#include <errno.h>
#include <sys/random.h>

struct run {
    struct cli *cli;
    const char *out_path;
    bool force;
    struct snapshot_in_opts log;
    struct filter filter;
    struct merge_opts opts;
    struct omitted omitted;
    struct merge_result result;
};

static int report_conflicts(struct cli *cli, const struct merge_result *result)
{
    if (result->conflicts > 0)
        cli_warn(cli, "%s key%s in more than one input; nothing was written",
                 rd_show_count(result->conflicts).s, rd_show_plural(result->conflicts));
    if (result->function_conflicts > 0)
        cli_warn(cli, "%s function%s with the same name and different code; nothing was written",
                 rd_show_count(result->function_conflicts).s,
                 rd_show_plural(result->function_conflicts));
    if (!cli->quiet)
        cli_note(cli, "  hint: use --on-conflict first or last");
    if (cli->json) {
        json_put_uint(&cli->out, "conflicts", result->conflicts);
        json_put_uint(&cli->out, "function_conflicts", result->function_conflicts);
        json_put_uint(&cli->out, "keys", 0);
    }
    return CLI_FINDINGS;
}

/* ---- the report ---- */

static void put_inputs(const struct run *run)
{
    struct json_write *json = &run->cli->out;
    json_key(json, "inputs");
    json_array(json);
    for (size_t i = 0; i < run->result.n_inputs; i++) {
        const struct merge_count *in = &run->result.inputs[i];
        json_obj(json);
        json_put_str(json, "file", run->opts.inputs[i].path);
        json_put_str(json, "dialect", rdb_dialect_name(in->dialect));
        json_put_int(json, "version", in->version);
        json_put_uint(json, "keys", in->seen);
        json_put_uint(json, "taken", in->keys);
        json_end(json);
    }
    json_end(json);
}

static void print_report(const struct run *run, uint64_t bytes)
{
    const struct merge_result *result = &run->result;
    const char *path = run->out_path;
    for (size_t i = 0; i < result->n_inputs; i++)
        cli_note(run->cli, "%s: %s of %s key%s", run->opts.inputs[i].path,
                 rd_show_count(result->inputs[i].keys).s, rd_show_count(result->inputs[i].seen).s,
                 rd_show_plural(result->inputs[i].seen));
    if (!run->cli->json && path != NULL && strcmp(path, "-") != 0)
        cli_note(run->cli, "%s: %s, %s key%s, %s%s", rd_show_plain(rd_slice_str(path)).s,
                 rdb_version_text(result->dialect, result->version).s,
                 rd_show_count(result->keys).s, rd_show_plural(result->keys),
                 rd_show_bytes(bytes).s, cli_is_compressed_out(path) ? " before compression" : "");
}

static bool report(struct run *run, uint64_t bytes, struct rd_err *err)
{
    const struct merge_result *result = &run->result;
    struct json_write *json = &run->cli->out;
    print_report(run, bytes);
    if (!run->cli->json)
        return omitted_report(&run->omitted, NULL, err);
    json_put_uint(json, "keys", result->keys);
    json_put_uint(json, "bytes", bytes);
    json_put_str(json, "dialect", rdb_dialect_name(result->dialect));
    json_put_int(json, "version", result->version);
    json_put_uint(json, "conflicts", result->conflicts);
    json_put_uint(json, "function_conflicts", result->function_conflicts);
    put_inputs(run);
    return omitted_report(&run->omitted, json, err);
}

/* ---- the tool ---- */

static bool work(struct run *run, const struct rd_watch *watch, struct rd_err *err)
{
    if (getrandom(run->opts.key, sizeof run->opts.key, 0) < 0)
        return rd_err_sys(err, errno, "cannot get random bytes");
    if (!cli_open_out(run->cli, run->out_path, run->force, true, &run->opts.out, err) ||
        !merge_run(&run->opts, watch, &run->result, err))
        return false;
    if (run->result.refused || run->result.is_void)
        return true;
    struct rd_sink *out = run->opts.out;
    uint64_t bytes = rd_sink_offset(out);
    run->opts.out = NULL;
    return rd_sink_close(out, err) && report(run, bytes, err);
}

static bool choose_inputs(struct run *run, const struct snapshot_in_job *in, struct rd_err *err)
{
    size_t n = run->cli->n_args;
    struct job_input *inputs = rd_calloc(n, sizeof *inputs);
    if (inputs == NULL)
        return rd_err_nomem(err, n * sizeof *inputs);
    for (size_t i = 0; i < n; i++)
        inputs[i] = snapshot_in_job(in, run->cli->args[i]);
    run->opts.inputs = inputs;
    run->opts.n_inputs = n;
    return true;
}

static int finish(struct run *run)
{
    if (run->result.refused)
        return report_conflicts(run->cli, &run->result);
    return run->result.is_void ? cli_filter_nothing(run->cli, "written") : CLI_OK;
}

static int merge(struct run *run)
{
    const struct rd_watch watch = cli_job_watch(run->cli);
    const struct snapshot_in_job in = {.cli = run->cli, .opts = &run->log};
    struct rd_err err = {0};
    omitted_init(&run->omitted, &watch, run->cli->json);
    run->opts.omitted = &run->omitted;
    bool ok = choose_inputs(run, &in, &err) && work(run, &watch, &err);
    omitted_done(&run->omitted);
    rd_sink_abort(run->opts.out);
    if (!ok)
        omitted_hint(&watch, NULL, &err);
    int status = ok ? finish(run) : cli_fail(run->cli, &err);
    merge_result_done(&run->result);
    rd_free((void *)(uintptr_t)run->opts.inputs);
    return status;
}

static int check_options(struct run *run)
{
    struct cli *cli = run->cli;
    struct rd_err err = {0};
    size_t n_stdin = 0;
    bool to_stdout = run->out_path == NULL || strcmp(run->out_path, "-") == 0;
    for (size_t i = 0; i < cli->n_args; i++)
        n_stdin += strcmp(cli->args[i], "-") == 0;
    if (n_stdin > 1)
        return cli_usage_error(cli, "standard input can be used only once");
    if (cli->json && to_stdout)
        return cli_usage_error(cli, "--json requires -o OUT: both would write to standard output");
    if (run->opts.version > MERGE_VERSION_MAX)
        return cli_usage_error(cli, "RDB version %llu does not exist",
                               (unsigned long long)run->opts.version);
    return filter_check(&run->filter, &err) ? CLI_OK : cli_fail(cli, &err);
}

int tool_merge(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli, .opts.policy = MERGE_FAIL, .log = SNAPSHOT_IN_ALL};
    run.opts.filter = &run.filter;
    const struct cli_opt opts[] = {
        {.name = "output",
         .letter = 'o',
         .kind = CLI_STRING,
         .arg = "OUT",
         .string = &run.out_path,
         .help = "output file; default: standard output"},
        {.name = "on-conflict",
         .kind = CLI_ENUM,
         .arg = "WHICH",
         .words = "first|last|fail",
         .choice = &run.opts.policy,
         .help = "which input wins for a key in several; default: fail"},
        {.name = "db-map",
         .kind = CLI_EACH,
         .arg = "[IN:]FROM=TO",
         .each = merge_maps_add,
         .ctx = &run.opts.maps,
         .help = "move the keys of database FROM, of input IN, to TO"},
        {.name = "rdb-version",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &run.opts.version,
         .help = "default: the newest version of the inputs"},
        {.name = "lossy",
         .kind = CLI_FLAG,
         .flag = &run.opts.lossy,
         .help = "omit what the version cannot hold, and name it"},
        {.name = "force", .kind = CLI_FLAG, .flag = &run.force, .help = "replace OUT if it exists"},
        FILTER_OPTIONS(&run.filter),
        SNAPSHOT_IN_FROM_OPTION(&run.log),
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] IN… [-o OUT]",
        .about =
            "Merges snapshots and logs into one snapshot.\nExit status 1: keys are in conflict.",
        .opts = opts,
        .min_args = 1,
        .max_args = CLI_MANY,
        .example = "redoubt merge master-1.rdb master-2.rdb master-3.rdb -o all.rdb",
    };
    int status;
    cli_filter_init(&run.filter, cli, cli_now_ms());
    if (cli_parse(cli, &usage, argc, argv, &status)) {
        status = check_options(&run);
        if (status == CLI_OK)
            status = merge(&run);
    }
    filter_done(&run.filter);
    return status;
}
