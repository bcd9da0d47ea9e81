/* stat - statistics of a snapshot: types, the biggest keys and prefixes, expiry.
 */
#include "tools/input/server_in.h"
#include "tools/input/snapshot_in.h"
#include "tools/stat/report.h"
#include "tools/tools.h"

enum { TOP_DEFAULT = 10, TOP_MAX = 1000, DEPTH_DEFAULT = 4 };

struct job {
    struct cli *cli;
    uint64_t top;
    uint64_t depth;
    const char *separator;
    const char *html_path;
    bool csv;
    bool exact;
    bool force;
    bool is_void; /* no key matches the filter: no report is written */
    int64_t at_ms;
    struct filter filter;

    struct snapshot_in_opts log;
    struct spool spool; /* the snapshot built from a log */
    struct rd_src *src;
    struct rd_sink *out; /* of --csv or --html */
    struct stat_read read;
};

static bool read_file(struct job *job, struct rd_err *err)
{
    struct stat_read *read = &job->read;
    read->cli = job->cli;
    read->src = job->src;
    read->log = &job->log;
    read->filter = &job->filter;
    read->exact = job->exact;
    read->opts = (struct stat_opts){.top = (size_t)job->top,
                                    .separator = rd_slice_str(job->separator),
                                    .depth = (unsigned)job->depth,
                                    .now_ms = job->at_ms};
    if (job->html_path != NULL && read->opts.top < STAT_HTML_KEYS)
        read->opts.top = STAT_HTML_KEYS;
    if (job->csv) {
        read->row = stat_csv_row;
        read->row_ctx = job->out;
        read->opts.separator.len = 0;
        if (!stat_csv_begin(job->out, err))
            return false;
    }
    return stat_read_run(read, err);
}

static bool report(struct job *job, struct rd_err *err)
{
    struct cli *cli = job->cli;
    const char *path = cli->args[0];
    if (job->html_path != NULL && !stat_html_write(job->out, &job->read, path, err))
        return false;
    if (job->out != NULL) {
        struct rd_sink *out = job->out;
        job->out = NULL;
        if (!rd_sink_close(out, err))
            return false;
    }
    if (cli->json) {
        cli_json_put_str(&cli->out, "file", path);
        stat_json_put(&cli->out, &job->read, (size_t)job->top, (size_t)job->top);
    } else if (!job->csv && job->html_path == NULL) {
        stat_text_print(cli, stdout, &job->read, path, (size_t)job->top);
    }
    return true;
}

static bool work(struct job *job, struct rd_err *err)
{
    struct cli *cli = job->cli;
    if (!snapshot_in_open(cli, cli->args[0], &job->log, &job->spool, &job->src, err))
        return false;
    if ((job->csv || job->html_path != NULL) &&
        !cli_open_out(cli, job->html_path, job->force, false, &job->out, err))
        return false;
    if (read_file(job, err)) {
        job->is_void = job->read.sum.all.keys == 0 && filter_active(&job->filter);
        return job->is_void || report(job, err);
    }
    rd_err_origin(err, rd_src_origin(job->src));
    return false;
}

static int run(struct job *job)
{
    struct rd_err err = {0};
    bool ok = work(job, &err), is_void = job->is_void;
    stat_read_done(&job->read);
    rd_sink_abort(job->out);
    snapshot_in_close(job->cli, job->src, &job->spool);
    if (!ok)
        return cli_fail(job->cli, &err);
    return is_void ? filter_report_nothing(job->cli, "counted") : CLI_OK;
}

static int check_options(struct job *job)
{
    struct rd_err err = {0};
    bool html_to_stdout = job->html_path != NULL && strcmp(job->html_path, "-") == 0;
    if (job->csv && job->html_path != NULL)
        return cli_usage_error(job->cli, "--csv and --html cannot be used together");
    if (job->cli->json && (job->csv || html_to_stdout))
        return cli_usage_error(job->cli, "--json and --%s would both write to standard output",
                               job->csv ? "csv" : "html");
    if (job->top > TOP_MAX)
        return cli_usage_error(job->cli, "--top must be at most %d", TOP_MAX);
    if (job->depth < 1 || job->depth > STAT_PREFIX_DEPTH_MAX)
        return cli_usage_error(job->cli, "--depth must be from 1 to %d", STAT_PREFIX_DEPTH_MAX);
    if (!filter_check(&job->filter, &err))
        return cli_fail(job->cli, &err);
    job->filter.now_ms = job->at_ms;
    return CLI_OK;
}

int tool_stat(struct cli *cli, int argc, char **argv)
{
    struct job job = {.cli = cli,
                      .top = TOP_DEFAULT,
                      .log = SNAPSHOT_IN_ALL,
                      .depth = DEPTH_DEFAULT,
                      .separator = ":",
                      .at_ms = cli_now_ms()};
    const struct cli_opt opts[] = {
        {.name = "top",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &job.top,
         .help = "rows of each list; default 10"},
        {.name = "separator",
         .kind = CLI_STRING,
         .arg = "S",
         .string = &job.separator,
         .help = "separator that ends a key prefix; default \":\""},
        {.name = "depth",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &job.depth,
         .help = "maximum number of parts of a prefix; default 4"},
        {.name = "csv",
         .kind = CLI_FLAG,
         .flag = &job.csv,
         .help = "write one line per key, columns as redis-rdb-tools"},
        {.name = "html",
         .kind = CLI_STRING,
         .arg = "OUT",
         .string = &job.html_path,
         .help = "write an HTML page with charts to OUT"},
        {.name = "exact",
         .kind = CLI_FLAG,
         .flag = &job.exact,
         .help = "measure all elements, not a sample"},
        {.name = "force", .kind = CLI_FLAG, .flag = &job.force, .help = "replace OUT if it exists"},
        {.name = "now",
         .kind = CLI_TIME,
         .arg = "TIME",
         .time_ms = &job.at_ms,
         .help = "count expiry from TIME; default now"},
        {.name = "at", .kind = CLI_TIME, .arg = "TIME", .time_ms = &job.at_ms},
        FILTER_OPTIONS(&job.filter),
        SNAPSHOT_IN_FROM_OPTION(&job.log),
        SERVER_IN_OPTION(&job.log.scan),
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] FILE",
        .about = "Reports the contents of a snapshot, a log or a server (redis://HOST), and\n"
                 "the memory that they use in a server.",
        .opts = opts,
        .min_args = 1,
        .max_args = 1,
        .example = "redoubt stat --html report.html dump.rdb",
    };
    int status;
    filter_init(&job.filter, cli, cli_now_ms());
    if (cli_parse(cli, &usage, argc, argv, &status)) {
        status = check_options(&job);
        if (status == CLI_OK)
            status = run(&job);
    }
    filter_done(&job.filter);
    return status;
}
