/* stat - statistics of a snapshot: types, the biggest keys and prefixes, expiry; of two snapshots:
 * also what changed between them.
 */
#include "tools/cli/watch.h"
#include "tools/cli/filter.h"
#include "tools/input/server_in.h"
#include "tools/input/snapshot_in.h"
#include "tools/stat/report.h"
#include "tools/tools.h"

enum { TOP_DEFAULT = 10, TOP_MAX = 1000, DEPTH_DEFAULT = 4 };

/* One of the snapshots. */
struct input {
    struct cli *cli;
    const char *path;
    struct snapshot_in_opts log;
    struct spool spool; /* the snapshot built from a log */
    struct rd_src *src;
    struct stat_read read;
};

struct job {
    struct cli *cli;
    struct rd_watch watch;
    uint64_t top;
    uint64_t depth;
    const char *separator;
    const char *html_path;
    const char *out_path;             /* -o; of --csv, or as html_path */
    const struct stat_layout *wanted; /* NULL: of the server that wrote the file */
    bool csv;
    bool exact;
    bool force;
    bool is_void;    /* no key matches the filter: no report is written */
    int64_t at_ms;   /* INT64_MIN: now */
    int64_t made_ms; /* when the tool began; 0: the report is for another time */
    struct filter filter;
    struct peer_opts servers;
    struct snapshot_in_opts log;

    struct input inputs[2]; /* of which the last is the one that is reported */
    size_t n;
    struct rd_sink *out; /* of --csv or --html */
};

/* For CLI_EACH: the layout of a server. */
static bool choose_layout(void *ctx, const char *value, struct rd_err *err)
{
    const struct stat_layout **wanted = ctx;
    int server;
    if (!data_server_add(&server, value, err))
        return false;
    *wanted = stat_layout_for((enum data_server)server, value);
    return true;
}

static bool check_end(void *ctx, const struct rdb_event *trailer, struct rd_err *err)
{
    const struct input *in = ctx;
    return snapshot_in_check_end(in->cli, in->src, &in->log, trailer, err);
}

static bool read_file(struct job *job, struct input *in, struct stat_sum *before,
                      struct rd_err *err)
{
    struct stat_read *read = &in->read;
    read->watch = &job->watch;
    read->src = in->src;
    read->at_end = check_end;
    read->ctx = in;
    in->cli = job->cli;
    read->filter = &job->filter;
    read->exact = job->exact;
    read->made_ms = job->made_ms;
    read->wanted = job->wanted;
    read->opts = (struct stat_opts){.top = (size_t)job->top,
                                    .separator = rd_slice_str(job->separator),
                                    .depth = (unsigned)job->depth,
                                    .now_ms = job->at_ms,
                                    .patterns = !job->csv,
                                    .details = job->html_path != NULL,
                                    .continued = in != &job->inputs[job->n - 1],
                                    .before = before};
    if (job->html_path != NULL && read->opts.top < STAT_HTML_KEYS)
        read->opts.top = STAT_HTML_KEYS;
    if (job->csv) {
        read->row = stat_csv_row;
        read->row_ctx = job->out;
        read->opts.separator.len = 0;
        if (!stat_csv_begin(job->out, err))
            return false;
    }
    if (stat_read_run(read, err))
        return true;
    rd_err_origin(err, rd_src_origin(in->src));
    return false;
}

static bool report(struct job *job, struct rd_err *err)
{
    struct cli *cli = job->cli;
    struct input *in = &job->inputs[job->n - 1], *old = job->n > 1 ? &job->inputs[0] : NULL;
    const struct stat_read *was = old != NULL ? &old->read : NULL;
    const char *old_path = old != NULL ? old->path : NULL;
    size_t top = (size_t)job->top;
    if (job->html_path != NULL &&
        !stat_html_write(job->out, &in->read, in->path, was, old_path, err))
        return false;
    if (job->out != NULL) {
        struct rd_sink *out = job->out;
        job->out = NULL;
        if (!rd_sink_close(out, err))
            return false;
    }
    if (cli->json) {
        json_put_str(&cli->out, "file", in->path);
        return stat_json_put(&cli->out, &in->read, top, err) &&
               (old == NULL || stat_change_json(&cli->out, &in->read, was, old_path, top, err));
    }
    if (job->csv || job->html_path != NULL)
        return true;
    if (old != NULL)
        return stat_change_print(cli, stdout, &in->read, in->path, was, old_path, top, err);
    bool replayed = false;
    return (server_in_is(in->path) || snapshot_in_replays(in->path, &in->log, &replayed, err)) &&
           stat_text_print(cli, stdout, &in->read, in->path, replayed, top, err);
}

static bool work(struct job *job, struct rd_err *err)
{
    struct cli *cli = job->cli;
    for (size_t i = 0; i < job->n; i++) {
        struct input *in = &job->inputs[i];
        in->path = cli->args[i];
        in->log = job->log;
        if (!snapshot_in_open(cli, in->path, &in->log, &in->spool, &in->src, err))
            return false;
        if (i == 0 && (job->csv || job->html_path != NULL) &&
            !cli_open_out(cli, job->html_path != NULL ? job->html_path : job->out_path, job->force,
                          false, &job->out, err))
            return false;
        if (!read_file(job, in, i > 0 ? &job->inputs[0].read.sum : NULL, err))
            return false;
    }
    job->is_void = filter_active(&job->filter);
    for (size_t i = 0; i < job->n; i++)
        job->is_void &= job->inputs[i].read.sum.all.keys == 0;
    return job->is_void || report(job, err);
}

static int run(struct job *job)
{
    struct rd_err err = {0};
    bool ok = work(job, &err), is_void = job->is_void;
    for (size_t i = 0; i < job->n; i++)
        stat_read_done(&job->inputs[i].read);
    rd_sink_abort(job->out);
    for (size_t i = job->n; i-- > 0;)
        snapshot_in_close(job->cli, job->inputs[i].src, &job->inputs[i].spool);
    if (!ok)
        return cli_fail(job->cli, &err);
    return is_void ? cli_filter_nothing(job->cli, "counted") : CLI_OK;
}

/* The name of the output gives its form, if no option does. */
static int choose_output(struct job *job)
{
    if (job->out_path == NULL || job->csv)
        return CLI_OK;
    job->csv = job->html_path == NULL && cli_name_ends(job->out_path, "csv");
    if (job->html_path == NULL && cli_name_ends(job->out_path, "html"))
        job->html_path = job->out_path;
    else if (!job->csv)
        return cli_usage_error(job->cli,
                               "-o is for --csv, or for a name that ends in .csv or .html");
    return CLI_OK;
}

static int check_options(struct job *job)
{
    struct rd_err err = {0};
    int status = choose_output(job);
    if (status != CLI_OK)
        return status;
    bool html_to_stdout = job->html_path != NULL && strcmp(job->html_path, "-") == 0;
    if (job->csv && job->n > 1)
        return cli_usage_error(job->cli, "--csv takes one FILE");
    if (job->n > 1 && strcmp(job->cli->args[0], "-") == 0 && strcmp(job->cli->args[1], "-") == 0)
        return cli_usage_error(job->cli, "only one FILE can be standard input");
    if (job->csv && job->html_path != NULL)
        return cli_usage_error(job->cli, "--csv and --html cannot be used together");
    bool csv_to_stdout = job->csv && (job->out_path == NULL || strcmp(job->out_path, "-") == 0);
    if (job->cli->json && (csv_to_stdout || html_to_stdout))
        return cli_usage_error(job->cli, "--json and --%s would both write to standard output",
                               job->csv ? "csv" : "html");
    if (job->top > TOP_MAX)
        return cli_usage_error(job->cli, "--top must be at most %d", TOP_MAX);
    if (job->depth < 1 || job->depth > STAT_PREFIX_DEPTH_MAX)
        return cli_usage_error(job->cli, "--depth must be from 1 to %d", STAT_PREFIX_DEPTH_MAX);
    if (!filter_check(&job->filter, &err))
        return cli_fail(job->cli, &err);
    if (job->at_ms == INT64_MIN)
        job->at_ms = job->made_ms = cli_now_ms();
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
                      .at_ms = INT64_MIN};
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
        {.name = "output",
         .letter = 'o',
         .kind = CLI_STRING,
         .arg = "OUT",
         .string = &job.out_path,
         .brief = true,
         .help = "write --csv to OUT, or what its name ends in"},
        {.name = "html",
         .kind = CLI_STRING,
         .arg = "OUT",
         .string = &job.html_path,
         .help = "write an HTML page with charts to OUT"},
        {.name = "for",
         .kind = CLI_EACH,
         .arg = "SERVER",
         .words = DATA_SERVERS,
         .each = choose_layout,
         .ctx = &job.wanted,
         .help = "memory in this server; default: the writer"},
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
        SERVER_IN_OPTIONS(&job.log.server.scan, &job.servers),
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] [OLD] FILE",
        .about = "Reports the contents of a snapshot, a log or a server (redis://HOST), and\n"
                 "the memory that they use in a server. With OLD, an earlier snapshot: also\n"
                 "what grew, shrank, is new or is gone.",
        .opts = opts,
        .max_args = 2,
        .example = "redoubt stat --html report.html dump.rdb",
    };
    int status;
    job.watch = cli_watch(cli);
    cli_filter_init(&job.filter, cli, cli_now_ms());
    peer_opts_init(&job.servers);
    job.log.server.servers = &job.servers;
    if (cli_parse(cli, &usage, argc, argv, &status)) {
        status = peer_choose_argument(cli, &job.servers, &usage);
        job.n = cli->n_args;
        if (status == CLI_OK)
            status = check_options(&job);
        if (status == CLI_OK)
            status = run(&job);
    }
    peer_opts_done(&job.servers);
    filter_done(&job.filter);
    return status;
}
