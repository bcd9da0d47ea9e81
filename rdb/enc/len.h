/* len.h - lengths and string heads, as they precede everything in an RDB file.
 *
 *     00nnnnnn                      length n, 6 bits
 *     01nnnnnn nnnnnnnn             14 bits, high bits first
 *     10000000 + 4 bytes            32 bits big-endian
 *     10000001 + 8 bytes            64 bits big-endian
 *     11000000 + 1 byte             a string that is an int8
 *     11000001 + 2 bytes            … an int16, little-endian
 *     11000010 + 4 bytes            … an int32, little-endian
 *     11000011 len len bytes        an LZF string: stored length, decoded length, stored bytes
 *
 * Other bytes are not a length: 10nnnnnn with other n, 11nnnnnn from 4 on. The functions parse
 * bytes in memory; if there are too few, they return the number of bytes needed.
 */
#ifndef RDB_ENC_LEN_H
#define RDB_ENC_LEN_H

#include "base/api.h"
#include "base/endian.h"
#include "base/slice.h"

enum rdb_parse { RDB_PARSE_OK, RDB_PARSE_WANT, RDB_PARSE_BAD };

enum { RDB_LEN_MAX = 9, RDB_HEAD_MAX = 1 + 2 * RDB_LEN_MAX };

/* Size of a length from its first byte; 0: not a length. */
static inline size_t rdb_len_size(uint8_t first)
{
    if (first < 0x80)
        return first < 0x40 ? 1 : 2;
    return first == 0x80 ? 5 : first == 0x81 ? 9 : 0;
}

/* Parses a length at p. OK: *ret and *size. WANT: *size is the number of bytes needed. */
static inline enum rdb_parse rdb_len_parse(const uint8_t *p, size_t have, uint64_t *ret,
                                           size_t *size)
{
    if (RD_UNLIKELY(have == 0)) {
        *size = 1;
        return RDB_PARSE_WANT;
    }
    if (p[0] < 0x40) {
        *ret = p[0];
        *size = 1;
        return RDB_PARSE_OK;
    }
    *size = rdb_len_size(p[0]);
    if (RD_UNLIKELY(*size == 0))
        return RDB_PARSE_BAD;
    if (RD_UNLIKELY(have < *size))
        return RDB_PARSE_WANT;
    if (*size == 2)
        *ret = (uint64_t)(p[0] & 0x3f) << 8 | p[1];
    else
        *ret = *size == 5 ? rd_get_be32(p + 1) : rd_get_be64(p + 1);
    return RDB_PARSE_OK;
}

enum rdb_str_kind { RDB_STR_RAW, RDB_STR_INT, RDB_STR_LZF };

struct rdb_str_head {
    enum rdb_str_kind kind;
    size_t size;     /* of the head; of an INT: of the whole string */
    uint64_t stored; /* bytes after the head */
    uint64_t total;  /* bytes of the string; not set for INT */
    int64_t num;     /* INT */
};

/* Parses all heads except a raw string with a short length. */
enum rdb_parse rdb_str_head_slow(const uint8_t *p, size_t have, struct rdb_str_head *ret);

/* Parses the head of a string. WANT: ret->size is the minimum size of the head. */
static inline enum rdb_parse rdb_str_head_parse(const uint8_t *p, size_t have,
                                                struct rdb_str_head *ret)
{
    if (RD_LIKELY(have > 0 && p[0] < 0x40)) {
        ret->kind = RDB_STR_RAW;
        ret->size = 1;
        ret->stored = ret->total = p[0];
        return RDB_PARSE_OK;
    }
    return rdb_str_head_slow(p, have, ret);
}

#endif
