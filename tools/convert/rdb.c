/* Converts to a snapshot. If the version stays the same, every record is copied unchanged. For
 * another version, a value is copied if the target supports its type, and rewritten if not. */
#include "tools/convert/priv.h"

/* The writer is created after the header, which has the version and dialect. */
static bool begin_writer(struct job *job, struct rd_err *err)
{
    struct rdb_writer_opts opts =
        RDB_WRITER_OPTS(.compress = true, .lossy = job->lossy, OMITTED_CALLBACK(job->omitted));
    job_choose_target(job, &opts.dialect, &opts.version);
    opts.verbatim =
        !job->rewrite && opts.dialect == job->in_dialect && opts.version == job->in_version;
    return rdb_writer_new(&job->writer, job->out, &opts, err);
}

static bool copy_value(struct job *job, struct rd_err *err)
{
    struct rd_sink *to;
    return rdb_writer_copy_begin(job->writer, &to, err) && job_copy_value(job, to, err) &&
           rdb_writer_copy_end(job->writer, err);
}

bool convert_put_rdb(struct job *job, const struct rdb_event *ev, struct rd_err *err)
{
    if (ev->kind == RDB_HEADER && !begin_writer(job, err))
        return false;
    if (!rdb_writer_put(job->writer, ev, err))
        return false;
    if (ev->kind != RDB_KEY || job->rewrite || job->free_encoding ||
        !rdb_writer_can_copy(job->writer, ev->key.type))
        return true;
    return copy_value(job, err);
}

bool convert_end_rdb(struct job *job, struct rd_err *err)
{
    return rdb_writer_end(job->writer, err);
}
