/* lz4.h - the LZ4 frame format as a filter over a source or a sink.
 *
 * The calls are those of base/zlib.h, and so is the contract.
 *
 * Reading. One or more frames, one after the other, whose contents are joined; skippable frames are
 * passed over; anything else after a frame is damage. The checksums that a frame carries are
 * verified. Errors carry the decompressed offset, and the compressed one in the text:
 * RD_ERR_TRUNCATED where the input ends inside a frame, or before the first; RD_ERR_CORRUPT for
 * everything that the decoder refuses. The legacy format (magic 02 21 4c 18) is refused too.
 * Memory: at most some 8 MiB, by the block size that the frame declares (64 KiB to 4 MiB).
 *
 * Writing. One frame with blocks of 256 KiB and a checksum of the content.
 *
 * The state of the codec is allocated by liblz4 itself and does not pass base/mem.h: the library
 * offers no way to bring an allocator that its shared form promises to keep.
 */
#ifndef BASE_LZ4_H
#define BASE_LZ4_H

#include "base/api.h"
#include "base/err.h"
#include "base/sink.h"
#include "base/src.h"

enum { RD_LZ4_LEVEL_MAX = 12 };

/* The new source owns inner once this succeeds; where it fails, inner stays with the caller. */
RD_API bool rd_lz4_open_src(struct rd_src **ret, struct rd_src *inner, struct rd_err *err);

/* The new sink owns inner once this succeeds: closing one closes the other, and aborting too. level
 * is 0 (fast) to RD_LZ4_LEVEL_MAX (small); others are RD_ERR_USAGE. */
RD_API bool rd_lz4_open_sink(struct rd_sink **ret, struct rd_sink *inner, int level,
                             struct rd_err *err);

#endif
