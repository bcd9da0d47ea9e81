/* capture - records the snapshot and stream of a master in a folder, as a replica. */
#include <stdio.h>

#include "base/num.h"
#include "tools/capture/tool.h"
#include "tools/cli/stop.h"
#include "tools/tools.h"

static void on_event(struct capture *c, const struct capture_link *link, const char *event,
                     bool trouble, const char *text)
{
    struct capture_tool *tool = c->ctx;
    capture_report_event(tool->cli, link, event, trouble, text);
}

static bool tick(struct capture *c, uint64_t now_ms, uint64_t *ret_wait_ms, struct rd_err *err)
{
    struct capture_tool *tool = c->ctx;
    (void)err;
    capture_report_tick(&tool->report, c, now_ms, ret_wait_ms);
    return true;
}

/* A signal before the masters are found ends the program at once. */
static bool work(struct capture *c, struct rd_err *err)
{
    sigset_t waiting;
    if (!capture_begin(c, err))
        return false;
    c->stop = cli_stop_begin(&waiting);
    c->waiting = &waiting;
    bool ok = capture_run(c, err);
    c->waiting = NULL;
    return ok;
}

static int run(struct capture_tool *tool)
{
    struct capture *c = &tool->capture;
    struct rd_err err = {0};
    c->event = on_event;
    c->tick = tick;
    c->ctx = tool;
    if (!metrics_begin(&tool->report.metrics, &err)) {
        capture_close(c, NULL);
        return cli_fail(tool->cli, &err);
    }
    capture_report_begin(&tool->report, c);
    bool ok = work(c, &err);
    capture_report_end(&tool->report, c);
    metrics_end(&tool->report.metrics);
    capture_close(c, &err);
    if (err.code == RD_ERR_OK && ok)
        return cli_stopped() != 0 ? CLI_SIGNAL + cli_stopped() : CLI_OK;
    capture_servers_holder(&err);
    capture_report_hint(tool->cli, &err);
    return cli_fail(tool->cli, &err);
}

/* ---- options ---- */

static bool add_sentinel(void *ctx, const char *value, struct rd_err *err)
{
    return capture_servers_add_sentinel(ctx, value, err);
}

static bool set_until(void *ctx, const char *value, struct rd_err *err)
{
    struct capture *c = ctx;
    c->has_until = true;
    return rd_num_get_u64(rd_slice_str(value), &c->until) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "not an offset");
}

/* Whether the text is three numbers separated by points. */
static bool is_version(const char *text)
{
    for (int i = 0; i < 3; i++) {
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || digits > 3 || text[digits] != (i < 2 ? '.' : '\0'))
            return false;
        text += digits + 1;
    }
    return true;
}

/* Returns the error of invalid options or combinations, or NULL. */
static const char *contradiction(struct capture_tool *tool)
{
    const struct capture *c = &tool->capture;
    struct capture_servers *servers = &tool->servers;
    bool named = tool->cli->n_args > 0 || peer_opts_has_one(&servers->peers);
    bool stream = c->out != NULL || c->duration_ms != 0 || c->has_until || c->max_size != 0 ||
                  c->segment_size != 0 || metrics_wanted(&tool->report.metrics) || c->wait ||
                  c->monitor;
    if (!named && servers->n_sentinels == 0)
        return "missing argument: capture URL -o DIR";
    if (named && servers->n_sentinels > 0)
        return "--sentinel finds the master: do not give a URL as well";
    if (tool->cli->n_args > 0 && peer_opts_names_one(&servers->peers))
        return "use either URL, or -h, -p, -s or -u, not both";
    if (tool->cli->n_args > 0 && !client_target_is_url(tool->cli->args[0]))
        return "not a server URL: use redis://HOST, rediss://HOST or unix:///PATH";
    if (c->cluster && servers->n_sentinels > 0)
        return "--cluster and --sentinel cannot be used together";
    if (tool->rdb_only == NULL && tool->functions_only)
        return "--functions-only requires --rdb-only FILE";
    if (tool->rdb_only != NULL && (stream || c->cluster))
        return "--rdb-only cannot be used with --cluster or options for the stream";
    if (tool->rdb_only == NULL && c->out == NULL)
        return "missing output: use -o DIR or --rdb-only FILE";
    if (c->cluster && c->has_until)
        return "--until-offset cannot be used with --cluster";
    if (c->replica_version != NULL && !is_version(c->replica_version))
        return "--replica-version must be three numbers, such as 7.2.0";
    if (servers->peers.has_db)
        return "a capture includes all databases: -n cannot be used";
    return NULL;
}

static int start(struct capture_tool *tool)
{
    struct capture *c = &tool->capture;
    struct rd_err err = {0};
    const char *wrong = contradiction(tool);
    if (wrong != NULL)
        return cli_usage_error(tool->cli, "%s", wrong);
    int status = CLI_OK;
    if (!capture_servers_find(&tool->servers, c, cli_url(tool->cli, 0), &err))
        status = cli_fail(tool->cli, &err);
    else if (c->target.has_db)
        status = cli_usage_error(tool->cli,
                                 "a capture includes all databases: the URL must not name one");
    else if (tool->rdb_only != NULL)
        status = capture_tool_rdb(tool);
    else
        return run(tool);
    capture_close(c, NULL);
    return status;
}

static int parse_and_start(struct capture_tool *tool, const struct cli_opt *opts, int argc,
                           char **argv)
{
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] URL -o DIR | --rdb-only FILE",
        .about = "Connects to a master as a replica, and records its snapshot and stream in a\n"
                 "folder. A new run resumes where the last one ended.",
        .opts = opts,
        .max_args = 1,
        .example = "redoubt capture --keep-size 10gb redis://10.0.0.7 -o /var/lib/capture",
    };
    int status;
    tool->capture.ack = CAPTURE_ACK_WRITTEN;
    tool->capture.master = "mymaster";
    peer_opts_init(&tool->servers.peers);
    if (cli_parse(tool->cli, &usage, argc, argv, &status))
        status = start(tool);
    peer_opts_done(&tool->servers.peers);
    return status;
}

/* clang-format off */
#define MONITOR_OPTION(c)                                                                          \
    {.name = "monitor", .brief = true, .kind = CLI_FLAG, .flag = &(c)->monitor,                    \
     .help = "also record which clients send commands"}

#define METRICS_OPTIONS(m)                                                                         \
    {.name = "metrics-file", .brief = true, .kind = CLI_STRING, .arg = "FILE",                     \
     .string = &(m)->file, .help = "write Prometheus metrics to FILE every second"},               \
    {.name = "metrics-listen", .brief = true, .kind = CLI_STRING, .arg = "[IP:]PORT",         \
     .string = &(m)->address, .help = "answer requests at http://ADDRESS:PORT/metrics"}

#define FORMER_NAMES(tool)                                                                         \
    {.name = "max-size", .kind = CLI_SIZE, .number = &(tool)->capture.max_size},                   \
    {.name = "master", .kind = CLI_STRING, .string = &(tool)->capture.master},                     \
    {.name = "metrics", .kind = CLI_STRING, .string = &(tool)->report.metrics.file}
/* clang-format on */

int tool_capture(struct cli *cli, int argc, char **argv)
{
    struct capture_tool tool = {.cli = cli, .report = {.cli = cli, .metrics.cli = cli}};
    const struct cli_opt opts[] = {
        {.name = "output",
         .letter = 'o',
         .kind = CLI_STRING,
         .arg = "DIR",
         .string = &tool.capture.out,
         .help = "the folder; an existing capture is resumed"},
        {.name = "ack",
         .kind = CLI_ENUM,
         .arg = "WHAT",
         .words = "received|written|synced",
         .choice = &tool.capture.ack,
         .help = "acknowledge received, written or synced data"},
        {.name = "duration",
         .kind = CLI_SPAN,
         .arg = "TIME",
         .number = &tool.capture.duration_ms,
         .help = "stop T after the stream began: 90s, 2h30m"},
        {.name = "until-offset",
         .kind = CLI_EACH,
         .arg = "N",
         .each = set_until,
         .ctx = &tool.capture,
         .help = "stop at the command that reaches this offset"},
        {.name = "keep-size",
         .kind = CLI_SIZE,
         .arg = "SIZE",
         .number = &tool.capture.max_size,
         .help = "delete the oldest segments beyond this size"},
        {.name = "segment-size",
         .brief = true,
         .kind = CLI_SIZE,
         .arg = "SIZE",
         .number = &tool.capture.segment_size,
         .help = "size of a file; default 64mb"},
        {.name = "wait",
         .brief = true,
         .kind = CLI_FLAG,
         .flag = &tool.capture.wait,
         .help = "keep trying if the master cannot be reached at first"},
        MONITOR_OPTION(&tool.capture),
        {.name = "cluster",
         .kind = CLI_FLAG,
         .flag = &tool.capture.cluster,
         .help = "every master of the cluster, one folder each"},
        {.name = "sentinel",
         .kind = CLI_EACH,
         .arg = "HOST:PORT",
         .each = add_sentinel,
         .ctx = &tool.servers,
         .help = "ask this sentinel for the master; repeatable"},
        {.name = "master-name",
         .brief = true,
         .kind = CLI_STRING,
         .arg = "NAME",
         .string = &tool.capture.master,
         .help = "name of the master in Sentinel; default mymaster"},
        {.name = "sentinel-pass-file",
         .brief = true,
         .kind = CLI_STRING,
         .arg = "FILE",
         .string = &tool.servers.sentinel_pass_file,
         .help = "read the sentinels' password from FILE"},
        METRICS_OPTIONS(&tool.report.metrics),
        {.name = "rdb-only",
         .kind = CLI_STRING,
         .arg = "FILE",
         .string = &tool.rdb_only,
         .help = "fetch and verify the snapshot only; - is stdout"},
        {.name = "functions-only",
         .brief = true,
         .kind = CLI_FLAG,
         .flag = &tool.functions_only,
         .help = "with --rdb-only: the functions only"},
        {.name = "replica-version",
         .brief = true,
         .kind = CLI_STRING,
         .arg = "X.Y.Z",
         .string = &tool.capture.replica_version,
         .help = "version reported to the master, which may choose the RDB version by it"},
        {.name = "force",
         .brief = true,
         .kind = CLI_FLAG,
         .flag = &tool.force,
         .help = "replace FILE if it exists"},
        FORMER_NAMES(&tool),
        PEER_OPTIONS(&tool.servers.peers),
        {0},
    };
    return parse_and_start(&tool, opts, argc, argv);
}
