/* copy.h - copies short sequences of bytes fast.
 */
#ifndef BASE_COPY_H
#define BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* memcpy() for short sequences of any length. Uses overlapping loads; compilers would call a
 * function or, if they know an upper bound, emit a slow string instruction. */
static inline void rd_copy_short(uint8_t *dst, const uint8_t *src, size_t len)
{
    if (len >= 32) {
        for (size_t i = 0; i + 32 < len; i += 32)
            memcpy(dst + i, src + i, 32);
        memcpy(dst + len - 32, src + len - 32, 32);
    } else if (len >= 16) {
        memcpy(dst, src, 16);
        memcpy(dst + len - 16, src + len - 16, 16);
    } else if (len >= 8) {
        memcpy(dst, src, 8);
        memcpy(dst + len - 8, src + len - 8, 8);
    } else if (len >= 4) {
        memcpy(dst, src, 4);
        memcpy(dst + len - 4, src + len - 4, 4);
    } else if (len > 0) {
        dst[0] = src[0];
        dst[len / 2] = src[len / 2];
        dst[len - 1] = src[len - 1];
    }
}

#endif
