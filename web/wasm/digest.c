/* digest.c - base/digest.h without OpenSSL: SHA-1 and SHA-256, as FIPS 180-4 describes them. */
#include "base/digest.h"

#include "base/endian.h"
#include "base/mem.h"

#include <string.h>

enum { BLOCK = 64, LENGTH_AT = BLOCK - 8, WORDS = 8, SHA1_WORDS = 5 };

struct rd_digest {
    enum rd_digest_kind kind;
    uint32_t state[WORDS];
    uint64_t len;
    uint8_t block[BLOCK];
};

static const uint32_t begin_sha1[SHA1_WORDS] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                                                0xc3d2e1f0};
static const uint32_t begin_sha256[WORDS] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
static const uint32_t rounds[BLOCK] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t left(uint32_t x, int n)
{
    return x << n | x >> (32 - n);
}

static uint32_t right(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void add_sha1(uint32_t *state, const uint8_t *block)
{
    enum { STEPS = 80, QUARTER = 20 };
    static const uint32_t constants[] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t w[STEPS], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int t = 0; t < STEPS; t++) {
        w[t] = t < 16 ? rd_get_be32(block + 4 * t)
                      : left(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
        uint32_t f = t < QUARTER                           ? (b & c) | (~b & d)
                     : t >= 2 * QUARTER && t < 3 * QUARTER ? (b & c) | (b & d) | (c & d)
                                                           : b ^ c ^ d;
        uint32_t sum = left(a, 5) + f + e + w[t] + constants[t / QUARTER];
        e = d, d = c, c = left(b, 30), b = a, a = sum;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e;
}

static void add_sha256(uint32_t *state, const uint8_t *block)
{
    uint32_t w[BLOCK], v[WORDS];
    memcpy(v, state, sizeof v);
    for (int t = 0; t < BLOCK; t++) {
        if (t < 16) {
            w[t] = rd_get_be32(block + 4 * t);
        } else {
            uint32_t x = w[t - 15], y = w[t - 2];
            w[t] = (right(y, 17) ^ right(y, 19) ^ y >> 10) + w[t - 7] +
                   (right(x, 7) ^ right(x, 18) ^ x >> 3) + w[t - 16];
        }
        uint32_t s1 = right(v[4], 6) ^ right(v[4], 11) ^ right(v[4], 25);
        uint32_t s0 = right(v[0], 2) ^ right(v[0], 13) ^ right(v[0], 22);
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        uint32_t sum = v[7] + s1 + choice + rounds[t] + w[t];
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += sum;
        v[0] = sum + s0 + majority;
    }
    for (int i = 0; i < WORDS; i++)
        state[i] += v[i];
}

static void add_block(struct rd_digest *digest, const uint8_t *block)
{
    (digest->kind == RD_DIGEST_SHA1 ? add_sha1 : add_sha256)(digest->state, block);
}

static void begin(struct rd_digest *digest)
{
    bool sha1 = digest->kind == RD_DIGEST_SHA1;
    digest->len = 0;
    memcpy(digest->state, sha1 ? begin_sha1 : begin_sha256,
           sha1 ? sizeof begin_sha1 : sizeof begin_sha256);
}

bool rd_digest_new(struct rd_digest **ret, enum rd_digest_kind kind, struct rd_err *err)
{
    if (kind != RD_DIGEST_SHA1 && kind != RD_DIGEST_SHA256)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "%s is not supported here",
                          rd_digest_name(kind));
    struct rd_digest *digest = rd_calloc(1, sizeof *digest);
    if (digest == NULL)
        return rd_err_nomem(err, sizeof *digest);
    digest->kind = kind;
    begin(digest);
    *ret = digest;
    return true;
}

bool rd_digest_update(struct rd_digest *digest, const void *ptr, size_t len, struct rd_err *err)
{
    const uint8_t *p = ptr;
    (void)err;
    while (len > 0) {
        size_t have = digest->len % BLOCK, n = BLOCK - have < len ? BLOCK - have : len;
        if (n == BLOCK) {
            add_block(digest, p);
        } else {
            memcpy(digest->block + have, p, n);
            if (have + n == BLOCK)
                add_block(digest, digest->block);
        }
        p += n;
        len -= n;
        digest->len += n;
    }
    return true;
}

bool rd_digest_end(struct rd_digest *digest, uint8_t *ret, struct rd_err *err)
{
    static const uint8_t pad[BLOCK] = {0x80};
    size_t have = digest->len % BLOCK;
    uint8_t length[8];
    rd_put_be64(length, digest->len * 8);
    rd_digest_update(digest, pad, have < LENGTH_AT ? LENGTH_AT - have : BLOCK + LENGTH_AT - have,
                     err);
    rd_digest_update(digest, length, sizeof length, err);
    for (size_t i = 0; i < rd_digest_size(digest->kind) / 4; i++)
        rd_put_be32(ret + 4 * i, digest->state[i]);
    begin(digest);
    return true;
}

void rd_digest_free(struct rd_digest *digest)
{
    rd_free(digest);
}
