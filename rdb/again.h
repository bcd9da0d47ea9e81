/* again.h - private to rdb/: opens a second source over the bytes of a source.
 *
 *     struct rd_src *src2;
 *     if (rdb_again(src, &src2, &err))
 *         ... seek and read; rd_src_close(src2) ...
 */
#ifndef RDB_AGAIN_H
#define RDB_AGAIN_H

#include "base/src_impl.h"

/* The new source begins at offset 0 and has its own position. src must stay open while it is in
 * use. False with RD_ERR_USAGE if the input can be read only once: pipes, decompressors. */
static inline bool rdb_again(const struct rd_src *src, struct rd_src **ret, struct rd_err *err)
{
    if (src->state->buf != NULL)
        return rd_src_open_again(ret, src, err);
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = rd_src_origin(src));
    size_t len = src->state->cap;
    return rd_src_open_memory(ret, rd_slice(src->end - len, len), &opts, err);
}

#endif
