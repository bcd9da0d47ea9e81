#include "archive/tail.h"

#include "base/digest.h"
#include "base/mem.h"

enum { TAIL_MAX = 64 };

/* The bytes before and after the digest: a frame that decompressors of lz4 and zstd skip, or an
 * empty member of gzip with an extra field. */
static const struct form {
    uint8_t before[16], after[16];
    size_t n_before, n_after;
} forms[] = {
    [ARCHIVE_COMPRESSION_LZ4] = {.before = {0x5d, 0x2a, 0x4d, 0x18, ARCHIVE_SHA256, 0, 0, 0},
                                 .n_before = 8},
    [ARCHIVE_COMPRESSION_ZSTD] = {.before = {0x5d, 0x2a, 0x4d, 0x18, ARCHIVE_SHA256, 0, 0, 0},
                                  .n_before = 8},
    [ARCHIVE_COMPRESSION_GZIP] = {.before = {0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255,
                                             4 + ARCHIVE_SHA256, 0, 'R', 'D', ARCHIVE_SHA256, 0},
                                  .n_before = 16,
                                  .after = {3, 0},
                                  .n_after = 10},
};

struct tail {
    struct rd_sink *out;
    struct rd_src *in;
    uint64_t left; /* bytes before the digest that are still to be read */
    struct rd_digest *digest;
    const struct form *form;
    bool own;
    bool ended;
};

static struct tail *tail_new(enum archive_compression compression, const char *name,
                             struct rd_err *err)
{
    struct tail *t = rd_calloc(1, sizeof *t);
    if (t == NULL) {
        rd_err_nomem(err, sizeof *t);
        return NULL;
    }
    t->form = &forms[compression];
    if (rd_digest_new(&t->digest, RD_DIGEST_SHA256, err) &&
        rd_digest_update(t->digest, (const uint8_t *)name, strlen(name) + 1, err))
        return t;
    rd_digest_free(t->digest);
    rd_free(t);
    return NULL;
}

static size_t tail_len(const struct form *form)
{
    return form->n_before + ARCHIVE_SHA256 + form->n_after;
}

static bool make_tail(struct tail *t, uint8_t ret[TAIL_MAX], struct rd_err *err)
{
    const struct form *form = t->form;
    memcpy(ret, form->before, form->n_before);
    memcpy(ret + form->n_before + ARCHIVE_SHA256, form->after, form->n_after);
    return rd_digest_end(t->digest, ret + form->n_before, err);
}

/* ---- sink ---- */

static bool write_bytes(struct tail *t, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    if (rd_sink_write(t->out, ptr, len))
        return true;
    rd_err_adopt(err, rd_sink_err(t->out));
    return false;
}

static bool tail_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct tail *t = impl;
    return rd_digest_update(t->digest, ptr, len, err) && write_bytes(t, ptr, len, err);
}

static bool tail_sync(void *impl, struct rd_err *err)
{
    struct tail *t = impl;
    if (rd_sink_sync(t->out))
        return true;
    rd_err_adopt(err, rd_sink_err(t->out));
    return false;
}

static bool tail_close(void *impl, bool commit, struct rd_err *err)
{
    struct tail *t = impl;
    uint8_t bytes[TAIL_MAX];
    bool ok = true;
    if (t->own) {
        ok = commit && make_tail(t, bytes, err) && write_bytes(t, bytes, tail_len(t->form), err);
        if (ok)
            ok = rd_sink_close(t->out, err);
        else
            rd_sink_abort(t->out);
    }
    rd_digest_free(t->digest);
    rd_free(t);
    return ok || !commit;
}

bool archive_tail_open_sink(struct rd_sink **ret, struct rd_sink *inner,
                            enum archive_compression compression, const char *name,
                            struct rd_err *err)
{
    static const struct rd_sink_ops ops = {tail_write, tail_sync, tail_close};
    const struct rd_sink_opts opts = RD_SINK_OPTS(.origin = rd_sink_origin(inner));
    struct tail *t = tail_new(compression, name, err);
    if (t == NULL)
        return false;
    t->out = inner;
    if (!rd_sink_new(ret, &ops, t, &opts, err))
        return false;
    t->own = true;
    return true;
}

/* ---- source ---- */

static enum rd_src_status check_tail(struct tail *t, struct rd_err *err)
{
    uint8_t want[TAIL_MAX];
    struct rd_slice s;
    size_t len = tail_len(t->form);
    if (t->ended)
        return RD_SRC_END;
    if (!make_tail(t, want, err))
        return RD_SRC_FAIL;
    enum rd_src_status status = rd_src_need(t->in, len, &s);
    bool same = status == RD_SRC_OK && memcmp(s.ptr, want, len) == 0;
    if (same) {
        rd_src_consume(t->in, len);
        status = rd_src_need(t->in, 1, &s);
    }
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(t->in));
    else if (!same || status != RD_SRC_END)
        rd_err_set(err, RD_ERR_CHECKSUM, RD_NO_OFFSET,
                   "the digest at the end of the object does not match");
    t->ended = same && status == RD_SRC_END;
    return t->ended ? RD_SRC_END : RD_SRC_FAIL;
}

static enum rd_src_status tail_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err)
{
    struct tail *t = impl;
    struct rd_slice s;
    *ret_len = 0;
    if (t->left == 0)
        return check_tail(t, err);
    enum rd_src_status status = rd_src_need(t->in, 1, &s);
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(t->in));
    else if (status == RD_SRC_END)
        rd_err_set(err, RD_ERR_TRUNCATED, rd_src_offset(t->in), "the object is truncated");
    if (status != RD_SRC_OK)
        return RD_SRC_FAIL;
    size_t n = s.len < cap ? s.len : cap;
    n = n < t->left ? n : (size_t)t->left;
    if (!rd_digest_update(t->digest, s.ptr, n, err))
        return RD_SRC_FAIL;
    memcpy(buf, s.ptr, n);
    rd_src_consume(t->in, n);
    t->left -= n;
    *ret_len = n;
    return RD_SRC_OK;
}

static void tail_close_src(void *impl)
{
    struct tail *t = impl;
    if (t->own)
        rd_src_close(t->in);
    rd_digest_free(t->digest);
    rd_free(t);
}

bool archive_tail_open_src(struct rd_src **ret, struct rd_src *inner, uint64_t size,
                           enum archive_compression compression, const char *name,
                           struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = tail_read, .close = tail_close_src};
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = rd_src_origin(inner));
    struct tail *t = tail_new(compression, name, err);
    if (t == NULL)
        return false;
    size_t len = tail_len(t->form);
    t->in = inner;
    t->left = size > len ? size - len : 0;
    if (!rd_src_new(ret, &ops, t, &opts, err))
        return false;
    t->own = true;
    return true;
}
