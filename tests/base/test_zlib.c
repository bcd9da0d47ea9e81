#include "base/zlib.h"

#include "tests/base/filter.h"
#include "tests/support/alloc_fault.h"

static const struct filter filter = {rd_zlib_open_src, rd_zlib_open_sink};

/* `printf hello | gzip -n`, written by gzip 1.12. */
static const uint8_t hello[] = {0x1f, 0x8b, 0x08, 0,    0,    0,    0,    0,    0,
                                0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x86,
                                0xa6, 0x10, 0x36, 0x05, 0x00, 0x00, 0x00};

static void expect(struct rd_slice bytes, enum rd_err_code code, const char *want)
{
    filter_expect_end(&filter, bytes, code, want);
}

Test(zlib, member_written_by_gzip_is_read)
{
    expect(rd_slice(hello, sizeof hello), RD_ERR_OK, "hello");
}

Test(zlib, members_are_joined_and_padding_is_passed_over)
{
    uint8_t bytes[2 * sizeof hello + 100] = {0};
    memcpy(bytes, hello, sizeof hello);
    memcpy(bytes + sizeof hello, hello, sizeof hello);
    expect(rd_slice(bytes, 2 * sizeof hello), RD_ERR_OK, "hellohello");
    expect(rd_slice(bytes, sizeof bytes), RD_ERR_OK, "hellohello");
    bytes[sizeof bytes - 1] = 0x1f;
    expect(rd_slice(bytes, sizeof bytes), RD_ERR_CORRUPT, "hellohello");
}

Test(zlib, bytes_after_a_member_are_damage)
{
    uint8_t bytes[sizeof hello + 2];
    memcpy(bytes, hello, sizeof hello);
    memcpy(bytes + sizeof hello, "no", 2);
    expect(rd_slice(bytes, sizeof bytes), RD_ERR_CORRUPT, "hello");
}

Test(zlib, wrong_checksum_and_wrong_length_are_damage)
{
    for (size_t at = sizeof hello - 8; at < sizeof hello; at++) {
        uint8_t bytes[sizeof hello];
        memcpy(bytes, hello, sizeof hello);
        bytes[at] ^= 1;
        expect(rd_slice(bytes, sizeof bytes), RD_ERR_CORRUPT, "hello");
    }
}

Test(zlib, what_is_written_reads_back)
{
    filter_check_round_trips(&filter, RD_ZLIB_LEVEL_MAX);
}

Test(zlib, size_of_reads_does_not_matter)
{
    filter_check_feed_sizes(&filter);
}

Test(zlib, every_prefix_is_truncated)
{
    filter_check_prefixes(&filter);
}

Test(zlib, no_flipped_bit_passes)
{
    filter_check_flipped_bits(&filter);
}

Test(zlib, pushed_bytes_come_out)
{
    filter_check_push(&filter);
}

Test(zlib, what_was_synced_can_be_read)
{
    filter_check_sync(&filter);
}

Test(zlib, level_out_of_range_is_refused)
{
    filter_check_level_refused(&filter, RD_ZLIB_LEVEL_MAX + 1);
    filter_check_level_refused(&filter, -1);
}

Test(zlib, every_failing_allocation_is_survived)
{
    filter_check_failing_allocations(&filter);
}

Test(zlib, failing_source_fails_with_its_own_error)
{
    filter_check_failing_source(&filter);
}

Test(zlib, failing_sink_fails_with_its_own_error)
{
    filter_check_failing_sink(&filter);
    filter_check_failing_sync(&filter);
}

Test(zlib, much_output_from_little_input_takes_no_memory)
{
    struct rd_buf zeros = {0}, packed = {0};
    struct rd_src *below, *src;
    struct rd_slice s;
    cr_assert(rd_buf_reserve(&zeros, 1 << 20));
    memset(zeros.ptr, 0, 1 << 20);
    zeros.len = 1 << 20;
    for (int i = 0; i < 20; i++)
        filter_pack(&filter, rd_buf_slice(&zeros), 1 << 20, 1, &packed);
    alloc_fault_begin(0);
    cr_assert(rd_src_open_memory(&below, rd_buf_slice(&packed), NULL, NULL));
    cr_assert(rd_zlib_open_src(&src, below, NULL));
    while (rd_src_need(src, 1, &s) == RD_SRC_OK)
        rd_src_consume(src, s.len);
    cr_expect_eq(rd_src_offset(src), 20 << 20);
    rd_src_close(src);
    struct alloc_fault_result result = alloc_fault_end();
    cr_expect_lt(result.peak_bytes, 700 * 1024);
    cr_expect_eq(result.live, 0);
    rd_buf_done(&zeros);
    rd_buf_done(&packed);
}
