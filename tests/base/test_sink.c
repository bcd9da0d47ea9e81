#include "base/sink.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/crc64.h"
#include "tests/base/system.h"
#include "tests/support/alloc_fault.h"

enum { SEED = 20240608, DATA_LEN = 30000 };

static uint8_t data[DATA_LEN];

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* A folder of its own for a test, entered, with random data at hand. */
static char folder[] = P_tmpdir "/redoubt-sink-XXXXXX";

static void enter_folder(void)
{
    uint32_t state = 1;
    for (size_t i = 0; i < DATA_LEN; i++)
        data[i] = (uint8_t)next_random(&state);
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
}

/* Removes the folder, which must hold exactly n_files entries, hidden ones included. */
static void leave_folder(int n_files)
{
    DIR *dir = opendir(".");
    struct dirent *entry;
    int n = 0;
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        unlink(entry->d_name);
        n++;
    }
    closedir(dir);
    cr_assert_eq(chdir("/"), 0);
    rmdir(folder);
    cr_assert_eq(n, n_files, "%d files were left instead of %d", n, n_files);
}

static int count_files(void)
{
    DIR *dir = opendir(".");
    int n = -2;
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static bool file_is(const char *path, const void *bytes, size_t len)
{
    static uint8_t contents[DATA_LEN + 1];
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, contents, sizeof contents);
    if (fd >= 0)
        close(fd);
    return n == (ssize_t)len && memcmp(contents, bytes, len) == 0;
}

static void make_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* Writes all of data in random pieces; the sum and the offset are compared with the data. */
static void write_at_random(struct rd_sink *sink, size_t max, uint32_t *seed)
{
    size_t off = 0;
    rd_sink_sum_begin(sink, 9);
    while (off < DATA_LEN) {
        size_t n = next_random(seed) % (max + 1);
        if (n > DATA_LEN - off)
            n = DATA_LEN - off;
        if (n == 1)
            cr_assert(rd_sink_byte(sink, data[off]));
        else
            cr_assert(rd_sink_write(sink, data + off, n));
        off += n;
        cr_assert_eq(rd_sink_offset(sink), off);
        if (next_random(seed) % 8 == 0)
            cr_assert_eq(rd_sink_sum(sink), rd_crc64(9, data, off));
        if (next_random(seed) % 64 == 0)
            cr_assert(rd_sink_flush(sink));
    }
    cr_assert_eq(rd_sink_sum(sink), rd_crc64(9, data, DATA_LEN));
}

static const size_t buffers[] = {1, 2, 7, 64, 1000, DATA_LEN, 0};
enum { N_BUFFERS = sizeof buffers / sizeof *buffers };

Test(sink, every_kind_and_buffer_gives_the_same_bytes_offset_and_sum)
{
    uint32_t seed = SEED;
    enter_folder();
    cr_log_info("seed %u", seed);
    for (size_t i = 0; i < N_BUFFERS; i++) {
        struct rd_sink_opts opts =
            RD_SINK_OPTS(.buffer = buffers[i], .replace = true, .no_sync = true);
        for (size_t max = 1; max <= 10000; max *= 10) {
            struct rd_sink *sink;
            struct rd_buf buf = {0};
            cr_assert(rd_sink_open_buf(&sink, &buf, &opts, NULL));
            write_at_random(sink, max, &seed);
            cr_assert(rd_sink_close(sink, NULL));
            cr_assert(rd_slice_eq(rd_buf_slice(&buf), rd_slice(data, DATA_LEN)));
            rd_buf_done(&buf);

            cr_assert(rd_sink_open_null(&sink, &opts, NULL));
            write_at_random(sink, max, &seed);
            cr_assert(rd_sink_close(sink, NULL));
            if (max == 1)
                continue; /* a system call for every byte takes long */
            cr_assert(rd_sink_open_file(&sink, "out", &opts, NULL));
            write_at_random(sink, max, &seed);
            cr_assert(rd_sink_close(sink, NULL));
            cr_assert(file_is("out", data, DATA_LEN));
        }
    }
    leave_folder(1);
}

Test(sink, the_sum_begins_where_the_caller_says)
{
    struct rd_sink *sink;
    enter_folder();
    for (size_t i = 0; i < N_BUFFERS; i++) {
        cr_assert(rd_sink_open_null(&sink, &RD_SINK_OPTS(.buffer = buffers[i]), NULL));
        rd_sink_write(sink, data, 50);
        cr_assert_eq(rd_sink_sum(sink), 0, "not begun");
        rd_sink_sum_begin(sink, 4);
        cr_assert_eq(rd_sink_sum(sink), 4);
        rd_sink_write(sink, data + 50, 900);
        cr_assert_eq(rd_sink_sum(sink), rd_crc64(4, data + 50, 900));
        cr_assert_eq(rd_sink_sum(sink), rd_crc64(4, data + 50, 900));
        rd_sink_write(sink, data + 950, 7);
        cr_assert_eq(rd_sink_sum(sink), rd_crc64(4, data + 50, 907));
        cr_assert(rd_sink_close(sink, NULL));
    }
    leave_folder(0);
}

/* A vtable whose n-th call fails, with or without a reason. */
struct faulty {
    int calls_left;
    bool silent;
    size_t n_bytes;
    int n_commits, n_drops;
};

static bool faulty_call(struct faulty *faulty, struct rd_err *err)
{
    if (--faulty->calls_left != 0)
        return true;
    return faulty->silent ? false : rd_err_sys(err, ENOSPC, "cannot write");
}

static bool faulty_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct faulty *faulty = impl;
    (void)ptr;
    if (!faulty_call(faulty, err))
        return false;
    faulty->n_bytes += len;
    return true;
}

static bool faulty_sync(void *impl, struct rd_err *err)
{
    return faulty_call(impl, err);
}

static bool faulty_close(void *impl, bool commit, struct rd_err *err)
{
    struct faulty *faulty = impl;
    faulty->n_commits += commit;
    faulty->n_drops += !commit;
    return faulty_call(faulty, err);
}

static const struct rd_sink_ops faulty_ops = {faulty_write, faulty_sync, faulty_close};

/* Writes five times 10 bytes through a buffer of 16, and syncs; returns whether every call was
 * true. */
static bool write_some(struct rd_sink *sink)
{
    bool ok = true;
    for (int i = 0; i < 5; i++) {
        bool now = rd_sink_write(sink, "0123456789", 10);
        cr_assert(ok || !now, "a write succeeds after a failure");
        ok = ok && now;
    }
    bool synced = rd_sink_sync(sink);
    cr_assert(ok || !synced);
    ok = ok && synced;
    bool more = rd_sink_write(sink, "0123456789abcdefghij", 20) && rd_sink_byte(sink, 'x');
    cr_assert(ok || !more);
    return ok && more;
}

Test(sink, the_first_failure_sticks_wherever_it_happens)
{
    for (int silent = 0; silent < 2; silent++) {
        int n = 1;
        for (;; n++) {
            struct faulty faulty = {.calls_left = n, .silent = silent};
            struct rd_sink_opts opts = RD_SINK_OPTS(.buffer = 16, .origin = "out");
            struct rd_sink *sink;
            struct rd_err err = {0};
            cr_assert(rd_sink_new(&sink, &faulty_ops, &faulty, &opts, NULL));
            bool wrote = write_some(sink);
            cr_assert_eq(rd_sink_err(sink)->code, wrote ? RD_ERR_OK : RD_ERR_IO);
            bool closed = rd_sink_close(sink, &err);
            cr_assert(wrote || !closed);
            cr_assert_eq(faulty.n_commits + faulty.n_drops, 1);
            cr_assert_eq(faulty.n_drops, faulty.n_bytes < 71, "n %d", n);
            if (closed)
                break;
            cr_assert_eq(err.code, RD_ERR_IO);
            cr_assert_eq(err.sys, silent ? 0 : ENOSPC);
            cr_assert_str_eq(err.origin, "out");
        }
        cr_assert_gt(n, 8, "every call of the vtable has failed once");
    }
}

Test(sink, an_abort_drops)
{
    struct faulty faulty = {0};
    struct rd_sink *sink;
    cr_assert(rd_sink_new(&sink, &faulty_ops, &faulty, NULL, NULL));
    cr_assert(rd_sink_write(sink, "abc", 3));
    rd_sink_abort(sink);
    rd_sink_abort(NULL);
    cr_assert(faulty.n_drops == 1 && faulty.n_commits == 0 && faulty.n_bytes == 0);
}

Test(sink, a_buffer_gets_everything_or_nothing)
{
    struct rd_buf buf = {0};
    struct rd_sink *sink;
    rd_buf_add(&buf, "old", 3);
    cr_assert(rd_sink_open_buf(&sink, &buf, NULL, NULL));
    rd_sink_write(sink, "new", 3);
    cr_assert(rd_sink_flush(sink));
    cr_assert(rd_slice_is(rd_buf_slice(&buf), "oldnew"));
    rd_sink_abort(sink);
    cr_assert(rd_slice_is(rd_buf_slice(&buf), "old"));
    cr_assert(rd_sink_open_buf(&sink, &buf, NULL, NULL));
    rd_sink_write(sink, "new", 3);
    cr_assert(rd_sink_sync(sink));
    cr_assert(rd_sink_close(sink, NULL));
    cr_assert(rd_slice_is(rd_buf_slice(&buf), "oldnew"));
    rd_buf_done(&buf);
}

Test(sink, a_file_appears_when_it_is_closed)
{
    struct rd_sink *sink;
    enter_folder();
    for (int replace = 0; replace < 2; replace++) {
        struct rd_sink_opts opts = RD_SINK_OPTS(.replace = replace);
        size_t len = replace ? 1000 : DATA_LEN;
        cr_assert(rd_sink_open_file(&sink, "out", &opts, NULL));
        cr_assert(rd_sink_write(sink, data, len));
        cr_assert(rd_sink_sync(sink));
        cr_assert_eq(access("out", F_OK) == 0, replace == 1);
        cr_assert_eq(count_files(), replace, "it has no name yet");
        cr_assert(replace == 0 || file_is("out", data, DATA_LEN));
        cr_assert(rd_sink_close(sink, NULL));
        cr_assert(file_is("out", data, len));
    }
    leave_folder(1);
}

Test(sink, an_absolute_path_and_the_longest_name_work)
{
    char path[sizeof folder + 300], name[NAME_MAX + 2];
    struct rd_sink *sink;
    struct rd_err err = {0};
    enter_folder();
    memset(name, 'n', sizeof name);
    name[NAME_MAX + 1] = '\0';
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cr_assert_not(rd_sink_open_file(&sink, path, NULL, &err));
    cr_assert(err.code == RD_ERR_IO && err.sys == ENAMETOOLONG);
    path[strlen(path) - 1] = '\0';
    cr_assert(rd_sink_open_file(&sink, path, NULL, NULL));
    cr_assert_eq(chdir("/"), 0);
    cr_assert(rd_sink_write(sink, "abc", 3));
    cr_assert(rd_sink_close(sink, NULL));
    cr_assert(file_is(path, "abc", 3));
    cr_assert_eq(chdir(folder), 0);
    leave_folder(1);
}

Test(sink, an_existing_file_is_refused)
{
    struct rd_sink *sink = NULL;
    struct rd_err err = {0};
    enter_folder();
    make_file("out", "old");
    cr_assert_not(rd_sink_open_file(&sink, "out", NULL, &err));
    cr_assert_null(sink);
    cr_assert_eq(err.code, RD_ERR_USAGE);
    cr_assert_str_eq(err.origin, "out");
    cr_assert(file_is("out", "old", 3));
    cr_assert_eq(symlink("nothing", "link"), 0);
    rd_err_reset(&err);
    cr_assert_not(rd_sink_open_file(&sink, "link", NULL, &err), "a dangling link is something");
    cr_assert_eq(err.code, RD_ERR_USAGE);
    leave_folder(2);
}

Test(sink, a_file_that_appears_meanwhile_is_not_clobbered)
{
    struct rd_sink *sink;
    struct rd_err err = {0};
    enter_folder();
    cr_assert(rd_sink_open_file(&sink, "out", NULL, NULL));
    cr_assert(rd_sink_write(sink, "new", 3));
    make_file("out", "old");
    cr_assert_not(rd_sink_close(sink, &err));
    cr_assert_eq(err.code, RD_ERR_USAGE);
    cr_assert_str_eq(err.origin, "out");
    cr_assert(file_is("out", "old", 3));
    leave_folder(1);
}

Test(sink, a_file_system_without_exclusive_rename_is_served_by_links)
{
    static const int reasons[] = {ENOSYS, EINVAL};
    struct rd_sink *sink;
    system_no_tmpfile = true;
    enter_folder();
    for (int i = 0; i < 2; i++) {
        struct rd_err err = {0};
        system_renameat2 = reasons[i];
        cr_assert(rd_sink_open_file(&sink, "out", NULL, NULL));
        cr_assert(rd_sink_write(sink, "new", 3));
        cr_assert(rd_sink_close(sink, NULL));
        cr_assert(file_is("out", "new", 3));
        cr_assert_eq(count_files(), 1);
        unlink("out");

        cr_assert(rd_sink_open_file(&sink, "out", NULL, NULL));
        make_file("out", "old");
        cr_assert_not(rd_sink_close(sink, &err));
        cr_assert_eq(err.code, RD_ERR_USAGE);
        cr_assert(file_is("out", "old", 3));
        unlink("out");

        rd_err_reset(&err);
        cr_assert(rd_sink_open_file(&sink, "out", NULL, NULL));
        rd_sink_unlink_all();
        cr_assert_not(rd_sink_close(sink, &err));
        cr_assert(err.code == RD_ERR_IO && err.sys == ENOENT);
    }
    leave_folder(0);
}

Test(sink, bytes_that_cannot_be_made_durable_take_no_effect)
{
    struct rd_sink *sink;
    enter_folder();
    make_file("out", "old");
    for (int n = 1; n <= 2; n++) {
        struct rd_err err = {0};
        cr_assert(rd_sink_open_file(&sink, "out", &RD_SINK_OPTS(.replace = true), NULL));
        cr_assert(rd_sink_write(sink, "new", 3));
        system_fsync.left = n;
        system_fsync.sys = EIO;
        cr_assert_not(rd_sink_close(sink, &err));
        cr_assert(err.code == RD_ERR_IO && err.sys == EIO);
        cr_assert(file_is("out", n == 1 ? "old" : "new", 3), "after the rename it is too late");
        cr_assert_eq(count_files(), 1);
    }
    cr_assert(rd_sink_open_file(&sink, "new", NULL, NULL));
    system_fsync.left = 1;
    cr_assert_not(rd_sink_sync(sink));
    cr_assert_not(rd_sink_close(sink, NULL));
    leave_folder(1);
}

Test(sink, a_sync_is_repeated_left_out_or_not_needed)
{
    static const int reasons[] = {EINTR, EINVAL, EROFS};
    struct rd_sink *sink;
    struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true);
    enter_folder();
    for (int i = 0; i < 3; i++) {
        system_fsync.left = 1;
        system_fsync.sys = reasons[i];
        cr_assert(rd_sink_open_file(&sink, "out", &opts, NULL));
        cr_assert(rd_sink_close(sink, NULL));
        cr_assert_eq(system_fsync.left, reasons[i] == EINTR ? -2 : -1,
                     "file, folder, and once more");
    }
    opts.no_sync = true;
    system_fsync.left = 100;
    cr_assert(rd_sink_open_file(&sink, "out", &opts, NULL));
    cr_assert(rd_sink_sync(sink));
    cr_assert(rd_sink_close(sink, NULL));
    cr_assert_eq(system_fsync.left, 100);
    leave_folder(1);
}

Test(sink, an_abort_leaves_the_target_as_it_was)
{
    struct rd_sink *sink;
    enter_folder();
    make_file("out", "old");
    cr_assert(rd_sink_open_file(&sink, "out", &RD_SINK_OPTS(.replace = true), NULL));
    cr_assert(rd_sink_write(sink, data, DATA_LEN));
    cr_assert(rd_sink_flush(sink));
    rd_sink_abort(sink);
    cr_assert(file_is("out", "old", 3));
    leave_folder(1);
}

Test(sink, a_full_disk_leaves_the_target_as_it_was)
{
    struct rlimit limit = {.rlim_cur = 5000, .rlim_max = RLIM_INFINITY};
    struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true, .buffer = 1000);
    struct rd_sink *sink;
    struct rd_err err = {0};
    enter_folder();
    make_file("out", "old");
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert(rd_sink_open_file(&sink, "out", &opts, NULL));
    size_t n_ok = 0;
    for (size_t off = 0; off < DATA_LEN; off += 300)
        n_ok += rd_sink_write(sink, data + off, 300);
    cr_assert(n_ok >= 5000 / 300 && n_ok < 6100 / 300, "%zu", n_ok);
    cr_assert_not(rd_sink_close(sink, &err));
    cr_assert_eq(err.code, RD_ERR_IO);
    cr_assert_eq(err.sys, EFBIG);
    cr_assert_str_eq(err.origin, "out");
    cr_assert(file_is("out", "old", 3));
    leave_folder(1);
}

Test(sink, a_device_is_written_directly)
{
    struct rd_sink *sink;
    struct rd_err err = {0};
    char text[200];
    struct stat st;
    cr_assert(rd_sink_open_file(&sink, "/dev/null", NULL, NULL));
    cr_assert(rd_sink_write(sink, "abc", 3));
    cr_assert(rd_sink_close(sink, NULL));
    cr_assert(rd_sink_open_file(&sink, "/dev/full", NULL, NULL));
    cr_assert(rd_sink_write(sink, "abc", 3));
    cr_assert_not(rd_sink_close(sink, &err));
    cr_assert_eq(err.sys, ENOSPC);
    cr_assert_str_eq(rd_err_render(&err, text, sizeof text),
                     "/dev/full: cannot write: No space left on device");
    cr_assert(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
}

Test(sink, a_link_is_followed_when_it_is_replaced)
{
    struct rd_sink *sink;
    struct stat st;
    enter_folder();
    make_file("real", "old");
    cr_assert_eq(symlink("real", "link"), 0);
    cr_assert(rd_sink_open_file(&sink, "link", &RD_SINK_OPTS(.replace = true), NULL));
    cr_assert(rd_sink_write(sink, "new", 3));
    cr_assert(rd_sink_close(sink, NULL));
    cr_assert(file_is("real", "new", 3));
    cr_assert(lstat("link", &st) == 0 && S_ISLNK(st.st_mode));
    leave_folder(2);
}

static void check_open_error(const char *path, int sys)
{
    struct rd_sink *sink = NULL;
    struct rd_err err = {0};
    cr_assert_not(rd_sink_open_file(&sink, path, &RD_SINK_OPTS(.replace = true), &err));
    cr_assert_null(sink);
    cr_assert_eq(err.code, RD_ERR_IO, "%s", path);
    cr_assert_eq(err.sys, sys, "%s: %s", path, err.text);
    cr_assert_str_eq(err.origin, path);
}

Test(sink, a_path_that_cannot_be_a_file_is_reported_on_open)
{
    enter_folder();
    make_file("file", "");
    cr_assert_eq(symlink("nothing", "link"), 0);
    check_open_error("missing/out", ENOENT);
    check_open_error("file/out", ENOTDIR);
    check_open_error(".", EISDIR);
    check_open_error("new/", EISDIR);
    check_open_error("", ENOENT);
    check_open_error("link", ENOENT);
    check_open_error("/proc/out", ENOENT);
    cr_assert_eq(mknod("socket", S_IFSOCK | 0600, 0), 0);
    check_open_error("socket", ENXIO);
    leave_folder(3);
}

Test(sink, a_folder_that_vanishes_is_reported_on_close)
{
    struct rd_sink *sink;
    struct rd_err err = {0};
    enter_folder();
    cr_assert_eq(mkdir("sub", 0700), 0);
    cr_assert(rd_sink_open_file(&sink, "sub/out", NULL, NULL));
    cr_assert(rd_sink_write(sink, "abc", 3));
    cr_assert_eq(system("rm -r sub"), 0);
    cr_assert_not(rd_sink_close(sink, &err));
    cr_assert(err.code == RD_ERR_IO && err.sys == ENOENT);
    leave_folder(0);
}

static unsigned mode_after(unsigned mode, unsigned mask)
{
    struct rd_sink *sink;
    struct stat st = {0};
    umask((mode_t)mask);
    cr_assert(rd_sink_open_file(
        &sink, "out", &RD_SINK_OPTS(.mode = mode, .replace = true, .no_sync = true), NULL));
    cr_assert(rd_sink_close(sink, NULL));
    cr_assert_eq(stat("out", &st), 0);
    return st.st_mode & 07777;
}

Test(sink, a_file_has_the_permissions_asked_for)
{
    enter_folder();
    cr_assert_eq(mode_after(0, 0), 0600);
    cr_assert_eq(mode_after(0, 077), 0600);
    cr_assert_eq(mode_after(0660, 077), 0660);
    cr_assert_eq(mode_after(0400, 0), 0400);
    leave_folder(1);
}

Test(sink, permissions_that_a_file_system_refuses_are_reported_on_open)
{
    struct rd_sink *sink = NULL;
    struct rd_err err = {0};
    enter_folder();
    system_fchmod = (struct system_fault){.left = 1, .sys = EPERM};
    cr_assert_not(rd_sink_open_file(&sink, "out", &RD_SINK_OPTS(.mode = 0640), &err));
    cr_assert(err.code == RD_ERR_IO && err.sys == EPERM);
    cr_assert_str_eq(err.origin, "out");
    leave_folder(0);
}

Test(sink, a_signal_handler_can_remove_what_is_unfinished)
{
    struct rd_sink *sinks[3];
    struct rd_err err = {0};
    system_no_tmpfile = true;
    enter_folder();
    cr_assert(rd_sink_open_file(&sinks[0], "a", NULL, NULL));
    cr_assert(rd_sink_open_file(&sinks[1], "b", NULL, NULL));
    cr_assert(rd_sink_open_file(&sinks[2], "c", NULL, NULL));
    cr_assert(rd_sink_close(sinks[0], NULL));
    cr_assert_eq(count_files(), 3);

    pid_t child = fork();
    if (child == 0) {
        rd_sink_unlink_all();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    cr_assert_eq(count_files(), 3, "a child leaves its parent's files alone");

    errno = 77;
    rd_sink_unlink_all();
    cr_assert_eq(errno, 77);
    cr_assert_eq(count_files(), 1);
    cr_assert_eq(access("a", F_OK), 0);
    cr_assert_not(rd_sink_close(sinks[1], &err));
    cr_assert_eq(err.code, RD_ERR_IO);
    rd_sink_abort(sinks[2]);
    leave_folder(1);
}

Test(sink, the_table_of_unfinished_files_has_an_end_and_is_used_again)
{
    enum { MOST = 256 };
    static struct rd_sink *sinks[MOST + 1];
    struct rlimit limit;
    struct rd_sink_opts opts = RD_SINK_OPTS(.buffer = 1);
    struct rd_err err = {0};
    system_no_tmpfile = true;
    enter_folder();
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_assert_geq(limit.rlim_max, 600);
    limit.rlim_cur = 600;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MOST; i++)
            cr_assert(rd_sink_open_file(&sinks[i], "out", &opts, &err), "%d: %s", i, err.text);
        cr_assert_not(rd_sink_open_file(&sinks[MOST], "out", &opts, &err));
        cr_assert_eq(err.code, RD_ERR_LIMIT);
        rd_err_reset(&err);
        cr_assert_eq(count_files(), MOST);
        for (int i = 0; i < MOST; i++)
            rd_sink_abort(sinks[i]);
        cr_assert_eq(count_files(), 0);
    }
    leave_folder(0);
}

Test(sink, a_dash_is_standard_output)
{
    struct rd_sink *sink;
    char text[16] = "";
    int fds[2];
    int saved = dup(STDOUT_FILENO);
    cr_assert_eq(pipe(fds), 0);
    dup2(fds[1], STDOUT_FILENO);
    bool opened = rd_sink_open_file(&sink, "-", NULL, NULL);
    bool named = opened && strcmp(rd_sink_origin(sink), "standard output") == 0;
    bool ok = opened && rd_sink_write(sink, "hello", 5) && rd_sink_sync(sink) &&
              rd_sink_close(sink, NULL);
    bool open_still = fcntl(STDOUT_FILENO, F_GETFD) != -1;
    dup2(saved, STDOUT_FILENO);
    cr_assert(opened && named && ok && open_still);
    cr_assert_eq(read(fds[0], text, sizeof text), 5);
    cr_assert_str_eq(text, "hello");
}

/* Reads a pipe slowly to its end and exits with 0 if data came out of it. */
static void drain_slowly(int fd)
{
    static uint8_t got[DATA_LEN * 10];
    size_t len = 0;
    ssize_t n;
    usleep(20000);
    while ((n = read(fd, got + len, 5000)) > 0)
        len += (size_t)n;
    bool same = len == sizeof got;
    for (size_t off = 0; same && off < len; off += DATA_LEN)
        same = memcmp(got + off, data, DATA_LEN) == 0;
    _exit(same ? 0 : 1);
}

Test(sink, a_slow_pipe_is_waited_for_also_when_it_does_not_block)
{
    enter_folder();
    for (int flags = 0; flags <= O_NONBLOCK; flags += O_NONBLOCK) {
        struct rd_sink *sink;
        int fds[2], status = -1;
        cr_assert_eq(pipe(fds), 0);
        cr_assert_eq(fcntl(fds[1], F_SETFL, flags), 0);
        pid_t child = fork();
        if (child == 0) {
            close(fds[1]);
            drain_slowly(fds[0]);
        }
        close(fds[0]);
        cr_assert(rd_sink_open_fd(&sink, fds[1], true, NULL, NULL));
        for (int i = 0; i < 10; i++)
            cr_assert(rd_sink_write(sink, data, DATA_LEN));
        cr_assert(rd_sink_close(sink, NULL));
        cr_assert_eq(fcntl(fds[1], F_GETFD), -1, "an owned descriptor is closed");
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    leave_folder(0);
}

Test(sink, a_failing_descriptor_is_an_io_error_and_stays_open_unless_owned)
{
    struct rd_sink *sink;
    struct rd_err err = {0};
    int fd = open("/dev/null", O_RDONLY);
    cr_assert(rd_sink_open_fd(&sink, fd, false, &RD_SINK_OPTS(.origin = "f"), NULL));
    cr_assert(rd_sink_write(sink, "abc", 3));
    cr_assert_not(rd_sink_flush(sink));
    cr_assert_eq(rd_sink_err(sink)->sys, EBADF);
    cr_assert_not(rd_sink_close(sink, &err));
    cr_assert(err.code == RD_ERR_IO && strcmp(err.origin, "f") == 0);
    cr_assert_eq(fcntl(fd, F_GETFD), 0);
    close(fd);
}

Test(sink, a_descriptor_closed_elsewhere_is_reported)
{
    struct rd_sink *sink;
    struct rd_err err = {0};
    int fd = open("/dev/null", O_WRONLY);
    cr_assert(rd_sink_open_fd(&sink, fd, true, &RD_SINK_OPTS(.no_sync = true), NULL));
    close(fd);
    cr_assert_not(rd_sink_close(sink, &err));
    cr_assert(err.code == RD_ERR_IO && err.sys == EBADF);
}

static bool try_kind(int kind, struct rd_buf *buf, struct rd_err *err)
{
    struct rd_sink_opts opts = RD_SINK_OPTS(.buffer = 100, .origin = "try", .no_sync = true);
    struct rd_sink *sink;
    bool ok = false;
    switch (kind) {
    case 0:
        ok = rd_sink_open_null(&sink, &opts, err);
        break;
    case 1:
        ok = rd_sink_open_buf(&sink, buf, &opts, err);
        break;
    case 2:
        ok = rd_sink_open_fd(&sink, open("/dev/null", O_WRONLY), true, &opts, err);
        break;
    case 3:
        ok = rd_sink_open_file(&sink, "out", &opts, err);
        break;
    default:
        break;
    }
    if (!ok)
        return false;
    for (int i = 0; i < 30; i++)
        rd_sink_write(sink, data, 70);
    return rd_sink_close(sink, err);
}

static int count_descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

Test(sink, when_memory_is_short_nothing_is_left_after)
{
    static const size_t n_allocs[] = {2, 5, 3, 3};
    enter_folder();
    int n_open = count_descriptors();
    for (int kind = 0; kind < 4; kind++) {
        size_t n = 1;
        for (;; n++) {
            struct rd_err err = {0};
            struct rd_buf buf = {0};
            alloc_fault_begin(n);
            bool ok = try_kind(kind, &buf, &err);
            size_t len = buf.len;
            rd_buf_done(&buf);
            struct alloc_fault_result r = alloc_fault_end();
            cr_assert_eq(r.live, 0, "kind %d, n %zu", kind, n);
            cr_assert_eq(ok, !r.failed, "kind %d, n %zu", kind, n);
            cr_assert_eq(len, ok && kind == 1 ? 2100 : 0);
            cr_assert_eq(count_descriptors(), n_open, "kind %d, n %zu", kind, n);
            cr_assert_eq(count_files(), ok && kind == 3, "kind %d, n %zu", kind, n);
            if (ok)
                break;
            cr_assert_eq(err.code, RD_ERR_MEMORY);
            cr_assert_str_eq(err.origin, "try");
        }
        cr_assert_gt(n, n_allocs[kind], "kind %d", kind);
    }
    leave_folder(1);
}
