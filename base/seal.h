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
 * of another does not open. The header can also say which object comes before this one. Objects of
 * version 1 are read, too; the version is part of what is authenticated, so no object can be
 * passed off as one of another version. Each frame authenticates its number, its length and whether
 * it is the last, so a frame that was changed, cut, removed, repeated or moved does not open. A
 * source returns the bytes of a frame only after it has verified the whole frame.
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
    RD_SEAL_BEFORE = 32,
    RD_SEAL_HEADER = 140,
    RD_SEAL_HEADER_1 = 108,    /* of version 1 */
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
/* Compares with an expected HMAC; the time does not depend on where they differ. */
bool rd_seal_hmac_same(const uint8_t a[RD_SEAL_HMAC], const uint8_t b[RD_SEAL_HMAC]);

/* Why opening failed: a key that is not in the ring. */
enum { RD_SEAL_REASON_KEY = 201 };

/* The keys of a reader: several while a key is being replaced, or a passphrase (len 0: none). All
 * borrowed. */
struct rd_seal_ring {
    const struct rd_seal_key *keys;
    size_t n_keys;
    struct rd_slice passphrase;
    bool elsewhere;      /* there is a key, but it was not read */
    bool allow_unsealed; /* accept what is not sealed although there is a key */
};

/* Whether only sealed objects can be trusted: there is a key, and allow_unsealed is not set. NULL:
 * no keys. */
bool rd_seal_required(const struct rd_seal_ring *ring);

/* The key of the ring that sealed an object, by the first bytes of the object (at least
 * RD_SEAL_HEADER_1). Errors are those of a source. Clear the key after use. */
bool rd_seal_find_key(struct rd_seal_key *ret, const struct rd_seal_ring *ring,
                      struct rd_slice header, struct rd_err *err);

struct rd_seal_opts {
    const struct rd_seal_key *key; /* copied */
    struct rd_slice name;          /* name of the object; never copied into an error */
    const uint8_t *before;         /* RD_SEAL_BEFORE bytes that identify the object before this one;
                                      NULL: none, or not known */
    uint8_t random[RD_SEAL_RANDOM];
};

/* On success the new sink owns `inner`: closing or aborting the sink does the same to `inner`. */
bool rd_seal_open_sink(struct rd_sink **ret, struct rd_sink *inner, const struct rd_seal_opts *opts,
                       struct rd_err *err);

/* What the header of an object says. */
struct rd_seal_info {
    unsigned version; /* 0: it was not read yet */
    bool has_before;
    uint8_t before[RD_SEAL_BEFORE];
};

/* The object that a reader expects. */
struct rd_seal_object {
    struct rd_slice name;
    size_t skip_1;             /* bytes at the beginning of the name that version 1 does not bind */
    struct rd_seal_info *info; /* set when the header is read; NULL: not wanted */
};

/* On success the new source owns `inner`. On failure the caller keeps it. The header is read with
 * the first bytes; ring, the name and the info are borrowed until then. */
bool rd_seal_open_object(struct rd_src **ret, struct rd_src *inner, const struct rd_seal_ring *ring,
                         const struct rd_seal_object *object, struct rd_err *err);

/* The same with a name alone. */
bool rd_seal_open_src(struct rd_src **ret, struct rd_src *inner, const struct rd_seal_ring *ring,
                      struct rd_slice name, struct rd_err *err);

/* Whether the bytes are the start of a sealed object; eight bytes are enough. */
bool rd_seal_is(struct rd_slice bytes);

/* The plain size of a sealed object of the newest version, if no sync shortened a frame.
 * RD_NO_OFFSET if no object can have this size. */
uint64_t rd_seal_plain_size(uint64_t sealed);

#endif
