/* Converts to a snapshot. If the version stays the same, every record is copied unchanged. For
 * another version, a value is copied if the target supports its type, and rewritten if not. */
#include "jobs/convert_impl.h"

/* The writer is created after the header, which has the version and dialect. */
static bool begin_writer(struct convert *job, struct rd_err *err)
{
    struct rdb_writer_opts opts =
        RDB_WRITER_OPTS(.compress = true, .lossy = job->o.lossy, OMITTED_CALLBACK(job->o.omitted));
    convert_choose_target(job, &opts.dialect, &opts.version);
    opts.server = convert_server(&job->o);
    opts.verbatim =
        !job->o.rewrite && opts.dialect == job->in_dialect && opts.version == job->in_version;
    return rdb_writer_new(&job->writer, job->out, &opts, err);
}

static void note_module(struct convert *job, uint64_t id)
{
    struct convert_needs *needs = &job->needs;
    char name[RDB_MODULE_NAME_LEN + 1];
    rdb_module_name(id, name);
    if (strcmp(name, "vectorset") == 0)
        return;
    for (size_t i = 0; i < needs->n; i++)
        if (strcmp(needs->names[i], name) == 0)
            return;
    needs->more = needs->n == sizeof needs->names / sizeof needs->names[0];
    if (!needs->more)
        memcpy(needs->names[needs->n++], name, sizeof name);
}

static bool copy_value(struct convert *job, struct rd_err *err)
{
    struct rd_sink *to;
    return rdb_writer_copy_begin(job->writer, &to, err) && convert_copy_value(job, to, err) &&
           rdb_writer_copy_end(job->writer, err);
}

bool convert_put_rdb(struct convert *job, const struct rdb_event *ev, struct rd_err *err)
{
    if (ev->kind == RDB_HEADER && !begin_writer(job, err))
        return false;
    if (!rdb_writer_put(job->writer, ev, err))
        return false;
    if (job->o.server >= 0 && ev->kind == RDB_MODULE_AUX)
        note_module(job, ev->module.id);
    else if (job->o.server >= 0 && ev->kind == RDB_VALUE && ev->value.type->kind == RDB_KIND_MODULE)
        note_module(job, ev->value.module_id);
    /* The type of a module is known with the value only. */
    bool judged =
        ev->kind == RDB_KEY && ev->key.type->kind == RDB_KIND_MODULE && job->o.server >= 0;
    if (ev->kind != RDB_KEY || job->o.rewrite || job->free_encoding || judged ||
        !rdb_writer_can_copy(job->writer, ev->key.type))
        return true;
    return copy_value(job, err);
}

bool convert_end_rdb(struct convert *job, struct rd_err *err)
{
    return rdb_writer_end(job->writer, err);
}
