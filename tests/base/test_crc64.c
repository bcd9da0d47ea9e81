#include "base/crc64.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

/* The definition, bit by bit: the judge of everything faster. */
static uint64_t reference(uint64_t crc, const uint8_t *p, size_t len)
{
    for (; len > 0; len--) {
        crc ^= *p++;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) ? UINT64_C(0x95ac9329ac4bc9b5) : 0);
    }
    return crc;
}

static uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t draw(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void fill(uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)(draw() >> 32);
}

/* The polynomial of reference() is the reflection of the one in the documentation. */
Test(crc64, polynomial_is_the_documented_one_reflected)
{
    uint64_t poly = UINT64_C(0xad93d23594c935a9), reflected = 0;
    for (int bit = 0; bit < 64; bit++)
        reflected |= ((poly >> bit) & 1) << (63 - bit);
    cr_assert_eq(reflected, UINT64_C(0x95ac9329ac4bc9b5));
}

Test(crc64, every_implementation_gives_the_check_value)
{
    unsigned n_usable = 0;
    for (const struct rd_crc64_impl *impl = rd_crc64_impls(); impl->name != NULL; impl++) {
        if (!impl->usable)
            continue;
        n_usable++;
        cr_expect_eq(impl->update(0, "123456789", 9), UINT64_C(0xe9c6d914c4b8d9ca), "%s",
                     impl->name);
    }
    cr_assert_geq(n_usable, 1);
    cr_assert_eq(rd_crc64(0, "123456789", 9), UINT64_C(0xe9c6d914c4b8d9ca));
}

Test(crc64, every_implementation_equals_the_definition_at_every_length_and_alignment)
{
    enum { LENGTHS = 1024, ALIGNMENTS = 64 };
    static uint8_t bytes[LENGTHS + ALIGNMENTS];
    fill(bytes, sizeof bytes);
    const struct rd_crc64_impl *impls = rd_crc64_impls();
    for (size_t at = 0; at < ALIGNMENTS; at++) {
        uint64_t init = draw();
        uint64_t want = init;
        for (size_t len = 0; len <= LENGTHS; len++) {
            for (const struct rd_crc64_impl *impl = impls; impl->name != NULL; impl++)
                if (impl->usable)
                    cr_assert_eq(impl->update(init, bytes + at, len), want,
                                 "%s, length %zu, alignment %zu", impl->name, len, at);
            if (len < LENGTHS)
                want = reference(want, bytes + at + len, 1);
        }
    }
}

Test(crc64, every_implementation_equals_the_definition_on_long_input)
{
    enum { LEN = 1 << 20 };
    uint8_t *bytes = malloc(LEN);
    cr_assert(bytes != NULL);
    fill(bytes, LEN);
    for (size_t len = LEN - 300; len <= LEN; len += 37) {
        uint64_t want = reference(1, bytes, len);
        for (const struct rd_crc64_impl *impl = rd_crc64_impls(); impl->name != NULL; impl++)
            if (impl->usable)
                cr_assert_eq(impl->update(1, bytes, len), want, "%s, length %zu", impl->name, len);
    }
    free(bytes);
}

Test(crc64, sum_in_pieces_is_the_sum_of_the_whole)
{
    static uint8_t bytes[5000];
    fill(bytes, sizeof bytes);
    uint64_t whole = rd_crc64(7, bytes, sizeof bytes);
    for (int round = 0; round < 200; round++) {
        uint64_t crc = 7;
        for (size_t off = 0; off < sizeof bytes;) {
            size_t len = draw() % 700;
            if (len > sizeof bytes - off)
                len = sizeof bytes - off;
            crc = rd_crc64(crc, bytes + off, len);
            off += len;
        }
        cr_assert_eq(crc, whole);
    }
}

Test(crc64, combine_joins_at_every_cut)
{
    static uint8_t bytes[600];
    fill(bytes, sizeof bytes);
    uint64_t whole = rd_crc64(0, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= sizeof bytes; cut++) {
        uint64_t left = rd_crc64(0, bytes, cut);
        uint64_t right = rd_crc64(0, bytes + cut, sizeof bytes - cut);
        cr_assert_eq(rd_crc64_combine(left, right, sizeof bytes - cut), whole, "cut at %zu", cut);
    }
}

Test(crc64, split_and_undo_are_the_inverses)
{
    static uint8_t bytes[600];
    fill(bytes, sizeof bytes);
    uint64_t start = draw();
    uint64_t whole = rd_crc64(start, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= sizeof bytes; cut++) {
        size_t len = sizeof bytes - cut;
        uint64_t left = rd_crc64(start, bytes, cut);
        uint64_t right = rd_crc64(0, bytes + cut, len);
        cr_assert_eq(rd_crc64_split(whole, right, len), left, "cut at %zu", cut);
        cr_assert_eq(rd_crc64_undo(whole, bytes + cut, len), left, "cut at %zu", cut);
    }
}

Test(crc64, few_bytes_between_two_checksums_are_found)
{
    static uint8_t bytes[6];
    for (unsigned n = 1; n <= sizeof bytes; n++) {
        uint8_t found[sizeof bytes];
        uint64_t before = draw();
        fill(bytes, sizeof bytes);
        bytes[0] |= 1;
        uint64_t after = rd_crc64(before, bytes, n);
        cr_assert_eq(rd_crc64_between(before, after, sizeof bytes, found), n);
        cr_assert_arr_eq(found, bytes, n);
        cr_assert_eq(rd_crc64_between(before, after, n - 1, found), 0);
        cr_assert_eq(rd_crc64_between(before, before, n, found), 0);
    }
}

Test(crc64, products_are_those_of_polynomials)
{
    for (int i = 0; i < 50; i++) {
        uint64_t a = draw(), b = draw(), c = draw(), n = draw() % 100000;
        cr_assert_eq(rd_crc64_multiply(a, RD_CRC64_ONE), a);
        cr_assert_eq(rd_crc64_multiply(a, b), rd_crc64_multiply(b, a));
        cr_assert_eq(rd_crc64_multiply(a, b ^ c),
                     rd_crc64_multiply(a, b) ^ rd_crc64_multiply(a, c));
        uint64_t power = rd_crc64_combine(RD_CRC64_ONE, 0, n);
        cr_assert_eq(rd_crc64_multiply(a, power), rd_crc64_combine(a, 0, n));
    }
}

Test(crc64, a_single_wrong_byte_is_located)
{
    uint8_t bytes[700];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)draw();
    uint64_t right = rd_crc64(0, bytes, sizeof bytes), at;
    uint8_t change;
    for (size_t i = 0; i < sizeof bytes; i++)
        for (unsigned x = 1; x < 256; x += 1 + (unsigned)i % 17) {
            bytes[i] ^= (uint8_t)x;
            uint64_t wrong = rd_crc64(0, bytes, sizeof bytes);
            bytes[i] ^= (uint8_t)x;
            cr_assert(rd_crc64_locate(wrong, right, sizeof bytes, &at, &change), "%zu", i);
            cr_assert(at == i && change == x, "%zu %u", i, x);
        }
}

Test(crc64, no_byte_explains_two_wrong_ones_or_none)
{
    uint8_t bytes[700] = {0};
    uint64_t right = rd_crc64(0, bytes, sizeof bytes), at;
    uint8_t change;
    cr_expect_not(rd_crc64_locate(right, right, sizeof bytes, &at, &change));
    for (size_t i = 0; i + 1 < sizeof bytes; i++) {
        bytes[i] = bytes[sizeof bytes - 1] = 1;
        uint64_t wrong = rd_crc64(0, bytes, sizeof bytes);
        bytes[i] = 0;
        cr_expect_not(rd_crc64_locate(wrong, right, sizeof bytes, &at, &change), "%zu", i);
    }
    cr_expect_not(rd_crc64_locate(1, 2, 0, &at, &change), "no bytes");
}

Test(crc64, combine_with_nothing_changes_nothing)
{
    for (int i = 0; i < 50; i++) {
        uint64_t crc = draw();
        cr_assert_eq(rd_crc64_combine(crc, 0, 0), crc);
        cr_assert_eq(rd_crc64_combine(0, crc, draw()), crc);
    }
}

/* Appending zeros in two steps is appending them in one, and small steps are known to be right. */
Test(crc64, combine_is_associative_for_huge_lengths)
{
    static const uint8_t zeros[4096];
    cr_assert_eq(rd_crc64_combine(123, 0, sizeof zeros), rd_crc64(123, zeros, sizeof zeros));
    uint64_t crc = UINT64_C(0x123456789abcdef), doubled = crc;
    for (uint64_t len = 1; len <= UINT64_C(1) << 62; len <<= 1) {
        doubled = rd_crc64_combine(crc, 0, len);
        doubled = rd_crc64_combine(doubled, 0, len);
        cr_assert_eq(doubled, rd_crc64_combine(crc, 0, 2 * len), "2 * %#jx", (uintmax_t)len);
    }
    for (int i = 0; i < 200; i++) {
        uint64_t a = draw() >> 1, b = draw() >> 1;
        uint64_t steps = rd_crc64_combine(rd_crc64_combine(crc, 0, a), 0, b);
        cr_assert_eq(steps, rd_crc64_combine(crc, 0, a + b));
    }
    cr_assert_neq(rd_crc64_combine(crc, 0, UINT64_MAX - 1), crc);
}

Test(crc64, chosen_implementation_is_a_usable_one)
{
    const struct rd_crc64_impl *impl = rd_crc64_impls();
    while (impl->name != NULL && strcmp(impl->name, rd_crc64_impl_name()) != 0)
        impl++;
    cr_assert(impl->name != NULL);
    cr_assert(impl->usable);
}

static void *sum_in_thread(void *ret)
{
    *(uint64_t *)ret = rd_crc64(0, "123456789", 9);
    return NULL;
}

/* Criterion runs each test in a process of its own, so this is the first call. */
Test(crc64, first_call_may_come_from_many_threads)
{
    pthread_t threads[8];
    uint64_t sums[8] = {0};
    for (int i = 0; i < 8; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, sum_in_thread, &sums[i]), 0);
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(sums[i], UINT64_C(0xe9c6d914c4b8d9ca));
    }
}
