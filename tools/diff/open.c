/* Opens files, logs and servers for the comparison. */
#include "tools/diff/diff.h"

#include <errno.h>
#include <sys/random.h>

/* Reports what could not be read exactly from a server. */
static void print_live_notes(struct diff *diff, enum diff_side side)
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
    if (live->functions_refused && !diff->no_functions)
        cli_warn(cli, "%s: functions are not compared: no permission to read them", name);
    if (live->rough && !diff->ignore_expire)
        cli_note(cli, "%s: reports expiry times approximately: differences up to %d ms are ignored",
                 name, CLIENT_LIVE_ROUGH_MS);
}

/* The side is the given URL, or for B the server that the options name. */
static bool open_server(struct diff *diff, enum diff_side side, struct rd_err *err)
{
    if (!peer_target_find(&diff->target[side], &diff->servers, diff->url[side], err))
        return false;
    if (diff->path[side] == NULL)
        diff->shown[side] = diff->target[side].name;
    diff->live[side] = (struct live_in_opts){
        .target = &diff->target[side], .filter = &diff->filter, .functions = !diff->no_functions};
    diff->live_job[side] = (struct live_in_job){
        .cli = diff->cli, .opts = &diff->live[side], .result = &diff->live_result[side]};
    diff->input[side] = live_in_job(&diff->live_job[side]);
    if (!again_open(&diff->in[side], &diff->watch, &diff->input[side], &diff->filter, err)) {
        peer_hint(diff->cli, err);
        return false;
    }
    print_live_notes(diff, side);
    diff->no_functions |= diff->live_result[side].functions_refused;
    return true;
}

static bool open_side(struct diff *diff, enum diff_side side, struct rd_err *err)
{
    const char *path = diff->path[side];
    diff->shown[side] = path != NULL ? path : "";
    diff->is_server[side] = path == NULL || client_target_is_url(path);
    if (diff->is_server[side])
        return open_server(diff, side, err);
    diff->input[side] = snapshot_in_job(&diff->job, path);
    return again_open(&diff->in[side], &diff->watch, &diff->input[side], &diff->filter, err);
}

/* Fields that the older of the two formats does not have are not compared. */
bool diff_open(struct diff *diff, struct rd_err *err)
{
    struct rdb_content_opts *hashing = &diff->hashing;
    diff->watch = cli_job_watch(diff->cli);
    diff->job = (struct snapshot_in_job){.cli = diff->cli, .opts = &diff->log};
    diff->no_functions = filter_active(&diff->filter);
    for (int side = DIFF_A; side <= DIFF_B; side++) {
        const struct again *in = &diff->in[side];
        if (!open_side(diff, (enum diff_side)side, err))
            return false;
        hashing->no_offsets |= in->version < 10;
        hashing->no_idmp |= in->dialect == RDB_VALKEY || in->version < 13;
    }
    hashing->no_expire = diff->ignore_expire;
    if (getrandom(hashing->key, sizeof hashing->key, 0) < 0)
        return rd_err_sys(err, errno, "cannot get random bytes");
    return true;
}

bool diff_is_partial(const struct diff *diff)
{
    return diff->live_result[DIFF_A].unknown + diff->live_result[DIFF_B].unknown > 0;
}

void diff_close(struct diff *diff)
{
    for (int side = DIFF_A; side <= DIFF_B; side++) {
        again_close(&diff->in[side]);
        client_target_done(&diff->target[side]);
    }
}
