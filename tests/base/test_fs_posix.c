#include "base/fs.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/slice.h"

static char dir[64];

static void make_dir(void)
{
    snprintf(dir, sizeof dir, "/tmp/redoubt-fs-XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
}

static void remove_dir(void)
{
    static const char *const names[] = {"log/a", "log/b", "log/old", "old", "log"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        remove(path);
    }
    cr_assert_eq(rmdir(dir), 0);
}

TestSuite(rd_fs_posix, .init = make_dir, .fini = remove_dir);

Test(rd_fs_posix, files_are_created_appended_cut_read_and_renamed)
{
    struct rd_fs fs;
    char text[16];
    uint64_t size;
    cr_assert(rd_fs_open_posix(&fs, dir, "log", NULL));
    cr_assert_eq(fs.open(fs.ctx, "a", RD_FS_APPEND), -ENOENT);
    int fd = fs.open(fs.ctx, "a", RD_FS_CREATE);
    cr_assert_geq(fd, 0);
    cr_assert_eq(fs.write(fs.ctx, fd, "hello", 5), 5);
    cr_assert_eq(fs.truncate(fs.ctx, fd, 2), 0);
    cr_assert_eq(fs.write(fs.ctx, fd, "y", 1), 1, "writes go to the new end");
    cr_assert_eq(fs.sync(fs.ctx, fd), 0);
    cr_assert_eq(fs.close(fs.ctx, fd), 0);
    cr_assert_eq(fs.rename(fs.ctx, "a", "b"), 0);
    cr_assert_eq(fs.sync_folder(fs.ctx, false), 0);
    cr_assert_eq(fs.size(fs.ctx, "a", &size), -ENOENT);
    cr_assert_eq(fs.size(fs.ctx, "b", &size), 0);
    cr_assert_eq(size, 3);
    fd = fs.open(fs.ctx, "b", RD_FS_APPEND);
    cr_assert_eq(fs.write(fs.ctx, fd, "!", 1), 1);
    fs.close(fs.ctx, fd);
    fd = fs.open(fs.ctx, "b", RD_FS_READ);
    cr_assert_eq(fs.read(fs.ctx, fd, text, sizeof text), 4);
    cr_assert_eq(memcmp(text, "hey!", 4), 0);
    cr_assert_eq(fs.read(fs.ctx, fd, text, sizeof text), 0);
    cr_assert_eq(fs.write(fs.ctx, fd, "x", 1), -EBADF);
    fs.close(fs.ctx, fd);
    fd = fs.open(fs.ctx, "b", RD_FS_CREATE);
    fs.close(fs.ctx, fd);
    cr_assert_eq(fs.size(fs.ctx, "b", &size), 0);
    cr_assert_eq(size, 0, "it was emptied");
    cr_assert_eq(fs.unlink(fs.ctx, "b"), 0);
    cr_assert_eq(fs.unlink(fs.ctx, "b"), -ENOENT);
    rd_fs_close_posix(&fs);
}

Test(rd_fs_posix, a_file_beside_the_folder_is_adopted)
{
    struct rd_fs fs;
    char path[128];
    uint64_t size;
    cr_assert(rd_fs_open_posix(&fs, dir, "log", NULL));
    cr_assert_eq(fs.outside(fs.ctx, "old"), 0);
    snprintf(path, sizeof path, "%s/old", dir);
    FILE *file = fopen(path, "w");
    fputs("abc", file);
    fclose(file);
    cr_assert_eq(fs.outside(fs.ctx, "old"), 1);
    cr_assert_eq(fs.outside(fs.ctx, "log"), 0, "a folder is no file");
    cr_assert_eq(fs.adopt(fs.ctx, "old"), 0);
    cr_assert_eq(fs.sync_folder(fs.ctx, true), 0);
    cr_assert_eq(fs.outside(fs.ctx, "old"), 0);
    cr_assert_eq(fs.size(fs.ctx, "old", &size), 0);
    cr_assert_eq(size, 3);
    rd_fs_close_posix(&fs);
}

Test(rd_fs_posix, a_folder_that_cannot_be_opened_is_named)
{
    struct rd_fs fs;
    struct rd_err err = {0};
    cr_assert_not(rd_fs_open_posix(&fs, "/nonexistent-folder", "log", &err));
    cr_assert_eq(err.code, RD_ERR_IO);
    cr_assert_eq(err.sys, ENOENT);
    cr_assert_str_eq(err.origin, "/nonexistent-folder");
    char path[128];
    snprintf(path, sizeof path, "%s/old", dir);
    fclose(fopen(path, "w"));
    rd_err_reset(&err);
    cr_assert_not(rd_fs_open_posix(&fs, dir, "old", &err));
    cr_assert_eq(err.sys, ENOTDIR);
    cr_assert_str_eq(err.origin, "old");
}
