/* Files, logs and servers, opened to be compared. */
#include "tools/diff/priv.h"

#include <errno.h>
#include <sys/random.h>

/* What is not as it seems, of a server that was read. */
static void tell(struct diff *diff, enum diff_side side)
{
    const struct live_result *told = &diff->told[side];
    struct cli *cli = diff->cli;
    const char *name = diff->target[side].name;
    if (told->gone > 0)
        cli_note(cli, "%s: %s key%s went away while they were read", name, cli_count(told->gone).s,
                 cli_plural(told->gone));
    if (told->changing > 0)
        cli_note(cli, "%s: the expiry of %s key%s changed each time that it was read", name,
                 cli_count(told->changing).s, cli_plural(told->changing));
    if (told->unknown > 0)
        cli_warn(cli, "%s: %s key%s not compared, for their types are not known; the first is %s",
                 name, cli_count(told->unknown).s, told->unknown == 1 ? " is" : "s are",
                 told->first_unknown);
    if (told->functions_refused && !diff->no_functions)
        cli_warn(cli, "%s: functions are not compared: the user may not read them", name);
    if (told->rough && !diff->ignore_expire)
        cli_note(cli, "%s: does not tell expiries exactly: %d ms are allowed", name, LIVE_ROUGH_MS);
}

/* The side is the URL that was given, or, in the place of B, what the options name. */
static bool open_server(struct diff *diff, enum diff_side side, struct rd_err *err)
{
    if (!peer_target_find(&diff->target[side], &diff->servers, diff->url[side], err))
        return false;
    if (diff->path[side] == NULL)
        diff->shown[side] = diff->target[side].name;
    diff->live[side] = (struct live_opts){
        .target = &diff->target[side], .filter = &diff->filter, .functions = !diff->no_functions};
    if (!again_open_server(&diff->in[side], diff->cli, &diff->live[side], &diff->told[side], err)) {
        peer_hint(diff->cli, err);
        return false;
    }
    tell(diff, side);
    diff->no_functions |= diff->told[side].functions_refused;
    return true;
}

static bool open_side(struct diff *diff, enum diff_side side, struct rd_err *err)
{
    const char *path = diff->path[side];
    diff->shown[side] = path != NULL ? path : "";
    diff->is_server[side] = path == NULL || peer_is_url(path);
    return diff->is_server[side]
               ? open_server(diff, side, err)
               : again_open(&diff->in[side], diff->cli, path, &diff->log, &diff->filter, err);
}

/* What the older of two formats does not keep cannot be compared. */
bool diff_open(struct diff *diff, struct rd_err *err)
{
    struct rdb_content_opts *hashing = &diff->hashing;
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
        return rd_err_sys(err, errno, "cannot draw random bytes");
    return true;
}

bool diff_is_partial(const struct diff *diff)
{
    return diff->told[DIFF_A].unknown + diff->told[DIFF_B].unknown > 0;
}

void diff_close(struct diff *diff)
{
    for (int side = DIFF_A; side <= DIFF_B; side++) {
        again_close(&diff->in[side]);
        peer_target_done(&diff->target[side]);
    }
}
