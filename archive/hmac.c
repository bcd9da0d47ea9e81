#include "archive/hmac.h"

#include "base/digest.h"

#include <string.h>

enum { BLOCK = 64 };

/* The digest of a key, each byte of it combined with one, and of a text. */
static bool keyed(struct rd_digest *digest, const uint8_t key[BLOCK], uint8_t with,
                  struct rd_slice text, uint8_t ret[ARCHIVE_HMAC], struct rd_err *err)
{
    uint8_t pad[BLOCK];
    for (size_t i = 0; i < BLOCK; i++)
        pad[i] = key[i] ^ with;
    bool ok = rd_digest_update(digest, pad, BLOCK, err) &&
              rd_digest_update(digest, text.ptr, text.len, err) && rd_digest_end(digest, ret, err);
    explicit_bzero(pad, sizeof pad);
    return ok;
}

bool archive_hmac(struct rd_slice key, struct rd_slice text, uint8_t ret[ARCHIVE_HMAC],
                  struct rd_err *err)
{
    struct rd_digest *digest;
    uint8_t block[BLOCK] = {0}, inner[ARCHIVE_HMAC];
    if (key.len > BLOCK) {
        if (!rd_digest_of(RD_DIGEST_SHA256, key, block, err))
            return false;
    } else {
        memcpy(block, key.ptr, key.len);
    }
    bool ok = rd_digest_new(&digest, RD_DIGEST_SHA256, err);
    if (ok) {
        ok = keyed(digest, block, 0x36, text, inner, err) &&
             keyed(digest, block, 0x5c, rd_slice(inner, ARCHIVE_HMAC), ret, err);
        rd_digest_free(digest);
    }
    explicit_bzero(block, sizeof block);
    return ok;
}
