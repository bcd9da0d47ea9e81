/* Reads JSON lines. A value is staged in the encoding that its line names. A target that supports
 * the encoding copies it; any other gets it by element. */
#include "jobs/convert_impl.h"
#include "data/ndjson_read.h"

static bool put_events(struct convert *job, struct ndjson_reader *lines, struct rd_err *err)
{
    struct rdb_event ev;
    enum ndjson_status status;
    while ((status = ndjson_reader_next(lines, &ev)) == NDJSON_EVENT) {
        rd_watch_at(job->watch, rd_src_offset(job->src));
        if (ev.kind == RDB_HEADER) {
            job->in_dialect = ev.header.dialect;
            job->in_version = ev.header.version;
        }
        job->free_encoding = ev.kind == RDB_KEY && !ndjson_reader_has_encoding(lines);
        const struct rdb_type *type = ev.kind == RDB_KEY ? ev.key.type : NULL;
        if (!convert_put(job, &ev, err))
            return false;
        if (type != NULL && !job->taken && !convert_put_line(job, type, ev.offset, err))
            return false;
    }
    if (status == NDJSON_FAIL)
        rd_err_adopt(err, ndjson_reader_err(lines));
    return status == NDJSON_END;
}

bool convert_from_lines(struct convert *job, struct rd_err *err)
{
    struct ndjson_read_opts opts = {.strings = (enum json_form)job->o.strings};
    struct ndjson_reader *lines;
    job->in_version = 12;
    if (job->o.version != 0 || job->o.dialect >= 0)
        convert_choose_target(job, &opts.dialect, &opts.version);
    if (!ndjson_reader_new(&lines, job->src, &opts, err))
        return false;
    job->value = ndjson_reader_value(lines);
    bool ok = put_events(job, lines, err);
    job->value = NULL;
    ndjson_reader_free(lines);
    return ok;
}
