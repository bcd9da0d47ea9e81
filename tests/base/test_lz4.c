#include "base/lz4.h"

#include "tests/base/filter.h"
#include "tests/support/alloc_fault.h"

static const struct filter filter = {rd_lz4_open_src, rd_lz4_open_sink};

static const uint8_t skippable[] = {0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'x', 'y', 'z'};

static void expect(const struct rd_buf *bytes, enum rd_err_code code, const char *want)
{
    struct rd_buf got;
    struct rd_err err = {0};
    filter_unpack(&filter, rd_buf_slice(bytes), 4096, &got, &err);
    cr_expect_eq(err.code, code, "%s", err.text);
    filter_expect(&got, rd_slice_str(want));
    if (code != RD_ERR_OK)
        cr_expect_eq(err.offset, got.len);
    rd_buf_done(&got);
}

/* A frame of one stored block, put together by hand from the format's description: magic, flags
 * (version 1, independent blocks), block size 64 KiB, checksum of these two, block, end mark. */
Test(lz4, frame_made_by_hand_is_read)
{
    static const uint8_t frame[] = {0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82, 2, 0,
                                    0,    0x80, 'h',  'i',  0,    0,    0,    0};
    struct rd_buf bytes = {0};
    cr_assert(rd_buf_add(&bytes, frame, sizeof frame));
    expect(&bytes, RD_ERR_OK, "hi");
    rd_buf_done(&bytes);
}

Test(lz4, frames_are_joined_and_skippable_ones_passed_over)
{
    struct rd_buf bytes = {0};
    cr_assert(rd_buf_add(&bytes, skippable, sizeof skippable));
    filter_pack(&filter, rd_slice_str("one "), 4, 0, &bytes);
    cr_assert(rd_buf_add(&bytes, skippable, sizeof skippable));
    filter_pack(&filter, rd_slice_str("two"), 3, 0, &bytes);
    cr_assert(rd_buf_add(&bytes, skippable, sizeof skippable));
    expect(&bytes, RD_ERR_OK, "one two");
    bytes.len--;
    expect(&bytes, RD_ERR_TRUNCATED, "one two");
    rd_buf_done(&bytes);
}

Test(lz4, bytes_behind_a_frame_are_damage)
{
    struct rd_buf bytes = {0};
    filter_pack(&filter, rd_slice_str("one"), 3, 0, &bytes);
    cr_assert(rd_buf_add(&bytes, "nothing", 7));
    expect(&bytes, RD_ERR_CORRUPT, "one");
    rd_buf_done(&bytes);
}

Test(lz4, what_is_written_reads_back)
{
    filter_check_round_trips(&filter, RD_LZ4_LEVEL_MAX);
}

Test(lz4, size_of_reads_does_not_matter)
{
    filter_check_feed_sizes(&filter);
}

Test(lz4, every_prefix_is_truncated)
{
    filter_check_prefixes(&filter);
}

Test(lz4, no_flipped_bit_passes)
{
    filter_check_flipped_bits(&filter);
}

Test(lz4, pushed_bytes_come_out)
{
    filter_check_push(&filter);
}

Test(lz4, what_was_synced_can_be_read)
{
    struct rd_buf packed = {0}, got;
    struct rd_sink *inner, *sink;
    struct rd_err err = {0};
    cr_assert(rd_sink_open_buf(&inner, &packed, NULL, NULL));
    cr_assert(rd_lz4_open_sink(&sink, inner, 0, NULL));
    cr_assert(rd_sink_write(sink, "abc", 3) && rd_sink_sync(sink));
    filter_unpack(&filter, rd_buf_slice(&packed), 4096, &got, &err);
    cr_expect_eq(err.code, RD_ERR_TRUNCATED);
    filter_expect(&got, rd_slice_str("abc"));
    rd_buf_done(&got);
    rd_sink_abort(sink);
    rd_buf_done(&packed);
}

Test(lz4, level_out_of_range_is_refused)
{
    struct rd_sink *inner, *sink;
    struct rd_err err = {0};
    cr_assert(rd_sink_open_null(&inner, NULL, NULL));
    cr_expect_not(rd_lz4_open_sink(&sink, inner, RD_LZ4_LEVEL_MAX + 1, &err));
    cr_expect_eq(err.code, RD_ERR_USAGE);
    rd_sink_abort(inner);
}

Test(lz4, every_failing_allocation_is_survived)
{
    for (size_t n = 1;; n++) {
        struct rd_buf packed = {0};
        alloc_fault_begin(n);
        bool ok = filter_try(&filter, &packed);
        rd_buf_done(&packed);
        struct alloc_fault_result result = alloc_fault_end();
        cr_assert_eq(result.live, 0, "allocation %zu", n);
        cr_assert_eq(ok, !result.failed, "allocation %zu", n);
        if (ok)
            break;
    }
}
