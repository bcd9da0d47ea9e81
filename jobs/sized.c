#include "jobs/sized.h"

struct copying {
    const struct rd_watch *watch;
    const struct rd_src *src;
};

static void tick(void *ctx)
{
    const struct copying *copying = ctx;
    rd_watch_at(copying->watch, rd_src_offset(copying->src));
}

bool sized_set_aside(const struct rd_watch *watch, const char *path, struct spool *spool,
                     struct rd_src **src, struct rd_err *err)
{
    struct copying copying = {watch, *src};
    struct rd_src *copy;
    if (!spool_copy(spool, *src, tick, &copying, err) || !spool_source(spool, path, &copy, err))
        return false;
    rd_watch_end(watch);
    rd_src_close(*src);
    *src = copy;
    rd_watch_begin(watch, path, rd_src_size(copy), copy);
    return true;
}

bool sized_begin(struct sized *sized, const struct filter *filter, const struct rd_watch *watch,
                 const char *path, struct spool *spool, struct rd_src **src, struct rd_err *err)
{
    *sized = (struct sized){.filter = filter, .path = path, .spool = spool};
    if (!filter_needs_size(filter) || spool->open)
        return true;
    /* Standard input can be a file, but it has only one position. */
    bool twice = rd_src_can_seek(*src) && strcmp(path, "-") != 0;
    return twice || sized_set_aside(watch, path, spool, src, err);
}

/* The first reader verifies the checksum. */
static bool open_second(struct sized *sized, struct rd_err *err)
{
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES, .no_sum = true);
    bool ok = sized->spool->open ? spool_source(sized->spool, sized->path, &sized->src, err)
                                 : rd_src_open_file(&sized->src, sized->path, NULL, err);
    return ok && rdb_reader_new(&sized->reader, sized->src, &opts, err);
}

/* Reads to the end of the value of the key at an offset. */
static bool look_ahead(struct sized *sized, uint64_t offset, uint64_t *ret, struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status status;
    bool found = false;
    while ((status = rdb_reader_next(sized->reader, &ev)) == RDB_EVENT) {
        if (ev.kind == RDB_KEY)
            found = ev.offset == offset;
        if (!found || ev.kind != RDB_VALUE_END)
            continue;
        *ret = ev.value_end.bytes;
        return true;
    }
    if (status == RDB_FAIL)
        rd_err_adopt(err, rdb_reader_err(sized->reader));
    else
        rd_err_set(err, RD_ERR_IO, offset, "the file changed while it was read");
    rd_err_origin(err, rd_src_origin(sized->src));
    return false;
}

bool sized_wants(struct sized *sized, const struct rdb_event *ev, bool *ret, struct rd_err *err)
{
    uint64_t bytes;
    *ret = filter_wants(sized->filter, ev);
    if (!*ret || !filter_needs_size(sized->filter))
        return true;
    if ((sized->reader == NULL && !open_second(sized, err)) ||
        !look_ahead(sized, ev->offset, &bytes, err))
        return false;
    *ret = filter_wants_size(sized->filter, bytes);
    return true;
}

void sized_end(struct sized *sized)
{
    rdb_reader_free(sized->reader);
    rd_src_close(sized->src);
    sized->reader = NULL;
    sized->src = NULL;
}
