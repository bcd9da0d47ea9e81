/* Opens files, logs and servers for the comparison. */
#include "tools/diff/diff.h"

static bool has_no_functions(const struct diff_tool *diff)
{
    return filter_active(&diff->filter) || diff->facts[DIFF_A].no_functions ||
           diff->facts[DIFF_B].no_functions;
}

/* Reports what could not be read exactly from a server. */
static void print_live_notes(struct diff_tool *diff, enum diff_side side)
{
    const struct client_live_result *live = &diff->live_result[side];
    struct cli *cli = diff->cli;
    const char *name = diff->target[side].name;
    if (live->gone > 0)
        cli_note(cli, "%s: %s key%s disappeared during the read", name, rd_show_count(live->gone).s,
                 rd_show_plural(live->gone));
    if (live->changing > 0)
        cli_note(cli, "%s: the expiry of %s key%s changed between reads", name,
                 rd_show_count(live->changing).s, rd_show_plural(live->changing));
    if (live->unknown > 0)
        cli_warn(cli, "%s: %s key%s of unknown type %s not compared; the first is %s", name,
                 rd_show_count(live->unknown).s, rd_show_plural(live->unknown),
                 live->unknown == 1 ? "is" : "are", live->first_unknown);
    if (live->functions_refused && !has_no_functions(diff))
        cli_warn(cli, "%s: functions are not compared: no permission to read them", name);
    if (live->rough && !diff->opts.ignore_expire)
        cli_note(cli, "%s: reports expiry times approximately: differences up to %d ms are ignored",
                 name, CLIENT_LIVE_ROUGH_MS);
}

/* The side is the given URL, or for B the server that the options name. */
static bool read_server(struct diff_tool *diff, enum diff_side side, struct spool *spool,
                        struct rd_src **ret, struct rd_err *err)
{
    struct client_live_result *result = &diff->live_result[side];
    if (!peer_target_find(&diff->target[side], &diff->servers, diff->url[side], err))
        return false;
    const char *name = diff->target[side].name;
    diff->opts.input[side].path = name;
    if (diff->path[side] == NULL)
        diff->opts.name[side] = name;
    diff->live[side] = (struct live_in_opts){.target = &diff->target[side],
                                             .filter = &diff->filter,
                                             .functions = !has_no_functions(diff)};
    if (!live_in_read(diff->cli, &diff->live[side], spool, result, err) ||
        !spool_source(spool, name, ret, err)) {
        peer_hint(diff->cli, err);
        return false;
    }
    print_live_notes(diff, side);
    diff->facts[side] =
        (struct diff_facts){.tolerance_ms = result->rough ? CLIENT_LIVE_ROUGH_MS : 0,
                            .no_functions = result->functions_refused};
    return true;
}

static bool open_input(const void *ctx, const char *path, struct spool *spool, struct rd_src **ret,
                       struct rd_err *err)
{
    const struct diff_input *in = ctx;
    return in->tool->is_server[in->side]
               ? read_server(in->tool, in->side, spool, ret, err)
               : snapshot_in_open(in->tool->cli, path, &in->tool->log, spool, ret, err);
}

static bool check_end(const void *ctx, struct rd_src *src, const struct rdb_event *trailer,
                      struct rd_err *err)
{
    const struct diff_input *in = ctx;
    const struct snapshot_in_opts *log = in->tool->is_server[in->side] ? NULL : &in->tool->log;
    return snapshot_in_check_end(in->tool->cli, src, log, trailer, err);
}

void diff_tool_inputs(struct diff_tool *diff)
{
    static const struct job_input_ops ops = {.open = open_input, .check_end = check_end};
    for (int side = DIFF_A; side <= DIFF_B; side++) {
        const char *path = diff->path[side];
        diff->is_server[side] = path == NULL || client_target_is_url(path);
        diff->input[side] = (struct diff_input){.tool = diff, .side = (enum diff_side)side};
        diff->opts.name[side] = path != NULL ? path : "";
        diff->opts.facts[side] = &diff->facts[side];
        diff->opts.input[side] = (struct job_input){.path = diff->opts.name[side],
                                                    .ops = &ops,
                                                    .names_errors = diff->is_server[side],
                                                    .ctx = &diff->input[side]};
    }
}

bool diff_tool_is_partial(const struct diff_tool *diff)
{
    return diff->live_result[DIFF_A].unknown + diff->live_result[DIFF_B].unknown > 0;
}
