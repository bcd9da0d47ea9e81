/* archive.c - `redoubt archive`: the replication stream of a server, kept in its repositories.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tools/archive/report.h"
#include "tools/capture/report.h"
#include "tools/capture/servers.h"
#include "tools/cli/stop.h"
#include "tools/cli/watch.h"
#include "tools/tools.h"
#include "tools/vault/hint.h"
#include "tools/vault/vault.h"

struct archive {
    struct cli *cli;
    struct vault vault;
    struct backup_archiver archiver;
    struct archive_report report;
    struct cli quiet; /* of the thread that takes sets: progress belongs to the main thread */
};

/* ---- what the archiver calls ---- */

static void on_tick(struct backup_archiver *a, uint64_t now_ms, uint64_t *ret_wait_ms)
{
    struct archive *archive = a->ctx;
    archive_report_tick(&archive->report, now_ms, ret_wait_ms);
}

static void on_link_event(struct backup_archiver *a, const struct capture_link *link,
                          const char *event, bool trouble, const char *text)
{
    const struct archive *archive = a->ctx;
    capture_report_event(archive->cli, link, event, trouble, text);
}

/* ---- the run ---- */

/* What is in the repositories is of use only with a set to begin from. */
static int conclude(struct cli *cli, const struct backup_archiver *a)
{
    const struct backup_shipped *s = &a->shipped;
    bool waiting = s->n_waiting > 0 || s->failing || s->spool_failing;
    if (s->spool_failing)
        cli_warn(cli, "%s cannot be read: what remains in it is not known, the next run ships it",
                 a->spool);
    else if (waiting)
        cli_warn(cli, "%" PRIu64 " segment%s in %s: the next run ships them", s->n_waiting,
                 s->n_waiting == 1 ? " remains" : "s remain", a->spool);
    if (!a->bases.looked)
        cli_warn(cli, "%s: whether a set is a base for the end of the stream is not known",
                 a->target->name);
    else if (!backup_archiver_is_covered(a))
        cli_warn(cli,
                 "%s: no set is a base for the end of the stream, so it cannot be restored "
                 "yet: the next run takes one",
                 a->target->name);
    return waiting || !backup_archiver_is_covered(a) ? CLI_PARTIAL : CLI_OK;
}

static int fail(struct archive *archive, struct rd_err *err)
{
    capture_servers_holder(err);
    capture_report_hint(archive->cli, err);
    if (err->reason.id == ARCHIVE_REASON_FOREIGN)
        cli_hint(archive->cli, "nothing was overwritten; find out who wrote the object, and move "
                               "it away. The segment stays in the spool until then");
    if (err->reason.id == RD_SEAL_REASON_KEY)
        cli_hint(archive->cli, "a key file may have several keys: insert a new key as the first "
                               "line. The segment stays in the spool");
    return cli_fail(archive->cli, err);
}

static int run_archiver(struct archive *archive)
{
    struct backup_archiver *a = &archive->archiver;
    struct rd_err err = {0};
    sigset_t waiting;
    a->stop = cli_stop_begin(&waiting);
    a->waiting = &waiting;
    archive_report_begin(&archive->report);
    bool ok = backup_archiver_run(a, &err);
    a->waiting = NULL;
    archive_report_end(&archive->report);
    return ok ? conclude(archive->cli, a) : fail(archive, &err);
}

static int archive_target(struct archive *archive, const struct backup_target *target)
{
    struct backup_archiver *a = &archive->archiver;
    struct rd_err err = {0};
    archive->quiet = (struct cli){.tool = "archive", .quiet = true, .progress_when = CLI_NEVER};
    const struct rd_watch watch = cli_watch(&archive->quiet);
    backup_archiver_init(a, target);
    a->watch = &watch;
    a->tick = on_tick;
    a->link_event = on_link_event;
    a->hint = vault_hint_text;
    a->ctx = archive;
    archive->report = (struct archive_report){.cli = archive->cli, .a = a};
    int status;
    if (archive_report_open(&archive->report, &err) && backup_archiver_open(a, &err)) {
        status = run_archiver(archive);
    } else {
        rd_err_doing(&err, "the target %s", target->name);
        status = cli_fail(archive->cli, &err);
    }
    archive_report_close(&archive->report);
    a->watch = NULL;
    backup_archiver_done(a);
    return status;
}

static int load_and_run(struct archive *archive)
{
    struct cli *cli = archive->cli;
    struct rd_err err = {0};
    if (!vault_load(&archive->vault, cli->args, cli->n_args, &err))
        return cli_fail(cli, &err);
    if (archive->vault.config.n_targets != 1)
        return cli_usage_error(cli, "the configuration has several targets: name one");
    return archive_target(archive, &archive->vault.config.targets[0]);
}

int tool_archive(struct cli *cli, int argc, char **argv)
{
    struct archive archive = {.cli = cli};
    struct cli_opt opts[VAULT_OPTS] = {0};
    vault_init(&archive.vault, cli);
    vault_options(&archive.vault, opts,
                  BACKUP_FOR_REPOSITORY | BACKUP_FOR_KEYS | BACKUP_FOR_SOURCE | BACKUP_FOR_WRITING |
                      BACKUP_FOR_KEEP | BACKUP_FOR_STREAM | BACKUP_FOR_MERGING);
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] [TARGET]",
        .about = "Archives the stream of a server, so that restore can give any moment.",
        .opts = opts,
        .max_args = 1,
        .example = "redoubt archive nightly",
    };
    int status;
    if (cli_parse(cli, &usage, argc, argv, &status))
        status = load_and_run(&archive);
    vault_done(&archive.vault);
    return status;
}
