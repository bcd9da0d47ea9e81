/* seal.h - encrypted and authenticated bytes as a filter over a source or a sink.
 *
 *     struct rd_seal_key key;
 *     struct rd_seal_opts opts = {.key = &key, .name = rd_slice_str("sets/1/dump.rdb")};
 *     if (!rd_seal_key_set(&key, bytes, &err) || !fill_with_random_bytes(opts.random))
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
 * The format is AES-256-GCM in frames; docs/format/repository.md specifies it. Every object has its
 * own data key, which is stored in the object's header, sealed by the caller's key. The seal covers
 * the object's name, and the data key is bound to the header: an object that was put in the place
 * of another does not open. Each frame authenticates its number, its length and whether it is the
 * last, so a frame that was changed, cut, removed, repeated or moved does not open. A source
 * returns the bytes of a frame only after it has verified the whole frame.
 *
 * Errors carry the offset of the plain bytes, and the sealed one in the text: RD_ERR_TRUNCATED if
 * the input ends too early, RD_ERR_CORRUPT if it is not a sealed object or has bytes after its end,
 * RD_ERR_CHECKSUM if a frame fails verification, RD_ERR_USAGE if no key matches, RD_ERR_UNSUPPORTED
 * for a newer version.
 *
 * The caller supplies the randomness: RD_SEAL_RANDOM unpredictable bytes, new ones for each object.
 * OpenSSL allocates the state of the cipher (a few hundred bytes) and the memory of scrypt (32 MiB)
 * itself, not through base/mem.h. Copies of keys are cleared when they are no longer needed.
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

/* How a key was derived from a passphrase. */
struct rd_seal_scrypt {
    uint8_t log_n, r, p;
    uint8_t salt[RD_SEAL_SALT];
};

struct rd_seal_key {
    uint8_t bytes[RD_SEAL_KEY];
    uint8_t id[RD_SEAL_ID];       /* identifies the key without revealing it */
    bool stretched;               /* derived from a passphrase */
    struct rd_seal_scrypt scrypt; /* then: how */
};

bool rd_seal_key_set(struct rd_seal_key *ret, const uint8_t bytes[RD_SEAL_KEY], struct rd_err *err);

/* With scrypt, N = 2^15, r = 8, p = 1: a tenth of a second and 32 MiB. */
bool rd_seal_key_stretch(struct rd_seal_key *ret, struct rd_slice passphrase,
                         const uint8_t salt[RD_SEAL_SALT], struct rd_err *err);

/* Clears the key. */
void rd_seal_key_done(struct rd_seal_key *key);

/* Writes RD_SEAL_ID_HEX bytes; returns dst. */
char *rd_seal_key_id(const struct rd_seal_key *key, char dst[RD_SEAL_ID_HEX]);

/* HMAC-SHA-256 of bytes with a key derived from this one, for data that is public but must not be
 * forged. */
bool rd_seal_hmac(const struct rd_seal_key *key, struct rd_slice bytes, uint8_t ret[RD_SEAL_HMAC],
                  struct rd_err *err);

/* The keys of a reader: several while a key is being replaced, or a passphrase (len 0: none). All
 * borrowed. */
/* Why opening failed: a key that is not in the ring. */
enum { RD_SEAL_REASON_KEY = 201 };

struct rd_seal_ring {
    const struct rd_seal_key *keys;
    size_t n_keys;
    struct rd_slice passphrase;
};

struct rd_seal_opts {
    const struct rd_seal_key *key; /* copied */
    struct rd_slice name;          /* name of the object; never copied into an error */
    uint8_t random[RD_SEAL_RANDOM];
};

/* On success the new sink owns `inner`: closing or aborting the sink does the same to `inner`. */
bool rd_seal_open_sink(struct rd_sink **ret, struct rd_sink *inner, const struct rd_seal_opts *opts,
                       struct rd_err *err);

/* On success the new source owns `inner`. On failure the caller keeps it. The header is read with
 * the first bytes; ring and name are borrowed until then. */
bool rd_seal_open_src(struct rd_src **ret, struct rd_src *inner, const struct rd_seal_ring *ring,
                      struct rd_slice name, struct rd_err *err);

/* Whether the bytes are the start of a sealed object; eight bytes are enough. */
bool rd_seal_is(struct rd_slice bytes);

/* The plain size that belongs to the size of a sealed object, if no sync shortened a frame.
 * RD_NO_OFFSET if no object can have this size. */
uint64_t rd_seal_plain_size(uint64_t sealed);

#endif
