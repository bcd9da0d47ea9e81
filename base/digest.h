/* digest.h - SHA-1, SHA-256 and SHA-512, computed by OpenSSL.
 *
 *     struct rd_digest *digest;
 *     uint8_t sum[RD_DIGEST_MAX];
 *     char hex[RD_DIGEST_HEX];
 *     if (!rd_digest_new(&digest, RD_DIGEST_SHA256, &err))
 *         ...
 *     ok = rd_digest_update(digest, bytes, len, &err) && ... && rd_digest_end(digest, sum, &err);
 *     rd_digest_free(digest);
 *     rd_digest_hex(hex, rd_slice(sum, rd_digest_size(RD_DIGEST_SHA256)));
 *
 * OpenSSL allocates the state of a digest itself, a few hundred bytes, not through base/mem.h.
 * Errors are RD_ERR_MEMORY, and RD_ERR_UNSUPPORTED if the system's OpenSSL configuration forbids
 * the digest.
 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include "base/api.h"
#include "base/err.h"
#include "base/slice.h"

/* name, bytes of the digest, name in a checksum list */
#define RD_DIGEST_KINDS(X)                                                                         \
    X(SHA1, 20, "SHA1")                                                                            \
    X(SHA256, 32, "SHA256")                                                                        \
    X(SHA512, 64, "SHA512")

enum rd_digest_kind {
#define X(name, size, word) RD_DIGEST_##name,
    RD_DIGEST_KINDS(X)
#undef X
        RD_DIGEST_COUNT
};

enum { RD_DIGEST_MAX = 64, RD_DIGEST_HEX = 2 * RD_DIGEST_MAX + 1 };

struct rd_digest;

bool rd_digest_new(struct rd_digest **ret, enum rd_digest_kind kind, struct rd_err *err);
bool rd_digest_update(struct rd_digest *digest, const void *ptr, size_t len, struct rd_err *err);

/* Writes rd_digest_size() bytes and resets the state: the next update starts a new message. */
bool rd_digest_end(struct rd_digest *digest, uint8_t *ret, struct rd_err *err);

/* NULL is allowed. */
void rd_digest_free(struct rd_digest *digest);

/* Computes the digest of `bytes` in one call. */
bool rd_digest_of(enum rd_digest_kind kind, struct rd_slice bytes, uint8_t *ret,
                  struct rd_err *err);

/* The size of a digest in bytes, and its name in capitals ("SHA256"). */
size_t rd_digest_size(enum rd_digest_kind kind);
const char *rd_digest_name(enum rd_digest_kind kind);

/* Writes two lower-case hexadecimal digits per byte and a terminator: 2 * bytes.len + 1 bytes.
 * Returns dst. */
char *rd_digest_hex(char *dst, struct rd_slice bytes);

/* Writes n random digits, of the last four bits of a random number each, and a terminator. */
void rd_digest_draw_hex(char *dst, size_t n, uint64_t (*draw)(void *ctx), void *ctx);

/* Decodes exactly `size` bytes from 2 * size hexadecimal digits of either case. */
bool rd_digest_get_hex(struct rd_slice text, uint8_t *ret, size_t size);

#endif
