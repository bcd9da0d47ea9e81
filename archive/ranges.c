#include "archive/ranges.h"

#include "base/mem.h"

#include <stdio.h>

struct ranges {
    struct archive_store *store;
    archive_range_fn get;
    uint64_t at, size;
    struct rd_buf buf;
    size_t used; /* of buf */
    char name[ARCHIVE_NAME_MAX];
};

static enum rd_src_status ranges_read(void *impl, uint8_t *dst, size_t cap, size_t *ret_len,
                                      struct rd_err *err)
{
    struct ranges *r = impl;
    *ret_len = 0;
    if (r->used == r->buf.len) {
        uint64_t left = r->size - r->at;
        size_t len = left < ARCHIVE_RANGE ? (size_t)left : ARCHIVE_RANGE;
        if (len == 0)
            return RD_SRC_END;
        rd_buf_reset(&r->buf);
        r->used = 0;
        if (!r->get(r->store, r->name, r->at, len, &r->buf, err))
            return RD_SRC_FAIL;
        r->at += len;
    }
    size_t n = r->buf.len - r->used < cap ? r->buf.len - r->used : cap;
    memcpy(dst, r->buf.ptr + r->used, n);
    r->used += n;
    *ret_len = n;
    return RD_SRC_OK;
}

static void ranges_close(void *impl)
{
    struct ranges *r = impl;
    rd_buf_done(&r->buf);
    rd_free(r);
}

bool archive_ranges_open(struct rd_src **ret, struct archive_store *store, const char *name,
                         uint64_t size, archive_range_fn get, struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = ranges_read, .close = ranges_close};
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = name, .total = size, .sized = true);
    struct ranges *r = rd_calloc(1, sizeof *r);
    if (r == NULL)
        return rd_err_nomem(err, sizeof *r);
    r->store = store;
    r->get = get;
    r->size = size;
    snprintf(r->name, sizeof r->name, "%s", name);
    return rd_src_new(ret, &ops, r, &opts, err);
}
