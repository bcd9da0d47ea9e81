/* show.c - `redoubt show`: prints the commands of a log or a capture, one per line.
 */
#include "tools/show/show.h"
#include "tools/tools.h"

/* Called if a command was selected, or if all are. */
static bool write_page(struct show *show, struct rd_err *err)
{
    struct rd_sink *out;
    if (!cli_open_out(show->cli, show->html_path, show->force, false, &out, err))
        return false;
    if (show_html_write(out, &show->sums, show->path, err))
        return rd_sink_close(out, err);
    rd_sink_abort(out);
    return false;
}

static int run(struct show *show)
{
    struct rd_err err = {0};
    struct json_write *json = &show->cli->out;
    if (!cli_check_out(show->cli, show->html_path, show->force, &err) ||
        (show->out_path != NULL &&
         !cli_open_out(show->cli, show->out_path, show->force, false, &show->out, &err)) ||
        !show_pick_check(&show->pick, &err) || !show_put_begin(show, &err))
        return cli_fail(show->cli, &err);
    if (show->cli->json) {
        json_key(json, "entries");
        json_array(json);
    }
    bool ok = rebuild_stream_is(show->path) ? show_capture(show, &err) : show_aof(show, &err);
    show_put_end(show);
    if (!ok)
        return cli_fail(show->cli, &err);
    if (show->n_seen > 0 || !show_pick_active(&show->pick)) {
        struct rd_sink *out = show->out;
        show->out = NULL;
        ok = (out == NULL || rd_sink_close(out, &err)) &&
             (show->html_path == NULL || write_page(show, &err));
        return ok ? CLI_OK : cli_fail(show->cli, &err);
    }
    cli_note(show->cli, "no command matches");
    return CLI_FINDINGS;
}

static void done(struct show *show)
{
    rd_sink_abort(show->out);
    show_put_done(show);
    show_pick_done(&show->pick);
    aof_manifest_done(&show->manifest);
    aof_job_done(&show->job);
}

static int check_options(struct show *show)
{
    bool context = show->before > 0 || show->after > 0;
    if (show->html_path == NULL && cli_name_ends(show->out_path, "html")) {
        show->html_path = show->out_path;
        show->out_path = NULL;
    }
    if (show->out_path != NULL &&
        (show->html_path != NULL || show->stats || show->count || show->cli->json || show->follow))
        return cli_usage_error(show->cli,
                               "-o is for the lines of commands, and for a name that ends "
                               "in .html");
    show->ndjson |=
        cli_name_ends(show->out_path, "ndjson") || cli_name_ends(show->out_path, "jsonl");
    if (show->html_path != NULL && (show->stats || show->cli->json))
        return cli_usage_error(show->cli, "--html cannot be used with --%s",
                               show->stats ? "stats" : "json");
    show->stats = show->stats || show->html_path != NULL;
    if (show->stats && (show->count || show->tail > 0 || show->follow || context || show->ndjson))
        return cli_usage_error(show->cli, "--%s cannot be used with options for printing commands",
                               show->html_path != NULL ? "html" : "stats");
    return CLI_OK;
}

/* Options that select commands; see tools/show/pick.c. p points to the struct show_pick. */
/* clang-format off */
#define PICK_OPTIONS(p)                                                                            \
    {.name = "command", .kind = CLI_EACH, .arg = "NAME", .each = show_pick_add_command,            \
     .ctx = (p), .help = "commands with this name or pattern"},                                    \
    {.name = "from", .kind = CLI_TIME, .arg = "T", .time_ms = &(p)->from_ms,                       \
     .help = "commands written at T or later"},                                                    \
    {.name = "until", .kind = CLI_TIME, .arg = "T", .time_ms = &(p)->until_ms,                     \
     .help = "commands written at T or earlier"},                                                  \
    {.name = "from-offset", .kind = CLI_STRING, .arg = "[FILE:]N", .string = &(p)->from_text,      \
     .help = "commands that begin at byte N or later", .brief = true},                             \
    {.name = "until-offset", .kind = CLI_STRING, .arg = "[FILE:]N", .string = &(p)->until_text,    \
     .help = "commands that begin at byte N or earlier", .brief = true},                           \
    {.name = "min-size", .kind = CLI_SIZE, .arg = "SIZE", .number = &(p)->min_size,                \
     .help = "commands of SIZE bytes or more", .brief = true},                                     \
    {.name = "max-size", .kind = CLI_SIZE, .arg = "SIZE", .number = &(p)->max_size,                \
     .help = "commands of SIZE bytes or less", .brief = true},                                     \
    FILTER_OPTION("db", "N", show_pick_add_db, p, "commands in database N"),                       \
    FILTER_OPTION("match", "GLOB", show_pick_add_match, p, "commands with a matching key"),        \
    FILTER_OPTION("match-regex", "ERE", show_pick_add_match_regex, p, "keys that match a regex"),  \
    FILTER_OPTION("prefix", "P", show_pick_add_prefix, p, "commands with a matching key"),         \
    FILTER_OPTION("slot", "A[-B]", show_pick_add_slot, p, "commands with a key of these slots"),   \
    FILTER_OPTION("not", NULL, show_pick_add_not, p, "negate the next option")
/* clang-format on */

int tool_show(struct cli *cli, int argc, char **argv)
{
    struct show show = {.cli = cli, .job = {.cli = cli}, .top = 10};
    show_pick_init(&show.pick, cli);
    aof_manifest_init(&show.manifest);
    const struct cli_opt opts[] = {
        PICK_OPTIONS(&show.pick),
        {.name = "before",
         .letter = 'B',
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &show.before,
         .help = "also print the N commands before each"},
        {.name = "after",
         .letter = 'A',
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &show.after,
         .help = "also print the N commands after each"},
        {.name = "stats",
         .kind = CLI_FLAG,
         .flag = &show.stats,
         .help = "print sums by command, key prefix and second"},
        {.name = "output",
         .letter = 'o',
         .kind = CLI_STRING,
         .arg = "OUT",
         .string = &show.out_path,
         .brief = true,
         .help = "write the lines to OUT"},
        {.name = "html",
         .kind = CLI_STRING,
         .arg = "OUT",
         .string = &show.html_path,
         .help = "write an HTML page with the sums over time to OUT"},
        {.name = "force",
         .kind = CLI_FLAG,
         .flag = &show.force,
         .help = "replace OUT if it exists",
         .brief = true},
        {.name = "top",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &show.top,
         .help = "--stats: rows of each table; default 10",
         .brief = true},
        {.name = "cut",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &show.cut,
         .help = "cut arguments longer than N bytes",
         .brief = true},
        {.name = "full",
         .kind = CLI_FLAG,
         .flag = &show.full,
         .help = "do not shorten long arguments",
         .brief = true},
        {.name = "follow",
         .letter = 'f',
         .kind = CLI_FLAG,
         .flag = &show.follow,
         .help = "wait for more commands, also in later files"},
        {.name = "tail",
         .letter = 'n',
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &show.tail,
         .help = "print only the last N lines"},
        {.name = "count",
         .letter = 'c',
         .kind = CLI_FLAG,
         .flag = &show.count,
         .help = "print the number of commands"},
        {.name = "ndjson",
         .kind = CLI_FLAG,
         .flag = &show.ndjson,
         .help = "print one JSON object per line"},
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] DIR|FILE",
        .about = "Prints the commands of a log or a capture, one per line: time, file (or\n"
                 "chapter) and offset, database, and the command as typed in redis-cli.",
        .opts = opts,
        .min_args = 1,
        .max_args = 1,
        .example = "redoubt show --command FLUSHALL --command FLUSHDB appendonlydir",
    };
    int status;
    if (cli_parse(cli, &usage, argc, argv, &status)) {
        show.path = show.job.path = cli->args[0];
        status = check_options(&show);
        if (status == CLI_OK)
            status = run(&show);
    }
    done(&show);
    return status;
}
