#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"

enum { FIRST_CAP = 64 };

bool rd_buf_reserve(struct rd_buf *buf, size_t more)
{
    if (more <= buf->cap - buf->len)
        return true;
    size_t need;
    if (__builtin_add_overflow(buf->len, more, &need) || need > PTRDIFF_MAX)
        return false;
    size_t cap = buf->cap > 0 ? buf->cap * 2 : FIRST_CAP;
    if (cap < need)
        cap = need;
    uint8_t *ptr = rd_realloc(buf->ptr, cap);
    if (ptr == NULL)
        return false;
    buf->ptr = ptr;
    buf->cap = cap;
    return true;
}

bool rd_buf_add(struct rd_buf *buf, const void *ptr, size_t len)
{
    if (len == 0)
        return true;
    if (!rd_buf_reserve(buf, len))
        return false;
    memcpy(buf->ptr + buf->len, ptr, len);
    buf->len += len;
    return true;
}

bool rd_buf_add_byte(struct rd_buf *buf, uint8_t byte)
{
    return rd_buf_add(buf, &byte, 1);
}

bool rd_buf_printf(struct rd_buf *buf, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    /* vsnprintf() also writes a terminator, which is not counted. */
    if (len < 0 || !rd_buf_reserve(buf, (size_t)len + 1))
        return false;
    va_start(args, fmt);
    vsnprintf((char *)buf->ptr + buf->len, (size_t)len + 1, fmt, args);
    va_end(args);
    buf->len += (size_t)len;
    return true;
}

void rd_buf_done(struct rd_buf *buf)
{
    rd_free(buf->ptr);
    *buf = (struct rd_buf){0};
}
