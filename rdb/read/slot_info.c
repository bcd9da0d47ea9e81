#include "rdb/read/slot_info.h"

#include "base/crc16.h"
#include "rdb/event.h"

#include <string.h>

enum { NEEDED = 3, KNOWN = 4 };

/* Takes the digits at the beginning of a text, and the comma after them if there is one. */
static bool take_number(struct rd_slice *text, uint64_t *ret)
{
    size_t n = 0;
    while (n < text->len && text->ptr[n] >= '0' && text->ptr[n] <= '9')
        n++;
    if (!rd_num_get_u64(rd_slice(text->ptr, n), ret))
        return false;
    n += n < text->len && text->ptr[n] == ',';
    *text = rd_slice(text->ptr + n, text->len - n);
    return true;
}

bool rdb_slot_info_parse(struct rd_slice value, struct rdb_slot_info *ret)
{
    uint64_t n[KNOWN] = {0, 0, 0, RDB_UNKNOWN};
    for (unsigned i = 0; i < KNOWN; i++) {
        bool separate = i == 0 || value.ptr[-1] == ',';
        if ((!separate || !take_number(&value, &n[i])) && i < NEEDED)
            return false;
    }
    if (n[0] >= RD_HASH_SLOTS)
        return false;
    *ret = (struct rdb_slot_info){.slot = n[0], .keys = n[1], .expires = n[2], .volatiles = n[3]};
    return true;
}

size_t rdb_slot_info_put(char dst[RDB_SLOT_INFO_MAX], const struct rdb_slot_info *info)
{
    const uint64_t n[KNOWN] = {info->slot, info->keys, info->expires, info->volatiles};
    size_t len = 0;
    for (unsigned i = 0; i < KNOWN && (i < NEEDED || n[i] != RDB_UNKNOWN); i++) {
        if (i > 0)
            dst[len++] = ',';
        len += rd_num_put_u64(dst + len, n[i]);
    }
    return len;
}
