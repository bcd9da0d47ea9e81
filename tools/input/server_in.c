#include "tools/input/server_in.h"

#include "tools/input/live_in.h"
#include "capture/download.h"
#include "tools/cli/watch.h"

bool server_in_is(const char *path)
{
    return client_target_is_url(path);
}

/* The URL with its password, which the arguments do not have. */
static const char *whole_url(const struct cli *cli, const char *path)
{
    for (size_t i = 0; i < cli->n_args; i++)
        if (cli->args[i] == path)
            return cli_url(cli, i);
    return path;
}

struct progress {
    struct cli *cli;
    const struct spool *spool;
};

static void on_piece(void *ctx)
{
    const struct progress *progress = ctx;
    cli_progress_at(progress->cli, progress->spool->size);
}

static bool read_snapshot(struct cli *cli, const struct client_target *target, struct spool *spool,
                          struct rd_err *err)
{
    const struct rd_watch watch = cli_watch(cli);
    struct capture_download d = {.watch = &watch, .target = target};
    struct progress progress = {cli, spool};
    struct rd_src *src = NULL;
    bool ok = capture_download_begin(&d, err) && capture_download_source(&d, &src, err) &&
              spool_copy(spool, src, on_piece, &progress, err);
    rd_src_close(src);
    capture_download_end(&d);
    cli_progress_end(cli);
    return ok;
}

static bool read_keys(struct cli *cli, const struct client_target *target, struct spool *spool,
                      struct rd_err *err)
{
    struct client_live_result live = {0};
    struct filter all;
    cli_filter_init(&all, cli, cli_now_ms());
    const struct live_in_opts opts = {.target = target, .filter = &all, .functions = true};
    bool ok = live_in_read(cli, &opts, spool, &live, err);
    filter_done(&all);
    if (!ok)
        return false;
    if (live.unknown > 0) {
        cli->partial = true;
        cli_warn(cli, "%s key%s of unknown type %s not read; the first is %s",
                 rd_show_count(live.unknown).s, rd_show_plural(live.unknown),
                 live.unknown == 1 ? "was" : "were", live.first_unknown);
    }
    if (live.functions_refused)
        cli_warn(cli, "functions were not read: no permission");
    return true;
}

bool server_in_read(struct cli *cli, const char *path, const struct server_in_opts *opts,
                    struct spool *spool, struct rd_err *err)
{
    struct peer_opts none;
    struct client_target target = {0};
    peer_opts_init(&none);
    struct peer_opts *servers = opts->servers != NULL ? opts->servers : &none;
    bool ok = peer_target_find(&target, servers, whole_url(cli, path), err);
    if (ok) {
        ok = (opts->scan ? read_keys : read_snapshot)(cli, &target, spool, err);
        if (!ok) {
            peer_hint(cli, err);
            rd_err_origin(err, target.name);
        }
        client_target_done(&target);
    }
    peer_opts_done(&none);
    return ok;
}
