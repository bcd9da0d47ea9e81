#include "base/lz4.h"
#include "base/zlib.h"
#include "base/zstd.h"
#include "tests/base/filter.h"

static const struct filter gzip = {rd_zlib_open_src, rd_zlib_open_sink};
static const struct filter lz4 = {rd_lz4_open_src, rd_lz4_open_sink};

static void expect(struct rd_slice bytes, struct rd_slice want)
{
    struct rd_src *src;
    struct rd_buf got;
    struct rd_err err = {0};
    cr_assert(rd_src_open_memory(&src, bytes, NULL, &err));
    cr_assert(rd_src_decompress(&src, &err));
    filter_drain(src, &got, &err);
    cr_assert_eq(err.code, RD_ERR_OK, "%s", err.text);
    filter_expect(&got, want);
    rd_buf_done(&got);
}

static void expect_plain(struct rd_slice bytes)
{
    expect(bytes, bytes);
}

Test(decompress, compressed_bytes_are_recognized_by_their_beginning)
{
    struct rd_buf text = filter_text(100000), packed = {0};
    filter_pack(&gzip, rd_buf_slice(&text), 100000, 0, &packed);
    expect(rd_buf_slice(&packed), rd_buf_slice(&text));
    rd_buf_reset(&packed);
    filter_pack(&lz4, rd_buf_slice(&text), 100000, 0, &packed);
    expect(rd_buf_slice(&packed), rd_buf_slice(&text));
    rd_buf_done(&packed);
    rd_buf_done(&text);
}

Test(decompress, other_bytes_stay_as_they_are)
{
    expect_plain(rd_slice_str(""));
    expect_plain(rd_slice_str("\x1f\x8b"));
    expect_plain(rd_slice_str("\x1f\x8b\x08"));
    expect_plain(rd_slice_str("\x04\x22\x4d"));
    expect_plain(rd_slice_str("\x04\x22\x4d\x19more"));
    expect_plain(rd_slice_str("REDIS0011"));
    expect_plain(rd_slice_str("*1\r\n$4\r\nPING\r\n"));
}

static void wrap(const struct filter *filter, const char *head, struct rd_slice text,
                 struct rd_buf *ret)
{
    struct rd_buf packed = {0};
    filter_pack(filter, text, 100000, 0, &packed);
    cr_assert(rd_buf_add(ret, head, 7) && rd_buf_add(ret, packed.ptr, packed.len));
    rd_buf_done(&packed);
}

Test(decompress, the_envelope_of_valkey_is_opened)
{
    static const struct filter zstd = {rd_zstd_open_src, rd_zstd_open_sink};
    struct rd_buf text = filter_text(100000), packed = {0};
    for (int i = 0; i < 2; i++) {
        struct rd_src *src;
        struct rd_buf got;
        struct rd_err err = {0};
        rd_buf_reset(&packed);
        wrap(i == 0 ? &lz4 : &zstd, i == 0 ? "VCS\1\1\0\1" : "VCS\1\2\0\1", rd_buf_slice(&text),
             &packed);
        expect(rd_buf_slice(&packed), rd_buf_slice(&text));
        cr_assert(rd_src_open_memory(&src, rd_buf_slice(&packed), NULL, &err));
        cr_assert(rd_src_unwrap(&src, &err));
        filter_drain(src, &got, &err);
        filter_expect(&got, rd_buf_slice(&text));
        rd_buf_done(&got);
    }
    rd_buf_done(&packed);
    rd_buf_done(&text);
}

/* Version, codec, reserved byte and kind. */
Test(decompress, other_envelopes_are_not_supported_and_not_damaged)
{
    static const char heads[][8] = {"VCS\2\1\0\1", "VCS\1\3\0\1", "VCS\1\1\1\1", "VCS\1\1\0\2"};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct rd_src *src, *before;
        struct rd_err err = {0};
        cr_assert(rd_src_open_memory(&src, rd_slice(heads[i], 7), NULL, &err));
        before = src;
        cr_expect_not(rd_src_decompress(&src, &err));
        cr_expect_eq(err.code, RD_ERR_UNSUPPORTED);
        cr_expect_eq(src, before);
        rd_src_close(src);
    }
    expect_plain(rd_slice_str("VCS is text"));
}

Test(decompress, only_the_envelope_is_unwrapped)
{
    struct rd_buf packed = {0};
    struct rd_src *src, *before;
    struct rd_err err = {0};
    filter_pack(&lz4, rd_slice_str("text"), 4, 0, &packed);
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&packed), NULL, &err));
    before = src;
    cr_assert(rd_src_unwrap(&src, &err));
    cr_expect_eq(src, before);
    rd_src_close(src);
    rd_buf_done(&packed);
}

Test(decompress, what_was_compressed_twice_is_unpacked_once)
{
    struct rd_buf once = {0}, twice = {0};
    filter_pack(&lz4, rd_slice_str("text"), 4, 0, &once);
    filter_pack(&gzip, rd_buf_slice(&once), 100, 0, &twice);
    expect(rd_buf_slice(&twice), rd_buf_slice(&once));
    rd_buf_done(&once);
    rd_buf_done(&twice);
}

Test(decompress, pushed_source_with_too_few_bytes_stays_as_it_is)
{
    struct rd_src *src, *before;
    struct rd_err err = {0};
    cr_assert(rd_src_open_push(&src, NULL, &err));
    before = src;
    cr_assert(rd_src_push(src, rd_slice("\x1f\x8b\x08", 3)));
    cr_assert(rd_src_decompress(&src, &err));
    cr_assert_eq(src, before);
    cr_assert(rd_src_push(src, rd_slice("\0", 1)));
    cr_assert(rd_src_decompress(&src, &err));
    cr_assert_neq(src, before);
    rd_src_close(src);
}

Test(decompress, name_of_the_file_stays_in_errors)
{
    struct rd_src *src;
    struct rd_slice s;
    struct rd_err err = {0};
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = "dump.rdb.gz");
    cr_assert(rd_src_open_memory(&src, rd_slice("\x1f\x8b\x08\0\0", 5), &opts, &err));
    cr_assert(rd_src_decompress(&src, &err));
    cr_assert_eq(rd_src_need(src, 1, &s), RD_SRC_FAIL);
    cr_expect_str_eq(rd_src_err(src)->origin, "dump.rdb.gz");
    cr_expect_eq(rd_src_err(src)->code, RD_ERR_TRUNCATED);
    rd_src_close(src);
}

Test(decompress, source_that_fails_is_left_as_it_is)
{
    struct broken_src from = {.bytes = rd_slice_str("\x1f\x8b\x08")};
    struct rd_src *src = broken_src_open(&from, 0), *before = src;
    struct rd_err err = {0};
    cr_expect_not(rd_src_decompress(&src, &err));
    cr_expect_eq(err.code, RD_ERR_IO);
    cr_expect_eq(src, before);
    rd_src_close(src);
}

/* All bytes are there, and only then the error. */
Test(decompress, a_wrong_checksum_of_a_frame_costs_no_bytes)
{
    static const struct filter filters[] = {{rd_zlib_open_src, rd_zlib_open_sink},
                                            {rd_lz4_open_src, rd_lz4_open_sink},
                                            {rd_zstd_open_src, rd_zstd_open_sink}};
    static const size_t sizes[] = {1, 1000, 70000, 1000000};
    for (size_t i = 0; i < 3 * sizeof sizes / sizeof sizes[0]; i++) {
        struct rd_buf text = filter_text(sizes[i / 3]), packed = {0}, got;
        struct rd_err err = {0};
        struct rd_src *src;
        filter_pack(&filters[i % 3], rd_buf_slice(&text), 100000, 0, &packed);
        packed.ptr[packed.len - (i % 3 == 0 ? 5 : 1)] ^= 1; /* gzip: the size follows */
        cr_assert(rd_src_open_memory(&src, rd_buf_slice(&packed), NULL, &err));
        cr_assert(rd_src_decompress(&src, &err));
        filter_drain(src, &got, &err);
        cr_expect_eq(err.code, RD_ERR_CORRUPT, "%zu", i);
        cr_expect_eq(err.offset, text.len, "%zu: %ju", i, (uintmax_t)err.offset);
        filter_expect(&got, rd_buf_slice(&text));
        rd_buf_done(&got);
        rd_buf_done(&packed);
        rd_buf_done(&text);
    }
}
