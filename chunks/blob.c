#include "chunks/blob_impl.h"

#include "archive/store.h"
#include "base/digest.h"
#include "base/pump.h"

#include <stdio.h>

enum { CODEC_RAW, CODEC_ZSTD };

bool chunks_codec_init(struct chunks_codec *codec, int level, struct rd_err *err)
{
    return rd_zstd_blocks_new(&codec->zstd, level, err);
}

void chunks_codec_done(struct chunks_codec *codec)
{
    for (size_t i = 0; i < codec->n_keys; i++)
        rd_seal_key_done(&codec->keys[i]);
    codec->n_keys = 0;
    rd_zstd_blocks_free(codec->zstd);
    codec->zstd = NULL;
    rd_buf_done(&codec->work);
}

bool chunks_blob_name(const uint8_t key[CHUNKS_KEY], enum chunks_kind kind, struct rd_slice plain,
                      uint8_t ret[CHUNKS_NAME], struct rd_err *err)
{
    uint8_t sum[RD_DIGEST_MAX], what = (uint8_t)kind;
    struct rd_digest *digest;
    if (!rd_digest_new(&digest, RD_DIGEST_SHA256, err))
        return false;
    /* Half of the digest: it cannot be extended to that of longer bytes. */
    bool ok =
        rd_digest_update(digest, key, CHUNKS_KEY, err) && rd_digest_update(digest, &what, 1, err) &&
        rd_digest_update(digest, plain.ptr, plain.len, err) && rd_digest_end(digest, sum, err);
    rd_digest_free(digest);
    if (ok)
        memcpy(ret, sum, CHUNKS_NAME);
    return ok;
}

char *chunks_blob_hex(const uint8_t name[CHUNKS_NAME], char ret[CHUNKS_NAME_HEX])
{
    return rd_digest_hex(ret, rd_slice(name, CHUNKS_NAME));
}

static bool bind(const struct chunks_codec *codec, const char *name, char ret[ARCHIVE_NAME_MAX],
                 struct rd_err *err)
{
    int len = snprintf(ret, ARCHIVE_NAME_MAX, "%s/chunks/%s", codec->target, name);
    return (len > 0 && len < ARCHIVE_NAME_MAX) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of an object is too long");
}

bool chunks_seal(struct chunks_codec *codec, const char *name, struct rd_slice plain,
                 struct rd_buf *ret, struct rd_err *err)
{
    char bound[ARCHIVE_NAME_MAX];
    struct rd_seal_opts opts = {.key = codec->key};
    struct rd_sink *buf, *sealed;
    if (codec->key == NULL)
        return rd_buf_add(ret, plain.ptr, plain.len) || rd_err_nomem(err, plain.len);
    if (!bind(codec, name, bound, err) || !codec->random(opts.random, sizeof opts.random, err) ||
        !rd_sink_open_buf(&buf, ret, NULL, err))
        return false;
    opts.name = rd_slice_str(bound);
    bool ok = rd_seal_open_sink(&sealed, buf, &opts, err);
    explicit_bzero(opts.random, sizeof opts.random);
    if (!ok) {
        rd_sink_abort(buf);
        return false;
    }
    rd_sink_write(sealed, plain.ptr, plain.len);
    return rd_sink_close(sealed, err);
}

/* Finds the key once: one of a passphrase takes a tenth of a second. */
static const struct rd_seal_key *find_key(struct chunks_codec *codec, struct rd_slice stored,
                                          struct rd_err *err)
{
    struct rd_seal_key key;
    const struct rd_seal_ring known = {.keys = codec->keys, .n_keys = codec->n_keys};
    bool ok = codec->n_keys > 0 && rd_seal_find_key(&key, &known, stored, NULL);
    bool is_new = !ok;
    ok = ok || rd_seal_find_key(&key, codec->ring, stored, err);
    if (!ok)
        return NULL;
    size_t i = 0;
    while (i < codec->n_keys && memcmp(codec->keys[i].id, key.id, RD_SEAL_ID) != 0)
        i++;
    if (is_new || i == codec->n_keys) {
        i = codec->n_keys < CHUNKS_KEYS ? codec->n_keys++ : CHUNKS_KEYS - 1;
        codec->keys[i] = key;
    }
    rd_seal_key_done(&key);
    return &codec->keys[i];
}

bool chunks_unseal(struct chunks_codec *codec, const char *name, struct rd_slice stored,
                   struct rd_buf *ret, struct rd_err *err)
{
    char bound[ARCHIVE_NAME_MAX];
    struct rd_src *memory, *src;
    if (!codec->sealed)
        return rd_buf_add(ret, stored.ptr, stored.len) || rd_err_nomem(err, stored.len);
    const struct rd_seal_key *key = find_key(codec, stored, err);
    if (key == NULL || !bind(codec, name, bound, err) ||
        !rd_src_open_memory(&memory, stored, NULL, err))
        return false;
    const struct rd_seal_ring ring = {.keys = key, .n_keys = 1};
    if (!rd_seal_open_src(&src, memory, &ring, rd_slice_str(bound), err)) {
        rd_src_close(memory);
        return false;
    }
    bool ok = rd_pump_to_buf(src, CHUNKS_STORED_MAX, ret, err);
    rd_src_close(src);
    return ok;
}

bool chunks_blob_encode(struct chunks_codec *codec, const uint8_t name[CHUNKS_NAME],
                        struct rd_slice plain, struct rd_buf *ret, struct rd_err *err)
{
    char hex[CHUNKS_NAME_HEX];
    struct rd_buf *work = &codec->work;
    rd_buf_reset(work);
    bool ok = (rd_buf_add_byte(work, CODEC_ZSTD) || rd_err_nomem(err, 1)) &&
              rd_zstd_pack(codec->zstd, plain, work, err);
    if (ok && work->len > plain.len) {
        rd_buf_reset(work);
        ok = (rd_buf_add_byte(work, CODEC_RAW) && rd_buf_add(work, plain.ptr, plain.len)) ||
             rd_err_nomem(err, plain.len);
    }
    return ok && chunks_seal(codec, chunks_blob_hex(name, hex), rd_buf_slice(work), ret, err);
}

static bool unpack(struct chunks_codec *codec, const struct chunks_blob *blob, struct rd_slice in,
                   struct rd_buf *ret, struct rd_err *err)
{
    struct rd_slice body = rd_slice(in.ptr + 1, in.len - 1);
    if (in.len > 0 && in.ptr[0] == CODEC_ZSTD)
        return rd_zstd_unpack(codec->zstd, body, blob->raw, ret, err);
    if (in.len == 0 || in.ptr[0] != CODEC_RAW || body.len != blob->raw)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "it has an unknown codec");
    return rd_buf_add(ret, body.ptr, body.len) || rd_err_nomem(err, body.len);
}

static bool has_name(const uint8_t key[CHUNKS_KEY], const struct chunks_blob *blob,
                     struct rd_slice plain, struct rd_err *err)
{
    uint8_t name[CHUNKS_NAME];
    if (!chunks_blob_name(key, (enum chunks_kind)blob->kind, plain, name, err))
        return false;
    return memcmp(name, blob->name, CHUNKS_NAME) == 0 ||
           rd_err_set(err, RD_ERR_CHECKSUM, RD_NO_OFFSET, "its bytes are not those of its name");
}

/* A seal binds the name of the blob: its bytes are those that were stored under this name. */
static bool decode(struct chunks_codec *codec, const uint8_t key[CHUNKS_KEY],
                   const struct chunks_blob *blob, struct rd_slice stored, struct rd_buf *ret,
                   struct rd_err *err)
{
    char hex[CHUNKS_NAME_HEX];
    size_t before = ret->len;
    rd_buf_reset(&codec->work);
    if (!chunks_unseal(codec, chunks_blob_hex(blob->name, hex), stored, &codec->work, err) ||
        !unpack(codec, blob, rd_buf_slice(&codec->work), ret, err))
        return false;
    return (codec->sealed && codec->whole) ||
           has_name(key, blob, rd_slice(ret->ptr + before, ret->len - before), err);
}

bool chunks_blob_decode(struct chunks_codec *codec, const uint8_t key[CHUNKS_KEY],
                        const struct chunks_blob *blob, struct rd_slice stored, struct rd_buf *ret,
                        struct rd_err *err)
{
    char hex[CHUNKS_NAME_HEX];
    size_t before = ret->len;
    struct rd_err why = {0};
    if (decode(codec, key, blob, stored, ret, &why))
        return true;
    ret->len = before;
    if (why.code == RD_ERR_MEMORY)
        rd_err_adopt(err, &why);
    return rd_err_set(err, RD_ERR_CHECKSUM, RD_NO_OFFSET, "the chunk %s is damaged: %s",
                      chunks_blob_hex(blob->name, hex), why.text);
}
