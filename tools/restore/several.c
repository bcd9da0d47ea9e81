/* several.c - several targets as of one time: the shards of a cluster, each archived as a target.
 *
 * The moment of every target is proved before the first one is written. Then each gets a folder of
 * its own, and the files of all get their names together; or all are sent to one server or cluster,
 * which was found empty, and able to hold them, first.
 */
#include "tools/restore/restore.h"

#include <stdio.h>
#include <string.h>

const char *restore_several_wrong(const struct restore *run)
{
    if (run->vault.config.n_targets <= 1)
        return NULL;
    if (run->r.want.goal != BACKUP_GOAL_TIME)
        return "several targets can only be restored to one time: --target-time";
    if (run->r.want.id != NULL || run->r.want.replid != NULL)
        return "--set and --replid are of one target";
    if (run->force)
        return "--force cannot be used with several targets: their folders must be new, or the "
               "server empty";
    if (strcmp(run->to, "-") == 0)
        return "several targets are restored into a folder, or into a running server";
    return NULL;
}

/* The folder of the next target is `to`/NAME. */
static bool choose_folder(struct restore *run, size_t i, char path[BACKUP_PATH_MAX],
                          struct rd_err *err)
{
    size_t len = strlen(run->to);
    while (len > 1 && run->to[len - 1] == '/')
        len--;
    int n = snprintf(path, BACKUP_PATH_MAX, "%.*s/%s", (int)len, run->to,
                     run->vault.config.targets[i].name);
    if (n < 0 || n >= BACKUP_PATH_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path is too long");
    run->out.to = run->shown = path;
    return true;
}

static bool restore_one(struct restore *run, size_t i, struct rd_err *err)
{
    char path[BACKUP_PATH_MAX];
    if ((restore_sends(run) || choose_folder(run, i, path, err)) && restore_target(run, i, err))
        return true;
    rd_err_doing(err, "the target %s", run->vault.config.targets[i].name);
    return false;
}

/* Stops at the first target that fails, unless it only tries: then each one that fails is named. */
static bool restore_each(struct restore *run, enum restore_step step, struct rd_err *err)
{
    const char *shown = run->shown;
    bool ok = true;
    run->step = step;
    run->keys = 0;
    for (size_t i = 0; (ok || step == RESTORE_TRY) && i < run->vault.config.n_targets; i++) {
        struct rd_err one = {0};
        if (restore_one(run, i, &one))
            continue;
        if (!ok)
            cli_report(run->cli, err);
        *err = one;
        ok = false;
    }
    run->shown = shown;
    return ok;
}

/* The keys of a slot that is being moved can be in two masters. */
static bool send_all(struct restore *run, struct rd_err *err)
{
    if (restore_each(run, RESTORE_WRITE, err))
        return true;
    if (run->target > 0)
        cli_hint(run->cli, "the targets before it were sent: the server is not empty any more. If "
                           "a key exists already, it is in two of the targets, as while a slot is "
                           "moved: choose another time");
    return false;
}

static bool write_all(struct restore *run, struct rd_err *err)
{
    bool ok =
        backup_lay_out_begin(&run->out, run->to, err) && restore_each(run, RESTORE_WRITE, err);
    run->nothing = ok && run->keys == 0 && filter_active(&run->filter);
    ok = ok && (run->nothing || backup_lay_out_publish(&run->out, err));
    backup_lay_out_done(&run->out, ok && !run->nothing);
    return ok;
}

static bool restore_all(struct restore *run, struct rd_err *err)
{
    return restore_each(run, RESTORE_TRY, err) &&
           (run->dry_run || (restore_sends(run) ? send_all(run, err) : write_all(run, err)));
}

bool restore_several(struct restore *run, struct rd_err *err)
{
    struct json_write *json = &run->cli->out;
    if (run->cli->json) {
        json_put_int(json, "target_time_ms", run->r.want.ms);
        json_key(json, "targets");
        json_array(json);
    }
    bool ok = restore_all(run, err);
    if (run->cli->json && ok)
        json_end(json);
    else if (ok && !run->nothing && !run->cli->quiet)
        cli_note(run->cli, "the data of each target is what its archive had received by then, to "
                           "half a second");
    return ok;
}
