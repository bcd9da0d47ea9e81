#include "tools/input/live_in.h"

struct live_in {
    struct cli *cli;
    const struct filter *filter;
    struct spool *spool;
};

static bool wants(void *ctx, uint64_t db, const struct rd_slice *name)
{
    const struct live_in *in = ctx;
    return filter_may_want(in->filter, db, name);
}

static bool append(void *ctx, const void *bytes, size_t len, struct rd_err *err)
{
    struct live_in *in = ctx;
    bool ok = spool_append(in->spool, bytes, len, err);
    cli_progress_at(in->cli, in->spool->size);
    return ok;
}

static bool write_over(void *ctx, uint64_t offset, const void *bytes, size_t len,
                       struct rd_err *err)
{
    struct live_in *in = ctx;
    return spool_write(in->spool, offset, bytes, len, err);
}

static void cut(void *ctx, uint64_t size)
{
    struct live_in *in = ctx;
    in->spool->size = size;
}

bool live_in_read(struct cli *cli, const struct live_in_opts *opts, struct spool *spool,
                  struct client_live_result *ret, struct rd_err *err)
{
    struct live_in in = {.cli = cli, .filter = opts->filter, .spool = spool};
    const struct client_live_opts live = {
        .target = opts->target, .functions = opts->functions, .wants = wants, .ctx = &in};
    const struct client_live_out out = {
        .append = append, .write = write_over, .cut = cut, .ctx = &in};
    cli_progress_begin(cli, opts->target->name, RD_NO_OFFSET);
    bool ok = client_live_read(&live, &out, ret, err);
    cli_progress_end(cli);
    return ok;
}
