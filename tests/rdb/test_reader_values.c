/* Ways past a value, strings and names of every size, limits, and readers of a part. */
#include "rdb/reader.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/endian.h"
#include "base/src_impl.h"
#include "tests/base/broken.h"
#include "tests/rdb/made_file.h"
#include "tests/rdb/read_all.h"
#include "tests/rdb/snapshots.h"

enum { ENDS_MAX = 4096 };

struct ends {
    uint64_t at[ENDS_MAX];
    size_t n;
};

static void note_end(struct ends *ends, uint64_t offset)
{
    cr_assert_lt(ends->n, ENDS_MAX);
    ends->at[ends->n++] = offset;
}

/* Where each value ends, when it is read. */
static void ends_of_detail(struct rd_slice file, enum rdb_detail detail, const struct way *way,
                           struct ends *ret)
{
    struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = detail);
    struct rd_src *src = way_open(way, file);
    struct rdb_reader *r;
    struct rdb_event ev;
    bool key = false;
    ret->n = 0;
    cr_assert(rdb_reader_new(&r, src, &opts, NULL));
    while (rdb_reader_next(r, &ev) == RDB_EVENT) {
        key = key || ev.kind == RDB_KEY;
        if (ev.kind == RDB_VALUE_END && key) {
            note_end(ret, ev.offset);
            key = false;
        }
    }
    cr_assert_eq(rdb_reader_err(r)->code, RD_ERR_OK);
    rdb_reader_free(r);
    rd_src_close(src);
}

/* ... when it is skipped, or copied; what is copied is what is in the file, unless the value refers
 * to another record. */
static void ends_of_passing(struct rd_slice file, bool copy, const struct way *way,
                            struct ends *ret)
{
    struct rd_src *src = way_open(way, file);
    struct rdb_reader *r;
    struct rdb_event ev;
    ret->n = 0;
    cr_assert(rdb_reader_new(&r, src, NULL, NULL));
    while (rdb_reader_next(r, &ev) == RDB_EVENT) {
        struct rd_buf out = {0};
        struct rd_sink *sink;
        uint64_t from = rd_src_offset(src);
        if (ev.kind != RDB_KEY)
            continue;
        cr_assert(rd_sink_open_buf(&sink, &out, NULL, NULL));
        enum rdb_status st = copy ? rdb_reader_copy_value(r, sink) : rdb_reader_skip_value(r);
        cr_assert(rd_sink_close(sink, NULL));
        cr_assert_eq(st, RDB_EVENT);
        note_end(ret, rd_src_offset(src));
        struct rd_slice value = rd_slice(file.ptr + from, (size_t)(rd_src_offset(src) - from));
        cr_assert(!copy || ev.raw.len == 0 || rd_slice_eq(rd_buf_slice(&out), value));
        rd_buf_done(&out);
    }
    cr_assert_eq(rdb_reader_err(r)->code, RD_ERR_OK);
    rdb_reader_free(r);
    rd_src_close(src);
}

static void same_ends(const struct ends *a, const struct ends *b, const char *path, const char *how)
{
    cr_assert_eq(a->n, b->n, "%s: %s", path, how);
    for (size_t i = 0; i < a->n; i++)
        cr_assert_eq(a->at[i], b->at[i], "%s: %s: value %zu", path, how, i);
}

static void compare_ends(void *ctx, const struct snapshot *s)
{
    static const struct way ways[] = {{WAY_MEMORY, 0}, {WAY_WINDOW, 512}, {WAY_TRICKLE, 100}};
    static struct ends first, other;
    (void)ctx;
    ends_of_detail(s->bytes, RDB_DETAIL_ELEMENTS, &ways[0], &first);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        ends_of_detail(s->bytes, RDB_DETAIL_PACKED, &ways[i], &other);
        same_ends(&first, &other, s->path, "packed");
        ends_of_detail(s->bytes, RDB_DETAIL_CHECK, &ways[i], &other);
        same_ends(&first, &other, s->path, "check");
        ends_of_detail(s->bytes, RDB_DETAIL_FRAMES, &ways[i], &other);
        same_ends(&first, &other, s->path, "frames");
        ends_of_passing(s->bytes, false, &ways[i], &other);
        same_ends(&first, &other, s->path, "skipped");
        ends_of_passing(s->bytes, true, &ways[i], &other);
        same_ends(&first, &other, s->path, "copied");
    }
}

Test(reader_values, end_at_the_same_byte_in_every_detail_skipped_and_copied)
{
    cr_assert_gt(snapshots_each_sound(1 << 20, compare_ends, NULL), 50);
}

/* Each packed string: where it is, and its length. */
struct blobs {
    uint64_t at[ENDS_MAX];
    uint64_t len[ENDS_MAX];
    size_t n, n_long;
};

static void blobs_of(struct rd_slice file, const struct way *way, struct blobs *ret)
{
    struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_PACKED, .long_packed = true);
    struct rd_src *src = way_open(way, file);
    struct rdb_reader *r;
    struct rdb_event ev;
    ret->n = ret->n_long = 0;
    cr_assert(rdb_reader_new(&r, src, &opts, NULL));
    while (rdb_reader_next(r, &ev) == RDB_EVENT) {
        if (ev.kind != RDB_PACKED && ev.kind != RDB_PACKED_LONG)
            continue;
        cr_assert_lt(ret->n, ENDS_MAX);
        cr_expect_eq(ev.kind == RDB_PACKED_LONG, ev.packed.blob.ptr == NULL);
        ret->n_long += ev.kind == RDB_PACKED_LONG;
        ret->at[ret->n] = ev.offset;
        ret->len[ret->n++] = ev.packed.blob.len;
    }
    cr_assert_eq(rdb_reader_err(r)->code, RD_ERR_OK, "%s", rdb_reader_err(r)->text);
    rdb_reader_free(r);
    rd_src_close(src);
}

static void compare_blobs(void *ctx, const struct snapshot *s)
{
    static const struct way whole = {WAY_MEMORY, 0}, narrow = {WAY_WINDOW, 512};
    static struct blobs a, b;
    size_t *n_long = ctx;
    blobs_of(s->bytes, &whole, &a);
    blobs_of(s->bytes, &narrow, &b);
    cr_assert_eq(a.n, b.n, "%s", s->path);
    cr_expect_arr_eq(a.at, b.at, a.n * sizeof a.at[0], "%s", s->path);
    cr_expect_arr_eq(a.len, b.len, a.n * sizeof a.len[0], "%s", s->path);
    *n_long += b.n_long - a.n_long;
}

Test(reader_values, name_the_length_of_a_packed_string_that_is_too_long_for_an_event)
{
    size_t n_long = 0;
    snapshots_each_sound(1 << 18, compare_blobs, &n_long);
    cr_expect_gt(n_long, 50);
}

/* -- large things -- */

static uint8_t pattern(size_t i)
{
    return (uint8_t)(i * 31 + i / 251);
}

static void add_pattern(struct rd_buf *buf, size_t len)
{
    made_len32(buf, len);
    cr_assert(rd_buf_reserve(buf, len));
    for (size_t i = 0; i < len; i++)
        buf->ptr[buf->len++] = pattern(i);
}

/* `decoded` bytes, all of them 'z': a literal, then copies of 264. */
static size_t add_lzf(struct rd_buf *buf, size_t copies)
{
    size_t stored = 2 + 3 * copies, decoded = 1 + 264 * copies;
    made_add(buf, "\xc3", 1);
    made_len32(buf, stored);
    made_len32(buf, decoded);
    made_add(buf, "\0z", 2);
    for (size_t i = 0; i < copies; i++)
        made_add(buf, "\xe0\xff\0", 3);
    return decoded;
}

static void add_end(struct rd_buf *buf)
{
    made_add(buf, "\xff\0\0\0\0\0\0\0\0", 9);
}

/* Reads one string value in pieces and compares it with what `expect` says byte i is. */
static void check_pieces(struct rd_slice file, const struct way *way, size_t total, bool zs)
{
    struct rd_src *src = way_open(way, file);
    struct rdb_reader *r;
    struct rdb_event ev;
    enum rdb_status st;
    size_t at = 0;
    unsigned n_first = 0, n_last = 0;
    cr_assert(rdb_reader_new(&r, src, NULL, NULL));
    while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT) {
        if (ev.kind != RDB_ELEM)
            continue;
        const struct rdb_string *s = &ev.elem.str;
        cr_assert_eq(s->total, total);
        cr_assert_leq(s->len, 64 * 1024);
        n_first += s->first;
        n_last += !s->more;
        for (size_t i = 0; i < s->len; i++, at++)
            if (s->ptr[i] != (zs ? 'z' : pattern(at)))
                cr_assert_fail("byte %zu", at);
    }
    cr_assert_eq(st, RDB_END);
    cr_assert_eq(at, total);
    cr_assert(n_first == 1 && n_last == 1);
    rdb_reader_free(r);
    rd_src_close(src);
}

Test(reader_values, strings_of_megabytes_come_in_pieces)
{
    static const struct way ways[] = {
        {WAY_MEMORY, 0}, {WAY_WINDOW, 512}, {WAY_TRICKLE, 4096}, {WAY_WINDOW, 1 << 20}};
    struct rd_buf raw = {0}, lzf = {0};
    made_add(&raw, "REDIS0009\0\1k", 12);
    add_pattern(&raw, 3 << 20);
    add_end(&raw);
    made_add(&lzf, "REDIS0009\0\1k", 12);
    size_t decoded = add_lzf(&lzf, 12000);
    add_end(&lzf);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        check_pieces(rd_buf_slice(&raw), &ways[i], 3 << 20, false);
        check_pieces(rd_buf_slice(&lzf), &ways[i], decoded, true);
        for (int detail = RDB_DETAIL_CHECK; detail <= RDB_DETAIL_FRAMES; detail++) {
            struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = (enum rdb_detail)detail);
            cr_expect_eq(read_all(rd_buf_slice(&raw), &ways[i], &opts, NULL).code, RD_ERR_OK);
            cr_expect_eq(read_all(rd_buf_slice(&lzf), &ways[i], &opts, NULL).code, RD_ERR_OK);
        }
    }
    rd_buf_done(&raw);
    rd_buf_done(&lzf);
}

/* A compressed string that says it is longer, or shorter, than it is. */
Test(reader_values, long_compressed_strings_must_come_out_even)
{
    static const int off_by[] = {-1, 1};
    for (size_t i = 0; i < 2; i++) {
        struct rd_buf file = {0};
        struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_CHECK);
        struct way way = {WAY_WINDOW, 512};
        made_add(&file, "REDIS0009\0\1k", 12);
        size_t decoded = add_lzf(&file, 500);
        rd_put_be32(file.ptr + 12 + 7, (uint32_t)((int)decoded + off_by[i]));
        add_end(&file);
        cr_expect_eq(read_all(rd_buf_slice(&file), &way, &opts, NULL).code, RD_ERR_CORRUPT);
        opts.detail = RDB_DETAIL_ELEMENTS;
        cr_expect_eq(read_all(rd_buf_slice(&file), &way, &opts, NULL).code, RD_ERR_CORRUPT);
        rd_buf_done(&file);
    }
}

Test(reader_values, a_compressed_string_of_nothing_has_nothing_stored)
{
    for (int detail = RDB_DETAIL_ELEMENTS; detail <= RDB_DETAIL_CHECK; detail++) {
        static const char file[] = "REDIS0009\0\1k\xc3\x05\0\0a\xe0\0\0\xff\0\0\0\0\0\0\0\0";
        static const char large[] = "REDIS0009\0\1k\xc3\x80\x10\0\0\0\0\xff\0\0\0\0\0\0\0\0";
        struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = (enum rdb_detail)detail);
        struct way way = {WAY_MEMORY, 0};
        struct rd_err err = read_all(rd_slice(file, sizeof file - 1), &way, &opts, NULL);
        cr_expect_eq(err.code, RD_ERR_CORRUPT);
        cr_expect_eq(err.offset, 12);
        err = read_all(rd_slice(large, sizeof large - 1), &way, &opts, NULL);
        cr_expect_neq(err.code, RD_ERR_OK, "detail %d", detail);
    }
}

static void long_names(struct rd_buf *file, size_t len)
{
    made_add(file, "REDIS0009\xfa\4long\1x", 17);
    made_add(file, "\0", 1);
    add_pattern(file, len);
    made_add(file, "\1v\0", 3);
    size_t decoded = add_lzf(file, len / 264);
    cr_assert_gt(decoded, 512);
    made_add(file, "\1w", 2);
    add_end(file);
}

Test(reader_values, names_longer_than_the_window_are_whole)
{
    static const struct way ways[] = {
        {WAY_WINDOW, 512}, {WAY_TRICKLE, 1}, {WAY_PUSH, 1000}, {WAY_PUSH, 1}};
    struct rd_buf file = {0};
    long_names(&file, 20000);
    struct event_text whole = {0};
    struct way memory = {WAY_MEMORY, 0};
    struct rdb_reader_opts opts = RDB_READER_OPTS();
    cr_assert_eq(read_all(rd_buf_slice(&file), &memory, &opts, &whole).code, RD_ERR_OK);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct event_text text = {0};
        cr_assert_eq(read_all(rd_buf_slice(&file), &ways[i], &opts, &text).code, RD_ERR_OK);
        cr_expect(rd_slice_eq(rd_buf_slice(&text.text), rd_buf_slice(&whole.text)), "%zu", i);
        rd_buf_done(&text.text);
    }
    rd_buf_done(&whole.text);
    rd_buf_done(&file);
}

Test(reader_values, names_longer_than_the_limit_are_refused)
{
    static const struct way ways[] = {{WAY_MEMORY, 0}, {WAY_WINDOW, 512}};
    struct rd_buf file = {0};
    long_names(&file, 20000);
    for (size_t i = 0; i < 2; i++) {
        struct rdb_reader_opts opts = RDB_READER_OPTS(.max_name = 19999);
        struct rd_err err = read_all(rd_buf_slice(&file), &ways[i], &opts, NULL);
        cr_expect_eq(err.code, RD_ERR_LIMIT);
        cr_expect_eq(err.offset, 18);
        opts.max_name = 20064;
        cr_expect_eq(read_all(rd_buf_slice(&file), &ways[i], &opts, NULL).code, RD_ERR_OK);
    }
    rd_buf_done(&file);
}

Test(reader_values, compressed_names_longer_than_the_limit_are_refused)
{
    struct rd_buf file = {0};
    struct rdb_reader_opts opts = RDB_READER_OPTS(.max_name = 5000);
    struct way way = {WAY_MEMORY, 0};
    made_add(&file, "REDIS0009\0", 10);
    add_lzf(&file, 40);
    made_add(&file, "\1w", 2);
    add_end(&file);
    cr_expect_eq(read_all(rd_buf_slice(&file), &way, &opts, NULL).code, RD_ERR_LIMIT);
    rd_buf_done(&file);
}

/* -- readers of a part, and misuse -- */

Test(reader_values, reads_a_value_without_key)
{
    static const char value[] = "\1\2\1a\1b";
    struct rd_src *src;
    struct rdb_reader *r;
    struct rdb_event ev;
    struct rd_slice key;
    const struct rdb_type *type;
    uint64_t db;
    cr_assert(rd_src_open_memory(&src, rd_slice(value, sizeof value - 1), NULL, NULL));
    cr_assert(rdb_reader_new_value(&r, src, RDB_REDIS, 9, NULL, NULL));
    cr_assert(rdb_reader_next(r, &ev) == RDB_EVENT && ev.kind == RDB_VALUE);
    cr_expect_not(rdb_reader_where(r, &key, &type, &db));
    cr_assert(rdb_reader_next(r, &ev) == RDB_EVENT && ev.kind == RDB_ELEM);
    cr_assert(rdb_reader_next(r, &ev) == RDB_EVENT && ev.kind == RDB_ELEM);
    cr_assert(rdb_reader_next(r, &ev) == RDB_EVENT && ev.kind == RDB_VALUE_END);
    cr_expect_eq(ev.value_end.count, 2);
    cr_assert_eq(rdb_reader_next(r, &ev), RDB_END);
    cr_assert_eq(rdb_reader_next(r, &ev), RDB_END);
    rdb_reader_free(r);
    rd_src_close(src);
}

Test(reader_values, a_value_of_an_unknown_type_is_refused)
{
    struct rd_src *src;
    struct rdb_reader *r;
    struct rdb_event ev;
    cr_assert(rd_src_open_memory(&src, rd_slice("\x08", 1), NULL, NULL));
    cr_assert(rdb_reader_new_value(&r, src, RDB_REDIS, 9, NULL, NULL));
    cr_assert_eq(rdb_reader_next(r, &ev), RDB_FAIL);
    cr_expect_eq(rdb_reader_err(r)->code, RD_ERR_UNSUPPORTED);
    rdb_reader_free(r);
    rd_src_close(src);
}

Test(reader_values, begins_between_records_and_begins_again)
{
    static const char bytes[] = "\0\1a\1x\0\1b\1y";
    struct rd_src *src;
    struct rdb_reader *r;
    struct rdb_event ev;
    struct rd_slice key;
    const struct rdb_type *type;
    uint64_t db;
    cr_assert(rd_src_open_memory(&src, rd_slice(bytes, sizeof bytes - 1), NULL, NULL));
    cr_assert(rdb_reader_new_records(&r, src, RDB_REDIS, 9, NULL, NULL));
    cr_expect_eq(rdb_reader_version(r), 9);
    cr_expect_eq(rdb_reader_dialect(r), RDB_REDIS);
    cr_assert(rdb_reader_next(r, &ev) == RDB_EVENT && ev.kind == RDB_KEY);
    cr_assert_eq(rdb_reader_skip_value(r), RDB_EVENT);
    cr_assert(rdb_reader_next(r, &ev) == RDB_EVENT && ev.kind == RDB_KEY);
    cr_expect_eq(rdb_reader_record(r), 5);
    cr_assert(rdb_reader_where(r, &key, &type, &db));
    cr_expect(rd_slice_is(key, "b") && type->id == RDB_TYPE_STRING && db == 0);
    cr_assert(rd_src_seek(src, 0, NULL));
    rdb_reader_restart(r, 7);
    cr_assert(rdb_reader_next(r, &ev) == RDB_EVENT && ev.kind == RDB_KEY);
    cr_expect(rd_slice_is(ev.key.name, "a") && ev.key.db == 7);
    cr_assert_eq(rdb_reader_skip_value(r), RDB_EVENT);
    cr_assert(rdb_reader_next(r, &ev) == RDB_EVENT && ev.kind == RDB_KEY);
    cr_assert_eq(rdb_reader_skip_value(r), RDB_EVENT);
    cr_assert_eq(rdb_reader_next(r, &ev), RDB_FAIL);
    cr_expect_eq(rdb_reader_err(r)->code, RD_ERR_TRUNCATED);
    rdb_reader_free(r);
    rd_src_close(src);
}

Test(reader_values, skipping_without_a_value_is_a_usage_error)
{
    struct rd_src *src;
    struct rdb_reader *r;
    cr_assert(rd_src_open_memory(&src, rd_slice("REDIS0009", 9), NULL, NULL));
    cr_assert(rdb_reader_new(&r, src, NULL, NULL));
    cr_expect_eq(rdb_reader_skip_value(r), RDB_FAIL);
    cr_expect_eq(rdb_reader_err(r)->code, RD_ERR_USAGE);
    cr_expect_eq(rdb_reader_skip_value(r), RDB_FAIL);
    rdb_reader_free(r);
    rdb_reader_free(NULL);
    rd_src_close(src);
}

Test(reader_values, a_window_below_512_bytes_is_too_small)
{
    struct rd_src *src;
    struct rdb_reader *r;
    struct rd_err err = {0};
    struct rd_src_opts opts = RD_SRC_OPTS(.window = 511);
    cr_assert(rd_src_open_memory(&src, rd_slice("", 0), NULL, NULL));
    cr_assert(rd_src_open_trickle(&src, src, 1, &opts, NULL));
    cr_expect_not(rdb_reader_new(&r, src, NULL, &err));
    cr_expect_not(rdb_reader_new_value(&r, src, RDB_REDIS, 9, NULL, NULL));
    cr_expect_not(rdb_reader_new_records(&r, src, RDB_REDIS, 9, NULL, NULL));
    cr_expect_eq(err.code, RD_ERR_USAGE);
    rd_src_close(src);
}

Test(reader_values, a_sink_that_fails_fails_the_copy)
{
    static const struct way ways[] = {{WAY_MEMORY, 0}, {WAY_WINDOW, 512}};
    struct rd_buf file = {0};
    made_add(&file, "REDIS0009\0\1k", 12);
    add_pattern(&file, 1 << 20);
    add_end(&file);
    for (size_t i = 0; i < 2; i++) {
        struct rd_src *src = way_open(&ways[i], rd_buf_slice(&file));
        struct broken_sink to = {.room = 0};
        struct rd_sink *sink = broken_sink_open(&to, 0);
        struct rdb_reader *r;
        struct rdb_event ev;
        cr_assert(rdb_reader_new(&r, src, NULL, NULL));
        while (rdb_reader_next(r, &ev) == RDB_EVENT && ev.kind != RDB_KEY)
            continue;
        cr_expect_eq(rdb_reader_copy_value(r, sink), RDB_FAIL);
        cr_expect_eq(rdb_reader_err(r)->code, RD_ERR_IO);
        rdb_reader_free(r);
        rd_sink_abort(sink);
        rd_src_close(src);
    }
    rd_buf_done(&file);
}
