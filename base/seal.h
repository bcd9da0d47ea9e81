/* seal.h - encrypted and authenticated bytes as a filter over a source or a sink.
 *
 *     struct rd_seal_key key;
 *     struct rd_seal_opts opts = {.key = &key, .name = rd_slice_str("sets/1/dump.rdb")};
 *     if (!rd_seal_key_set(&key, bytes, &err) || !fill_with_chance(opts.random))
 *         ...
 *     if (!rd_seal_open_sink(&sealed, file, &opts, &err))
 *         ...
 *     ... rd_sink_write(sealed, ...) ... rd_sink_close(sealed, &err);
 *
 *     const struct rd_seal_ring ring = {.keys = &key, .n_keys = 1};
 *     if (!rd_seal_open_src(&plain, file, &ring, opts.name, &err))
 *         ...
 *     ... rd_src_need(plain, ...) ...
 *
 * The format is AES-256-GCM in frames; docs/format/repository.md has the bytes. Every object has a
 * data key of its own, which is stored in the object's header, sealed by the caller's key. The
 * object's name is bound into that seal, and the data key is bound to the header: an object that
 * has the place of another does not open. The number of a frame, its length and whether it is the
 * last are bound into the frame, so that a frame that is changed, cut, missing, repeated or moved
 * does not open. A source hands out the bytes of a frame after it has verified all of it.
 *
 * Errors carry the offset of the plain bytes, and the sealed one in the text: RD_ERR_TRUNCATED
 * where the input ends too early, RD_ERR_CORRUPT where it is not a sealed object or has bytes after
 * its end, RD_ERR_CHECKSUM where a frame does not verify, RD_ERR_USAGE where no key fits,
 * RD_ERR_UNSUPPORTED for a newer version.
 *
 * Chance comes from the caller: RD_SEAL_RANDOM bytes that nobody can guess, new ones for each
 * object. OpenSSL keeps the state of the cipher, some hundred bytes, and what scrypt needs (32 MiB)
 * in memory of its own, which does not pass base/mem.h. Copies of keys are cleared when they are no
 * longer needed.
 */
#ifndef BASE_SEAL_H
#define BASE_SEAL_H

#include "base/api.h"
#include "base/err.h"
#include "base/sink.h"
#include "base/slice.h"
#include "base/src.h"

enum {
    RD_SEAL_KEY = 32,
    RD_SEAL_ID = 16,
    RD_SEAL_ID_HEX = 2 * RD_SEAL_ID + 1,
    RD_SEAL_SALT = 16,
    RD_SEAL_HMAC = 32,
    RD_SEAL_RANDOM = RD_SEAL_KEY + 12,
    RD_SEAL_HEADER = 108,
    RD_SEAL_FRAME = 64 * 1024, /* plain bytes of a frame, at most */
    RD_SEAL_FRAME_EXTRA = 20   /* bytes that a frame adds to them */
};

/* How a key was made of a passphrase. */
struct rd_seal_scrypt {
    uint8_t log_n, r, p;
    uint8_t salt[RD_SEAL_SALT];
};

struct rd_seal_key {
    uint8_t bytes[RD_SEAL_KEY];
    uint8_t id[RD_SEAL_ID];       /* names the key and does not give it away */
    bool stretched;               /* made of a passphrase */
    struct rd_seal_scrypt scrypt; /* then: how */
};

RD_API bool rd_seal_key_set(struct rd_seal_key *ret, const uint8_t bytes[RD_SEAL_KEY],
                            struct rd_err *err);

/* With scrypt, N = 2^15, r = 8, p = 1: a tenth of a second and 32 MiB. */
RD_API bool rd_seal_key_stretch(struct rd_seal_key *ret, struct rd_slice passphrase,
                                const uint8_t salt[RD_SEAL_SALT], struct rd_err *err);

/* Clears the key. */
RD_API void rd_seal_key_done(struct rd_seal_key *key);

/* Writes RD_SEAL_ID_HEX bytes; returns dst. */
RD_API char *rd_seal_key_id(const struct rd_seal_key *key, char dst[RD_SEAL_ID_HEX]);

/* HMAC-SHA-256 of bytes by a key derived from this one, for what is not secret but must not be
 * forged. */
RD_API bool rd_seal_hmac(const struct rd_seal_key *key, struct rd_slice bytes,
                         uint8_t ret[RD_SEAL_HMAC], struct rd_err *err);

/* What a reader has: several keys while one is replaced by the next, or a passphrase (len 0: none).
 * All borrowed. */
struct rd_seal_ring {
    const struct rd_seal_key *keys;
    size_t n_keys;
    struct rd_slice passphrase;
};

struct rd_seal_opts {
    const struct rd_seal_key *key; /* copied */
    struct rd_slice name;          /* what the object is called; copied into no error */
    uint8_t random[RD_SEAL_RANDOM];
};

/* The new sink owns inner once this succeeds: closing one closes the other, and aborting too. */
RD_API bool rd_seal_open_sink(struct rd_sink **ret, struct rd_sink *inner,
                              const struct rd_seal_opts *opts, struct rd_err *err);

/* The new source owns inner once this succeeds; where it fails, inner stays with the caller.
 * The header is read with the first bytes; ring and name are borrowed until then. */
RD_API bool rd_seal_open_src(struct rd_src **ret, struct rd_src *inner,
                             const struct rd_seal_ring *ring, struct rd_slice name,
                             struct rd_err *err);

/* Whether bytes begin as a sealed object does; eight suffice. */
RD_API bool rd_seal_is(struct rd_slice bytes);

/* The size of what is sealed, by the size of the sealed object where no frame was cut short by a
 * sync; RD_NO_OFFSET where no object has this size. */
RD_API uint64_t rd_seal_plain_size(uint64_t sealed);

#endif
