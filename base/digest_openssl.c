/* digest_openssl.c - digests that OpenSSL computes. */
#include "base/digest.h"

#include "base/mem.h"

#include <openssl/evp.h>

struct rd_digest {
    enum rd_digest_kind kind;
    EVP_MD_CTX *ctx;
};

static const EVP_MD *algorithm(enum rd_digest_kind kind)
{
    switch (kind) {
    case RD_DIGEST_SHA1:
        return EVP_sha1();
    case RD_DIGEST_SHA256:
        return EVP_sha256();
    case RD_DIGEST_SHA512:
        return EVP_sha512();
    case RD_DIGEST_COUNT:
        break;
    }
    return NULL;
}

static bool begin(struct rd_digest *digest, struct rd_err *err)
{
    if (EVP_DigestInit_ex(digest->ctx, algorithm(digest->kind), NULL) == 1)
        return true;
    return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "OpenSSL does not offer %s",
                      rd_digest_name(digest->kind));
}

/* A digest with room for its state; NULL when memory is short. */
static struct rd_digest *new_bare(enum rd_digest_kind kind)
{
    struct rd_digest *digest = rd_calloc(1, sizeof *digest);
    if (digest == NULL)
        return NULL;
    digest->kind = kind;
    digest->ctx = EVP_MD_CTX_new();
    if (digest->ctx == NULL) {
        rd_free(digest);
        return NULL;
    }
    return digest;
}

bool rd_digest_new(struct rd_digest **ret, enum rd_digest_kind kind, struct rd_err *err)
{
    struct rd_digest *digest = new_bare(kind);
    if (digest == NULL) {
        rd_err_nomem(err, sizeof *digest);
        return false;
    }
    if (!begin(digest, err)) {
        rd_digest_free(digest);
        return false;
    }
    *ret = digest;
    return true;
}

static bool failed(const struct rd_digest *digest, struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "OpenSSL failed to compute %s",
                      rd_digest_name(digest->kind));
}

bool rd_digest_update(struct rd_digest *digest, const void *ptr, size_t len, struct rd_err *err)
{
    if (len > 0 && EVP_DigestUpdate(digest->ctx, ptr, len) != 1)
        return failed(digest, err);
    return true;
}

bool rd_digest_end(struct rd_digest *digest, uint8_t *ret, struct rd_err *err)
{
    uint8_t sum[EVP_MAX_MD_SIZE];
    if (EVP_DigestFinal_ex(digest->ctx, sum, NULL) != 1)
        return failed(digest, err);
    if (!begin(digest, err))
        return false;
    memcpy(ret, sum, rd_digest_size(digest->kind));
    return true;
}

void rd_digest_free(struct rd_digest *digest)
{
    if (digest == NULL)
        return;
    EVP_MD_CTX_free(digest->ctx);
    rd_free(digest);
}
