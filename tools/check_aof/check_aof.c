/* check_aof.c - `redoubt check-aof`: verifies append-only logs, and repairs them.
 */
#include "base/mem.h"
#include "rebuild/stream.h"
#include "tools/check_aof/check_aof.h"
#include "data/spool.h"
#include "tools/tools.h"

#include <sys/stat.h>
#include <time.h>

/* ---- callbacks ---- */

/* A check and its job: the context of the callbacks. */
struct check_ctx {
    struct aof_job *job;
    struct aof_job_found *found;
};

static void on_finding(void *ctx, const struct aof_finding *f)
{
    struct findings *found = &((struct check_ctx *)ctx)->found->findings;
    const struct rdb_finding *snapshot = f->snapshot;
    if (!findings_count(found, f->word, f->severity))
        return;
    struct finding kept = {
        .id = f->id,
        .word = f->word,
        .severity = f->severity,
        .has_file = f->file != NULL,
        .file = findings_keep(found, rd_slice_str(f->file != NULL ? f->file : "")),
        .text = findings_keep(found, rd_slice_str(f->text)),
        .offset = f->offset,
        .inner = snapshot != NULL ? snapshot->inner : RD_NO_OFFSET,
        .record = RD_NO_OFFSET,
        .line = f->line,
        .command = f->command,
    };
    if (snapshot != NULL && snapshot->has_key) {
        kept.has_key = true;
        kept.key = findings_keep(found, snapshot->key);
        kept.db = snapshot->db;
        kept.type = snapshot->type;
    }
    findings_add(found, &kept);
}

static void on_command(void *ctx, struct rd_slice name)
{
    struct aof_job_found *found = ((struct check_ctx *)ctx)->found;
    rebuild_unsupported_note_name(&found->unsupported, name);
    if (found->names != NULL)
        aof_job_names_add(found->names, name);
}

static bool open_file(void *ctx, const struct aof_file *file, struct rd_src **ret,
                      struct rd_err *err)
{
    return aof_job_open(((struct check_ctx *)ctx)->job, file, ret, err);
}

static void on_tick(void *ctx, const struct rd_src *src)
{
    aof_job_tick(((struct check_ctx *)ctx)->job, src);
}

/* Whether a server has the file open for writing. If that is unknown and the file changed recently,
 * checks again whether it changes. */
static bool is_written(void *ctx, const struct aof_file *file, uint64_t size)
{
    enum { FRESH_S = 10, PAUSE_MS = 100 };
    const struct aof_job *job = ((struct check_ctx *)ctx)->job;
    char path[PATH_MAX];
    struct stat st;
    if (job->is_stdin ||
        !aof_job_full_path(job, file != NULL ? file->name : job->name, path, sizeof path, NULL) ||
        lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    if (aof_file_is_written(path) || (uint64_t)st.st_size != size)
        return true;
    if (st.st_mtim.tv_sec + FRESH_S < cli_now_ms() / 1000)
        return false;
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    nanosleep(&pause, NULL);
    return lstat(path, &st) == 0 && (uint64_t)st.st_size != size;
}

/* ---- the check ---- */

/* "appendonly.aof.manifest" belongs to files whose names begin with "appendonly.aof". */
static void prefix_of(const struct aof_job *job, char *dst, size_t size)
{
    static const char tail[] = ".manifest";
    size_t len = strlen(job->name), cut = sizeof tail - 1;
    if (len > cut && strcmp(job->name + len - cut, tail) == 0)
        len -= cut;
    snprintf(dst, size, "%.*s", (int)len, job->name);
}

static bool check_folder(struct aof_job *job, const struct aof_check_opts *opts,
                         struct aof_check_result *ret, struct rd_err *err)
{
    struct rd_src *src;
    if (!aof_job_open_manifest(job, &src, err))
        return false;
    cli_progress_begin(job->cli, job->path, RD_NO_OFFSET);
    job->passed = job->current = 0;
    bool ok = aof_check(src, opts, ret, err);
    cli_progress_end(job->cli);
    rd_src_close(src);
    return ok;
}

static bool check_one(struct aof_job *job, const struct aof_check_opts *opts,
                      struct aof_check_result *ret, struct rd_err *err)
{
    struct rd_src *src;
    if (!cli_open_in(job->cli, job->path, &src, err))
        return false;
    struct aof_check_opts own = *opts;
    if (!rd_src_can_seek(src)) /* a pipe or a compressed file, whose size is unknown */
        own.written = NULL;
    job->passed = job->current = 0;
    bool ok = aof_check_one(src, job->name, &own, ret, err);
    cli_close_in(job->cli, src);
    return ok;
}

bool aof_job_check(struct aof_job *job, struct aof_job_found *ret, struct rd_err *err)
{
    struct spool keys = {0};
    struct rdb_spool for_keys = spool_for_keys(&keys);
    struct check_ctx ctx = {job, ret};
    char prefix[NAME_MAX + 1];
    prefix_of(job, prefix, sizeof prefix);
    struct aof_check_opts opts =
        AOF_CHECK_OPTS(.open = open_file, .finding = on_finding, .written = is_written,
                       .command = on_command, .tick = on_tick, .ctx = &ctx,
                       .names = (const char *const *)job->names, .n_names = job->n_names,
                       .prefix = prefix, .now_ms = cli_now_ms(), .spool = &for_keys);
    cli_seed(opts.seed);
    ret->res = AOF_CHECK_RESULT();
    bool ok = (job->cli->verbose == 0 || aof_job_names_new(&ret->names, err)) &&
              (job->has_manifest ? check_folder(job, &opts, &ret->res, err)
                                 : check_one(job, &opts, &ret->res, err));
    spool_done(&keys);
    if (ret->names != NULL)
        aof_job_names_end(ret->names);
    if (ok && ret->findings.err.code != RD_ERR_OK) {
        rd_err_adopt(err, &ret->findings.err);
        ok = false;
    }
    ret->checked = ok;
    return ok;
}

void aof_job_found_done(struct aof_job_found *found)
{
    aof_check_done(&found->res);
    findings_done(&found->findings);
    rd_free(found->names);
    *found = (struct aof_job_found){0};
}

/* ---- the tool ---- */

int aof_job_status(const struct aof_job_found *found)
{
    switch (found->res.verdict) {
    case AOF_VERDICT_SOUND:
        return CLI_OK;
    case AOF_VERDICT_UNSUPPORTED:
        return CLI_UNSUPPORTED;
    default:
        return CLI_FINDINGS;
    }
}

static int run_check(struct aof_job *job)
{
    struct cli *cli = job->cli;
    struct rd_err err = {0};
    if (!aof_job_check(job, &job->found, &err))
        return cli_fail(cli, &err);
    if (job->found.unsupported.n > 0)
        cli_warn(cli, "%s (%s command%s of this kind)", job->found.unsupported.text,
                 rd_show_count(job->found.unsupported.n).s,
                 rd_show_plural(job->found.unsupported.n));
    if (!cli_report_is_enough(cli, stdout))
        aof_job_report_errors(cli, job, &job->found);
    if (cli->json)
        aof_job_json(&cli->out, job, &job->found);
    else if (!cli->quiet)
        aof_job_report(cli, job, &job->found);
    return aof_job_status(&job->found);
}

static int run(struct aof_job *job)
{
    struct rd_err err = {0};
    if (rebuild_stream_is(job->path)) {
        if (job->change == AOF_JOB_CHECK)
            return aof_job_run_capture(job);
        cli_hint(job->cli, "the next capture cuts a torn end; convert reads up to the damage");
        rd_err_set(&err, RD_ERR_USAGE, RD_NO_OFFSET, "a capture is verified, but not changed");
        return cli_fail(job->cli, &err);
    }
    if (!aof_job_find(job, &err))
        return cli_fail(job->cli, &err);
    switch (job->change) {
    case AOF_JOB_CHECK:
        return run_check(job);
    case AOF_JOB_SALVAGE:
        return aof_job_run_salvage(job);
    case AOF_JOB_MANIFEST:
        return aof_job_run_manifest(job);
    default:
        return aof_job_run_change(job);
    }
}

struct choice {
    bool fix, fix_manifest;
    int64_t time_ms;
    const char *offset;
};

/* False: more than one of the options that exclude each other. */
static bool choose(struct aof_job *job, const struct choice *c)
{
    unsigned n = 0;
    if (c->fix && ++n)
        job->change = AOF_JOB_FIX;
    if (c->time_ms != INT64_MIN && ++n)
        job->change = AOF_JOB_TIME;
    if (c->offset != NULL && ++n)
        job->change = AOF_JOB_OFFSET;
    if (job->out != NULL && ++n)
        job->change = AOF_JOB_SALVAGE;
    if (c->fix_manifest && ++n)
        job->change = AOF_JOB_MANIFEST;
    job->time_ms = c->time_ms;
    job->offset = c->offset;
    return n <= 1;
}

int tool_check_aof(struct cli *cli, int argc, char **argv)
{
    struct aof_job job = {.cli = cli};
    struct choice choice = {.time_ms = INT64_MIN};
    const struct cli_opt opts[] = {
        {.name = "fix",
         .kind = CLI_FLAG,
         .flag = &choice.fix,
         .help = "cut the last file after its last complete command"},
        {.name = "truncate-to-timestamp",
         .kind = CLI_TIME,
         .arg = "T",
         .time_ms = &choice.time_ms,
         .help = "cut everything written after second T"},
        {.name = "truncate-to-offset",
         .kind = CLI_STRING,
         .arg = "[FILE:]N",
         .string = &choice.offset,
         .help = "cut everything after the first N bytes of FILE"},
        {.name = "salvage",
         .kind = CLI_STRING,
         .arg = "OUT",
         .string = &job.out,
         .help = "write intact commands to OUT, skipping damage"},
        {.name = "fix-manifest",
         .kind = CLI_FLAG,
         .flag = &choice.fix_manifest,
         .help = "write a manifest from the existing files"},
        {.name = "force",
         .kind = CLI_FLAG,
         .flag = &job.force,
         .brief = true,
         .help = "overwrite OUT; allow cutting more than a torn end"},
        {.name = "dry-run",
         .kind = CLI_FLAG,
         .flag = &job.dry_run,
         .brief = true,
         .help = "print what would be done, and do nothing"},
        {.name = "yes",
         .letter = 'y',
         .kind = CLI_FLAG,
         .flag = &job.yes,
         .brief = true,
         .help = "do not ask"},
        {.name = "no-copy",
         .kind = CLI_FLAG,
         .flag = &job.no_copy,
         .brief = true,
         .help = "do not keep a copy of what is changed"},
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "PATH\n--fix | --fix-manifest | --salvage OUT PATH\n"
                    "--truncate-to-timestamp T PATH\n--truncate-to-offset [FILE:]N PATH",
        .about = "Verifies an append-only log: a manifest, its folder, or one file; or a capture.\n"
                 "Files are copied before a cut. Exit status 1: damage found; 8: partly saved.",
        .opts = opts,
        .min_args = 1,
        .max_args = 1,
        .example = "redoubt check-aof --fix --yes appendonlydir",
    };
    int status;
    if (cli->compat)
        return check_aof_compat(cli, argc, argv);
    if (!cli_parse(cli, &usage, argc, argv, &status))
        return status;
    job.path = cli->args[0];
    if (!choose(&job, &choice))
        return cli_usage_error(cli, "only one of these options can be used at a time");
    status = run(&job);
    aof_job_done(&job);
    return status;
}
