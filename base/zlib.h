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
 * rd_src_decompress() detects the format and does this.
 *
 * Reading. The stream is one or more members; their contents are concatenated. Zero bytes after the
 * last member are padding, as in gzip; any other bytes there are damage. Each member's CRC-32 and
 * length are verified at its end. Errors carry the decompressed offset, and the compressed one in
 * the text: RD_ERR_TRUNCATED if the input ends inside a member or before the first one;
 * RD_ERR_CORRUPT for everything that inflate rejects. All bytes decompressed before the damage are
 * returned before the failure. An error of the inner source is passed on unchanged. A filter cannot
 * seek. Memory: about 40 KiB and the window.
 *
 * Writing. The output is one member without name and time, so the same bytes always give the same
 * file. rd_sink_sync() ends a deflate block, so the bytes written so far can be read back.
 */
#ifndef BASE_ZLIB_H
#define BASE_ZLIB_H

#include "base/api.h"
#include "base/err.h"
#include "base/sink.h"
#include "base/src.h"

enum { RD_ZLIB_LEVEL = 6, RD_ZLIB_LEVEL_MAX = 9 };

/* On success the new source owns `inner`. On failure the caller keeps it. */
bool rd_zlib_open_src(struct rd_src **ret, struct rd_src *inner, struct rd_err *err);

/* On success the new sink owns `inner`: closing or aborting the sink does the same to `inner`.
 * level is 1 (fast) to RD_ZLIB_LEVEL_MAX (small), 0 for RD_ZLIB_LEVEL; others are RD_ERR_USAGE. */
bool rd_zlib_open_sink(struct rd_sink **ret, struct rd_sink *inner, int level, struct rd_err *err);

/* Continues a CRC-32 (0 to begin), that of gzip and of crc32() in most languages. O(len). */
uint32_t rd_zlib_crc32(uint32_t crc, const void *ptr, size_t len);

#endif
