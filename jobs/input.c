#include "jobs/input.h"

#include <inttypes.h>

bool job_input_open(const struct job_input *in, const struct rd_watch *watch, struct spool *spool,
                    struct rd_src **ret, struct rd_err *err)
{
    return in->ops != NULL ? in->ops->open(in->ctx, in->path, spool, ret, err)
                           : rd_watch_open_file(watch, in->path, ret, err);
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
