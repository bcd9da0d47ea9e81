/* lz4.h - the LZ4 frame format as a filter over a source or a sink.
 *
 * The calls are those of base/zlib.h, and so is the contract.
 *
 * Reading. The input is one or more frames; their contents are concatenated. Skippable frames are
 * ignored; any other bytes after a frame are damage. The checksums in a frame are verified. Errors
 * carry the decompressed offset, and the compressed one in the text: RD_ERR_TRUNCATED if the input
 * ends inside a frame or before the first one; RD_ERR_CORRUPT for everything that the decoder
 * rejects. The legacy format (magic 02 21 4c 18) is rejected too. Memory: at most about 8 MiB,
 * depending on the block size that the frame declares (64 KiB to 4 MiB).
 *
 * Writing. One frame with blocks of 256 KiB and a checksum of the content.
 *
 * liblz4 allocates the state of the codec itself, not through base/mem.h: the shared library has no
 * stable interface for custom allocators.
 */
#ifndef BASE_LZ4_H
#define BASE_LZ4_H

#include "base/api.h"
#include "base/err.h"
#include "base/sink.h"
#include "base/src.h"

enum { RD_LZ4_LEVEL_MAX = 12 };

/* On success the new source owns `inner`. On failure the caller keeps it. */
bool rd_lz4_open_src(struct rd_src **ret, struct rd_src *inner, struct rd_err *err);

/* On success the new sink owns `inner`: closing or aborting the sink does the same to `inner`.
 * level is 0 (fast) to RD_LZ4_LEVEL_MAX (small); others are RD_ERR_USAGE. */
bool rd_lz4_open_sink(struct rd_sink **ret, struct rd_sink *inner, int level, struct rd_err *err);

#endif
