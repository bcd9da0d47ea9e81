#include "archive/pipe.h"

#include "base/buf.h"
#include "base/crc64.h"
#include "base/digest.h"
#include "tests/base/filter.h"

static struct rd_seal_key key;

static void begin(void)
{
    static const uint8_t bytes[RD_SEAL_KEY] = {1};
    cr_assert(rd_seal_key_set(&key, bytes, NULL));
}

TestSuite(pipe, .init = begin);

static bool pack(enum archive_compression compression, bool seal, struct rd_slice text,
                 struct archive_file *file, struct rd_buf *ret, struct rd_err *err)
{
    struct rd_sink *sink;
    const struct archive_pipe pipe = {.key = seal ? &key : NULL, .name = "1/a"};
    *file = (struct archive_file){.compression = compression};
    if (!rd_sink_open_buf(&sink, ret, NULL, err) ||
        !archive_pipe_open_sink(&sink, sink, &pipe, file, err))
        return false;
    rd_sink_write(sink, text.ptr, text.len);
    return rd_sink_close(sink, err);
}

static bool unpack(const struct archive_file *file, struct rd_slice stored, const char *name,
                   struct rd_buf *ret, struct rd_err *err)
{
    struct rd_src *src;
    const struct rd_seal_ring ring = {.keys = &key, .n_keys = 1, .allow_unsealed = !file->sealed};
    if (!rd_src_open_memory(&src, stored, NULL, err) ||
        !archive_pipe_open_src(&src, src, file, &ring, name, err))
        return false;
    filter_drain(src, ret, err);
    return err->code == RD_ERR_OK;
}

Test(pipe, every_way_there_leads_back)
{
    struct rd_buf text = filter_text(300000);
    for (unsigned how = 0; how < 2 * ARCHIVE_COMPRESSION_COUNT; how++) {
        struct archive_file file;
        struct rd_buf stored = {0}, got;
        struct rd_err err = {0};
        uint8_t sum[RD_DIGEST_MAX];
        cr_assert(pack((enum archive_compression)(how / 2), how % 2 == 1, rd_buf_slice(&text),
                       &file, &stored, &err),
                  "%s", err.text);
        cr_assert(unpack(&file, rd_buf_slice(&stored), "1/a", &got, &err), "%s", err.text);
        filter_expect(&got, rd_buf_slice(&text));
        cr_expect_eq(file.plain.bytes, text.len);
        cr_expect_eq(file.stored.bytes, stored.len);
        cr_expect_eq(file.plain.crc64, rd_crc64(0, text.ptr, text.len));
        cr_assert(rd_digest_of(RD_DIGEST_SHA256, rd_buf_slice(&stored), sum, NULL));
        cr_expect_arr_eq(file.stored.sha256, sum, ARCHIVE_SHA256);
        cr_assert(rd_digest_of(RD_DIGEST_SHA256, rd_buf_slice(&text), sum, NULL));
        cr_expect_arr_eq(file.plain.sha256, sum, ARCHIVE_SHA256);
        rd_buf_done(&got);
        rd_buf_done(&stored);
    }
    rd_buf_done(&text);
}

Test(pipe, every_flip_and_every_cut_of_what_is_stored_is_found)
{
    struct rd_buf text = filter_text(500);
    for (unsigned how = 0; how < 2 * ARCHIVE_COMPRESSION_COUNT; how++) {
        struct archive_file file;
        struct rd_buf stored = {0}, got;
        cr_assert(pack((enum archive_compression)(how / 2), how % 2 == 1, rd_buf_slice(&text),
                       &file, &stored, NULL));
        for (size_t i = 0; i < stored.len; i++) {
            struct rd_err err = {0};
            stored.ptr[i] ^= 0x10;
            cr_assert_not(unpack(&file, rd_buf_slice(&stored), "1/a", &got, &err), "byte %zu", i);
            rd_buf_done(&got);
            stored.ptr[i] ^= 0x10;
            rd_err_reset(&err);
            cr_assert_not(unpack(&file, rd_slice(stored.ptr, i), "1/a", &got, &err), "cut %zu", i);
            rd_buf_done(&got);
        }
        rd_buf_done(&stored);
    }
    rd_buf_done(&text);
}

Test(pipe, bytes_after_the_end_are_found)
{
    struct archive_file file;
    struct rd_buf stored = {0}, got;
    struct rd_err err = {0};
    cr_assert(pack(ARCHIVE_COMPRESSION_NONE, false, rd_slice_str("abc"), &file, &stored, NULL));
    cr_assert(rd_buf_add(&stored, "d", 1));
    cr_expect_not(unpack(&file, rd_buf_slice(&stored), "1/a", &got, &err));
    cr_expect_eq(err.code, RD_ERR_CHECKSUM);
    rd_buf_done(&got);
    rd_buf_done(&stored);
}

Test(pipe, an_aborted_pipe_sets_no_sums)
{
    struct rd_sink *sink;
    struct rd_buf stored = {0};
    const struct archive_pipe pipe = {.key = &key, .name = "1/a"};
    struct archive_file file = {.compression = ARCHIVE_COMPRESSION_LZ4};
    cr_assert(rd_sink_open_buf(&sink, &stored, NULL, NULL));
    cr_assert(archive_pipe_open_sink(&sink, sink, &pipe, &file, NULL));
    cr_assert(rd_sink_write(sink, "abc", 3) && rd_sink_sync(sink));
    rd_sink_abort(sink);
    cr_expect_eq(file.plain.bytes, 0);
    cr_expect_eq(stored.len, 0);
    rd_buf_done(&stored);
}

static bool try_round(struct rd_buf *stored)
{
    struct archive_file file;
    struct rd_buf got = {0};
    struct rd_err err = {0};
    struct rd_src *src;
    struct rd_slice s;
    const struct rd_seal_ring ring = {.keys = &key, .n_keys = 1};
    if (!pack(ARCHIVE_COMPRESSION_LZ4, true, rd_slice_str("abcdef"), &file, stored, &err) ||
        !rd_src_open_memory(&src, rd_buf_slice(stored), NULL, &err) ||
        !archive_pipe_open_src(&src, src, &file, &ring, "1/a", &err))
        return false;
    bool ok = rd_src_need(src, 6, &s) == RD_SRC_OK && rd_slice_is(s, "abcdef");
    rd_src_close(src);
    rd_buf_done(&got);
    return ok;
}

Test(pipe, every_failing_allocation_is_survived)
{
    for (size_t n = 1;; n++) {
        struct rd_buf stored = {0};
        alloc_fault_begin(n);
        bool ok = try_round(&stored);
        rd_buf_done(&stored);
        struct alloc_fault_result result = alloc_fault_end();
        cr_assert_eq(result.live, 0, "allocation %zu", n);
        cr_assert_eq(ok, !result.failed, "allocation %zu", n);
        if (ok)
            break;
    }
}

/* ---- tee ---- */

static bool write_refused(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    (void)impl;
    (void)ptr;
    (void)len;
    return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "no");
}

static bool close_plain(void *impl, bool commit, struct rd_err *err)
{
    (void)impl;
    (void)commit;
    (void)err;
    return true;
}

static struct rd_sink *refusing(void)
{
    static const struct rd_sink_ops ops = {.write = write_refused, .close = close_plain};
    struct rd_sink *sink;
    cr_assert(rd_sink_new(&sink, &ops, NULL, NULL, NULL));
    return sink;
}

static struct rd_sink *taking(struct rd_buf *buf)
{
    struct rd_sink *sink;
    cr_assert(rd_sink_open_buf(&sink, buf, NULL, NULL));
    return sink;
}

Test(pipe, a_tee_gives_the_same_to_all)
{
    struct rd_buf one = {0}, two = {0};
    struct archive_tee tee = {.sinks = {taking(&one), taking(&two)}, .n = 2};
    struct rd_sink *sink;
    cr_assert(archive_tee_open(&sink, &tee, NULL));
    cr_assert(rd_sink_write(sink, "abc", 3) && rd_sink_sync(sink));
    cr_assert(rd_sink_close(sink, NULL));
    cr_expect(rd_slice_is(rd_buf_slice(&one), "abc"));
    cr_expect(rd_slice_is(rd_buf_slice(&two), "abc"));
    rd_buf_done(&one);
    rd_buf_done(&two);
}

Test(pipe, a_tee_goes_on_without_who_fails)
{
    struct rd_buf one = {0};
    struct archive_tee tee = {.sinks = {refusing(), taking(&one)}, .n = 2};
    struct rd_sink *sink;
    struct rd_err err = {0};
    cr_assert(archive_tee_open(&sink, &tee, NULL));
    cr_assert(rd_sink_write(sink, "abc", 3) && rd_sink_sync(sink) && rd_sink_sync(sink));
    cr_assert(rd_sink_close(sink, &err), "%s", err.text);
    cr_expect_eq(tee.errs[0].code, RD_ERR_IO);
    cr_expect_eq(tee.errs[1].code, RD_ERR_OK);
    cr_expect(rd_slice_is(rd_buf_slice(&one), "abc"));
    rd_buf_done(&one);
}

Test(pipe, a_tee_of_which_all_fail_fails)
{
    for (int when = 0; when < 2; when++) {
        struct archive_tee tee = {.sinks = {refusing(), refusing()}, .n = 2};
        struct rd_sink *sink;
        struct rd_err err = {0};
        cr_assert(archive_tee_open(&sink, &tee, NULL));
        cr_assert(rd_sink_write(sink, "abc", 3));
        if (when == 0)
            cr_expect_not(rd_sink_sync(sink));
        cr_expect_not(rd_sink_close(sink, &err));
        cr_expect_eq(err.code, RD_ERR_IO);
    }
}

Test(pipe, an_aborted_tee_aborts_all)
{
    struct rd_buf one = {0};
    struct archive_tee tee = {.sinks = {taking(&one)}, .n = 1};
    struct rd_sink *sink;
    cr_assert(archive_tee_open(&sink, &tee, NULL));
    cr_assert(rd_sink_write(sink, "abc", 3));
    rd_sink_abort(sink);
    cr_expect_eq(one.len, 0);
    rd_buf_done(&one);
}
