/* merge - merges several snapshots into one. */
#include "rdb/version.h"
#include "tools/cli/watch.h"
#include "tools/merge/merge.h"
#include "tools/tools.h"

#include "base/mem.h"

#include <errno.h>
#include <sys/random.h>

static bool begin(struct merge *merge, struct rd_err *err)
{
    struct cli *cli = merge->cli;
    merge->inputs = rd_calloc(cli->n_args, sizeof *merge->inputs);
    if (merge->inputs == NULL)
        return rd_err_nomem(err, cli->n_args * sizeof *merge->inputs);
    merge->n_inputs = cli->n_args;
    for (size_t i = 0; i < cli->n_args; i++)
        merge->inputs[i].path = cli->args[i];
    if (getrandom(merge->hashing.key, sizeof merge->hashing.key, 0) < 0)
        return rd_err_sys(err, errno, "cannot get random bytes");
    return true;
}

/* ---- conflicts ---- */

/* Reads the name again. The caller may ignore an error, because the name is only for a report. */
static void name_conflict(struct merge *merge, const struct merge_conflict *conflict)
{
    struct merge_input *in = &merge->inputs[conflict->again.input];
    struct rdb_event ev;
    char quoted[200];
    /* The reader needs the header to read a record. */
    if (merge_open(merge, in, NULL) && rdb_reader_next(in->in.reader, &ev) == RDB_EVENT &&
        again_seek(&in->in, conflict->again.record, conflict->again.db, &ev, NULL)) {
        rd_err_quote(quoted, sizeof quoted, ev.key.name);
        cli_warn(merge->cli, "db %llu, key %s: in %s and in %s",
                 (unsigned long long)conflict->again.db, quoted,
                 merge->inputs[conflict->first.input].path, in->path);
    }
    cli_progress_end(merge->cli);
    if (!in->kept)
        again_close(&in->in);
}

static int refuse_conflicts(struct merge *merge)
{
    struct cli *cli = merge->cli;
    for (size_t i = 0; i < merge->n_examples; i++)
        name_conflict(merge, &merge->examples[i]);
    if (merge->conflicts > 0)
        cli_warn(cli, "%s key%s in more than one input; nothing was written",
                 rd_show_count(merge->conflicts).s, rd_show_plural(merge->conflicts));
    if (merge->lib_conflicts > 0)
        cli_warn(cli, "%s function%s with the same name and different code; nothing was written",
                 rd_show_count(merge->lib_conflicts).s, rd_show_plural(merge->lib_conflicts));
    if (!cli->quiet)
        cli_note(cli, "  hint: use --on-conflict first or last");
    if (cli->json) {
        json_put_uint(&cli->out, "conflicts", merge->conflicts);
        json_put_uint(&cli->out, "function_conflicts", merge->lib_conflicts);
        json_put_uint(&cli->out, "keys", 0);
    }
    return CLI_FINDINGS;
}

/* ---- the report ---- */

static void put_inputs(struct merge *merge)
{
    struct json_write *json = &merge->cli->out;
    json_key(json, "inputs");
    json_array(json);
    for (size_t i = 0; i < merge->n_inputs; i++) {
        const struct merge_input *in = &merge->inputs[i];
        json_obj(json);
        json_put_str(json, "file", in->path);
        json_put_str(json, "dialect", rdb_dialect_name(in->dialect));
        json_put_int(json, "version", in->version);
        json_put_uint(json, "keys", in->seen);
        json_put_uint(json, "taken", in->keys);
        json_end(json);
    }
    json_end(json);
}

static bool report(struct merge *merge, uint64_t bytes, struct rd_err *err)
{
    struct cli *cli = merge->cli;
    for (size_t i = 0; i < merge->n_inputs; i++)
        cli_note(cli, "%s: %s of %s key%s", merge->inputs[i].path,
                 rd_show_count(merge->inputs[i].keys).s, rd_show_count(merge->inputs[i].seen).s,
                 rd_show_plural(merge->inputs[i].seen));
    if (!cli->json && merge->out_path != NULL && strcmp(merge->out_path, "-") != 0)
        cli_note(cli, "%s: %s, %s key%s, %s%s", rd_show_plain(rd_slice_str(merge->out_path)).s,
                 rdb_version_text(merge->dialect, merge->target).s, rd_show_count(merge->total).s,
                 rd_show_plural(merge->total), rd_show_bytes(bytes).s,
                 cli_is_compressed_out(merge->out_path) ? " before compression" : "");
    if (!cli->json)
        return omitted_report(&merge->omitted, NULL, err);
    json_put_uint(&cli->out, "keys", merge->total);
    json_put_uint(&cli->out, "bytes", bytes);
    json_put_str(&cli->out, "dialect", rdb_dialect_name(merge->dialect));
    json_put_int(&cli->out, "version", merge->target);
    json_put_uint(&cli->out, "conflicts", merge->conflicts);
    json_put_uint(&cli->out, "function_conflicts", merge->lib_conflicts);
    put_inputs(merge);
    return omitted_report(&merge->omitted, &cli->out, err);
}

/* ---- the tool ---- */

static bool write_out(struct merge *merge, struct rd_err *err)
{
    if (!merge_write(merge, err))
        return false;
    merge->is_void = merge->total == 0 && filter_active(&merge->filter);
    if (merge->is_void)
        return true;
    uint64_t bytes = rd_sink_offset(merge->out);
    if (!omitted_end(&merge->omitted, err))
        return false;
    struct rd_sink *out = merge->out;
    merge->out = NULL;
    if (!rd_sink_close(out, err))
        return false;
    return report(merge, bytes, err);
}

static int run(struct merge *merge)
{
    struct rd_err err = {0};
    int status = CLI_OK;
    merge->watch = cli_job_watch(merge->cli);
    omitted_init(&merge->omitted, &merge->watch, merge->cli->json);
    bool ok = begin(merge, &err) &&
              cli_open_out(merge->cli, merge->out_path, merge->force, true, &merge->out, &err) &&
              merge_scan(merge, &err);
    if (ok && merge->policy == MERGE_FAIL && merge->conflicts + merge->lib_conflicts > 0)
        status = refuse_conflicts(merge);
    else
        ok = ok && write_out(merge, &err);
    rdb_writer_free(merge->writer);
    omitted_done(&merge->omitted);
    rd_sink_abort(merge->out);
    for (size_t i = 0; i < merge->n_inputs; i++)
        again_close(&merge->inputs[i].in);
    rd_free(merge->inputs);
    sort_done(&merge->keys);
    sort_done(&merge->losers);
    rd_buf_done(&merge->libs);
    if (!ok) {
        omitted_hint(&merge->watch, NULL, &err);
        return cli_fail(merge->cli, &err);
    }
    return merge->is_void ? cli_filter_nothing(merge->cli, "written") : status;
}

static int check_options(struct merge *merge)
{
    struct cli *cli = merge->cli;
    struct rd_err err = {0};
    size_t n_stdin = 0;
    bool to_stdout = merge->out_path == NULL || strcmp(merge->out_path, "-") == 0;
    for (size_t i = 0; i < cli->n_args; i++)
        n_stdin += strcmp(cli->args[i], "-") == 0;
    if (n_stdin > 1)
        return cli_usage_error(cli, "standard input can be used only once");
    if (cli->json && to_stdout)
        return cli_usage_error(cli, "--json requires -o OUT: both would write to standard output");
    if (merge->version > 999)
        return cli_usage_error(cli, "RDB version %llu does not exist",
                               (unsigned long long)merge->version);
    return filter_check(&merge->filter, &err) ? CLI_OK : cli_fail(cli, &err);
}

int tool_merge(struct cli *cli, int argc, char **argv)
{
    struct merge merge = {.cli = cli, .policy = MERGE_FAIL, .log = SNAPSHOT_IN_ALL};
    const struct cli_opt opts[] = {
        {.name = "output",
         .letter = 'o',
         .kind = CLI_STRING,
         .arg = "OUT",
         .string = &merge.out_path,
         .help = "output file; default: standard output"},
        {.name = "on-conflict",
         .kind = CLI_ENUM,
         .arg = "WHICH",
         .words = "first|last|fail",
         .choice = &merge.policy,
         .help = "which input wins for a key in several; default: fail"},
        {.name = "db-map",
         .kind = CLI_EACH,
         .arg = "[IN:]FROM=TO",
         .each = merge_add_map,
         .ctx = &merge,
         .help = "move the keys of database FROM, of input IN, to TO"},
        {.name = "rdb-version",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &merge.version,
         .help = "default: the newest version of the inputs"},
        {.name = "lossy",
         .kind = CLI_FLAG,
         .flag = &merge.lossy,
         .help = "omit what the version cannot hold, and name it"},
        {.name = "force",
         .kind = CLI_FLAG,
         .flag = &merge.force,
         .help = "replace OUT if it exists"},
        FILTER_OPTIONS(&merge.filter),
        SNAPSHOT_IN_FROM_OPTION(&merge.log),
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
    cli_filter_init(&merge.filter, cli, cli_now_ms());
    if (cli_parse(cli, &usage, argc, argv, &status)) {
        status = check_options(&merge);
        if (status == CLI_OK)
            status = run(&merge);
    }
    filter_done(&merge.filter);
    return status;
}
