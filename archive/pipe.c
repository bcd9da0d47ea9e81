#include "archive/pipe.h"

#include "base/crc64.h"
#include "base/digest.h"
#include "base/lz4.h"
#include "base/mem.h"
#include "base/zlib.h"
#include "base/zstd.h"

#include <inttypes.h>

/* ---- sums ---- */

struct summer {
    struct rd_sink *out;
    struct rd_src *in;
    struct rd_digest *digest;
    struct archive_sums now;
    struct archive_sums *ret;
    struct archive_sums want;
    bool own;
    bool ended;
};

static struct summer *summer_new(struct rd_err *err)
{
    struct summer *s = rd_calloc(1, sizeof *s);
    if (s == NULL) {
        rd_err_nomem(err, sizeof *s);
        return NULL;
    }
    if (!rd_digest_new(&s->digest, RD_DIGEST_SHA256, err)) {
        rd_free(s);
        return NULL;
    }
    return s;
}

static bool sum_bytes(struct summer *s, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    s->now.bytes += len;
    s->now.crc64 = rd_crc64(s->now.crc64, ptr, len);
    return rd_digest_update(s->digest, ptr, len, err);
}

static bool sum_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct summer *s = impl;
    if (!sum_bytes(s, ptr, len, err))
        return false;
    if (rd_sink_write(s->out, ptr, len))
        return true;
    rd_err_adopt(err, rd_sink_err(s->out));
    return false;
}

static bool sum_sync(void *impl, struct rd_err *err)
{
    struct summer *s = impl;
    if (rd_sink_sync(s->out))
        return true;
    rd_err_adopt(err, rd_sink_err(s->out));
    return false;
}

static bool sum_close(void *impl, bool commit, struct rd_err *err)
{
    struct summer *s = impl;
    bool ok = true;
    if (s->own) {
        ok = commit && rd_digest_end(s->digest, s->now.sha256, err);
        if (ok)
            *s->ret = s->now;
        if (ok)
            ok = rd_sink_close(s->out, err);
        else
            rd_sink_abort(s->out);
    }
    rd_digest_free(s->digest);
    rd_free(s);
    return ok || !commit;
}

bool archive_sums_open_sink(struct rd_sink **ret, struct rd_sink *inner, struct archive_sums *sums,
                            struct rd_err *err)
{
    static const struct rd_sink_ops ops = {sum_write, sum_sync, sum_close};
    struct summer *s = summer_new(err);
    if (s == NULL)
        return false;
    s->out = inner;
    s->ret = sums;
    const struct rd_sink_opts opts = RD_SINK_OPTS(.origin = rd_sink_origin(inner));
    if (!rd_sink_new(ret, &ops, s, &opts, err))
        return false;
    s->own = true;
    return true;
}

static enum rd_src_status check_end(struct summer *s, struct rd_err *err)
{
    if (s->now.bytes < s->want.bytes)
        rd_err_set(err, RD_ERR_TRUNCATED, s->now.bytes,
                   "%" PRIu64 " byte%s, but the manifest says %" PRIu64, s->now.bytes,
                   s->now.bytes == 1 ? "" : "s", s->want.bytes);
    else if (!s->ended && !rd_digest_end(s->digest, s->now.sha256, err))
        return RD_SRC_FAIL;
    else if (s->now.bytes > s->want.bytes ||
             memcmp(s->now.sha256, s->want.sha256, ARCHIVE_SHA256) != 0)
        rd_err_set(err, RD_ERR_CHECKSUM, RD_NO_OFFSET, "the digest in the manifest does not match");
    else {
        s->ended = true;
        return RD_SRC_END;
    }
    return RD_SRC_FAIL;
}

static enum rd_src_status sum_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                   struct rd_err *err)
{
    struct summer *s = impl;
    struct rd_slice bytes;
    enum rd_src_status status = rd_src_need(s->in, 1, &bytes);
    *ret_len = 0;
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(s->in));
    if (status != RD_SRC_OK)
        return status == RD_SRC_END ? check_end(s, err) : status;
    size_t n = bytes.len < cap ? bytes.len : cap;
    memcpy(buf, bytes.ptr, n);
    if (!sum_bytes(s, bytes.ptr, n, err))
        return RD_SRC_FAIL;
    rd_src_consume(s->in, n);
    *ret_len = n;
    return RD_SRC_OK;
}

static void sum_close_src(void *impl)
{
    struct summer *s = impl;
    if (s->own)
        rd_src_close(s->in);
    rd_digest_free(s->digest);
    rd_free(s);
}

bool archive_sums_open_src(struct rd_src **ret, struct rd_src *inner,
                           const struct archive_sums *sums, struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = sum_read, .close = sum_close_src};
    struct summer *s = summer_new(err);
    if (s == NULL)
        return false;
    s->in = inner;
    s->want = *sums;
    const struct rd_src_opts opts =
        RD_SRC_OPTS(.origin = rd_src_origin(inner), .total = sums->bytes, .sized = true);
    if (!rd_src_new(ret, &ops, s, &opts, err))
        return false;
    s->own = true;
    return true;
}

/* ---- all stages ---- */

static bool add_compressor(struct rd_sink **sink, const struct archive_pipe *pipe,
                           const struct archive_file *file, struct rd_err *err)
{
    switch (file->compression) {
    case ARCHIVE_COMPRESSION_LZ4:
        return rd_lz4_open_sink(sink, *sink, pipe->level, err);
    case ARCHIVE_COMPRESSION_GZIP:
        return rd_zlib_open_sink(sink, *sink, pipe->level, err);
    case ARCHIVE_COMPRESSION_ZSTD:
        return rd_zstd_open_sink(sink, *sink, pipe->level, err);
    default:
        return true;
    }
}

static bool add_seal(struct rd_sink **sink, const struct archive_pipe *pipe, struct rd_err *err)
{
    struct rd_seal_opts opts = {.key = pipe->key, .before = pipe->before};
    if (pipe->key == NULL)
        return true;
    opts.name = rd_slice_str(pipe->name);
    memcpy(opts.random, pipe->random, sizeof opts.random);
    bool ok = rd_seal_open_sink(sink, *sink, &opts, err);
    explicit_bzero(opts.random, sizeof opts.random);
    return ok;
}

bool archive_pipe_open_sink(struct rd_sink **ret, struct rd_sink *inner,
                            const struct archive_pipe *pipe, struct archive_file *file,
                            struct rd_err *err)
{
    struct rd_sink *sink = inner;
    file->sealed = pipe->key != NULL;
    if (!archive_sums_open_sink(&sink, sink, &file->stored, err) || !add_seal(&sink, pipe, err) ||
        !add_compressor(&sink, pipe, file, err) ||
        !archive_sums_open_sink(&sink, sink, &file->plain, err)) {
        rd_sink_abort(sink);
        return false;
    }
    *ret = sink;
    return true;
}

static bool add_decompressor(struct rd_src **src, const struct archive_file *file,
                             struct rd_err *err)
{
    switch (file->compression) {
    case ARCHIVE_COMPRESSION_LZ4:
        return rd_lz4_open_src(src, *src, err);
    case ARCHIVE_COMPRESSION_GZIP:
        return rd_zlib_open_src(src, *src, err);
    case ARCHIVE_COMPRESSION_ZSTD:
        return rd_zstd_open_own_src(src, *src, err);
    default:
        return true;
    }
}

bool archive_refuse_unsealed(struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_CHECKSUM, RD_NO_OFFSET,
                      "it is not sealed, although there is a key: it may be forged; see "
                      "--allow-unsealed");
}

/* What version 1 binds of a name: "ID/OBJECT" of "TARGET/sets/ID/OBJECT". */
static size_t skip_1(const char *name)
{
    const char *slash = strchr(name, '/');
    slash = slash != NULL ? strchr(slash + 1, '/') : NULL;
    return slash != NULL ? (size_t)(slash + 1 - name) : 0;
}

static bool add_opener(struct rd_src **src, const struct archive_file *file,
                       const struct rd_seal_ring *ring, const char *name, struct rd_seal_info *info,
                       struct rd_err *err)
{
    const struct rd_seal_object object = {
        .name = rd_slice_str(name), .skip_1 = skip_1(name), .info = info};
    if (!file->sealed)
        return !rd_seal_required(ring) || archive_refuse_unsealed(err);
    return rd_seal_open_object(src, *src, ring, &object, err);
}

bool archive_pipe_open_bare(struct rd_src **ret, struct rd_src *inner,
                            const struct archive_file *file, const struct rd_seal_ring *ring,
                            const char *name, struct rd_seal_info *info, struct rd_err *err)
{
    struct rd_src *src = inner;
    if (!add_opener(&src, file, ring, name, info, err) || !add_decompressor(&src, file, err)) {
        rd_src_close(src);
        return false;
    }
    *ret = src;
    return true;
}

bool archive_pipe_open_src(struct rd_src **ret, struct rd_src *inner,
                           const struct archive_file *file, const struct rd_seal_ring *ring,
                           const char *name, struct rd_err *err)
{
    struct rd_src *src = inner;
    if (!archive_sums_open_src(&src, src, &file->stored, err) ||
        !add_opener(&src, file, ring, name, NULL, err) || !add_decompressor(&src, file, err) ||
        !archive_sums_open_src(&src, src, &file->plain, err)) {
        rd_src_close(src);
        return false;
    }
    *ret = src;
    return true;
}

/* ---- tee ---- */

static void drop(struct archive_tee *tee, size_t i)
{
    rd_err_adopt(&tee->errs[i], rd_sink_err(tee->sinks[i]));
    rd_sink_abort(tee->sinks[i]);
    tee->sinks[i] = NULL;
}

/* Whether any sink is left; otherwise the error of the tee is the first error of all. */
static bool any_left(const struct archive_tee *tee, struct rd_err *err)
{
    for (size_t i = 0; i < tee->n; i++)
        if (tee->sinks[i] != NULL)
            return true;
    rd_err_adopt(err, &tee->errs[0]);
    return false;
}

static bool tee_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct archive_tee *tee = impl;
    for (size_t i = 0; i < tee->n; i++)
        if (tee->sinks[i] != NULL && !rd_sink_write(tee->sinks[i], ptr, len))
            drop(tee, i);
    return any_left(tee, err);
}

static bool tee_sync(void *impl, struct rd_err *err)
{
    struct archive_tee *tee = impl;
    for (size_t i = 0; i < tee->n; i++)
        if (tee->sinks[i] != NULL && !rd_sink_sync(tee->sinks[i]))
            drop(tee, i);
    return any_left(tee, err);
}

static bool tee_close(void *impl, bool commit, struct rd_err *err)
{
    struct archive_tee *tee = impl;
    bool any = false;
    for (size_t i = 0; i < tee->n; i++) {
        struct rd_sink *sink = tee->sinks[i];
        if (sink == NULL)
            continue;
        tee->sinks[i] = NULL;
        if (!commit)
            rd_sink_abort(sink);
        else if (rd_sink_close(sink, &tee->errs[i]))
            any = true;
    }
    if (commit && !any)
        rd_err_adopt(err, &tee->errs[0]);
    return any || !commit;
}

bool archive_tee_open(struct rd_sink **ret, struct archive_tee *tee, struct rd_err *err)
{
    static const struct rd_sink_ops ops = {tee_write, tee_sync, tee_close};
    return rd_sink_new(ret, &ops, tee, NULL, err);
}
