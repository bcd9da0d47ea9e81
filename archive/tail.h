/* tail.h - a digest at the end of a compressed object; private to archive/.
 *
 * Segments of the stream are not in a manifest. If a segment is compressed and not sealed, its
 * object ends with the SHA-256 of its name, a zero byte and all bytes before. lz4, zstd and gzip
 * skip these bytes (docs/format/repository.md), so standard tools can still decompress the object.
 */
#ifndef ARCHIVE_TAIL_H
#define ARCHIVE_TAIL_H

#include "archive/manifest.h"
#include "base/sink.h"
#include "base/src.h"

/* A sink that passes bytes on and appends the digest when it is closed. The name is copied. If
 * opening fails, the inner sink is not closed. */
bool archive_tail_open_sink(struct rd_sink **ret, struct rd_sink *inner,
                            enum archive_compression compression, const char *name,
                            struct rd_err *err);

/* A source of the bytes before the digest of an object of `size` bytes. At its end it fails with
 * RD_ERR_CHECKSUM if the digest does not match or bytes follow it. */
bool archive_tail_open_src(struct rd_src **ret, struct rd_src *inner, uint64_t size,
                           enum archive_compression compression, const char *name,
                           struct rd_err *err);

#endif
