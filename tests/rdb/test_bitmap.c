/* Bitmaps of Redis 8.12: the strings that their bits make up. */
#include "base/endian.h"
#include "rdb/writer.h"
#include "tests/rdb/made_file.h"
#include "tests/rdb/read_all.h"

enum { CHUNK = 8192, ARRAY_MAX = 4096, BITS = CHUNK * 8, SPARSE = 5000 };

static uint64_t random_at(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    return z ^ (z >> 27);
}

/* Chunks that are empty, that have few bits, many, or long runs of them. */
static void make_string(struct rd_buf *ret, size_t len, uint64_t seed)
{
    cr_assert(rd_buf_reserve(ret, len + 1));
    ret->len = len;
    memset(ret->ptr, 0, len + 1);
    for (size_t i = 0; i < len; i++) {
        unsigned kind = (unsigned)(i / CHUNK + seed) % 4;
        uint64_t r = random_at(&seed);
        ret->ptr[i] = kind == 0   ? 0
                      : kind == 1 ? (r % SPARSE < 200 ? (uint8_t)(r >> 32) : 0)
                      : kind == 2 ? (uint8_t)(r >> 32)
                                  : (i / 700 % 2 == 0 ? 0xff : 0);
    }
}

static bool has_bit(const struct rd_buf *s, uint64_t bit)
{
    return bit / 8 < s->len && (s->ptr[bit / 8] >> (7 - bit % 8) & 1) != 0;
}

static void put16(struct rd_buf *to, unsigned v)
{
    uint8_t bytes[2];
    rd_put_le16(bytes, (uint16_t)v);
    made_add(to, bytes, sizeof bytes);
}

static void put32(struct rd_buf *to, uint32_t v)
{
    uint8_t bytes[4];
    rd_put_le32(bytes, v);
    made_add(to, bytes, sizeof bytes);
}

static unsigned count(const struct rd_buf *s, uint64_t chunk, unsigned *ret_runs)
{
    unsigned n = 0;
    *ret_runs = 0;
    for (unsigned i = 0; i < BITS; i++) {
        bool set = has_bit(s, chunk * BITS + i);
        n += set;
        *ret_runs += set && (i == 0 || !has_bit(s, chunk * BITS + i - 1));
    }
    return n;
}

static void put_container(struct rd_buf *to, const struct rd_buf *s, uint64_t chunk, bool runs)
{
    unsigned n_runs, n = count(s, chunk, &n_runs), first = 0;
    if (runs)
        put16(to, n_runs);
    for (unsigned i = 0; runs && i < BITS; i++) {
        bool set = has_bit(s, chunk * BITS + i);
        if (set && (i == 0 || !has_bit(s, chunk * BITS + i - 1)))
            first = i;
        if (set && (i + 1 == BITS || !has_bit(s, chunk * BITS + i + 1))) {
            put16(to, first);
            put16(to, i - first);
        }
    }
    for (unsigned i = 0; !runs && n <= ARRAY_MAX && i < BITS; i++)
        if (has_bit(s, chunk * BITS + i))
            put16(to, i);
    for (unsigned i = 0; !runs && n > ARRAY_MAX && i < CHUNK; i++) {
        uint8_t byte = 0;
        for (unsigned k = 0; k < 8; k++)
            byte = (uint8_t)(byte | has_bit(s, chunk * BITS + i * 8 + k) << k);
        made_add(to, &byte, 1);
    }
}

/* The portable form, with one bucket. */
static void put_roaring(struct rd_buf *to, const struct rd_buf *s, bool runs)
{
    uint64_t chunks = (s->len + CHUNK - 1) / CHUNK;
    unsigned n = 0, n_runs;
    uint8_t flags[64] = {0};
    for (uint64_t i = 0; i < chunks; i++) {
        if (count(s, i, &n_runs) == 0)
            continue;
        flags[n / 8] = (uint8_t)(flags[n / 8] | (runs && n_runs < 1000) << n % 8);
        n++;
    }
    made_add(to, n > 0 ? "\1\0\0\0\0\0\0\0\0\0\0\0" : "\0\0\0\0\0\0\0", n > 0 ? 12 : 8);
    if (n == 0)
        return;
    put32(to, runs ? 12347 | (n - 1) << 16 : 12346);
    if (runs)
        made_add(to, flags, (n + 7) / 8);
    else
        put32(to, n);
    for (uint64_t i = 0; i < chunks; i++) {
        unsigned members = count(s, i, &n_runs);
        if (members > 0) {
            put16(to, (unsigned)i);
            put16(to, members - 1);
        }
    }
    for (unsigned i = 0; (!runs || n >= 4) && i < n; i++)
        put32(to, 0); /* readers do not look at offsets */
    for (uint64_t i = 0, at = 0; i < chunks; i++)
        if (count(s, i, &n_runs) > 0) {
            put_container(to, s, i, (flags[at / 8] >> at % 8 & 1) != 0);
            at++;
        }
}

static void add_bitmap(struct rd_buf *file, uint64_t len, const struct rd_buf *roaring)
{
    uint8_t head[9] = {0x81};
    made_add(file, "\x21\1k", 3);
    rd_put_be64(head + 1, len);
    made_add(file, head, sizeof head);
    made_len32(file, roaring->len);
    made_add(file, roaring->ptr, roaring->len);
}

static void make_file(struct rd_buf *file, const struct rd_buf *string, bool runs)
{
    struct rd_buf roaring = {0};
    *file = (struct rd_buf){0};
    put_roaring(&roaring, string, runs);
    made_add(file, "REDIS0016\xfe\0", 11);
    add_bitmap(file, string->len, &roaring);
    made_key(file, "after");
    made_end(file);
    rd_buf_done(&roaring);
}

/* The string of the first key. */
static void read_string(struct rd_slice file, const struct way *way, enum rdb_detail detail,
                        struct rd_buf *ret)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = detail);
    struct rd_src *src = way_open(way, file);
    struct rdb_reader *r;
    struct rdb_event ev;
    unsigned n_keys = 0;
    cr_assert(rdb_reader_new(&r, src, &opts, NULL));
    while (rdb_reader_next(r, &ev) == RDB_EVENT) {
        n_keys += ev.kind == RDB_KEY;
        if (ev.kind != RDB_ELEM || n_keys > 1)
            continue;
        cr_assert_eq(ev.elem.str.first, ret->len == 0);
        made_add(ret, ev.elem.str.ptr, ev.elem.str.len);
        cr_assert_eq(ev.elem.str.more, ret->len < ev.elem.str.total);
    }
    cr_assert_eq(rdb_reader_err(r)->code, RD_ERR_OK, "%s", rdb_reader_err(r)->text);
    cr_expect_eq(n_keys, 2);
    rdb_reader_free(r);
    rd_src_close(src);
}

static const struct way ways[] = {{WAY_MEMORY, 0}, {WAY_WINDOW, 512}, {WAY_TRICKLE, 1000}};
static const size_t lengths[] = {0, 1, 9, CHUNK - 1, CHUNK, CHUNK + 1, 65536, 5 * CHUNK, 300001};

Test(bitmap, is_the_string_of_its_bits)
{
    for (size_t i = 0; i < 4 * (sizeof lengths / sizeof lengths[0]); i++) {
        struct rd_buf string = {0}, file;
        make_string(&string, lengths[i / 4], i % 4);
        for (int runs = 0; runs < 2; runs++) {
            make_file(&file, &string, runs);
            for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
                struct rd_buf read = {0};
                enum rdb_detail detail = w == 1 ? RDB_DETAIL_PACKED : RDB_DETAIL_ELEMENTS;
                read_string(rd_buf_slice(&file), &ways[w], detail, &read);
                cr_assert(rd_slice_eq(rd_buf_slice(&read), rd_buf_slice(&string)), "%zu, %zu", i,
                          w);
                rd_buf_done(&read);
            }
            const struct rdb_reader_opts check =
                RDB_READER_OPTS(.detail = RDB_DETAIL_CHECK, .notes = true, .batch = true);
            cr_expect_eq(read_all(rd_buf_slice(&file), &ways[0], &check, NULL).code, RD_ERR_OK);
            rd_buf_done(&file);
        }
        rd_buf_done(&string);
    }
}

/* A copy for a server that has bitmaps; a string for one that has not. */
Test(bitmap, is_a_string_for_other_versions)
{
    struct rd_buf string = {0}, file, out = {0}, read = {0};
    struct rdb_writer_opts opts = RDB_WRITER_OPTS(.version = 12, .compress = true);
    struct rd_src *src;
    struct rd_sink *sink;
    struct rdb_reader *r;
    struct rdb_writer *w;
    struct rdb_event ev;
    make_string(&string, 100000, 3);
    make_file(&file, &string, true);
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&file), NULL, NULL));
    cr_assert(rd_sink_open_buf(&sink, &out, NULL, NULL));
    cr_assert(rdb_reader_new(&r, src, NULL, NULL) && rdb_writer_new(&w, sink, &opts, NULL));
    cr_expect_not(rdb_writer_can_copy(w, rdb_type_get(RDB_TYPE_BITMAP)));
    while (rdb_reader_next(r, &ev) == RDB_EVENT)
        cr_assert(rdb_writer_put(w, &ev, NULL));
    cr_assert(rdb_writer_end(w, NULL) && rd_sink_close(sink, NULL));
    read_string(rd_buf_slice(&out), &ways[0], RDB_DETAIL_ELEMENTS, &read);
    cr_expect(rd_slice_eq(rd_buf_slice(&read), rd_buf_slice(&string)));
    rdb_writer_free(w);
    rdb_reader_free(r);
    rd_src_close(src);
    rd_buf_done(&string);
    rd_buf_done(&file);
    rd_buf_done(&out);
    rd_buf_done(&read);
}

/* One byte more than a string can have, and one bit in it. */
Test(bitmap, of_more_than_512_mib_is_verified_and_not_made_a_string)
{
    static const char bits[] = "\1\0\0\0\0\0\0\0\1\0\0\0\x3a\x30\0\0\1\0\0\0\0\0\0\0\x10\0\0\0\7\0";
    struct rd_buf roaring = {0}, file = {0};
    made_add(&roaring, bits, sizeof bits - 1);
    made_add(&file, "REDIS0016\xfe\0", 11);
    add_bitmap(&file, (512u << 20) + 1, &roaring);
    made_end(&file);
    for (int detail = 0; detail < 4; detail++) {
        struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = (enum rdb_detail)detail);
        bool gives = detail == RDB_DETAIL_ELEMENTS || detail == RDB_DETAIL_PACKED;
        struct rd_err err = read_all(rd_buf_slice(&file), &ways[0], &opts, NULL);
        cr_expect_eq(err.code, gives ? RD_ERR_UNSUPPORTED : RD_ERR_OK, "%d: %s", detail, err.text);
    }
    rd_buf_done(&roaring);
    rd_buf_done(&file);
}
