#include "rdb/foreign.h"

#include <string.h>

#include "base/endian.h"
#include "rdb/rdb.h"
#include "rdb/rest.h"

enum { DUMP_MIN = 1 + 1 + RDB_REST_LAST, AUX_SEARCHED = 256, HEAD = 512 };

static const char dragonfly_prefix[] = "df-";

bool rdb_foreign_is_dragonfly(struct rd_slice version)
{
    size_t len = sizeof dragonfly_prefix - 1;
    return version.len >= len && memcmp(version.ptr, dragonfly_prefix, len) == 0;
}

/* The field redis-ver of Dragonfly, with the name's length before it and that of the value after
 * it. */
static bool is_dragonfly(struct rd_slice head)
{
    static const char name[] = "\xfa\x09redis-ver";
    size_t at = RDB_MAGIC_LEN, len = sizeof name - 1;
    size_t need = len + 1;
    if (head.len < RDB_MAGIC_LEN || memcmp(head.ptr, "REDIS", 5) != 0)
        return false;
    for (; at + need <= head.len && at < AUX_SEARCHED; at++)
        if (memcmp(head.ptr + at, name, len) == 0)
            return rdb_foreign_is_dragonfly(rd_slice(head.ptr + at + need, head.len - at - need));
    return false;
}

static bool has_type(unsigned version, uint8_t type)
{
    static const enum rdb_dialect dialects[] = {RDB_REDIS, RDB_VALKEY};
    for (size_t i = 0; i < sizeof dialects / sizeof dialects[0]; i++)
        if (rdb_version_known(dialects[i], (int)version) &&
            rdb_type_find(dialects[i], (int)version, type) != NULL)
            return true;
    return false;
}

bool rdb_foreign_find(struct rd_src *src, enum rdb_foreign *ret, struct rd_err *err)
{
    struct rd_slice head = {0};
    struct rdb_rest rest;
    *ret = RDB_FOREIGN_NONE;
    if (rd_src_need(src, HEAD, &head) == RD_SRC_FAIL)
        return true;
    if (is_dragonfly(head)) {
        *ret = RDB_FOREIGN_DRAGONFLY;
        return true;
    }
    bool snapshot =
        head.len >= 5 && (memcmp(head.ptr, "REDIS", 5) == 0 || memcmp(head.ptr, "VALKE", 5) == 0);
    uint64_t at = rd_src_offset(src);
    if (snapshot || head.len < DUMP_MIN || !rd_src_can_seek(src))
        return true;
    uint8_t type = head.ptr[0];
    if (!rdb_rest_read(src, 0, &rest, err) || !rd_src_seek(src, at, err))
        return false;
    if (rdb_rest_matches(&rest) && has_type(rd_get_le16(rest.last), type))
        *ret = RDB_FOREIGN_DUMP;
    return true;
}

enum rdb_foreign rdb_foreign_of(struct rd_slice bytes)
{
    enum rdb_foreign ret = RDB_FOREIGN_NONE;
    struct rd_src *src;
    struct rd_err err = {0};
    if (!rd_src_open_memory(&src, bytes, NULL, &err))
        return ret;
    (void)rdb_foreign_find(src, &ret, &err);
    rd_src_close(src);
    return ret;
}
