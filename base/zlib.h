/* zlib.h - gzip (RFC 1952) as a filter over a source or a sink.
 *
 *     struct rd_src *file, *plain;
 *     if (!rd_src_open_file(&file, "dump.rdb.gz", NULL, &err))
 *         ...
 *     if (!rd_zlib_open_src(&plain, file, &err)) {
 *         rd_src_close(file);
 *         ...
 *     }
 *     ... rd_src_need(plain, …) ...
 *     rd_src_close(plain);        // closes file too
 *
 * rd_src_decompress() does this for whatever turns out to be compressed.
 *
 * Reading. The stream is one or more members, one after the other, whose contents are joined; zero
 * bytes after the last one are padding, as gzip has it, anything else there is damage. Each
 * member's CRC-32 and length are verified when its end is reached. Errors carry the decompressed
 * offset, and the compressed one in the text: RD_ERR_TRUNCATED where the input ends inside a
 * member, or before the first; RD_ERR_CORRUPT for everything that inflate refuses. All bytes that
 * came out before the damage are handed out before the failure is. An error of the inner source is
 * passed on as it is. A filter cannot seek. Memory: about 40 KiB and the window.
 *
 * Writing. One member, without name and time, so that the same bytes always give the same file.
 * rd_sink_sync() ends a deflate block, so that what was written so far can be read back.
 */
#ifndef BASE_ZLIB_H
#define BASE_ZLIB_H

#include "base/api.h"
#include "base/err.h"
#include "base/sink.h"
#include "base/src.h"

enum { RD_ZLIB_LEVEL = 6, RD_ZLIB_LEVEL_MAX = 9 };

/* The new source owns inner once this succeeds; where it fails, inner stays with the caller. */
RD_API bool rd_zlib_open_src(struct rd_src **ret, struct rd_src *inner, struct rd_err *err);

/* The new sink owns inner once this succeeds: closing one closes the other, and aborting too. level
 * is 1 (fast) to RD_ZLIB_LEVEL_MAX (small), 0 for RD_ZLIB_LEVEL; others are RD_ERR_USAGE. */
RD_API bool rd_zlib_open_sink(struct rd_sink **ret, struct rd_sink *inner, int level,
                              struct rd_err *err);

#endif
