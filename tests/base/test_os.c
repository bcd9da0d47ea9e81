#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os.h"

/* This file is compiled twice, the second time with what os.c does on other systems. */
#ifdef RD_OS_PORTABLE
enum { PORTABLE = 1 };
#else
enum { PORTABLE = 0 };
#endif

static int folder(char *path)
{
    cr_assert_not_null(mkdtemp(path));
    int fd = open(path, O_PATH | O_DIRECTORY);
    cr_assert(fd >= 0);
    return fd;
}

static void touch(int dir, const char *name)
{
    int fd = openat(dir, name, O_CREAT | O_WRONLY, 0600);
    cr_assert(fd >= 0);
    close(fd);
}

Test(os, a_rename_does_not_replace_a_file)
{
    char path[] = "/tmp/redoubt-os-XXXXXX";
    int dir = folder(path);
    touch(dir, "a");
    touch(dir, "b");
    cr_expect_eq(rd_rename_new(dir, "a", dir, "b"), -1);
    cr_expect_eq(errno, PORTABLE ? ENOSYS : EEXIST);
    cr_expect_eq(rd_rename_new(dir, "a", dir, "c"), PORTABLE ? -1 : 0);
    cr_expect_eq(faccessat(dir, "a", F_OK, 0), PORTABLE ? 0 : -1);
    cr_expect_eq(unlinkat(dir, PORTABLE ? "a" : "c", 0), 0);
    cr_expect_eq(unlinkat(dir, "b", 0), 0);
    close(dir);
    rmdir(path);
}

Test(os, a_range_of_descriptors_is_closed_and_its_neighbours_are_not)
{
    for (int fd = 100; fd < 105; fd++)
        cr_assert_eq(dup2(STDERR_FILENO, fd), fd);
    rd_close_range(103, 101);
    cr_expect(fcntl(101, F_GETFD) >= 0, "an empty range");
    rd_close_range(101, 103);
    for (int fd = 100; fd < 105; fd++)
        cr_expect_eq(fcntl(fd, F_GETFD) >= 0, fd == 100 || fd == 104, "%d", fd);
}

Test(os, the_stack_is_written_one_line_for_each_frame)
{
    void *frames[50];
    char path[] = "/tmp/redoubt-os-XXXXXX", text[8192] = "";
    int fd = mkstemp(path), n = rd_stack(frames, 50), lines = 0;
    unlink(path);
    cr_assert_eq(n > 0, !PORTABLE);
    if (PORTABLE) {
        n = 2;
        frames[0] = path;
        frames[1] = text;
    }
    rd_stack_write(frames, n, fd);
    cr_assert(pread(fd, text, sizeof text - 1, 0) > 0);
    for (const char *c = text; *c != '\0'; c++)
        lines += *c == '\n';
    cr_expect_eq(lines, n);
    close(fd);
}

Test(os, the_heap_has_figures_where_the_library_has)
{
    void *volatile block = malloc(1000);
    struct rd_heap heap = rd_heap();
    cr_expect(!PORTABLE || heap.used + heap.free + heap.mapped == 0);
    cr_expect_eq(rd_heap_set_growth(128 << 10), !PORTABLE);
    rd_heap_trim(0);
    free(block);
}
