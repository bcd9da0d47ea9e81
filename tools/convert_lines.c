/* Lines of JSON in. A value is staged as the encoding that its line names; a target that knows the
 * encoding takes it as it is, any other gets it by element. */
#include "tools/convert_impl.h"
#include "tools/ndjson_read.h"

static bool put_value(struct job *job, const struct rdb_type *type, uint64_t offset,
                      struct rd_err *err)
{
    const struct rdb_reader_opts opts = {
        .detail = job->target == TO_CSV ? RDB_DETAIL_CHECK : RDB_DETAIL_ELEMENTS, .no_sum = true};
    enum rdb_dialect dialect = type->family == RDB_FAMILY_VALKEY ? RDB_VALKEY : RDB_REDIS;
    int version = dialect == RDB_VALKEY ? RDB_VERSION_VALKEY_MAX : RDB_VERSION_REDIS_MAX;
    struct rdb_reader *reader;
    struct rdb_event ev;
    struct rd_src *src;
    enum rdb_status status = RDB_FAIL;
    if (!stage_source(job->value, type->number, &src, err))
        return false;
    bool ok = rdb_reader_new_value(&reader, src, dialect, version, &opts, err);
    if (ok) {
        while (ok && (status = rdb_reader_next(reader, &ev)) == RDB_EVENT) {
            cli_tick(job->cli);
            ev.offset = offset;
            ok = job_put(job, &ev, err);
        }
        if (ok && status == RDB_FAIL)
            rd_err_adopt(err, rdb_reader_err(reader));
        ok = ok && status == RDB_END;
        rdb_reader_free(reader);
    }
    rd_src_close(src);
    return ok;
}

static bool put_events(struct job *job, struct ndjson_reader *lines, struct rd_err *err)
{
    struct rdb_event ev;
    enum ndjson_status status;
    while ((status = ndjson_reader_next(lines, &ev)) == NDJSON_EVENT) {
        cli_tick(job->cli);
        if (ev.kind == RDB_HEADER) {
            job->in_dialect = ev.header.dialect;
            job->in_version = ev.header.version;
        }
        job->free_encoding = ev.kind == RDB_KEY && !ndjson_reader_told(lines);
        const struct rdb_type *type = ev.kind == RDB_KEY ? ev.key.type : NULL;
        if (!job_put(job, &ev, err))
            return false;
        if (type != NULL && !job->taken && !put_value(job, type, ev.offset, err))
            return false;
    }
    if (status == NDJSON_FAIL)
        rd_err_adopt(err, ndjson_reader_err(lines));
    return status == NDJSON_END;
}

bool convert_from_lines(struct job *job, struct rd_err *err)
{
    struct ndjson_read_opts opts = {.strings = (enum json_form)job->strings};
    struct ndjson_reader *lines;
    job->in_version = 12;
    if (job->version != 0 || job->dialect >= 0)
        job_choose_target(job, &opts.dialect, &opts.version);
    if (!ndjson_reader_new(&lines, job->src, &opts, err))
        return false;
    job->value = ndjson_reader_value(lines);
    bool ok = put_events(job, lines, err);
    job->value = NULL;
    ndjson_reader_free(lines);
    return ok;
}
