/* read_ahead.h - a source whose bytes another thread makes before they are needed.
 *
 * If producing bytes costs as much as what is done with them, both can run in parallel:
 *
 *     if (!rd_read_ahead_open(&src, &ops, impl, &opts, &err))
 *         ...
 *     ... rd_src_need(src, ...) ...
 *     rd_src_close(src);
 *
 * The thread calls read() of the operations until the source is closed, which waits for a call that
 * has begun. An error is given in its place, after the bytes before it. If no thread can be
 * started, the caller's thread reads. The source cannot seek.
 *
 * Memory: RD_AHEAD_BLOCKS blocks of RD_AHEAD_BLOCK bytes.
 */
#ifndef BASE_READ_AHEAD_H
#define BASE_READ_AHEAD_H

#include "base/src.h"

enum { RD_AHEAD_BLOCK = 128 * 1024, RD_AHEAD_BLOCKS = 8 };

/* Takes ownership of impl even if it fails, as rd_src_new() does. Whatever read() gives but
 * RD_SRC_OK is the end. */
bool rd_read_ahead_open(struct rd_src **ret, const struct rd_src_ops *ops, void *impl,
                        const struct rd_src_opts *opts, struct rd_err *err);

#endif
