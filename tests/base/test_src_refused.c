/* Sources that the system refuses something, or memory. */
#include "base/src_impl.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/alloc_fault.h"

/* A file without a name that holds "abc", and reads as zeros from there to `len`. */
static int file_of(off_t len)
{
    int fd = memfd_create("redoubt", MFD_CLOEXEC);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, "abc", 3), 3);
    cr_assert_eq(ftruncate(fd, len), 0);
    cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

Test(src_refused, a_descriptor_that_is_closed_meanwhile_cannot_be_sought_in)
{
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = 64, .origin = "f");
    struct rd_src *src;
    struct rd_err err = {0};
    int fd = file_of(100);
    cr_assert(rd_src_open_fd(&src, fd, false, &opts, NULL));
    cr_assert(rd_src_seek(src, 80, &err));
    close(fd);
    cr_assert_not(rd_src_seek(src, 90, &err));
    cr_assert(err.code == RD_ERR_IO && err.sys == EBADF);
    cr_assert_str_eq(err.origin, "f");
    rd_src_close(src);
}

/* More than any address space. */
Test(src_refused, a_file_that_cannot_be_mapped_is_read)
{
    const off_t huge = (off_t)1 << 62;
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = 64);
    char path[64];
    struct rd_src *src;
    struct rd_slice s;
    int fd = file_of(huge);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    cr_assert(rd_src_open_map(&src, path, &opts, NULL));
    cr_assert_eq(rd_src_need(src, 4, &s), RD_SRC_OK);
    cr_expect_eq(memcmp(s.ptr, "abc", 4), 0);
    cr_expect_eq(rd_src_size(src), (uint64_t)huge);
    rd_src_close(src);
    close(fd);
}

Test(src_refused, without_memory_for_more_windows_bytes_do_not_stay)
{
    enum { OPENED = 4, KEPT = 2 }; /* allocations */
    static const uint8_t data[200];
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = 64);
    for (size_t n = OPENED + 1; n <= OPENED + KEPT + 1; n++) {
        struct rd_src *src;
        struct rd_slice s;
        alloc_fault_begin(n);
        cr_assert(rd_src_open_memory(&src, rd_slice(data, sizeof data), NULL, NULL));
        cr_assert(rd_src_open_trickle(&src, src, 64, &opts, NULL));
        bool kept = rd_src_keep(src, KEPT);
        bool read = rd_src_need(src, 64, &s) == RD_SRC_OK;
        rd_src_close(src);
        struct alloc_fault_result result = alloc_fault_end();
        cr_assert_eq(kept, n == OPENED + KEPT + 1, "%zu", n);
        cr_assert_eq(kept, !result.failed, "%zu", n);
        cr_assert(read, "it is a source all the same");
        cr_assert_eq(result.live, 0);
    }
}
