/* undo.c - `redoubt undo`: takes back what commands did to keys, and nothing that came after.
 *
 * First the plan is made and printed for all keys. Unless it has conflicts, each key is then read
 * again and changed in one transaction. Keys are traced in batches, so that memory does not grow
 * with their number.
 */
#include "tools/undo/undo.h"

#include "tools/tools.h"

#include <string.h>
#include <time.h>

typedef bool (*key_fn)(struct undo *u, const struct undo_key *key, struct rd_err *err);

static bool each_of_batch(struct undo *u, size_t at, uint64_t done, key_fn fn, struct rd_err *err)
{
    bool ok = at == u->traced || undo_trace(u, at, UNDO_BATCH, err);
    u->traced = at;
    for (size_t i = 0; ok && i < u->n_keys; i++) {
        ok = fn(u, &u->keys[i], err);
        cli_progress_at(u->cli, done + i);
    }
    return ok;
}

/* The batch that is still in memory comes first: it need not be traced again. */
static bool each_key(struct undo *u, const char *what, key_fn fn, struct rd_err *err)
{
    size_t n = (u->names.n + UNDO_BATCH - 1) / UNDO_BATCH;
    size_t first = u->traced != SIZE_MAX ? u->traced / UNDO_BATCH : 0;
    bool ok = true;
    cli_progress_begin(u->cli, what, u->names.n);
    for (size_t i = 0; ok && i < n; i++) {
        size_t batch = i == 0 ? first : i <= first ? i - 1 : i;
        ok = each_of_batch(u, batch * UNDO_BATCH, (uint64_t)i * UNDO_BATCH, fn, err);
    }
    cli_progress_end(u->cli);
    return ok;
}

static bool plan_key(struct undo *u, const struct undo_key *key, struct rd_err *err)
{
    struct history_merge merge = {.on_conflict = undo_report_conflict, .ctx = u};
    struct history_mirror *now = NULL;
    bool ok = key->unknown || undo_target_plan(u, key, &merge, &now, err);
    if (ok) {
        u->unknown += key->unknown;
        u->changed += merge.redo.n > 0;
        u->conflicts += merge.conflicts;
        ok = undo_report_key(u, key, &merge) || rd_err_nomem(err, 0);
    }
    history_mirror_free(now);
    history_merge_done(&merge);
    return ok;
}

static bool apply_key(struct undo *u, const struct undo_key *key, struct rd_err *err)
{
    return key->unknown || undo_target_apply(u, key, err);
}

static bool plan(struct undo *u, struct rd_err *err)
{
    if (!cli_open_out(u->cli, NULL, false, false, &u->report, err))
        return false;
    bool ok = each_key(u, "planning", plan_key, err);
    struct rd_sink *report = u->report;
    u->report = NULL;
    if (ok)
        return rd_sink_close(report, err);
    rd_sink_abort(report);
    return false;
}

static bool apply(struct undo *u, struct rd_err *err)
{
    return undo_target_begin(u, err) && each_key(u, "changing", apply_key, err) &&
           undo_target_end(u, err);
}

static int say_conflicts(const struct undo *u)
{
    cli_note(u->cli,
             "%s conflict%s: nothing was changed. --ours keeps what is there now, --theirs puts "
             "back what was there before",
             rd_show_count(u->conflicts).s, rd_show_plural(u->conflicts));
    return CLI_FINDINGS;
}

static int say_done(const struct undo *u)
{
    if (u->dry_run)
        cli_note(u->cli, "%s key%s would be changed", rd_show_count(u->changed).s,
                 rd_show_plural(u->changed));
    else if (u->peer_now == NULL && u->applied > 0)
        cli_note(u->cli, "nothing was changed; the commands for %s key%s are in %s",
                 rd_show_count(u->applied).s, rd_show_plural(u->applied),
                 strcmp(u->to, "-") == 0 ? "the output" : u->to);
    else
        cli_note(u->cli, "%s key%s changed%s%s", rd_show_count(u->applied).s,
                 rd_show_plural(u->applied),
                 u->peer_now != NULL && u->applied > 0 ? "; what takes this back is in " : "",
                 u->peer_now != NULL && u->applied > 0 ? u->save : "");
    return u->unknown + u->refused > 0 ? CLI_PARTIAL : CLI_OK;
}

static int run(struct undo *u)
{
    struct rd_err err = {0};
    bool ok =
        recorded_open(&u->in, &err) && recorded_add_arguments(&u->in, &err) && undo_choose(u, &err);
    if (!ok && recorded_again(&u->in, &err)) {
        history_names_done(&u->names);
        return run(u);
    }
    if (ok && u->names.n == 0) {
        cli_note(u->cli, "these commands changed no key");
        return CLI_FINDINGS;
    }
    ok = ok && undo_target_open(u, &err) && plan(u, &err);
    if (ok && !u->dry_run && u->conflicts == 0 && u->changed > 0)
        ok = apply(u, &err);
    if (!ok) {
        if (err.code == RD_ERR_PROTOCOL)
            peer_hint(u->cli, &err);
        return cli_fail(u->cli, &err);
    }
    return u->conflicts > 0 ? say_conflicts(u) : say_done(u);
}

static int check_options(struct undo *u)
{
    bool by_time = u->from_ms != INT64_MIN || u->until_ms != INT64_MAX;
    if ((u->command != NULL) == by_time)
        return cli_usage_error(u->cli, "either --command, or --from and --until, say what to take "
                                       "back");
    if (by_time && (u->from_ms == INT64_MIN || u->until_ms == INT64_MAX))
        return cli_usage_error(u->cli, "--from and --until belong together");
    if (u->ours && u->theirs)
        return cli_usage_error(u->cli, "--ours and --theirs exclude each other");
    if (u->to == NULL)
        return cli_usage_error(u->cli, "--to says which server, or which file");
    return CLI_OK;
}

static void done(struct undo *u)
{
    undo_trace_done(u);
    undo_target_done(u);
    rd_buf_done(&u->conflict_text);
    history_names_done(&u->names);
    peer_opts_done(&u->peer);
    recorded_close(&u->in);
}

int tool_undo(struct cli *cli, int argc, char **argv)
{
    struct undo u = {
        .cli = cli, .from_ms = INT64_MIN, .until_ms = INT64_MAX, .save_fd = -1, .traced = SIZE_MAX};
    int status;
    recorded_init(&u.in, cli);
    peer_opts_init(&u.peer);
    snprintf(u.save_name, sizeof u.save_name, "undo-%lld.resp", (long long)cli->began_ms);
    u.save = u.save_name;
    /* clang-format off */
    const struct cli_opt opts[] = {
        {.name = "command", .letter = 'c', .kind = CLI_STRING, .arg = "PLACE", .string = &u.command,
         .help = "the command at this place, or its transaction"},
        {.name = "from", .kind = CLI_TIME, .arg = "T", .time_ms = &u.from_ms,
         .help = "all commands of this time or later"},
        {.name = "until", .kind = CLI_TIME, .arg = "T", .time_ms = &u.until_ms,
         .help = "all commands of this time or earlier"},
        RECORDED_PATTERNS(&u.in),
        {.name = "to", .kind = CLI_STRING, .arg = "URL", .string = &u.to,
         .help = "the server to change, or a file for the commands"},
        {.name = "dry-run", .kind = CLI_FLAG, .flag = &u.dry_run,
         .help = "print the plan, change nothing"},
        {.name = "ours", .kind = CLI_FLAG, .flag = &u.ours,
         .help = "conflicts: keep what is there now"},
        {.name = "theirs", .kind = CLI_FLAG, .flag = &u.theirs,
         .help = "conflicts: put back what was there before"},
        {.name = "save", .kind = CLI_STRING, .arg = "FILE", .string = &u.save, .brief = true,
         .help = "where to save what takes the undo back"},
        {.name = "force", .kind = CLI_FLAG, .flag = &u.force, .brief = true,
         .help = "replace existing files"},
        RECORDED_OPTIONS(&u.in),
        PEER_URL_OPTIONS(&u.peer),
        {0},
    };
    /* clang-format on */
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] --command PLACE --to URL [KEY…]\n"
                    "[OPTION…] --from T --until T --to URL [KEY…]",
        .about = "Takes back what commands did to keys, and nothing that came after them.",
        .opts = opts,
        .max_args = CLI_MANY,
        .json_lines = &u.json,
        .example = "redoubt undo --command 1:88172 --to redis://localhost --dry-run",
    };
    if (!cli_parse(cli, &usage, argc, argv, &status))
        return status;
    status = check_options(&u);
    if (status == CLI_OK)
        status = run(&u);
    done(&u);
    return status;
}
