#include "tools/cli/watch.h"

static void say(void *ctx, enum rd_watch_kind kind, const char *text)
{
    switch (kind) {
    case RD_WATCH_WARNING:
        cli_warn(ctx, "%s", text);
        return;
    case RD_WATCH_NOTE:
        cli_note(ctx, "%s", text);
        return;
    case RD_WATCH_DETAIL:
        cli_debug(ctx, "%s", text);
        return;
    default:
        cli_hint(ctx, "%s", text);
    }
}

static void begin(void *ctx, const char *what, uint64_t total, const struct rd_src *src)
{
    struct cli *cli = ctx;
    cli_progress_begin(cli, what, total);
    cli->progress.src = src;
}

static void at(void *ctx, uint64_t done)
{
    cli_progress_at(ctx, done);
}

static void end(void *ctx)
{
    struct cli *cli = ctx;
    cli->progress.src = NULL;
    cli_progress_end(cli);
}

/* The progress is that of the source, if there is one: it may be that of a compressed file. */
static void at_source(void *ctx, uint64_t done)
{
    struct cli *cli = ctx;
    cli_progress_at(cli, cli->progress.src != NULL ? rd_src_offset(cli->progress.src) : done);
}

static void end_source(void *ctx)
{
    cli_progress_end(ctx);
}

struct rd_watch cli_job_watch(struct cli *cli)
{
    static const struct rd_watch_ops ops = {
        .say = say, .begin = begin, .at = at_source, .end = end_source};
    return (struct rd_watch){.ops = &ops, .ctx = cli};
}

struct rd_watch cli_watch(struct cli *cli)
{
    static const struct rd_watch_ops ops = {.say = say, .begin = begin, .at = at, .end = end};
    return (struct rd_watch){.ops = &ops, .ctx = cli};
}
