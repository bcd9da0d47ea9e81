/* check_rdb.c - `redoubt check-rdb`: verifies snapshots and salvages damaged ones.
 *
 * A file is checked in one pass. If its structure breaks, rdb_salvage() searches for records after
 * the damage. That needs a source that can seek, so the output of a decompressor is spooled first.
 * A pipe is spooled only if OUT is given, because it has to be spooled from the first byte.
 */
#include "rdb/check.h"

#include "base/mem.h"
#include "base/thread.h"
#include "base/worker.h"
#include "engine/script.h"
#include "rdb/damage.h"
#include "tools/cli/filter.h"
#include "tools/check_rdb/check_rdb.h"
#include "tools/input/server_in.h"
#include "data/spool.h"
#include "tools/tools.h"

#include <sys/stat.h>

struct run {
    struct cli *cli;
    bool quick, partial, force, strict, reseal;
    uint64_t threads;
    struct peer_opts servers;
    struct server_in_opts server;
    const char *out;        /* --salvage */
    const char *doubtful;   /* --doubtful: the file for keys that are not verified */
    struct filter filter;   /* keys that are written to OUT */
    struct rd_sink *sink;   /* OUT, while it is open */
    struct rd_sink *doubts; /* and DOUBTFUL */
    FILE *report;
    bool had[CLI_INTERRUPTED + 1]; /* statuses of the files so far */
};

/* The file that is checked. */
struct work {
    struct run *run;
    struct check_file *file;
    char fault[160]; /* of code that does not compile */
};

struct rd_slice check_aux_find(const struct check_file *file, const char *name)
{
    for (size_t i = 0; i < file->n_aux; i++)
        if (rd_slice_is(check_slice(file, file->aux[i].name), name))
            return check_slice(file, file->aux[i].value);
    return rd_slice("", 0);
}

/* ---- results of callbacks ---- */

static void on_finding(void *ctx, const struct rdb_finding *f)
{
    struct check_file *file = ((struct work *)ctx)->file;
    struct findings *found = &file->findings;
    rdb_damage_finding(&file->evidence, f);
    if (!findings_count(found, f->word, f->severity))
        return;
    const struct finding kept = {
        .id = f->id,
        .word = f->word,
        .severity = f->severity,
        .offset = f->offset,
        .inner = f->inner,
        .record = f->record,
        .db = f->db,
        .has_key = f->has_key,
        .key = f->has_key ? findings_keep(found, f->key) : (struct finding_text){0},
        .text = findings_keep(found, rd_slice_str(f->text)),
        .type = f->type,
    };
    findings_add(found, &kept);
}

/* Makes room for one more element of an array; false if memory runs out. */
static bool more(struct check_file *file, void **array, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return true;
    size_t bigger = *cap == 0 ? 16 : 2 * *cap;
    void *grown = rd_realloc(*array, bigger * size);
    if (grown == NULL) {
        rd_err_nomem(&file->findings.err, bigger * size);
        return false;
    }
    *array = grown;
    *cap = bigger;
    return true;
}

static struct check_loss *new_loss(struct check_file *file)
{
    void *array = file->losses;
    if (!more(file, &array, file->n_losses, &file->cap_losses, sizeof *file->losses))
        return NULL;
    file->losses = array;
    return &file->losses[file->n_losses++];
}

static void on_run(void *ctx, const struct rdb_salvage_run *run)
{
    struct check_file *file = ((struct work *)ctx)->file;
    void *array = file->runs;
    if (file->all_runs++ >= CHECK_RUNS ||
        !more(file, &array, file->n_runs, &file->cap_runs, sizeof *file->runs))
        return;
    file->runs = array;
    file->runs[file->n_runs++] = *run;
}

static void on_doubt(void *ctx, const struct rdb_salvage_doubt *doubt)
{
    struct check_file *file = ((struct work *)ctx)->file;
    void *array = file->doubts;
    if (file->all_doubts++ >= CHECK_RUNS ||
        !more(file, &array, file->n_doubts, &file->cap_doubts, sizeof *file->doubts))
        return;
    file->doubts = array;
    file->doubts[file->n_doubts++] =
        (struct check_doubt){.offset = doubt->offset,
                             .db = doubt->db,
                             .doubts = doubt->doubts,
                             .left_out = doubt->left_out,
                             .key = findings_keep(&file->findings, doubt->key),
                             .type = doubt->type};
}

static void on_loss(void *ctx, const struct rdb_loss *loss)
{
    struct check_file *file = ((struct work *)ctx)->file;
    struct findings *found = &file->findings;
    const char *resync = loss->resync != NULL ? loss->resync : "";
    if (file->n_loss[loss->kind]++ >= FINDINGS_KEPT)
        return;
    struct check_loss *kept = new_loss(file);
    if (kept == NULL)
        return;
    *kept = (struct check_loss){
        .kind = loss->kind,
        .from = loss->from,
        .to = loss->to,
        .at = loss->at,
        .db = loss->db,
        .kept = loss->kept,
        .has_key = loss->has_key,
        .key = loss->has_key ? findings_keep(found, loss->key) : (struct finding_text){0},
        .why = findings_keep(found, rd_slice_str(loss->why != NULL ? loss->why : "")),
        .resync = findings_keep(found, rd_slice_str(resync)),
        .type = loss->type,
    };
}

/* Stores the first bytes of an auxiliary field's value; the first of each name. */
static void on_aux(struct work *work, const struct rdb_event *ev)
{
    struct check_file *file = work->file;
    char tmp[RD_NUM_I64_MAX];
    bool first = ev->aux.value.is_int || ev->aux.value.first;
    if (!first || file->n_aux == CHECK_AUX || ev->aux.name.len > CHECK_AUX_MAX)
        return;
    if (rd_slice_is(ev->aux.name, "slot-info")) {
        file->slots++;
        return;
    }
    for (size_t i = 0; i < file->n_aux; i++)
        if (rd_slice_eq(check_slice(file, file->aux[i].name), ev->aux.name))
            return;
    struct rd_slice value = rdb_string_bytes(&ev->aux.value, tmp);
    if (value.len > CHECK_AUX_MAX)
        value.len = CHECK_AUX_MAX;
    struct check_aux *aux = &file->aux[file->n_aux++];
    aux->name = findings_keep(&file->findings, ev->aux.name);
    aux->value = findings_keep(&file->findings, value);
}

static void on_event(void *ctx, const struct rdb_event *ev)
{
    struct work *work = ctx;
    struct run *run = work->run;
    rdb_damage_event(&work->file->evidence, ev);
    if (ev->kind == RDB_AUX)
        on_aux(work, ev);
    else if (ev->kind == RDB_SLOT)
        work->file->slots++;
    if (run->cli->verbose > 0 && !run->cli->json)
        check_report_event(run->report, ev);
}

static void on_key(void *ctx, uint64_t offset)
{
    struct work *work = ctx;
    (void)offset;
    cli_tick(work->run->cli);
}

static void on_piece(void *ctx)
{
    struct work *work = ctx;
    cli_tick(work->run->cli);
}

static void on_offset(void *ctx, uint64_t offset)
{
    struct work *work = ctx;
    cli_progress_at(work->run->cli, offset);
}

/* An unreadable file has precedence over a damaged one, and that over an unsupported one. */
static int worst(const struct run *run)
{
    static const int order[] = {CLI_IO,       CLI_PROTOCOL, CLI_LIMIT,      CLI_USAGE,
                                CLI_FINDINGS, CLI_PARTIAL,  CLI_UNSUPPORTED};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (run->had[order[i]])
            return order[i];
    return CLI_OK;
}

/* ---- the passes ---- */

static bool is_stdin(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* For the options of a check and of salvage. */
static const char *compile(void *ctx, struct rd_slice code)
{
    struct work *work = ctx;
    return engine_script_compiles(code, work->fault, sizeof work->fault) ? NULL : work->fault;
}

static bool check_source(struct work *work, struct rd_src *src, struct rd_err *err)
{
    struct spool keys = {0};
    struct rdb_spool for_keys = spool_for_keys(&keys);
    struct rdb_check_opts opts =
        RDB_CHECK_OPTS(.quick = work->run->quick, .now_ms = cli_now_ms(), .finding = on_finding,
                       .tick = on_key, .event = on_event, .ctx = work, .spool = &for_keys,
                       .compile = work->run->quick ? NULL : compile,
                       .threads = (unsigned)work->run->threads);
    cli_seed(opts.seed);
    work->file->res = RDB_CHECK_RESULT();
    bool ok = rdb_check(src, &opts, &work->file->res, err);
    spool_done(&keys);
    if (ok && work->file->findings.err.code != RD_ERR_OK) {
        rd_err_adopt(err, &work->file->findings.err);
        ok = false;
    }
    return ok;
}

/* A second view of the input that can seek: the file itself if possible, else a spool of its bytes.
 */
struct view {
    struct spool spool;
    bool spooled;
};

static bool view_fill(struct work *work, struct view *view, struct rd_err *err)
{
    struct rd_src *src;
    if (server_in_is(work->file->path)) {
        view->spooled = true;
        work->file->scanned = work->run->server.scan;
        return server_in_read(work->run->cli, work->file->path, &work->run->server, &view->spool,
                              err);
    }
    if (!cli_open_in(work->run->cli, work->file->path, &src, err))
        return false;
    uint64_t size = rd_src_size(src);
    view->spooled = work->file->once || !rd_src_can_seek(src) || size == RD_NO_OFFSET || size == 0;
    bool ok = !view->spooled || spool_copy_torn(&view->spool, src, on_piece, work, err);
    work->file->torn = spool_torn_at(&view->spool);
    cli_close_in(work->run->cli, src);
    if (!ok)
        rd_err_origin(err, work->file->name);
    return ok;
}

static bool view_open(const struct work *work, const struct view *view, struct rd_src **ret,
                      struct rd_err *err)
{
    if (view->spooled)
        return spool_source(&view->spool, work->file->name, ret, err);
    return rd_src_open_file(ret, work->file->path, NULL, err);
}

static bool wants_key(void *ctx, const struct rdb_event *ev)
{
    const struct filter *filter = &((const struct work *)ctx)->run->filter;
    return ev->kind == RDB_KEY ? filter_wants(filter, ev)
                               : filter_wants_size(filter, ev->value_end.bytes);
}

static bool salvage_to(struct work *work, const struct view *view, struct rd_sink *out,
                       struct rd_err *err)
{
    struct check_file *file = work->file;
    struct rd_src *src = NULL, *copy = NULL;
    struct rdb_salvage_opts opts =
        RDB_SALVAGE_OPTS(.partial = work->run->partial, .enterprise = file->res.enterprise > 0,
                         .strict = work->run->strict, .reseal = work->run->reseal,
                         .doubtful = out != NULL ? work->run->doubts : NULL, .loss = on_loss,
                         .run = on_run, .doubt = on_doubt, .tick = on_offset,
                         .wants = filter_active(&work->run->filter) ? wants_key : NULL, .ctx = work,
                         .compile = compile,
                         .no_modules = !filter_may_want_modules(&work->run->filter));
    cli_seed(opts.seed);
    if (view->spooled && view->spool.size == 0) { /* empty */
        file->size = file->torn == RD_NO_OFFSET ? 0 : RD_NO_OFFSET;
        file->salvage.first_loss = RD_NO_OFFSET;
        file->searched = true;
        return true;
    }
    bool ok = view_open(work, view, &src, err);
    if (ok && out != NULL)
        ok = view_open(work, view, &copy, err);
    if (ok) {
        file->size = file->torn == RD_NO_OFFSET ? rd_src_size(src) : RD_NO_OFFSET;
        cli_progress_begin(work->run->cli, file->path, rd_src_size(src));
        file->salvage = RDB_SALVAGE_RESULT();
        ok = rdb_salvage(src, copy, out, &opts, &file->salvage, err);
        cli_progress_end(work->run->cli);
        file->searched = ok;
    }
    rd_src_close(copy);
    rd_src_close(src);
    if (ok && work->file->findings.err.code != RD_ERR_OK) {
        rd_err_adopt(err, &work->file->findings.err);
        ok = false;
    }
    return ok;
}

/* Whether OUT would hold only auxiliary fields although the input held more. */
static bool holds_nothing(const struct check_file *file)
{
    const struct rdb_salvage_result *sv = &file->salvage;
    bool lost = sv->ranges > 0 || sv->keys_dropped > 0 || sv->keys_left_out > 0;
    return sv->keys == 0 && sv->others == 0 && (file->res.damaged || lost);
}

/* Verifies OUT by reading it again. */
static bool verify(struct work *work, struct rd_err *err)
{
    struct check_file *file = work->file;
    struct rdb_check_result res = RDB_CHECK_RESULT();
    struct rdb_check_opts opts = RDB_CHECK_OPTS(.tick = on_key, .ctx = work, .compile = compile);
    struct rd_src *src;
    cli_seed(opts.seed);
    if (!cli_open_in(work->run->cli, file->out, &src, err))
        return false;
    bool ok = rdb_check(src, &opts, &res, err);
    cli_close_in(work->run->cli, src);
    file->well_formed = ok && !res.damaged && res.errors == 0;
    file->out_keys = res.keys;
    return ok;
}

/* Ends DOUBTFUL: without doubtful keys it is not created. */
static bool end_doubtful(struct work *work, struct rd_err *err)
{
    struct rd_sink *sink = work->run->doubts;
    work->run->doubts = NULL;
    if (sink == NULL || work->file->salvage.keys_left_out == 0) {
        rd_sink_abort(sink);
        return true;
    }
    if (!rd_sink_close(sink, err))
        return false;
    work->file->doubtful = work->run->doubtful;
    return true;
}

/* Ends the output: it is discarded if nothing could be saved. */
static bool end_output(struct work *work, struct rd_sink *out, struct rd_err *err)
{
    struct check_file *file = work->file;
    file->nothing_matched = check_nothing_matches(file);
    if (holds_nothing(file) || file->nothing_matched) {
        rd_sink_abort(out);
        return true;
    }
    if (!rd_sink_close(out, err))
        return false;
    file->out = work->run->out;
    file->out_keys = file->salvage.keys;
    return is_stdin(file->out) || verify(work, err);
}

static bool salvage(struct work *work, const struct view *view, struct rd_err *err)
{
    struct rd_sink *out = work->run->sink;
    if (out == NULL)
        return salvage_to(work, view, NULL, err);
    if (!salvage_to(work, view, out, err))
        return false;
    work->run->sink = NULL;
    work->file->salvaged = true;
    work->file->filtered = filter_active(&work->run->filter);
    bool ok = end_doubtful(work, err);
    return end_output(work, out, err) && ok;
}

/* What kind of file the bytes are. The source is at its beginning, before and after. */
static bool look_at_kind(struct check_file *file, struct rd_src *src, struct rd_err *err)
{
    struct rd_slice head = {0};
    enum rdb_foreign foreign;
    if (!rdb_foreign_find(src, &foreign, err))
        return false;
    file->kind = file_kind_of_foreign(foreign);
    if (file->kind == NULL && rd_src_need(src, FILE_KIND_LOOK, &head) != RD_SRC_FAIL)
        file->kind = file_kind_of(head);
    return true;
}

/* The first pass. The caller has filled `view` if the input can be read only once. */
static bool check(struct work *work, struct view *view, struct rd_err *err)
{
    struct cli *cli = work->run->cli;
    struct check_file *file = work->file;
    struct rd_src *src;
    bool once = (file->once && work->run->out != NULL) || server_in_is(file->path);
    if (once && !view_fill(work, view, err))
        return false;
    if (once ? !spool_source_torn(&view->spool, file->name, &src, err)
             : !cli_open_in(cli, file->path, &src, err))
        return false;
    if (rd_src_can_seek(src) && file->torn == RD_NO_OFFSET)
        file->size = rd_src_size(src);
    bool ok = look_at_kind(file, src, err);
    bool other = file->kind != NULL && work->run->out == NULL; /* with OUT it is searched */
    ok = ok && (other || check_source(work, src, err));
    if (ok && !other && !file->res.damaged)
        file->size = file->res.end + file->res.trailing;
    cli_close_in(cli, src);
    rd_err_origin(err, file->name);
    return ok;
}

static bool work_on(struct work *work, struct rd_err *err)
{
    struct check_file *file = work->file;
    struct view view = {0};
    bool ok = check(work, &view, err);
    bool look = work->run->sink != NULL || (rdb_damage_want_search(&file->res) && !file->once);
    file->checked = ok;
    if (ok && look)
        ok = (view.spooled || view_fill(work, &view, err)) && salvage(work, &view, err);
    spool_done(&view.spool);
    return ok;
}

/* ---- files ---- */

static bool can_be_read_once(const char *path)
{
    struct stat st;
    return is_stdin(path) || server_in_is(path) ||
           (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode));
}

static void name_file(struct check_file *file, const char *path)
{
    file->path = path;
    file->once = can_be_read_once(path);
    file->size = file->damage = file->torn = RD_NO_OFFSET;
    rdb_damage_init(&file->evidence);
    if (is_stdin(path)) {
        snprintf(file->name, sizeof file->name, "standard input");
        return;
    }
    rd_err_quote(file->name, sizeof file->name, rd_slice_str(path));
    size_t len = strlen(file->name) - 2; /* without the quotes */
    memmove(file->name, file->name + 1, len);
    file->name[len] = '\0';
}

/* False only if memory runs out before the check begins. */
static bool check_one(struct run *run, const char *path, struct rd_err *err)
{
    struct check_file *file = rd_calloc(1, sizeof *file);
    if (file == NULL)
        return rd_err_nomem(err, sizeof *file);
    struct work work = {.run = run, .file = file};
    file->verbose = run->cli->verbose > 0;
    name_file(file, path);
    bool ok = work_on(&work, &file->err);
    file->verdict = CHECK_UNREADABLE;
    if (file->checked)
        check_judge(file);
    check_report(run->cli, run->report, file);
    run->had[file->checked ? check_status(file) : CLI_OK] = true;
    if (!ok)
        run->had[rd_err_exit_status(file->err.code)] = true;
    if (file->out != NULL && !is_stdin(file->out) && !file->well_formed)
        run->had[CLI_FINDINGS] = true;
    /* If the report cannot be written, OUT is still worth having. */
    if (file->out != NULL && file->well_formed)
        cli_hint(run->cli, "%s is complete; only the report could not be written",
                 rd_show_plain(rd_slice_str(file->out)).s);
    findings_done(&file->findings);
    rd_free(file->losses);
    rd_free(file->runs);
    rd_free(file->doubts);
    rd_free(file);
    return true;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A folder: its snapshots. */
static bool check_path(struct run *run, const char *path, struct rd_err *err)
{
    struct check_folder folder = {0};
    bool ok = true;
    if (!is_folder(path) || !check_folder_list(&folder, path, err) || folder.n == 0) {
        if (folder.has_log)
            cli_hint(run->cli, "the folder has a log or a capture, but no snapshot: "
                               "use redoubt check-aof");
        else if (is_folder(path) && err->code == RD_ERR_OK)
            cli_hint(run->cli, "no name in this folder ends in .rdb");
        check_folder_done(&folder);
        return err->code == RD_ERR_OK && check_one(run, path, err);
    }
    if (run->out != NULL && folder.n > 1)
        ok = rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                        "--salvage accepts only one file, and the folder has several snapshots");
    for (size_t i = 0; ok && i < folder.n; i++)
        ok = check_one(run, folder.paths[i], err);
    if (ok && folder.has_log)
        cli_note(run->cli, "%s also has a log or a capture: redoubt check-aof verifies it",
                 rd_show_plain(rd_slice_str(path)).s);
    check_folder_done(&folder);
    return ok;
}

/* The input is never replaced, not even with --force. */
static bool is_same_file(const char *a, const char *b)
{
    struct stat sa, sb;
    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && S_ISREG(sa.st_mode) &&
           sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* Checks the options for doubtful keys. */
static int check_doubtful(struct run *run)
{
    struct cli *cli = run->cli;
    if (run->out == NULL && run->strict)
        return cli_usage_error(cli, "--strict requires --salvage");
    if (run->out == NULL && run->reseal)
        return cli_usage_error(cli, "--reseal requires --salvage");
    if (run->doubtful == NULL)
        return CLI_OK;
    if (run->out == NULL)
        return cli_usage_error(cli, "--doubtful requires --salvage");
    if (is_stdin(run->doubtful))
        return cli_usage_error(cli, "--doubtful requires a file, not standard output");
    if (strcmp(run->doubtful, run->out) == 0 || is_same_file(run->doubtful, run->out))
        return cli_usage_error(cli, "OUT and DOUBTFUL are the same file");
    if (is_same_file(run->doubtful, cli->args[0]))
        return cli_usage_error(cli, "DOUBTFUL and FILE are the same file");
    return CLI_OK;
}

static int check_all(struct run *run)
{
    struct cli *cli = run->cli;
    run->report = run->out != NULL && is_stdin(run->out) ? stderr : stdout;
    if (run->out != NULL && cli->n_args > 1)
        return cli_usage_error(cli, "--salvage accepts only one file");
    if (run->out != NULL && is_same_file(run->out, cli->args[0]))
        return cli_usage_error(cli, "OUT and FILE are the same file");
    if (run->partial && run->out == NULL)
        return cli_usage_error(cli, "--partial requires --salvage");
    if (run->threads < 1 || run->threads > RD_TEAM_MAX)
        return cli_usage_error(cli, "--threads must be between 1 and %d", RD_TEAM_MAX);
    int status = check_doubtful(run);
    if (status != CLI_OK)
        return status;
    if (filter_active(&run->filter) && run->out == NULL)
        return cli_usage_error(cli, "filter options require --salvage");
    struct rd_err err = {0};
    if (!filter_check(&run->filter, &err))
        return cli_fail(cli, &err);
    if (run->out != NULL && !cli_open_out(cli, run->out, run->force, true, &run->sink, &err))
        return cli_fail(cli, &err);
    if (run->doubtful != NULL &&
        !cli_open_out(cli, run->doubtful, run->force, true, &run->doubts, &err)) {
        rd_sink_abort(run->sink);
        return cli_fail(cli, &err);
    }
    if (cli->json) {
        json_key(&cli->out, "files");
        json_array(&cli->out);
    }
    for (size_t i = 0; i < cli->n_args; i++)
        if (!check_path(run, cli->args[i], &err))
            break;
    rd_sink_abort(run->sink);
    rd_sink_abort(run->doubts);
    if (err.code != RD_ERR_OK)
        return cli_fail(cli, &err);
    if (cli->json)
        json_end(&cli->out);
    return worst(run);
}

/* Without --threads. */
static unsigned usual_threads(void)
{
    enum { USUAL_THREADS = 8 };
    unsigned n = rd_thread_processors();
    return n < USUAL_THREADS ? n : USUAL_THREADS;
}

int tool_check_rdb(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli, .threads = usual_threads()};
    const struct cli_opt opts[] = {
        {.name = "quick",
         .kind = CLI_FLAG,
         .flag = &run.quick,
         .help = "check checksum and framing, not packed values"},
        {.name = "threads",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &run.threads,
         .help = "number of threads (default: processors, up to 8)"},
        {.name = "salvage",
         .kind = CLI_STRING,
         .arg = "OUT",
         .string = &run.out,
         .help = "write intact keys, also after damage, to OUT"},
        {.name = "doubtful",
         .kind = CLI_STRING,
         .arg = "FILE",
         .string = &run.doubtful,
         .help = "with --salvage: write omitted keys to FILE"},
        {.name = "strict",
         .kind = CLI_FLAG,
         .flag = &run.strict,
         .help = "with --salvage: omit doubtful keys"},
        {.name = "reseal",
         .kind = CLI_FLAG,
         .flag = &run.reseal,
         .help = "with --salvage: always write a checksum"},
        {.name = "partial",
         .kind = CLI_FLAG,
         .flag = &run.partial,
         .help = "with --salvage: keep the start of cut values"},
        {.name = "force",
         .kind = CLI_FLAG,
         .flag = &run.force,
         .help = "with --salvage: replace OUT if it exists"},
        SERVER_IN_OPTIONS(&run.server.scan, &run.servers),
        FILTER_OPTIONS(&run.filter),
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "[--quick | --threads=N] [FILE…]\n--salvage OUT [OPTION…] [FILTER…] FILE",
        .about = "Verifies every byte of snapshots, and reports which keys can be recovered.\n"
                 "\"-\" is standard input, a folder all its snapshots, redis://HOST a server.\n"
                 "Exit status 1: damage or warnings; with --salvage 8: saved, but incomplete\n"
                 "or with doubtful keys.",
        .opts = opts,
        .max_args = CLI_MANY,
        .example = "redoubt check-rdb --salvage saved.rdb dump.rdb",
    };
    int status;
    if (cli->compat)
        return check_rdb_compat(cli, argc, argv);
    cli_filter_init(&run.filter, cli, cli_now_ms());
    peer_opts_init(&run.servers);
    run.server.servers = &run.servers;
    if (cli_parse(cli, &usage, argc, argv, &status)) {
        if (run.out != NULL && cli->n_args == 0)
            status = cli_usage_error(cli, "missing argument: FILE; %s is the OUT of --salvage",
                                     rd_show_plain(rd_slice_str(run.out)).s);
        else
            status = peer_choose_argument(cli, &run.servers, &usage);
        if (status == CLI_OK)
            status = check_all(&run);
    }
    peer_opts_done(&run.servers);
    filter_done(&run.filter);
    return status;
}
