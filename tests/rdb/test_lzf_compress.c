#include "rdb/enc/lzf_compress.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct rdb_lzf_table table;

/* The format's definition: returns the length, or 0 where the bytes break it. */
static size_t decode(const uint8_t *in, size_t len, uint8_t *out, size_t cap)
{
    size_t n = 0, at = 0;
    while (at < len) {
        unsigned c = in[at++];
        if (c < 32) {
            if (len - at < c + 1 || cap - n < c + 1)
                return 0;
            memcpy(out + n, in + at, c + 1);
            n += c + 1;
            at += c + 1;
            continue;
        }
        size_t count = (c >> 5) + 2;
        if (c >> 5 == 7) {
            if (at == len)
                return 0;
            count += in[at++];
        }
        if (at == len)
            return 0;
        size_t distance = ((size_t)(c & 31) << 8 | in[at++]) + 1;
        if (distance > n || cap - n < count)
            return 0;
        for (; count > 0; count--, n++)
            out[n] = out[n - distance];
    }
    return n;
}

static uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);

static uint32_t draw(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32) % below;
}

/* Text of few words: they come again at every distance. */
static void fill(uint8_t *p, size_t len, unsigned words)
{
    size_t at = 0;
    while (at < len) {
        uint64_t word = draw(words) * UINT64_C(0x9e3779b97f4a7c15);
        for (size_t n = 1 + word % 7; n > 0 && at < len; n--, word >>= 5)
            p[at++] = (uint8_t)('a' + (word >> 20) % 26);
    }
}

/* Compresses and decodes; returns the compressed length. Allocated to the byte, so that a sanitizer
 * sees a step outside. */
static size_t there_and_back(const uint8_t *in, size_t len, size_t cap)
{
    uint8_t *exact = malloc(len), *out = malloc(cap), *back = malloc(len);
    memcpy(exact, in, len);
    size_t n = rdb_lzf_compress(&table, exact, len, out, cap);
    cr_assert_leq(n, cap);
    if (n > 0) {
        cr_assert_eq(decode(out, n, back, len), len);
        cr_assert_arr_eq(back, exact, len);
    }
    free(exact);
    free(out);
    free(back);
    return n;
}

Test(lzf_compress, every_length_of_text_decodes_to_what_it_was)
{
    static uint8_t text[40000];
    for (unsigned words = 1; words <= 10000; words *= 10) {
        fill(text, sizeof text, words);
        for (size_t len = 5; len < 600; len++)
            there_and_back(text + draw(1000), len, len + len / 32 + 1);
        for (size_t len = 600; len < sizeof text; len += 1 + draw(4000))
            cr_assert_gt(there_and_back(text, len, len + len / 32 + 1), 0);
    }
}

Test(lzf_compress, zeros_of_every_length_shrink_to_references_of_264_bytes)
{
    static uint8_t zeros[5000];
    for (size_t len = 21; len < sizeof zeros; len++) {
        size_t n = there_and_back(zeros, len, len - 4);
        cr_assert_gt(n, 0, "%zu", len);
        cr_assert_leq(n, 2 + 3 * (1 + len / 264) + 5, "%zu: %zu", len, n);
    }
}

Test(lzf_compress, noise_does_not_fit_in_less_than_itself)
{
    static uint8_t noise[100000];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)draw(256);
    for (size_t len = 5; len < sizeof noise; len = len * 3 / 2 + 1)
        cr_assert_eq(there_and_back(noise, len, len - 4), 0, "%zu", len);
}

Test(lzf_compress, a_repetition_is_found_up_to_8192_bytes_back_and_not_beyond)
{
    static uint8_t text[9000];
    for (size_t distance = 8180; distance < 8200; distance++) {
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = (uint8_t)draw(256);
        memcpy(text + distance, text, 264);
        size_t len = distance + 264;
        size_t n = there_and_back(text, len, len + len / 32 + 1);
        if (distance <= 8192)
            cr_assert_lt(n, len - 200 + len / 32, "%zu", distance);
        else
            cr_assert_geq(n, len, "%zu", distance);
    }
}

Test(lzf_compress, every_room_that_is_too_small_is_refused_without_a_byte_outside)
{
    uint8_t text[400];
    fill(text, sizeof text, 30);
    size_t needed = there_and_back(text, sizeof text, sizeof text);
    cr_assert_gt(needed, 0);
    for (size_t cap = 0; cap < sizeof text; cap++)
        cr_assert_eq(there_and_back(text, sizeof text, cap), cap < needed ? 0 : needed);
}

Test(lzf_compress, the_output_does_not_depend_on_what_the_table_held)
{
    static uint8_t text[20000], first[20000], again[20000];
    fill(text, sizeof text, 200);
    for (size_t len = 25; len < sizeof text; len = len * 2 + 3) {
        memset(&table, 0, sizeof table);
        size_t n = rdb_lzf_compress(&table, text, len, first, len);
        memset(&table, 0xa5, sizeof table);
        cr_assert_eq(rdb_lzf_compress(&table, text, len, again, len), n);
        cr_assert_arr_eq(first, again, n);
    }
}

Test(lzf_compress, inputs_of_less_than_four_bytes_are_refused)
{
    uint8_t out[16];
    for (size_t len = 0; len < 4; len++)
        cr_assert_eq(rdb_lzf_compress(&table, (const uint8_t *)"aaaa", len, out, sizeof out), 0);
}

/* Noise is passed in steps longer than the longest match: when one is seen, more bytes may be
 * before it than a single reference can take. */
Test(lzf_compress, a_match_may_begin_long_before_it_is_seen)
{
    enum { NOISE = 100000, REACH = 8192, CAP = NOISE + REACH + NOISE / 16 };
    static uint8_t in[NOISE + REACH];
    unsigned n_seen = 0;
    for (size_t i = 0; i < NOISE; i++)
        in[i] = (uint8_t)draw(256);
    for (size_t distance = 1000; distance <= REACH; distance += 23) {
        memcpy(in + NOISE, in + NOISE - distance, distance);
        n_seen += there_and_back(in, NOISE + distance, CAP) < NOISE + distance;
    }
    cr_expect_gt(n_seen, 0);
}
