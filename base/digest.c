/* digest.c - what holds for every way to compute a digest. */
#include "base/digest.h"

static const struct {
    size_t size;
    const char *name;
} kinds[] = {
#define X(name, size, word) {size, word},
    RD_DIGEST_KINDS(X)
#undef X
};

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

static const char digits[] = "0123456789abcdef";

char *rd_digest_hex(char *dst, struct rd_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        dst[2 * i] = digits[bytes.ptr[i] >> 4];
        dst[2 * i + 1] = digits[bytes.ptr[i] & 15];
    }
    dst[2 * bytes.len] = '\0';
    return dst;
}

void rd_digest_draw_hex(char *dst, size_t n, uint64_t (*draw)(void *ctx), void *ctx)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = digits[draw(ctx) & 15];
    dst[n] = '\0';
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
