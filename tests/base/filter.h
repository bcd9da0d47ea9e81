/* filter.h - what the tests of the compression filters share.
 *
 * A case is a filter's two open functions; the text that goes through it compresses well in places
 * and badly in others, and is longer than any block of either format.
 */
#ifndef TESTS_BASE_FILTER_H
#define TESTS_BASE_FILTER_H

#include "base/buf.h"
#include "base/sink.h"
#include "base/src_impl.h"
#include "tests/base/broken.h"
#include "tests/support/alloc_fault.h"

#include <criterion/criterion.h>

struct filter {
    bool (*open_src)(struct rd_src **ret, struct rd_src *inner, struct rd_err *err);
    bool (*open_sink)(struct rd_sink **ret, struct rd_sink *inner, int level, struct rd_err *err);
};

/* len bytes, the same ones for the same len. */
static inline struct rd_buf filter_text(size_t len)
{
    struct rd_buf buf = {0};
    uint64_t x = 88172645463325252u;
    cr_assert(rd_buf_reserve(&buf, len + 1));
    for (size_t i = 0; i < len; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        buf.ptr[i] = i % 3000 < 1500 ? (uint8_t)(i % 60) : (uint8_t)(x >> 20);
    }
    buf.len = len;
    return buf;
}

/* Appends the compressed form of bytes to *out, written in pieces of `piece`. */
static inline void filter_pack(const struct filter *filter, struct rd_slice bytes, size_t piece,
                               int level, struct rd_buf *out)
{
    struct rd_sink *inner, *sink;
    struct rd_err err = {0};
    cr_assert(rd_sink_open_buf(&inner, out, NULL, &err));
    cr_assert(filter->open_sink(&sink, inner, level, &err));
    for (size_t off = 0; off < bytes.len; off += piece)
        cr_assert(rd_sink_write(sink, bytes.ptr + off,
                                off + piece < bytes.len ? piece : bytes.len - off));
    cr_assert(rd_sink_close(sink, &err), "%s", err.text);
}

/* Reads src to its end into *ret and closes it; how it ended is in *err, whose offset is checked.
 */
static inline void filter_drain(struct rd_src *src, struct rd_buf *ret, struct rd_err *err)
{
    struct rd_slice s;
    enum rd_src_status status;
    *ret = (struct rd_buf){0};
    while ((status = rd_src_need(src, 1, &s)) == RD_SRC_OK) {
        cr_assert(rd_buf_add(ret, s.ptr, s.len));
        rd_src_consume(src, s.len);
    }
    rd_err_reset(err);
    if (status == RD_SRC_FAIL)
        *err = *rd_src_err(src);
    rd_src_close(src);
}

/* Unpacks bytes that come in pieces. */
static inline void filter_unpack(const struct filter *filter, struct rd_slice bytes, size_t piece,
                                 struct rd_buf *ret, struct rd_err *err)
{
    struct rd_src *inner, *src;
    cr_assert(rd_src_open_memory(&inner, bytes, NULL, err));
    cr_assert(rd_src_open_trickle(&inner, inner, piece, NULL, err));
    cr_assert(filter->open_src(&src, inner, err));
    filter_drain(src, ret, err);
}

static inline void filter_expect(const struct rd_buf *got, struct rd_slice want)
{
    cr_assert_eq(got->len, want.len);
    if (want.len > 0)
        cr_assert_arr_eq(got->ptr, want.ptr, want.len);
}

/* What comes out of the bytes, and how it ends: where it fails, after what came out. */
static inline void filter_expect_end(const struct filter *filter, struct rd_slice bytes,
                                     enum rd_err_code code, const char *want)
{
    struct rd_buf got;
    struct rd_err err = {0};
    filter_unpack(filter, bytes, 4096, &got, &err);
    cr_expect_eq(err.code, code, "%s", err.text);
    filter_expect(&got, rd_slice_str(want));
    if (code != RD_ERR_OK)
        cr_expect_eq(err.offset, got.len);
    rd_buf_done(&got);
}

static inline void filter_check_round_trips(const struct filter *filter, int level_max)
{
    static const size_t lens[] = {0, 1, 100, 65536, 700000};
    for (size_t i = 0; i < 5; i++) {
        struct rd_buf text = filter_text(lens[i]);
        for (int level = 0; level <= level_max; level += level_max / 2) {
            struct rd_buf packed = {0}, got;
            struct rd_err err = {0};
            filter_pack(filter, rd_buf_slice(&text), 10000, level, &packed);
            filter_unpack(filter, rd_buf_slice(&packed), 5000, &got, &err);
            cr_assert_eq(err.code, RD_ERR_OK, "%s", err.text);
            filter_expect(&got, rd_buf_slice(&text));
            rd_buf_done(&got);
            rd_buf_done(&packed);
        }
        rd_buf_done(&text);
    }
}

static inline void filter_check_feed_sizes(const struct filter *filter)
{
    static const size_t pieces[] = {1, 2, 3, 7, 4096, 1 << 20};
    struct rd_buf text = filter_text(300000), packed = {0};
    filter_pack(filter, rd_buf_slice(&text), 300000, 1, &packed);
    filter_pack(filter, rd_slice_str("the end"), 7, 1, &packed);
    cr_assert(rd_buf_add(&text, "the end", 7));
    for (size_t i = 0; i < 6; i++) {
        struct rd_buf got;
        struct rd_err err = {0};
        filter_unpack(filter, rd_buf_slice(&packed), pieces[i], &got, &err);
        cr_assert_eq(err.code, RD_ERR_OK, "%s", err.text);
        filter_expect(&got, rd_buf_slice(&text));
        rd_buf_done(&got);
    }
    rd_buf_done(&text);
    rd_buf_done(&packed);
}

/* Every prefix but the empty one ends early, and says so at the offset of what came out of it. */
static inline void filter_check_prefixes(const struct filter *filter)
{
    struct rd_buf text = filter_text(2000), packed = {0};
    filter_pack(filter, rd_buf_slice(&text), 2000, 0, &packed);
    for (size_t len = 0; len < packed.len; len++) {
        struct rd_buf got;
        struct rd_err err = {0};
        filter_unpack(filter, rd_slice(packed.ptr, len), 64, &got, &err);
        cr_assert_eq(err.code, RD_ERR_TRUNCATED, "prefix %zu of %zu", len, packed.len);
        cr_assert_eq(err.offset, got.len, "prefix %zu", len);
        cr_assert(got.len <= text.len && (len == 0 || strstr(err.text, "compressed byte") != NULL));
        if (got.len > 0)
            cr_assert_arr_eq(got.ptr, text.ptr, got.len);
        rd_buf_done(&got);
    }
    rd_buf_done(&text);
    rd_buf_done(&packed);
}

/* No flipped bit gives other bytes without an error; some flags mean nothing, and change nothing.
 */
static inline void filter_check_flipped_bits(const struct filter *filter)
{
    struct rd_buf text = filter_text(700), packed = {0};
    size_t n_found = 0;
    filter_pack(filter, rd_buf_slice(&text), 700, 0, &packed);
    for (size_t bit = 0; bit < 8 * packed.len; bit++) {
        struct rd_buf got;
        struct rd_err err = {0};
        packed.ptr[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        filter_unpack(filter, rd_buf_slice(&packed), 64, &got, &err);
        packed.ptr[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        if (err.code == RD_ERR_OK) {
            filter_expect(&got, rd_buf_slice(&text));
        } else {
            cr_assert(err.code == RD_ERR_CORRUPT || err.code == RD_ERR_TRUNCATED ||
                      err.code == RD_ERR_LIMIT); /* a larger window */
            cr_assert_eq(err.offset, got.len, "bit %zu", bit);
            n_found++;
        }
        rd_buf_done(&got);
    }
    cr_assert_gt(n_found, 7 * packed.len, "nearly every flipped bit is found");
    rd_buf_done(&text);
    rd_buf_done(&packed);
}

/* A push source below the filter: MORE passes through, and what was pushed comes out. */
static inline void filter_check_push(const struct filter *filter)
{
    struct rd_buf text = filter_text(5000), packed = {0}, got = {0};
    struct rd_src *inner, *src;
    struct rd_slice s;
    struct rd_err err = {0};
    filter_pack(filter, rd_buf_slice(&text), 5000, 0, &packed);
    cr_assert(rd_src_open_push(&inner, NULL, &err));
    cr_assert(filter->open_src(&src, inner, &err));
    for (size_t i = 0; i < packed.len; i++) {
        enum rd_src_status status;
        while ((status = rd_src_need(src, 1, &s)) == RD_SRC_OK) {
            cr_assert(rd_buf_add(&got, s.ptr, s.len));
            rd_src_consume(src, s.len);
        }
        cr_assert_eq(status, RD_SRC_MORE);
        cr_assert(rd_src_push(inner, rd_slice(packed.ptr + i, 1)));
    }
    rd_src_push_end(inner);
    while (rd_src_need(src, 1, &s) == RD_SRC_OK) {
        cr_assert(rd_buf_add(&got, s.ptr, s.len));
        rd_src_consume(src, s.len);
    }
    cr_assert_eq(rd_src_err(src)->code, RD_ERR_OK);
    filter_expect(&got, rd_buf_slice(&text));
    rd_src_close(src);
    rd_buf_done(&got);
    rd_buf_done(&packed);
    rd_buf_done(&text);
}

static inline bool filter_try(const struct filter *filter, struct rd_buf *packed)
{
    struct rd_sink *inner, *sink;
    struct rd_src *below, *src;
    struct rd_slice s;
    if (!rd_sink_open_buf(&inner, packed, NULL, NULL))
        return false;
    if (!filter->open_sink(&sink, inner, 1, NULL)) {
        rd_sink_abort(inner);
        return false;
    }
    rd_sink_write(sink, "abcdefgh", 8);
    if (!rd_sink_close(sink, NULL))
        return false;
    if (!rd_src_open_memory(&below, rd_buf_slice(packed), NULL, NULL))
        return false;
    if (!filter->open_src(&src, below, NULL)) {
        rd_src_close(below);
        return false;
    }
    bool ok = rd_src_need(src, 8, &s) == RD_SRC_OK && rd_slice_is(s, "abcdefgh");
    rd_src_close(src);
    return ok;
}

static inline void filter_check_failing_allocations(const struct filter *filter)
{
    for (size_t n = 1;; n++) {
        struct rd_buf packed = {0};
        alloc_fault_begin(n);
        bool ok = filter_try(filter, &packed);
        rd_buf_done(&packed);
        struct alloc_fault_result result = alloc_fault_end();
        cr_assert_eq(result.live, 0, "allocation %zu", n);
        cr_assert_eq(ok, !result.failed, "allocation %zu", n);
        if (ok)
            break;
    }
}

/* The bytes up to a sync are readable, although the end is missing. */
static inline void filter_check_sync(const struct filter *filter)
{
    struct rd_buf packed = {0};
    struct rd_sink *inner, *sink;
    cr_assert(rd_sink_open_buf(&inner, &packed, NULL, NULL));
    cr_assert(filter->open_sink(&sink, inner, 0, NULL));
    cr_assert(rd_sink_write(sink, "abc", 3) && rd_sink_sync(sink));
    filter_expect_end(filter, rd_buf_slice(&packed), RD_ERR_TRUNCATED, "abc");
    rd_sink_abort(sink);
    rd_buf_done(&packed);
}

static inline void filter_check_level_refused(const struct filter *filter, int level)
{
    struct rd_sink *inner, *sink;
    struct rd_err err = {0};
    cr_assert(rd_sink_open_null(&inner, NULL, NULL));
    cr_expect_not(filter->open_sink(&sink, inner, level, &err));
    cr_expect_eq(err.code, RD_ERR_USAGE);
    rd_sink_abort(inner);
}

/* What could be read comes out, and then the error of the source below. */
static inline void filter_check_failing_source(const struct filter *filter)
{
    struct rd_buf text = filter_text(100000), packed = {0};
    filter_pack(filter, rd_buf_slice(&text), 100000, 0, &packed);
    for (size_t len = 0; len <= packed.len; len += packed.len / 4) {
        struct broken_src from = {.bytes = rd_slice(packed.ptr, len)};
        struct rd_src *inner = broken_src_open(&from, 1000), *src;
        struct rd_buf got;
        struct rd_err err = {0};
        cr_assert(filter->open_src(&src, inner, NULL));
        filter_drain(src, &got, &err);
        cr_expect_eq(err.code, RD_ERR_IO, "%zu: %s", len, err.text);
        cr_assert(got.len <= text.len && (got.len > 0 || len < packed.len));
        if (got.len > 0)
            cr_expect_arr_eq(got.ptr, text.ptr, got.len);
        rd_buf_done(&got);
    }
    rd_buf_done(&packed);
    rd_buf_done(&text);
}

/* Wherever the sink below fails, its error is the filter's. */
static inline void filter_check_failing_sink(const struct filter *filter)
{
    struct rd_buf text = filter_text(200000), packed = {0};
    filter_pack(filter, rd_buf_slice(&text), text.len, 0, &packed);
    for (size_t room = 0; room < packed.len; room += packed.len / 40) {
        struct broken_sink to = {.room = room};
        struct rd_sink *sink;
        struct rd_err err = {0};
        cr_assert(filter->open_sink(&sink, broken_sink_open(&to, 16), 0, NULL));
        rd_sink_write(sink, text.ptr, text.len);
        cr_expect_not(rd_sink_close(sink, &err), "%zu", room);
        cr_expect_eq(err.code, RD_ERR_IO, "%zu: %s", room, err.text);
        cr_expect(to.closed);
    }
    rd_buf_done(&packed);
    rd_buf_done(&text);
}

static inline void filter_check_failing_sync(const struct filter *filter)
{
    for (size_t room = 0; room < 30; room++) {
        struct broken_sink to = {.room = room, .no_sync = true};
        struct rd_sink *sink;
        cr_assert(filter->open_sink(&sink, broken_sink_open(&to, 1), 0, NULL));
        cr_assert(rd_sink_write(sink, "abc", 3));
        cr_expect_not(rd_sink_sync(sink));
        cr_expect_eq(rd_sink_err(sink)->code, RD_ERR_IO);
        rd_sink_abort(sink);
        cr_expect(to.closed);
    }
}

#endif
