#include "jobs/input.h"

#include <inttypes.h>

bool job_input_open_file(const struct rd_watch *watch, const char *path, struct rd_src **ret,
                         struct rd_err *err)
{
    struct rd_src *src;
    if (!rd_src_open_file(&src, path, NULL, err))
        return false;
    /* Progress follows the compressed file, because its size is known. */
    const struct rd_src *file = src;
    if (!rd_src_decompress(&src, err)) {
        rd_src_close(src);
        return false;
    }
    rd_watch_begin(watch, path, rd_src_size(file), file);
    *ret = src;
    return true;
}

bool job_input_open(const struct job_input *in, const struct rd_watch *watch, struct spool *spool,
                    struct rd_src **ret, struct rd_err *err)
{
    return in->ops != NULL ? in->ops->open(in->ctx, in->path, spool, ret, err)
                           : job_input_open_file(watch, in->path, ret, err);
}

bool job_input_check_end(const struct job_input *in, struct rd_src *src,
                         const struct rdb_event *trailer, struct rd_err *err)
{
    if (in->ops != NULL)
        return in->ops->check_end(in->ctx, src, trailer, err);
    return !trailer->trailer.summed || trailer->trailer.stored == 0 ||
           trailer->trailer.stored == trailer->trailer.computed ||
           rd_err_set(err, RD_ERR_CHECKSUM, trailer->offset,
                      "stored %016" PRIx64 ", computed %016" PRIx64, trailer->trailer.stored,
                      trailer->trailer.computed);
}

void job_input_close(const struct rd_watch *watch, struct rd_src *src, struct spool *spool)
{
    rd_watch_end(watch);
    rd_src_close(src);
    spool_done(spool);
}
