#include "jobs/merge_impl.h"

#include "base/mem.h"

static bool begin(struct merge *merge, struct rd_err *err)
{
    size_t n = merge->opts->n_inputs;
    merge->inputs = rd_calloc(n, sizeof *merge->inputs);
    if (merge->inputs == NULL)
        return rd_err_nomem(err, n * sizeof *merge->inputs);
    merge->n_inputs = n;
    for (size_t i = 0; i < n; i++)
        merge->inputs[i].input = &merge->opts->inputs[i];
    memcpy(merge->hashing.key, merge->opts->key, sizeof merge->hashing.key);
    return true;
}

/* ---- conflicts ---- */

/* Reads the name again. An error is ignored, because the name is only for a warning. */
static void name_conflict(struct merge *merge, const struct merge_conflict *conflict)
{
    struct merge_input *in = &merge->inputs[conflict->again.input];
    struct rdb_event ev;
    char quoted[200];
    /* The reader needs the header to read a record. */
    if (merge_open(merge, in, NULL) && rdb_reader_next(in->in.reader, &ev) == RDB_EVENT &&
        again_seek(&in->in, conflict->again.record, conflict->again.db, &ev, NULL)) {
        rd_err_quote(quoted, sizeof quoted, ev.key.name);
        rd_watch_warn(merge->watch, "db %llu, key %s: in %s and in %s",
                      (unsigned long long)conflict->again.db, quoted,
                      merge->inputs[conflict->first.input].input->path, in->input->path);
    }
    rd_watch_end(merge->watch);
    if (!in->kept)
        again_close(&in->in);
}

static bool has_conflicts(const struct merge *merge)
{
    return merge->opts->policy == MERGE_FAIL && merge->conflicts + merge->lib_conflicts > 0;
}

/* ---- the result ---- */

static bool fill_result(const struct merge *merge, struct merge_result *ret, struct rd_err *err)
{
    *ret = (struct merge_result){
        .refused = has_conflicts(merge),
        .is_void = merge->total == 0 && filter_active(merge->opts->filter) && !has_conflicts(merge),
        .conflicts = merge->conflicts,
        .function_conflicts = merge->lib_conflicts,
        .dialect = merge->dialect,
        .version = merge->target,
        .keys = merge->total,
        .inputs = rd_calloc(merge->n_inputs, sizeof *ret->inputs),
    };
    if (ret->inputs == NULL)
        return rd_err_nomem(err, merge->n_inputs * sizeof *ret->inputs);
    for (; ret->n_inputs < merge->n_inputs; ret->n_inputs++)
        ret->inputs[ret->n_inputs] = merge->inputs[ret->n_inputs].count;
    return true;
}

void merge_result_done(struct merge_result *result)
{
    rd_free(result->inputs);
    *result = (struct merge_result){.inputs = NULL};
}

/* ---- the job ---- */

static bool work(struct merge *merge, struct merge_result *ret, struct rd_err *err)
{
    struct omitted *omitted = merge->opts->omitted;
    if (!begin(merge, err) || !merge_scan(merge, err))
        return false;
    for (size_t i = 0; has_conflicts(merge) && i < merge->n_examples; i++)
        name_conflict(merge, &merge->examples[i]);
    if (!has_conflicts(merge) && !merge_write(merge, err))
        return false;
    return fill_result(merge, ret, err) &&
           (ret->refused || ret->is_void || omitted == NULL || omitted_end(omitted, err));
}

bool merge_run(const struct merge_opts *opts, const struct rd_watch *watch,
               struct merge_result *ret, struct rd_err *err)
{
    struct merge *merge = rd_calloc(1, sizeof *merge);
    if (merge == NULL)
        return rd_err_nomem(err, sizeof *merge);
    merge->opts = opts;
    merge->watch = watch;
    bool ok = work(merge, ret, err);
    rdb_writer_free(merge->writer);
    for (size_t i = 0; i < merge->n_inputs; i++)
        again_close(&merge->inputs[i].in);
    rd_free(merge->inputs);
    sort_done(&merge->keys);
    sort_done(&merge->losers);
    rd_buf_done(&merge->libs);
    rd_free(merge);
    return ok;
}
