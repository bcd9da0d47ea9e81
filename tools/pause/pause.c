/* pause.c - `redoubt pause` and `redoubt resume`: no backups of a target for some time. */
#include "archive/pause.h"
#include "backup/metrics.h"
#include "tools/tools.h"
#include "tools/vault/vault.h"

#include <stdio.h>

struct run {
    struct cli *cli;
    struct vault vault;
    bool pause; /* else resume */
    const char *reason;
};

static void report(struct run *run, const struct archive_repo *repo,
                   const struct archive_pause *pause, bool changed)
{
    struct json_write *json = &run->cli->out;
    if (run->cli->json) {
        json_obj(json);
        json_put_str(json, "target", repo->target);
        json_put_str(json, "repository", repo->store->origin);
        json_put_bool(json, "paused", run->pause);
        json_put_bool(json, "changed", changed);
        if (run->pause) {
            json_put_int(json, "since_ms", pause->since_ms);
            json_put_str(json, "reason", pause->reason);
        }
        json_end(json);
        return;
    }
    if (run->cli->quiet)
        return;
    printf("%s in %s: ", repo->target, rd_show_plain(rd_slice_str(repo->store->origin)).s);
    if (!run->pause)
        printf("%s\n", changed ? "resumed" : "was not paused");
    else if (changed)
        printf("paused: redoubt resume %s ends it\n", repo->target);
    else
        printf("was paused already, since %s\n", rd_show_time(pause->since_ms).s);
}

static bool pause_repo(struct run *run, struct archive_repo *repo, struct rd_err *err)
{
    struct archive_pause pause = {.since_ms = cli_now_ms()}, there;
    bool is_new;
    backup_host(pause.host);
    if (run->reason != NULL)
        snprintf(pause.reason, sizeof pause.reason, "%s", run->reason);
    if (!archive_pause_set(repo, &pause, &there, &is_new, err))
        return false;
    report(run, repo, &there, is_new);
    return true;
}

static bool resume_repo(struct run *run, struct archive_repo *repo, struct rd_err *err)
{
    struct archive_pause pause;
    if (!archive_pause_read(repo, &pause, err) || (pause.paused && !archive_pause_clear(repo, err)))
        return false;
    report(run, repo, &pause, pause.paused);
    return true;
}

static bool work_on(void *ctx, struct backup_open *open, size_t i, struct rd_err *err)
{
    struct run *run = ctx;
    struct archive_repo *repo = &open->repos[i];
    return (run->pause ? pause_repo(run, repo, err) : resume_repo(run, repo, err)) &&
           backup_metrics_pause(open->target, run->pause, err);
}

static int work(struct run *run)
{
    struct cli *cli = run->cli;
    struct vault_each each = {0};
    struct rd_err err = {0};
    if (run->reason != NULL && strlen(run->reason) >= ARCHIVE_TEXT_MAX)
        return cli_usage_error(cli, "the reason is longer than %d bytes", ARCHIVE_TEXT_MAX - 1);
    if (!vault_load(&run->vault, cli->args, cli->n_args, &err) ||
        !vault_each_init(&each, cli, &run->vault, BACKUP_LIST, &err))
        return cli_fail(cli, &err);
    vault_each_list(&each, "targets", work_on, run);
    int status = each.status;
    vault_each_done(&each);
    return status;
}

static int parse_and_work(struct run *run, const struct cli_usage *usage, int argc, char **argv)
{
    int status;
    if (cli_parse(run->cli, usage, argc, argv, &status))
        status = work(run);
    vault_done(&run->vault);
    return status;
}

int tool_pause(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli, .pause = true};
    struct cli_opt opts[VAULT_OPTS] = {0};
    vault_init(&run.vault, cli);
    size_t n = vault_options(&run.vault, opts, BACKUP_FOR_REPOSITORY);
    opts[n++] = (struct cli_opt){.name = "reason",
                                 .kind = CLI_STRING,
                                 .arg = "TEXT",
                                 .string = &run.reason,
                                 .help = "why; list and doctor print it"};
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] TARGET…",
        .about = "Pauses the backups of each TARGET: until `redoubt resume`, `redoubt backup`\n"
                 "makes no set of it, and ends with status 9.",
        .opts = opts,
        .min_args = 1,
        .max_args = CLI_MANY,
        .example = "redoubt pause nightly --reason 'the bucket moves'",
    };
    return parse_and_work(&run, &usage, argc, argv);
}

int tool_resume(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli};
    struct cli_opt opts[VAULT_OPTS] = {0};
    vault_init(&run.vault, cli);
    vault_options(&run.vault, opts, BACKUP_FOR_REPOSITORY);
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] TARGET…",
        .about = "Resumes the backups of each TARGET that `redoubt pause` has paused.",
        .opts = opts,
        .min_args = 1,
        .max_args = CLI_MANY,
        .example = "redoubt resume nightly",
    };
    return parse_and_work(&run, &usage, argc, argv);
}
