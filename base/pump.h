/* pump.h - moves all bytes of a source to a sink, or into memory.
 *
 *     if (!rd_pump(src, sink, NULL, NULL, &err))
 *         ... reading or writing failed ...
 *
 * The caller opened the source and the sink and closes both, unless a function says otherwise.
 */
#ifndef BASE_PUMP_H
#define BASE_PUMP_H

#include "base/buf.h"
#include "base/err.h"
#include "base/sink.h"
#include "base/src.h"

/* Copies the rest of a source; without a sink the bytes are only read, for a source that checks
 * them. tick may be NULL; it is called after each piece. */
bool rd_pump(struct rd_src *src, struct rd_sink *sink, void (*tick)(void *ctx), void *ctx,
             struct rd_err *err);

/* Writes the rest of a source to a new file, and closes the source. No file is left on failure. */
bool rd_pump_to_file(struct rd_src *src, const char *path, const struct rd_sink_opts *opts,
                     struct rd_err *err);

/* Appends the rest of a source, at most max bytes: more is RD_ERR_LIMIT. */
bool rd_pump_to_buf(struct rd_src *src, size_t max, struct rd_buf *buf, struct rd_err *err);

#endif
