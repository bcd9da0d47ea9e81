#include "tools/input/live_in.h"

#include "capture/keys.h"
#include "tools/cli/watch.h"
#include "tools/input/snapshot_in.h"

static bool wants(void *ctx, uint64_t db, const struct rd_slice *name)
{
    return filter_may_want(ctx, db, name);
}

bool live_in_read(struct cli *cli, const struct live_in_opts *opts, struct spool *spool,
                  struct client_live_result *ret, struct rd_err *err)
{
    const struct rd_watch watch = cli_watch(cli);
    const struct client_live_opts live = {.target = opts->target,
                                          .functions = opts->functions,
                                          .wants = wants,
                                          .ctx = (void *)(uintptr_t)opts->filter};
    return capture_keys_read(&watch, &live, spool, ret, err);
}

static bool job_open(const void *ctx, const char *path, struct spool *spool, struct rd_src **ret,
                     struct rd_err *err)
{
    const struct live_in_job *job = ctx;
    return live_in_read(job->cli, job->opts, spool, job->result, err) &&
           spool_source(spool, path, ret, err);
}

static bool job_check_end(const void *ctx, struct rd_src *src, const struct rdb_event *trailer,
                          struct rd_err *err)
{
    const struct live_in_job *job = ctx;
    return snapshot_in_check_end(job->cli, src, NULL, trailer, err);
}

struct job_input live_in_job(const struct live_in_job *job)
{
    static const struct job_input_ops ops = {.open = job_open, .check_end = job_check_end};
    return (struct job_input){
        .path = job->opts->target->name, .ops = &ops, .ctx = job, .names_errors = true};
}
