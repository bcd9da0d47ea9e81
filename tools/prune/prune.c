/* prune.c - `redoubt prune`: removes the sets that no rule keeps. */
#include "backup/merge.h"
#include "backup/prune.h"
#include "backup/sweep.h"
#include "tools/tools.h"
#include "tools/vault/vault.h"

#include <inttypes.h>
#include <stdio.h>

struct run {
    struct cli *cli;
    struct vault vault;
    bool confirm;
    const char *pin, *unpin;
    int status;
};

static void why_text(unsigned why, char *dst, size_t size)
{
    size_t len = 0;
    dst[0] = '\0';
    for (unsigned rule = 0; rule < ARCHIVE_RULE_COUNT_ALL; rule++)
        if ((why & 1u << rule) != 0 && len < size)
            len += (size_t)snprintf(dst + len, size - len, "%s%s", len > 0 ? ", " : "",
                                    archive_rule_word((enum archive_rule)rule));
}

static void put_json(struct run *run, const struct archive_repo *repo,
                     const struct archive_set *set, unsigned why)
{
    struct json_write *json = &run->cli->out;
    json_obj(json);
    json_put_str(json, "target", repo->target);
    json_put_str(json, "repository", repo->store->origin);
    json_put_str(json, "id", set->id);
    json_put_bool(json, "set", !set->incomplete);
    json_put_bool(json, "keep", why != 0);
    json_key(json, "why");
    json_array(json);
    for (unsigned rule = 0; rule < ARCHIVE_RULE_COUNT_ALL; rule++)
        if ((why & 1u << rule) != 0)
            json_str(json, archive_rule_word((enum archive_rule)rule));
    json_end(json);
    json_put_uint(json, "bytes", set->bytes);
    json_end(json);
}

static void show_plan(struct run *run, const struct archive_repo *repo,
                      const struct backup_prune *plan)
{
    char why[200];
    for (size_t i = 0; i < plan->sets.n; i++) {
        const struct archive_set *set = &plan->sets.sets[i];
        if (run->cli->json) {
            put_json(run, repo, set, plan->why[i]);
            continue;
        }
        why_text(plan->why[i], why, sizeof why);
        if (!run->cli->quiet)
            printf("%s %s %s%s%s\n", set->id, plan->why[i] != 0 ? "keep  " : "remove",
                   rd_show_bytes(set->bytes).s, set->incomplete || why[0] != '\0' ? ", " : "",
                   set->incomplete ? "left by an interrupted backup" : why);
    }
}

static void conclude(struct run *run, const struct backup_prune *plan, size_t n_removed)
{
    if (run->cli->json || run->cli->quiet)
        return;
    size_t n = plan->n_segments_gone;
    char segments[60] = "";
    if (n > 0)
        snprintf(segments, sizeof segments, " and %zu segment%s of the stream", n,
                 rd_show_plural(n));
    if (run->confirm)
        printf("removed %zu set%s%s, kept %zu\n", n_removed, rd_show_plural(n_removed), segments,
               plan->n_kept);
    else
        printf("would remove %zu set%s%s (%s), keep %zu; nothing is removed without --confirm\n",
               plan->n_gone, rd_show_plural(plan->n_gone), segments,
               rd_show_bytes(plan->bytes_gone).s, plan->n_kept);
}

static void warn_unproved(struct run *run, const struct archive_repo *repo,
                          const struct backup_prune *plan)
{
    size_t n = plan->n_unproved;
    if (n > 0)
        cli_warn(run->cli,
                 "%s: %zu set%s not sealed with a key that is given: kept, and not counted by any "
                 "rule",
                 repo->target, n, n == 1 ? " is" : "s are");
    n = plan->stream.n_refused;
    if (n > 0)
        cli_warn(run->cli, "%s: %zu segment%s of the stream %s not sealed, and kept", repo->target,
                 n, rd_show_plural(n), n == 1 ? "is" : "are");
}

/* Packs of chunks, of which some are removed later. */
static void report_sweep(struct run *run, const struct archive_repo *repo,
                         const struct backup_sweep *sweep)
{
    if (run->cli->json || run->cli->quiet ||
        sweep->n_doomed + sweep->n_removed + sweep->n_rewritten == 0)
        return;
    printf("chunks of %s: removed %zu pack%s (%s), rewrote %zu, marked %zu for later\n",
           repo->target, sweep->n_removed, rd_show_plural(sweep->n_removed),
           rd_show_bytes(sweep->bytes_removed).s, sweep->n_rewritten, sweep->n_doomed);
}

static void report_merge(struct run *run, const struct archive_repo *repo,
                         const struct backup_merge *m)
{
    char line[600];
    if (m->n_refused > 0)
        cli_warn(run->cli, "%s: segments of the stream are not merged: %s", repo->target,
                 rd_err_render(&m->refused, line, sizeof line));
    if (m->locked)
        cli_note(run->cli, "%s: another process merges the stream now", repo->target);
    if (run->cli->json || run->cli->quiet || m->n_made + m->n_removed == 0)
        return;
    printf("stream of %s: merged %" PRIu64 " segment%s into %" PRIu64 ", removed %" PRIu64
           " (%s), and %" PRIu64 " later\n",
           repo->target, m->n_parts, rd_show_plural(m->n_parts), m->n_made, m->n_removed,
           rd_show_bytes(m->bytes_removed).s, m->n_waiting);
}

/* What remains of the stream. */
static bool merge(struct run *run, struct backup_open *open, size_t at, struct backup_merge *m,
                  struct rd_err *err)
{
    m->cancel = run->vault.watch.cancel;
    m->now_ms = cli_now_ms;
    if (m->on && open->keys_err.code == RD_ERR_OK && !backup_merge_run(m, open, at, "prune", err))
        return false;
    report_merge(run, &open->repos[at], m);
    return true;
}

/* What was listed is not listed again, unless a part of it was removed. */
static bool know(struct backup_merge *m, struct backup_open *open, struct backup_prune *plan,
                 struct rd_err *err)
{
    return !m->on || open->keys_err.code != RD_ERR_OK || plan->n_segments_gone > 0 ||
           backup_merge_know(m, open, &plan->sets, plan->why, &plan->stream, err);
}

static bool prune_repo(struct run *run, struct backup_open *open, size_t at,
                       const struct archive_retention *rules, struct rd_err *err)
{
    struct archive_repo *repo = &open->repos[at];
    struct backup_prune plan;
    struct backup_sweep sweep = {0};
    struct backup_merge m;
    size_t n_removed = 0;
    if (!backup_merge_init(&m, open->target, err) ||
        !backup_prune_plan(repo, rules, cli_now_ms(), &plan, err))
        return false;
    if (plan.sets.n_gone > 0)
        cli_note(run->cli, "%s: %zu set%s removed while the sets were listed", repo->target,
                 plan.sets.n_gone, plan.sets.n_gone == 1 ? " was" : "s were");
    show_plan(run, repo, &plan);
    warn_unproved(run, repo, &plan);
    bool ok = !run->confirm || backup_prune_run(repo, &plan, &n_removed, err);
    if (ok && run->confirm)
        backup_catalogue(&run->vault.watch, repo, &plan.sets);
    if (ok)
        conclude(run, &plan, n_removed);
    ok = ok && (!run->confirm ||
                backup_sweep(&run->vault.watch, open, at, &plan, cli_now_ms(), &sweep, err));
    if (ok)
        report_sweep(run, repo, &sweep);
    ok = ok && (!run->confirm || know(&m, open, &plan, err));
    backup_prune_done(&plan);
    ok = ok && (!run->confirm || merge(run, open, at, &m, err));
    backup_merge_done(&m);
    return ok;
}

/* --pin and --unpin. */
static bool is_mark(const struct run *run)
{
    return run->pin != NULL || run->unpin != NULL;
}

static bool mark(struct run *run, struct archive_repo *repo, struct rd_err *err)
{
    bool on = run->pin != NULL;
    return backup_prune_pin(&run->vault.watch, repo, on ? run->pin : run->unpin, on, cli_now_ms(),
                            err);
}

static bool work_on(void *ctx, struct backup_open *open, size_t at, struct rd_err *err)
{
    struct run *run = ctx;
    struct archive_retention rules;
    char line[600];
    if (!backup_prune_rules(open->target, &rules, err))
        return false;
    if (at == 0 && open->keys_err.code != RD_ERR_OK)
        cli_warn(run->cli, "%s: signatures are not verified: %s", open->target->name,
                 rd_err_render(&open->keys_err, line, sizeof line));
    if ((run->confirm || is_mark(run)) && !backup_lock(&run->vault.watch, open, at, "prune", err))
        return false;
    return is_mark(run) ? mark(run, &open->repos[at], err) : prune_repo(run, open, at, &rules, err);
}

/* Before anything is removed. */
static bool check_rules(const struct run *run, struct rd_err *err)
{
    for (size_t i = 0; i < run->vault.config.n_targets; i++) {
        const struct backup_target *target = &run->vault.config.targets[i];
        struct archive_retention rules;
        struct backup_merge merge;
        if (!backup_prune_rules(target, &rules, err) || !backup_merge_init(&merge, target, err))
            return false;
        if (!is_mark(run) && !archive_retention_given(&rules))
            cli_warn(run->cli, "%s has no rules (keep = …): everything is kept", target->name);
    }
    return true;
}

static int prune_all(struct run *run)
{
    struct cli *cli = run->cli;
    struct vault_each each = {0};
    struct rd_err err = {0};
    if (!vault_load(&run->vault, cli->args, cli->n_args, &err) || !check_rules(run, &err) ||
        !vault_each_init(&each, cli, &run->vault, BACKUP_JUDGE, &err))
        return cli_fail(cli, &err);
    if (cli->json)
        json_put_bool(&cli->out, "confirm", run->confirm);
    vault_each_list(&each, "sets", work_on, run);
    int status = each.status;
    vault_each_done(&each);
    return status;
}

int tool_prune(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli};
    struct cli_opt opts[VAULT_OPTS] = {0};
    vault_init(&run.vault, cli);
    size_t n = vault_options(&run.vault, opts,
                             BACKUP_FOR_REPOSITORY | BACKUP_FOR_KEYS | BACKUP_FOR_KEEP |
                                 BACKUP_FOR_READING | BACKUP_FOR_MERGING);
    opts[n++] = (struct cli_opt){
        .name = "confirm", .kind = CLI_FLAG, .flag = &run.confirm, .help = "remove the sets"};
    opts[n++] = (struct cli_opt){.name = "pin",
                                 .kind = CLI_STRING,
                                 .arg = "ID",
                                 .string = &run.pin,
                                 .help = "keep this set from now on; do nothing else"};
    opts[n++] = (struct cli_opt){.name = "unpin",
                                 .kind = CLI_STRING,
                                 .arg = "ID",
                                 .string = &run.unpin,
                                 .help = "apply the rules to this set again"};
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] [TARGET…]",
        .about = "Removes the sets of a repository that no rule keeps. Without --confirm it only\n"
                 "prints what it would remove.",
        .opts = opts,
        .max_args = CLI_MANY,
        .example = "redoubt prune nightly --confirm",
    };
    int status;
    if (cli_parse(cli, &usage, argc, argv, &status))
        status = prune_all(&run);
    vault_done(&run.vault);
    return status;
}
