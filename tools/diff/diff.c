/* diff - compares the data of two snapshots, logs or servers. */
#include "tools/cli/watch.h"
#include "tools/diff/diff.h"
#include "tools/tools.h"

#include <errno.h>
#include <sys/random.h>

static bool begin(void *ctx, struct rd_err *err)
{
    struct diff_tool *diff = ctx;
    if (diff->lines &&
        !cli_open_out(diff->cli, diff->out_path, diff->force, false, &diff->out, err))
        return false;
    if (diff->html_path != NULL && !diff_page_begin(diff, err))
        return false;
    diff_report_begin(diff);
    diff->begun = true;
    return true;
}

static void each(void *ctx, const struct diff_found *found, struct rd_slice name,
                 const struct diff_value *value)
{
    diff_report_key(ctx, found, name, value);
}

static bool finish(struct diff_tool *diff, struct rd_err *err)
{
    diff_report_end(diff);
    if (diff->page != NULL && !diff->result.is_void && !diff_page_write(diff, err))
        return false;
    struct rd_sink *out = diff->out;
    diff->out = NULL;
    return out == NULL || rd_sink_close(out, err);
}

bool diff_tool_work(struct diff_tool *diff, struct rd_err *err)
{
    struct cli *cli = diff->cli;
    const struct rd_watch watch = cli_job_watch(cli);
    bool silent = cli->quiet && !cli->json && !diff->lines && diff->html_path == NULL &&
                  diff->opts.tolerance_ms == 0;
    if (!cli_check_out(cli, diff->html_path, diff->force, err) ||
        !cli_check_out(cli, diff->out_path, diff->force, err))
        return false;
    if (getrandom(diff->opts.key, sizeof diff->opts.key, 0) < 0)
        return rd_err_sys(err, errno, "cannot get random bytes");
    diff->opts.filter = &diff->filter;
    diff->opts.now_ms = cli_now_ms;
    diff->opts.begin = begin;
    diff->opts.each = silent ? NULL : each;
    diff->opts.ctx = diff;
    diff_tool_inputs(diff);
    bool ok = diff_run(&diff->opts, &watch, &diff->result, err);
    if (!ok && diff->begun && cli->json)
        cli->out = diff->json; /* cli_fail() closes the open objects */
    return ok && (silent || finish(diff, err));
}

void diff_tool_done(struct diff_tool *diff)
{
    rd_sink_abort(diff->out);
    diff_page_done(diff);
    for (int side = DIFF_A; side <= DIFF_B; side++)
        client_target_done(&diff->target[side]);
}

static int run(struct diff_tool *diff)
{
    struct rd_err err = {0};
    for (size_t side = DIFF_A; side < diff->cli->n_args; side++) {
        diff->path[side] = diff->cli->args[side];
        diff->url[side] = cli_url(diff->cli, side);
    }
    diff->opts.judge_due = filter_drops_expired(&diff->filter);
    bool ok = diff_tool_work(diff, &err);
    int status = diff_differs(&diff->result)  ? CLI_FINDINGS
                 : diff_tool_is_partial(diff) ? CLI_PARTIAL
                                              : CLI_OK;
    if (ok && status == CLI_OK && diff->result.is_void)
        status = cli_filter_nothing(diff->cli, "compared");
    diff_tool_done(diff);
    return ok ? status : cli_fail(diff->cli, &err);
}

/* The name of the output gives its form, if no option does. */
static int choose_output(struct diff_tool *diff)
{
    const char *path = diff->out_path;
    if (path == NULL || diff->lines)
        return CLI_OK;
    diff->lines =
        diff->html_path == NULL && (cli_name_ends(path, "ndjson") || cli_name_ends(path, "jsonl"));
    if (diff->html_path == NULL && cli_name_ends(path, "html"))
        diff->html_path = path;
    else if (!diff->lines)
        return cli_usage_error(
            diff->cli, "-o is for --ndjson, or for a name that ends in .ndjson, .jsonl or .html");
    return CLI_OK;
}

static int check_options(struct diff_tool *diff)
{
    struct cli *cli = diff->cli;
    struct rd_err err = {0};
    int status = choose_output(diff);
    if (status != CLI_OK)
        return status;
    bool named = peer_opts_names_one(&diff->servers);
    if (cli->n_args == 1 && !peer_opts_has_one(&diff->servers))
        return cli_usage_error(cli, "missing argument: diff [OPTION…] A B");
    if (cli->n_args == 2 && named)
        return cli_usage_error(
            cli, "-h, -p, -s and -u name the server to compare with; do not give B as well");
    if (cli->n_args == 2 && strcmp(cli->args[0], "-") == 0 && strcmp(cli->args[1], "-") == 0)
        return cli_usage_error(cli, "only one of A and B can be standard input");
    if (diff->servers.connect.key != NULL && !named && !client_target_is_url(cli->args[0]) &&
        !client_target_is_url(cli->args[1]))
        return cli_usage_error(cli, "--key is a TLS private key, but no server is given; "
                                    "use --match to select keys");
    if (diff->opts.fast && diff->opts.values)
        return cli_usage_error(cli, "--fast and --values cannot be used together");
    if (cli->json && diff->lines)
        return cli_usage_error(cli, "--json and --ndjson cannot be used together");
    if (diff->html_path != NULL && (cli->json || diff->lines || diff->all))
        return cli_usage_error(cli, "--html cannot be used with --%s",
                               cli->json     ? "json"
                               : diff->lines ? "ndjson"
                                             : "all");
    if (diff->force && diff->html_path == NULL && diff->out_path == NULL)
        return cli_usage_error(cli, "--force is only used with --html and -o");
    if (diff->opts.max_elements > DIFF_ELEMENTS_MAX)
        return cli_usage_error(cli, "--max-differences must be at most %d", DIFF_ELEMENTS_MAX);
    return filter_check(&diff->filter, &err) ? CLI_OK : cli_fail(cli, &err);
}

int tool_diff(struct cli *cli, int argc, char **argv)
{
    struct diff_tool diff = {
        .cli = cli, .opts.max_elements = DIFF_ELEMENTS_DEFAULT, .log = SNAPSHOT_IN_ALL};
    const struct cli_opt opts[] = {
        {.name = "values",
         .kind = CLI_FLAG,
         .flag = &diff.opts.values,
         .help = "list the elements, fields and members that differ"},
        {.name = "max-elements", .kind = CLI_COUNT, .number = &diff.opts.max_elements},
        {.name = "max-differences",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &diff.opts.max_elements,
         .help = "differences listed per key with --values; default 10"},
        {.name = "fast",
         .kind = CLI_FLAG,
         .flag = &diff.opts.fast,
         .help = "list keys only, do not read values a second time"},
        {.name = "ignore-expire",
         .kind = CLI_FLAG,
         .flag = &diff.opts.ignore_expire,
         .help = "do not compare expiry times of keys and fields"},
        {.name = "expire-tolerance",
         .kind = CLI_COUNT,
         .arg = "MS",
         .number = &diff.opts.tolerance_ms,
         .help = "expiry times at most MS apart are equal"},
        {.name = "all",
         .kind = CLI_FLAG,
         .flag = &diff.all,
         .help = "list more than 20 keys of each kind on a terminal"},
        {.name = "ndjson",
         .kind = CLI_FLAG,
         .flag = &diff.lines,
         .help = "one JSON object per difference, one per line"},
        {.name = "output",
         .letter = 'o',
         .kind = CLI_STRING,
         .arg = "OUT",
         .string = &diff.out_path,
         .brief = true,
         .help = "write --ndjson to OUT, or what its name ends in"},
        {.name = "html",
         .kind = CLI_STRING,
         .arg = "OUT",
         .string = &diff.html_path,
         .help = "write a page of the differences"},
        {.name = "force",
         .kind = CLI_FLAG,
         .flag = &diff.force,
         .help = "replace OUT if it exists",
         .brief = true},
        FILTER_OPTIONS(&diff.filter),
        SNAPSHOT_IN_FROM_OPTION(&diff.log),
        PEER_OPTIONS(&diff.servers),
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] A B",
        .about = "Compares the data of two snapshots, logs or servers (redis://HOST),\n"
                 "regardless of encodings. Exit status 1: they differ.",
        .opts = opts,
        .min_args = 1,
        .max_args = 2,
        .example = "redoubt diff --values before.rdb after.rdb",
    };
    int status;
    cli_filter_init(&diff.filter, cli, cli_now_ms());
    peer_opts_init(&diff.servers);
    if (cli_parse(cli, &usage, argc, argv, &status)) {
        status = check_options(&diff);
        if (status == CLI_OK)
            status = run(&diff);
    }
    filter_done(&diff.filter);
    peer_opts_done(&diff.servers);
    return status;
}
