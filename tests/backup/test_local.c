#include "backup/local.h"

#include "base/buf.h"
#include "base/pump.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 700000, LIMIT = 300001 };

static char folder[64];
static uint8_t bytes[SIZE];

static void begin(void)
{
    strcpy(folder, "/tmp/redoubt-local-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 251);
}

static void end(void)
{
    cr_expect_eq(rmdir(folder), 0, "nothing is left");
}

TestSuite(local, .init = begin, .fini = end);

static struct rd_src *source(void)
{
    struct rd_src *src;
    cr_assert(rd_src_open_memory(&src, rd_slice(bytes, SIZE), NULL, NULL));
    return src;
}

static void expect_all(struct backup_local *local, struct rd_src *src)
{
    struct rd_src *again;
    struct rd_buf got = {0};
    struct rd_err err = {0};
    cr_assert(backup_local_source(local, &again, src, &err), "%s", err.text);
    cr_assert(rd_pump_to_buf(again, SIZE + 1, &got, &err), "%s", err.text);
    cr_expect(rd_slice_eq(rd_buf_slice(&got), rd_slice(bytes, SIZE)));
    rd_buf_done(&got);
    rd_src_close(again);
}

Test(local, the_copy_is_private_has_no_name_and_gives_all_bytes)
{
    struct backup_local local;
    struct stat st;
    struct rd_err err = {0};
    struct rd_src *src = source();
    cr_assert(backup_local_open(&local, folder, &err), "%s", err.text);
    cr_assert_eq(fstat(local.fd, &st), 0);
    cr_expect_eq(st.st_mode & 07777, 0600);
    cr_expect_eq(st.st_nlink, 0);
    cr_assert(backup_local_copy(&local, src, NULL, &err), "%s", err.text);
    cr_expect(local.whole);
    cr_expect_eq(local.size, SIZE);
    expect_all(&local, src);
    backup_local_close(&local);
    rd_src_close(src);
}

Test(local, what_does_not_fit_comes_from_the_source)
{
    struct rlimit limit = {.rlim_cur = LIMIT, .rlim_max = RLIM_INFINITY};
    struct backup_local local;
    struct rd_err err = {0};
    struct rd_src *src = source();
    signal(SIGXFSZ, SIG_IGN);
    cr_assert(backup_local_open(&local, folder, &err), "%s", err.text);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert(backup_local_copy(&local, src, NULL, &err), "%s", err.text);
    cr_expect_not(local.whole);
    cr_expect_eq(local.size, LIMIT);
    expect_all(&local, src);
    backup_local_close(&local);
    rd_src_close(src);
}

Test(local, it_can_be_stopped)
{
    atomic_bool cancel = true;
    struct backup_local local;
    struct rd_err err = {0};
    struct rd_src *src = source();
    cr_assert(backup_local_open(&local, folder, NULL));
    cr_expect_not(backup_local_copy(&local, src, &cancel, &err));
    cr_expect_eq(err.code, RD_ERR_IO);
    backup_local_close(&local);
    rd_src_close(src);
}

Test(local, a_folder_that_is_missing_is_named)
{
    struct backup_local local;
    struct rd_err err = {0};
    cr_expect_not(backup_local_open(&local, "/dev/null/missing/spool", &err));
    cr_expect_eq(err.code, RD_ERR_IO);
    cr_expect_str_eq(err.origin, "/dev/null/missing/spool");
}
