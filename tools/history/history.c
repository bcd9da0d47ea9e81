/* history.c - `redoubt history`: the versions of keys, from a capture or a log.
 */
#include "tools/history/history.h"

#include "base/mem.h"
#include "tools/tools.h"

/* ---- versions ---- */

static struct version *version_of(struct tool_history *h, const struct history_mirror *m)
{
    for (size_t i = 0; i < h->n_open; i++)
        if (h->open[i].mirror == m)
            return &h->open[i];
    struct version *open = rd_realloc(h->open, (h->n_open + 1) * sizeof *open);
    if (open == NULL)
        return NULL;
    h->open = open;
    open[h->n_open] = (struct version){.mirror = m};
    return &open[h->n_open++];
}

static bool is_wanted(const struct tool_history *h, const struct version *v)
{
    int64_t ms = v->time_us == INT64_MIN ? INT64_MIN : v->time_us / 1000;
    if (h->since_ms != INT64_MIN && ms < h->since_ms)
        return false;
    return h->until_ms == INT64_MAX || ms <= h->until_ms;
}

static bool print_version(struct tool_history *h, const struct version *v, struct rd_err *err)
{
    struct rd_buf out = {0};
    uint64_t end;
    if (!is_wanted(h, v))
        return true;
    if (h->html_path != NULL) {
        h->n++;
        return history_html_put(h, v, err);
    }
    bool ok = h->json ? history_json_put(h, v, &out, err)
                      : history_text_put(h, v, &out) || rd_err_nomem(err, out.len);
    ok = ok && spool_append(&h->spool, out.ptr, out.len, err);
    end = h->spool.size;
    ok = ok && (rd_buf_add(&h->ends, &end, sizeof end) || rd_err_nomem(err, sizeof end));
    h->n++;
    rd_buf_done(&out);
    return ok;
}

static bool is_something(const struct version *v)
{
    return v->created || v->removed || v->moved_here || v->moved_away || v->unknown || v->expiry ||
           v->added + v->gone + v->changed + v->written + v->beside > 0;
}

/* What was collected is complete. */
static bool close_versions(struct tool_history *h, struct rd_err *err)
{
    bool ok = true;
    for (size_t i = 0; i < h->n_open; i++) {
        struct version *v = &h->open[i];
        if (!v->begun)
            continue;
        ok = ok && (!is_something(v) || print_version(h, v, err));
        const struct history_mirror *m = v->mirror;
        version_done(v);
        v->mirror = m;
    }
    return ok;
}

static bool is_one_of_ours(const struct tool_history *h, const struct history_mirror *m)
{
    return (h->in.db == RECORDED_ANY_DB || m->db == h->in.db) &&
           history_names_has(&h->in.names, m->name);
}

static bool begin_version(struct tool_history *h, struct version *v)
{
    const struct history_visit *visit = h->visit;
    v->begun = true;
    v->place = visit->place;
    v->time_us = visit->time_us;
    v->in_multi = visit->in_multi;
    v->multi = visit->multi;
    v->is_base = visit->moment == HISTORY_LOADED;
    v->was_expire_ms = v->mirror->expire_ms;
    return true;
}

static bool take_edit(void *ctx, const struct history_mirror *mirror,
                      const struct history_edit *edit, struct rd_err *err)
{
    struct tool_history *h = ctx;
    if (!is_one_of_ours(h, mirror))
        return true;
    struct version *v = version_of(h, mirror);
    if (v == NULL || (!v->begun && !begin_version(h, v)))
        return rd_err_nomem(err, sizeof *v);
    return version_add_edit(h, v, edit) || rd_err_nomem(err, edit->after.len);
}

/* The commands of a transaction are one version. */
static bool continues(const struct tool_history *h, const struct history_visit *visit)
{
    for (size_t i = 0; i < h->n_open; i++)
        if (h->open[i].begun)
            return visit->in_multi && h->open[i].in_multi && h->open[i].multi == visit->multi &&
                   h->open[i].place.part == visit->place.part;
    return true;
}

/* A command belongs to the versions that it changed. */
static bool add_commands(struct tool_history *h, const struct history_visit *visit,
                         const uint64_t *before, size_t n_before, struct rd_err *err)
{
    for (size_t i = 0; i < h->n_open; i++) {
        uint64_t was = i < n_before ? before[i] : 0;
        if (h->open[i].begun && h->open[i].n_edits != was && !version_add_command(h, &h->open[i]))
            return rd_err_nomem(err, visit->line->argc);
    }
    return true;
}

static bool visit(void *ctx, const struct history_visit *visit, struct rd_err *err)
{
    struct tool_history *h = ctx;
    uint64_t *before = NULL;
    size_t n = h->n_open;
    if (visit->moment == HISTORY_BEFORE)
        return true;
    if (!continues(h, visit) && !close_versions(h, err))
        return false;
    before = rd_calloc(n + 1, sizeof *before);
    if (before == NULL)
        return rd_err_nomem(err, n);
    for (size_t i = 0; i < n; i++)
        before[i] = h->open[i].n_edits;
    h->visit = visit;
    bool ok =
        history_mirrors_visit(&h->mirrors, visit, err) && add_commands(h, visit, before, n, err);
    rd_free(before);
    return ok;
}

static void forget(struct tool_history *h)
{
    for (size_t i = 0; i < h->n_open; i++)
        version_done(&h->open[i]);
    h->n_open = 0;
    spool_done(&h->spool);
    h->spool = (struct spool){0};
    rd_buf_reset(&h->ends);
    rd_buf_reset(&h->pieces);
    h->n = 0;
}

static void restart(void *ctx)
{
    struct tool_history *h = ctx;
    forget(h);
    history_mirrors_reset(&h->mirrors);
}

/* ---- output ---- */

/* Where the last versions begin. */
static uint64_t begin_of_last(const struct tool_history *h)
{
    uint64_t at;
    if (h->last == 0 || h->last >= h->n)
        return 0;
    memcpy(&at, h->ends.ptr + (h->n - h->last - 1) * sizeof at, sizeof at);
    return at;
}

static bool print(struct tool_history *h, struct rd_err *err)
{
    struct rd_sink *out;
    struct rd_src *src;
    if (h->n == 0)
        return true;
    if (h->html_path != NULL)
        return history_html_write(h, err);
    if (!cli_open_out(h->cli, NULL, false, false, &out, err))
        return false;
    bool ok = spool_source(&h->spool, "versions", &src, err);
    if (ok) {
        ok = rd_src_seek(src, begin_of_last(h), err) && cli_copy(h->cli, src, out, err);
        rd_src_close(src);
    }
    if (ok)
        return rd_sink_close(out, err);
    rd_sink_abort(out);
    return false;
}

static bool replay(struct tool_history *h, struct rd_err *err)
{
    const struct history_replay_opts opts = {.tape = &h->in.tape,
                                             .indexes = &h->in.indexes,
                                             .names = &h->in.names,
                                             .now_us = h->cli->began_ms * 1000,
                                             .visit = visit,
                                             .restart = restart,
                                             .ctx = h};
    h->mirrors.on_edit = take_edit;
    h->mirrors.ctx = h;
    return history_replay(&opts, err) && close_versions(h, err);
}

static bool any_unknown(const struct tool_history *h)
{
    for (size_t i = 0; i < h->mirrors.n; i++)
        if (h->mirrors.list[i]->state == HISTORY_UNKNOWN && is_one_of_ours(h, h->mirrors.list[i]))
            return true;
    return false;
}

static int run(struct tool_history *h)
{
    struct rd_err err = {0};
    h->in.since_ms = h->since_ms;
    bool ok = (h->html_path == NULL || cli_check_out(h->cli, h->html_path, h->force, &err)) &&
              recorded_open(&h->in, &err) && recorded_add_names(&h->in, &err) &&
              recorded_who_find(&h->in, h->cli->began_ms * 1000, &err) && replay(h, &err) &&
              print(h, &err);
    if (!ok && recorded_again(&h->in, &err)) {
        restart(h);
        return run(h);
    }
    if (!ok)
        return cli_fail(h->cli, &err);
    if (h->n == 0) {
        cli_note(h->cli, "nothing is recorded of %s",
                 h->in.names.n == 1 ? rd_show_quote(h->in.names.list[0]).s : "these keys");
        return CLI_FINDINGS;
    }
    return any_unknown(h) ? CLI_PARTIAL : CLI_OK;
}

int tool_history(struct cli *cli, int argc, char **argv)
{
    struct tool_history h = {.cli = cli, .since_ms = INT64_MIN, .until_ms = INT64_MAX};
    int status;
    recorded_init(&h.in, cli);
    const struct cli_opt opts[] = {
        RECORDED_OPTIONS(&h.in),
        RECORDED_PATTERNS(&h.in),
        RECORDED_WHO(&h.in),
        {.name = "since",
         .kind = CLI_TIME,
         .arg = "T",
         .time_ms = &h.since_ms,
         .help = "versions of this time or later"},
        {.name = "until",
         .kind = CLI_TIME,
         .arg = "T",
         .time_ms = &h.until_ms,
         .help = "versions of this time or earlier"},
        {.name = "last",
         .letter = 'n',
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &h.last,
         .help = "only the last N versions"},
        {.name = "patch",
         .letter = 'p',
         .kind = CLI_FLAG,
         .flag = &h.patch,
         .help = "print the elements that came (+) and went (-)"},
        {.name = "values",
         .kind = CLI_FLAG,
         .flag = &h.values,
         .help = "print the whole value after each change"},
        {.name = "html",
         .kind = CLI_STRING,
         .arg = "OUT",
         .string = &h.html_path,
         .help = "write a page with the last 1000 versions"},
        {.name = "force",
         .brief = true,
         .kind = CLI_FLAG,
         .flag = &h.force,
         .help = "replace OUT if it exists"},
        {.name = "full",
         .kind = CLI_FLAG,
         .flag = &h.full,
         .help = "do not shorten long arguments and values"},
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] KEY…",
        .about = "Prints every version of a key: when, by which command, and what changed.",
        .opts = opts,
        .min_args = 0,
        .max_args = CLI_MANY,
        .json_lines = &h.json,
        .example = "redoubt history user:17 --in capture --patch",
    };
    if (!cli_parse(cli, &usage, argc, argv, &status))
        return status;
    h.patch = h.patch || h.html_path != NULL;
    if (h.json && h.html_path != NULL)
        status = cli_usage_error(cli, "--html and --json cannot be used together");
    else
        status = recorded_names_any(&h.in) ? run(&h) : cli_missing_argument(cli, &usage);
    forget(&h);
    rd_free(h.open);
    rd_buf_done(&h.ends);
    rd_buf_done(&h.pieces);
    history_mirrors_done(&h.mirrors);
    recorded_close(&h.in);
    return status;
}
