/* slice.h - a borrowed run of bytes.
 *
 * A slice owns nothing. How long its bytes live is said where it is handed out.
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

/* Order of bytes, a prefix before what it is a prefix of. */
static inline int rd_slice_cmp(struct rd_slice a, struct rd_slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n == 0 ? 0 : memcmp(a.ptr, b.ptr, n);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

#endif
