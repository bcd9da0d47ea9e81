/* bitmap_impl.h - shared by the bit commands.
 *
 * Bit 0 of a string is the highest bit of its first byte.
 */
#ifndef ENGINE_CMD_BITMAP_IMPL_H
#define ENGINE_CMD_BITMAP_IMPL_H

#include "engine/call.h"

/* The offset of a bit within the longest possible string. width is that of an integer of BITFIELD,
 * for which "#3" is 3 * width; else 0. Otherwise replies with the error. */
bool engine_bitmap_offset(struct engine_call *call, struct rd_slice arg, unsigned width,
                          uint64_t *ret);

/* Counts the bits that are set. Fast for long runs. */
uint64_t engine_bitmap_count(const uint8_t *bytes, size_t len);

/* The first byte other than `same` (0 or 255), or len. Fast for long runs. */
size_t engine_bitmap_skip(const uint8_t *bytes, size_t len, uint8_t same);

#endif
