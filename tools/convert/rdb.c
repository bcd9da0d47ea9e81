/* Converts to a snapshot. If the version stays the same, every record is copied unchanged. For
 * another version, a value is copied if the target supports its type, and rewritten if not. */
#include "tools/convert/convert.h"

/* The writer is created after the header, which has the version and dialect. */
static bool begin_writer(struct job *job, struct rd_err *err)
{
    struct rdb_writer_opts opts =
        RDB_WRITER_OPTS(.compress = true, .lossy = job->lossy, OMITTED_CALLBACK(job->omitted));
    job_choose_target(job, &opts.dialect, &opts.version);
    opts.server = convert_server(job);
    opts.verbatim =
        !job->rewrite && opts.dialect == job->in_dialect && opts.version == job->in_version;
    return rdb_writer_new(&job->writer, job->out, &opts, err);
}

static void note_module(struct job *job, uint64_t id)
{
    struct needs *needs = &job->needs;
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

void convert_warn_modules(const struct job *job)
{
    const struct needs *needs = &job->needs;
    char names[sizeof needs->names * 2] = "";
    for (size_t i = 0; i < needs->n; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i > 0 ? ", " : "",
                 needs->names[i]);
    if (needs->n > 0)
        cli_warn(job->cli,
                 "the output needs the module%s %s%s: a server without %s does not load it; "
                 "--not --type module leaves the data of modules out",
                 rd_show_plural(needs->n), names, needs->more ? " and others" : "",
                 needs->n == 1 ? "it" : "them");
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
    if (job->server >= 0 && ev->kind == RDB_MODULE_AUX)
        note_module(job, ev->module.id);
    else if (job->server >= 0 && ev->kind == RDB_VALUE && ev->value.type->kind == RDB_KIND_MODULE)
        note_module(job, ev->value.module_id);
    /* The type of a module is known with the value only. */
    bool judged = ev->kind == RDB_KEY && ev->key.type->kind == RDB_KIND_MODULE && job->server >= 0;
    if (ev->kind != RDB_KEY || job->rewrite || job->free_encoding || judged ||
        !rdb_writer_can_copy(job->writer, ev->key.type))
        return true;
    return copy_value(job, err);
}

bool convert_end_rdb(struct job *job, struct rd_err *err)
{
    return rdb_writer_end(job->writer, err);
}
