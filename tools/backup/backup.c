/* backup.c - `redoubt backup`: a verified set of each target into its repositories. */
#include "archive/pause.h"
#include "backup/metrics.h"
#include "backup/source.h"
#include "tools/cli/stop.h"
#include "tools/tools.h"
#include "tools/vault/hint.h"
#include "tools/vault/vault.h"

#include <stdio.h>

struct run {
    struct cli *cli;
    struct vault vault;
    struct archive_tag tags[ARCHIVE_TAGS_MAX];
    size_t n_tags;
    size_t n_good, n_bad, n_paused;
    bool partial; /* one repository failed, but not all */
    int status;   /* of the first failure */
};

/* ---- the report ---- */

static uint64_t stored_bytes(const struct archive_manifest *m)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->n_files; i++)
        bytes += archive_file_bytes(&m->files[i]);
    return bytes;
}

static uint64_t plain_bytes(const struct archive_manifest *m)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->n_files; i++)
        bytes += m->files[i].plain.bytes;
    return bytes;
}

static bool of_snapshot(const struct archive_manifest *m)
{
    return m->n_files > 0 && m->files[0].role == ARCHIVE_ROLE_RDB;
}

static void put_repositories(struct json_write *json, const struct backup_open *open)
{
    json_key(json, "repositories");
    json_array(json);
    for (size_t i = 0; i < open->n; i++) {
        json_obj(json);
        json_put_str(json, "repository", open->stores[i] != NULL ? open->stores[i]->origin : NULL);
        json_put_bool(json, "ok", open->errs[i].code == RD_ERR_OK);
        if (open->errs[i].code != RD_ERR_OK) {
            json_key(json, "error");
            cli_json_err(json, &open->errs[i]);
        }
        json_end(json);
    }
    json_end(json);
}

static void report_json(struct run *run, const struct backup_set *set)
{
    struct json_write *json = &run->cli->out;
    const struct archive_manifest *m = &set->m;
    json_obj(json);
    json_put_str(json, "target", m->target);
    json_put_bool(json, "ok", true);
    json_put_str(json, "id", m->id);
    json_put_str(json, "source", m->source);
    json_put_str(json, "server", m->server);
    json_put_uint(json, "bytes", plain_bytes(m));
    json_put_uint(json, "stored_bytes", stored_bytes(m));
    if (of_snapshot(m))
        json_put_uint(json, "keys", m->keys);
    json_put_bool(json, "sealed", set->key != NULL);
    json_put_bool(json, "verified", true);
    json_put_int(json, "duration_ms", m->end_ms - m->begin_ms);
    vault_put_tags(json, m->tags, m->n_tags);
    put_repositories(json, set->open);
    json_end(json);
}

static void report_text(struct run *run, const struct backup_set *set)
{
    const struct archive_manifest *m = &set->m;
    if (run->cli->quiet)
        return;
    printf("%s: set %s, %s, %s in the repository", m->target, m->id,
           rd_show_bytes(plain_bytes(m)).s, rd_show_bytes(stored_bytes(m)).s);
    if (of_snapshot(m))
        printf(", %s key%s", rd_show_count(m->keys).s, rd_show_plural(m->keys));
    printf(", verified%s, %s\n", set->key != NULL ? ", sealed" : "",
           rd_show_duration((uint64_t)(m->end_ms - m->begin_ms)).s);
}

static void report_failure(struct run *run, const struct backup_target *target,
                           const struct rd_err *err)
{
    int status = cli_report(run->cli, err);
    run->n_bad++;
    if (run->status == CLI_OK)
        run->status = status;
    if (!run->cli->json)
        return;
    struct json_write *json = &run->cli->out;
    json_obj(json);
    json_put_str(json, "target", target->name);
    json_put_bool(json, "ok", false);
    json_key(json, "error");
    cli_json_err(json, err);
    json_end(json);
}

static void report_partial(struct run *run, const struct rd_err *err)
{
    if (err->code == RD_ERR_OK)
        return;
    cli_report(run->cli, err);
    run->partial = true;
}

/* Repositories that failed although another one has the set. */
static void report_repositories(struct run *run, const struct backup_open *open)
{
    for (size_t i = 0; i < open->n; i++)
        report_partial(run, &open->errs[i]);
}

static void after(struct run *run, const struct backup_target *target, const struct backup_set *set,
                  const struct rd_err *failed)
{
    struct backup_after errs;
    char line[600];
    backup_after(target, set, failed, &errs);
    report_partial(run, &errs.prune);
    report_partial(run, &errs.metrics);
    report_partial(run, &errs.hook);
    if (errs.heartbeat.code != RD_ERR_OK)
        cli_warn(run->cli, "%s: the heartbeat failed: %s", target->name,
                 rd_err_render(&errs.heartbeat, line, sizeof line));
}

static bool take_set(struct run *run, struct backup_set *set, struct rd_err *err)
{
    static const struct backup_signals signals = {cli_stop_begin, cli_stop_end};
    const struct backup_source source = {
        .watch = &run->vault.watch, .tool = run->cli->tool, .signals = &signals};
    if (backup_source_take(&source, set, err))
        return true;
    const char *hint = vault_hint_text(set->refused, err);
    if (hint != NULL)
        cli_hint(run->cli, "%s", hint);
    return false;
}

/* In one repository is enough. A repository that does not answer fails later. */
static bool find_pause(struct backup_open *open, struct archive_pause *ret)
{
    for (size_t i = 0; i < open->n; i++)
        if (open->stores[i] != NULL && archive_pause_read(&open->repos[i], ret, NULL) &&
            ret->paused)
            return true;
    return false;
}

/* No hook runs, and no heartbeat is sent. */
static void report_pause(struct run *run, const struct backup_target *target,
                         const struct archive_pause *pause)
{
    struct json_write *json = &run->cli->out;
    struct rd_err err = {0};
    run->n_paused++;
    cli_warn(run->cli, "%s is paused since %s%s%s: no set was made; redoubt resume %s ends it",
             target->name, rd_show_time(pause->since_ms).s, pause->reason[0] != '\0' ? ", " : "",
             rd_show_plain(rd_slice_str(pause->reason)).s, target->name);
    backup_metrics_pause(target, true, &err);
    report_partial(run, &err);
    if (!run->cli->json)
        return;
    json_obj(json);
    json_put_str(json, "target", target->name);
    json_put_bool(json, "ok", false);
    json_put_bool(json, "paused", true);
    json_put_int(json, "since_ms", pause->since_ms);
    json_put_str(json, "reason", pause->reason);
    json_end(json);
}

static void backup_target(struct run *run, const struct backup_target *target)
{
    struct rd_err err = {0};
    struct backup_open open = {0};
    struct backup_set set = {.open = &open, .tags = run->tags, .n_tags = run->n_tags};
    struct archive_pause pause;
    bool opened = backup_open(target, BACKUP_WRITE, &open, &err);
    if (opened && find_pause(&open, &pause)) {
        report_pause(run, target, &pause);
        backup_close(&open);
        return;
    }
    bool ok = opened && take_set(run, &set, &err);
    if (ok) {
        run->n_good++;
        if (run->cli->json)
            report_json(run, &set);
        else
            report_text(run, &set);
        report_repositories(run, &open);
    } else {
        rd_err_doing(&err, "the target %s", target->name);
        report_failure(run, target, &err);
    }
    if (!set.locked_out)
        after(run, target, &set, ok ? NULL : &err);
    backup_set_done(&set);
    if (opened)
        backup_close(&open);
}

static int backup_all(struct run *run)
{
    struct cli *cli = run->cli;
    struct rd_err err = {0};
    if (!vault_load(&run->vault, cli->args, cli->n_args, &err))
        return cli_fail(cli, &err);
    if (cli->json) {
        json_key(&cli->out, "sets");
        json_array(&cli->out);
    }
    for (size_t i = 0; i < run->vault.config.n_targets; i++)
        backup_target(run, &run->vault.config.targets[i]);
    if (cli->json)
        json_end(&cli->out);
    if (run->n_bad > 0)
        return run->n_good > 0 ? CLI_PARTIAL : run->status;
    return run->partial ? CLI_PARTIAL : run->n_paused > 0 ? CLI_PAUSED : CLI_OK;
}

static bool on_tag(void *ctx, const char *value, struct rd_err *err)
{
    struct run *run = ctx;
    if (run->n_tags == ARCHIVE_TAGS_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a set has more than %d tags",
                          ARCHIVE_TAGS_MAX);
    return archive_tag_parse(&run->tags[run->n_tags], rd_slice_str(value), err) &&
           ++run->n_tags > 0;
}

int tool_backup(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli};
    struct cli_opt opts[VAULT_OPTS] = {0};
    vault_init(&run.vault, cli);
    size_t n = vault_options(&run.vault, opts,
                             BACKUP_FOR_REPOSITORY | BACKUP_FOR_KEYS | BACKUP_FOR_SOURCE |
                                 BACKUP_FOR_WRITING | BACKUP_FOR_KEEP | BACKUP_FOR_BACKUP);
    opts[n] = (struct cli_opt){.name = "tag",
                               .kind = CLI_EACH,
                               .arg = "NAME[=VALUE]",
                               .each = on_tag,
                               .ctx = &run,
                               .help = "a name that the set gets; repeatable"};
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] [TARGET…]",
        .about = "Backs up each TARGET of the configuration: reads the source, checks it,\n"
                 "compresses, seals and stores it. Damaged data never becomes a set.",
        .opts = opts,
        .max_args = CLI_MANY,
        .example = "redoubt backup nightly",
    };
    int status;
    if (cli_parse(cli, &usage, argc, argv, &status))
        status = backup_all(&run);
    vault_done(&run.vault);
    return status;
}
