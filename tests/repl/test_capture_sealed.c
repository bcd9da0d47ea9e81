/* Segments whose checksums are right and whose content no writer would have written. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "base/crc64.h"
#include "base/endian.h"
#include "repl/capture/format.h"
#include "tests/repl/capture_world.h"

enum { BLOCKS_MAX = 64 };

/* One segment that is open: a history in blocks of 128 bytes, a long command among them. */
struct segment {
    struct world world;
    struct rd_buf bytes; /* a copy that is changed */
    uint64_t seed;
    size_t at[BLOCKS_MAX]; /* of the headers */
    size_t n;
};

static const char segment_name[] = "00000001-1000.seg";

static struct capture_block block_at(const struct segment *s, size_t i)
{
    struct capture_block block;
    cr_assert(repl_capture_block_get(s->bytes.ptr + s->at[i], s->seed, &block));
    return block;
}

/* In pieces that are shorter than a block, and come one after the other. */
static void feed(struct segment *s, struct repl_capture_writer *w)
{
    enum { PIECE = 25 };
    struct rd_slice rest = rd_buf_slice(&s->world.history[0]);
    for (int64_t now_us = 1000; rest.len > 0; now_us += 250) {
        size_t n = rest.len < PIECE ? rest.len : PIECE;
        cr_assert(repl_capture_writer_append(w, rd_slice(rest.ptr, n), now_us, NULL));
        rest = rd_slice(rest.ptr + n, rest.len - n);
    }
}

static void segment_init(struct segment *s)
{
    struct rd_slice bytes;
    struct repl_capture_segment seg;
    *s = (struct segment){
        .world = {.opts = {.block_size = 128}, .n1 = 12, .n2 = 1, .long_len = 400}};
    world_init(&s->world);
    struct repl_capture_writer *w = world_writer(&s->world);
    cr_assert(world_begin(&s->world, w, 0));
    feed(s, w);
    cr_assert(repl_capture_writer_close(w, NULL));
    cr_assert(sim_fs_get(s->world.sim, segment_name, &bytes));
    cr_assert(rd_buf_add(&s->bytes, bytes.ptr, bytes.len));
    cr_assert(repl_capture_header_get(s->bytes.ptr, &seg, &s->seed, NULL));
    for (size_t at = CAPTURE_HEADER; at < s->bytes.len; s->n++) {
        cr_assert_lt(s->n, BLOCKS_MAX);
        s->at[s->n] = at;
        struct capture_block block = block_at(s, s->n);
        at += CAPTURE_BLOCK + block.len + block.times_len;
    }
}

static void segment_done(struct segment *s)
{
    rd_buf_done(&s->bytes);
    world_done(&s->world);
}

/* Puts the changed header of block i back, over whatever its data and times are now. */
static void seal(struct segment *s, size_t i, struct capture_block block)
{
    uint8_t *at = s->bytes.ptr + s->at[i];
    struct capture_block own = block_at(s, i);
    block.crc = rd_crc64(s->seed, at + CAPTURE_BLOCK, (size_t)own.len + own.times_len);
    repl_capture_block_put(at, &block, s->seed);
}

/* What a reader says of the copy: RD_ERR_OK at its end. */
static struct rd_err read_copy(const struct segment *s, struct sim_fs *sim)
{
    struct repl_capture_reader *r;
    struct repl_capture_event ev;
    struct rd_fs fs = sim_fs_calls(sim);
    struct rd_err err;
    sim_fs_put(sim, segment_name, rd_buf_slice(&s->bytes));
    cr_assert(repl_capture_reader_open(&r, &fs, NULL, NULL));
    while (repl_capture_reader_next(r, &ev) == REPL_CAPTURE_EVENT)
        ;
    err = *repl_capture_reader_err(r);
    repl_capture_reader_close(r);
    return err;
}

/* Where the last finding of a block was, and what was read. */
struct verified {
    uint64_t at;
    uint64_t n_bytes;
};

static void on_finding(void *ctx, const struct repl_capture_finding *finding)
{
    struct verified *v = ctx;
    if (strcmp(finding->name, segment_name) == 0)
        v->at = finding->err->offset;
}

static void on_tick(void *ctx, uint64_t n_bytes)
{
    ((struct verified *)ctx)->n_bytes += n_bytes;
}

/* Whoever looks at everything finds it, too. */
static void expect_finding(const struct segment *s, struct sim_fs *sim, size_t i, const char *part)
{
    struct verified v = {.at = RD_NO_OFFSET};
    const struct repl_capture_verify_opts opts = {
        .finding = on_finding, .tick = on_tick, .ctx = &v};
    struct repl_capture_verify_result res;
    struct rd_fs fs = sim_fs_calls(sim);
    cr_assert(repl_capture_verify(&fs, &opts, &res, NULL));
    cr_expect(res.findings > 0 && v.at == s->at[i], "block %zu, %s: at %llu", i, part,
              (unsigned long long)v.at);
    cr_expect(v.n_bytes > 0 || i == 0);
}

/* A reader says so, and a writer does not continue. */
static void expect_wrong(struct segment *s, size_t i, const char *part)
{
    struct sim_fs *sim = sim_fs_new(), *own = s->world.sim;
    struct rd_err err = read_copy(s, sim);
    cr_expect_eq(err.code, RD_ERR_CORRUPT, "block %zu, %s: %s", i, part, err.text);
    cr_expect_eq(err.offset, s->at[i], "block %zu, %s: at %llu", i, part,
                 (unsigned long long)err.offset);
    cr_expect_str_eq(err.origin, segment_name);
    cr_expect_not_null(strstr(err.text, part), "block %zu: %s", i, err.text);
    expect_finding(s, sim, i, part);
    s->world.sim = sim;
    cr_expect_null(world_writer(&s->world), "block %zu, %s", i, part);
    s->world.sim = own;
    sim_fs_free(sim);
}

static bool is_whole(const struct capture_block *block)
{
    return (block->flags & (CAPTURE_BEGINS_INSIDE | CAPTURE_ENDS_INSIDE)) == 0;
}

Test(capture_sealed, a_segment_that_is_not_changed_is_sound)
{
    struct segment s;
    unsigned n_parts = 0;
    segment_init(&s);
    for (size_t i = 0; i < s.n; i++) {
        struct capture_block block = block_at(&s, i);
        n_parts += !is_whole(&block);
        seal(&s, i, block);
    }
    cr_assert(n_parts > 2 && n_parts + 3 < s.n, "blocks of both kinds");
    struct sim_fs *sim = sim_fs_new();
    cr_expect_eq(read_copy(&s, sim).code, RD_ERR_OK);
    sim_fs_free(sim);
    segment_done(&s);
}

Test(capture_sealed, blocks_have_the_offsets_of_the_stream)
{
    struct segment s;
    segment_init(&s);
    for (size_t i = 0; i < s.n; i++) {
        struct capture_block block = block_at(&s, i), other = block;
        other.offset++;
        seal(&s, i, other);
        expect_wrong(&s, i, "a wrong stream offset");
        other = block;
        other.flags ^= CAPTURE_BEGINS_INSIDE;
        seal(&s, i, other);
        expect_wrong(&s, i, "does not continue the command");
        seal(&s, i, block);
    }
    segment_done(&s);
}

Test(capture_sealed, the_bytes_of_a_block_are_commands)
{
    struct segment s;
    segment_init(&s);
    for (size_t i = 0; i < s.n; i++) {
        struct capture_block block = block_at(&s, i);
        uint8_t *data = s.bytes.ptr + s.at[i] + CAPTURE_BLOCK;
        if (!is_whole(&block))
            continue;
        uint8_t first = *data;
        *data = '?';
        seal(&s, i, block);
        expect_wrong(&s, i, "does not contain whole commands");
        *data = first;
        seal(&s, i, block);
    }
    segment_done(&s);
}

Test(capture_sealed, the_times_of_a_block_are_as_long_as_it_is)
{
    struct segment s;
    unsigned n_times = 0;
    segment_init(&s);
    for (size_t i = 0; i < s.n; i++) {
        struct capture_block block = block_at(&s, i);
        uint8_t *times = s.bytes.ptr + s.at[i] + CAPTURE_BLOCK + block.len;
        if (block.times_len == 0)
            continue;
        uint8_t last = times[block.times_len - 1];
        times[block.times_len - 1] = 0x80; /* a number that does not end */
        seal(&s, i, block);
        expect_wrong(&s, i, "times");
        times[block.times_len - 1] = last;
        seal(&s, i, block);
        n_times++;
    }
    cr_expect_gt(n_times, 0);
    segment_done(&s);
}

/* A reader notices what it needs to know where a command is; verifying looks at the rest. */
Test(capture_sealed, a_block_has_the_database_and_times_of_its_header)
{
    struct segment s;
    segment_init(&s);
    for (size_t i = 0; i < s.n; i++)
        for (int k = 0; k < 2; k++) {
            struct sim_fs *sim = sim_fs_new();
            struct capture_block block = block_at(&s, i), other = block;
            if (k == 0)
                other.db += 3;
            else
                other.latest_us++;
            seal(&s, i, other);
            struct rd_err err = read_copy(&s, sim);
            bool seen = k == 0 && i > 0 && (block.flags & CAPTURE_BEGINS_INSIDE) == 0;
            cr_expect(!seen || (err.code == RD_ERR_CORRUPT && err.offset == s.at[i]),
                      "block %zu: %s", i, err.text);
            expect_finding(&s, sim, i, k == 0 ? "database" : "time");
            seal(&s, i, block);
            sim_fs_free(sim);
        }
    segment_done(&s);
}

Test(capture_sealed, headers_of_newer_formats_are_not_damage)
{
    static const struct {
        size_t at;
        uint32_t value;
        enum rd_err_code code;
        uint64_t offset;
    } cases[] = {{8, 77, RD_ERR_UNSUPPORTED, 8}, {12, UINT32_MAX, RD_ERR_CORRUPT, 12}};
    for (size_t i = 0; i < 2; i++) {
        struct segment s;
        struct sim_fs *sim = sim_fs_new();
        segment_init(&s);
        rd_put_le32(s.bytes.ptr + cases[i].at, cases[i].value);
        rd_put_le64(s.bytes.ptr + CAPTURE_HEADER - 8, rd_crc64(0, s.bytes.ptr, CAPTURE_HEADER - 8));
        struct rd_err err = read_copy(&s, sim);
        cr_expect_eq(err.code, cases[i].code, "%s", err.text);
        cr_expect_eq(err.offset, cases[i].offset);
        cr_expect_str_eq(err.origin, segment_name);
        sim_fs_free(sim);
        segment_done(&s);
    }
}
