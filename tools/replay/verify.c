/* verify.c - compares the server with the capture: rebuilds the dataset at the position where the
 * replay ended (tools/input/snapshot_in.h) and compares it with the server (diff). */
#include "tools/diff/diff.h"
#include "tools/replay/replay.h"

#include <inttypes.h>

/* Moved expiries differ from those in the capture. Each was moved by a different time; the smallest
 * shift shows which keys may have expired by now. */
static void begin(struct diff_tool *diff, const struct tool_replay *replay)
{
    bool moved = replay->expiry == REPLAY_RELATIVE && replay->least_shift_ms != INT64_MAX;
    cli_filter_init(&diff->filter, diff->cli, cli_now_ms());
    diff->opts.ignore_expire = replay->expiry == REPLAY_RELATIVE;
    diff->opts.judge_due = true;
    diff->opts.shift_ms = moved ? replay->least_shift_ms : 0;
}

bool replay_verify(struct tool_replay *replay, bool *ret_same, struct rd_err *err)
{
    char place[2 * 24];
    struct cli *cli = replay->cli;
    struct diff_tool diff = {.cli = cli,
                             .opts.max_elements = DIFF_ELEMENTS_DEFAULT,
                             .servers = replay->servers,
                             .path = {replay->path, cli->n_args > 1 ? cli->args[1] : NULL},
                             .url = {NULL, cli_url(cli, 1)}};
    diff.log = (struct snapshot_in_opts){.rebuild = {.until_ms = INT64_MIN, .until_offset = place}};
    snprintf(place, sizeof place, "%" PRIu64 ":%" PRIu64, replay->result.to_chapter,
             replay->result.to);
    if (cli->json) {
        json_key(&cli->out, "verify");
        json_obj(&cli->out);
    }
    begin(&diff, replay);
    bool ok = diff_tool_work(&diff, err);
    *ret_same = ok && !diff_differs(&diff.result);
    if (ok && cli->json) {
        json_put_bool(&cli->out, "same", *ret_same);
        json_end(&cli->out);
    } else if (ok && *ret_same && !cli->quiet) {
        printf("the server has the same data as the capture\n");
    }
    diff_tool_done(&diff);
    filter_done(&diff.filter);
    return ok;
}
