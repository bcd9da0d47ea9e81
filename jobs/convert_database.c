/* Converts to a database of SQLite. The value of a module is copied, and decoded if it is known. */
#include "data/module_types.h"
#include "jobs/convert_impl.h"

#ifdef REDOUBT_SQLITE

bool convert_open_database(struct convert *job, struct rd_err *err)
{
    struct rd_sink *out = job->out;
    job->out = NULL;
    return convert_sqlite_open(&job->out, out, &job->database_size, err);
}

#else

bool convert_open_database(struct convert *job, struct rd_err *err)
{
    (void)job;
    return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                      "this redoubt was built without SQLite (-Dsqlite=disabled)");
}

#endif

bool convert_begin_rows(struct convert *job, struct rd_err *err)
{
    return rows_new(&job->rows, job->out, job->layout, err);
}

/* Writes what is known of the staged value to a buffer, as a line of JSON has it. Nothing is
 * written of a module that is not known, or whose value does not have the known form. */
static bool describe(struct convert *job, const struct rdb_type *type, uint64_t *ret_id,
                     struct rd_err *err)
{
    struct rdb_event ev;
    struct rdb_reader *reader = NULL;
    struct rd_src *src;
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.no_sum = true);
    bool known = false;
    if (!stage_source(&job->payload, type->number, &src, err))
        return false;
    bool ok = rdb_reader_new_value(&reader, src, job->in_dialect, job->in_version, &opts, err);
    while (ok && rdb_reader_next(reader, &ev) == RDB_EVENT) {
        if (ev.kind == RDB_VALUE) {
            *ret_id = ev.value.module_id;
            known = module_type_of(*ret_id) != NULL;
        }
        if (!known)
            break;
        ok = ndjson_put(job->lines, &ev, err);
    }
    if (ok && rdb_reader_err(reader)->code != RD_ERR_OK) {
        rd_err_adopt(err, rdb_reader_err(reader));
        ok = false;
    }
    rdb_reader_free(reader);
    rd_src_close(src);
    return ok;
}

static bool decode(struct convert *job, const struct rdb_type *type, uint64_t *ret_id,
                   struct rd_buf *to, struct rd_err *err)
{
    struct rd_sink *sink;
    if (!rd_sink_open_buf(&sink, to, NULL, err))
        return false;
    bool ok = ndjson_new(&job->lines, sink, NULL, err) && describe(job, type, ret_id, err);
    bool opaque = ok && ndjson_is_opaque(job->lines);
    ndjson_free(job->lines);
    job->lines = NULL;
    ok = rd_sink_close(sink, ok ? err : NULL) && ok;
    /* The end of the line closes the object of the key. */
    to->len = to->len > 2 && !opaque ? to->len - 2 : 0;
    return ok;
}

static bool put_module(struct convert *job, const struct rdb_event *ev, struct rd_err *err)
{
    const struct rdb_type *type = ev->key.type;
    uint64_t id = 0, size;
    struct rd_buf json = {0};
    struct rd_sink *to;
    struct rd_src *src;
    if (!stage_begin(&job->payload, &to, err) || !convert_copy_value(job, to, err) ||
        !stage_end(&job->payload, err))
        return false;
    size = stage_size(&job->payload);
    bool ok = decode(job, type, &id, &json, err) && stage_source(&job->payload, -1, &src, err);
    if (ok) {
        ok = rows_module(job->rows, id, src, size, rd_buf_slice(&json), err);
        rd_src_close(src);
    }
    rd_buf_done(&json);
    return ok;
}

bool convert_put_rows(struct convert *job, const struct rdb_event *ev, struct rd_err *err)
{
    if (!rows_event(job->rows, ev, err))
        return false;
    job->layout = job->rows->layout; /* for the parts */
    return ev->kind != RDB_KEY || ev->key.type->kind != RDB_KIND_MODULE || put_module(job, ev, err);
}

bool convert_put_row_texts(struct convert *job, const struct rdb_text *texts, size_t n,
                           struct rd_err *err)
{
    return rows_texts(job->rows, texts, n, err);
}

bool convert_put_row_plain(struct convert *job, uint64_t db, const struct rdb_plain *keys, size_t n,
                           struct rd_err *err)
{
    return rows_plain(job->rows, db, keys, n, err);
}

bool convert_put_row_entry(struct convert *job, struct rdb_stream_id id,
                           const struct rdb_text *texts, size_t n, struct rd_err *err)
{
    return rows_entry(job->rows, id, texts, n, err);
}
