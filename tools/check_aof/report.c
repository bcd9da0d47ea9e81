/* report.c - prints the result of check-aof as text. */
#include "base/time.h"
#include "tools/check_aof/check_aof.h"
#include "rdb/version.h"

#include <inttypes.h>

static struct rd_shown_name plain_str(const char *text)
{
    return rd_show_plain(rd_slice_str(text));
}

struct rd_shown aof_job_time(int64_t seconds)
{
    struct rd_shown text;
    rd_time_put_s(text.s, seconds);
    return text;
}

static void label(FILE *out, const char *word)
{
    fprintf(out, "  %-10s ", word);
}

/* ---- the verdict ---- */

static const struct aof_check_file *last_file(const struct aof_check_result *res)
{
    return res->n_files > 0 ? res->files[res->n_files - 1] : NULL;
}

static const struct aof_check_file *first_damaged(const struct aof_check_result *res)
{
    for (size_t i = 0; i < res->n_files; i++)
        if (res->files[i]->verdict > AOF_VERDICT_WARNED &&
            res->files[i]->verdict != AOF_VERDICT_MISSING)
            return res->files[i];
    return NULL;
}

/* "the base file" */
static const char *missing_role(const struct aof_check_result *res)
{
    const char *role = "a file";
    for (size_t i = res->n_files; i > 0; i--)
        if (res->files[i - 1]->verdict == AOF_VERDICT_MISSING)
            role =
                res->files[i - 1]->file->type == AOF_BASE ? "the base file" : "an incremental file";
    return role;
}

static enum cli_color color_of(enum aof_verdict verdict)
{
    return verdict == AOF_VERDICT_SOUND     ? CLI_GREEN
           : verdict <= AOF_VERDICT_WRITTEN ? CLI_YELLOW
                                            : CLI_RED;
}

static void print_place(FILE *out, const struct aof_job *job, const struct aof_check_file *f,
                        bool wanted)
{
    if (f == NULL || !wanted)
        return;
    if (job->has_manifest)
        fprintf(out, " in %s", plain_str(f->name).s);
    if (f->damaged && f->broken_at != RD_NO_OFFSET)
        fprintf(out, " at byte %s", rd_show_place(f->broken_at).s);
}

/* Prints the verdict with its place, or `last` without it and with the way out. */
static void print_verdict(struct cli *cli, FILE *out, const struct aof_job *job,
                          const struct aof_job_found *found, bool last)
{
    const struct aof_check_result *res = &found->res;
    const char *way_out = last ? aof_job_way_out(res) : NULL;
    fprintf(out, "%s: %s", job->shown, cli_color(cli, out, color_of(res->verdict)));
    switch (res->verdict) {
    case AOF_VERDICT_SOUND:
        fputs("sound", out);
        break;
    case AOF_VERDICT_WARNED:
        fprintf(out, "sound, but %" PRIu64 " warning%s", res->warnings,
                rd_show_plural(res->warnings));
        break;
    case AOF_VERDICT_TORN:
        fputs("torn at its end", out);
        print_place(out, job, last_file(res), !last);
        break;
    case AOF_VERDICT_WRITTEN:
        fputs("being written; complete except for its last command", out);
        break;
    case AOF_VERDICT_NOT_LOG:
        fputs("not a log", out);
        break;
    case AOF_VERDICT_MISSING:
        fprintf(out, "incomplete: %s is missing", missing_role(res));
        break;
    case AOF_VERDICT_BAD_MANIFEST:
        fputs("the manifest does not match the files", out);
        break;
    case AOF_VERDICT_UNSUPPORTED:
        fputs("not supported", out);
        print_place(out, job, first_damaged(res), !last);
        break;
    case AOF_VERDICT_DAMAGED:
        fputs("damaged", out);
        print_place(out, job, first_damaged(res), !last);
        break;
    }
    fprintf(out, "%s%s%s\n", cli_color(cli, out, CLI_PLAIN), way_out != NULL ? "; " : "",
            way_out != NULL ? way_out : "");
}

void aof_job_report_verdict(struct cli *cli, const struct aof_job *job,
                            const struct aof_job_found *found)
{
    print_verdict(cli, cli_wrap_begin(cli, stdout), job, found, false);
    cli_wrap_end(cli);
}

/* ---- files ---- */

static void print_snapshot(FILE *out, const struct aof_check_file *f)
{
    if (f->detail == NULL) {
        fputs("; a snapshot", out);
        return;
    }
    const struct rdb_check_result *s = &f->detail->snapshot;
    if (!s->has_header) {
        fputs("; a snapshot with an unknown header", out);
        return;
    }
    fprintf(out, "; %s", rdb_version_text(s->dialect, s->version).s);
    if (f->saved != AOF_NO_TIME && f->saved > 0)
        fprintf(out, " of %s", aof_job_time(f->saved).s);
    fprintf(out, ", %s key%s", rd_show_count(s->keys).s, rd_show_plural(s->keys));
}

static void print_commands(FILE *out, const struct aof_check_file *f)
{
    fprintf(out, "; %s command%s", rd_show_count(f->commands).s, rd_show_plural(f->commands));
    if (f->transactions > 0)
        fprintf(out, ", %s transaction%s", rd_show_count(f->transactions).s,
                rd_show_plural(f->transactions));
    if (f->first_time != AOF_NO_TIME)
        fprintf(out, ", %s to %s", aof_job_time(f->first_time).s, aof_job_time(f->last_time).s);
}

static const char *verdict_text(enum aof_verdict verdict)
{
    switch (verdict) {
    case AOF_VERDICT_SOUND:
    case AOF_VERDICT_WARNED:
        return "sound";
    case AOF_VERDICT_TORN:
        return "torn at its end";
    case AOF_VERDICT_WRITTEN:
        return "being written";
    case AOF_VERDICT_NOT_LOG:
        return "not a log";
    case AOF_VERDICT_BAD_MANIFEST:
    case AOF_VERDICT_MISSING:
        return "missing";
    case AOF_VERDICT_UNSUPPORTED:
        return "not supported";
    case AOF_VERDICT_DAMAGED:
        break;
    }
    return "damaged";
}

static const char *role(const struct aof_check_file *f)
{
    if (f->file == NULL)
        return "file";
    return f->file->type == AOF_BASE ? "base" : "incr";
}

static void print_file(struct cli *cli, FILE *out, const struct aof_check_file *f)
{
    label(out, role(f));
    fprintf(out, "%s: %s%s%s", plain_str(f->name).s, cli_color(cli, out, color_of(f->verdict)),
            verdict_text(f->verdict), cli_color(cli, out, CLI_PLAIN));
    if (f->verdict == AOF_VERDICT_MISSING) {
        fputc('\n', out);
        return;
    }
    fprintf(out, "; %s byte%s", rd_show_count(f->size).s, rd_show_plural(f->size));
    if (f->has_snapshot)
        print_snapshot(out, f);
    if (f->content == AOF_RESP || f->commands > 0)
        print_commands(out, f);
    fputc('\n', out);
    if (!f->damaged || f->verdict == AOF_VERDICT_NOT_LOG || f->text_mode != AOF_TEXT_NONE)
        return;
    label(out, "");
    fprintf(out, "intact up to byte %s", rd_show_place(f->ok_up_to).s);
    if (f->ok_up_to_line > 0)
        fprintf(out, ", line %" PRIu64, f->ok_up_to_line);
    if (f->size != RD_NO_OFFSET && f->size > f->ok_up_to)
        fprintf(out, "; %s byte%s", rd_show_count(f->size - f->ok_up_to).s,
                f->size - f->ok_up_to == 1 ? " follows" : "s follow");
    if (f->after != RD_NO_OFFSET)
        fprintf(out, ", intact commands from byte %s", rd_show_place(f->after).s);
    fputc('\n', out);
}

/* ---- the whole ---- */

/* Returns the error of the first file that has one. */
static const char *hint_of_file(const struct aof_check_result *res)
{
    for (size_t i = 0; i < res->n_files; i++)
        if (res->files[i]->hint != NULL)
            return res->files[i]->hint;
    return NULL;
}

static bool has_text_mode(const struct aof_check_result *res)
{
    for (size_t i = 0; i < res->n_files; i++)
        if (res->files[i]->text_mode != AOF_TEXT_NONE)
            return true;
    return false;
}

const char *aof_job_way_out(const struct aof_check_result *res)
{
    switch (res->verdict) {
    case AOF_VERDICT_TORN:
        return "--fix cuts the torn end";
    case AOF_VERDICT_MISSING:
        return "restore the missing file; --fix-manifest writes a manifest without it";
    case AOF_VERDICT_BAD_MANIFEST:
        return "--fix-manifest writes a new manifest";
    case AOF_VERDICT_DAMAGED:
        return has_text_mode(res) ? "--salvage OUT writes a log with restored line ends"
                                  : "--salvage OUT writes a log of all intact commands";
    case AOF_VERDICT_WRITTEN:
        return "stop the server and check again";
    case AOF_VERDICT_NOT_LOG:
        return hint_of_file(res);
    case AOF_VERDICT_SOUND:
    case AOF_VERDICT_WARNED:
    case AOF_VERDICT_UNSUPPORTED:
        break;
    }
    return NULL;
}

void aof_job_report(struct cli *cli, const struct aof_job *job, const struct aof_job_found *found)
{
    const struct aof_check_result *res = &found->res;
    FILE *out = cli_wrap_begin(cli, stdout);
    print_verdict(cli, out, job, found, false);
    if (res->n_files > 1 && res->first_time != AOF_NO_TIME) {
        label(out, "time");
        fprintf(out, "%s to %s\n", aof_job_time(res->first_time).s, aof_job_time(res->last_time).s);
    }
    for (size_t i = 0; i < res->n_files; i++)
        print_file(cli, out, res->files[i]);
    if (found->names != NULL)
        aof_job_names_report(out, found->names);
    findings_print(cli, out, &found->findings);
    if (res->verdict > AOF_VERDICT_WARNED && job->change == AOF_JOB_CHECK)
        print_verdict(cli, out, job, found, true);
    cli_wrap_end(cli);
}

/* ---- stderr ---- */

static enum rd_err_code code_of(unsigned finding)
{
    switch (finding) {
    case AOF_FINDING_TRUNCATED:
    case RDB_FINDING_TRUNCATED:
        return RD_ERR_TRUNCATED;
    case AOF_FINDING_LIMIT:
    case RDB_FINDING_LIMIT:
        return RD_ERR_LIMIT;
    case AOF_FINDING_MISSING:
        return RD_ERR_IO;
    default:
        return RD_ERR_CORRUPT;
    }
}

void aof_job_report_errors(struct cli *cli, const struct aof_job *job,
                           const struct aof_job_found *found)
{
    struct rd_shown_name text;
    char name[NAME_MAX + 1];
    bool hinted = false;
    for (size_t i = 0; found->checked && i < found->findings.n; i++) {
        const struct finding *f = &found->findings.all[i];
        struct rd_err err = {0};
        if (f->severity != RDB_SEVERITY_ERROR)
            continue;
        enum rd_err_code code = code_of(f->id);
        text = rd_show_sentence(findings_slice(&found->findings, f->text));
        if (f->inner != RD_NO_OFFSET)
            rd_err_set_inner(&err, code, f->offset, f->inner, "%s", text.s);
        else
            rd_err_set(&err, code, f->offset, "%s", text.s);
        if (f->command > 0)
            rd_err_doing(&err, "command %" PRIu64 ", line %" PRIu64, f->command, f->line);
        snprintf(name, sizeof name, "%.*s", (int)f->file.len,
                 (const char *)findings_slice(&found->findings, f->file).ptr);
        rd_err_origin(&err, f->has_file ? name : job->is_stdin ? job->shown : job->path);
        if (!hinted && aof_job_way_out(&found->res) != NULL)
            cli_hint(cli, "%s", aof_job_way_out(&found->res));
        hinted = true;
        cli_report(cli, &err);
    }
}

/* ---- changes ---- */

void aof_job_report_plan(struct cli *cli, FILE *to, const struct aof_repair *plan)
{
    FILE *out = cli_wrap_begin(cli, to);
    if (aof_repair_count(plan) == 0)
        fputs("nothing to cut\n", out);
    for (size_t i = 0; i < aof_repair_count(plan); i++) {
        const struct aof_repair_step *step = aof_repair_step(plan, i);
        if (step->kind == AOF_REPAIR_CUT)
            fprintf(out, "will cut %s from %s to %s byte%s: %s byte%s removed\n",
                    plain_str(step->name).s, rd_show_count(step->size).s, rd_show_count(step->to).s,
                    rd_show_plural(step->to), rd_show_count(step->size - step->to).s,
                    rd_show_plural(step->size - step->to));
        else
            fprintf(out, "will remove %s, %s byte%s, from the manifest and rename it\n",
                    plain_str(step->name).s, rd_show_count(step->size).s,
                    rd_show_plural(step->size));
    }
    if (aof_repair_count(plan) > 0 && aof_repair_time(plan) != AOF_NO_TIME)
        fprintf(out, "the first second to be cut is %s\n", aof_job_time(aof_repair_time(plan)).s);
    cli_wrap_end(cli);
}

void aof_job_report_done(struct cli *cli, FILE *to, const struct aof_repair_step *step,
                         const char *saved_as)
{
    FILE *out = cli_wrap_begin(cli, to);
    if (step->kind == AOF_REPAIR_CUT)
        fprintf(out, "cut %s to %s byte%s", plain_str(step->name).s, rd_show_count(step->to).s,
                rd_show_plural(step->to));
    else
        fprintf(out, "removed %s from the log", plain_str(step->name).s);
    if (saved_as != NULL)
        fprintf(out, "; %s %s", step->kind == AOF_REPAIR_CUT ? "original saved as" : "renamed to",
                plain_str(saved_as).s);
    fputc('\n', out);
    cli_wrap_end(cli);
}
