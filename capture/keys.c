#include "capture/keys.h"

struct keys {
    const struct rd_watch *watch;
    struct spool *spool;
};

static bool append(void *ctx, const void *bytes, size_t len, struct rd_err *err)
{
    const struct keys *keys = ctx;
    bool ok = spool_append(keys->spool, bytes, len, err);
    rd_watch_at(keys->watch, keys->spool->size);
    return ok;
}

static bool write_over(void *ctx, uint64_t offset, const void *bytes, size_t len,
                       struct rd_err *err)
{
    const struct keys *keys = ctx;
    return spool_write(keys->spool, offset, bytes, len, err);
}

static void cut(void *ctx, uint64_t size)
{
    const struct keys *keys = ctx;
    keys->spool->size = size;
}

bool capture_keys_read(const struct rd_watch *watch, const struct client_live_opts *opts,
                       struct spool *spool, struct client_live_result *ret, struct rd_err *err)
{
    struct keys keys = {watch, spool};
    const struct client_live_out out = {
        .append = append, .write = write_over, .cut = cut, .ctx = &keys};
    rd_watch_begin(watch, opts->target->name, RD_NO_OFFSET, NULL);
    bool ok = client_live_read(opts, &out, ret, err);
    rd_watch_end(watch);
    return ok;
}
