#include "tools/input/live_in.h"

#include "capture/keys.h"
#include "tools/cli/watch.h"

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
