#include "tests/support/seal_1.h"

#include "base/endian.h"

#include <openssl/evp.h>
#include <stdlib.h>

static void must(bool ok)
{
    if (!ok)
        abort();
}

struct sealing {
    const uint8_t *key, *nonce;
    struct rd_slice bound[2];
    struct rd_slice in;
};

/* Appends the encrypted bytes and the tag. */
static void encrypt(const struct sealing *s, struct rd_buf *ret)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    uint8_t out[RD_SEAL_FRAME], tag[16];
    int n = 0;
    must(ctx != NULL && s->in.len <= sizeof out &&
         EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, s->key, s->nonce) == 1);
    for (size_t i = 0; i < 2; i++)
        must(s->bound[i].len == 0 ||
             EVP_EncryptUpdate(ctx, NULL, &n, s->bound[i].ptr, (int)s->bound[i].len) == 1);
    must(EVP_EncryptUpdate(ctx, out, &n, s->in.ptr, (int)s->in.len) == 1 &&
         EVP_EncryptFinal_ex(ctx, out + n, &n) == 1 &&
         EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, sizeof tag, tag) == 1);
    EVP_CIPHER_CTX_free(ctx);
    must(rd_buf_add(ret, out, s->in.len) && rd_buf_add(ret, tag, sizeof tag));
}

void seal_1(const struct rd_seal_key *key, const char *name, const char *text, struct rd_buf *ret)
{
    enum { FIXED = 48, NONCE = 12, LAST = 1 };
    static const uint8_t data_key[RD_SEAL_KEY] = {5, 4, 3}, nonce[NONCE] = {9};
    static const uint8_t last_nonce[NONCE] = {0, 0, 0, 0, 0, 0, 0, 0, LAST};
    uint8_t header[FIXED] = "RDSEAL\x01\n\x01", length[4];
    rd_put_le32(header + 12, RD_SEAL_FRAME);
    memcpy(header + 32, key->id, RD_SEAL_ID);
    must(rd_buf_add(ret, header, FIXED) && rd_buf_add(ret, nonce, NONCE));
    encrypt(&(struct sealing){.key = key->bytes,
                              .nonce = nonce,
                              .bound = {rd_slice(header, FIXED), rd_slice_str(name)},
                              .in = rd_slice(data_key, sizeof data_key)},
            ret);
    rd_put_le32(length, (uint32_t)strlen(text) | 0x80000000u);
    must(rd_buf_add(ret, length, sizeof length));
    encrypt(&(struct sealing){.key = data_key,
                              .nonce = last_nonce,
                              .bound = {rd_slice(length, sizeof length)},
                              .in = rd_slice_str(text)},
            ret);
}
