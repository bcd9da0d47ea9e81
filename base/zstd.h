/* zstd.h - the Zstandard frame format as a filter over a source or a sink.
 *
 * The calls are those of base/zlib.h, and so is the contract.
 *
 * Reading. The input is one or more frames; their contents are
 * concatenated. Skippable frames are ignored, also before the first frame; any other bytes after a
 * frame are damage. The checksums in a frame are verified. Errors carry the decompressed offset,
 * and the compressed one in the text: RD_ERR_TRUNCATED if the input ends inside a frame or before
 * the first one; RD_ERR_LIMIT if a frame needs a window of more than 128 MiB (zstd --long with more
 * than 27, or --ultra); RD_ERR_CORRUPT for everything else that the decoder rejects, including
 * frames that need a dictionary. Memory: the window that the frame declares, at most 128 MiB, and
 * less than 1 MiB.
 *
 * Writing. One frame with a checksum of the content. Memory: about 4 MiB at the default level, and
 * up to 90 MiB at the highest one.
 *
 * libzstd allocates the state of the codec itself, not through base/mem.h: the shared library has
 * no stable interface for custom allocators.
 */
#ifndef BASE_ZSTD_H
#define BASE_ZSTD_H

#include "base/api.h"
#include "base/err.h"
#include "base/sink.h"
#include "base/src.h"

enum { RD_ZSTD_LEVEL = 3, RD_ZSTD_LEVEL_MAX = 19 };

/* On success the new source owns `inner`. On failure the caller keeps it. */
bool rd_zstd_open_src(struct rd_src **ret, struct rd_src *inner, struct rd_err *err);

/* The same for what rd_zstd_open_sink() has written: a larger window than it uses, 8 MiB, is damage
 * (RD_ERR_CORRUPT), and so less memory is enough. */
bool rd_zstd_open_own_src(struct rd_src **ret, struct rd_src *inner, struct rd_err *err);

/* On success the new sink owns `inner`: closing or aborting the sink does the same to `inner`.
 * level is 1 (fast) to RD_ZSTD_LEVEL_MAX (small), 0 for RD_ZSTD_LEVEL; others are RD_ERR_USAGE. */
bool rd_zstd_open_sink(struct rd_sink **ret, struct rd_sink *inner, int level, struct rd_err *err);

/* Blocks in memory, whose size is known: one frame each, without a checksum. The state of the codec
 * is used again for the next block. */
struct rd_zstd_blocks;
struct rd_buf;

/* level as above. */
bool rd_zstd_blocks_new(struct rd_zstd_blocks **ret, int level, struct rd_err *err);
void rd_zstd_blocks_free(struct rd_zstd_blocks *z);
/* Appends the frame to *ret. */
bool rd_zstd_pack(struct rd_zstd_blocks *z, struct rd_slice bytes, struct rd_buf *ret,
                  struct rd_err *err);
/* Appends exactly len bytes; RD_ERR_CORRUPT if the frame does not have them. */
bool rd_zstd_unpack(struct rd_zstd_blocks *z, struct rd_slice frame, size_t len, struct rd_buf *ret,
                    struct rd_err *err);

#endif
