/* Decoding at once, in parts, and verifying without decoding must all say the same. */
#include "rdb/enc/lzf.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "rdb/enc/lzf_compress.h"
#include "tests/support/guard.h"

enum { PLAIN_MAX = 20000 };

static struct rdb_lzf_table table;
static uint8_t plain[PLAIN_MAX];
static uint8_t packed[PLAIN_MAX + PLAIN_MAX / 16 + 64];

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Text with repetitions near and far; `spread` is how random it is. */
static size_t make_input(size_t len, unsigned spread, uint64_t seed)
{
    for (size_t i = 0; i < len; i++) {
        uint64_t r = next_random(&seed);
        plain[i] = r % 8 < spread || i < 40 ? (uint8_t)('a' + r / 8 % 16)
                                            : plain[i - 1 - r / 64 % (i < 9000 ? i : 9000)];
    }
    return rdb_lzf_compress(&table, plain, len, packed, sizeof packed);
}

/* As the reader does it: some input at a time, and an output that slides. */
static bool decode_in_parts(const uint8_t *in, size_t len, size_t out_len, size_t part)
{
    size_t room = RDB_LZF_REACH + out_len + 2 * RDB_LZF_TOKEN_OUT;
    uint8_t *out = malloc(room + RDB_LZF_SLACK);
    uint8_t *wr = out;
    const uint8_t *shown = in, *end = in + len;
    bool ok = true;
    cr_assert_not_null(out);
    while (ok && in < end) {
        const uint8_t *before = in;
        shown = (size_t)(end - shown) < part ? end : shown + part;
        ok = rdb_lzf_decode_some(&in, shown, out, &wr, out + room);
        ok = ok && (size_t)(wr - out) <= out_len && (in != before || shown != end);
    }
    ok = ok && (size_t)(wr - out) == out_len;
    free(out);
    return ok;
}

/* What all of them say; the input ends where memory ends. */
static bool verdict(const uint8_t *bytes, size_t len, size_t out_len, bool equal)
{
    uint8_t *in = guard_new(bytes, len);
    uint8_t *out = malloc(out_len + RDB_LZF_SLACK);
    cr_assert_not_null(out);
    bool ok = rdb_lzf_decode(in, len, out, out_len);
    struct rdb_lzf_job jobs[7];
    for (size_t i = 0; i < 7; i++)
        jobs[i] = (struct rdb_lzf_job){.in = in, .len = len, .out_len = out_len};
    jobs[2].out_len++;
    rdb_lzf_verify_many(jobs, 7);
    cr_assert_eq(rdb_lzf_verify(in, len, out_len), ok);
    cr_assert_eq(decode_in_parts(in, len, out_len, 1), ok);
    cr_assert_eq(decode_in_parts(in, len, out_len, 700), ok);
    for (size_t i = 0; i < 7; i++)
        cr_assert_eq(!jobs[i].bad, rdb_lzf_verify(in, len, jobs[i].out_len), "job %zu", i);
    if (ok && equal)
        cr_assert_eq(memcmp(out, plain, out_len), 0);
    free(out);
    guard_free(in);
    return ok;
}

Test(lzf, decodes_what_was_compressed)
{
    for (size_t len = 1; len < PLAIN_MAX; len += 1 + len / 5)
        for (unsigned spread = 0; spread < 6; spread += 2) {
            size_t n = make_input(len, spread, len + spread);
            if (n > 0)
                cr_assert(verdict(packed, n, len, true), "%zu", len);
        }
}

Test(lzf, refuses_every_prefix)
{
    size_t len = 3000, n = make_input(len, 1, 7);
    cr_assert_gt(n, 100);
    for (size_t i = 0; i < n; i++)
        cr_assert_not(verdict(packed, i, len, false), "%zu", i);
}

Test(lzf, refuses_another_length)
{
    size_t len = 500, n = make_input(len, 1, 9);
    for (size_t other = 0; other < 800; other++)
        cr_assert_eq(verdict(packed, n, other, true), other == len, "%zu", other);
}

Test(lzf, says_the_same_of_mutated_input_in_every_way)
{
    uint64_t seed = 11;
    unsigned n_sound = 0;
    for (int round = 0; round < 3000; round++) {
        size_t len = 40 + next_random(&seed) % 1500;
        size_t n = make_input(len, (unsigned)round % 5, next_random(&seed));
        if (n == 0)
            continue;
        size_t at = next_random(&seed) % n;
        packed[at] = (uint8_t)(packed[at] ^ (1u << next_random(&seed) % 8));
        n_sound += verdict(packed, n, len, false);
    }
    /* A literal that changed still decodes. */
    cr_assert_gt(n_sound, 100);
}

Test(lzf, copies_of_every_distance_and_length_overlap_as_they_should)
{
    for (size_t dist = 1; dist <= 40; dist++)
        for (size_t n = 3; n <= 264; n += n < 20 ? 1 : 61) {
            uint8_t in[64];
            size_t len = 0, out_len = 0;
            for (size_t left = 40; left > 0; left -= left < 32 ? left : 32) {
                size_t k = left < 32 ? left : 32;
                in[len++] = (uint8_t)(k - 1);
                for (size_t i = 0; i < k; i++, out_len++)
                    in[len++] = plain[out_len] = (uint8_t)('A' + out_len);
            }
            in[len++] = (uint8_t)((n < 9 ? (n - 2) << 5 : 7 << 5) | (dist - 1) >> 8);
            if (n >= 9)
                in[len++] = (uint8_t)(n - 9);
            in[len++] = (uint8_t)(dist - 1);
            for (size_t i = 0; i < n; i++, out_len++)
                plain[out_len] = plain[out_len - dist];
            cr_assert(verdict(in, len, out_len, true), "%zu back, %zu", dist, n);
        }
}

Test(lzf, refuses_copies_from_before_the_start)
{
    static const uint8_t exact[] = {0, 'a', 0x20, 0}, before[] = {0, 'a', 0x20, 1};
    plain[0] = plain[1] = plain[2] = plain[3] = 'a';
    cr_expect(verdict(exact, sizeof exact, 4, true));
    cr_expect_not(verdict(before, sizeof before, 4, false));
}
