#include "data/spool.h"

#include "base/mem.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { SIZE = 700000 }; /* more than two windows of a source */

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 31 + i / 251);
}

static uint8_t *make_bytes(void)
{
    uint8_t *bytes = rd_alloc(SIZE);
    cr_assert_not_null(bytes);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = byte_at(i);
    return bytes;
}

static void count(void *ctx)
{
    ++*(int *)ctx;
}

/* Copies SIZE bytes in. */
static void fill(struct spool *spool)
{
    uint8_t *bytes = make_bytes();
    struct rd_src *src;
    struct rd_err err = {0};
    int ticks = 0;
    cr_assert(rd_src_open_memory(&src, rd_slice(bytes, SIZE), NULL, &err));
    cr_assert(spool_copy(spool, src, count, &ticks, &err), "%s", err.text);
    cr_assert_gt(ticks, 0);
    cr_assert_eq(spool->size, SIZE);
    rd_src_close(src);
    rd_free(bytes);
}

static void expect_from(struct rd_src *src, size_t at)
{
    struct rd_slice s;
    enum rd_src_status st;
    while ((st = rd_src_need(src, 1, &s)) == RD_SRC_OK) {
        for (size_t i = 0; i < s.len; i++)
            cr_assert_eq(s.ptr[i], byte_at(at + i), "at %zu", at + i);
        at += s.len;
        rd_src_consume(src, s.len);
    }
    cr_assert_eq(st, RD_SRC_END);
    cr_assert_eq(at, SIZE);
}

Test(spool, gives_back_what_was_copied_as_often_as_wanted)
{
    struct spool spool = {0};
    struct rd_src *first, *second;
    struct rd_slice s;
    struct rd_err err = {0};
    fill(&spool);
    cr_assert(spool_source(&spool, "dump", &first, &err));
    cr_assert(spool_source(&spool, "dump", &second, &err));
    cr_assert(rd_src_can_seek(first));
    cr_assert_eq(rd_src_size(first), SIZE);
    cr_assert_eq(rd_src_need(first, 10, &s), RD_SRC_OK);
    rd_src_consume(first, 10);
    expect_from(second, 0);
    expect_from(first, 10);
    for (size_t at = 0; at < SIZE; at += 99991) {
        cr_assert(rd_src_seek(first, at, &err));
        expect_from(first, at);
    }
    rd_src_close(first);
    rd_src_close(second);
    spool_done(&spool);
}

Test(spool, reads_exactly_what_is_asked_or_fails)
{
    struct spool spool = {0};
    struct rd_err err = {0};
    uint8_t got[16];
    fill(&spool);
    struct rdb_spool keys = spool_for_keys(&spool);
    cr_assert(keys.append(keys.ctx, "0123456789abcdef", 16, &err));
    cr_assert(keys.read(keys.ctx, SIZE, got, 16, &err));
    cr_assert_eq(memcmp(got, "0123456789abcdef", 16), 0);
    cr_assert(spool_read(&spool, 5, got, 1, &err));
    cr_assert_eq(got[0], byte_at(5));
    cr_assert_not(spool_read(&spool, SIZE + 1, got, 16, &err));
    cr_assert_eq(err.code, RD_ERR_IO);
    spool_done(&spool);
}

Test(spool, empty_one_makes_no_file_and_has_no_bytes)
{
    struct spool spool = {0};
    struct rd_src *src;
    struct rd_slice s;
    struct rd_err err = {0};
    setenv("TMPDIR", "/dev/null/missing", 1);
    cr_assert(spool_source(&spool, "dump", &src, &err));
    cr_assert_eq(rd_src_need(src, 1, &s), RD_SRC_END);
    rd_src_close(src);
    spool_done(&spool);
}

Test(spool, folder_that_is_missing_is_an_error_that_names_it)
{
    struct spool spool = {0};
    struct rd_err err = {0};
    setenv("TMPDIR", "/dev/null/missing", 1);
    cr_assert_not(spool_append(&spool, "x", 1, &err));
    cr_assert_eq(err.code, RD_ERR_IO);
    cr_assert_str_eq(err.origin, "/dev/null/missing");
    spool_done(&spool);
}

Test(spool, failure_of_the_source_is_passed_on)
{
    struct spool spool = {0};
    struct rd_src *src;
    struct rd_err err = {0};
    const uint8_t gz[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xff, 0xff, 0xff};
    cr_assert(rd_src_open_memory(&src, rd_slice(gz, sizeof gz), NULL, &err));
    cr_assert(rd_src_decompress(&src, &err));
    cr_assert_not(spool_copy(&spool, src, NULL, NULL, &err));
    cr_assert_neq(err.code, RD_ERR_OK);
    rd_src_close(src);
    spool_done(&spool);
}
