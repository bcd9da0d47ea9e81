#include "base/src.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/alloc_fault.h"

enum { DATA_LEN = 20000 };

static uint8_t data[DATA_LEN];
static char temp_path[] = P_tmpdir "/redoubt-src-XXXXXX";

static void make_data(void)
{
    uint32_t state = 1;
    for (size_t i = 0; i < DATA_LEN; i++) {
        state = state * 1664525 + 1013904223;
        data[i] = (uint8_t)(state >> 8);
    }
}

static const char *temp_file(size_t len)
{
    make_data();
    int fd = mkstemp(temp_path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, data, len), (ssize_t)len);
    close(fd);
    return temp_path;
}

/* Reads all of it, and says whether it is what it should be. */
static void expect_rest(struct rd_src *src, size_t from, size_t to)
{
    struct rd_slice s;
    while (rd_src_need(src, 1, &s) == RD_SRC_OK) {
        cr_assert_eq(rd_src_offset(src), from);
        cr_assert_leq(from + s.len, to);
        cr_assert_eq(memcmp(s.ptr, data + from, s.len), 0);
        from += s.len;
        rd_src_consume(src, s.len);
    }
    cr_assert_eq(from, to);
}

Test(src_again, a_file_that_is_opened_again_has_a_position_of_its_own)
{
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = 512, .origin = "data");
    struct rd_src *first, *again, *third;
    struct rd_err err = {0};
    struct rd_slice s;
    cr_assert(rd_src_open_file(&first, temp_file(DATA_LEN), &opts, &err));
    cr_assert(rd_src_can_open_again(first));
    cr_assert_eq(rd_src_need(first, 100, &s), RD_SRC_OK);
    rd_src_consume(first, 100);
    cr_assert(rd_src_open_again(&again, first, &err), "%s", err.text);
    cr_assert(rd_src_open_again(&third, again, &err), "%s", err.text);
    expect_rest(again, 0, DATA_LEN);
    cr_expect_eq(rd_src_size(again), DATA_LEN);
    cr_expect_str_eq(rd_src_origin(again), "data");
    expect_rest(first, 100, DATA_LEN);
    cr_assert(rd_src_again_range(again, 7000, 9000, &err));
    expect_rest(again, 7000, 9000);
    cr_assert(rd_src_again_range(again, 6000, UINT64_MAX, &err));
    expect_rest(again, 6000, DATA_LEN);
    cr_assert(rd_src_again_range(again, 100, 200, &err));
    expect_rest(again, 100, 200);
    expect_rest(third, 0, DATA_LEN);
    rd_src_close(third);
    rd_src_close(again);
    rd_src_close(first);
    unlink(temp_path);
}

Test(src_again, a_descriptor_that_is_opened_again_begins_where_it_stood)
{
    struct rd_src *first, *again;
    struct rd_err err = {0};
    int fd = open(temp_file(DATA_LEN), O_RDONLY | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    cr_assert_eq(lseek(fd, 5000, SEEK_SET), 5000);
    cr_assert(rd_src_open_fd(&first, fd, true, NULL, &err));
    cr_assert(rd_src_open_again(&again, first, &err));
    struct rd_slice s;
    cr_assert_eq(rd_src_need(again, 10, &s), RD_SRC_OK);
    cr_expect_eq(memcmp(s.ptr, data + 5000, 10), 0);
    rd_src_close(again);
    rd_src_close(first);
    unlink(temp_path);
}

Test(src_again, what_does_not_seek_by_itself_cannot_be_opened_again)
{
    struct rd_src *first, *again;
    struct rd_err err = {0};
    make_data();
    cr_assert(rd_src_open_memory(&first, rd_slice(data, 10), NULL, &err));
    cr_expect_not(rd_src_can_open_again(first));
    cr_expect_not(rd_src_open_again(&again, first, &err));
    cr_expect_eq(err.code, RD_ERR_USAGE);
    rd_src_close(first);
}

Test(src_again, a_seek_after_the_range_ends_it_and_one_after_every_file_fails)
{
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = 512, .origin = "data");
    struct rd_src *first, *again;
    struct rd_err err = {0};
    cr_assert(rd_src_open_file(&first, temp_file(DATA_LEN), &opts, &err));
    cr_assert(rd_src_open_again(&again, first, &err));
    cr_assert(rd_src_again_range(again, 100, 200, &err));
    cr_assert(rd_src_seek(again, 150, &err));
    expect_rest(again, 150, 200);
    cr_assert(rd_src_seek(again, 300, &err));
    expect_rest(again, 300, DATA_LEN);
    cr_assert_not(rd_src_seek(again, UINT64_MAX - 1, &err));
    cr_expect_eq(err.code, RD_ERR_IO);
    cr_expect_eq(err.sys, EOVERFLOW);
    cr_expect_str_eq(err.origin, "data");
    rd_src_close(again);
    rd_src_close(first);
    unlink(temp_path);
}

Test(src_again, an_unreadable_descriptor_is_reported_with_its_position)
{
    struct rd_src *first, *again;
    struct rd_err err = {0};
    struct rd_slice s;
    int fd = open(temp_file(DATA_LEN), O_WRONLY | O_CLOEXEC);
    cr_assert(rd_src_open_fd(&first, fd, true, NULL, &err));
    cr_assert(rd_src_open_again(&again, first, &err));
    cr_assert(rd_src_again_range(again, 70, 80, &err));
    cr_assert_eq(rd_src_need(again, 1, &s), RD_SRC_FAIL);
    cr_expect_eq(rd_src_err(again)->sys, EBADF);
    cr_expect_eq(rd_src_err(again)->offset, 70);
    rd_src_close(again);
    rd_src_close(first);
    unlink(temp_path);
}

Test(src_again, without_memory_a_file_is_not_opened_again)
{
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = "data");
    struct rd_src *first, *again;
    cr_assert(rd_src_open_file(&first, temp_file(10), &opts, NULL));
    for (size_t n = 1;; n++) {
        struct rd_err err = {0};
        alloc_fault_begin(n);
        bool ok = rd_src_open_again(&again, first, &err);
        if (ok)
            rd_src_close(again);
        struct alloc_fault_result result = alloc_fault_end();
        cr_assert_eq(result.live, 0);
        cr_assert_eq(ok, !result.failed);
        if (ok)
            break;
        cr_assert_eq(err.code, RD_ERR_MEMORY);
        cr_assert_str_eq(err.origin, "data");
    }
    expect_rest(first, 0, 10);
    rd_src_close(first);
    unlink(temp_path);
}
