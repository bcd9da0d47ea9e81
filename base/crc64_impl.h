/* crc64_impl.h - declarations shared by the CRC-64 implementations; private to base/crc64*.c.
 *
 * A polynomial over GF(2) of degree below 64 is stored reflected: bit 63 is the coefficient of x^0,
 * bit 0 that of x^63. The same holds for every CRC and for the bytes of a message loaded
 * little-endian.
 *
 * Folding. Let a 128-bit register A hold 16 bytes of the message, the first byte in its lowest
 * bits: A = L x^64 + H with L the low and H the high half. The same bytes D bits further from the
 * end of the message weigh A x^D, which modulo P is L (x^(D+64) mod P) + H (x^D mod P). A
 * carry-less product of two reflected halves comes out one place too low, as the product times x,
 * hence the constants of a fold over D bits are x^(D+63) mod P for L and x^(D-1) mod P for H.
 *
 * A vector implementation folds the message into one such register, and leaves its 16 bytes and the
 * last bytes of the message to the table: the CRC of those 16 bytes, begun with 0, is A x^64 mod P,
 * which is the CRC of all that was folded.
 */
#ifndef BASE_CRC64_IMPL_H
#define BASE_CRC64_IMPL_H

#include "base/crc64.h"

#define RD_CRC64_POLY UINT64_C(0x95ac9329ac4bc9b5) /* 0xad93d23594c935a9 reflected */

/* Constants of a fold over some distance. */
struct rd_crc64_fold {
    uint64_t low;
    uint64_t high;
};

/* Distances in bytes; the constants of distance N * 16 are in rd_crc64_folds[N]. */
enum { RD_CRC64_FOLD_MAX = 16 };
extern struct rd_crc64_fold rd_crc64_folds[RD_CRC64_FOLD_MAX + 1];

/* The portable implementation; the others use it for the last bytes. Its tables are initialized by
 * the first call of rd_crc64() or rd_crc64_impls(). */
uint64_t rd_crc64_table(uint64_t crc, const void *ptr, size_t len);

#if defined(__x86_64__)
bool rd_crc64_has_pclmul(void);
bool rd_crc64_has_vpclmul256(void);
bool rd_crc64_has_vpclmul(void);
uint64_t rd_crc64_pclmul(uint64_t crc, const void *ptr, size_t len);
uint64_t rd_crc64_vpclmul256(uint64_t crc, const void *ptr, size_t len);
uint64_t rd_crc64_vpclmul(uint64_t crc, const void *ptr, size_t len);
#endif

/* The compiler must offer vmull_p64() to a function that asks for it by attribute. */
#if defined(__aarch64__) && defined(__ORDER_LITTLE_ENDIAN__) &&                                    \
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ &&                                                   \
    (defined(__ARM_FEATURE_AES) || !defined(__clang__) || __clang_major__ >= 16)
#define RD_CRC64_PMULL 1
bool rd_crc64_has_pmull(void);
uint64_t rd_crc64_pmull(uint64_t crc, const void *ptr, size_t len);
#else
#define RD_CRC64_PMULL 0
#endif

#endif
