/* slice.h - a borrowed sequence of bytes.
 *
 * A slice owns nothing. The function that returns it documents how long its bytes are valid.
 */
#ifndef BASE_SLICE_H
#define BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rd_slice {
    const uint8_t *ptr; /* may be NULL when len is 0 */
    size_t len;
};

static inline struct rd_slice rd_slice(const void *ptr, size_t len)
{
    return (struct rd_slice){.ptr = ptr, .len = len};
}

static inline struct rd_slice rd_slice_str(const char *text)
{
    return rd_slice(text, strlen(text));
}

static inline bool rd_slice_eq(struct rd_slice a, struct rd_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool rd_slice_is(struct rd_slice a, const char *text)
{
    return rd_slice_eq(a, rd_slice_str(text));
}

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

/* Compares byte by byte; a prefix sorts before the longer slice. */
static inline int rd_slice_cmp(struct rd_slice a, struct rd_slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n == 0 ? 0 : memcmp(a.ptr, b.ptr, n);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

#endif
