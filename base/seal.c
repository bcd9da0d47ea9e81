#include "base/seal.h"

#include "base/digest.h"
#include "base/endian.h"
#include "base/mem.h"

#include <inttypes.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

enum {
    VERSION = 2,
    VERSION_1 = 1,
    BY_KEY = 1,
    BY_PASSPHRASE = 2,
    NONCE = 12,
    TAG = 16,
    LENGTH = 4,

    AT_VERSION = 6,
    AT_KIND = 8,
    AT_LOG_N = 9,
    AT_FRAME = 12,
    AT_SALT = 16,
    AT_ID = 32,
    AT_NONCE = 48,
    AT_KEY = 60,
    AT_TAG = 92,
    AT_BEFORE = 108,

    BOUND_PARTS = 3,

    LOG_N = 15,
    LOG_N_MAX = 18,
    R = 8,
    R_MAX = 16,
    P_MAX = 16,
    WORK_MAX = 1 << 22 /* N r p: 16 times that of a new key */
};

#define LAST 0x80000000u

static const uint8_t magic[8] = {'R', 'D', 'S', 'E', 'A', 'L', VERSION, '\n'};

_Static_assert(AT_TAG + TAG == RD_SEAL_HEADER_1 && AT_TAG + TAG == AT_BEFORE &&
                   AT_BEFORE + RD_SEAL_BEFORE == RD_SEAL_HEADER,
               "the header's fields");
_Static_assert(RD_SEAL_FRAME_EXTRA == LENGTH + TAG, "a frame's fields");

static bool openssl_failed(struct rd_err *err, const char *what)
{
    return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "OpenSSL cannot do %s", what);
}

/* ---- keys ---- */

static bool set_id(struct rd_seal_key *key, struct rd_err *err)
{
    static const char label[] = "redoubt key id 1";
    uint8_t text[sizeof label + RD_SEAL_KEY], sum[RD_DIGEST_MAX];
    memcpy(text, label, sizeof label);
    memcpy(text + sizeof label, key->bytes, RD_SEAL_KEY);
    bool ok = rd_digest_of(RD_DIGEST_SHA256, rd_slice(text, sizeof text), sum, err);
    explicit_bzero(text, sizeof text);
    if (ok)
        memcpy(key->id, sum, RD_SEAL_ID);
    return ok;
}

bool rd_seal_key_set(struct rd_seal_key *ret, const uint8_t bytes[RD_SEAL_KEY], struct rd_err *err)
{
    struct rd_seal_key key = {0};
    memcpy(key.bytes, bytes, RD_SEAL_KEY);
    bool ok = set_id(&key, err);
    if (ok)
        *ret = key;
    rd_seal_key_done(&key);
    return ok;
}

static bool stretch(struct rd_seal_key *ret, struct rd_slice passphrase,
                    const struct rd_seal_scrypt *how, struct rd_err *err)
{
    struct rd_seal_key key = {.stretched = true, .scrypt = *how};
    uint64_t n = (uint64_t)1 << how->log_n;
    uint64_t max = 128 * n * how->r + (1 << 22);
    if (EVP_PBE_scrypt((const char *)passphrase.ptr, passphrase.len, how->salt, RD_SEAL_SALT, n,
                       how->r, how->p, max, key.bytes, RD_SEAL_KEY) != 1)
        return openssl_failed(err, "scrypt");
    bool ok = set_id(&key, err);
    if (ok)
        *ret = key;
    rd_seal_key_done(&key);
    return ok;
}

bool rd_seal_key_stretch(struct rd_seal_key *ret, struct rd_slice passphrase,
                         const uint8_t salt[RD_SEAL_SALT], struct rd_err *err)
{
    struct rd_seal_scrypt how = {.log_n = LOG_N, .r = R, .p = 1};
    memcpy(how.salt, salt, RD_SEAL_SALT);
    if (passphrase.len == 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the passphrase is empty");
    return stretch(ret, passphrase, &how, err);
}

void rd_seal_key_done(struct rd_seal_key *key)
{
    explicit_bzero(key, sizeof *key);
}

char *rd_seal_key_id(const struct rd_seal_key *key, char dst[RD_SEAL_ID_HEX])
{
    return rd_digest_hex(dst, rd_slice(key->id, RD_SEAL_ID));
}

static bool hmac(const uint8_t key[RD_SEAL_KEY], struct rd_slice bytes, uint8_t ret[RD_SEAL_HMAC])
{
    char sha256[] = "SHA256";
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, sha256, 0),
        OSSL_PARAM_construct_end(),
    };
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *ctx = mac != NULL ? EVP_MAC_CTX_new(mac) : NULL;
    size_t len = 0;
    bool ok = ctx != NULL && EVP_MAC_init(ctx, key, RD_SEAL_KEY, params) == 1 &&
              EVP_MAC_update(ctx, bytes.ptr, bytes.len) == 1 &&
              EVP_MAC_final(ctx, ret, &len, RD_SEAL_HMAC) == 1 && len == RD_SEAL_HMAC;
    EVP_MAC_CTX_free(ctx);
    EVP_MAC_free(mac);
    return ok;
}

bool rd_seal_hmac(const struct rd_seal_key *key, struct rd_slice bytes, uint8_t ret[RD_SEAL_HMAC],
                  struct rd_err *err)
{
    /* A separate key: keys for sealing have no other use. */
    static const char label[] = "redoubt hmac key 1";
    uint8_t derived[RD_SEAL_HMAC], sum[RD_SEAL_HMAC];
    bool ok = hmac(key->bytes, rd_slice(label, sizeof label), derived) && hmac(derived, bytes, sum);
    explicit_bzero(derived, sizeof derived);
    if (!ok)
        return openssl_failed(err, "HMAC with SHA-256");
    memcpy(ret, sum, RD_SEAL_HMAC);
    return true;
}

/* ---- the cipher ---- */

/* A context for one direction with its key; each message has its own nonce. NULL if OpenSSL
 * fails. */
static EVP_CIPHER_CTX *cipher_new(const uint8_t key[RD_SEAL_KEY], bool encrypt)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    if (ctx != NULL && EVP_CipherInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, NULL, encrypt) == 1)
        return ctx;
    EVP_CIPHER_CTX_free(ctx);
    return NULL;
}

struct message {
    const uint8_t *nonce;
    struct rd_slice bound[BOUND_PARTS]; /* authenticated with it */
    const uint8_t *in;
    size_t len;
};

static bool feed(EVP_CIPHER_CTX *ctx, const struct message *m, uint8_t *out)
{
    int n = 0;
    if (EVP_CipherInit_ex(ctx, NULL, NULL, NULL, m->nonce, -1) != 1)
        return false;
    for (size_t i = 0; i < BOUND_PARTS; i++)
        if (m->bound[i].len > 0 &&
            EVP_CipherUpdate(ctx, NULL, &n, m->bound[i].ptr, (int)m->bound[i].len) != 1)
            return false;
    return m->len == 0 || EVP_CipherUpdate(ctx, out, &n, m->in, (int)m->len) == 1;
}

static bool encrypt(EVP_CIPHER_CTX *ctx, const struct message *m, uint8_t *out, uint8_t tag[TAG])
{
    int n = 0;
    return feed(ctx, m, out) && EVP_CipherFinal_ex(ctx, out + m->len, &n) == 1 &&
           EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG, tag) == 1;
}

/* Also false if the tag does not match. */
static bool decrypt(EVP_CIPHER_CTX *ctx, const struct message *m, uint8_t *out,
                    const uint8_t tag[TAG])
{
    uint8_t copy[TAG];
    int n = 0;
    memcpy(copy, tag, TAG);
    return feed(ctx, m, out) && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG, copy) == 1 &&
           EVP_CipherFinal_ex(ctx, out + m->len, &n) == 1;
}

/* The frame's number, and whether it is the last one. No two frames of an object have the same. */
static void set_nonce(uint8_t nonce[NONCE], uint64_t frame, bool last)
{
    rd_put_le64(nonce, frame);
    rd_put_le32(nonce + 8, last);
}

/* ---- the sink ---- */

struct sealer {
    struct rd_sink *inner;
    EVP_CIPHER_CTX *ctx;
    uint64_t frame;
    bool own;
    bool begun;
    size_t len; /* bytes of `plain` */
    uint8_t header[RD_SEAL_HEADER];
    uint8_t plain[RD_SEAL_FRAME];
    uint8_t out[RD_SEAL_FRAME + RD_SEAL_FRAME_EXTRA];
};

static bool pass_on(struct sealer *s, const uint8_t *bytes, size_t len, struct rd_err *err)
{
    if (rd_sink_write(s->inner, bytes, len))
        return true;
    rd_err_adopt(err, rd_sink_err(s->inner));
    return false;
}

static bool begin(struct sealer *s, struct rd_err *err)
{
    bool begun = s->begun;
    s->begun = true;
    return begun || pass_on(s, s->header, sizeof s->header, err);
}

static bool end_frame(struct sealer *s, bool last, struct rd_err *err)
{
    uint8_t nonce[NONCE];
    uint8_t *at = s->out;
    rd_put_le32(at, (uint32_t)s->len | (last ? LAST : 0));
    set_nonce(nonce, s->frame, last);
    const struct message m = {
        .nonce = nonce, .bound = {rd_slice(at, LENGTH)}, .in = s->plain, .len = s->len};
    if (!encrypt(s->ctx, &m, at + LENGTH, at + LENGTH + s->len))
        return openssl_failed(err, "AES-256-GCM");
    size_t len = s->len + RD_SEAL_FRAME_EXTRA;
    s->frame++;
    s->len = 0;
    return begin(s, err) && pass_on(s, s->out, len, err);
}

/* A full frame is written when the next byte arrives, because the last frame is marked. */
static bool sealer_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct sealer *s = impl;
    while (len > 0) {
        if (s->len == RD_SEAL_FRAME && !end_frame(s, false, err))
            return false;
        size_t room = RD_SEAL_FRAME - s->len;
        size_t n = len < room ? len : room;
        memcpy(s->plain + s->len, ptr, n);
        s->len += n;
        ptr += n;
        len -= n;
    }
    return true;
}

static bool sealer_sync(void *impl, struct rd_err *err)
{
    struct sealer *s = impl;
    if (!begin(s, err) || (s->len > 0 && !end_frame(s, false, err)))
        return false;
    if (rd_sink_sync(s->inner))
        return true;
    rd_err_adopt(err, rd_sink_err(s->inner));
    return false;
}

static bool sealer_close(void *impl, bool commit, struct rd_err *err)
{
    struct sealer *s = impl;
    bool ok = true;
    if (s->own) {
        ok = commit && end_frame(s, true, err);
        if (ok)
            ok = rd_sink_close(s->inner, err);
        else
            rd_sink_abort(s->inner);
    }
    EVP_CIPHER_CTX_free(s->ctx);
    explicit_bzero(s->plain, sizeof s->plain);
    rd_free(s);
    return ok || !commit;
}

static void put_header(uint8_t h[RD_SEAL_HEADER], const struct rd_seal_opts *opts)
{
    const struct rd_seal_key *key = opts->key;
    memcpy(h, magic, sizeof magic);
    h[AT_KIND] = key->stretched ? BY_PASSPHRASE : BY_KEY;
    if (key->stretched) {
        h[AT_LOG_N] = key->scrypt.log_n;
        h[AT_LOG_N + 1] = key->scrypt.r;
        h[AT_LOG_N + 2] = key->scrypt.p;
        memcpy(h + AT_SALT, key->scrypt.salt, RD_SEAL_SALT);
    }
    rd_put_le32(h + AT_FRAME, RD_SEAL_FRAME);
    memcpy(h + AT_ID, key->id, RD_SEAL_ID);
    memcpy(h + AT_NONCE, opts->random + RD_SEAL_KEY, NONCE);
    if (opts->before != NULL)
        memcpy(h + AT_BEFORE, opts->before, RD_SEAL_BEFORE);
}

/* Where the object's data key is in the header, and what is bound to it. */
static struct message data_key(const uint8_t *h, struct rd_slice name, const uint8_t *in)
{
    size_t before = h[AT_VERSION] == VERSION_1 ? 0 : RD_SEAL_BEFORE;
    return (struct message){.nonce = h + AT_NONCE,
                            .bound = {rd_slice(h, AT_NONCE), rd_slice(h + AT_BEFORE, before), name},
                            .in = in,
                            .len = RD_SEAL_KEY};
}

static bool make_header(struct sealer *s, const struct rd_seal_opts *opts)
{
    uint8_t *h = s->header;
    put_header(h, opts);
    const struct message m = data_key(h, opts->name, opts->random);
    EVP_CIPHER_CTX *wrap = cipher_new(opts->key->bytes, true);
    bool ok = wrap != NULL && encrypt(wrap, &m, h + AT_KEY, h + AT_TAG);
    EVP_CIPHER_CTX_free(wrap);
    s->ctx = ok ? cipher_new(opts->random, true) : NULL;
    return s->ctx != NULL;
}

bool rd_seal_open_sink(struct rd_sink **ret, struct rd_sink *inner, const struct rd_seal_opts *opts,
                       struct rd_err *err)
{
    static const struct rd_sink_ops ops = {sealer_write, sealer_sync, sealer_close};
    struct sealer *s = rd_calloc(1, sizeof *s);
    if (s == NULL)
        return rd_err_nomem(err, sizeof *s);
    s->inner = inner;
    if (!make_header(s, opts)) {
        rd_free(s);
        return openssl_failed(err, "AES-256-GCM");
    }
    const struct rd_sink_opts sink_opts = RD_SINK_OPTS(.origin = rd_sink_origin(inner));
    if (!rd_sink_new(ret, &ops, s, &sink_opts, err))
        return false;
    s->own = true;
    return true;
}

bool rd_seal_hmac_same(const uint8_t a[RD_SEAL_HMAC], const uint8_t b[RD_SEAL_HMAC])
{
    return CRYPTO_memcmp(a, b, RD_SEAL_HMAC) == 0;
}

/* ---- the source ---- */

struct opener {
    struct rd_src *inner;
    const struct rd_seal_ring *ring;
    struct rd_seal_object object;
    EVP_CIPHER_CTX *ctx; /* NULL: the header was not read yet */
    uint64_t frame;
    uint64_t out_off;
    bool own;
    bool ended; /* the last frame was read */
    struct rd_err err;
    size_t at, len; /* of `plain`: bytes that were not returned yet */
    size_t in_len;  /* of `in`: the sealed bytes collected so far */
    uint8_t in[RD_SEAL_FRAME + RD_SEAL_FRAME_EXTRA];
    uint8_t plain[RD_SEAL_FRAME];
};

static bool opener_fail(struct opener *o, enum rd_err_code code, const char *what)
{
    return rd_err_set(&o->err, code, o->out_off, "sealed: %s at sealed byte %" PRIu64, what,
                      rd_src_offset(o->inner) - o->in_len);
}

/* Whether the parameters of scrypt are within the limits of time and memory. */
static bool scrypt_fits(const struct rd_seal_scrypt *how)
{
    return how->log_n >= 1 && how->log_n <= LOG_N_MAX && how->r >= 1 && how->r <= R_MAX &&
           how->p >= 1 && how->p <= P_MAX && ((uint64_t)how->r * how->p << how->log_n) <= WORK_MAX;
}

/* The first three. */
static const char *key_ids(const struct rd_seal_ring *ring, char *dst, size_t size)
{
    char id[RD_SEAL_ID_HEX];
    size_t len = 0;
    for (size_t i = 0; i < ring->n_keys && i < 3 && len < size; i++)
        len += (size_t)snprintf(dst + len, size - len, "%s%s", i > 0 ? ", " : "",
                                rd_seal_key_id(&ring->keys[i], id));
    if (ring->n_keys > 3 && len < size)
        snprintf(dst + len, size - len, " and others");
    return dst;
}

static bool no_key(const struct rd_seal_ring *ring, const uint8_t *h, struct rd_err *err)
{
    const struct rd_err_reason reason = {.id = RD_SEAL_REASON_KEY};
    char want[RD_SEAL_ID_HEX], have[3 * (RD_SEAL_ID_HEX + 2) + 16];
    rd_digest_hex(want, rd_slice(h + AT_ID, RD_SEAL_ID));
    if (h[AT_KIND] == BY_PASSPHRASE)
        return rd_err_set_reason(
            err, RD_ERR_USAGE, RD_NO_OFFSET, reason, "sealed with a passphrase; %s",
            ring->passphrase.len > 0 ? "the given passphrase is wrong" : "none is given");
    if (ring->n_keys == 0)
        return rd_err_set_reason(err, RD_ERR_USAGE, RD_NO_OFFSET, reason,
                                 "sealed with the key %s; no key is given", want);
    return rd_err_set_reason(err, RD_ERR_USAGE, RD_NO_OFFSET, reason,
                             "wrong key: sealed with the key %s, the given key%s %s", want,
                             ring->n_keys > 1 ? "s are" : " is", key_ids(ring, have, sizeof have));
}

static bool not_sealed(struct rd_err *err, enum rd_err_code code, const char *what)
{
    return rd_err_set(err, code, 0, "sealed: %s at sealed byte 0", what);
}

static bool check_header(const uint8_t *h, struct rd_err *err)
{
    if (memcmp(h, magic, AT_VERSION) != 0 || h[AT_VERSION + 1] != magic[AT_VERSION + 1])
        return not_sealed(err, RD_ERR_CORRUPT, "this is not a sealed object");
    if (h[AT_VERSION] != VERSION && h[AT_VERSION] != VERSION_1)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                          "sealed: version %u of the format is not known", h[AT_VERSION]);
    if ((h[AT_KIND] != BY_KEY && h[AT_KIND] != BY_PASSPHRASE) ||
        rd_get_le32(h + AT_FRAME) != RD_SEAL_FRAME)
        return not_sealed(err, RD_ERR_CORRUPT, "the header is damaged");
    return true;
}

/* The key of the ring that the header names. */
static bool find_key(const struct rd_seal_ring *ring, const uint8_t *h, struct rd_seal_key *ret,
                     struct rd_err *err)
{
    struct rd_seal_scrypt how = {h[AT_LOG_N], h[AT_LOG_N + 1], h[AT_LOG_N + 2], {0}};
    for (size_t i = 0; i < ring->n_keys; i++) {
        if (memcmp(ring->keys[i].id, h + AT_ID, RD_SEAL_ID) == 0) {
            *ret = ring->keys[i];
            return true;
        }
    }
    if (h[AT_KIND] != BY_PASSPHRASE || ring->passphrase.len == 0)
        return no_key(ring, h, err);
    if (!scrypt_fits(&how))
        return not_sealed(err, RD_ERR_CORRUPT, "the header is damaged");
    memcpy(how.salt, h + AT_SALT, RD_SEAL_SALT);
    if (!stretch(ret, ring->passphrase, &how, err))
        return false;
    return memcmp(ret->id, h + AT_ID, RD_SEAL_ID) == 0 || no_key(ring, h, err);
}

bool rd_seal_find_key(struct rd_seal_key *ret, const struct rd_seal_ring *ring,
                      struct rd_slice header, struct rd_err *err)
{
    struct rd_seal_key key = {0};
    if (header.len < RD_SEAL_HEADER_1)
        return not_sealed(err, RD_ERR_TRUNCATED, "the input ends inside the header");
    bool ok = check_header(header.ptr, err) && find_key(ring, header.ptr, &key, err);
    if (ok)
        *ret = key;
    rd_seal_key_done(&key);
    return ok;
}

static void note_info(const struct opener *o, const uint8_t *h)
{
    static const uint8_t none[RD_SEAL_BEFORE];
    struct rd_seal_info *info = o->object.info;
    if (info == NULL)
        return;
    *info = (struct rd_seal_info){.version = h[AT_VERSION]};
    if (info->version == VERSION_1)
        return;
    memcpy(info->before, h + AT_BEFORE, RD_SEAL_BEFORE);
    info->has_before = memcmp(info->before, none, RD_SEAL_BEFORE) != 0;
}

/* The part of the name that this version binds. */
static struct rd_slice bound_name(const struct rd_seal_object *object, const uint8_t *h)
{
    size_t skip = h[AT_VERSION] == VERSION_1 ? object->skip_1 : 0;
    return rd_slice(object->name.ptr + skip, object->name.len - skip);
}

static bool open_header(struct opener *o, const uint8_t *h)
{
    struct rd_seal_key key = {0};
    uint8_t bytes[RD_SEAL_KEY];
    const struct message m = data_key(h, bound_name(&o->object, h), h + AT_KEY);
    if (!find_key(o->ring, h, &key, &o->err)) {
        rd_seal_key_done(&key);
        return false;
    }
    EVP_CIPHER_CTX *wrap = cipher_new(key.bytes, false);
    bool opened = wrap != NULL && decrypt(wrap, &m, bytes, h + AT_TAG);
    EVP_CIPHER_CTX_free(wrap);
    rd_seal_key_done(&key);
    if (!opened)
        return opener_fail(o, RD_ERR_CHECKSUM,
                           "the header is damaged or belongs to another object");
    note_info(o, h);
    o->ctx = cipher_new(bytes, false);
    explicit_bzero(bytes, sizeof bytes);
    return o->ctx != NULL || openssl_failed(&o->err, "AES-256-GCM");
}

/* Collects n bytes of the inner source in o->in. Other statuses than OK are those of the read. */
static enum rd_src_status gather(struct opener *o, size_t n, const char *what)
{
    struct rd_slice s;
    while (o->in_len < n) {
        enum rd_src_status status = rd_src_need(o->inner, 1, &s);
        if (status == RD_SRC_FAIL)
            rd_err_adopt(&o->err, rd_src_err(o->inner));
        if (status == RD_SRC_END)
            opener_fail(o, RD_ERR_TRUNCATED, what);
        if (status != RD_SRC_OK)
            return status == RD_SRC_END ? RD_SRC_FAIL : status;
        size_t part = s.len < n - o->in_len ? s.len : n - o->in_len;
        memcpy(o->in + o->in_len, s.ptr, part);
        rd_src_consume(o->inner, part);
        o->in_len += part;
    }
    return RD_SRC_OK;
}

static enum rd_src_status read_header(struct opener *o)
{
    static const char cut[] = "the input ends inside the header";
    enum rd_src_status status = gather(o, RD_SEAL_HEADER_1, cut);
    if (status == RD_SRC_OK && !check_header(o->in, &o->err))
        return RD_SRC_FAIL;
    if (status == RD_SRC_OK && o->in[AT_VERSION] != VERSION_1)
        status = gather(o, RD_SEAL_HEADER, cut);
    if (status == RD_SRC_OK && !open_header(o, o->in))
        return RD_SRC_FAIL;
    if (status == RD_SRC_OK)
        o->in_len = 0;
    return status;
}

static bool open_frame(struct opener *o, size_t len, bool last)
{
    uint8_t nonce[NONCE];
    set_nonce(nonce, o->frame, last);
    const struct message m = {
        .nonce = nonce, .bound = {rd_slice(o->in, LENGTH)}, .in = o->in + LENGTH, .len = len};
    if (!decrypt(o->ctx, &m, o->plain, o->in + LENGTH + len))
        return opener_fail(o, RD_ERR_CHECKSUM, "a frame is damaged or out of place");
    o->frame++;
    o->in_len = 0;
    o->at = 0;
    o->len = len;
    o->ended = last;
    return true;
}

static enum rd_src_status read_frame(struct opener *o)
{
    enum rd_src_status status = gather(o, LENGTH, "the input ends before the last frame");
    if (status != RD_SRC_OK)
        return status;
    bool last = (rd_get_le32(o->in) & LAST) != 0;
    size_t len = rd_get_le32(o->in) & ~LAST;
    if (len > RD_SEAL_FRAME || (len == 0 && !last)) {
        opener_fail(o, RD_ERR_CHECKSUM, "a frame's length is damaged");
        return RD_SRC_FAIL;
    }
    status = gather(o, len + RD_SEAL_FRAME_EXTRA, "the input ends inside a frame");
    if (status != RD_SRC_OK)
        return status;
    return open_frame(o, len, last) ? RD_SRC_OK : RD_SRC_FAIL;
}

static enum rd_src_status read_end(struct opener *o)
{
    struct rd_slice s;
    enum rd_src_status status = rd_src_need(o->inner, 1, &s);
    if (status == RD_SRC_FAIL)
        rd_err_adopt(&o->err, rd_src_err(o->inner));
    if (status != RD_SRC_OK)
        return status;
    opener_fail(o, RD_ERR_CORRUPT, "there are bytes after the last frame");
    return RD_SRC_FAIL;
}

static enum rd_src_status opener_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                      struct rd_err *err)
{
    struct opener *o = impl;
    enum rd_src_status status = o->err.code == RD_ERR_OK ? RD_SRC_OK : RD_SRC_FAIL;
    while (status == RD_SRC_OK && o->at == o->len) {
        if (o->ctx == NULL)
            status = read_header(o);
        else
            status = o->ended ? read_end(o) : read_frame(o);
    }
    *ret_len = 0;
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, &o->err);
    if (status != RD_SRC_OK)
        return status;
    size_t n = o->len - o->at < cap ? o->len - o->at : cap;
    memcpy(buf, o->plain + o->at, n);
    o->at += n;
    o->out_off += n;
    *ret_len = n;
    return RD_SRC_OK;
}

static void opener_close(void *impl)
{
    struct opener *o = impl;
    EVP_CIPHER_CTX_free(o->ctx);
    if (o->own)
        rd_src_close(o->inner);
    explicit_bzero(o->plain, sizeof o->plain);
    rd_free(o);
}

bool rd_seal_open_object(struct rd_src **ret, struct rd_src *inner, const struct rd_seal_ring *ring,
                         const struct rd_seal_object *object, struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = opener_read, .close = opener_close};
    struct opener *o = rd_calloc(1, sizeof *o);
    if (o == NULL)
        return rd_err_nomem(err, sizeof *o);
    o->inner = inner;
    o->ring = ring;
    o->object = *object;
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = rd_src_origin(inner));
    if (!rd_src_new(ret, &ops, o, &opts, err))
        return false;
    o->own = true;
    return true;
}

bool rd_seal_open_src(struct rd_src **ret, struct rd_src *inner, const struct rd_seal_ring *ring,
                      struct rd_slice name, struct rd_err *err)
{
    const struct rd_seal_object object = {.name = name};
    return rd_seal_open_object(ret, inner, ring, &object, err);
}

bool rd_seal_required(const struct rd_seal_ring *ring)
{
    return ring != NULL && !ring->allow_unsealed &&
           (ring->elsewhere || ring->n_keys > 0 || ring->passphrase.len > 0);
}

bool rd_seal_is(struct rd_slice bytes)
{
    return bytes.len >= sizeof magic && memcmp(bytes.ptr, magic, 6) == 0 && bytes.ptr[7] == '\n';
}

uint64_t rd_seal_plain_size(uint64_t sealed)
{
    const uint64_t full = RD_SEAL_FRAME + RD_SEAL_FRAME_EXTRA;
    if (sealed < RD_SEAL_HEADER + RD_SEAL_FRAME_EXTRA)
        return RD_NO_OFFSET;
    uint64_t frames = sealed - RD_SEAL_HEADER;
    uint64_t rest = frames % full;
    if (rest != 0 && rest < RD_SEAL_FRAME_EXTRA)
        return RD_NO_OFFSET;
    return frames - (frames / full + (rest != 0)) * RD_SEAL_FRAME_EXTRA;
}
