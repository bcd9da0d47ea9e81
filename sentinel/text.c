#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "sentinel/sentinel.h"
#include "sentinel/text_impl.h"

bool sentinel_text_cut(struct rd_slice *text, char at, struct rd_slice *ret)
{
    const uint8_t *end = text->len > 0 ? memchr(text->ptr, at, text->len) : NULL;
    if (end == NULL) {
        *ret = *text;
        *text = rd_slice(NULL, 0);
        return false;
    }
    size_t len = (size_t)(end - text->ptr);
    *ret = rd_slice(text->ptr, len);
    *text = rd_slice(end + 1, text->len - len - 1);
    return true;
}

bool sentinel_text_after(struct rd_slice text, const char *words, struct rd_slice *ret)
{
    size_t len = strlen(words);
    if (text.len < len || memcmp(text.ptr, words, len) != 0)
        return false;
    *ret = rd_slice(text.ptr + len, text.len - len);
    return true;
}

bool sentinel_text_port(struct rd_slice text, int *ret)
{
    uint64_t port;
    if (!rd_num_get_u64(text, &port) || port > SENTINEL_PORT_MAX)
        return false;
    *ret = (int)port;
    return true;
}

bool sentinel_text_is_id(struct rd_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
    }
    return text.len == SENTINEL_ID_LEN;
}

void sentinel_text_copy(char *dst, size_t size, struct rd_slice text)
{
    size_t len = text.len < size ? text.len : size - 1;
    if (len > 0)
        memcpy(dst, text.ptr, len);
    dst[len] = 0;
}

char *sentinel_text_dup(struct rd_slice text)
{
    char *copy = rd_alloc(text.len + 1);
    if (copy != NULL)
        sentinel_text_copy(copy, text.len + 1, text);
    return copy;
}
