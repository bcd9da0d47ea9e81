/* salvage.c - check-aof --salvage OUT: writes a log of all intact commands.
 *
 * The result has the same form: a folder or one file. The files of a folder get their places when
 * all of them are written, the manifest last, so that neither a failure nor an interruption leaves
 * an incomplete log.
 */
#include "aof/salvage.h"
#include "aof/text_mode.h"

#include "base/mem.h"
#include "tools/check_aof/check_aof.h"
#include "data/spool.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

/* A file whose line ends were changed, with the original ones restored. */
struct text_file {
    struct text_file *next;
    struct spool spool;
    struct aof_text_result res;
    char name[]; /* empty: the one file */
};

struct salvage {
    struct aof_job *job;
    struct text_file *texts;
    struct aof_manifest in, out;
    struct aof_rebuild plan;
    bool rebuilt; /* plan.manifest is used because `in` could not be read */
    struct aof_job_out folder;
    uint64_t lost_files;
    struct aof_salvage_result res;
    struct spool spool;
    uint64_t shown; /* losses */
    bool verified;
};

/* ---- the report ---- */

static const char *loss_word(enum aof_loss_kind kind)
{
    static const char *const words[] = {"range", "transaction", "snapshot", "file"};
    return words[kind];
}

static void put_time(struct json_write *json, const char *key, int64_t seconds)
{
    if (seconds != AOF_NO_TIME)
        json_put_int(json, key, seconds);
}

static void put_loss(struct json_write *json, const struct aof_loss *loss)
{
    json_obj(json);
    json_put_str(json, "kind", loss_word(loss->kind));
    json_put_str(json, "file", loss->file);
    json_put_uint(json, "from", loss->from);
    json_put_uint(json, "to", loss->to);
    if (loss->at != RD_NO_OFFSET)
        json_put_uint(json, "at", loss->at);
    json_put_str(json, "why", loss->why);
    if (loss->resync != NULL)
        json_put_str(json, "resync", loss->resync);
    if (loss->kind == AOF_LOSS_RANGE || loss->kind == AOF_LOSS_TRANSACTION) {
        json_put_uint(json, "commands", loss->commands);
        json_put_bool(json, "counted", loss->counted);
        json_put_uint(json, "db", loss->db);
        json_put_uint(json, "db_after", loss->db_after);
        json_put_bool(json, "db_uncertain", loss->db_uncertain);
        put_time(json, "time_before_s", loss->before);
        put_time(json, "time_after_s", loss->after);
    }
    if (loss->snapshot != NULL && loss->snapshot->has_key) {
        json_put_uint(json, "db", loss->snapshot->db);
        json_key(json, "key");
        json_bytes(json, loss->snapshot->key);
    }
    json_end(json);
}

static void print_times(FILE *out, const struct aof_loss *loss)
{
    if (loss->before != AOF_NO_TIME)
        fprintf(out, ", after %s", aof_job_time(loss->before).s);
    if (loss->after != AOF_NO_TIME)
        fprintf(out, ", before %s", aof_job_time(loss->after).s);
}

static void print_commands(FILE *out, const struct aof_loss *loss)
{
    if (loss->commands == 0)
        fputs(loss->counted ? ", no command" : ", any number of commands", out);
    else
        fprintf(out, ", %s%s command%s", loss->counted ? "" : "at least ",
                rd_show_count(loss->commands).s, loss->commands == 1 ? "" : "s");
    if (loss->commands > 0 || !loss->counted)
        fprintf(out, " in db %" PRIu64, loss->db);
}

static void print_loss(FILE *out, const struct aof_loss *loss, bool verbose)
{
    struct rd_shown_name name = rd_show_quote(rd_slice_str(loss->file));
    if (loss->kind == AOF_LOSS_FILE) {
        fprintf(out, "  lost       %s: %s\n", name.s, loss->why);
        return;
    }
    fprintf(out, "  lost       %s [%" PRIu64 ", %" PRIu64 ") %s", name.s, loss->from, loss->to,
            rd_show_bytes(loss->to - loss->from).s);
    if (loss->kind == AOF_LOSS_TRANSACTION)
        fputs(", a transaction", out);
    if (loss->kind != AOF_LOSS_SNAPSHOT)
        print_commands(out, loss);
    else if (loss->snapshot->has_key)
        fprintf(out, ", key %s in db %" PRIu64, rd_show_quote(loss->snapshot->key).s, loss->db);
    print_times(out, loss);
    fprintf(out, ": %s", loss->why);
    if (loss->at != RD_NO_OFFSET)
        fprintf(out, " at byte %" PRIu64, loss->at);
    if (loss->resync != NULL && verbose)
        fprintf(out, "; then: %s", loss->resync);
    if (loss->db_uncertain)
        fprintf(out, "; db %" PRIu64 " is assumed after it: a SELECT may be lost", loss->db_after);
    fputc('\n', out);
}

static void on_loss(void *ctx, const struct aof_loss *loss)
{
    struct salvage *s = ctx;
    struct cli *cli = s->job->cli;
    s->lost_files += loss->kind == AOF_LOSS_FILE;
    if (s->shown++ >= FINDINGS_KEPT && cli->verbose == 0)
        return;
    if (cli->json)
        put_loss(&cli->out, loss);
    else if (!cli->quiet) {
        print_loss(cli_wrap_begin(cli, stdout), loss, cli->verbose > 0);
        cli_wrap_end(cli);
    }
}

static void on_doubt(void *ctx, const struct aof_doubt *d)
{
    struct salvage *s = ctx;
    if (d->inner != RD_NO_OFFSET && s->res.swallowed <= FINDINGS_KEPT)
        cli_warn(s->job->cli,
                 "%s: the command at byte %" PRIu64 " ends with whole commands, from byte %" PRIu64
                 " on: they are its value, or it was not written to its end",
                 rd_show_quote(rd_slice_str(d->file)).s, d->offset, d->inner);
    else if (d->inner == RD_NO_OFFSET && s->res.doubts <= FINDINGS_KEPT)
        cli_warn(s->job->cli, "%s: unknown command %s at byte %" PRIu64 " is copied unchanged",
                 rd_show_quote(rd_slice_str(d->file)).s, rd_show_quote(d->name).s, d->offset);
}

static void on_tick(void *ctx, uint64_t offset)
{
    struct aof_job *job = ((struct salvage *)ctx)->job;
    cli_progress_at(job->cli, job->passed + offset);
}

static uint64_t restored_bytes(const struct salvage *s)
{
    uint64_t n = 0;
    for (const struct text_file *text = s->texts; text != NULL; text = text->next)
        n += text->res.bytes;
    return n;
}

static void print_end(struct salvage *s, FILE *out)
{
    const struct aof_salvage_result *r = &s->res;
    if (s->shown > FINDINGS_KEPT && s->job->cli->verbose == 0)
        fprintf(out, "  %-10s and %s more (-v)\n", "", rd_show_count(s->shown - FINDINGS_KEPT).s);
    fprintf(out, "  saved      %s command%s", rd_show_count(r->commands).s,
            r->commands == 1 ? "" : "s");
    if (r->snapshots > 0)
        fprintf(out, " and %s key%s of a damaged snapshot", rd_show_count(r->keys).s,
                r->keys == 1 ? "" : "s");
    if (r->keys_doubted > 0)
        fprintf(out, " (%s doubtful)", rd_show_count(r->keys_doubted).s);
    if (r->keys_left_out > 0)
        fprintf(out, "; %s key%s without proof left out", rd_show_count(r->keys_left_out).s,
                r->keys_left_out == 1 ? "" : "s");
    uint64_t torn = spool_torn_at(&s->spool);
    if (r->swallowed > 0)
        fprintf(out, "; %s command%s doubtful", rd_show_count(r->swallowed).s,
                r->swallowed == 1 ? " is" : "s are");
    else if (r->losses == 0 && r->snapshots == 0 && torn == RD_NO_OFFSET)
        fputs("; no bytes are lost", out);
    if (s->lost_files > 0)
        fprintf(out, "; lost: %s file%s", rd_show_count(s->lost_files).s,
                rd_show_plural(s->lost_files));
    if (r->bytes_lost > 0)
        fprintf(out, "%s %s of %s",
                s->lost_files > 0 ? " and" : "; lost:", rd_show_bytes(r->bytes_lost).s,
                r->transactions > 0 ? "commands and whole transactions" : "commands");
    if (s->texts != NULL)
        fprintf(out, "; %s line end%s restored", rd_show_count(restored_bytes(s)).s,
                rd_show_plural(restored_bytes(s)));
    if (r->selects_added > 0)
        fprintf(out, "; %s SELECT%s inserted", rd_show_count(r->selects_added).s,
                r->selects_added == 1 ? "" : "s");
    if (torn != RD_NO_OFFSET)
        fprintf(out, "; the bytes after byte %s cannot be decompressed", rd_show_place(torn).s);
    fprintf(out, "\n%s: %s\n", rd_show_plain(rd_slice_str(s->job->out)).s,
            s->verified ? "verified" : "NOT VERIFIED");
}

static void end_report(struct salvage *s, struct json_write *json)
{
    const struct aof_salvage_result *r = &s->res;
    json_end(json); /* losses */
    json_put_uint(json, "losses_found", s->shown);
    json_put_uint(json, "files", r->files);
    json_put_uint(json, "files_missing", r->files_missing);
    json_put_uint(json, "commands", r->commands);
    json_put_uint(json, "annotations", r->annotations);
    json_put_uint(json, "snapshots_damaged", r->snapshots);
    json_put_uint(json, "snapshot_keys", r->keys);
    json_put_uint(json, "snapshot_keys_doubted", r->keys_doubted);
    json_put_uint(json, "snapshot_keys_left_out", r->keys_left_out);
    json_put_uint(json, "bytes_lost", r->bytes_lost);
    json_put_offset(json, "unpacked_until", spool_torn_at(&s->spool));
    json_put_uint(json, "transactions_lost", r->transactions);
    json_put_uint(json, "unknown_commands", r->doubts);
    json_put_uint(json, "doubtful_commands", r->swallowed);
    json_put_uint(json, "selects_added", r->selects_added);
    json_put_bool(json, "db_uncertain", r->db_uncertain);
    json_put_uint(json, "line_ends_restored", restored_bytes(s));
    json_put_bool(json, "verified", s->verified);
    json_end(json);
}

/* ---- files ---- */

static bool restore_text(struct salvage *s, const char *name, enum aof_text_mode mode,
                         struct rd_src *src, struct text_file **ret, struct rd_err *err)
{
    struct rd_sink *sink;
    size_t len = strlen(name) + 1;
    struct text_file *text = rd_calloc(1, sizeof *text + len);
    if (text == NULL)
        return rd_err_nomem(err, sizeof *text + len);
    memcpy(text->name, name, len);
    text->next = s->texts;
    s->texts = text;
    if (!spool_sink(&text->spool, &sink, err))
        return false;
    if (!aof_text_restore(src, mode, sink, &text->res, err)) {
        rd_sink_abort(sink);
        return false;
    }
    cli_warn(s->job->cli,
             "%s%s%s: line ends are restored first; offsets refer to the restored file",
             s->job->shown, name[0] != '\0' ? ": " : "", rd_show_plain(rd_slice_str(name)).s);
    *ret = text;
    return rd_sink_close(sink, err);
}

/* Replaces a file whose line ends were changed by a copy with the original ones. */
static bool straighten(struct salvage *s, const char *name, struct rd_src **src, struct rd_err *err)
{
    struct rd_slice head;
    struct text_file *text = s->texts;
    (void)rd_src_need(*src, AOF_TEXT_LOOK, &head); /* a failure occurs again later */
    enum aof_text_mode mode = aof_text_mode_of(head);
    if (mode == AOF_TEXT_NONE)
        return true;
    while (text != NULL && strcmp(text->name, name) != 0)
        text = text->next;
    bool ok = text != NULL || restore_text(s, name, mode, *src, &text, err);
    rd_src_close(*src);
    *src = NULL;
    return ok && spool_source(&text->spool, name[0] != '\0' ? name : s->job->shown, src, err);
}

static void forget_texts(struct salvage *s)
{
    for (struct text_file *text = s->texts, *next; text != NULL; text = next) {
        next = text->next;
        spool_done(&text->spool);
        rd_free(text);
    }
}

static bool open_file(void *ctx, const struct aof_file *file, struct rd_src **ret,
                      struct rd_err *err)
{
    struct salvage *s = ctx;
    return aof_job_open(s->job, file, ret, err) && straighten(s, file->name, ret, err);
}

static bool create_file(void *ctx, const struct aof_file *file, struct rd_sink **ret,
                        struct rd_err *err)
{
    struct salvage *s = ctx;
    return aof_job_out_create(&s->folder, s->job, file->name, ret, err);
}

static void ignore_problem(void *ctx, enum aof_manifest_problem problem, uint64_t offset,
                           unsigned line, const char *text)
{
    struct salvage *s = ctx;
    (void)offset, (void)line, (void)text;
    s->rebuilt = s->rebuilt || aof_manifest_problem_fatal(problem);
}

/* Whether OUT would overwrite the input. */
static bool is_input(const struct aof_job *job)
{
    struct stat in, out;
    return stat(job->has_manifest ? job->folder : job->path, &in) == 0 &&
           stat(job->out, &out) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino;
}

/* Finds the files of the log: from the manifest, or from the folder if it cannot be read. */
static bool find_files(struct salvage *s, struct rd_err *err)
{
    struct rd_src *src;
    struct rd_err own = {0};
    if (aof_job_open_manifest(s->job, &src, &own)) {
        bool ok = aof_manifest_read(&s->in, src, ignore_problem, s, err);
        rd_src_close(src);
        if (!ok)
            return false;
    }
    if (own.code != RD_ERR_OK && own.sys != ENOENT) {
        rd_err_adopt(err, &own);
        return false;
    }
    s->rebuilt = s->rebuilt || own.code != RD_ERR_OK || aof_manifest_count(&s->in) == 0;
    if (!s->rebuilt)
        return true;
    cli_warn(s->job->cli, "the manifest is damaged: the files are identified by their names");
    return aof_job_rebuild(s->job, &s->in, &s->plan, err);
}

static bool write_manifest(struct salvage *s, struct rd_err *err)
{
    const struct aof_file file = {.name = s->job->name};
    struct rd_sink *sink;
    if (aof_manifest_count(&s->out) == 0)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "nothing could be saved");
    if (!create_file(s, &file, &sink, err))
        return false;
    if (aof_manifest_write(&s->out, sink))
        return rd_sink_close(sink, err);
    rd_err_adopt(err, rd_sink_err(sink));
    rd_sink_abort(sink);
    return false;
}

static bool move_files(struct salvage *s, struct rd_err *err)
{
    for (size_t i = 0; i < aof_manifest_count(&s->out); i++)
        if (!aof_job_out_move(&s->folder, aof_manifest_file(&s->out, i)->name, err))
            return false;
    return aof_job_out_move(&s->folder, s->job->name, err);
}

static bool salvage_folder(struct salvage *s, const struct aof_salvage_opts *opts,
                           struct rd_err *err)
{
    const struct aof_manifest *in = s->rebuilt ? &s->plan.manifest : &s->in;
    bool ok = aof_job_out_begin(&s->folder, s->job, err) &&
              aof_salvage(in, opts, &s->out, &s->res, err) && write_manifest(s, err) &&
              move_files(s, err);
    aof_job_out_end(&s->folder);
    return ok;
}

/* ---- one file ---- */

static bool open_view(struct salvage *s, struct rd_src **ret, struct rd_err *err)
{
    bool ok = s->spool.open ? spool_source(&s->spool, s->job->shown, ret, err)
                            : rd_src_open_file(ret, s->job->path, NULL, err);
    return ok && straighten(s, "", ret, err);
}

/* A truncated or damaged compressed file is read as far as it can be decompressed. */
static bool accept_torn(struct salvage *s, struct rd_err *err)
{
    const struct rd_err *torn = &s->spool.torn;
    if (torn->code == RD_ERR_OK)
        return true;
    if (s->spool.size == 0) {
        rd_err_adopt(err, torn);
        return false;
    }
    cli_warn(s->job->cli, "%s: only partly decompressed: %s", s->job->shown, torn->text);
    return true;
}

/* Input that cannot seek (compressed, or a pipe) is spooled first. */
static bool prepare_view(struct salvage *s, struct rd_err *err)
{
    struct rd_src *src;
    if (!cli_open_in(s->job->cli, s->job->path, &src, err))
        return false;
    bool ok = (rd_src_can_seek(src) && rd_src_size(src) != RD_NO_OFFSET) ||
              (spool_copy_torn(&s->spool, src, NULL, NULL, err) && accept_torn(s, err));
    cli_close_in(s->job->cli, src);
    return ok;
}

/* An intact snapshot at the beginning is copied, and its keys are not counted. */
static bool begins_snapshot(struct rd_src *src)
{
    struct rd_slice head;
    return rd_src_seek(src, 0, NULL) && rd_src_need(src, RDB_MAGIC_LEN, &head) == RD_SRC_OK &&
           aof_content_of(head) == AOF_SNAPSHOT;
}

static bool salvage_one(struct salvage *s, const struct aof_salvage_opts *opts, struct rd_err *err)
{
    struct aof_job *job = s->job;
    struct rd_src *src = NULL, *copy = NULL;
    struct rd_sink *sink = NULL;
    bool ok = prepare_view(s, err) && open_view(s, &src, err) && open_view(s, &copy, err) &&
              cli_open_out(job->cli, job->out, job->force, true, &sink, err);
    if (ok) {
        cli_progress_begin(job->cli, job->path, rd_src_size(src));
        ok = aof_salvage_file(src, copy, sink, job->name, false, opts, &s->res, err);
        cli_progress_end(job->cli);
    }
    if (ok && s->res.commands == 0 && s->res.keys == 0 && rd_src_size(src) > 0 &&
        !begins_snapshot(copy))
        ok = rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "nothing could be saved");
    if (ok)
        ok = rd_sink_close(sink, err);
    else
        rd_sink_abort(sink);
    rd_src_close(copy);
    rd_src_close(src);
    return ok;
}

/* ---- the whole ---- */

/* Verifies OUT by reading it again. */
static bool verify(struct salvage *s, struct rd_err *err)
{
    struct aof_job again = {.cli = s->job->cli, .path = s->job->out};
    bool ok = aof_job_find(&again, err) && aof_job_check(&again, &again.found, err);
    s->verified =
        ok && again.found.res.errors == 0 && again.found.res.verdict <= AOF_VERDICT_WARNED;
    if (ok && !s->verified)
        aof_job_report_errors(s->job->cli, &again, &again.found);
    aof_job_done(&again);
    return ok;
}

static bool work(struct salvage *s, struct rd_err *err)
{
    struct aof_job *job = s->job;
    struct json_write *json = &job->cli->out;
    struct aof_salvage_opts opts =
        AOF_SALVAGE_OPTS(.open = open_file, .create = create_file, .loss = on_loss,
                         .doubt = on_doubt, .tick = on_tick, .ctx = s);
    cli_seed(opts.seed);
    if (job->has_manifest && !find_files(s, err))
        return false;
    if (job->cli->json) {
        json_key(json, "salvage");
        json_obj(json);
        json_put_str(json, "out", job->out);
        json_put_bool(json, "manifest_rebuilt", s->rebuilt);
        json_key(json, "losses");
        json_array(json);
    } else if (!job->cli->quiet) {
        printf("%s\n", job->shown);
    }
    if (!(job->has_manifest ? salvage_folder(s, &opts, err) : salvage_one(s, &opts, err)) ||
        !verify(s, err))
        return false;
    if (job->cli->json)
        end_report(s, json);
    else if (!job->cli->quiet) {
        print_end(s, cli_wrap_begin(job->cli, stdout));
        cli_wrap_end(job->cli);
    }
    return true;
}

static int status_of(const struct salvage *s)
{
    const struct aof_salvage_result *r = &s->res;
    bool whole = r->losses == 0 && r->swallowed == 0 && r->snapshots == 0 && !s->rebuilt &&
                 s->verified && spool_torn_at(&s->spool) == RD_NO_OFFSET;
    bool some = r->commands > 0 || r->keys > 0 || r->keys_sound > 0;
    return whole ? CLI_OK : some && s->verified ? CLI_PARTIAL : CLI_FINDINGS;
}

int aof_job_run_salvage(struct aof_job *job)
{
    struct salvage s = {.job = job, .res = AOF_SALVAGE_RESULT()};
    struct rd_err err = {0};
    if (job->is_stdin || strcmp(job->out, "-") == 0)
        return cli_usage_error(job->cli, "--salvage requires files: it reads them twice");
    if (is_input(job))
        return cli_usage_error(job->cli, "--salvage cannot overwrite its input");
    aof_manifest_init(&s.in);
    aof_manifest_init(&s.out);
    aof_rebuild_init(&s.plan);
    int status = work(&s, &err) ? status_of(&s) : cli_fail(job->cli, &err);
    aof_rebuild_done(&s.plan);
    aof_manifest_done(&s.out);
    aof_manifest_done(&s.in);
    forget_texts(&s);
    spool_done(&s.spool);
    return status;
}
