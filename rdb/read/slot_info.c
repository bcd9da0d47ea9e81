#include "rdb/read/slot_info.h"

#include "base/crc16.h"
#include "base/num.h"

#include <string.h>

/* Parses exactly n decimal numbers separated by commas. */
static bool numbers(struct rd_slice text, uint64_t *ret, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const uint8_t *comma = text.len > 0 ? memchr(text.ptr, ',', text.len) : NULL;
        size_t len = comma != NULL ? (size_t)(comma - text.ptr) : text.len;
        if ((comma != NULL) != (i + 1 < n) || !rd_num_get_u64(rd_slice(text.ptr, len), &ret[i]))
            return false;
        if (comma != NULL)
            text = rd_slice(comma + 1, text.len - len - 1);
    }
    return true;
}

bool rdb_slot_info_parse(struct rd_slice value, struct rdb_slot_info *ret)
{
    uint64_t n[3];
    if (!numbers(value, n, 3) || n[0] >= RD_HASH_SLOTS)
        return false;
    *ret = (struct rdb_slot_info){.slot = n[0], .keys = n[1], .expires = n[2]};
    return true;
}
