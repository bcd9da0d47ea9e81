/* crc64.h - CRC-64/Jones, the checksum at the end of an RDB file and of a DUMP payload.
 *
 * Polynomial 0xad93d23594c935a9, reflected in and out, initial value 0, no final xor. The check
 * value (the CRC of "123456789") is 0xe9c6d914c4b8d9ca.
 *
 * rd_crc64() selects the fastest implementation that the processor supports, at the first call. All
 * implementations give the same result at every length and alignment; tests compare each with the
 * table implementation.
 */
#ifndef BASE_CRC64_H
#define BASE_CRC64_H

#include "base/api.h"
#include "base/slice.h"

/* Continues crc (0 to begin) over len bytes. */
uint64_t rd_crc64(uint64_t crc, const void *ptr, size_t len);

/* The checksum of A followed by B, from the checksums of A and of B and the length of B.
 * O(log len2). */
uint64_t rd_crc64_combine(uint64_t crc1, uint64_t crc2, uint64_t len2);

/* The inverses. rd_crc64_split() is the checksum of A, from those of A followed by B and of B:
 * O(log len2). rd_crc64_undo() is the checksum that becomes `crc` when these bytes are added:
 * O(len). */
uint64_t rd_crc64_split(uint64_t crc, uint64_t crc2, uint64_t len2);
uint64_t rd_crc64_undo(uint64_t crc, const void *ptr, size_t len);

/* At most `most` bytes (up to 7) that lead from one checksum to another: rd_crc64(before, ret, n)
 * is `after`. Returns n, the smallest; 0: none do, or the checksums are equal. For unrelated
 * checksums, the chance that n bytes do is 2^(8 n - 64). */
unsigned rd_crc64_between(uint64_t before, uint64_t after, unsigned most, uint8_t *ret);

/* The product of two checksums as polynomials. RD_CRC64_ONE is the neutral element, and
 * rd_crc64_combine(a, 0, n) the product of a and x^(8 n): a checksum times the second is the
 * checksum of the same bytes followed by n zero bytes. */
#define RD_CRC64_ONE (UINT64_C(1) << 63)
uint64_t rd_crc64_multiply(uint64_t a, uint64_t b);

/* The single byte among `len` whose change explains a wrong checksum: with *ret_xor added to the
 * byte at *ret_at, their checksum is `right` instead of `wrong`. False: no single byte does. The
 * chance that unrelated checksums have such a byte is len / 2^56. O(len). */
bool rd_crc64_locate(uint64_t wrong, uint64_t right, uint64_t len, uint64_t *ret_at,
                     uint8_t *ret_xor);

/* The implementations by name, for tests and benchmarks, from slow to fast: "table"; on x86-64
 * "pclmul", "vpclmul256" (AVX2) and "vpclmul" (AVX-512); on arm64 "pmull". usable is true if this
 * processor can run it. The list ends with name NULL. */
struct rd_crc64_impl {
    const char *name;
    bool usable;
    uint64_t (*update)(uint64_t crc, const void *ptr, size_t len);
};
const struct rd_crc64_impl *rd_crc64_impls(void);

/* Name of the implementation that rd_crc64() uses. */
const char *rd_crc64_impl_name(void);

#endif
