/* unlock.c - `redoubt unlock`: shows who has the locks of a target, and removes them. */
#include "tools/tools.h"
#include "tools/vault/vault.h"

#include <stdio.h>

struct run {
    struct cli *cli;
    struct vault vault;
    bool confirm, force;
    size_t n_left; /* locks that were to be removed and were not */
};

static const char *const state_words[ARCHIVE_LOCK_STATES] = {
    [ARCHIVE_LOCK_FREE] = "free",       [ARCHIVE_LOCK_ALIVE] = "alive",
    [ARCHIVE_LOCK_UNKNOWN] = "unknown", [ARCHIVE_LOCK_EXPIRED] = "expired",
    [ARCHIVE_LOCK_ENDED] = "ended",     [ARCHIVE_LOCK_OLD] = "old",
};

static const char *const kind_words[ARCHIVE_LOCK_KINDS] = {"sets", "stream", "merge"};

struct found {
    const struct archive_repo *repo;
    enum archive_lock_kind kind;
    struct archive_lock_report report;
    bool removed;
};

/* Whether the holder has certainly ended, or its time is over. */
static bool is_over(const struct found *f)
{
    const struct archive_lock_report *r = &f->report;
    return r->state == ARCHIVE_LOCK_EXPIRED || r->state == ARCHIVE_LOCK_ENDED ||
           (r->state == ARCHIVE_LOCK_OLD && f->kind == ARCHIVE_LOCK_SETS &&
            r->age_ms >= ARCHIVE_LOCK_OLD_MS);
}

/* ---- the report ---- */

static void put_time(struct json_write *json, const char *name, int64_t ms)
{
    json_key(json, name);
    if (ms > 0)
        json_int(json, ms);
    else
        json_null(json);
}

static void put_json(struct run *run, const struct found *f)
{
    struct json_write *json = &run->cli->out;
    const struct archive_lock_report *r = &f->report;
    bool beats = r->holder.id[0] != '\0';
    json_obj(json);
    json_put_str(json, "target", f->repo->target);
    json_put_str(json, "repository", f->repo->store->origin);
    json_put_str(json, "lock", kind_words[f->kind]);
    json_put_str(json, "state", state_words[r->state]);
    json_put_str(json, "owner", r->holder.owner[0] != '\0' ? r->holder.owner : NULL);
    json_put_str(json, "host", beats ? r->holder.host : NULL);
    put_time(json, "pid", (int64_t)r->holder.pid);
    put_time(json, "since_ms", r->holder.since_ms);
    put_time(json, "heartbeat_ms", r->holder.beat_ms);
    put_time(json, "expire_ms", beats ? (int64_t)r->holder.expire_ms : 0);
    json_key(json, "age_ms");
    if (r->age_ms >= 0)
        json_int(json, r->age_ms);
    else
        json_null(json);
    json_put_bool(json, "removed", f->removed);
    json_end(json);
}

/* The heartbeat, by the clock of the store if that is known, else by that of the holder. */
static void heartbeat_text(const struct found *f, char *dst, size_t size)
{
    const struct archive_lock_report *r = &f->report;
    const char *what = r->state == ARCHIVE_LOCK_OLD ? "written" : "last heartbeat";
    dst[0] = '\0';
    if (r->age_ms >= 0)
        snprintf(dst, size, ", %s %s ago", what, rd_show_duration((uint64_t)r->age_ms).s);
    else if (r->holder.beat_ms > 0)
        snprintf(dst, size, ", %s %s by its clock", what, rd_show_time(r->holder.beat_ms).s);
}

static const char *verdict(const struct found *f)
{
    switch (f->report.state) {
    case ARCHIVE_LOCK_ALIVE:
        return "it may be running";
    case ARCHIVE_LOCK_UNKNOWN:
        return "it is not known whether it is running";
    case ARCHIVE_LOCK_EXPIRED:
        return "expired: the next run takes it";
    case ARCHIVE_LOCK_ENDED:
        return "this process has ended: the next run takes it";
    default:
        return is_over(f)
                   ? "of a version without heartbeats, expired"
                   : "of a version without heartbeats: it is not known whether it is running";
    }
}

static void put_text(const struct run *run, const struct found *f)
{
    char beat[200];
    const struct archive_lock_report *r = &f->report;
    if (run->cli->quiet)
        return;
    printf("%s: %s: ", f->repo->target, kind_words[f->kind]);
    if (r->state == ARCHIVE_LOCK_FREE) {
        printf("not locked\n");
        return;
    }
    heartbeat_text(f, beat, sizeof beat);
    printf("%s%s (%s)%s\n",
           r->holder.owner[0] != '\0' ? rd_show_plain(rd_slice_str(r->holder.owner)).s
                                      : "another process",
           beat, verdict(f), f->removed ? ": removed" : "");
}

/* ---- the work ---- */

static bool look_at(struct run *run, struct backup_open *open, size_t at,
                    enum archive_lock_kind kind, struct rd_err *err)
{
    struct backup_hold hold = {.inited = false};
    struct archive_store *store = open->stores[at];
    struct found f = {.repo = &open->repos[at], .kind = kind};
    if (!backup_hold_init(&hold, open->target, backup_repository(open->target, at), kind, "unlock",
                          err))
        return false;
    bool ok = archive_lock_look(&hold.lock, store, &f.report, err);
    bool locked = ok && f.report.state != ARCHIVE_LOCK_FREE;
    if (locked && run->confirm && (run->force || is_over(&f)))
        ok = f.removed = archive_lock_break(&hold.lock, store, err);
    backup_hold_done(&hold);
    if (!ok)
        return false;
    run->n_left += locked && run->confirm && !f.removed;
    if (run->cli->json)
        put_json(run, &f);
    else
        put_text(run, &f);
    return true;
}

static bool work_on(void *ctx, struct backup_open *open, size_t at, struct rd_err *err)
{
    for (int kind = 0; kind < ARCHIVE_LOCK_KINDS; kind++)
        if (!look_at(ctx, open, at, (enum archive_lock_kind)kind, err))
            return false;
    return true;
}

static int conclude(const struct run *run, int status)
{
    if (run->n_left == 0 || status != CLI_OK)
        return status;
    cli_warn(run->cli, "%zu lock%s left, because the holder may be running: --force", run->n_left,
             run->n_left == 1 ? " is" : "s are");
    return rd_err_exit_status(RD_ERR_LOCKED);
}

static int unlock_all(struct run *run)
{
    struct cli *cli = run->cli;
    struct vault_each each = {0};
    struct rd_err err = {0};
    if (run->force && !run->confirm)
        return cli_usage_error(cli, "--force needs --confirm");
    if (!vault_load(&run->vault, cli->args, cli->n_args, &err) ||
        !vault_each_init(&each, cli, &run->vault, BACKUP_LIST, &err))
        return cli_fail(cli, &err);
    if (cli->json)
        json_put_bool(&cli->out, "confirm", run->confirm);
    vault_each_list(&each, "locks", work_on, run);
    int status = each.status;
    vault_each_done(&each);
    return conclude(run, status);
}

int tool_unlock(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli};
    struct cli_opt opts[VAULT_OPTS] = {0};
    vault_init(&run.vault, cli);
    size_t n = vault_options(&run.vault, opts, BACKUP_FOR_REPOSITORY);
    opts[n++] = (struct cli_opt){.name = "confirm",
                                 .kind = CLI_FLAG,
                                 .flag = &run.confirm,
                                 .help = "remove the locks of runs that have ended"};
    opts[n++] = (struct cli_opt){.name = "force",
                                 .kind = CLI_FLAG,
                                 .flag = &run.force,
                                 .help = "with --confirm: also those of runs that may be alive"};
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] [TARGET…]",
        .about = "Shows who has the locks of a target, and since when. With --confirm it removes\n"
                 "those of runs that have ended.",
        .opts = opts,
        .max_args = CLI_MANY,
        .example = "redoubt unlock nightly --confirm",
    };
    int status;
    if (cli_parse(cli, &usage, argc, argv, &status))
        status = unlock_all(&run);
    vault_done(&run.vault);
    return status;
}
