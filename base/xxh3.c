#include "base/xxh3.h"

#include "base/endian.h"

/* Multiplication with a result of 128 bits. */
__extension__ typedef unsigned __int128 u128;

enum { SECRET_LEN = 192, STRIPE = 64, LANES = 8, BLOCK_STRIPES = (SECRET_LEN - STRIPE) / 8 };

static const uint8_t secret[SECRET_LEN] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};

static const uint64_t p32_1 = 0x9E3779B1, p32_2 = 0x85EBCA77, p32_3 = 0xC2B2AE3D,
                      p64_1 = 0x9E3779B185EBCA87, p64_2 = 0xC2B2AE3D27D4EB4F,
                      p64_3 = 0x165667B19E3779F9, p64_4 = 0x85EBCA77C2B2AE63,
                      p64_5 = 0x27D4EB2F165667C5, mx1 = 0x165667919E3779F9,
                      mx2 = 0x9FB21C651E98DF25;

/* ---- parts ---- */

static uint64_t rotl(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static uint64_t fold(uint64_t a, uint64_t b)
{
    u128 product = (u128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t avalanche(uint64_t x)
{
    x ^= x >> 37;
    x *= mx1;
    return x ^ x >> 32;
}

static uint64_t avalanche_xxh64(uint64_t x)
{
    x ^= x >> 33;
    x *= p64_2;
    x ^= x >> 29;
    x *= p64_3;
    return x ^ x >> 32;
}

/* Two words of the secret, combined. */
static uint64_t pair(size_t at)
{
    return rd_get_le64(secret + at) ^ rd_get_le64(secret + at + 8);
}

static uint64_t pair32(size_t at)
{
    return rd_get_le32(secret + at) ^ rd_get_le32(secret + at + 4);
}

static uint64_t mix(const uint8_t *p, size_t at)
{
    return fold(rd_get_le64(p) ^ rd_get_le64(secret + at),
                rd_get_le64(p + 8) ^ rd_get_le64(secret + at + 8));
}

/* ---- up to 16 bytes ---- */

static uint32_t combine(const uint8_t *p, size_t len)
{
    return (uint32_t)p[len - 1] | (uint32_t)len << 8 | (uint32_t)p[0] << 16 |
           (uint32_t)p[len / 2] << 24;
}

static uint64_t short_64(const uint8_t *p, size_t len)
{
    if (len == 0)
        return avalanche_xxh64(pair(56));
    if (len <= 3)
        return avalanche_xxh64(pair32(0) ^ combine(p, len));
    if (len <= 8) {
        uint64_t x = pair(8) ^ (rd_get_le32(p + len - 4) | (uint64_t)rd_get_le32(p) << 32);
        x ^= rotl(x, 49) ^ rotl(x, 24);
        x *= mx2;
        x ^= (x >> 35) + len;
        x *= mx2;
        return x ^ x >> 28;
    }
    uint64_t low = pair(24) ^ rd_get_le64(p), high = pair(40) ^ rd_get_le64(p + len - 8);
    return avalanche(len + __builtin_bswap64(low) + high + fold(low, high));
}

static struct rd_xxh3_128 four_to_eight(const uint8_t *p, size_t len)
{
    uint64_t x = pair(16) ^ (rd_get_le32(p) | (uint64_t)rd_get_le32(p + len - 4) << 32);
    u128 product = (u128)x * (p64_1 + (len << 2));
    uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    high += low << 1;
    low ^= high >> 3;
    low ^= low >> 35;
    low *= mx2;
    low ^= low >> 28;
    return (struct rd_xxh3_128){low, avalanche(high)};
}

static struct rd_xxh3_128 nine_to_sixteen(const uint8_t *p, size_t len)
{
    uint64_t first = rd_get_le64(p), last = rd_get_le64(p + len - 8);
    uint64_t a = pair(32) ^ first ^ last, b = pair(48) ^ last;
    u128 product = (u128)a * p64_1;
    uint64_t low = (uint64_t)product + ((uint64_t)(len - 1) << 54);
    uint64_t high = (uint64_t)(product >> 64) + b + (b & UINT32_MAX) * (p32_2 - 1);
    low ^= __builtin_bswap64(high);
    product = (u128)low * p64_2;
    high = (uint64_t)(product >> 64) + high * p64_2;
    return (struct rd_xxh3_128){avalanche((uint64_t)product), avalanche(high)};
}

static struct rd_xxh3_128 short_128(const uint8_t *p, size_t len)
{
    if (len > 8)
        return nine_to_sixteen(p, len);
    if (len > 3)
        return four_to_eight(p, len);
    if (len == 0)
        return (struct rd_xxh3_128){avalanche_xxh64(pair(64)), avalanche_xxh64(pair(80))};
    uint32_t x = combine(p, len), swapped = __builtin_bswap32(x);
    uint32_t turned = swapped << 13 | swapped >> 19;
    return (struct rd_xxh3_128){avalanche_xxh64(pair32(0) ^ x),
                                avalanche_xxh64(pair32(8) ^ turned)};
}

/* ---- up to 240 bytes ---- */

static uint64_t medium_64(const uint8_t *p, size_t len)
{
    uint64_t acc = len * p64_1;
    if (len <= 128) {
        for (size_t i = (len - 1) / 32 + 1; i-- > 0;)
            acc += mix(p + i * 16, i * 32) + mix(p + len - i * 16 - 16, i * 32 + 16);
        return avalanche(acc);
    }
    for (size_t i = 0; i < 8; i++)
        acc += mix(p + i * 16, i * 16);
    acc = avalanche(acc);
    for (size_t i = 8; i < len / 16; i++)
        acc += mix(p + i * 16, (i - 8) * 16 + 3);
    return avalanche(acc + mix(p + len - 16, 119));
}

static void mix_two(uint64_t acc[2], const uint8_t *a, const uint8_t *b, size_t at)
{
    acc[0] += mix(a, at);
    acc[1] += mix(b, at + 16);
    acc[0] ^= rd_get_le64(b) + rd_get_le64(b + 8);
    acc[1] ^= rd_get_le64(a) + rd_get_le64(a + 8);
}

static struct rd_xxh3_128 medium_128(const uint8_t *p, size_t len)
{
    uint64_t acc[2] = {len * p64_1, 0};
    if (len <= 128) {
        for (size_t i = (len - 1) / 32 + 1; i-- > 0;)
            mix_two(acc, p + i * 16, p + len - i * 16 - 16, i * 32);
    } else {
        for (size_t i = 0; i < 4; i++)
            mix_two(acc, p + i * 32, p + i * 32 + 16, i * 32);
        acc[0] = avalanche(acc[0]);
        acc[1] = avalanche(acc[1]);
        for (size_t i = 4; i < len / 32; i++)
            mix_two(acc, p + i * 32, p + i * 32 + 16, (i - 4) * 32 + 3);
        mix_two(acc, p + len - 16, p + len - 32, 103);
    }
    uint64_t high = acc[0] * p64_1 + acc[1] * p64_4 + len * p64_2;
    return (struct rd_xxh3_128){avalanche(acc[0] + acc[1]), 0 - avalanche(high)};
}

/* ---- longer ---- */

static void accumulate(uint64_t acc[LANES], const uint8_t *stripe, size_t at)
{
    for (size_t i = 0; i < LANES; i++) {
        uint64_t lane = rd_get_le64(stripe + 8 * i);
        uint64_t value = lane ^ rd_get_le64(secret + at + 8 * i);
        acc[i ^ 1] += lane;
        acc[i] += (value & UINT32_MAX) * (value >> 32);
    }
}

static void scramble(uint64_t acc[LANES])
{
    for (size_t i = 0; i < LANES; i++) {
        acc[i] ^= acc[i] >> 47;
        acc[i] ^= rd_get_le64(secret + SECRET_LEN - STRIPE + 8 * i);
        acc[i] *= p32_1;
    }
}

static void digest_long(const uint8_t *p, size_t len, uint64_t acc[LANES])
{
    const uint64_t start[LANES] = {p32_3, p64_1, p64_2, p64_3, p64_4, p32_2, p64_5, p32_1};
    for (size_t i = 0; i < LANES; i++)
        acc[i] = start[i];
    size_t n_stripes = (len - 1) / STRIPE;
    for (size_t i = 0; i < n_stripes; i++) {
        accumulate(acc, p + i * STRIPE, i % BLOCK_STRIPES * 8);
        if (i % BLOCK_STRIPES == BLOCK_STRIPES - 1)
            scramble(acc);
    }
    accumulate(acc, p + len - STRIPE, SECRET_LEN - STRIPE - 7);
}

static uint64_t merge(const uint64_t acc[LANES], uint64_t start, size_t at)
{
    for (size_t i = 0; i < LANES; i += 2)
        start += fold(acc[i] ^ rd_get_le64(secret + at + 8 * i),
                      acc[i + 1] ^ rd_get_le64(secret + at + 8 * i + 8));
    return avalanche(start);
}

/* ---- the hashes ---- */

enum { SHORT_MAX = 16, MEDIUM_MAX = 240, MERGE_AT = 11 };

uint64_t rd_xxh3_64(struct rd_slice bytes)
{
    uint64_t acc[LANES];
    if (bytes.len <= SHORT_MAX)
        return short_64(bytes.ptr, bytes.len);
    if (bytes.len <= MEDIUM_MAX)
        return medium_64(bytes.ptr, bytes.len);
    digest_long(bytes.ptr, bytes.len, acc);
    return merge(acc, bytes.len * p64_1, MERGE_AT);
}

struct rd_xxh3_128 rd_xxh3_128(struct rd_slice bytes)
{
    uint64_t acc[LANES];
    if (bytes.len <= SHORT_MAX)
        return short_128(bytes.ptr, bytes.len);
    if (bytes.len <= MEDIUM_MAX)
        return medium_128(bytes.ptr, bytes.len);
    digest_long(bytes.ptr, bytes.len, acc);
    return (struct rd_xxh3_128){merge(acc, bytes.len * p64_1, MERGE_AT),
                                merge(acc, ~(bytes.len * p64_2), SECRET_LEN - STRIPE - MERGE_AT)};
}
