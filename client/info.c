#include "client/info.h"

#include "base/num.h"

#include <stdio.h>

/* The value after `name` and `assign`, up to `end`, of an item that begins with them. */
static bool find_item(struct rd_slice text, const char *name, char assign, char end,
                      struct rd_slice *ret)
{
    size_t len = strlen(name);
    const uint8_t *p = text.ptr, *stop = p + text.len;
    while (p < stop) {
        const uint8_t *next = memchr(p, end, (size_t)(stop - p));
        size_t size = (size_t)((next != NULL ? next : stop) - p);
        if (size > len && memcmp(p, name, len) == 0 && p[len] == (uint8_t)assign) {
            *ret = rd_slice(p + len + 1, size - len - 1);
            return true;
        }
        p = next != NULL ? next + 1 : stop;
    }
    return false;
}

bool client_info_find(struct rd_slice text, const char *name, struct rd_slice *ret)
{
    struct rd_slice value;
    if (text.len == 0 || !find_item(text, name, ':', '\n', &value))
        return false;
    if (value.len > 0 && value.ptr[value.len - 1] == '\r')
        value.len--;
    *ret = value;
    return true;
}

bool client_info_u64(struct rd_slice text, const char *name, uint64_t *ret)
{
    struct rd_slice value;
    return client_info_find(text, name, &value) && rd_num_get_u64(value, ret);
}

unsigned client_info_version(struct rd_slice text, const char *name)
{
    struct rd_slice value;
    char copy[32];
    unsigned major, minor;
    if (!client_info_find(text, name, &value) || value.len >= sizeof copy)
        return 0;
    memcpy(copy, value.ptr, value.len);
    copy[value.len] = '\0';
    return sscanf(copy, "%3u.%2u", &major, &minor) == 2 ? major * 100 + minor : 0;
}

bool client_info_part(struct rd_slice value, const char *name, struct rd_slice *ret)
{
    return value.len > 0 && find_item(value, name, '=', ',', ret);
}
