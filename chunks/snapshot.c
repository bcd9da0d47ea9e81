#include "chunks/snapshot_impl.h"

#include <string.h>

size_t chunks_select_print(uint8_t ret[CHUNKS_SELECT_MAX], uint64_t db)
{
    ret[0] = RDB_OP_SELECTDB;
    ret[1] = db < 64 ? (uint8_t)db : 0x81;
    for (int i = 0; i < 8; i++)
        ret[2 + i] = (uint8_t)(db >> (8 * (7 - i)));
    return db < 64 ? 2 : CHUNKS_SELECT_MAX;
}

unsigned chunks_head_version(const uint8_t head[9])
{
    unsigned version = 0;
    for (size_t i = memcmp(head, "REDIS", 5) == 0 ? 5 : 6; i < 9; i++)
        version = version * 10 + (unsigned)(head[i] - '0') % 10;
    return version;
}
