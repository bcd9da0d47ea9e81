#include "base/src_impl.h"

#include <assert.h>
#include <stdio.h>

#include "base/crc64.h"
#include "base/mem.h"
#include "base/sized.h"

static enum rd_src_status push_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err);

/* Adds the bytes consumed since the last call to the checksum. */
static void settle_sum(struct rd_src *src)
{
    if (src->state->sum && src->cur > src->state->summed)
        src->state->crc =
            rd_crc64(src->state->crc, src->state->summed, (size_t)(src->cur - src->state->summed));
    src->state->summed = src->cur;
}

static struct rd_src *new_bare(const struct rd_src_ops *ops, void *impl,
                               const struct rd_src_opts *opts)
{
    struct whole {
        struct rd_src src;
        struct rd_src_state state;
    } *whole = rd_calloc(1, sizeof *whole);
    if (whole == NULL)
        return NULL;
    struct rd_src *src = &whole->src;
    src->state = &whole->state;
    src->state->ops = ops;
    src->state->impl = impl;
    src->state->size = opts->total != 0 || opts->sized ? opts->total : RD_NO_OFFSET;
    if (opts->origin != NULL)
        snprintf(src->state->origin, sizeof src->state->origin, "%s", opts->origin);
    return src;
}

static size_t window_of(const struct rd_src_opts *opts)
{
    if (opts->window == 0)
        return RD_SRC_WINDOW;
    return opts->window < RD_SRC_WINDOW_MIN ? RD_SRC_WINDOW_MIN : opts->window;
}

static bool nomem(size_t size, const struct rd_src_opts *opts, struct rd_err *err)
{
    rd_err_nomem(err, size);
    rd_err_origin(err, opts->origin);
    return false;
}

/* A source whose window has room for cap bytes and is allocated for `size` of them now. */
static bool new_buffered(struct rd_src **ret, const struct rd_src_ops *ops, void *impl, size_t cap,
                         size_t size, const struct rd_src_opts *opts, struct rd_err *err)
{
    struct rd_src *src = new_bare(ops, impl, opts);
    uint8_t *buf = rd_alloc(size);
    if (src == NULL || buf == NULL) {
        rd_free(src);
        rd_free(buf);
        if (ops->close != NULL)
            ops->close(impl);
        return nomem(size, opts, err);
    }
    src->state->buf = buf;
    src->state->cap = cap;
    src->cur = src->end = src->state->summed = buf;
    *ret = src;
    return true;
}

bool rd_src_new(struct rd_src **ret, const struct rd_src_ops *ops, void *impl,
                const struct rd_src_opts *opts, struct rd_err *err)
{
    struct rd_src_opts own;
    if (!rd_sized_copy(&own, sizeof own, opts, err)) {
        if (ops->close != NULL)
            ops->close(impl);
        return false;
    }
    size_t cap = window_of(&own);
    return new_buffered(ret, ops, impl, cap, cap, &own, err);
}

bool rd_src_open_memory(struct rd_src **ret, struct rd_slice bytes, const struct rd_src_opts *opts,
                        struct rd_err *err)
{
    static const struct rd_src_ops ops = {0};
    static const uint8_t nothing[1]; /* a valid address for empty input */
    struct rd_src_opts own;
    if (!rd_sized_copy(&own, sizeof own, opts, err))
        return false;
    struct rd_src *src = new_bare(&ops, NULL, &own);
    if (src == NULL)
        return nomem(sizeof *src, &own, err);
    src->cur = src->state->summed = bytes.len > 0 ? bytes.ptr : nothing;
    src->end = src->cur + bytes.len;
    src->end_off = bytes.len;
    src->state->cap = bytes.len;
    src->state->size = bytes.len;
    src->state->ended = true;
    *ret = src;
    return true;
}

void rd_src_close(struct rd_src *src)
{
    if (src == NULL)
        return;
    if (src->state->ops->close != NULL)
        src->state->ops->close(src->state->impl);
    rd_free(src->state->buf);
    for (unsigned i = 0; i < src->state->n_kept; i++)
        rd_free(src->state->kept[i]);
    rd_free(src);
}

const struct rd_err *rd_src_err(const struct rd_src *src)
{
    return &src->state->err;
}

uint64_t rd_src_size(const struct rd_src *src)
{
    return src->state->size;
}

const char *rd_src_origin(const struct rd_src *src)
{
    return src->state->origin;
}

size_t rd_src_window(const struct rd_src *src)
{
    return src->state->buf != NULL ? src->state->cap : SIZE_MAX;
}

bool rd_src_keep(struct rd_src *src, unsigned n)
{
    if (src->state->buf == NULL)
        return true;
    if (src->state->ops->read == push_read)
        return false;
    if (n > RD_SRC_KEPT_MAX)
        return false;
    for (; src->state->n_kept < n; src->state->n_kept++)
        if ((src->state->kept[src->state->n_kept] = rd_alloc(src->state->cap)) == NULL)
            return false;
    return true;
}

/* Moves the unconsumed bytes to the start of the window. */
static void slide(struct rd_src *src)
{
    size_t have = rd_src_avail(src);
    settle_sum(src);
    if (src->state->n_kept > 0) {
        uint8_t *next = src->state->kept[src->state->oldest];
        src->state->kept[src->state->oldest] = src->state->buf;
        src->state->oldest = (src->state->oldest + 1) % src->state->n_kept;
        src->state->buf = next;
        memcpy(next, src->cur, have);
    } else if (have > 0 && src->cur != src->state->buf) {
        memmove(src->state->buf, src->cur, have);
    }
    src->cur = src->state->summed = src->state->buf;
    src->end = src->state->buf + have;
}

static enum rd_src_status fail(struct rd_src *src)
{
    if (src->state->err.code == RD_ERR_OK)
        rd_err_set(&src->state->err, RD_ERR_IO, RD_NO_OFFSET, "cannot read");
    if (src->state->err.code == RD_ERR_IO && src->state->err.offset == RD_NO_OFFSET)
        src->state->err.offset = src->end_off;
    rd_err_origin(&src->state->err, src->state->origin);
    src->state->failed = true;
    return RD_SRC_FAIL;
}

/* One read to the end of the window. */
static enum rd_src_status read_once(struct rd_src *src)
{
    size_t have = rd_src_avail(src);
    size_t got = 0;
    enum rd_src_status status = src->state->ops->read(
        src->state->impl, src->state->buf + have, src->state->cap - have, &got, &src->state->err);
    if (status == RD_SRC_OK) {
        assert(got > 0 && got <= src->state->cap - have);
        src->end += got;
        src->end_off += got;
    } else if (status == RD_SRC_END) {
        src->state->ended = true;
    }
    return status;
}

enum rd_src_status rd_src_fill(struct rd_src *src, size_t n, struct rd_slice *ret)
{
    enum rd_src_status status = RD_SRC_OK;
    if (src->state->failed)
        return RD_SRC_FAIL;
    if (src->state->buf != NULL && n > src->state->cap) {
        rd_err_set(&src->state->err, RD_ERR_LIMIT, rd_src_offset(src),
                   "%zu bytes in one piece do not fit the window of %zu", n, src->state->cap);
        return fail(src);
    }
    if (!src->state->ended)
        slide(src);
    while (status == RD_SRC_OK && rd_src_avail(src) < n)
        status = src->state->ended ? RD_SRC_END : read_once(src);
    if (status == RD_SRC_FAIL)
        return fail(src);
    *ret = rd_slice(src->cur, rd_src_avail(src));
    return status;
}

void rd_src_sum_begin(struct rd_src *src, uint64_t crc)
{
    src->state->crc = crc;
    src->state->summed = src->cur;
    src->state->sum = true;
}

void rd_src_sum_stop(struct rd_src *src)
{
    settle_sum(src);
    src->state->sum = false;
}

uint64_t rd_src_sum(struct rd_src *src)
{
    settle_sum(src);
    return src->state->crc;
}

bool rd_src_can_seek(const struct rd_src *src)
{
    return src->state->buf == NULL || src->state->ops->seek != NULL;
}

/* Makes the byte at `offset` the next one; false when it is not in the window. */
static bool seek_in_window(struct rd_src *src, uint64_t offset)
{
    size_t size = src->state->buf != NULL ? (size_t)(src->end - src->state->buf) : src->state->cap;
    if (offset > src->end_off || src->end_off - offset > size)
        return false;
    src->cur = src->state->summed = src->end - (size_t)(src->end_off - offset);
    return true;
}

/* Empties the window and seeks to `offset`. */
static bool seek_outside(struct rd_src *src, uint64_t offset, struct rd_err *err)
{
    if (src->state->buf == NULL)
        return rd_err_set(err, RD_ERR_USAGE, offset, "cannot seek past the end, byte %zu",
                          src->state->cap);
    if (!src->state->ops->seek(src->state->impl, offset, err))
        return false;
    src->cur = src->end = src->state->summed = src->state->buf;
    src->end_off = offset;
    return true;
}

bool rd_src_seek(struct rd_src *src, uint64_t offset, struct rd_err *err)
{
    rd_src_sum_stop(src);
    if (!rd_src_can_seek(src)) {
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "cannot seek here");
        rd_err_origin(err, src->state->origin);
        return false;
    }
    if (!seek_in_window(src, offset) && !seek_outside(src, offset, err)) {
        rd_err_origin(err, src->state->origin);
        return false;
    }
    src->state->ended = src->state->buf == NULL;
    src->state->failed = false;
    rd_err_reset(&src->state->err);
    return true;
}

/* A push source: src->state->cap is the maximum size of the window. */
struct push {
    size_t size; /* allocated */
};

enum { PUSH_FIRST_SIZE = 4096 };

static enum rd_src_status push_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err)
{
    (void)impl, (void)buf, (void)cap, (void)ret_len, (void)err;
    return RD_SRC_MORE;
}

static const struct rd_src_ops push_ops = {.read = push_read, .close = rd_free};

bool rd_src_open_push(struct rd_src **ret, const struct rd_src_opts *opts, struct rd_err *err)
{
    struct rd_src_opts own;
    if (!rd_sized_copy(&own, sizeof own, opts, err))
        return false;
    size_t cap = window_of(&own);
    struct push *push = rd_alloc(sizeof *push);
    if (push == NULL)
        return nomem(sizeof *push, &own, err);
    push->size = cap < PUSH_FIRST_SIZE ? cap : PUSH_FIRST_SIZE;
    return new_buffered(ret, &push_ops, push, cap, push->size, &own, err);
}

static bool push_grow(struct rd_src *src, size_t need)
{
    struct push *push = src->state->impl;
    if (need <= push->size)
        return true;
    size_t size = push->size > src->state->cap / 2 ? src->state->cap : push->size * 2;
    if (size < need)
        size = need;
    size_t have = rd_src_avail(src);
    uint8_t *buf = rd_realloc(src->state->buf, size);
    if (buf == NULL) {
        rd_err_nomem(&src->state->err, size);
        fail(src);
        return false;
    }
    push->size = size;
    src->state->buf = buf;
    src->cur = src->state->summed = buf;
    src->end = buf + have;
    return true;
}

size_t rd_src_push_room(const struct rd_src *src)
{
    if (src->state->ops != &push_ops || src->state->ended || src->state->failed)
        return 0;
    return src->state->cap - rd_src_avail(src);
}

bool rd_src_push(struct rd_src *src, struct rd_slice bytes)
{
    if (bytes.len == 0)
        return true;
    if (bytes.len > rd_src_push_room(src))
        return false;
    size_t have = rd_src_avail(src);
    slide(src);
    if (!push_grow(src, have + bytes.len))
        return false;
    memcpy(src->state->buf + have, bytes.ptr, bytes.len);
    src->end += bytes.len;
    src->end_off += bytes.len;
    return true;
}

void rd_src_push_end(struct rd_src *src)
{
    src->state->ended = true;
}

struct trickle {
    struct rd_src *inner;
    size_t n;
};

static enum rd_src_status trickle_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                       struct rd_err *err)
{
    struct trickle *trickle = impl;
    struct rd_slice s;
    enum rd_src_status status = rd_src_need(trickle->inner, 1, &s);
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(trickle->inner));
    if (status != RD_SRC_OK)
        return status;
    size_t n = trickle->n < cap ? trickle->n : cap;
    if (n > s.len)
        n = s.len;
    memcpy(buf, s.ptr, n);
    rd_src_consume(trickle->inner, n);
    *ret_len = n;
    return RD_SRC_OK;
}

static bool trickle_seek(void *impl, uint64_t offset, struct rd_err *err)
{
    struct trickle *trickle = impl;
    return rd_src_seek(trickle->inner, offset, err);
}

static void trickle_close(void *impl)
{
    struct trickle *trickle = impl;
    rd_src_close(trickle->inner);
    rd_free(trickle);
}

bool rd_src_open_trickle(struct rd_src **ret, struct rd_src *inner, size_t n,
                         const struct rd_src_opts *opts, struct rd_err *err)
{
    static const struct rd_src_ops ops = {trickle_read, NULL, trickle_close};
    static const struct rd_src_ops seekable_ops = {trickle_read, trickle_seek, trickle_close};
    struct rd_src_opts own;
    if (!rd_sized_copy(&own, sizeof own, opts, err)) {
        rd_src_close(inner);
        return false;
    }
    if (own.origin == NULL)
        own.origin = rd_src_origin(inner);
    if (own.total == 0 && !own.sized) {
        own.total = rd_src_size(inner);
        own.sized = true;
    }
    struct trickle *trickle = rd_alloc(sizeof *trickle);
    if (trickle == NULL) {
        nomem(sizeof *trickle, &own, err);
        rd_src_close(inner);
        return false;
    }
    trickle->inner = inner;
    trickle->n = n > 0 ? n : 1;
    /* The inner source is closed when this fails, and own.origin may lie in it. */
    char origin[RD_ERR_TEXT_MAX];
    snprintf(origin, sizeof origin, "%s", own.origin);
    own.origin = origin;
    return rd_src_new(ret, rd_src_can_seek(inner) ? &seekable_ops : &ops, trickle, &own, err);
}
