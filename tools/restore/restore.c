/* restore.c - `redoubt restore`: a set, or the data of a moment, laid out so that a server loads
 * it. */
#include "base/mem.h"
#include "base/num.h"
#include "base/seal.h"
#include "tools/cli/peer_options.h"
#include "tools/restore/restore.h"
#include "tools/tools.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

enum { CLOCK_TOLERANCE_MS = 300000, REMOVED_MAX = 3, PROVE_MAX = 100 };

bool restore_of_cluster(const struct archive_set *set)
{
    return set->m.n_nodes > 0;
}

bool restore_of_log(const struct archive_set *set)
{
    return !backup_plan_is_snapshot(set) && !restore_of_cluster(set);
}

bool restore_converts(const struct restore *run)
{
    return run->version != 0 || run->dialect >= 0 || filter_active(&run->filter);
}

/* ---- one repository ---- */

/* Ids have seconds only. The time in a manifest that cannot be read is not known. */
static bool is_newer(const struct archive_set *set, const struct archive_set *than)
{
    if (set->time_ms != than->time_ms)
        return set->time_ms > than->time_ms;
    return set->err.code != RD_ERR_OK || set->m.begin_ms > than->m.begin_ms;
}

static bool wants_newest(const struct restore *run)
{
    return run->want.goal == BACKUP_GOAL_SET &&
           (run->want.id == NULL || strcmp(run->want.id, "latest") == 0);
}

/* Of another repository only the newest good set counts: it could not be restored. */
static bool is_left_out(const struct restore *run, const struct restore_source *source,
                        const struct archive_set *set)
{
    if (set->incomplete || !is_newer(set, run->set))
        return false;
    return !archive_set_good(set) || (source != run->source && set == source->newest);
}

static void warn_of_source(struct restore *run, const struct restore_source *source)
{
    char line[600];
    const struct archive_set *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < source->sets.n; i++) {
        if (!is_left_out(run, source, &source->sets.sets[i]))
            continue;
        first = &source->sets.sets[i];
        n++;
    }
    if (n == 0)
        return;
    const char *why = first->err.code != RD_ERR_OK ? rd_err_render(&first->err, line, sizeof line)
                      : first->refused             ? "it is not sealed, although there is a key"
                      : first->missing > 0         ? "files are missing or have another size"
                      : archive_set_good(first)    ? "it could not be restored"
                                                   : "verify found damage";
    cli_warn(run->cli, "%zu newer set%s of %s%s%s left out; %s: %s", n, rd_show_plural(n),
             run->repo->target, run->open.n > 1 ? " in " : "",
             run->open.n > 1 ? source->repo->store->origin : "", first->id, why);
}

/* Without a word, an older set would be taken for the newest one. */
static void warn_left_out(struct restore *run)
{
    for (size_t i = 0; i < run->open.n; i++)
        warn_of_source(run, &run->sources[i]);
}

static bool no_set(const struct restore *run, const struct archive_sets *sets, struct rd_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < sets->n; i++)
        n += sets->sets[i].refused;
    if (run->want.id == NULL && n > 0)
        return rd_err_set(err, RD_ERR_CHECKSUM, RD_NO_OFFSET,
                          "%s has no good set that is sealed; %zu %s not, although there is a key, "
                          "and may be forged: see --allow-unsealed",
                          run->repo->target, n, n == 1 ? "is" : "are");
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s has no good set%s%s in %s",
                      run->repo->target, run->want.id != NULL ? " " : "",
                      run->want.id != NULL ? rd_show_quote(rd_slice_str(run->want.id)).s : "",
                      run->repo->store->origin);
}

static bool choose_set(struct restore *run, struct archive_sets *sets, struct rd_err *err)
{
    backup_plan_done(&run->plan);
    run->plan = (struct backup_plan){.watch = &run->vault.watch,
                                     .repo = run->repo,
                                     .ring = &run->open.keys.ring,
                                     .want = run->want};
    if (run->want.goal != BACKUP_GOAL_SET) {
        if (!backup_plan_make(&run->plan, sets, err))
            return false;
        run->set = run->plan.base;
        return true;
    }
    run->set = archive_sets_find(sets, run->want.id, cli_now_ms());
    if (run->set == NULL)
        return no_set(run, sets, err);
    if (wants_newest(run))
        warn_left_out(run);
    if (run->set->time_ms > cli_now_ms() + CLOCK_TOLERANCE_MS)
        cli_warn(run->cli, "the set %s is in the future: it may not be the newest one, see --set",
                 run->set->id);
    rd_err_adopt(err, &run->set->err);
    return run->set->err.code == RD_ERR_OK;
}

/* Names the newest set that can be restored with the given keys. */
static void hint_older(struct restore *run, struct archive_sets *sets)
{
    unsigned n = 0;
    for (size_t i = sets->n; i-- > 0 && n < PROVE_MAX;) {
        struct archive_set *set = &sets->sets[i];
        if (!archive_set_good(set))
            continue;
        if (archive_set_prove(run->repo, set, NULL)) {
            cli_hint(run->cli,
                     "give the key of this set as well, or restore the newest one that the given "
                     "keys open: --set %s",
                     set->id);
            return;
        }
        n++;
    }
    cli_hint(run->cli, "give the key of this set as well; `redoubt list` shows others for --set");
}

/* Without the key of a set, a moment can still be restored from another one. */
static bool may_choose_another(const struct restore *run, const struct archive_set *set,
                               const struct rd_err *why)
{
    if (run->want.id != NULL)
        return false;
    return !archive_set_good(set) ||
           (run->want.goal != BACKUP_GOAL_SET && why->reason.id == RD_SEAL_REASON_KEY);
}

/* A set whose signature turns out to be wrong is not good any more, and another one is chosen. */
static bool find_set(struct restore *run, struct archive_sets *sets, struct rd_err *err)
{
    char line[600];
    while (choose_set(run, sets, err)) {
        struct archive_set *set = &sets->sets[run->set - sets->sets];
        struct rd_err why = {0};
        bool was_good = archive_set_good(set);
        if (archive_set_prove(run->repo, set, &why))
            return true;
        rd_err_doing(&why, "the set %s of %s", set->id, run->repo->target);
        if (!was_good || !may_choose_another(run, set, &why)) {
            if (why.reason.id == RD_SEAL_REASON_KEY)
                hint_older(run, sets);
            rd_err_adopt(err, &why);
            return false;
        }
        rd_err_adopt(&set->err, &why); /* not good any more */
        cli_warn(run->cli, "left out: %s", rd_err_render(&why, line, sizeof line));
    }
    return false;
}

static bool fits_set(const struct restore *run, struct rd_err *err)
{
    return strcmp(run->to, "-") != 0 || !restore_of_cluster(run->set) ||
           rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                      "the set is a cluster: restore it into a folder or a running cluster");
}

static bool restore_from(struct restore *run, struct archive_sets *sets, struct rd_err *err)
{
    bool server = client_target_is_url(run->to);
    run->result = (struct rebuild_counts){0}; /* another repository may have failed before */
    run->keys = 0;
    run->set = NULL;
    if (!find_set(run, sets, err) || !fits_set(run, err))
        return false;
    if (!run->dry_run && !(server ? restore_send(run, err) : restore_lay_out(run, err)))
        return false;
    if (!run->nothing)
        restore_report(run);
    return true;
}

/* Whether the set or a segment was removed by `prune` since it was listed. */
static bool is_removed(struct restore *run, const struct rd_err *err)
{
    if (err->code != RD_ERR_IO || err->sys != ENOENT || run->set == NULL)
        return false;
    bool gone = archive_set_gone(run->repo, run->set);
    if (gone)
        cli_note(run->cli, "the set %s was removed meanwhile", run->set->id);
    return gone;
}

/* ---- all repositories ---- */

static void list_source(struct restore *run, struct restore_source *source)
{
    if (source->listed || source->err.code != RD_ERR_OK)
        return;
    source->listed =
        backup_is_open(&run->open, (size_t)(source->repo - run->open.repos), &source->err) &&
        backup_list(&run->vault.watch, source->repo, &source->sets, &source->err);
    if (source->listed)
        source->newest = archive_sets_find(&source->sets, NULL, cli_now_ms());
}

static void forget_source(struct restore_source *source)
{
    if (source->listed)
        archive_sets_done(&source->sets);
    source->listed = false;
    source->newest = NULL;
}

/* Those that cannot be read come first, because they may have a newer set: their errors are
 * reported. */
static bool comes_before(const struct restore_source *a, const struct restore_source *b)
{
    if (a->listed != b->listed)
        return !a->listed;
    if (a->newest == NULL || b->newest == NULL)
        return a->newest != NULL && b->newest == NULL;
    return is_newer(a->newest, b->newest);
}

/* The repository with the newest set first: a run may have failed to store it in the others. */
static void sort_sources(struct restore *run)
{
    for (size_t i = 0; i < run->open.n; i++)
        list_source(run, &run->sources[i]);
    for (size_t i = 1; i < run->open.n; i++)
        for (size_t k = i; k > 0 && comes_before(&run->sources[k], &run->sources[k - 1]); k--) {
            struct restore_source swapped = run->sources[k];
            run->sources[k] = run->sources[k - 1];
            run->sources[k - 1] = swapped;
        }
}

static bool try_source(struct restore *run, struct restore_source *source, bool *ret_removed,
                       struct rd_err *err)
{
    *ret_removed = false;
    run->source = source;
    run->repo = source->repo;
    list_source(run, source);
    rd_err_adopt(err, &source->err);
    if (!source->listed)
        return false;
    bool ok = restore_from(run, &source->sets, err);
    *ret_removed = !ok && is_removed(run, err);
    backup_plan_done(&run->plan);
    return ok;
}

/* Uses the first repository that has the requested data. */
static bool try_sources(struct restore *run, struct rd_err *err)
{
    /* What was written to a server or standard output cannot be taken back. */
    bool final = strcmp(run->to, "-") == 0 || client_target_is_url(run->to);
    unsigned n_removed = 0;
    for (size_t i = 0; i < run->open.n; i++) {
        struct restore_source *source = &run->sources[i];
        struct rd_err failed = {0};
        bool removed;
        if (try_source(run, source, &removed, &failed))
            return true;
        if (removed && !final && n_removed++ < REMOVED_MAX) {
            forget_source(source);
            i--; /* with what is there now */
            continue;
        }
        bool last = i + 1 == run->open.n || (source->listed && final);
        if (!last)
            cli_report(run->cli, &failed);
        rd_err_reset(err);
        rd_err_adopt(err, &failed);
        if (last)
            break;
    }
    return false;
}

static bool restore_target(struct restore *run, struct rd_err *err)
{
    if (!backup_open(&run->vault.config.targets[0], BACKUP_READ, &run->open, err))
        return false;
    for (size_t i = 0; i < run->open.n; i++)
        run->sources[i] = (struct restore_source){.repo = &run->open.repos[i]};
    if (wants_newest(run))
        sort_sources(run);
    bool ok = try_sources(run, err);
    for (size_t i = 0; i < run->open.n; i++)
        forget_source(&run->sources[i]);
    backup_close(&run->open);
    return ok;
}

/* ---- the tool ---- */

static bool get_offset(const char *text, uint64_t *ret)
{
    return rd_num_get_u64(rd_slice_str(text), ret);
}

/* Returns the error of invalid options or combinations, or NULL. */
static const char *set_goal(struct restore *run)
{
    int n = (run->want.ms != INT64_MIN) + (run->offset_text != NULL) + (run->before_text != NULL);
    if (run->to == NULL)
        return "missing option: --to DIR, FILE or URL";
    if (n > 1)
        return "only one of --target-time, --target-offset and --before-command can be used";
    if (run->want.ms != INT64_MIN)
        run->want.goal = BACKUP_GOAL_TIME;
    if (run->offset_text != NULL)
        run->want.goal = BACKUP_GOAL_OFFSET;
    if (run->before_text != NULL)
        run->want.goal = BACKUP_GOAL_BEFORE;
    if (run->offset_text != NULL && !get_offset(run->offset_text, &run->want.offset))
        return "--target-offset is not an offset";
    if (run->before_text != NULL && !get_offset(run->before_text, &run->want.offset))
        return "--before-command is not the offset of a command";
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
    if (!vault_load(&run->vault, cli->args, cli->n_args, &err))
        return is_file_argument(cli) ? refuse_file(run) : cli_fail(cli, &err);
    if (run->vault.config.n_targets != 1)
        return cli_usage_error(cli, "the configuration has several targets: name one");
    peer_opts_init(&opts);
    bool ok = find_server(run, &opts, &err) && restore_target(run, &err);
    client_target_done(&run->server);
    peer_opts_done(&opts);
    if (!ok)
        return cli_fail(cli, &err);
    return run->nothing ? filter_report_nothing(cli, "restored") : CLI_OK;
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
        .synopsis = "[OPTION…] [TARGET] --to DIR|FILE|URL",
        .about = "Restores a backup, or the data of a moment, to a file, a server or its folder.",
        .opts = opts,
        .max_args = 1,
        .example = "redoubt restore nightly --target-time 2026-11-20T14:03:06Z --to out.rdb",
    };
    int status;
    filter_init(&run->filter, run->cli, cli_now_ms());
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
    struct restore run = {.cli = cli, .dialect = -1, .want.ms = INT64_MIN};
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
         .string = &run.want.id,
         .help = "this set; default: the newest good one"},
        {.name = "target-time",
         .kind = CLI_TIME,
         .arg = "T",
         .time_ms = &run.want.ms,
         .help = "the data as of this time"},
        {.name = "at", .kind = CLI_TIME, .arg = "T", .time_ms = &run.want.ms},
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
         .help = "the data before the command at this offset"},
        {.name = "replid",
         .kind = CLI_STRING,
         .arg = "ID",
         .string = &run.want.replid,
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
         .flag = &run.keep_unknown,
         .help = "keep the last known values of keys that unknown commands changed",
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
