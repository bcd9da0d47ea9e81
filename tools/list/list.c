/* list.c - `redoubt list`: the sets of repositories. */
#include "archive/retain.h"
#include "base/buf.h"
#include "chunks/usage.h"
#include "tools/list/list.h"
#include "tools/tools.h"

#include <inttypes.h>
#include <stdio.h>

enum { CLOCK_TOLERANCE_MS = 300000 };

struct run {
    struct cli *cli;
    struct vault vault;
    struct vault_each each;
    const char *max_age_text;
    uint64_t max_age_ms; /* 0: not requested */
    const char *html_path;
    bool force;
    bool details;
    bool sizes;
    struct archive_tag_choice tags[ARCHIVE_TAGS_MAX];
    size_t n_tags;
    struct json_write *json; /* where the lists go; NULL: they are printed */
    struct json_later streams, pauses;
    int status;
};

/* usage: NULL if no set has chunks. */
static struct list_sizes sizes_of(const struct archive_set *set, const struct chunks_usage *usage,
                                  size_t i)
{
    struct list_sizes sizes = {set->bytes, set->bytes, set->bytes};
    for (size_t k = 0; usage != NULL && k < set->m.n_files; k++) {
        sizes.needed -= set->m.files[k].added;
        sizes.freed -= set->m.files[k].added;
    }
    sizes.needed += usage != NULL ? usage->total[i] : 0;
    sizes.freed += usage != NULL ? usage->only[i] : 0;
    return sizes;
}

static void list_set(struct run *run, const struct archive_repo *repo,
                     const struct archive_set *set, const struct list_sizes *sizes)
{
    if (run->json != NULL)
        list_json_set(run->json, repo, set, sizes);
    else if (!run->cli->quiet)
        list_text_set(set, sizes, run->cli->began_ms, run->details);
}

/* Those with all tags of --tag. */
static bool is_wanted(const struct run *run, const struct archive_set *set)
{
    for (size_t i = 0; i < run->n_tags; i++)
        if (!archive_tag_choice_has(&run->tags[i], set->m.tags, set->m.n_tags))
            return false;
    return true;
}

static bool on_tag(void *ctx, const char *value, struct rd_err *err)
{
    struct run *run = ctx;
    if (run->n_tags == ARCHIVE_TAGS_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "more than %d tags", ARCHIVE_TAGS_MAX);
    return archive_tag_choice_parse(&run->tags[run->n_tags], rd_slice_str(value), err) &&
           ++run->n_tags > 0;
}

static bool list_sets(struct run *run, struct archive_repo *repo, struct archive_sets *sets,
                      struct rd_err *err)
{
    struct chunks_usage usage;
    if (run->sizes && !chunks_usage_read(&usage, repo, sets, NULL, NULL, err))
        return false;
    if (run->json == NULL && !run->cli->quiet) {
        printf("%s in %s\n", repo->target, rd_show_plain(rd_slice_str(repo->store->origin)).s);
        if (sets->n > 0)
            list_text_header();
    }
    for (size_t i = 0; i < sets->n; i++) {
        struct list_sizes sizes = {0};
        if (run->sizes)
            sizes = sizes_of(&sets->sets[i], &usage, i);
        if (!sets->sets[i].incomplete && is_wanted(run, &sets->sets[i]))
            list_set(run, repo, &sets->sets[i], run->sizes ? &sizes : NULL);
    }
    if (run->sizes)
        chunks_usage_done(&usage);
    return true;
}

static bool list_chain(struct run *run, struct list_chain *c, const struct archive_sets *sets,
                       struct rd_err *err)
{
    const struct archive_segment *first = &c->stream->segments[c->begin];
    c->lost = c->begin > 0 ? archive_segment_lost(first - 1, first) : 0;
    if (c->lost > 0) {
        cli_warn(run->cli,
                 "%s: %" PRIu64 " segment%s of the stream %s missing before offset %" PRIu64,
                 c->repo->target, c->lost, rd_show_plural(c->lost), c->lost == 1 ? "is" : "are",
                 first->start);
        run->status = CLI_FINDINGS;
    }
    archive_stream_range(c->stream, c->begin, c->end, sets, &c->range);
    if (!archive_outages_find(&c->outages, c->stream, c->begin, c->end, err))
        return false;
    bool ok = archive_moments_of_chain(&c->moments, c->stream, c->begin, c->end, sets, err);
    if (ok && run->json != NULL)
        list_json_chain(&run->streams.json, c);
    else if (ok && !run->cli->quiet)
        list_text_chain(c);
    archive_moments_done(&c->moments);
    archive_outages_done(&c->outages);
    return ok;
}

/* Sets and segments that may be forged. */
static void check_sets(struct run *run, const struct archive_repo *repo,
                       const struct archive_sets *sets)
{
    char line[600];
    for (size_t i = 0; i < sets->n; i++) {
        const struct archive_set *set = &sets->sets[i];
        if (set->err != NULL)
            cli_warn(run->cli, "%s", rd_err_render(set->err, line, sizeof line));
        else if (set->refused)
            cli_warn(run->cli,
                     "%s %s is not sealed, although there is a key: it may be forged; see "
                     "--allow-unsealed",
                     repo->target, set->id);
        else
            continue;
        run->status = CLI_FINDINGS;
    }
}

/* No finding: keys that were replaced need not be where sets are listed. Which key a passphrase
 * makes is not known here. */
static void warn_of_keys(struct run *run, const struct archive_repo *repo,
                         const struct archive_sets *sets)
{
    const struct archive_set *newest = NULL;
    size_t n = 0;
    if (repo->ring == NULL || repo->ring->n_keys == 0 || repo->ring->passphrase.len > 0)
        return;
    for (size_t i = 0; i < sets->n; i++) {
        const struct archive_set *set = &sets->sets[i];
        if (!archive_set_good(set) || set->m.key_id[0] == '\0' ||
            set->m.signature != ARCHIVE_SIGNATURE_UNKNOWN)
            continue;
        newest = set;
        n++;
    }
    if (n > 0)
        cli_warn(run->cli,
                 "%s: %zu set%s sealed with keys that are not given; the newest one, %s, with the "
                 "key %s",
                 repo->target, n, n == 1 ? " is" : "s are", newest->id, newest->m.key_id);
}

static void check_stream(struct run *run, const struct archive_repo *repo,
                         const struct archive_stream *stream)
{
    if (stream->n_refused == 0)
        return;
    cli_warn(run->cli,
             "%s: %zu segment%s of the stream %s not sealed, although there is a key, and may be "
             "forged; see --allow-unsealed",
             repo->target, stream->n_refused, rd_show_plural(stream->n_refused),
             stream->n_refused == 1 ? "is" : "are");
    run->status = CLI_FINDINGS;
}

static bool list_stream(struct run *run, struct archive_repo *repo, const struct archive_sets *sets,
                        struct rd_err *err)
{
    struct archive_stream stream;
    if (!archive_stream_list(repo, &stream, err))
        return false;
    for (struct list_chain c = {.repo = repo, .stream = &stream}; c.begin < stream.n;
         c.begin = c.end) {
        c.end = archive_stream_chain(&stream, c.begin);
        if (!list_chain(run, &c, sets, err)) {
            archive_stream_done(&stream);
            return false;
        }
    }
    check_stream(run, repo, &stream);
    archive_stream_done(&stream);
    return true;
}

/* ---- the tool ---- */

static bool has_set(const struct archive_sets *sets)
{
    for (size_t i = 0; i < sets->n; i++)
        if (!sets->sets[i].incomplete)
            return true;
    return false;
}

/* Reports a finding if there is no set, or if the newest good one is too old. */
static void check_age(struct run *run, const struct archive_repo *repo, struct archive_sets *sets)
{
    const struct archive_set *newest = archive_sets_newest(sets, cli_now_ms());
    if (run->max_age_ms == 0) {
        if (has_set(sets))
            return;
        cli_warn(run->cli, "%s has no set in %s", repo->target, repo->store->origin);
        run->status = CLI_FINDINGS;
        return;
    }
    if (newest == NULL) {
        cli_warn(run->cli, "%s has no good set in %s", repo->target, repo->store->origin);
        run->status = CLI_FINDINGS;
        return;
    }
    int64_t age_ms = cli_now_ms() - newest->time_ms;
    if (age_ms < -CLOCK_TOLERANCE_MS) {
        cli_warn(run->cli, "%s: all good sets are in the future: a clock is wrong", repo->target);
        run->status = CLI_FINDINGS;
        return;
    }
    if (age_ms <= (int64_t)run->max_age_ms)
        return;
    cli_warn(run->cli, "%s: the newest good set, %s, is %s old", repo->target, newest->id,
             rd_show_duration((uint64_t)age_ms).s);
    run->status = CLI_FINDINGS;
}

static bool list_pause(struct run *run, struct archive_repo *repo, struct rd_err *err)
{
    struct archive_pause pause;
    if (!archive_pause_read(repo, &pause, err))
        return false;
    if (pause.paused && run->json != NULL)
        list_json_pause(&run->pauses.json, repo, &pause);
    else if (pause.paused && !run->cli->quiet)
        list_text_pause(&pause);
    return true;
}

static bool list_repo(void *ctx, struct backup_open *open, size_t at, struct rd_err *err)
{
    struct run *run = ctx;
    struct archive_repo *repo = &open->repos[at];
    struct archive_sets sets;
    if (!backup_list(&run->vault.watch, repo, &sets, err))
        return false;
    bool ok = list_sets(run, repo, &sets, err);
    check_sets(run, repo, &sets);
    warn_of_keys(run, repo, &sets);
    check_age(run, repo, &sets);
    ok = ok && list_stream(run, repo, &sets, err) && list_pause(run, repo, err);
    archive_sets_done(&sets);
    return ok;
}

/* Both lists, as members of an open object. */
static bool list_json(struct run *run, struct json_write *json, struct rd_err *err)
{
    if (!json_later_init(&run->streams, err) || !json_later_init(&run->pauses, err))
        return false;
    run->json = json;
    json_key(json, "sets");
    json_array(json);
    vault_each(&run->each, list_repo, run);
    json_end(json);
    if (!json_later_put(&run->streams, json, "streams", err) ||
        !json_later_put(&run->pauses, json, "paused", err))
        return false;
    vault_each_put_errors(&run->each, json);
    return true;
}

static bool write_page(struct run *run, struct rd_slice data, struct rd_err *err)
{
    struct rd_sink *out;
    if (!cli_open_out(run->cli, run->html_path, run->force, false, &out, err))
        return false;
    if (list_html_write(out, data, err))
        return rd_sink_close(out, err);
    rd_sink_abort(out);
    return false;
}

/* The page names the repositories that could not be read. */
static bool list_html(struct run *run, struct rd_err *err)
{
    struct rd_buf data = {0};
    struct rd_sink *sink;
    struct json_write json;
    if (!rd_sink_open_buf(&sink, &data, NULL, err))
        return false;
    json_init(&json, sink);
    json_obj(&json);
    json_put_int(&json, "now_ms", cli_now_ms());
    bool ok = list_json(run, &json, err);
    json_end(&json);
    ok = rd_sink_close(sink, ok ? err : NULL) && ok && write_page(run, rd_buf_slice(&data), err);
    rd_buf_done(&data);
    return ok;
}

static int check_options(struct run *run)
{
    if (run->max_age_text != NULL &&
        (!archive_get_duration(rd_slice_str(run->max_age_text), &run->max_age_ms) ||
         run->max_age_ms == 0))
        return cli_usage_error(run->cli, "--max-age must be a time such as 25h");
    if (run->html_path != NULL && run->cli->json)
        return cli_usage_error(run->cli, "--html and --json cannot be used together");
    return CLI_OK;
}

static int list_all(struct run *run)
{
    struct cli *cli = run->cli;
    struct rd_err err = {0};
    int status = check_options(run);
    if (status != CLI_OK)
        return status;
    bool ok =
        vault_load(&run->vault, cli->args, cli->n_args, &err) &&
        vault_each_init(&run->each, cli, &run->vault, run->sizes ? BACKUP_READ : BACKUP_LIST, &err);
    if (ok && run->html_path != NULL)
        ok = list_html(run, &err);
    else if (ok && cli->json)
        ok = list_json(run, &cli->out, &err);
    else if (ok)
        vault_each(&run->each, list_repo, run);
    status = run->status != CLI_OK ? run->status : run->each.status;
    vault_each_done(&run->each);
    return ok ? status : cli_fail(cli, &err);
}

int tool_list(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli};
    struct cli_opt opts[VAULT_OPTS] = {0};
    vault_init(&run.vault, cli);
    size_t n = vault_options(&run.vault, opts,
                             BACKUP_FOR_REPOSITORY | BACKUP_FOR_KEYS | BACKUP_FOR_READING);
    opts[n++] = (struct cli_opt){.name = "tag",
                                 .kind = CLI_EACH,
                                 .arg = "NAME[=VALUE]",
                                 .each = on_tag,
                                 .ctx = &run,
                                 .help = "only sets with this tag; repeatable"};
    opts[n++] = (struct cli_opt){.name = "max-age",
                                 .kind = CLI_STRING,
                                 .arg = "TIME",
                                 .string = &run.max_age_text,
                                 .help = "exit status 1 if the newest is older: 25h"};
    opts[n++] = (struct cli_opt){.name = "details",
                                 .kind = CLI_FLAG,
                                 .flag = &run.details,
                                 .help = "print files and sources as well"};
    opts[n++] = (struct cli_opt){.name = "sizes",
                                 .kind = CLI_FLAG,
                                 .flag = &run.sizes,
                                 .help = "print what each backup adds, needs and frees"};
    opts[n++] = (struct cli_opt){.name = "html",
                                 .kind = CLI_STRING,
                                 .arg = "OUT",
                                 .string = &run.html_path,
                                 .help = "write a page with a timeline"};
    opts[n++] = (struct cli_opt){
        .name = "force", .kind = CLI_FLAG, .flag = &run.force, .help = "replace OUT"};
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] [TARGET…]",
        .about = "Lists the backups of each TARGET of the configuration, and the times that the\n"
                 "archived stream covers.",
        .opts = opts,
        .max_args = CLI_MANY,
        .example = "redoubt list nightly --max-age 25h",
    };
    int status;
    if (cli_parse(cli, &usage, argc, argv, &status))
        status = list_all(&run);
    vault_done(&run.vault);
    return status;
}
