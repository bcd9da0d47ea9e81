/* write.c - restores into files and folders. */
#include "jobs/convert.h"
#include "tools/cli/watch.h"
#include "tools/input/snapshot_in.h"
#include "tools/restore/restore.h"

#include <stdio.h>

#define SPOOLS "/proc/self/fd/"

static bool open_out(void *ctx, const char *path, bool data, struct rd_sink **ret,
                     struct rd_err *err)
{
    struct restore *run = ctx;
    return cli_open_out(run->cli, path, run->force, data, ret, err);
}

static bool check_out(void *ctx, const char *path, struct rd_err *err)
{
    struct restore *run = ctx;
    if (cli_check_out(run->cli, path, run->force, err))
        return true;
    if (run->step == RESTORE_WRITE && run->cli->hint[0] != '\0') /* --force is refused */
        cli_hint(run->cli, "move it away, or restore into another folder");
    return false;
}

struct converting {
    struct restore *run;
    struct cli *cli;
    const char *path;
};

static bool open_converted(void *ctx, bool binary, struct rd_sink **ret, struct rd_err *err)
{
    const struct converting *c = ctx;
    return cli_open_out(c->cli, c->path, c->run->force, binary, ret, err);
}

/* The spool has no name, but a path under which it can be opened again. */
static bool convert(struct restore *run, const struct spool *spool, const char *path,
                    struct rd_err *err)
{
    char name[40];
    struct cli cli = *run->cli;
    struct converting c = {.run = run, .cli = &cli, .path = path};
    struct snapshot_in_opts log = SNAPSHOT_IN_ALL;
    const struct rd_watch watch = cli_job_watch(&cli);
    const struct snapshot_in_job in = {.cli = &cli, .opts = &log};
    struct convert_opts opts = CONVERT_OPTS;
    struct convert_result result;
    struct omitted omitted;
    snprintf(name, sizeof name, SPOOLS "%d", spool->fd);
    cli.json = false;
    log.from = SNAPSHOT_IN_FROM_RDB;
    omitted_init(&omitted, &watch, false);
    opts.in = snapshot_in_job(&in, name);
    opts.from = FROM_RDB;
    opts.target = TO_RDB;
    opts.version = run->version;
    opts.dialect = run->dialect;
    opts.filter = &run->filter;
    opts.may_be_empty = backup_staging_count(&run->out.staging) > 0; /* one of several files */
    opts.open_out = open_converted;
    opts.ctx = &c;
    opts.omitted = &omitted;
    bool ok = convert_run(&opts, &watch, &result, err) && omitted_report(&omitted, NULL, err);
    omitted_done(&omitted);
    run->keys += result.keys;
    memcpy(run->cli->hint, cli.hint, sizeof cli.hint);
    return ok;
}

static bool change(struct backup_lay_out *out, const struct archive_file *file,
                   const struct spool *snapshot, const char *path, struct rd_err *err)
{
    struct restore *run = out->ctx;
    bool ok = convert(run, snapshot, path, err);
    out->nothing = ok && !out->together && run->keys == 0 && filter_active(&run->filter);
    if (ok || err == NULL)
        return ok;
    if (strncmp(err->origin, SPOOLS, strlen(SPOOLS)) == 0)
        snprintf(err->origin, sizeof err->origin, "%.100s of the set %s", file->name,
                 run->r.set->m.id);
    if (err->code == RD_ERR_UNSUPPORTED && run->cli->hint[0] == '\0')
        cli_hint(run->cli, "restore it without --rdb-version and --dialect, and use redoubt "
                           "convert --lossy");
    return false;
}

void restore_set_layout(struct restore *run)
{
    run->out = (struct backup_lay_out){.to = run->to,
                                       .layout = (enum backup_layout)run->layout,
                                       .replaces = run->force,
                                       .open = open_out,
                                       .check = check_out,
                                       .change = restore_converts(run) ? change : NULL,
                                       .ctx = run};
}
