#include "archive/base64.h"

#include <string.h>

bool archive_base64_get(struct rd_slice text, uint8_t *ret, size_t size, size_t *ret_len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    size_t n = 0, end = text.len;
    if (text.len % 4 != 0)
        return false;
    while (end > 0 && text.len - end < 2 && text.ptr[end - 1] == '=')
        end--;
    for (size_t i = 0; i < end; i++) {
        const char *found = text.ptr[i] != 0 ? strchr(digits, text.ptr[i]) : NULL;
        if (found == NULL)
            return false;
        bits = bits << 6 | (uint32_t)(found - digits);
        if (i % 4 == 0)
            continue;
        if (n == size)
            return false;
        ret[n++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    *ret_len = n;
    return true;
}
