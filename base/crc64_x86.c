/* crc64_x86.c - CRC-64 with carry-less multiplication on x86-64.
 *
 * See base/crc64_impl.h for the arithmetic. Each implementation keeps four registers, so that four
 * independent folds hide the latency of the multiplication; then joins the four, folds what is left
 * register by register, narrows to 128 bits and ends with the table.
 *
 *     pclmul      4 x 128 bits   PCLMULQDQ (Westmere, Bulldozer and later)
 *     vpclmul256  4 x 256 bits   VPCLMULQDQ with AVX2 (Alder Lake, Zen 3)
 *     vpclmul     4 x 512 bits   VPCLMULQDQ with AVX-512 (Ice Lake, Zen 4)
 *
 * Target attributes are at each function: the file is compiled with the flags of all others.
 */
#include "base/crc64_impl.h"

/* ISO C does not allow an empty translation unit. */
typedef int crc64_x86_unit;

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET_128 __attribute__((target("pclmul,sse4.1")))
#define TARGET_256 __attribute__((target("vpclmulqdq,pclmul,avx2")))
#define TARGET_512 __attribute__((target("vpclmulqdq,pclmul,avx512f,avx512bw,avx512vl")))

bool rd_crc64_has_pclmul(void)
{
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

/* The compiler's run time counts the vector extensions only where the operating system saves their
 * registers (XGETBV). */
bool rd_crc64_has_vpclmul256(void)
{
    return rd_crc64_has_pclmul() && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("vpclmulqdq");
}

bool rd_crc64_has_vpclmul(void)
{
    return rd_crc64_has_vpclmul256() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

TARGET_128 static inline __m128i load128(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

TARGET_128 static inline __m128i constants(unsigned n)
{
    const struct rd_crc64_fold *fold = &rd_crc64_folds[n];
    return _mm_set_epi64x((long long)fold->high, (long long)fold->low);
}

/* Multiplies a by the power of x in k, and adds b. */
TARGET_128 static inline __m128i fold128(__m128i a, __m128i b, __m128i k)
{
    __m128i low = _mm_clmulepi64_si128(a, k, 0x00);
    __m128i high = _mm_clmulepi64_si128(a, k, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), b);
}

/* Folds the rest of the message, 16 bytes at a time. The table takes the last bytes. */
TARGET_128 static uint64_t finish(__m128i a, const uint8_t *p, size_t len)
{
    __m128i k = constants(1);
    for (; len >= 16; len -= 16, p += 16)
        a = fold128(a, load128(p), k);
    uint8_t folded[16];
    _mm_storeu_si128((__m128i *)(void *)folded, a);
    return rd_crc64_table(rd_crc64_table(0, folded, sizeof folded), p, len);
}

TARGET_128 uint64_t rd_crc64_pclmul(uint64_t crc, const void *ptr, size_t len)
{
    if (len < 64)
        return rd_crc64_table(crc, ptr, len);
    const uint8_t *p = ptr;
    __m128i a0 = _mm_xor_si128(load128(p), _mm_cvtsi64_si128((long long)crc));
    __m128i a1 = load128(p + 16);
    __m128i a2 = load128(p + 32);
    __m128i a3 = load128(p + 48);
    __m128i k = constants(4);
    for (p += 64, len -= 64; len >= 64; p += 64, len -= 64) {
        a0 = fold128(a0, load128(p), k);
        a1 = fold128(a1, load128(p + 16), k);
        a2 = fold128(a2, load128(p + 32), k);
        a3 = fold128(a3, load128(p + 48), k);
    }
    k = constants(1);
    a1 = fold128(a0, a1, k);
    a2 = fold128(a1, a2, k);
    a3 = fold128(a2, a3, k);
    return finish(a3, p, len);
}

TARGET_256 static inline __m256i load256(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

TARGET_256 static inline __m256i fold256(__m256i a, __m256i b, __m256i k)
{
    __m256i low = _mm256_clmulepi64_epi128(a, k, 0x00);
    __m256i high = _mm256_clmulepi64_epi128(a, k, 0x11);
    return _mm256_xor_si256(_mm256_xor_si256(low, high), b);
}

TARGET_256 uint64_t rd_crc64_vpclmul256(uint64_t crc, const void *ptr, size_t len)
{
    if (len < 128)
        return rd_crc64_pclmul(crc, ptr, len);
    const uint8_t *p = ptr;
    __m256i first = _mm256_zextsi128_si256(_mm_cvtsi64_si128((long long)crc));
    __m256i a0 = _mm256_xor_si256(load256(p), first);
    __m256i a1 = load256(p + 32);
    __m256i a2 = load256(p + 64);
    __m256i a3 = load256(p + 96);
    __m256i k = _mm256_broadcastsi128_si256(constants(8));
    for (p += 128, len -= 128; len >= 128; p += 128, len -= 128) {
        a0 = fold256(a0, load256(p), k);
        a1 = fold256(a1, load256(p + 32), k);
        a2 = fold256(a2, load256(p + 64), k);
        a3 = fold256(a3, load256(p + 96), k);
    }
    k = _mm256_broadcastsi128_si256(constants(2));
    a1 = fold256(a0, a1, k);
    a2 = fold256(a1, a2, k);
    a3 = fold256(a2, a3, k);
    for (; len >= 32; p += 32, len -= 32)
        a3 = fold256(a3, load256(p), k);
    __m128i low = _mm256_castsi256_si128(a3);
    __m128i high = _mm256_extracti128_si256(a3, 1);
    __m128i narrow = fold128(low, high, constants(1));
    _mm256_zeroupper();
    return finish(narrow, p, len);
}

TARGET_512 static inline __m512i load512(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}

TARGET_512 static inline __m512i fold512(__m512i a, __m512i b, __m512i k)
{
    __m512i low = _mm512_clmulepi64_epi128(a, k, 0x00);
    __m512i high = _mm512_clmulepi64_epi128(a, k, 0x11);
    return _mm512_ternarylogic_epi64(low, high, b, 0x96); /* exclusive or of the three */
}

TARGET_512 static inline __m128i narrow512(__m512i a)
{
    __m128i k = constants(1);
    __m128i narrow = _mm512_castsi512_si128(a);
    narrow = fold128(narrow, _mm512_extracti32x4_epi32(a, 1), k);
    narrow = fold128(narrow, _mm512_extracti32x4_epi32(a, 2), k);
    return fold128(narrow, _mm512_extracti32x4_epi32(a, 3), k);
}

TARGET_512 uint64_t rd_crc64_vpclmul(uint64_t crc, const void *ptr, size_t len)
{
    if (len < 256)
        return rd_crc64_pclmul(crc, ptr, len);
    const uint8_t *p = ptr;
    __m512i first = _mm512_zextsi128_si512(_mm_cvtsi64_si128((long long)crc));
    __m512i a0 = _mm512_xor_si512(load512(p), first);
    __m512i a1 = load512(p + 64);
    __m512i a2 = load512(p + 128);
    __m512i a3 = load512(p + 192);
    __m512i k = _mm512_broadcast_i32x4(constants(16));
    for (p += 256, len -= 256; len >= 256; p += 256, len -= 256) {
        a0 = fold512(a0, load512(p), k);
        a1 = fold512(a1, load512(p + 64), k);
        a2 = fold512(a2, load512(p + 128), k);
        a3 = fold512(a3, load512(p + 192), k);
    }
    k = _mm512_broadcast_i32x4(constants(4));
    a1 = fold512(a0, a1, k);
    a2 = fold512(a1, a2, k);
    a3 = fold512(a2, a3, k);
    for (; len >= 64; p += 64, len -= 64)
        a3 = fold512(a3, load512(p), k);
    __m128i narrow = narrow512(a3);
    _mm256_zeroupper();
    return finish(narrow, p, len);
}

#endif
