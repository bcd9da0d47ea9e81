/* zstd.h - the Zstandard frame format as a filter over a source.
 *
 * The contract is that of reading in base/lz4.h. One or more frames, one after the other, whose
 * contents are joined; skippable frames are passed over, also before the first; anything else after
 * a frame is damage. The checksums that a frame carries are verified. Errors carry the decompressed
 * offset, and the compressed one in the text: RD_ERR_TRUNCATED where the input ends inside a frame,
 * or before the first; RD_ERR_LIMIT where a frame wants a window of more than 128 MiB (zstd --long
 * with more than 27, or --ultra); RD_ERR_CORRUPT for everything else that the decoder refuses,
 * frames that need a dictionary included.
 *
 * Memory: the window that the frame declares, at most 128 MiB, and less than 1 MiB.
 *
 * The state of the codec is allocated by libzstd itself and does not pass base/mem.h: the library
 * offers no way to bring an allocator that its shared form promises to keep.
 */
#ifndef BASE_ZSTD_H
#define BASE_ZSTD_H

#include "base/api.h"
#include "base/err.h"
#include "base/src.h"

/* The new source owns inner once this succeeds; where it fails, inner stays with the caller. */
RD_API bool rd_zstd_open_src(struct rd_src **ret, struct rd_src *inner, struct rd_err *err);

#endif
