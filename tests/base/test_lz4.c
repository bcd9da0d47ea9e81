#include "base/lz4.h"

#include "tests/base/filter.h"

static const struct filter filter = {rd_lz4_open_src, rd_lz4_open_sink};

static const uint8_t skippable[] = {0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'x', 'y', 'z'};

static void expect(const struct rd_buf *bytes, enum rd_err_code code, const char *want)
{
    filter_expect_end(&filter, rd_buf_slice(bytes), code, want);
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

Test(lz4, bytes_after_a_frame_are_damage)
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
    filter_check_sync(&filter);
}

Test(lz4, level_out_of_range_is_refused)
{
    filter_check_level_refused(&filter, RD_LZ4_LEVEL_MAX + 1);
    filter_check_level_refused(&filter, -1);
}

Test(lz4, every_failing_allocation_is_survived)
{
    filter_check_failing_allocations(&filter);
}

Test(lz4, failing_source_fails_with_its_own_error)
{
    filter_check_failing_source(&filter);
}

Test(lz4, failing_sink_fails_with_its_own_error)
{
    filter_check_failing_sink(&filter);
    filter_check_failing_sync(&filter);
}
