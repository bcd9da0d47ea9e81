/* restore.c - `redoubt restore`: a set, or the data of a moment, laid out so that a server loads
 * it. */
#include "base/mem.h"
#include "base/num.h"
#include "tools/cli/peer_options.h"
#include "tools/input/snapshot_in.h"
#include "tools/restore/restore.h"
#include "tools/tools.h"

#include <sys/stat.h>

bool restore_converts(const struct restore *run)
{
    return run->version != 0 || run->dialect >= 0 || filter_active(&run->filter);
}

bool restore_sends(const struct restore *run)
{
    return client_target_is_url(run->to);
}

/* ---- the work ---- */

static bool fits_set(const struct restore *run, struct rd_err *err)
{
    return strcmp(run->to, "-") != 0 || !backup_restore_is_cluster(run->r.set) ||
           rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                      "the set is a cluster: restore it into a folder or a running cluster");
}

static bool write_set(struct restore *run, struct rd_err *err)
{
    if (restore_sends(run))
        return restore_send(run, err);
    if (run->step == RESTORE_TRY)
        return true;
    bool ok = backup_lay_out(&run->out, &run->r, err);
    run->nothing = run->out.nothing;
    return ok;
}

static bool on_set(struct backup_restore *r, struct rd_err *err)
{
    struct restore *run = r->ctx;
    run->keys = run->earlier; /* another repository may have failed before */
    run->nothing = false;
    if (!fits_set(run, err) || (!run->dry_run && !write_set(run, err)))
        return false;
    if (!run->nothing && (run->dry_run || run->step != RESTORE_TRY))
        restore_report(run);
    return true;
}

static void on_failure(struct backup_restore *r, const struct rd_err *err)
{
    struct restore *run = r->ctx;
    cli_report(run->cli, err);
}

bool restore_target(struct restore *run, size_t target, struct rd_err *err)
{
    run->r.watch = &run->vault.watch;
    run->r.now_ms = run->cli->began_ms;
    run->r.final = strcmp(run->to, "-") == 0 || (restore_sends(run) && run->step != RESTORE_TRY);
    run->r.write = on_set;
    run->r.failed = on_failure;
    run->r.ctx = run;
    run->target = target;
    run->earlier = run->keys;
    return backup_restore(&run->r, &run->vault.config.targets[target], err);
}

/* ---- the tool ---- */

static bool get_offset(const char *text, uint64_t *ret)
{
    return rd_num_get_u64(rd_slice_str(text), ret);
}

/* Returns the error of invalid options or combinations, or NULL. */
static const char *set_goal(struct restore *run)
{
    int n = (run->r.want.ms != INT64_MIN) + (run->offset_text != NULL) + (run->before_text != NULL);
    if (run->to == NULL)
        return "missing option: --to DIR, FILE or URL";
    if (n > 1)
        return "only one of --target-time, --target-offset and --before-command can be used";
    if (run->r.want.ms != INT64_MIN)
        run->r.want.goal = BACKUP_GOAL_TIME;
    if (run->offset_text != NULL)
        run->r.want.goal = BACKUP_GOAL_OFFSET;
    if (run->before_text != NULL)
        run->r.want.goal = BACKUP_GOAL_BEFORE;
    if (run->offset_text != NULL && !get_offset(run->offset_text, &run->r.want.offset))
        return "--target-offset is not an offset";
    if (run->before_text != NULL && !get_offset(run->before_text, &run->r.want.offset))
        return "--before-command is not the offset of a command";
    if (run->r.skip_damaged && n > 0)
        return "--skip-damaged restores a set: it cannot be combined with a moment";
    if (run->version > 999)
        return "this RDB version does not exist";
    return NULL;
}

/* A server is shown as HOST:PORT: its URL may contain a password. */
static bool find_server(struct restore *run, struct peer_opts *opts, struct rd_err *err)
{
    run->shown = run->to;
    if (!client_target_is_url(run->to))
        return true;
    if (!peer_target_find(&run->server, opts, run->to, err))
        return false;
    run->shown = run->server.name;
    return true;
}

/* The argument names no target, but a file: its user wants to load it. */
static int refuse_file(const struct restore *run)
{
    struct cli *cli = run->cli;
    struct rd_err err = {0};
    struct rd_shown_name name = rd_show_plain(rd_slice_str(cli->args[0]));
    if (client_target_is_url(run->to))
        cli_hint(cli,
                 "redoubt convert --to resp --restore %s | redis-cli -u URL --pipe loads a "
                 "snapshot or a log into a running server",
                 name.s);
    else
        cli_hint(cli, "a server loads a snapshot that is dump.rdb in its folder when it starts");
    rd_err_set(&err, RD_ERR_USAGE, RD_NO_OFFSET,
               "%s is a file: restore takes the name of a target, and reads its repository",
               name.s);
    return cli_fail(cli, &err);
}

static bool is_file_argument(const struct cli *cli)
{
    struct stat st;
    return cli->n_args == 1 && stat(cli->args[0], &st) == 0;
}

static bool restore_targets(struct restore *run, struct rd_err *err)
{
    restore_set_layout(run);
    snapshot_in_watch_memory(run->cli);
    return run->vault.config.n_targets == 1 ? restore_target(run, 0, err)
                                            : restore_several(run, err);
}

static int restore(struct restore *run)
{
    struct cli *cli = run->cli;
    struct rd_err err = {0};
    struct peer_opts opts;
    const char *wrong = set_goal(run);
    if (wrong != NULL)
        return cli_usage_error(cli, "%s", wrong);
    if (!filter_check(&run->filter, &err))
        return cli_fail(cli, &err);
    run->r.filter = filter_active(&run->filter) ? &run->filter : NULL;
    if (!vault_load(&run->vault, cli->args, cli->n_args, &err))
        return is_file_argument(cli) ? refuse_file(run) : cli_fail(cli, &err);
    if (run->vault.config.n_targets != 1 && cli->n_args == 0)
        return cli_usage_error(cli, "the configuration has several targets: name one, or all "
                                    "shards of a cluster");
    wrong = restore_several_wrong(run);
    if (wrong != NULL)
        return cli_usage_error(cli, "%s", wrong);
    peer_opts_init(&opts);
    bool ok = find_server(run, &opts, &err) && restore_targets(run, &err);
    client_target_done(&run->server);
    peer_opts_done(&opts);
    if (!ok)
        return cli_fail(cli, &err);
    return run->nothing ? cli_filter_nothing(cli, "restored") : CLI_OK;
}

/* --key: the pattern that matches only this key. Patterns live as long as the filter. */
static bool add_key(void *ctx, const char *value, struct rd_err *err)
{
    struct restore *run = ctx;
    char *pattern = rd_alloc(2 * strlen(value) + 1), *at = pattern;
    if (pattern == NULL || !rd_buf_add(&run->patterns, &pattern, sizeof pattern)) {
        rd_free(pattern);
        return rd_err_nomem(err, strlen(value));
    }
    for (; *value != '\0'; value++) {
        if (strchr("*?[]\\^-", *value) != NULL)
            *at++ = '\\';
        *at++ = *value;
    }
    *at = '\0';
    return filter_add_match(&run->filter, pattern, err);
}

/* A URL may contain a password: it is removed from the command line, which other users can see. */
static bool set_to(void *ctx, const char *value, struct rd_err *err)
{
    struct restore *run = ctx;
    size_t len = strlen(value);
    union {
        const char *in;
        char *out;
    } argument = {.in = value};
    rd_free(run->to);
    run->to = rd_alloc(len + 1);
    if (run->to == NULL)
        return rd_err_nomem(err, len);
    memcpy(run->to, value, len + 1);
    if (client_target_is_url(value) && strchr(value, '@') != NULL)
        explicit_bzero(argument.out, len);
    return true;
}

static void free_to(struct restore *run)
{
    if (run->to != NULL)
        explicit_bzero(run->to, strlen(run->to));
    rd_free(run->to);
}

static void free_patterns(struct restore *run)
{
    char **patterns = (char **)(void *)run->patterns.ptr;
    for (size_t i = 0; i < run->patterns.len / sizeof *patterns; i++)
        rd_free(patterns[i]);
    rd_buf_done(&run->patterns);
}

static int parse_and_restore(struct restore *run, const struct cli_opt *opts, int argc, char **argv)
{
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] [TARGET…] --to DIR|FILE|URL",
        .about = "Restores a backup, or the data of a moment, to a file, a server or its folder.",
        .opts = opts,
        .max_args = CLI_MANY,
        .example = "redoubt restore nightly --target-time 2026-11-20T14:03:06Z --to out.rdb",
    };
    int status;
    cli_filter_init(&run->filter, run->cli, cli_now_ms());
    if (cli_parse(run->cli, &usage, argc, argv, &status))
        status = restore(run);
    filter_done(&run->filter);
    free_patterns(run);
    free_to(run);
    vault_done(&run->vault);
    return status;
}

int tool_restore(struct cli *cli, int argc, char **argv)
{
    struct restore run = {.cli = cli, .dialect = -1, .r.want.ms = INT64_MIN};
    struct cli_opt opts[VAULT_OPTS] = {0};
    vault_init(&run.vault, cli);
    size_t n = vault_options(&run.vault, opts,
                             BACKUP_FOR_REPOSITORY | BACKUP_FOR_KEYS | BACKUP_FOR_READING);
    const struct cli_opt own[] = {
        {.name = "to",
         .kind = CLI_EACH,
         .arg = "DIR|FILE|URL",
         .each = set_to,
         .ctx = &run,
         .help = "the destination; \"-\" is standard output"},
        {.name = "set",
         .kind = CLI_STRING,
         .arg = "ID",
         .string = &run.r.want.id,
         .help = "this set; default: the newest good one"},
        {.name = "target-time",
         .kind = CLI_TIME,
         .arg = "T",
         .time_ms = &run.r.want.ms,
         .help = "the data as of this time"},
        {.name = "at", .kind = CLI_TIME, .arg = "T", .time_ms = &run.r.want.ms},
        {.name = "target-offset",
         .kind = CLI_STRING,
         .arg = "N",
         .string = &run.offset_text,
         .help = "the data as of this offset of the stream"},
        {.name = "at-offset", .kind = CLI_STRING, .arg = "N", .string = &run.offset_text},
        {.name = "before-command",
         .kind = CLI_STRING,
         .arg = "N",
         .string = &run.before_text,
         .help = "the data before the command at this offset",
         .brief = true},
        {.name = "replid",
         .kind = CLI_STRING,
         .arg = "ID",
         .string = &run.r.want.replid,
         .brief = true,
         .help = "of this history, if the moment is in several"},
        {.name = "layout",
         .kind = CLI_ENUM,
         .words = "auto|rdb|aof",
         .choice = &run.layout,
         .help = "dump.rdb, or a log for appendonly yes",
         .brief = true},
        {.name = "rdb-version",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &run.version,
         .brief = true,
         .help = "6 to 15 (redis), 80, 81 (valkey)"},
        {.name = "dialect",
         .kind = CLI_ENUM,
         .arg = "NAME",
         .words = "redis|valkey",
         .choice = &run.dialect,
         .brief = true,
         .help = "redis, or valkey (9 and later)"},
        {.name = "key",
         .kind = CLI_EACH,
         .arg = "KEY",
         .each = add_key,
         .ctx = &run,
         .brief = true,
         .help = "this key"},
        {.name = "dry-run",
         .kind = CLI_FLAG,
         .flag = &run.dry_run,
         .help = "only say what",
         .brief = true},
        {.name = "keep-unknown",
         .kind = CLI_FLAG,
         .flag = &run.r.keep_unknown,
         .help = "keep the last known values of keys that unknown commands changed",
         .brief = true},
        {.name = "skip-damaged",
         .kind = CLI_FLAG,
         .flag = &run.r.skip_damaged,
         .help = "leave out keys whose chunks are damaged",
         .brief = true},
        {.name = "force",
         .kind = CLI_FLAG,
         .flag = &run.force,
         .help = "replace an existing file",
         .brief = true},
        FILTER_OPTIONS(&run.filter),
    };
    _Static_assert(sizeof own / sizeof *own + BACKUP_KEY_COUNT + 2 <= VAULT_OPTS, "room");
    memcpy(opts + n, own, sizeof own);
    return parse_and_restore(&run, opts, argc, argv);
}
