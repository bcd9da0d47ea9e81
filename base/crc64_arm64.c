/* crc64_arm64.c - CRC-64 with PMULL (64 x 64 -> 128 bits) on little-endian 64-bit ARM.
 *
 * See base/crc64_impl.h for the arithmetic; the shape is that of the 128-bit implementation in
 * base/crc64_x86.c.
 */
#include "base/crc64_impl.h"

/* ISO C does not allow an empty translation unit. */
typedef int crc64_arm64_unit;

#if RD_CRC64_PMULL

#include <arm_neon.h>
#include <sys/auxv.h>

#if defined(__ARM_FEATURE_AES)
#define TARGET_PMULL
#elif defined(__clang__)
#define TARGET_PMULL __attribute__((target("aes")))
#else
#define TARGET_PMULL __attribute__((target("+crypto")))
#endif

enum { HWCAP_BIT_PMULL = 1 << 4 }; /* Linux, arm64: HWCAP_PMULL */

bool rd_crc64_has_pmull(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_BIT_PMULL) != 0;
}

TARGET_PMULL static inline uint64x2_t load(const uint8_t *p)
{
    return vreinterpretq_u64_u8(vld1q_u8(p));
}

/* Multiplies a by the power of x in k, and adds b. */
TARGET_PMULL static inline uint64x2_t fold(uint64x2_t a, uint64x2_t b,
                                           const struct rd_crc64_fold *k)
{
    poly128_t low = vmull_p64((poly64_t)vgetq_lane_u64(a, 0), (poly64_t)k->low);
    poly128_t high = vmull_p64((poly64_t)vgetq_lane_u64(a, 1), (poly64_t)k->high);
    return veorq_u64(veorq_u64(vreinterpretq_u64_p128(low), vreinterpretq_u64_p128(high)), b);
}

/* Folds the rest of the message, 16 bytes at a time. The table takes the last bytes. */
TARGET_PMULL static uint64_t finish(uint64x2_t a, const uint8_t *p, size_t len)
{
    for (; len >= 16; len -= 16, p += 16)
        a = fold(a, load(p), &rd_crc64_folds[1]);
    uint8_t folded[16];
    vst1q_u8(folded, vreinterpretq_u8_u64(a));
    return rd_crc64_table(rd_crc64_table(0, folded, sizeof folded), p, len);
}

TARGET_PMULL uint64_t rd_crc64_pmull(uint64_t crc, const void *ptr, size_t len)
{
    if (len < 64)
        return rd_crc64_table(crc, ptr, len);
    const uint8_t *p = ptr;
    uint64x2_t a0 = veorq_u64(load(p), vsetq_lane_u64(crc, vdupq_n_u64(0), 0));
    uint64x2_t a1 = load(p + 16);
    uint64x2_t a2 = load(p + 32);
    uint64x2_t a3 = load(p + 48);
    const struct rd_crc64_fold far = rd_crc64_folds[4];
    for (p += 64, len -= 64; len >= 64; p += 64, len -= 64) {
        a0 = fold(a0, load(p), &far);
        a1 = fold(a1, load(p + 16), &far);
        a2 = fold(a2, load(p + 32), &far);
        a3 = fold(a3, load(p + 48), &far);
    }
    a1 = fold(a0, a1, &rd_crc64_folds[1]);
    a2 = fold(a1, a2, &rd_crc64_folds[1]);
    a3 = fold(a2, a3, &rd_crc64_folds[1]);
    return finish(a3, p, len);
}

#endif
