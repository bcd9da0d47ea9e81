#include "jobs/convert_impl.h"

#include "base/mem.h"
#include "jobs/proof.h"
#include "rdb/version.h"

enum { TEXTS = 64, PLAIN = 64 }; /* strings of a value, and keys, per call */

static bool job_adopt(const struct convert *job, struct rd_err *err)
{
    rd_err_adopt(err, rdb_reader_err(job->reader));
    return false;
}

/* With a filter: whether the event describes keys that may have been removed. */
static bool is_about_all_keys(const struct convert *job, const struct rdb_event *ev)
{
    return job->o.target == TO_RDB &&
           (ev->kind == RDB_DB_SIZE || ev->kind == RDB_SLOT ||
            (ev->kind == RDB_AUX && rd_slice_is(ev->aux.name, "slot-info")));
}

static bool skip_value(struct convert *job, struct rd_err *err)
{
    job->taken = true;
    return job->value != NULL || rdb_reader_skip_value(job->reader) == RDB_EVENT ||
           job_adopt(job, err);
}

static bool wants(struct convert *job, const struct rdb_event *key, bool *ret, struct rd_err *err)
{
    if (job->value == NULL)
        return sized_wants(&job->sized, key, ret, err);
    *ret = filter_wants(job->o.filter, key) &&
           filter_wants_size(job->o.filter, stage_size(job->value));
    return true;
}

/* A wanted key, after the field that belongs to it. */
static bool put_key(struct convert *job, const struct rdb_event *key, struct rd_err *err)
{
    struct rdb_event before;
    job->keys++;
    return (!rdb_beside_keep(&job->beside, key, &before) || job->put(job, &before, err)) &&
           job->put(job, key, err);
}

bool convert_put(struct convert *job, const struct rdb_event *ev, struct rd_err *err)
{
    bool wanted = true, is_key = ev->kind == RDB_KEY;
    if (is_key)
        job->taken = false;
    else if (!rdb_beside_wants(&job->beside, ev))
        return true;
    if (filter_active(job->o.filter)) {
        if (is_key && !wants(job, ev, &wanted, err))
            return false;
        if (!wanted) {
            rdb_beside_drop(&job->beside);
            return skip_value(job, err);
        }
        if (is_about_all_keys(job, ev))
            return true;
    }
    return is_key ? put_key(job, ev, err) : job->put(job, ev, err);
}

bool convert_put_run(struct convert *job, const struct rdb_event *ev, struct rd_err *err)
{
    struct rdb_text texts[TEXTS];
    struct rdb_stream_id id;
    size_t n;
    bool elem = ev->kind == RDB_ELEM && !ev->elem.str.more;
    if (!convert_put(job, ev, err))
        return false;
    if (RD_LIKELY(!elem) || job->put_texts == NULL || job->recoder != NULL)
        return true;
    while ((n = rdb_reader_texts(job->reader, texts, TEXTS)) > 0)
        if (!job->put_texts(job, texts, n, err))
            return false;
    while ((n = rdb_plain_entry(job->reader, &id, texts, TEXTS)) > 0)
        if (!job->put_entry(job, id, texts, n, err))
            return false;
    return true;
}

/* Payloads are built from one value at a time. */
bool convert_put_plain_run(struct convert *job, uint64_t db, uint64_t until, struct rd_err *err)
{
    struct rdb_plain keys[PLAIN];
    size_t n;
    if (job->put_plain == NULL || job->o.restore || filter_active(job->o.filter))
        return true;
    while ((n = rdb_plain_take(job->reader, until, keys, PLAIN)) > 0) {
        job->keys += n;
        if (!job->put_plain(job, db, keys, n, err))
            return false;
    }
    return true;
}

bool convert_copy_value(struct convert *job, struct rd_sink *to, struct rd_err *err)
{
    job->taken = true;
    if (job->value != NULL)
        return stage_move(job->value, to, err);
    return rdb_reader_copy_value(job->reader, to) == RDB_EVENT || job_adopt(job, err);
}

void convert_choose_target(const struct convert *job, enum rdb_dialect *ret_dialect,
                           int *ret_version)
{
    *ret_dialect = job->in_dialect;
    *ret_version = (int)job->o.version;
    if (job->o.dialect >= 0)
        *ret_dialect = (enum rdb_dialect)job->o.dialect;
    else if (job->o.version != 0)
        *ret_dialect = job->o.version < RDB_VERSION_VALKEY_MIN ? RDB_REDIS : RDB_VALKEY;
    if (job->o.version == 0 && *ret_dialect == job->in_dialect)
        *ret_version = job->in_version;
}

/* ---- snapshot input ---- */

/* Whether values are copied unchanged to an output that has its own checksum. */
static bool seals(const struct convert *job)
{
    return (job->o.target == TO_RDB && !job->o.rewrite) || job->o.restore;
}

static bool check_end(struct convert *job, const struct rdb_event *trailer, struct rd_err *err)
{
    const char *path = job->o.in.path;
    return job_input_check_end(&job->o.in, job->src, trailer, err) &&
           (!seals(job) || proof_check(job->watch, path, &job->spool, job->src, trailer, err));
}

struct rdb_reader_opts convert_reader_opts(const struct convert *job)
{
    struct rdb_reader_opts opts = RDB_READER_OPTS(.long_packed = job->o.target == TO_SQLITE);
    opts.detail = job->o.target == TO_CSV ? RDB_DETAIL_CHECK : RDB_DETAIL_ELEMENTS;
    return opts;
}

static bool from_snapshot(struct convert *job, struct rd_err *err)
{
    struct rdb_reader_opts opts = convert_reader_opts(job);
    opts.attach_meta = true;
    const char *path = job->o.in.path;
    if ((seals(job) && !proof_keep(job->watch, path, &job->spool, &job->src, err)) ||
        !sized_begin(&job->sized, job->o.filter, job->watch, path, &job->spool, &job->src, err) ||
        !rdb_reader_new(&job->reader, job->src, &opts, err))
        return false;
    struct rdb_event ev;
    enum rdb_status status;
    bool whole = !convert_parts_possible(job);
    while ((status = rdb_reader_next(job->reader, &ev)) == RDB_EVENT) {
        rd_watch_at(job->watch, rd_src_offset(job->src));
        if (ev.kind == RDB_HEADER) {
            job->in_dialect = ev.header.dialect;
            job->in_version = ev.header.version;
        }
        if (RD_UNLIKELY(!whole) && ev.kind == RDB_KEY && ev.raw.len > 0) {
            whole = true;
            if (!convert_parts_run(job, &ev, &status, err))
                return false;
            if (status != RDB_EVENT)
                break;
        }
        if (ev.kind == RDB_TRAILER && !check_end(job, &ev, err))
            return false;
        if (!convert_put_run(job, &ev, err))
            return false;
    }
    return status == RDB_END || job_adopt(job, err);
}

/* ---- JSON lines output ---- */

static bool begin_lines(struct convert *job, struct rd_err *err)
{
    const struct ndjson_opts opts = {.strings = (enum json_form)job->o.strings,
                                     .meta = job->o.meta};
    return ndjson_new(&job->lines, job->out, &opts, err);
}

static bool put_lines(struct convert *job, const struct rdb_event *ev, struct rd_err *err)
{
    return convert_view_note(job, ev, err) && ndjson_put(job->lines, ev, err);
}

static bool put_line_texts(struct convert *job, const struct rdb_text *texts, size_t n,
                           struct rd_err *err)
{
    return ndjson_put_texts(job->lines, texts, n, err);
}

static bool put_line_plain(struct convert *job, uint64_t db, const struct rdb_plain *keys, size_t n,
                           struct rd_err *err)
{
    return ndjson_put_plain(job->lines, db, keys, n, err);
}

static bool put_line_entry(struct convert *job, struct rdb_stream_id id,
                           const struct rdb_text *texts, size_t n, struct rd_err *err)
{
    return ndjson_put_entry(job->lines, id, texts, n, err);
}

/* ---- the job ---- */

struct target_ops {
    bool (*begin)(struct convert *job, struct rd_err *err);
    bool (*put)(struct convert *job, const struct rdb_event *ev, struct rd_err *err);
    bool (*end)(struct convert *job, struct rd_err *err);
    bool (*put_texts)(struct convert *job, const struct rdb_text *texts, size_t n,
                      struct rd_err *err);
    bool (*put_plain)(struct convert *job, uint64_t db, const struct rdb_plain *keys, size_t n,
                      struct rd_err *err);
    bool (*put_entry)(struct convert *job, struct rdb_stream_id id, const struct rdb_text *texts,
                      size_t n, struct rd_err *err);
};

static const struct target_ops targets[] = {
    [TO_RDB] = {NULL, convert_put_rdb, convert_end_rdb, NULL, NULL, NULL},
    [TO_AOF] = {convert_begin_commands, convert_put_commands, convert_end_commands,
                convert_put_command_texts, convert_put_command_plain, convert_put_command_entry},
    [TO_RESP] = {convert_begin_commands, convert_put_commands, convert_end_commands,
                 convert_put_command_texts, convert_put_command_plain, convert_put_command_entry},
    [TO_NDJSON] = {begin_lines, put_lines, NULL, put_line_texts, put_line_plain, put_line_entry},
    [TO_CSV] = {convert_begin_csv, convert_put_csv, NULL, NULL, NULL, NULL},
    [TO_SQLITE] = {convert_begin_rows, convert_put_rows, NULL, convert_put_row_texts,
                   convert_put_row_plain, convert_put_row_entry},
};

/* Detects the input format by its first bytes: JSON lines begin with a brace. A log has been
 * converted to a snapshot before. */
static bool run_input(struct convert *job, struct rd_err *err)
{
    struct rd_slice s;
    if (rd_src_need(job->src, 5, &s) == RD_SRC_FAIL) {
        rd_err_adopt(err, rd_src_err(job->src));
        return false;
    }
    if (job->o.from == FROM_NDJSON || (job->o.from == FROM_ANY && s.len > 0 && s.ptr[0] == '{'))
        return convert_from_lines(job, err);
    if (job->o.strings != JSON_UTF8 && job->o.target != TO_NDJSON && job->o.target != TO_CSV)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "--strings applies to JSON lines only");
    return from_snapshot(job, err);
}

bool convert_begin_target(struct convert *job, struct rd_err *err)
{
    const struct target_ops *ops = &targets[job->o.target];
    job->put = ops->put;
    job->put_texts = ops->put_texts;
    job->put_plain = ops->put_plain;
    job->put_entry = ops->put_entry;
    return ops->begin == NULL || ops->begin(job, err);
}

void convert_free_target(struct convert *job)
{
    ndjson_free(job->lines);
    convert_free_csv(job->csv);
    rows_free(job->rows);
    rdb_commands_free(job->commands);
    rdb_writer_free(job->writer);
    rdb_writer_free(job->recoder);
    stage_done(&job->payload);
    rd_buf_done(&job->key_meta);
    rd_buf_done(&job->module_key);
    rd_buf_done(&job->view.name);
}

static bool finish(struct convert *job, struct convert_result *ret, struct rd_err *err)
{
    struct rd_sink *out = job->out;
    ret->bytes = rd_sink_offset(out);
    if (job->o.omitted != NULL && !omitted_end(job->o.omitted, err))
        return false;
    job->out = NULL;
    if (!rd_sink_close(out, err))
        return false;
    if (job->o.target == TO_SQLITE)
        ret->bytes = job->database_size;
    if (job->o.target == TO_RDB)
        convert_choose_target(job, &ret->dialect, &ret->version);
    ret->needs = job->needs;
    return true;
}

static bool open_out(struct convert *job, struct rd_err *err)
{
    bool binary = job->o.target != TO_NDJSON && job->o.target != TO_CSV;
    return job->o.open_out(job->o.ctx, binary, &job->out, err) &&
           (job->o.target != TO_SQLITE || convert_open_database(job, err));
}

static bool open_rebuilt(void *ctx, struct rd_sink **ret, struct rd_err *err)
{
    struct convert *job = ctx;
    bool ok = open_out(job, err);
    *ret = job->out;
    return ok;
}

/* Whether the snapshot that is built from a log is the output as it is. */
static bool is_rebuilt(const struct convert *job)
{
    return job->o.rebuild != NULL && job->o.target == TO_RDB && !job->o.rewrite &&
           job->o.version == 0 && job->o.dialect < 0 && job->o.server < 0 &&
           job->o.strings == JSON_UTF8 && !filter_active(job->o.filter);
}

static bool work(struct convert *job, struct convert_result *ret, struct rd_err *err)
{
    const struct target_ops *ops = &targets[job->o.target];
    bool done = false;
    if (is_rebuilt(job) && !job->o.rebuild(job->o.ctx, open_rebuilt, job, &done, &job->keys, err))
        return false;
    if (done)
        return finish(job, ret, err);
    if (!job_input_open(&job->o.in, job->watch, &job->spool, &job->src, err) || !open_out(job, err))
        return false;
    bool ok = convert_begin_target(job, err) && run_input(job, err);
    ret->is_void = ok && job->keys == 0 && filter_active(job->o.filter) && !job->o.may_be_empty;
    if (ret->is_void)
        return true;
    ok = ok && (ops->end == NULL || ops->end(job, err));
    if (!ok) {
        rd_err_origin(err, rd_src_origin(job->src));
        return false;
    }
    return finish(job, ret, err);
}

bool convert_run(const struct convert_opts *opts, const struct rd_watch *watch,
                 struct convert_result *ret, struct rd_err *err)
{
    *ret = (struct convert_result){.keys = 0};
    struct convert *job = rd_calloc(1, sizeof *job);
    if (job == NULL)
        return rd_err_nomem(err, sizeof *job);
    job->o = *opts;
    job->watch = watch;
    job->beside = (struct rdb_beside){.no_modules = !filter_may_want_modules(opts->filter),
                                      OMITTED_CALLBACK(opts->omitted)};
    bool ok = work(job, ret, err);
    ret->keys = job->keys;
    convert_free_target(job);
    rdb_reader_free(job->reader);
    sized_end(&job->sized);
    rd_sink_abort(job->out);
    job_input_close(watch, job->src, &job->spool);
    rd_free(job);
    return ok;
}
