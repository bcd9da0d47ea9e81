#include "archive/store.h"

#include "base/buf.h"
#include "base/digest.h"
#include "base/mem.h"
#include "base/pump.h"

#include <errno.h>
#include <stdio.h>

enum { COMPONENT_MAX = 100 };

void archive_store_close(struct archive_store *store)
{
    if (store != NULL)
        store->ops->close(store);
}

bool archive_store_read(struct archive_store *store, const char *name, size_t max,
                        struct rd_buf *ret, struct rd_err *err)
{
    struct rd_src *src;
    if (!store->ops->get(store, name, &src, err))
        return false;
    bool ok = rd_pump_to_buf(src, max, ret, err);
    rd_src_close(src);
    if (!ok)
        rd_err_origin(err, name);
    return ok;
}

static bool skip(struct rd_src *src, uint64_t n, struct rd_err *err)
{
    struct rd_slice s;
    while (n > 0) {
        enum rd_src_status status = rd_src_need(src, 1, &s);
        if (status == RD_SRC_FAIL)
            rd_err_adopt(err, rd_src_err(src));
        if (status != RD_SRC_OK)
            return rd_err_set(err, RD_ERR_TRUNCATED, RD_NO_OFFSET, "the object ends too early");
        size_t take = s.len < n ? s.len : (size_t)n;
        rd_src_consume(src, take);
        n -= take;
    }
    return true;
}

static bool take(struct rd_src *src, size_t n, struct rd_buf *ret, struct rd_err *err)
{
    struct rd_slice s;
    while (n > 0) {
        enum rd_src_status status = rd_src_need(src, 1, &s);
        if (status == RD_SRC_FAIL)
            rd_err_adopt(err, rd_src_err(src));
        if (status != RD_SRC_OK)
            return rd_err_set(err, RD_ERR_TRUNCATED, RD_NO_OFFSET, "the object ends too early");
        size_t len = s.len < n ? s.len : n;
        if (!rd_buf_add(ret, s.ptr, len))
            return rd_err_nomem(err, len);
        rd_src_consume(src, len);
        n -= len;
    }
    return true;
}

static bool range_of_get(struct archive_store *store, const char *name, uint64_t offset, size_t len,
                         struct rd_buf *ret, struct rd_err *err)
{
    struct rd_src *src;
    if (!store->ops->get(store, name, &src, err))
        return false;
    bool ok = skip(src, offset, err) && take(src, len, ret, err);
    rd_src_close(src);
    return ok;
}

bool archive_store_range(struct archive_store *store, const char *name, uint64_t offset, size_t len,
                         struct rd_buf *ret, struct rd_err *err)
{
    size_t before = ret->len;
    bool ok = store->ops->range != NULL ? store->ops->range(store, name, offset, len, ret, err)
                                        : range_of_get(store, name, offset, len, ret, err);
    if (!ok) {
        ret->len = before;
        rd_err_origin(err, name);
    }
    return ok;
}

bool archive_store_write(struct archive_store *store, const char *name, struct rd_slice bytes,
                         struct rd_err *err)
{
    struct rd_sink *sink;
    if (!archive_store_put(store, name, &sink, err))
        return false;
    rd_sink_write(sink, bytes.ptr, bytes.len);
    return rd_sink_close(sink, err);
}

/* ---- what became of an object ---- */

bool archive_store_exists(const struct rd_err *err)
{
    return err->code != RD_ERR_OK && err->reason.id == ARCHIVE_REASON_EXISTS;
}

bool archive_store_set_exists(struct rd_err *err, const char *name)
{
    const struct rd_err_reason reason = {.id = ARCHIVE_REASON_EXISTS};
    rd_err_set_reason(err, RD_ERR_IO, RD_NO_OFFSET, reason, "already exists");
    rd_err_origin(err, name);
    return false;
}

bool archive_store_is_missing(const struct rd_err *err)
{
    return err->code != RD_ERR_OK && err->reason.id == ARCHIVE_REASON_MISSING;
}

bool archive_store_set_missing(struct rd_err *err, const char *name)
{
    if (err == NULL || err->code != RD_ERR_OK)
        return false;
    rd_err_sys(err, ENOENT, "cannot open the object");
    rd_err_origin(err, name);
    err->reason.id = ARCHIVE_REASON_MISSING;
    return false;
}

bool archive_store_is_unknown(const struct rd_err *err)
{
    return err->code != RD_ERR_OK && err->reason.id == ARCHIVE_REASON_UNKNOWN;
}

bool archive_store_set_unknown(struct rd_err *err)
{
    if (err != NULL && err->reason.id == 0)
        err->reason.id = ARCHIVE_REASON_UNKNOWN;
    return false;
}

bool archive_store_sum_src(struct rd_src *src, struct archive_store_sum *ret, struct rd_err *err)
{
    struct archive_store_sum sum = {.bytes = 0};
    struct rd_digest *digest;
    struct rd_slice s;
    enum rd_src_status status = RD_SRC_OK;
    if (!rd_digest_new(&digest, RD_DIGEST_SHA256, err))
        return false;
    bool ok = true;
    while (ok && (status = rd_src_need(src, 1, &s)) == RD_SRC_OK) {
        ok = rd_digest_update(digest, s.ptr, s.len, err);
        sum.bytes += s.len;
        rd_src_consume(src, s.len);
    }
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(src));
    ok = ok && status == RD_SRC_END && rd_digest_end(digest, sum.sha256, err);
    rd_digest_free(digest);
    if (ok)
        *ret = sum;
    return ok;
}

bool archive_store_same(const struct archive_store_sum *a, const struct archive_store_sum *b)
{
    return a->bytes == b->bytes && memcmp(a->sha256, b->sha256, sizeof a->sha256) == 0;
}

enum archive_store_proof archive_store_prove(struct archive_store *store, const char *name,
                                             const struct archive_store_sum *want,
                                             struct rd_err *err)
{
    struct archive_store_sum has;
    struct archive_object object;
    struct rd_src *src;
    if (!store->ops->stat(store, name, &object, err))
        return ARCHIVE_STORE_FAILED;
    if (!object.there)
        return ARCHIVE_STORE_ABSENT;
    if (object.size != want->bytes)
        return ARCHIVE_STORE_OTHER;
    if (!store->ops->get(store, name, &src, err))
        return ARCHIVE_STORE_FAILED;
    bool ok = archive_store_sum_src(src, &has, err);
    rd_src_close(src);
    if (!ok)
        return ARCHIVE_STORE_FAILED;
    return archive_store_same(&has, want) ? ARCHIVE_STORE_SAME : ARCHIVE_STORE_OTHER;
}

bool archive_store_keeps(struct archive_store *store, const char *name, uint64_t bytes,
                         struct rd_err *err)
{
    struct archive_object object;
    if (!store->ops->stat(store, name, &object, err))
        return false;
    if (object.there && object.size >= bytes)
        return true;
    rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
               "the answer was that the object is stored, but the store does not show it");
    rd_err_origin(err, name);
    return false;
}

/* ---- put ---- */

struct put {
    struct archive_store *store;
    struct rd_sink *inner;
    struct rd_digest *digest;
    struct archive_store_sum sum;
    char name[ARCHIVE_NAME_MAX];
};

static bool put_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct put *put = impl;
    put->sum.bytes += len;
    if (!rd_digest_update(put->digest, ptr, len, err))
        return false;
    if (rd_sink_write(put->inner, ptr, len))
        return true;
    rd_err_adopt(err, rd_sink_err(put->inner));
    return false;
}

static bool put_sync(void *impl, struct rd_err *err)
{
    struct put *put = impl;
    if (rd_sink_sync(put->inner))
        return true;
    rd_err_adopt(err, rd_sink_err(put->inner));
    return false;
}

/* Replaces the error by what a look at the object shows. */
static bool settle(const struct put *put, struct rd_err *why)
{
    bool exists = archive_store_exists(why);
    struct rd_err failed = {0};
    char line[RD_ERR_TEXT_MAX];
    switch (archive_store_prove(put->store, put->name, &put->sum, &failed)) {
    case ARCHIVE_STORE_SAME:
        return true;
    case ARCHIVE_STORE_OTHER:
        rd_err_reset(why);
        return archive_store_set_exists(why, put->name);
    case ARCHIVE_STORE_ABSENT:
        if (!exists)
            return false; /* the store may have yet to do it */
        why->reason.id = 0;
        rd_err_doing(why, "an object that the store does not show");
        return false;
    default:
        why->reason.id = ARCHIVE_REASON_UNKNOWN;
        rd_err_doing(why, "comparing what is stored, which failed: %s",
                     rd_err_render(&failed, line, sizeof line));
        return false;
    }
}

static bool put_close(void *impl, bool commit, struct rd_err *err)
{
    struct put *put = impl;
    struct rd_err why = {0};
    bool ok = !commit || rd_digest_end(put->digest, put->sum.sha256, &why);
    if (commit && ok) {
        ok = rd_sink_close(put->inner, &why);
        if (!ok && why.reason.id >= ARCHIVE_REASON_EXISTS &&
            why.reason.id <= ARCHIVE_REASON_UNKNOWN)
            ok = settle(put, &why);
    } else {
        rd_sink_abort(put->inner);
    }
    if (!ok)
        rd_err_adopt(err, &why);
    rd_digest_free(put->digest);
    rd_free(put);
    return ok;
}

bool archive_store_put(struct archive_store *store, const char *name, struct rd_sink **ret,
                       struct rd_err *err)
{
    static const struct rd_sink_ops ops = {put_write, put_sync, put_close};
    const struct rd_sink_opts opts = RD_SINK_OPTS(.origin = name);
    if (store->ops->settles)
        return store->ops->put(store, name, ret, err);
    struct put *put = rd_calloc(1, sizeof *put);
    if (put == NULL)
        return rd_err_nomem(err, sizeof *put);
    put->store = store;
    snprintf(put->name, sizeof put->name, "%s", name);
    if (!rd_digest_new(&put->digest, RD_DIGEST_SHA256, err) ||
        !store->ops->put(store, name, &put->inner, err)) {
        rd_digest_free(put->digest);
        rd_free(put);
        return false;
    }
    return rd_sink_new(ret, &ops, put, &opts, err);
}

/* ---- names ---- */

static bool letter_ok(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

bool archive_name_ok(const char *name)
{
    size_t len = 0;
    for (; name[len] != '\0'; len++)
        if (!letter_ok(name[len]) || len == COMPONENT_MAX)
            return false;
    return len > 0 && name[0] != '.';
}
