#include "base/sized.h"

#include <string.h>

/* Structs have less. A larger size is one that was never set. */
enum { SIZE_MAX_GIVEN = 4096 };

static size_t size_of(const void *given)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    return size;
}

bool rd_sized_is_set(const void *given, struct rd_err *err)
{
    size_t size = size_of(given);
    return (size >= sizeof size && size <= SIZE_MAX_GIVEN) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the size of a struct is not set");
}

static bool has_no_unknown_field(const void *given, size_t known, struct rd_err *err)
{
    for (size_t i = known; i < size_of(given); i++)
        if (((const uint8_t *)given)[i] != 0)
            return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                              "an option is unknown to libredoubt %s", redoubt_version_string());
    return true;
}

bool rd_sized_copy(void *dst, size_t size, const void *given, struct rd_err *err)
{
    bool ok =
        given == NULL || (rd_sized_is_set(given, err) && has_no_unknown_field(given, size, err));
    memset(dst, 0, size);
    if (ok && given != NULL)
        memcpy(dst, given, size_of(given) < size ? size_of(given) : size);
    memcpy(dst, &size, sizeof size);
    return ok;
}

void rd_sized_return(void *ret, const void *own, size_t size)
{
    size_t room = size_of(ret);
    memset(ret, 0, room);
    memcpy(ret, own, room < size ? room : size);
    memcpy(ret, &room, sizeof room);
}
