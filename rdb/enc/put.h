/* put.h - writes the elements of the RDB format: lengths, strings, numbers, times.
 *
 *     length   00llllll                      6 bits
 *              01llllll llllllll             14 bits, big-endian
 *              10000000 and 4 bytes          32 bits, big-endian
 *              10000001 and 8 bytes          64 bits, big-endian
 *     string   length, bytes
 *              11000000 and 1 byte           an integer, little-endian, as its decimal text
 *              11000001 and 2 bytes
 *              11000010 and 4 bytes
 *              11000011, length, length, bytes   LZF: compressed and plain length
 *
 * All functions write to a sink, which remembers a failure, and return its result. A caller may
 * write many elements and check once.
 */
#ifndef RDB_ENC_PUT_H
#define RDB_ENC_PUT_H

#include "base/buf.h"
#include "base/num.h"
#include "base/sink.h"
#include "rdb/enc/lzf_compress.h"

enum {
    RDB_PUT_LEN_MAX = 9,       /* bytes of a length */
    RDB_PUT_COMPRESS_MIN = 21, /* shorter strings are not compressed */
    RDB_PUT_COMPRESS_GAIN = 4, /* bytes that compression must save */
    RDB_PUT_F64_TEXT_MAX = 32  /* bytes of a double as text */
};

/* State for writing strings. Zeroed: no compression. */
struct rdb_put {
    struct rdb_lzf_table *table; /* NULL: strings are not compressed */
    struct rd_buf out;           /* scratch for compressed bytes */
};

/* compress: allocates the table. */
bool rdb_put_init(struct rdb_put *put, bool compress);
void rdb_put_done(struct rdb_put *put);

/* Encodes a length in dst; returns its size, at most RDB_PUT_LEN_MAX. */
size_t rdb_put_len_bytes(uint8_t dst[RDB_PUT_LEN_MAX], uint64_t len);
bool rdb_put_len(struct rd_sink *sink, uint64_t len);

/* Writes a string in the form that servers choose: an integer if the text is the canonical decimal
 * form of a 32-bit integer, LZF if compression is enabled and saves RDB_PUT_COMPRESS_GAIN bytes,
 * else raw. Compression needs as much memory as the string; without it the string is stored raw. */
bool rdb_put_string(struct rdb_put *put, struct rd_sink *sink, struct rd_slice text);

/* Writes a raw string: length and bytes. */
bool rdb_put_raw(struct rd_sink *sink, struct rd_slice text);

/* Writes an integer as a string: in integer form if it fits 32 bits, else its decimal text. */
bool rdb_put_int(struct rd_sink *sink, int64_t v);

/* 8 bytes, little-endian: times in ms, and doubles as their IEEE 754 bits. */
bool rdb_put_le64(struct rd_sink *sink, uint64_t v);
bool rdb_put_f64(struct rd_sink *sink, double v);

/* The old form of a score: one byte for its length and as many of text, as "%.17g" gives it; 253 is
 * not a number, 254 infinity and 255 minus infinity, each without text. */
bool rdb_put_f64_text(struct rd_sink *sink, double v);

/* Formats v like "%.17g" in the C locale, whatever the current locale is. Returns the length. */
size_t rdb_put_f64_format(char dst[RDB_PUT_F64_TEXT_MAX], double v);

#endif
