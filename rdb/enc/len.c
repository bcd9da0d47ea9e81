#include "rdb/enc/len.h"

static enum rdb_parse parse_int(const uint8_t *p, size_t have, struct rdb_str_head *ret)
{
    ret->kind = RDB_STR_INT;
    ret->stored = ret->total = 0;
    ret->size = p[0] == 0xc0 ? 2 : p[0] == 0xc1 ? 3 : 5;
    if (have < ret->size)
        return RDB_PARSE_WANT;
    if (p[0] == 0xc0)
        ret->num = (int8_t)p[1];
    else if (p[0] == 0xc1)
        ret->num = (int16_t)rd_get_le16(p + 1);
    else
        ret->num = (int32_t)rd_get_le32(p + 1);
    return RDB_PARSE_OK;
}

static enum rdb_parse parse_lzf(const uint8_t *p, size_t have, struct rdb_str_head *ret)
{
    size_t size;
    ret->kind = RDB_STR_LZF;
    ret->size = 1;
    enum rdb_parse rc = rdb_len_parse(p + 1, have - 1, &ret->stored, &size);
    ret->size += size;
    if (rc != RDB_PARSE_OK)
        return rc;
    rc = rdb_len_parse(p + ret->size, have - ret->size, &ret->total, &size);
    ret->size += size;
    return rc;
}

enum rdb_parse rdb_str_head_slow(const uint8_t *p, size_t have, struct rdb_str_head *ret)
{
    if (have == 0) {
        ret->size = 1;
        return RDB_PARSE_WANT;
    }
    if (p[0] < 0xc0) {
        ret->kind = RDB_STR_RAW;
        enum rdb_parse rc = rdb_len_parse(p, have, &ret->stored, &ret->size);
        ret->total = ret->stored;
        return rc;
    }
    if (p[0] <= 0xc2)
        return parse_int(p, have, ret);
    if (p[0] == 0xc3)
        return parse_lzf(p, have, ret);
    ret->size = 0;
    return RDB_PARSE_BAD;
}
