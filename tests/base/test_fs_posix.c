#include "base/fs.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/slice.h"
#include "tests/base/system.h"
#include "tests/support/alloc_fault.h"

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
    cr_assert_eq(fs.outside(fs.ctx, "log"), 0, "a folder is not a file");
    snprintf(path, sizeof path, "%s/link", dir);
    cr_assert_eq(symlink("old", path), 0);
    cr_assert_eq(fs.outside(fs.ctx, "link"), -ELOOP);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(fs.adopt(fs.ctx, "old"), 0);
    cr_assert_eq(fs.sync_folder(fs.ctx, true), 0);
    cr_assert_eq(fs.outside(fs.ctx, "old"), 0);
    cr_assert_eq(fs.size(fs.ctx, "old", &size), 0);
    cr_assert_eq(size, 3);
    rd_fs_close_posix(&fs);
}

static void collect(void *arg, const char *name)
{
    strcat(arg, name);
}

Test(rd_fs_posix, a_folder_by_its_path_is_listed_locked_and_read_at_offsets)
{
    struct rd_fs fs, other;
    char path[128], names[256] = "", text[4] = "";
    snprintf(path, sizeof path, "%s/log", dir);
    cr_assert_not(rd_fs_open_folder(&fs, path, false, NULL));
    cr_assert(rd_fs_open_folder(&fs, path, true, NULL));
    cr_assert(rd_fs_open_folder(&other, path, true, NULL));
    cr_assert_eq(fs.list(fs.ctx, collect, names), 0);
    cr_assert_str_eq(names, "");
    int lock = fs.lock(fs.ctx, "a");
    cr_assert_geq(lock, 0);
    cr_assert_eq(other.lock(other.ctx, "a"), -EWOULDBLOCK);
    cr_assert_eq(fs.list(fs.ctx, collect, names), 0);
    cr_assert_str_eq(names, "a");
    fs.close(fs.ctx, lock);
    lock = other.lock(other.ctx, "a");
    cr_assert_geq(lock, 0);
    other.close(other.ctx, lock);
    int fd = fs.open(fs.ctx, "a", RD_FS_APPEND);
    cr_assert_eq(fs.write(fs.ctx, fd, "abcdef", 6), 6);
    cr_assert_eq(fs.read_at(fs.ctx, fd, text, 3, 2), -EBADF);
    fs.close(fs.ctx, fd);
    fd = fs.open(fs.ctx, "a", RD_FS_READ);
    cr_assert_eq(fs.read_at(fs.ctx, fd, text, 3, 2), 3);
    cr_assert_str_eq(text, "cde");
    cr_assert_eq(fs.read_at(fs.ctx, fd, text, 3, 5), 1);
    cr_assert_eq(fs.read_at(fs.ctx, fd, text, 3, 6), 0);
    cr_assert_eq(fs.read(fs.ctx, fd, text, 1), 1);
    cr_assert_eq(text[0], 'a', "reading at an offset moves nothing");
    fs.close(fs.ctx, fd);
    cr_assert_eq(fs.lock(fs.ctx, "no/a"), -ENOENT);
    rd_fs_close_posix(&fs);
    rd_fs_close_posix(&other);
}

Test(rd_fs_posix, a_path_that_is_not_a_folder_or_cannot_be_created_is_reported)
{
    struct rd_fs fs;
    struct rd_err err = {0};
    char path[128];
    snprintf(path, sizeof path, "%s/none/log", dir);
    cr_assert_not(rd_fs_open_folder(&fs, path, true, &err));
    cr_assert_eq(err.sys, ENOENT);
    cr_assert_str_eq(err.origin, path);
    snprintf(path, sizeof path, "%s/old", dir);
    fclose(fopen(path, "w"));
    rd_err_reset(&err);
    cr_assert_not(rd_fs_open_folder(&fs, path, true, &err));
    cr_assert_eq(err.sys, ENOTDIR);
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

Test(rd_fs_posix, a_folder_that_cannot_be_made_or_made_durable_is_named)
{
    struct rd_fs fs;
    struct rd_err err = {0};
    char name[300], path[128];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    cr_assert_not(rd_fs_open_posix(&fs, dir, name, &err));
    cr_assert_eq(err.sys, ENAMETOOLONG);
    rd_err_reset(&err);
    system_fsync = (struct system_fault){.left = 1, .sys = EIO};
    cr_assert_not(rd_fs_open_posix(&fs, dir, "log", &err));
    cr_assert_eq(err.sys, EIO);
    cr_assert_str_eq(err.origin, "log");
    snprintf(path, sizeof path, "%s/log", dir);
    cr_assert_eq(rmdir(path), 0, "it was made");
    rd_err_reset(&err);
    system_fsync = (struct system_fault){.left = 1, .sys = EIO};
    cr_assert_not(rd_fs_open_folder(&fs, path, true, &err));
    cr_assert_eq(err.sys, EIO);
    cr_assert_str_eq(err.origin, path);
}

Test(rd_fs_posix, a_folder_that_cannot_be_listed_is_reported)
{
    struct rd_fs fs;
    char names[256] = "";
    cr_assert(rd_fs_open_posix(&fs, dir, "log", NULL));
    struct rlimit before, none;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    int without_descriptors = fs.list(fs.ctx, collect, names);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    cr_assert_eq(without_descriptors, -EMFILE);
    system_fdopendir = (struct system_fault){.left = 1, .sys = ENOMEM};
    cr_assert_eq(fs.list(fs.ctx, collect, names), -ENOMEM);
    cr_assert_eq(fs.list(fs.ctx, collect, names), 0);
    rd_fs_close_posix(&fs);
}

Test(rd_fs_posix, without_memory_nothing_is_created)
{
    struct rd_fs fs;
    struct rd_err err[2] = {{0}, {0}};
    char path[128];
    snprintf(path, sizeof path, "%s/log", dir);
    alloc_fault_begin(1);
    bool by_names = rd_fs_open_posix(&fs, dir, "log", &err[0]);
    alloc_fault_end();
    alloc_fault_begin(1);
    bool by_path = rd_fs_open_folder(&fs, path, true, &err[1]);
    struct alloc_fault_result result = alloc_fault_end();
    cr_assert(!by_names && err[0].code == RD_ERR_MEMORY);
    cr_assert(!by_path && err[1].code == RD_ERR_MEMORY);
    cr_assert_eq(result.live, 0);
    cr_assert_eq(access(path, F_OK), -1);
}
