#include "rdb/rest.h"

#include "base/crc64.h"
#include "base/endian.h"
#include "rdb/rdb.h"

#include <string.h>

/* Adds bytes; those that are no longer among the last ones go into the checksum. */
static void add(struct rdb_rest *rest, struct rd_slice s)
{
    size_t keep = s.len < RDB_REST_LAST ? s.len : RDB_REST_LAST;
    size_t drop = rest->n + keep > RDB_REST_LAST ? rest->n + keep - RDB_REST_LAST : 0;
    rest->computed = rd_crc64(rest->computed, rest->last, drop);
    memmove(rest->last, rest->last + drop, rest->n - drop);
    rest->n -= drop;
    rest->computed = rd_crc64(rest->computed, s.ptr, s.len - keep);
    memcpy(rest->last + rest->n, s.ptr + s.len - keep, keep);
    rest->n += keep;
}

bool rdb_rest_read(struct rd_src *src, uint64_t crc, struct rdb_rest *ret, struct rd_err *err)
{
    enum rd_src_status st;
    struct rd_slice s;
    *ret = (struct rdb_rest){.computed = crc};
    while ((st = rd_src_need(src, 1, &s)) == RD_SRC_OK) {
        add(ret, s);
        rd_src_consume(src, s.len);
    }
    const struct rd_err *why = rd_src_err(src);
    if (st == RD_SRC_FAIL && why->code != RD_ERR_CORRUPT && why->code != RD_ERR_TRUNCATED) {
        rd_err_adopt(err, why);
        return false;
    }
    ret->complete = st == RD_SRC_END && ret->n >= RDB_TRAILER_LEN;
    if (!ret->complete)
        return true;
    size_t at = ret->n - RDB_TRAILER_LEN;
    ret->computed = rd_crc64(ret->computed, ret->last, at);
    ret->stored = rd_get_le64(ret->last + at);
    return true;
}

bool rdb_rest_matches(const struct rdb_rest *rest)
{
    return rest->complete && rest->stored != 0 && rest->stored == rest->computed;
}
