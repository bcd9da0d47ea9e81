#include "jobs/again.h"

static bool refuse_json(struct again *in, struct rd_err *err)
{
    rd_watch_hint(in->watch, "use redoubt convert --to rdb to convert JSON lines to a snapshot");
    return rd_err_set(err, RD_ERR_UNSUPPORTED, 0,
                      "JSON cannot be read here, only snapshots and logs");
}

/* Reads dialect and version from the header without consuming it. */
static bool look(struct again *in, struct rd_err *err)
{
    struct rd_slice s;
    uint64_t version = 0;
    if (rd_src_need(in->src, RDB_MAGIC_LEN, &s) == RD_SRC_FAIL) {
        rd_err_adopt(err, rd_src_err(in->src));
        return false;
    }
    if (s.len > 0 && s.ptr[0] == '{')
        return refuse_json(in, err);
    in->dialect = s.len > 0 && s.ptr[0] == 'V' ? RDB_VALKEY : RDB_REDIS;
    for (size_t i = in->dialect == RDB_VALKEY ? 6 : 5; i < RDB_MAGIC_LEN && i < s.len; i++)
        version = version * 10 + (uint64_t)(s.ptr[i] & 15);
    in->version = (int)version; /* the reader reports an invalid version */
    return true;
}

/* Copies input that cannot be read twice. */
static bool keep_input(struct again *in, const char *path, const struct filter *filter,
                       struct rd_err *err)
{
    if (!rd_src_can_seek(in->src) && !sized_set_aside(in->watch, path, &in->spool, &in->src, err))
        return false;
    return sized_begin(&in->sized, filter, in->watch, path, &in->spool, &in->src, err);
}

bool again_open(struct again *in, const struct rd_watch *watch, const struct job_input *input,
                const struct filter *filter, struct rd_err *err)
{
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_ELEMENTS, .attach_meta = true);
    *in = (struct again){.watch = watch, .input = input};
    bool ok = job_input_open(input, watch, &in->spool, &in->src, err) && look(in, err) &&
              keep_input(in, input->path, filter, err) &&
              rdb_reader_new(&in->reader, in->src, &opts, err);
    rd_watch_end(watch);
    if (!ok && !input->names_errors)
        rd_err_origin(err, in->src != NULL ? rd_src_origin(in->src) : input->path);
    return ok;
}

bool again_rewind(struct again *in, const char *what, struct rd_err *err)
{
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_ELEMENTS, .attach_meta = true);
    sized_end(&in->sized);
    rdb_reader_free(in->reader);
    in->reader = NULL;
    if (!rd_src_seek(in->src, 0, err) || !rdb_reader_new(&in->reader, in->src, &opts, err)) {
        rd_err_origin(err, rd_src_origin(in->src));
        return false;
    }
    rd_watch_begin(in->watch, what, rd_src_size(in->src), in->src);
    return true;
}

bool again_seek(struct again *in, uint64_t record, uint64_t db, struct rdb_event *ret,
                struct rd_err *err)
{
    if (!rd_src_seek(in->src, record, err)) {
        rd_err_origin(err, rd_src_origin(in->src));
        return false;
    }
    rdb_reader_restart(in->reader, db);
    enum rdb_status status;
    while ((status = rdb_reader_next(in->reader, ret)) == RDB_EVENT)
        if (ret->kind == RDB_KEY)
            return true;
    if (status == RDB_FAIL)
        return again_fail(in, err);
    rd_err_set(err, RD_ERR_IO, record, "the file changed while it was read");
    rd_err_origin(err, rd_src_origin(in->src));
    return false;
}

bool again_fail(const struct again *in, struct rd_err *err)
{
    rd_err_adopt(err, rdb_reader_err(in->reader));
    rd_err_origin(err, rd_src_origin(in->src));
    return false;
}

bool again_check_end(struct again *in, const struct rdb_event *ev, struct rd_err *err)
{
    return job_input_check_end(in->input, in->src, ev, err);
}

void again_close(struct again *in)
{
    sized_end(&in->sized);
    rdb_reader_free(in->reader);
    job_input_close(in->watch, in->src, &in->spool);
    *in = (struct again){0};
}
