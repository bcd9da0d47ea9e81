/* slice.h - a borrowed sequence of bytes.
 *
 * A slice owns nothing. The function that returns it documents how long its bytes are valid.
 *
 * Example: compares a name.
 *
 *     struct rd_slice name = rd_slice_str("user:1");
 *     if (rd_slice_is(name, "user:1"))
 *         printf("%zu bytes\n", name.len);
 *
 * Threads: any thread may call everything.
 * Errors: nothing here fails.
 * Cost: linear in the length of a slice at most.
 */
#ifndef BASE_SLICE_H
#define BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Open: slices are passed by value everywhere. */
struct rd_slice {
    const uint8_t *ptr; /* may be NULL when len is 0 */
    size_t len;
};

static inline struct rd_slice rd_slice(const void *ptr, size_t len)
{
    struct rd_slice slice;
    slice.ptr = (const uint8_t *)ptr;
    slice.len = len;
    return slice;
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

/* Compares byte by byte; a prefix sorts before the longer slice. */
static inline int rd_slice_cmp(struct rd_slice a, struct rd_slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n == 0 ? 0 : memcmp(a.ptr, b.ptr, n);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

#ifdef __cplusplus
}
#endif

#endif
