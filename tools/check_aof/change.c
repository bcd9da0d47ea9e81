/* change.c - check-aof cuts a log: plan, question, copy, cut, and a check of what is
 * left.
 */
#include "base/num.h"
#include "tools/check_aof/check_aof.h"
#include "tools/cli/holder.h"

#include <inttypes.h>

struct change {
    struct aof_job *job;
    struct aof_repair plan;
    struct aof_manifest manifest;
    bool done;
    char suffix[CLI_SUFFIX_MAX];
};

static const char *kind_word(enum aof_job_change change)
{
    return change == AOF_JOB_FIX    ? "fix"
           : change == AOF_JOB_TIME ? "truncate-to-timestamp"
                                    : "truncate-to-offset";
}

/* ---- preconditions ---- */

/* The offsets of a compressed file are those of its decompressed bytes. */
static bool is_plain(struct aof_job *job, struct rd_err *err)
{
    struct rd_src *src;
    if (!rd_src_open_file(&src, job->path, NULL, err))
        return false;
    const struct rd_src *before = src;
    bool ok = rd_src_decompress(&src, err);
    bool same = src == before;
    rd_src_close(src);
    if (ok && !same)
        ok = rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                        "the file is compressed: decompress it first");
    rd_err_origin(err, job->shown);
    return ok;
}

static bool can_change(struct aof_job *job, struct rd_err *err)
{
    if (job->is_stdin)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "standard input cannot be changed");
    return job->has_manifest || is_plain(job, err);
}

static bool nobody_writes(struct change *c, struct rd_err *err)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < aof_repair_count(&c->plan); i++) {
        const char *name = aof_repair_step(&c->plan, i)->name;
        if (!aof_job_full_path(c->job, name, path, sizeof path, err))
            return false;
        if (!aof_file_is_written(path))
            continue;
        rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "another process has it open for writing");
        holder_name(err, path);
        rd_err_origin(err, name);
        cli_hint(c->job->cli, "stop the server first");
        return false;
    }
    return true;
}

/* ---- plans ---- */

static bool read_manifest(struct change *c, struct rd_err *err)
{
    struct rd_src *src;
    if (!c->job->has_manifest)
        return true;
    if (!aof_job_open_manifest(c->job, &src, err))
        return false;
    bool ok = aof_manifest_read(&c->manifest, src, NULL, NULL, err);
    rd_src_close(src);
    if (!ok)
        cli_hint(c->job->cli, "--fix-manifest writes a new one from the existing files");
    rd_err_origin(err, c->job->name);
    return ok;
}

/* "FILE:N" or "N". */
static bool parse_offset(const char *text, char *file, size_t size, uint64_t *ret,
                         struct rd_err *err)
{
    const char *colon = strrchr(text, ':');
    const char *digits = colon != NULL ? colon + 1 : text;
    size_t len = colon != NULL ? (size_t)(colon - text) : 0;
    if (!rd_num_get_u64(rd_slice_str(digits), ret) || len >= size || (colon != NULL && len == 0))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "--truncate-to-offset requires a number of bytes, or FILE:N");
    memcpy(file, text, len);
    file[len] = '\0';
    return true;
}

static bool plan_cut(struct change *c, struct rd_err *err)
{
    struct aof_job *job = c->job;
    char file[NAME_MAX + 1];
    uint64_t offset;
    if (job->change == AOF_JOB_OFFSET &&
        !parse_offset(job->offset, file, sizeof file, &offset, err))
        return false;
    if (!read_manifest(c, err))
        return false;
    const struct aof_repair_log log =
        AOF_REPAIR_LOG(.manifest = job->has_manifest ? &c->manifest : NULL, .name = job->name,
                       .open = aof_job_open, .tick = aof_job_tick, .ctx = job);
    cli_progress_begin(job->cli, job->path, RD_NO_OFFSET);
    job->passed = job->current = 0;
    bool ok =
        job->change == AOF_JOB_TIME
            ? aof_repair_plan_time(&c->plan, &log, job->time_ms / 1000, err)
            : aof_repair_plan_offset(&c->plan, &log, file[0] != '\0' ? file : NULL, offset, err);
    cli_progress_end(job->cli);
    return ok;
}

/* Returns the bytes of a cut that could hold data. Zero bytes at the end hold none, nor does one
 * incomplete command, or a few bytes after the last one. */
static uint64_t cut_counts(const struct aof_check_file *f)
{
    enum { ONE_COMMAND = 4096, FEW = 64 };
    uint64_t cut = f->size - f->ok_up_to;
    cut -= f->zeros < cut ? f->zeros : cut;
    if (f->verdict != AOF_VERDICT_TORN)
        return cut;
    return cut <= (f->code == RD_ERR_TRUNCATED ? ONE_COMMAND : FEW) ? 0 : cut;
}

/* A torn end is short. A cut of more than a thousandth of the file, or 1 MiB, needs --force. */
static bool is_short(struct change *c, const struct aof_check_file *last, struct rd_err *err)
{
    enum { SHARE = 1000, MOST = 1024 * 1024 };
    uint64_t cut = cut_counts(last);
    if (cut <= last->size / SHARE && cut <= MOST)
        return true;
    double percent = 100.0 * (double)cut / (double)last->size;
    if (c->job->force || c->job->dry_run) {
        cli_warn(c->job->cli, "%s: cutting %.1f%% of the file, %" PRIu64 " of %" PRIu64 " bytes%s",
                 c->job->shown, percent, cut, last->size,
                 c->job->force ? "" : "; this requires --yes --force");
        return true;
    }
    cli_hint(c->job->cli, "--salvage OUT saves all intact commands; --yes --force cuts anyway");
    rd_err_set(err, RD_ERR_USAGE, last->ok_up_to,
               "the cut would remove %.1f%% of the file, %" PRIu64 " of %" PRIu64
               " bytes; a torn end would be shorter",
               percent, cut, last->size);
    rd_err_origin(err, last->name);
    return false;
}

/* If there are commands after the damage, the cut would remove them too. Without a copy they would
 * be lost. */
static bool may_cut(struct change *c, struct rd_err *err)
{
    const struct aof_check_result *res = &c->job->found.res;
    const struct aof_check_file *last = res->files[res->n_files - 1];
    if (aof_repair_count(&c->plan) == 0)
        return true;
    if (last->verdict == AOF_VERDICT_TORN)
        return is_short(c, last, err);
    cli_hint(c->job->cli, "--salvage OUT saves them");
    if (c->job->no_copy) {
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "intact commands follow the damage: not cut without a copy");
        rd_err_origin(err, last->name);
        return false;
    }
    return is_short(c, last, err);
}

static bool plan_fix(struct change *c, struct rd_err *err)
{
    struct aof_job *job = c->job;
    if (!aof_job_check(job, &job->found, err))
        return false;
    if (!job->cli->json && !job->cli->quiet)
        aof_job_report(job->cli, job, &job->found);
    if (aof_repair_plan_fix(&c->plan, &job->found.res, err))
        return (job->dry_run || nobody_writes(c, err)) && may_cut(c, err);
    if (err->code == RD_ERR_LOCKED)
        cli_hint(job->cli, "stop the server first");
    else if (aof_job_way_out(&job->found.res) != NULL)
        cli_hint(job->cli, "%s", aof_job_way_out(&job->found.res));
    return false;
}

/* ---- the change ---- */

static void on_done(void *ctx, const struct aof_repair_step *step, const char *saved_as)
{
    struct aof_job *job = ((struct change *)ctx)->job;
    if (job->cli->json)
        aof_job_json_step(&job->cli->out, step, saved_as);
    else if (!job->cli->quiet)
        aof_job_report_done(job->cli, stdout, step, saved_as);
}

static bool carry_out(struct change *c, struct rd_err *err)
{
    const struct aof_repair_run run =
        AOF_REPAIR_RUN(.folder = c->job->folder, .manifest = c->job->name, .suffix = c->suffix,
                       .no_copy = c->job->no_copy, .done = on_done, .ctx = c);
    c->done = aof_repair_run(&c->plan, &run, err);
    return c->done;
}

/* Asks, then changes the log. *ret_go_on: the log was changed. */
static bool perform(struct change *c, struct rd_err *err)
{
    struct aof_job *job = c->job;
    struct json_write *json = &job->cli->out;
    if (job->cli->json) {
        json_key(json, "change");
        json_obj(json);
        json_put_str(json, "kind", kind_word(job->change));
        json_put_bool(json, "dry_run", job->dry_run);
        json_key(json, "steps");
        json_array(json);
    } else if (!job->cli->quiet || !job->yes) {
        aof_job_report_plan(job->cli, stdout, &c->plan);
    }
    bool go = aof_repair_count(&c->plan) > 0 && !job->dry_run;
    bool ok = !go || (nobody_writes(c, err) &&
                      (!cli_ask(job->cli, job->yes, "Continue?") || carry_out(c, err)));
    if (job->cli->json) {
        for (size_t i = 0; i < aof_repair_count(&c->plan) && !go; i++)
            aof_job_json_step(json, aof_repair_step(&c->plan, i), NULL);
        json_end(json);
        json_put_bool(json, "done", c->done);
        json_end(json);
    }
    return ok;
}

/* Checks and reports the log after the change. */
static bool check_again(struct change *c, struct rd_err *err)
{
    struct aof_job *job = c->job;
    aof_job_found_done(&job->found);
    if (!aof_job_look_again(job, err) || !aof_job_check(job, &job->found, err))
        return false;
    if (!job->cli->json && !job->cli->quiet)
        aof_job_report_verdict(job->cli, job, &job->found);
    return true;
}

/* A log is repaired if a server loads it without errors: warnings do not count. */
static int status_after(const struct change *c)
{
    const struct aof_job_found *found = &c->job->found;
    bool wanted = aof_repair_count(&c->plan) > 0 && !c->job->dry_run;
    if (wanted && !c->done)
        return CLI_FINDINGS; /* the answer was no */
    if (!found->checked || (c->done && found->res.verdict <= AOF_VERDICT_WARNED))
        return CLI_OK;
    return aof_job_status(found);
}

static bool work(struct change *c, struct rd_err *err)
{
    struct aof_job *job = c->job;
    if (!can_change(job, err) ||
        !(job->change == AOF_JOB_FIX ? plan_fix(c, err) : plan_cut(c, err)) || !perform(c, err))
        return false;
    if (c->done && !check_again(c, err))
        return false;
    aof_job_report_errors(job->cli, job, &job->found);
    if (job->cli->json && job->found.checked)
        aof_job_json(&job->cli->out, job, &job->found);
    return true;
}

int aof_job_run_change(struct aof_job *job)
{
    struct change c = {.job = job};
    struct rd_err err = {0};
    if (job->cli->json && !job->yes && !job->dry_run)
        return cli_usage_error(job->cli,
                               "--json cannot ask for confirmation: use --yes or --dry-run");
    aof_repair_init(&c.plan);
    aof_manifest_init(&c.manifest);
    cli_save_suffix(c.suffix);
    int status = work(&c, &err) ? status_after(&c) : cli_fail(job->cli, &err);
    aof_repair_done(&c.plan);
    aof_manifest_done(&c.manifest);
    return status;
}
