#include <criterion/criterion.h>

#include "base/siphash.h"

static const uint8_t key[RD_SIPHASH_KEY] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static struct rd_hash128 hash_of(const uint8_t *bytes, size_t len)
{
    struct rd_siphash hash;
    rd_siphash_begin(&hash, key);
    rd_siphash_add(&hash, bytes, len);
    return rd_siphash_end(&hash);
}

/* The first of the vectors that the authors published: inputs 00 01 02 … of 0 and 1 bytes. */
Test(siphash, agrees_with_the_published_vectors)
{
    static const uint8_t want[2][RD_HASH128_LEN] = {
        {0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02,
         0x93},
        {0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc,
         0x45}};
    for (size_t len = 0; len < 2; len++) {
        uint8_t got[RD_HASH128_LEN];
        rd_hash128_put(got, hash_of(key, len));
        cr_assert_arr_eq(got, want[len], sizeof got);
        cr_assert(rd_hash128_eq(rd_hash128_get(got), hash_of(key, len)));
    }
}

Test(siphash, does_not_depend_on_the_pieces)
{
    uint8_t bytes[64];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37);
    for (size_t len = 0; len <= sizeof bytes; len++) {
        struct rd_hash128 whole = hash_of(bytes, len);
        for (size_t step = 1; step <= 9; step++) {
            struct rd_siphash hash;
            rd_siphash_begin(&hash, key);
            for (size_t at = 0; at < len; at += step)
                rd_siphash_add(&hash, bytes + at, len - at < step ? len - at : step);
            cr_assert(rd_hash128_eq(rd_siphash_end(&hash), whole), "%zu by %zu", len, step);
        }
        cr_assert(len == 0 || !rd_hash128_eq(hash_of(bytes, len - 1), whole));
    }
}

Test(siphash, a_number_is_its_eight_bytes_in_little_endian_order)
{
    static const uint8_t bytes[] = {'x', 8, 7, 6, 5, 4, 3, 2, 1};
    struct rd_siphash hash;
    rd_siphash_begin(&hash, key);
    rd_siphash_add(&hash, bytes, 1);
    rd_siphash_add_u64(&hash, 0x0102030405060708);
    cr_assert(rd_hash128_eq(rd_siphash_end(&hash), hash_of(bytes, sizeof bytes)));
}

Test(siphash, sums_carry)
{
    struct rd_hash128 a = {.lo = UINT64_MAX, .hi = 1}, b = {.lo = 2, .hi = UINT64_MAX};
    struct rd_hash128 sum = rd_hash128_add(a, b);
    cr_assert(sum.lo == 1 && sum.hi == 1);
}
