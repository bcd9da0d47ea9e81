/* manifest.c - check-aof --fix-manifest: writes a manifest from the existing files.
 */
#include "aof/manifest_names.h"
#include "base/mem.h"
#include "base/pump.h"
#include "tools/check_aof/check_aof.h"
#include "tools/cli/holder.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

static const char suffix[] = ".manifest";

/* ---- inspecting the files ---- */

/* The manifest's name without its suffix, or the common prefix of the names in the folder. */
static void find_prefix(struct aof_job *job, char *dst, size_t size)
{
    size_t len = strlen(job->name), tail = sizeof suffix - 1;
    if (len > tail && strcmp(job->name + len - tail, suffix) == 0) {
        snprintf(dst, size, "%.*s", (int)(len - tail), job->name);
        return;
    }
    snprintf(dst, size, "appendonly.aof");
    for (size_t i = 0; i < job->n_names; i++) {
        const char *name = job->names[i], *mark = strstr(name, ".base.");
        if (mark == NULL)
            mark = strstr(name, ".incr.aof");
        while (mark != NULL && mark > name && mark[-1] >= '0' && mark[-1] <= '9')
            mark--;
        if (mark == NULL || mark <= name + 1 || mark[-1] != '.')
            continue;
        snprintf(dst, size, "%.*s", (int)(mark - 1 - name), name);
        break;
    }
    snprintf(job->name, sizeof job->name, "%.*s%s", (int)(sizeof job->name - sizeof suffix), dst,
             suffix);
}

/* Reads the contents of one file; false if it cannot be read. */
static bool look_at(struct aof_job *job, const char *name, struct aof_found *ret,
                    struct rd_err *err)
{
    char path[PATH_MAX];
    struct stat st;
    struct rd_src *src;
    struct aof_check_result res = AOF_CHECK_RESULT();
    const struct aof_check_opts opts =
        AOF_CHECK_OPTS(.tick = aof_job_tick, .ctx = job, .quick = true);
    *ret = (struct aof_found){
        .name = name, .first_s = AOF_NO_TIME, .last_s = AOF_NO_TIME, .saved_s = AOF_NO_TIME};
    if (!aof_job_full_path(job, name, path, sizeof path, err))
        return false;
    if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return true;
    ret->size = (uint64_t)st.st_size;
    if (!rd_src_open_file(&src, path, &RD_SRC_OPTS(.regular = true), err))
        return false;
    bool ok = aof_check_one(src, name, &opts, &res, err);
    rd_src_close(src);
    if (ok && res.n_files > 0) {
        const struct aof_check_file *f = res.files[0];
        ret->content = f->content;
        ret->sound = f->verdict <= AOF_VERDICT_WARNED;
        ret->first_s = f->first_time;
        ret->last_s = f->last_time;
        ret->saved_s = f->saved;
    }
    aof_check_done(&res);
    return ok;
}

static bool is_of_log(const char *name, const char *prefix, const struct aof_manifest_names *old)
{
    size_t len = strlen(name), tail = sizeof suffix - 1;
    if (aof_manifest_names_find(old, name) != NULL)
        return true;
    if (strstr(name, ".redoubt-save-") != NULL ||
        (len > tail && strcmp(name + len - tail, suffix) == 0))
        return false;
    return strncmp(name, prefix, strlen(prefix)) == 0 || strncmp(name, "temp-", 5) == 0;
}

bool aof_job_rebuild(struct aof_job *job, const struct aof_manifest *old, struct aof_rebuild *ret,
                     struct rd_err *err)
{
    char prefix[NAME_MAX + 1];
    struct aof_found *found = rd_calloc(job->n_names + 1, sizeof *found);
    struct aof_manifest_names names = {0};
    size_t n = 0;
    bool ok = found != NULL || rd_err_nomem(err, job->n_names * sizeof *found);
    ok = ok && aof_manifest_names_init(&names, old, err);
    find_prefix(job, prefix, sizeof prefix);
    cli_progress_begin(job->cli, job->path, RD_NO_OFFSET);
    for (size_t i = 0; ok && i < job->n_names; i++)
        if (is_of_log(job->names[i], prefix, &names))
            ok = look_at(job, job->names[i], &found[n++], err);
    cli_progress_end(job->cli);
    ok = ok && aof_rebuild_plan(ret, found, n, prefix, old, err);
    aof_manifest_names_done(&names);
    rd_free(found);
    return ok;
}

/* ---- the report ---- */

static void show_plan(struct aof_job *job, const struct aof_rebuild *plan)
{
    struct cli *cli = job->cli;
    if (cli->json) {
        json_key(&cli->out, "files");
        json_array(&cli->out);
    }
    for (size_t i = 0; i < plan->n_notes; i++) {
        const struct aof_rebuild_note *n = &plan->notes[i];
        char name[AOF_NAME_MAX * 4 + 3], why[RD_ERR_TEXT_MAX];
        rd_err_quote(name, sizeof name, rd_slice_str(n->name));
        if (cli->json) {
            json_obj(&cli->out);
            json_put_str(&cli->out, "name", n->name);
            json_put_str(&cli->out, "use", aof_use_word(n->use));
            json_put_bool(&cli->out, "doubtful", n->doubtful);
            json_put_str(&cli->out, "why", n->why);
            json_end(&cli->out);
        } else if (!cli->quiet) {
            rd_err_quote(why, sizeof why, rd_slice_str(n->why));
            why[strlen(why) - 1] = '\0';
            printf("  %-9s%c %s: %s\n", aof_use_word(n->use), n->doubtful ? '?' : ' ', name,
                   why + 1);
        }
    }
    if (cli->json)
        json_end(&cli->out);
}

/* ---- writing ---- */

static bool copy_file(const char *from, const char *to, unsigned mode, struct rd_err *err)
{
    const struct rd_sink_opts opts = RD_SINK_OPTS(.mode = mode);
    struct rd_src *src;
    return rd_src_open_file(&src, from, &RD_SRC_OPTS(.regular = true), err) &&
           rd_pump_to_file(src, to, &opts, err);
}

/* Copies the old manifest to another name, if there is one; *ret_mode is its mode. */
static bool keep_old(const char *path, char *saved, size_t size, unsigned *ret_mode,
                     struct rd_err *err)
{
    struct stat st;
    char save[CLI_SUFFIX_MAX];
    if (stat(path, &st) != 0) {
        saved[0] = '\0';
        return errno == ENOENT || rd_err_sys(err, errno, "open");
    }
    *ret_mode = st.st_mode & 07777;
    cli_save_suffix(save);
    int len = snprintf(saved, size, "%s%s", path, save);
    if (len < 0 || (size_t)len >= size)
        return rd_err_sys(err, ENAMETOOLONG, "the name of the copied manifest");
    return copy_file(path, saved, *ret_mode, err);
}

static bool write_manifest(struct aof_job *job, const struct aof_rebuild *plan, char *saved,
                           size_t size, struct rd_err *err)
{
    char path[PATH_MAX];
    struct rd_sink *sink;
    struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true);
    if (!aof_job_full_path(job, job->name, path, sizeof path, err) ||
        !keep_old(path, saved, size, &opts.mode, err) ||
        !rd_sink_open_file(&sink, path, &opts, err))
        return false;
    if (aof_manifest_write(&plan->manifest, sink))
        return rd_sink_close(sink, err);
    rd_err_adopt(err, rd_sink_err(sink));
    rd_sink_abort(sink);
    return false;
}

/* ---- the whole ---- */

static void ignore_problem(void *ctx, enum aof_manifest_problem problem, uint64_t offset,
                           unsigned line, const char *text)
{
    (void)ctx, (void)problem, (void)offset, (void)line, (void)text;
}

/* Reads the readable lines of the existing manifest, if any. */
static bool read_old(struct aof_job *job, struct aof_manifest *old, struct rd_err *err)
{
    struct rd_src *src;
    struct rd_err own = {0};
    if (job->name[0] == '\0' || !aof_job_open_manifest(job, &src, &own)) {
        if (job->name[0] == '\0' || (own.code == RD_ERR_IO && own.sys == ENOENT))
            return true;
        rd_err_adopt(err, &own);
        return false;
    }
    bool ok = aof_manifest_read(old, src, ignore_problem, NULL, err);
    rd_src_close(src);
    return ok;
}

static bool nobody_writes(struct aof_job *job, const struct aof_rebuild *plan, struct rd_err *err)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < aof_manifest_count(&plan->manifest); i++) {
        const char *name = aof_manifest_file(&plan->manifest, i)->name;
        if (!aof_job_full_path(job, name, path, sizeof path, err))
            return false;
        if (!aof_file_is_written(path))
            continue;
        cli_hint(job->cli, "stop the server first");
        rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "another process has it open for writing");
        holder_name(err, path);
        rd_err_origin(err, name);
        return false;
    }
    return true;
}

/* With a manifest that lacks the base or an incremental file, a server starts with less data or
 * none. */
static bool is_complete(struct aof_job *job, const struct aof_rebuild *plan, struct rd_err *err)
{
    bool base = aof_manifest_base(&plan->manifest) != NULL;
    bool incr = aof_manifest_last_incr(&plan->manifest) != NULL;
    if ((base && incr) || job->force)
        return true;
    cli_hint(job->cli, "restore the missing file; --force writes the manifest without it");
    rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "no %s found: manifest not written",
               base   ? "incremental file"
               : incr ? "base file"
                      : "base file or incremental file");
    rd_err_origin(err, job->shown);
    return false;
}

/* Sets *ret_status if it returns true. */
static bool work(struct aof_job *job, struct aof_manifest *old, struct aof_rebuild *plan,
                 int *ret_status, struct rd_err *err)
{
    char saved[PATH_MAX] = "", quoted[RD_ERR_TEXT_MAX], name[RD_ERR_TEXT_MAX];
    if (!read_old(job, old, err) || !aof_job_rebuild(job, old, plan, err))
        return false;
    if (!job->cli->json && !job->cli->quiet)
        printf("%s\n", job->shown);
    show_plan(job, plan);
    fflush(stdout);
    bool done = !job->dry_run && is_complete(job, plan, err) && nobody_writes(job, plan, err) &&
                cli_ask(job->cli, job->yes, "Write this manifest?");
    if (err->code != RD_ERR_OK || (done && !write_manifest(job, plan, saved, sizeof saved, err)))
        return false;
    if (job->cli->json) {
        json_put_bool(&job->cli->out, "done", done);
        if (saved[0] != '\0')
            json_put_str(&job->cli->out, "saved_as", saved);
    } else if (done && !job->cli->quiet) {
        rd_err_quote(quoted, sizeof quoted, rd_slice_str(saved));
        rd_show_escape(name, sizeof name, rd_slice_str(job->name));
        printf("%s: written%s%s\n", name, saved[0] != '\0' ? "; the old one is saved as " : "",
               saved[0] != '\0' ? quoted : "");
    }
    *ret_status = (done || job->dry_run) && !plan->doubtful ? CLI_OK : CLI_FINDINGS;
    return true;
}

int aof_job_run_manifest(struct aof_job *job)
{
    struct rd_err err = {0};
    struct aof_manifest old;
    struct aof_rebuild plan;
    int status = CLI_OK;
    if (job->is_stdin || !job->has_manifest)
        return cli_usage_error(job->cli, "--fix-manifest requires a folder or a manifest");
    if (job->cli->json && !job->yes && !job->dry_run)
        return cli_usage_error(job->cli,
                               "--json cannot ask for confirmation: use --yes or --dry-run");
    aof_manifest_init(&old);
    aof_rebuild_init(&plan);
    if (!work(job, &old, &plan, &status, &err))
        status = cli_fail(job->cli, &err);
    aof_rebuild_done(&plan);
    aof_manifest_done(&old);
    return status;
}
