/* The zstd filters. Besides what the encoder writes, frames are built by hand from raw blocks, and
 * one was written by the zstd program.
 *
 *     28 b5 2f fd  descriptor  window  { last:1 type:2 size:21  bytes }*  checksum:4?
 */
#include "base/zstd.h"

#include "base/endian.h"
#include "base/src_impl.h"
#include "tests/base/filter.h"

/* "hello hello hello hello snapshot\n", compressed, with a checksum. */
static const uint8_t written[] = {0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x68, 0xad, 0x00, 0x00,
                                  0x78, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x20, 0x73, 0x6e,
                                  0x61, 0x70, 0x73, 0x68, 0x6f, 0x74, 0x0a, 0x01, 0x00,
                                  0xf1, 0x4a, 0x11, 0xeb, 0xa5, 0xfa, 0x17};

#define HELLO "hello hello hello hello snapshot\n"

enum { WINDOW_1_KIB = 0x00, WINDOW_128_MIB = 0x88, WINDOW_256_MIB = 0x90 };

static void add(struct rd_buf *b, const void *bytes, size_t len)
{
    cr_assert(rd_buf_add(b, bytes, len));
}

static void add_frame(struct rd_buf *b, uint8_t window, const char *text)
{
    uint8_t head[9] = {0x28, 0xb5, 0x2f, 0xfd, 0, window};
    size_t block = strlen(text) << 3 | 1; /* the last one */
    head[6] = (uint8_t)block;
    head[7] = (uint8_t)(block >> 8);
    head[8] = (uint8_t)(block >> 16);
    add(b, head, sizeof head);
    add(b, text, strlen(text));
}

static void add_skippable(struct rd_buf *b)
{
    add(b, "\x5a\x2a\x4d\x18\x04\0\0\0skip", 12);
}

/* What comes of the bytes, read in pieces of n. */
static enum rd_err_code unpack(struct rd_slice bytes, size_t n, struct rd_buf *ret)
{
    struct rd_src *src;
    struct rd_err err = {0};
    cr_assert(rd_src_open_memory(&src, bytes, NULL, NULL));
    cr_assert(rd_src_open_trickle(&src, src, n, NULL, NULL));
    cr_assert(rd_zstd_open_src(&src, src, &err));
    filter_drain(src, ret, &err);
    return err.code;
}

static void expect(const struct rd_buf *b, const char *want)
{
    static const size_t pieces[] = {1, 2, 3, 7, 4096};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct rd_buf got = {0};
        cr_expect_eq(unpack(rd_buf_slice(b), pieces[i], &got), RD_ERR_OK);
        cr_expect(rd_slice_is(rd_buf_slice(&got), want));
        rd_buf_done(&got);
    }
}

static enum rd_err_code code_of(struct rd_slice bytes)
{
    struct rd_buf got = {0};
    enum rd_err_code code = unpack(bytes, 4096, &got);
    rd_buf_done(&got);
    return code;
}

Test(zstd, what_the_program_wrote_is_read)
{
    struct rd_buf b = {0};
    add(&b, written, sizeof written);
    expect(&b, HELLO);
    rd_buf_done(&b);
}

Test(zstd, frames_are_joined_and_skippable_ones_passed_over)
{
    struct rd_buf b = {0};
    add_skippable(&b);
    add_frame(&b, WINDOW_1_KIB, "one ");
    add_skippable(&b);
    add_skippable(&b);
    add(&b, written, sizeof written);
    add_frame(&b, WINDOW_128_MIB, "two");
    add_skippable(&b);
    expect(&b, "one " HELLO "two");
    rd_buf_done(&b);
}

Test(zstd, every_prefix_of_a_frame_is_truncated)
{
    for (size_t len = 0; len < sizeof written; len++)
        cr_expect_eq(code_of(rd_slice(written, len)), RD_ERR_TRUNCATED, "%zu bytes", len);
}

Test(zstd, a_changed_byte_or_other_bytes_after_a_frame_are_damage)
{
    uint8_t bytes[sizeof written + 5];
    memcpy(bytes, written, sizeof written);
    memcpy(bytes + sizeof written, "other", 5);
    cr_expect_eq(code_of(rd_slice(bytes, sizeof bytes)), RD_ERR_CORRUPT);
    bytes[sizeof written - 1] ^= 1;
    cr_expect_eq(code_of(rd_slice(bytes, sizeof written)), RD_ERR_CORRUPT);
    bytes[sizeof written - 1] ^= 1;
    bytes[12] ^= 1;
    cr_expect_eq(code_of(rd_slice(bytes, sizeof written)), RD_ERR_CORRUPT);
}

Test(zstd, a_window_beyond_the_limit_is_refused_as_a_limit)
{
    struct rd_buf b = {0};
    add_frame(&b, WINDOW_256_MIB, "text");
    cr_expect_eq(code_of(rd_buf_slice(&b)), RD_ERR_LIMIT);
    rd_buf_done(&b);
}

Test(zstd, an_input_is_known_by_how_it_begins)
{
    struct rd_buf b = {0};
    for (int skip = 0; skip < 2; skip++) {
        struct rd_src *src;
        struct rd_buf got = {0};
        struct rd_err err = {0};
        rd_buf_reset(&b);
        if (skip)
            add_skippable(&b);
        add(&b, written, sizeof written);
        cr_assert(rd_src_open_memory(&src, rd_buf_slice(&b), NULL, NULL));
        cr_assert(rd_src_decompress(&src, &err));
        filter_drain(src, &got, &err);
        cr_expect_eq(err.code, RD_ERR_OK);
        cr_expect(rd_slice_is(rd_buf_slice(&got), HELLO));
        rd_buf_done(&got);
    }
    rd_buf_done(&b);
}

static const struct filter filter = {rd_zstd_open_src, rd_zstd_open_sink};

Test(zstd, what_is_written_reads_back)
{
    filter_check_round_trips(&filter, 6);
}

/* Also at the level with the largest window, and more bytes than that. */
Test(zstd, what_is_written_reads_back_as_our_own)
{
    enum { SIZE = 20 * 1024 * 1024 };
    static const struct filter own = {rd_zstd_open_own_src, rd_zstd_open_sink};
    struct rd_buf packed = {0};
    struct rd_sink *sink;
    struct rd_src *src;
    struct rd_err err = {0};
    static uint8_t block[65536];
    uint64_t n = 0;
    struct rd_slice s;
    filter_check_round_trips(&own, 6);
    cr_assert(rd_sink_open_buf(&sink, &packed, NULL, NULL));
    cr_assert(rd_zstd_open_sink(&sink, sink, RD_ZSTD_LEVEL_MAX, NULL));
    for (size_t i = 0; i < SIZE / sizeof block; i++) {
        memset(block, (int)i, sizeof block / 2);
        cr_assert(rd_sink_write(sink, block, sizeof block));
    }
    cr_assert(rd_sink_close(sink, NULL));
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&packed), NULL, NULL));
    cr_assert(rd_zstd_open_own_src(&src, src, &err));
    for (; rd_src_need(src, 1, &s) == RD_SRC_OK; rd_src_consume(src, s.len))
        n += s.len;
    cr_expect_eq(n, SIZE);
    rd_src_close(src);
    rd_buf_done(&packed);
}

Test(zstd, size_of_reads_does_not_matter)
{
    filter_check_feed_sizes(&filter);
}

Test(zstd, no_flipped_bit_passes)
{
    filter_check_flipped_bits(&filter);
}

Test(zstd, what_was_synced_can_be_read)
{
    filter_check_sync(&filter);
}

Test(zstd, level_out_of_range_is_refused)
{
    filter_check_level_refused(&filter, RD_ZSTD_LEVEL_MAX + 1);
    filter_check_level_refused(&filter, -1);
}

Test(zstd, every_failing_allocation_is_survived)
{
    filter_check_failing_allocations(&filter);
}

Test(zstd, failing_sink_fails_with_its_own_error)
{
    filter_check_failing_sink(&filter);
    filter_check_failing_sync(&filter);
}
