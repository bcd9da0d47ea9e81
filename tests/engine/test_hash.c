#include <criterion/criterion.h>

#include "engine/hash.h"
#include "engine/mem.h"
#include "tests/support/chance.h"

#include <stdio.h>

enum { SEED = 4711 };

/* All hashes of one-bit changes of names of every length: each bit of the hash changes in about
 * half of them. */
Test(hash, every_bit_of_a_name_changes_half_of_the_bits)
{
    enum { MAX = 100, N = 40 };
    for (size_t len = 1; len <= MAX; len += 1 + len / 20) {
        unsigned n = 0, flips[64] = {0};
        uint64_t seed = len;
        for (unsigned round = 0; round < N; round++) {
            uint8_t name[MAX];
            for (size_t i = 0; i < len; i++)
                name[i] = (uint8_t)chance_next(&seed);
            uint64_t before = engine_hash(name, len, round);
            for (size_t bit = 0; bit < 8 * len; bit++, n++) {
                name[bit / 8] ^= (uint8_t)(1u << bit % 8);
                uint64_t change = before ^ engine_hash(name, len, round);
                cr_assert_neq(change, 0, "bit %zu of %zu bytes", bit, len);
                name[bit / 8] ^= (uint8_t)(1u << bit % 8);
                for (unsigned i = 0; i < 64; i++)
                    flips[i] += (change >> i & 1) != 0;
            }
        }
        for (unsigned i = 0; i < 64; i++)
            cr_assert(flips[i] > n * 2 / 5 && flips[i] < n * 3 / 5, "bit %u of %zu bytes: %u of %u",
                      i, len, flips[i], n);
    }
}

Test(hash, depends_on_the_length_and_the_seed_and_not_on_what_is_after)
{
    static const uint8_t zeros[128];
    uint64_t hashes[129];
    for (size_t len = 0; len <= 128; len++) {
        uint8_t *name = engine_alloc(len + 1);
        memset(name, 0, len + 1);
        hashes[len] = engine_hash(zeros, len, SEED);
        name[len] = 1;
        cr_assert_eq(engine_hash(name, len, SEED), hashes[len]);
        cr_assert_neq(engine_hash(name, len, SEED + 1), hashes[len]);
        cr_assert_neq(engine_hash(name, len, 0), engine_hash(name, len, 1));
        for (size_t i = 0; i < len; i++)
            cr_assert_neq(hashes[i], hashes[len]);
        engine_free(name);
    }
}

/* Numbered names, as they occur: low bits (position) and high bits (tag) are even. */
Test(hash, numbered_names_spread_evenly)
{
    static const char *const before[] = {"", "key:", "user:session:0000",
                                         "a name of more than thirty-two bytes, numbered: "};
    enum { N = 100000, BUCKETS = 1024 };
    for (size_t k = 0; k < sizeof before / sizeof *before; k++) {
        static unsigned low[BUCKETS], high[BUCKETS];
        memset(low, 0, sizeof low);
        memset(high, 0, sizeof high);
        for (unsigned i = 0; i < N; i++) {
            char name[128];
            int len = snprintf(name, sizeof name, "%s%u", before[k], i);
            uint64_t hash = engine_hash(name, (size_t)len, k);
            low[hash % BUCKETS]++;
            high[hash >> 54]++;
        }
        double mean = (double)N / (double)BUCKETS, chi[2] = {0, 0};
        for (size_t i = 0; i < BUCKETS; i++) {
            chi[0] += (low[i] - mean) * (low[i] - mean) / mean;
            chi[1] += (high[i] - mean) * (high[i] - mean) / mean;
        }
        for (int i = 0; i < 2; i++)
            cr_assert(chi[i] > 800 && chi[i] < 1250, "%s: chi-square %f", before[k], chi[i]);
    }
}

/* What the siphash13 of Python's sys.hash_info gives for the key 0. */
Test(hash, is_siphash_1_3)
{
    static const struct {
        const char *text;
        uint64_t hash;
    } cases[] = {{"a", 0x407448d2b89b1813},
                 {"abcdefg", 0x6db12aae9070f506},
                 {"abcdefgh", 0x3f7b849c0b8e35ea},
                 {"abcdefghijklmno", 0x1fd27a29b0e9dc7a},
                 {"ab", 0x555508cbc6add439},
                 {"abc", 0xc03bc3a0042630f2},
                 {"abcd", 0xe3d1d5fdd52aae89},
                 {"abcde", 0x251f3c725bd784a2},
                 {"abcdef", 0x62207e654289df28},
                 {"abcdefghijkl", 0x83275255f37565c1},
                 {"abcdefghijklmnop", 0x94f60d3d29e6a312},
                 {"abcdefghijklmnopqrstuvwxyzabcdefg", 0x762839d1851035c8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(engine_siphash(cases[i].text, strlen(cases[i].text), 0, 0), cases[i].hash,
                     "%s", cases[i].text);
}

Test(hash, products_are_exact)
{
    static const struct {
        uint64_t a, b, lo, hi;
    } cases[] = {{0, 5, 0, 0},
                 {UINT64_MAX, UINT64_MAX, 1, UINT64_MAX - 1},
                 {0x100000000, 0x100000000, 0, 1},
                 {0x123456789abcdef0, 0xfedcba9876543210, 0x236d88fe5618cf00, 0x121fa00ad77d7422}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct engine_hash_product p = engine_hash_multiply(cases[i].a, cases[i].b);
        cr_assert(p.lo == cases[i].lo && p.hi == cases[i].hi, "case %zu", i);
    }
    cr_assert_eq(engine_hash_below(UINT64_MAX, 10), 9);
    cr_assert_eq(engine_hash_below(0, 10), 0);
}
