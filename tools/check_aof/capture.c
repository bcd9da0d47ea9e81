/* capture.c - verifies a capture in the place of a log. */
#include "base/fs.h"
#include "rebuild/stream.h"
#include "tools/check_aof/check_aof.h"

enum { SHOWN = 100 };

struct report {
    struct aof_job *job;
    uint64_t done, n;
};

static void put_finding(struct cli *cli, const struct repl_capture_finding *finding)
{
    json_obj(&cli->out);
    json_put_str(&cli->out, "file", finding->name);
    json_key(&cli->out, "error");
    cli_json_err(&cli->out, finding->err);
    json_end(&cli->out);
}

static void print_finding(struct cli *cli, const struct repl_capture_finding *finding)
{
    char line[1024];
    rd_err_render(finding->err, line, sizeof line);
    printf("  %serror%s      %s\n", cli_color(cli, stdout, CLI_RED),
           cli_color(cli, stdout, CLI_PLAIN), line);
}

static void take_finding(void *ctx, const struct repl_capture_finding *finding)
{
    struct report *report = ctx;
    struct cli *cli = report->job->cli;
    if (cli->json)
        put_finding(cli, finding);
    else if (!cli->quiet && report->n++ < SHOWN)
        print_finding(cli, finding);
}

static void tick(void *ctx, uint64_t n_bytes)
{
    struct report *report = ctx;
    report->done += n_bytes;
    cli_progress_at(report->job->cli, report->done);
}

static void put_result(struct cli *cli, const struct repl_capture_verify_result *res)
{
    struct json_write *json = &cli->out;
    json_put_str(json, "verdict", res->findings > 0 ? "damaged" : "ok");
    json_put_uint(json, "segments", res->segments);
    json_put_uint(json, "closed", res->closed);
    json_put_uint(json, "chapters", res->chapters);
    json_put_uint(json, "snapshots", res->snapshots);
    json_put_uint(json, "blocks", res->blocks);
    json_put_uint(json, "commands", res->commands);
    json_put_uint(json, "bytes", res->bytes);
    json_put_uint(json, "torn", res->torn);
}

static void print_result(const struct aof_job *job, const struct report *report,
                         const struct repl_capture_verify_result *res)
{
    struct cli *cli = job->cli;
    bool sound = res->findings == 0;
    if (report->n > SHOWN)
        printf("  … and %s more\n", rd_show_count(report->n - SHOWN).s);
    printf("%s: %s%s%s\n", job->shown, cli_color(cli, stdout, sound ? CLI_GREEN : CLI_RED),
           sound ? "a sound capture" : "a damaged capture", cli_color(cli, stdout, CLI_PLAIN));
    printf("  segments   %s, %s closed; %s chapter%s\n", rd_show_count(res->segments).s,
           rd_show_count(res->closed).s, rd_show_count(res->chapters).s,
           rd_show_plural(res->chapters));
    printf("  snapshots  %s\n", rd_show_count(res->snapshots).s);
    printf("  stream     %s command%s, %s\n", rd_show_count(res->commands).s,
           rd_show_plural(res->commands), rd_show_bytes(res->bytes).s);
    if (res->torn > 0)
        printf("  torn       %s at the end, which the next capture cuts\n",
               rd_show_bytes(res->torn).s);
}

int aof_job_run_capture(struct aof_job *job)
{
    struct cli *cli = job->cli;
    struct rd_fs fs;
    struct rd_err err = {0};
    struct report report = {.job = job};
    struct repl_capture_verify_result res = {0};
    const struct repl_capture_verify_opts opts = {
        .finding = take_finding, .tick = tick, .ctx = &report};
    rd_show_escape(job->shown, sizeof job->shown, rd_slice_str(job->path));
    if (!rd_fs_open_folder(&fs, job->path, false, &err))
        return cli_fail(cli, &err);
    if (cli->json) {
        json_put_str(&cli->out, "path", job->path);
        json_put_str(&cli->out, "kind", "capture");
        json_key(&cli->out, "findings");
        json_array(&cli->out);
    }
    cli_progress_begin(cli, job->shown, RD_NO_OFFSET);
    bool ok = repl_capture_verify(&fs, &opts, &res, &err);
    cli_progress_end(cli);
    rd_fs_close_posix(&fs);
    if (ok && res.segments == 0 && res.findings == 0)
        ok = rd_err_set(&err, RD_ERR_USAGE, RD_NO_OFFSET, "the capture is empty");
    rd_err_origin(&err, job->path);
    if (!ok)
        return cli_fail(cli, &err);
    if (cli->json) {
        json_end(&cli->out);
        put_result(cli, &res);
    } else if (!cli->quiet) {
        print_result(job, &report, &res);
    }
    return res.findings > 0 ? CLI_FINDINGS : CLI_OK;
}
