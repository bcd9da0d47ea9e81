/* pack.h - builds the packed encodings: listpack, ziplist and intset.
 *
 *     struct rdb_packer pack;
 *     ok = rdb_packer_begin(&pack, RDB_LISTPACK, &buf) && rdb_packer_add(&pack, text) && ...
 *          && rdb_packer_end(&pack);
 *     ... buf holds it ...
 *
 *     listpack  bytes (4)  count (2)  entry*  0xff           little-endian
 *     entry     head data  back: the length of head and data, 7 bits a byte, read backwards
 *     head      0vvvvvvv           110vvvvv vvvvvvvv (13 bits, two's complement)
 *               f1 f2 f3 f4        integers of 16, 24, 32 and 64 bits, little-endian
 *               10llllll           1110llll llllllll     f0 and 4 bytes, little-endian: strings
 *
 *     ziplist   bytes (4)  tail (4)  count (2)  entry*  0xff     little-endian
 *     entry     length of the entry before (1, or 0xfe and 4)  head data
 *     head      00llllll           01llllll llllllll     0x80 and 4 bytes, big-endian: strings
 *               f1 .. fd           the numbers 0 to 12
 *               fe c0 f0 d0 e0     integers of 8, 16, 24, 32 and 64 bits, little-endian
 *
 *     intset    width: 2, 4 or 8 (4)  count (4)  integers, ascending      little-endian
 *
 * Integers and strings are encoded as in servers; text that is the canonical decimal form of a
 * 64-bit integer is encoded as that integer. Rebuilding an encoding that a server has just created
 * gives the same bytes. A count above 65534 is stored as 65535, which means that the entries must
 * be counted. pack_read.h reads them.
 */
#ifndef RDB_ENC_PACK_H
#define RDB_ENC_PACK_H

#include "base/buf.h"
#include "rdb/event.h"

struct rdb_packer {
    enum rdb_codec codec; /* RDB_LISTPACK or RDB_ZIPLIST */
    struct rd_buf *buf;   /* the caller's */
    size_t start;         /* where the encoding begins in buf */
    size_t tail;          /* ziplist: offset of the last entry from start */
    uint64_t count;
};

/* The encoding is appended to buf, which must not be touched before rdb_packer_end(). Each function
 * returns false if memory is exhausted, rdb_packer_end() also if the length does not fit 32 bits.
 */
bool rdb_packer_begin(struct rdb_packer *pack, enum rdb_codec codec, struct rd_buf *buf);
bool rdb_packer_add(struct rdb_packer *pack, struct rd_slice text);
bool rdb_packer_add_i64(struct rdb_packer *pack, int64_t v);
bool rdb_packer_end(struct rdb_packer *pack);

/* Bytes so far, including the end mark that is added at the end. */
static inline size_t rdb_packer_size(const struct rdb_packer *pack)
{
    return pack->buf->len - pack->start + 1;
}

/* Whether `len` bytes of text still fit: false if the encoding could exceed 32 bits.
 */
static inline bool rdb_packer_has_room(const struct rdb_packer *pack, size_t len)
{
    return len <= UINT32_MAX - 32 && rdb_packer_size(pack) <= UINT32_MAX - 32 - len;
}

/* The encoding of one string of len bytes, without the string itself: the bytes before and after
 * it. False if the length does not fit 32 bits. */
enum { RDB_PACKER_AROUND_MAX = 16 };
struct rdb_packer_around {
    uint8_t head[RDB_PACKER_AROUND_MAX];
    size_t head_len;
    uint8_t tail[RDB_PACKER_AROUND_MAX];
    size_t tail_len;
};
bool rdb_packer_around(struct rdb_packer_around *ret, enum rdb_codec codec, uint64_t len);

/* Appends an intset of n integers, which must be in ascending order. */
bool rdb_packer_intset(struct rd_buf *buf, const int64_t *nums, size_t n);

#endif
