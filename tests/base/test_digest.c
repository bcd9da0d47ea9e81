#include "base/digest.h"

#include <criterion/criterion.h>

#include "tests/support/alloc_fault.h"

static void expect_hex(enum rd_digest_kind kind, struct rd_slice bytes, const char *want)
{
    uint8_t sum[RD_DIGEST_MAX];
    char hex[RD_DIGEST_HEX];
    struct rd_err err = {0};
    cr_assert(rd_digest_of(kind, bytes, sum, &err));
    rd_digest_hex(hex, rd_slice(sum, rd_digest_size(kind)));
    cr_expect_str_eq(hex, want, "%s", rd_digest_name(kind));
}

/* FIPS 180, its examples. */
Test(digest, published_examples_hold)
{
    expect_hex(RD_DIGEST_SHA1, rd_slice_str("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    expect_hex(RD_DIGEST_SHA256, rd_slice_str("abc"),
               "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_hex(RD_DIGEST_SHA512, rd_slice_str("abc"),
               "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
               "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
    expect_hex(RD_DIGEST_SHA1, rd_slice(NULL, 0), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}

Test(digest, pieces_give_the_digest_of_the_whole)
{
    static uint8_t bytes[10000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 256);
    for (int kind = 0; kind < RD_DIGEST_COUNT; kind++) {
        struct rd_digest *digest;
        uint8_t whole[RD_DIGEST_MAX], pieces[RD_DIGEST_MAX];
        cr_assert(
            rd_digest_of((enum rd_digest_kind)kind, rd_slice(bytes, sizeof bytes), whole, NULL));
        cr_assert(rd_digest_new(&digest, (enum rd_digest_kind)kind, NULL));
        for (size_t off = 0; off < sizeof bytes; off += 625)
            cr_assert(rd_digest_update(digest, bytes + off, 625, NULL));
        cr_assert(rd_digest_end(digest, pieces, NULL));
        cr_assert_arr_eq(whole, pieces, rd_digest_size((enum rd_digest_kind)kind));
        rd_digest_free(digest);
    }
}

Test(digest, end_begins_anew)
{
    struct rd_digest *digest;
    uint8_t first[RD_DIGEST_MAX], second[RD_DIGEST_MAX];
    cr_assert(rd_digest_new(&digest, RD_DIGEST_SHA1, NULL));
    for (int round = 0; round < 2; round++) {
        cr_assert(rd_digest_update(digest, "abc", 3, NULL));
        cr_assert(rd_digest_end(digest, round == 0 ? first : second, NULL));
    }
    cr_assert_arr_eq(first, second, 20);
    rd_digest_free(digest);
    rd_digest_free(NULL);
}

Test(digest, hex_reads_back)
{
    uint8_t bytes[32], back[32];
    char hex[65];
    for (unsigned i = 0; i < 256; i += 32) {
        for (unsigned k = 0; k < 32; k++)
            bytes[k] = (uint8_t)(i + k);
        rd_digest_hex(hex, rd_slice(bytes, sizeof bytes));
        cr_assert(rd_digest_get_hex(rd_slice_str(hex), back, sizeof back));
        cr_assert_arr_eq(bytes, back, sizeof bytes);
    }
    cr_assert(rd_digest_get_hex(rd_slice_str("aBCdEF"), back, 3));
    cr_assert_arr_eq(back, "\xab\xcd\xef", 3);
}

Test(digest, hex_of_wrong_length_or_with_other_bytes_is_refused)
{
    uint8_t back[2] = {1, 2};
    static const char *const wrong[] = {"", "abc", "abcde", "abcg", "ab d", "0x12", "/:@`"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect_not(rd_digest_get_hex(rd_slice_str(wrong[i]), back, 2), "%s", wrong[i]);
    cr_assert_eq(back[0], 1, "a refusal writes nothing");
}

Test(digest, names_are_those_of_the_algorithms)
{
    cr_expect_str_eq(rd_digest_name(RD_DIGEST_SHA1), "SHA1");
    cr_expect_str_eq(rd_digest_name(RD_DIGEST_SHA256), "SHA256");
    cr_expect_str_eq(rd_digest_name(RD_DIGEST_SHA512), "SHA512");
}

Test(digest, failing_allocation_is_an_error)
{
    uint8_t sum[RD_DIGEST_MAX];
    struct rd_err err = {0};
    alloc_fault_begin(1);
    bool ok = rd_digest_of(RD_DIGEST_SHA1, rd_slice_str("abc"), sum, &err);
    struct alloc_fault_result result = alloc_fault_end();
    cr_expect(!ok && result.failed);
    cr_expect_eq(err.code, RD_ERR_MEMORY);
    cr_expect_eq(result.live, 0);
}
