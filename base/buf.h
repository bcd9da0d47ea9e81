/* buf.h - a byte buffer that grows as needed.
 *
 * Example: collects text.
 *
 *     struct rd_buf buf = {0};
 *     if (!rd_buf_add(&buf, "abc", 3) || !rd_buf_printf(&buf, " %d", 7))
 *         return 1; // out of memory; the buffer is unchanged
 *     printf("%.*s\n", (int)buf.len, (const char *)buf.ptr);
 *     rd_buf_done(&buf);
 *
 * A zeroed struct is an empty buffer. Adding is amortized constant time per byte.
 *
 * Threads: one thread at a time uses a buffer; different buffers are independent.
 * Ownership: the buffer owns its bytes until rd_buf_done(). The caller may read ptr and len, and
 *   must not change the fields.
 * Errors: false means that memory is exhausted; the buffer is then unchanged.
 * Cost: adding is amortized constant time per byte.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/api.h"
#include "base/slice.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Open: programs read `ptr` and `len`, and a zeroed struct is an empty buffer. */
struct rd_buf {
    uint8_t *ptr;
    size_t len;
    size_t cap;
};

RD_API bool rd_buf_reserve(struct rd_buf *buf, size_t more);
RD_API bool rd_buf_add(struct rd_buf *buf, const void *ptr, size_t len);
RD_API bool rd_buf_add_byte(struct rd_buf *buf, uint8_t byte);
RD_API bool rd_buf_printf(struct rd_buf *buf, const char *fmt, ...) RD_PRINTF(2, 3);
RD_API void rd_buf_done(struct rd_buf *buf);

static inline void rd_buf_reset(struct rd_buf *buf)
{
    buf->len = 0;
}

static inline struct rd_slice rd_buf_slice(const struct rd_buf *buf)
{
    return rd_slice(buf->ptr, buf->len);
}

#ifdef __cplusplus
}
#endif

#endif
