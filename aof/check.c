#include "aof/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "aof/check/kind.h"
#include "aof/check/check_impl.h"
#include "aof/check/tail.h"
#include "aof/manifest_names.h"
#include "aof/text_mode.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sized.h"

enum {
    TICK = 4096,    /* commands */
    CLOCK_SLACK = 2 /* seconds by which the clocks of a server and its child may differ */
};

struct finding_kind {
    const char *word;
    enum rdb_severity severity;
};

static const struct finding_kind *finding_kind(enum aof_finding_id id)
{
    static const struct finding_kind kinds[] = {
#define X(name, number, word, severity)                                                            \
    [number - AOF_FINDING_CORRUPT] = {word, RDB_SEVERITY_##severity},
        AOF_FINDINGS(X)
#undef X
    };
    return &kinds[id - AOF_FINDING_CORRUPT];
}

const char *aof_verdict_word(enum aof_verdict verdict)
{
    static const char *const words[] = {
#define X(name, number, word) [number] = word,
        AOF_VERDICTS(X)
#undef X
    };
    return words[verdict];
}

/* ---- findings ---- */

static void report_finding(struct check *c, const struct aof_finding *f)
{
    if (f->severity == RDB_SEVERITY_ERROR)
        c->res.errors++;
    else if (f->severity == RDB_SEVERITY_WARNING)
        c->res.warnings++;
    else
        c->res.infos++;
    if (c->file != NULL && f->severity == RDB_SEVERITY_WARNING &&
        c->file->verdict == AOF_VERDICT_SOUND)
        c->file->verdict = AOF_VERDICT_WARNED;
    if (c->opts.finding != NULL)
        c->opts.finding(c->opts.ctx, f);
}

void aof_check_report(struct check *c, enum aof_finding_id id, uint64_t offset, uint64_t line,
                      uint64_t command, const char *text)
{
    const struct aof_finding f = {
        .id = id,
        .word = finding_kind(id)->word,
        .severity = finding_kind(id)->severity,
        .file = c->file != NULL ? c->file->name : NULL,
        .offset = offset,
        .line = line,
        .command = command,
        .text = text,
    };
    report_finding(c, &f);
}

void aof_check_report_file(struct check *c, enum aof_finding_id id, const char *name,
                           const char *text)
{
    const struct aof_finding f = {
        .id = id,
        .word = finding_kind(id)->word,
        .severity = finding_kind(id)->severity,
        .file = name,
        .offset = RD_NO_OFFSET,
        .text = text,
    };
    report_finding(c, &f);
}

static void worse(enum aof_verdict *verdict, enum aof_verdict than)
{
    if (than > *verdict)
        *verdict = than;
}

void aof_check_broke(struct check *c, enum rd_err_code code, uint64_t offset, uint64_t ok,
                     uint64_t ok_line, const char *text)
{
    struct aof_check_file *f = c->file;
    if (f->damaged)
        return;
    f->damaged = true;
    f->ok_up_to = ok;
    f->ok_up_to_line = ok_line;
    f->code = code;
    f->broken_at = offset;
    rd_err_set(&c->detail.err, code, offset, "%s", text);
    rd_err_origin(&c->detail.err, f->name);
}

/* ---- one file ---- */

static bool is_damage(enum rd_err_code code)
{
    return code == RD_ERR_CORRUPT || code == RD_ERR_TRUNCATED || code == RD_ERR_LIMIT ||
           code == RD_ERR_UNSUPPORTED;
}

/* The file has no whole command before or after the damage. */
static bool is_not_log(const struct check *c, const struct rd_err *err)
{
    const struct aof_check_file *f = c->file;
    if (f->has_snapshot || c->known > 0 || f->after != RD_NO_OFFSET)
        return false;
    if (f->file != NULL && (err->code == RD_ERR_TRUNCATED || f->zeros == f->size))
        return false; /* the manifest lists it as a log: its first command is incomplete */
    return f->searched || (c->first != '*' && c->first != '#');
}

static bool is_written(const struct check *c)
{
    const struct aof_check_file *f = c->file;
    return f->code == RD_ERR_TRUNCATED && f->last && f->searched && f->after == RD_NO_OFFSET &&
           c->opts.written != NULL && c->opts.written(c->opts.ctx, f->file, f->size);
}

static const char written_text[] =
    "the last command is not complete yet, and the file is being written";

static void not_a_log(struct check *c)
{
    struct aof_check_file *f = c->file;
    f->verdict = AOF_VERDICT_NOT_LOG;
    f->hint = c->kind != NULL ? c->kind->hint : NULL;
    snprintf(c->text, sizeof c->text, "this is not a log: no whole command is in it%s%s",
             c->kind != NULL ? "; " : "", c->kind != NULL ? c->kind->text : "");
}

static void report_break(struct check *c, const struct rd_err *err, uint64_t line)
{
    struct aof_check_file *f = c->file;
    enum aof_finding_id id = err->code == RD_ERR_TRUNCATED ? AOF_FINDING_TRUNCATED
                             : err->code == RD_ERR_LIMIT   ? AOF_FINDING_LIMIT
                                                           : AOF_FINDING_CORRUPT;
    snprintf(c->text, sizeof c->text, "%s", err->text);
    if (f->text_mode != AOF_TEXT_NONE) {
        id = AOF_FINDING_TEXT_MODE;
        snprintf(c->text, sizeof c->text, "%s: caused by a transfer in text mode or by an editor",
                 f->text_mode == AOF_TEXT_LF ? "every CR LF was changed to LF"
                                             : "every LF was changed to CR LF");
    } else if (is_not_log(c, err)) {
        id = AOF_FINDING_NOT_LOG;
        not_a_log(c);
    } else if (is_written(c)) {
        id = AOF_FINDING_WRITTEN;
        f->verdict = AOF_VERDICT_WRITTEN;
        snprintf(c->text, sizeof c->text, "%s", written_text);
    } else if (f->zeros > 0 && err->code == RD_ERR_CORRUPT && err->offset >= f->size - f->zeros) {
        id = AOF_FINDING_ZERO_TAIL;
        snprintf(c->text, sizeof c->text,
                 "%" PRIu64 " zero byte%s up to the end of the file, as after a power failure",
                 f->zeros, f->zeros == 1 ? "" : "s");
    }
    bool about_file = id == AOF_FINDING_NOT_LOG || id == AOF_FINDING_TEXT_MODE;
    aof_check_report(c, id, err->offset, line, about_file ? 0 : f->commands + 1, c->text);
}

/* The framing failed; the log is at the last whole entry. */
static bool framing_broke(struct check *c, struct rd_src *src, const struct rd_err *err)
{
    struct aof_check_file *f = c->file;
    uint64_t line = aof_log_line(c->log);
    if (c->has_inner)
        aof_check_exec_missing(c);
    aof_check_broke(c, err->code, err->offset, c->in_multi ? c->multi : f->whole,
                    c->in_multi ? c->multi_line : line, err->text);
    if (!aof_tail_zeros(src, f->whole, f->size, &f->zeros, c->err))
        return false;
    f->searched = f->after != RD_NO_OFFSET;
    if (!f->searched && !aof_tail_search(src, f->whole + 1, &f->after, &f->searched, c->err))
        return false;
    report_break(c, err, line);
    return true;
}

static void ended_in_multi(struct check *c)
{
    struct aof_check_file *f = c->file;
    if (c->has_inner) {
        aof_check_exec_missing(c);
        return;
    }
    aof_check_broke(c, RD_ERR_TRUNCATED, f->whole, c->multi, c->multi_line,
                    "the file ends in a transaction");
    bool written = is_written(c);
    if (written)
        f->verdict = AOF_VERDICT_WRITTEN;
    snprintf(c->text, sizeof c->text, "%s",
             written ? written_text
                     : "the file ends before the EXEC of this MULTI: a server refuses to start");
    aof_check_report(c, written ? AOF_FINDING_WRITTEN : AOF_FINDING_MULTI_OPEN, c->multi,
                     c->multi_line, c->multi_number, c->text);
}

static bool commands(struct check *c, struct rd_src *src)
{
    struct aof_check_file *f = c->file;
    struct aof_log_entry e;
    enum aof_log_status st;
    uint64_t tick = TICK;
    while ((st = aof_log_next(c->log, &e)) == AOF_LOG_ENTRY) {
        if (RD_LIKELY(e.kind == AOF_LOG_COMMAND || e.kind == AOF_LOG_LONG_END))
            aof_check_command(c, &e);
        else if (e.kind == AOF_LOG_ANNOTATION)
            aof_check_annotation(c, &e);
        if (RD_UNLIKELY(--tick == 0 || e.kind == AOF_LOG_PIECE)) {
            tick = TICK;
            if (c->opts.tick != NULL)
                c->opts.tick(c->opts.ctx, src);
        }
    }
    f->whole = aof_log_whole(c->log);
    if (!f->damaged) {
        f->ok_up_to = c->in_multi ? c->multi : f->whole;
        f->ok_up_to_line = c->in_multi ? c->multi_line : aof_log_line(c->log);
    }
    if (st == AOF_LOG_FAIL) {
        const struct rd_err err = *aof_log_err(c->log);
        if (!is_damage(err.code)) {
            rd_err_adopt(c->err, &err);
            return false;
        }
        return framing_broke(c, src, &err);
    }
    f->size = f->whole;
    f->searched = true;
    if (c->in_multi)
        ended_in_multi(c);
    aof_check_report_inner(c);
    return true;
}

/* ---- the snapshot of a base file ---- */

static void on_snapshot_finding(void *ctx, const struct rdb_finding *found)
{
    struct check *c = ctx;
    const struct aof_finding f = {
        .id = found->id,
        .word = found->word,
        .severity = found->severity,
        .file = c->file->name,
        .offset = found->offset,
        .snapshot = found,
        .text = found->text,
    };
    report_finding(c, &f);
}

static void on_snapshot_event(void *ctx, const struct rdb_event *ev)
{
    struct check *c = ctx;
    char tmp[RD_NUM_I64_MAX];
    int64_t s;
    if (ev->kind == RDB_AUX && rd_slice_is(ev->aux.name, "ctime") &&
        rd_num_get_i64(rdb_string_bytes(&ev->aux.value, tmp), &s) && s >= 0)
        c->file->saved = s;
}

static bool snapshot(struct check *c, struct rd_src *src)
{
    struct aof_check_file *f = c->file;
    const struct rdb_check_opts opts =
        RDB_CHECK_OPTS(.quick = c->opts.quick, .now_ms = c->opts.now_ms,
                       .finding = on_snapshot_finding, .event = on_snapshot_event, .ctx = c,
                       .spool = c->opts.spool, .single_thread = c->opts.single_thread,
                       .seed = {c->opts.seed[0], c->opts.seed[1]}, .part = true);
    f->has_snapshot = true;
    struct rdb_check_result *res = &c->detail.snapshot;
    *res = RDB_CHECK_RESULT();
    if (!rdb_check(src, &opts, res, c->err))
        return false;
    f->snapshot_bad = res->errors > 0;
    if (c->base_time == AOF_NO_TIME && f->saved != AOF_NO_TIME) {
        c->base_time = f->saved;
        c->base_clock = "its ctime";
    }
    /* An unknown type after other errors is a part of the damage. */
    bool newer = res->damaged && res->err.code == RD_ERR_UNSUPPORTED && res->errors == 1;
    if (res->errors > 0)
        worse(&f->verdict, newer ? AOF_VERDICT_UNSUPPORTED : AOF_VERDICT_DAMAGED);
    if (res->damaged) {
        f->damaged = true;
        f->code = res->err.code;
        f->broken_at = res->err.offset;
        c->detail.err = res->err;
        rd_err_origin(&c->detail.err, f->name);
    } else {
        f->ok_up_to = f->whole = res->end;
    }
    return true;
}

/* Whether its keys exist already is known only when the commands before it are run. */
static void late_snapshot(struct check *c)
{
    c->file->snapshot_bad = true;
    worse(&c->file->verdict, AOF_VERDICT_DAMAGED);
    aof_check_report(c, AOF_FINDING_LATE_SNAPSHOT, 0, 0, 0,
                     "an incremental file begins with a snapshot: servers refuse the log if one of "
                     "its keys exists already");
}

/* ---- files ---- */

static void judge(struct aof_check_file *f)
{
    if (!f->damaged || f->verdict == AOF_VERDICT_UNSUPPORTED || f->verdict == AOF_VERDICT_NOT_LOG ||
        f->verdict == AOF_VERDICT_WRITTEN)
        return;
    bool cut_repairs = f->last && f->searched && f->after == RD_NO_OFFSET &&
                       f->text_mode == AOF_TEXT_NONE && f->verdict != AOF_VERDICT_DAMAGED;
    worse(&f->verdict, cut_repairs ? AOF_VERDICT_TORN : AOF_VERDICT_DAMAGED);
}

/* The size of a file that could not be read to its end. */
static bool drain(struct check *c, struct rd_src *src)
{
    struct rd_slice s;
    enum rd_src_status st;
    while ((st = rd_src_need(src, 1, &s)) == RD_SRC_OK)
        rd_src_consume(src, s.len);
    c->file->size = rd_src_offset(src);
    if (st == RD_SRC_FAIL)
        rd_err_adopt(c->err, rd_src_err(src));
    return st == RD_SRC_END;
}

static void check_empty(struct check *c)
{
    static const char lost[] = "it is empty, but a snapshot never is: its data is lost";
    struct aof_check_file *f = c->file;
    f->size = 0;
    if (f->file == NULL || !aof_file_holds_snapshot(f->file)) {
        aof_check_report(c, AOF_FINDING_EMPTY_FILE, RD_NO_OFFSET, 0, 0, "it is empty");
        return;
    }
    f->damaged = true;
    f->code = RD_ERR_TRUNCATED;
    f->broken_at = 0;
    f->verdict = AOF_VERDICT_DAMAGED;
    rd_err_set(&c->detail.err, f->code, 0, "%s", lost);
    rd_err_origin(&c->detail.err, f->name);
    aof_check_report(c, AOF_FINDING_TRUNCATED, 0, 0, 0, lost);
}

static bool check_content(struct check *c, struct rd_src *src)
{
    struct aof_check_file *f = c->file;
    const struct aof_log_opts opts = AOF_LOG_OPTS(.names = true, .lines = true);
    struct rd_slice s;
    size_t look = rd_src_window(src) < AOF_KIND_LOOK ? rd_src_window(src) : AOF_KIND_LOOK;
    if (rd_src_need(src, look, &s) == RD_SRC_FAIL) {
        rd_err_adopt(c->err, rd_src_err(src));
        return false;
    }
    f->content = aof_content_of(s);
    f->text_mode = aof_text_mode_of(s);
    c->kind = aof_kind_of(s);
    c->first = s.len > 0 ? s.ptr[0] : 0;
    c->known = 0;
    if (f->content == AOF_EMPTY) {
        check_empty(c);
        return true;
    }
    if (f->file != NULL && aof_file_holds_snapshot(f->file) && c->first != '*' && c->first != '#' &&
        (c->kind == NULL || c->first == 0))
        f->content = AOF_SNAPSHOT; /* with a damaged head */
    if (f->content == AOF_SNAPSHOT && !snapshot(c, src))
        return false;
    if (f->has_snapshot && f->file != NULL && f->file->type == AOF_INCR)
        late_snapshot(c);
    if (f->has_snapshot && c->detail.snapshot.damaged)
        return f->size != RD_NO_OFFSET || drain(c, src);
    if (!aof_log_new(&c->log, src, &opts, c->err))
        return false;
    c->in_multi = c->in_inner = c->has_inner = c->expect_after = false;
    c->n_inner = 0;
    bool ok = commands(c, src);
    aof_log_free(c->log);
    c->log = NULL;
    return ok && (f->size != RD_NO_OFFSET || drain(c, src));
}

static void compare_with_base(struct check *c)
{
    const struct aof_check_file *f = c->file;
    if (f->file == NULL || f->file->type != AOF_INCR || f->first_time == AOF_NO_TIME ||
        c->base_time == AOF_NO_TIME || f->first_time >= c->base_time - CLOCK_SLACK)
        return;
    snprintf(c->text, sizeof c->text,
             "the base is of %" PRId64 " (%s), but this file begins at %" PRId64
             " (its first annotation): commands may be in the base already",
             c->base_time, c->base_clock, f->first_time);
    aof_check_report(c, AOF_FINDING_BASE_NEWER, RD_NO_OFFSET, 0, 0, c->text);
}

/* The state to be used when the next file is read. */
static bool keep_detail(struct check *c)
{
    struct aof_check_file *f = c->file;
    if (!f->damaged && !f->has_snapshot)
        return true;
    if (!f->last && c->n_details >= AOF_CHECK_DETAILS - 1)
        return true;
    struct aof_check_detail *kept = rd_alloc(sizeof *kept);
    if (kept == NULL)
        return rd_err_nomem(c->err, sizeof *kept);
    *kept = c->detail;
    f->detail = kept;
    c->n_details++;
    return true;
}

static bool check_file(struct check *c, struct rd_src *src)
{
    struct aof_check_file *f = c->file;
    struct aof_check_result *res = &c->res;
    f->size = rd_src_size(src);
    c->detail = (struct aof_check_detail){0};
    if (!check_content(c, src) || !keep_detail(c)) {
        rd_err_origin(c->err, f->name);
        return false;
    }
    compare_with_base(c);
    judge(f);
    res->commands += f->commands;
    res->transactions += f->transactions;
    res->annotations += f->annotations;
    res->bytes += f->size;
    if (res->first_time == AOF_NO_TIME)
        res->first_time = f->first_time;
    if (f->last_time != AOF_NO_TIME)
        res->last_time = f->last_time;
    return true;
}

static void init_file(struct aof_check_file *f, const char *name, bool last)
{
    *f = (struct aof_check_file){
        .name = name,
        .last = last,
        .broken_at = RD_NO_OFFSET,
        .after = RD_NO_OFFSET,
        .size = RD_NO_OFFSET,
        .first_time = AOF_NO_TIME,
        .last_time = AOF_NO_TIME,
        .saved = AOF_NO_TIME,
    };
}

static bool open_and_check(struct check *c)
{
    struct rd_err err = {0};
    struct rd_src *src;
    if (!c->opts.open(c->opts.ctx, c->file->file, &src, &err)) {
        if (err.code != RD_ERR_IO || err.sys != ENOENT) {
            rd_err_adopt(c->err, &err);
            rd_err_origin(c->err, c->file->name);
            return false;
        }
        c->file->verdict = AOF_VERDICT_MISSING;
        c->file->size = 0;
        aof_check_report(c, AOF_FINDING_MISSING, RD_NO_OFFSET, 0, 0,
                         "the file is in the manifest, but is missing");
        return true;
    }
    bool ok = rd_src_unwrap(&src, c->err) && check_file(c, src);
    rd_src_close(src);
    if (!ok)
        rd_err_origin(c->err, c->file->name);
    return ok;
}

/* ---- the log ---- */

static void verdict_of_log(struct aof_check_result *res, bool bad_manifest)
{
    if (res->warnings > 0)
        worse(&res->verdict, AOF_VERDICT_WARNED);
    if (bad_manifest)
        worse(&res->verdict, AOF_VERDICT_BAD_MANIFEST);
    for (size_t i = 0; i < res->n_files; i++) {
        enum aof_verdict verdict = res->files[i]->verdict;
        if (verdict == AOF_VERDICT_NOT_LOG && res->files[i]->file != NULL)
            verdict = AOF_VERDICT_DAMAGED; /* of a log that has other files */
        worse(&res->verdict, verdict);
    }
}

static bool alloc_files(struct check *c, size_t n)
{
    const size_t size = sizeof(struct aof_check_file) + sizeof(struct aof_check_file *);
    struct aof_check_file **pointers = rd_calloc(n > 0 ? n : 1, size);
    if (pointers == NULL)
        return rd_err_nomem(c->err, n * size);
    c->res.files = pointers;
    c->files = (struct aof_check_file *)(pointers + n);
    for (size_t i = 0; i < n; i++)
        pointers[i] = &c->files[i];
    return true;
}

static bool begin(struct check *c, const struct aof_check_opts *opts, struct rd_err *err)
{
    *c = (struct check){.err = err, .base_time = AOF_NO_TIME};
    c->res = AOF_CHECK_RESULT(.first_time = AOF_NO_TIME, .last_time = AOF_NO_TIME);
    aof_manifest_init(&c->res.manifest);
    return rd_sized_copy(&c->opts, sizeof c->opts, opts, err);
}

static bool check_one(struct check *c, struct rd_src *src, const char *name)
{
    if (!alloc_files(c, 1))
        return false;
    c->res.n_files = 1;
    c->file = &c->files[0];
    init_file(c->file, name, true);
    bool ok = check_file(c, src);
    c->file = NULL;
    aof_check_report_names(c);
    verdict_of_log(&c->res, false);
    return ok;
}

bool aof_check_one(struct rd_src *src, const char *name, const struct aof_check_opts *opts,
                   struct aof_check_result *ret, struct rd_err *err)
{
    struct check c;
    struct rd_err own = {0};
    if (!rd_sized_is_set(ret, err))
        return false;
    bool ok = begin(&c, opts, err != NULL ? err : &own) && check_one(&c, src, name);
    rd_sized_return(ret, &c.res, sizeof c.res);
    return ok;
}

struct manifest_check {
    struct check *c;
    bool bad;
};

static void on_problem(void *ctx, enum aof_manifest_problem problem, uint64_t offset, unsigned line,
                       const char *text)
{
    struct manifest_check *m = ctx;
    bool fatal = aof_manifest_problem_fatal(problem);
    const struct aof_finding f = {
        .id = problem,
        .word = aof_manifest_problem_word(problem),
        .severity = fatal ? RDB_SEVERITY_ERROR : RDB_SEVERITY_WARNING,
        .offset = offset,
        .line = line,
        .text = text,
    };
    m->bad |= fatal;
    report_finding(m->c, &f);
}

/* Files in the folder that do not belong to the log. */
static bool look_around(struct check *c)
{
    const struct aof_check_opts *opts = &c->opts;
    struct aof_manifest_names named;
    uint64_t seq;
    enum aof_type type;
    bool rdb;
    if (opts->names == NULL)
        return true;
    if (!aof_manifest_names_init(&named, &c->res.manifest, c->err))
        return false;
    for (size_t i = 0; i < opts->n_names; i++) {
        const char *name = opts->names[i];
        const struct aof_file *file = aof_manifest_names_find(&named, name);
        if (file != NULL && file->type == AOF_HISTORY)
            aof_check_report_file(c, AOF_FINDING_HISTORY, name,
                                  "the server deletes it when it starts");
        else if (file == NULL && strncmp(name, "temp-", 5) == 0)
            aof_check_report_file(c, AOF_FINDING_LEFTOVER, name, "an unfinished rewrite left it");
        else if (file == NULL && (aof_file_name_parse(name, opts->prefix, &seq, &type, &rdb) ||
                                  strcmp(name, opts->prefix) == 0))
            aof_check_report_file(c, AOF_FINDING_ORPHAN, name,
                                  "its name belongs to this log, but no server reads it");
    }
    aof_manifest_names_done(&named);
    return true;
}

static bool check_files(struct check *c)
{
    const struct aof_manifest *m = &c->res.manifest;
    struct aof_check_result *res = &c->res;
    for (size_t i = 0; i < aof_manifest_count(m); i++) {
        if (aof_manifest_file(m, i)->type == AOF_HISTORY)
            continue;
        init_file(&c->files[res->n_files], aof_manifest_file(m, i)->name, false);
        c->files[res->n_files++].file = aof_manifest_file(m, i);
    }
    if (res->n_files > 0)
        c->files[res->n_files - 1].last = true;
    for (size_t i = 0; i < res->n_files; i++) {
        c->file = &c->files[i];
        if (!open_and_check(c))
            return false;
    }
    c->file = NULL;
    return true;
}

static bool check_folder(struct check *c, struct rd_src *manifest)
{
    struct manifest_check m = {.c = c};
    if (!aof_manifest_read(&c->res.manifest, manifest, on_problem, &m, c->err) ||
        !alloc_files(c, aof_manifest_count(&c->res.manifest)) || !check_files(c))
        return false;
    aof_check_report_names(c);
    if (!look_around(c))
        return false;
    verdict_of_log(&c->res, m.bad);
    return true;
}

bool aof_check(struct rd_src *manifest, const struct aof_check_opts *opts,
               struct aof_check_result *ret, struct rd_err *err)
{
    struct check c;
    struct rd_err own = {0};
    if (!rd_sized_is_set(ret, err))
        return false;
    bool ok = begin(&c, opts, err != NULL ? err : &own) && check_folder(&c, manifest);
    rd_sized_return(ret, &c.res, sizeof c.res);
    return ok;
}

void aof_check_done(struct aof_check_result *res)
{
    for (size_t i = 0; i < res->n_files; i++)
        rd_free(res->files[i]->detail);
    rd_free((void *)(uintptr_t)res->files);
    res->files = NULL;
    res->n_files = 0;
    aof_manifest_done(&res->manifest);
}
