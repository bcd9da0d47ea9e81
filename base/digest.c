#include "base/digest.h"

#include "base/mem.h"

#include <openssl/evp.h>

struct rd_digest {
    enum rd_digest_kind kind;
    EVP_MD_CTX *ctx;
};

static const struct {
    size_t size;
    const char *name;
} kinds[] = {
#define X(name, size, word) {size, word},
    RD_DIGEST_KINDS(X)
#undef X
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

bool rd_digest_of(enum rd_digest_kind kind, struct rd_slice bytes, uint8_t *ret, struct rd_err *err)
{
    struct rd_digest *digest;
    if (!rd_digest_new(&digest, kind, err))
        return false;
    bool ok =
        rd_digest_update(digest, bytes.ptr, bytes.len, err) && rd_digest_end(digest, ret, err);
    rd_digest_free(digest);
    return ok;
}

size_t rd_digest_size(enum rd_digest_kind kind)
{
    return kinds[kind].size;
}

const char *rd_digest_name(enum rd_digest_kind kind)
{
    return kinds[kind].name;
}

char *rd_digest_hex(char *dst, struct rd_slice bytes)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.len; i++) {
        dst[2 * i] = digits[bytes.ptr[i] >> 4];
        dst[2 * i + 1] = digits[bytes.ptr[i] & 15];
    }
    dst[2 * bytes.len] = '\0';
    return dst;
}

/* The value of a digit, or 16. */
static unsigned digit_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - (unsigned)'0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - (unsigned)'a' + 10 : 16;
}

bool rd_digest_get_hex(struct rd_slice text, uint8_t *ret, size_t size)
{
    if (text.len != 2 * size)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (digit_value(text.ptr[i]) > 15)
            return false;
    for (size_t i = 0; i < size; i++)
        ret[i] = (uint8_t)(digit_value(text.ptr[2 * i]) << 4 | digit_value(text.ptr[2 * i + 1]));
    return true;
}
