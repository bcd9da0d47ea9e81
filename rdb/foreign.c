#include "rdb/foreign.h"

#include <string.h>

#include "base/crc64.h"
#include "base/endian.h"
#include "rdb/rdb.h"

enum { DUMP_FOOT = 2 + 8, DUMP_MIN = 1 + 1 + DUMP_FOOT, AUX_SEARCHED = 256 };

/* The field redis-ver of Dragonfly, with the name's length before it and that of the value after
 * it. */
static bool is_dragonfly(struct rd_slice head)
{
    static const char name[] = "\xfa\x09redis-ver", version[] = "df-";
    size_t at = RDB_MAGIC_LEN, len = sizeof name - 1;
    size_t need = len + 1 + sizeof version - 1;
    if (head.len < RDB_MAGIC_LEN || memcmp(head.ptr, "REDIS", 5) != 0)
        return false;
    for (; at + need <= head.len && at < AUX_SEARCHED; at++)
        if (memcmp(head.ptr + at, name, len) == 0)
            return memcmp(head.ptr + at + len + 1, version, sizeof version - 1) == 0;
    return false;
}

static bool has_version(unsigned version)
{
    return rdb_version_known(RDB_REDIS, (int)version) ||
           rdb_version_known(RDB_VALKEY, (int)version);
}

static bool is_dump(struct rd_slice file)
{
    if (file.len < DUMP_MIN)
        return false;
    const uint8_t *foot = file.ptr + file.len - DUMP_FOOT;
    return has_version(rd_get_le16(foot)) &&
           rd_get_le64(foot + 2) == rd_crc64(0, file.ptr, file.len - 8);
}

enum rdb_foreign rdb_foreign_of(struct rd_slice head)
{
    if (is_dragonfly(head))
        return RDB_FOREIGN_DRAGONFLY;
    return is_dump(head) ? RDB_FOREIGN_DUMP : RDB_FOREIGN_NONE;
}
