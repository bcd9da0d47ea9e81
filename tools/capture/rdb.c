/* rdb.c - the snapshot alone: asked for, verified while it is written, and given its name
 * when it is whole and sound.
 */
#include "tools/capture/priv.h"
#include "tools/snapshot/download.h"
#include "tools/snapshot/sound.h"

#include <stdio.h>

struct snapshot {
    struct capture *capture;
    struct client_target target;
    struct download download;
    struct sound sound;
};

static bool find_target(struct snapshot *s, struct rd_err *err)
{
    struct capture *c = s->capture;
    if (c->n_sentinels > 0)
        return capture_hosts_find_master(c, &s->target, err);
    s->target = c->target;
    c->target.user = c->target.password = NULL;
    return true;
}

static bool begin(struct snapshot *s, struct rd_err *err)
{
    struct capture *c = s->capture;
    if (!find_target(s, err))
        return false;
    s->download = (struct download){.cli = c->cli,
                                    .target = &s->target,
                                    .replica_version = c->replica_version,
                                    .rdb_filter = c->functions_only ? "functions" : NULL};
    s->sound.name = s->target.name;
    return download_begin(&s->download, err);
}

static bool check(struct snapshot *s, struct rd_err *err)
{
    struct rd_src *src;
    if (!download_source(&s->download, &src, err))
        return false;
    bool ok = sound_check(&s->sound, src, err);
    rd_src_close(src);
    return ok;
}

static bool work(struct snapshot *s, struct rd_err *err)
{
    struct capture *c = s->capture;
    struct rd_sink *out;
    if (!begin(s, err)) {
        capture_hint(c, err);
        return false;
    }
    if (!cli_open_out(c->cli, c->rdb_only, c->force, true, &out, err))
        return false;
    s->download.copy = out;
    bool ok = check(s, err);
    cli_progress_end(c->cli);
    if (ok)
        return rd_sink_close(out, err);
    rd_sink_abort(out);
    if (!s->sound.res.damaged)
        capture_hint(c, err);
    return false;
}

static void report_snapshot(const struct snapshot *s)
{
    struct cli *cli = s->capture->cli;
    const char *name = s->capture->rdb_only;
    uint64_t keys = s->sound.res.keys, functions = s->sound.res.functions;
    if (cli->json) {
        cli_json_put_str(&cli->out, "target", s->target.name);
        cli_json_put_str(&cli->out, "file", name);
        cli_json_put_uint(&cli->out, "bytes", s->download.size);
        cli_json_put_uint(&cli->out, "keys", keys);
        cli_json_put_uint(&cli->out, "functions", functions);
        cli_json_put_bool(&cli->out, "verified", true);
    } else if (strcmp(name, "-") != 0 && !cli->quiet) {
        printf("%s: %s, %s key%s, %s librar%s, verified\n", name, cli_bytes(s->download.size).s,
               cli_count(keys).s, cli_plural(keys), cli_count(functions).s,
               functions == 1 ? "y" : "ies");
    }
}

int capture_rdb(struct capture *capture)
{
    struct snapshot s = {.capture = capture};
    struct rd_err err = {0};
    bool ok = work(&s, &err);
    download_end(&s.download);
    if (ok)
        report_snapshot(&s);
    client_target_done(&s.target);
    return ok ? CLI_OK : cli_fail(capture->cli, &err);
}
