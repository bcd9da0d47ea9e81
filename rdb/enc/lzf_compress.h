/* lzf_compress.h - LZF compression, as RDB files use it for long strings.
 *
 *     control byte c < 32     c + 1 literal bytes follow
 *     control byte c >= 32    copy from what came out before: length (c >> 5) + 2, where c >> 5 is
 * 7 the next byte is added; then the low byte of the distance, whose high five bits are c & 31; the
 * distance is that number + 1
 *
 * A reference reaches back 8192 bytes and copies 3 to 264.
 *
 *     struct rdb_lzf_table *table = rd_alloc(sizeof *table);
 *     size_t n = rdb_lzf_compress(table, in, len, out, len - 4);
 *     if (n == 0)
 *         ... not compressible enough: store it uncompressed ...
 */
#ifndef RDB_ENC_LZF_COMPRESS_H
#define RDB_ENC_LZF_COMPRESS_H

#include "base/slice.h"

enum { RDB_LZF_TABLE_BITS = 15 };

/* Scratch of 64 KiB: the last position of each hash of three bytes, modulo 65536. Its contents
 * before a call are irrelevant. A short input uses, and clears, only a part of it. */
struct rdb_lzf_table {
    uint16_t seen[1 << RDB_LZF_TABLE_BITS];
};

/* Compresses len bytes into out, which has room for cap. Returns the compressed length, or 0 if it
 * would exceed cap. The output depends only on the input. */
size_t rdb_lzf_compress(struct rdb_lzf_table *table, const uint8_t *in, size_t len, uint8_t *out,
                        size_t cap);

#endif
