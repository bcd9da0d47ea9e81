#include "archive/store.h"

#include "base/buf.h"
#include "tests/archive/folder.h"
#include "tests/support/alloc_fault.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <signal.h>
#include <unistd.h>

static char path[64];
static struct archive_store *store;

static void begin(void)
{
    store = folder_open(path);
}

static void end(void)
{
    folder_remove(store, path);
}

TestSuite(store, .init = begin, .fini = end);
TestSuite(store_denied, .init = begin, .fini = end); /* system calls fail, by seccomp */

static void expect_text(const char *name, const char *want)
{
    char *text = folder_get(store, name);
    cr_expect_str_eq(text, want);
    free(text);
}

Test(store, a_missing_object_has_a_reason_of_its_own)
{
    struct rd_src *src;
    struct rd_buf bytes = {0};
    struct rd_err err = {0}, other = {0};
    cr_assert_not(store->ops->get(store, "t/sets/1/a", &src, &err));
    cr_expect(archive_store_is_missing(&err));
    cr_expect_eq(err.sys, ENOENT);
    cr_expect_str_eq(err.origin, "t/sets/1/a");
    rd_err_reset(&err);
    cr_assert_not(store->ops->range(store, "t/sets/1/a", 0, 1, &bytes, &err));
    cr_expect(archive_store_is_missing(&err));
    rd_buf_done(&bytes);
    /* Another file that does not exist, and an error that was there before. */
    rd_err_sys(&other, ENOENT, "cannot open the spool");
    cr_expect_not(archive_store_is_missing(&other));
    cr_expect_not(archive_store_set_missing(&other, "t/sets/1/a"));
    cr_expect_not(archive_store_is_missing(&other));
}

Test(store, an_object_appears_whole_and_is_private)
{
    struct rd_sink *sink;
    struct stat st;
    char full[200];
    cr_assert(store->ops->put(store, "t/sets/1/a", &sink, NULL));
    cr_assert(rd_sink_write(sink, "abc", 3) && rd_sink_sync(sink));
    cr_expect_not(folder_has(path, "t/sets/1/a"));
    cr_assert(rd_sink_close(sink, NULL));
    expect_text("t/sets/1/a", "abc");
    snprintf(full, sizeof full, "%s/t/sets/1/a", path);
    cr_assert_eq(stat(full, &st), 0);
    cr_expect_eq(st.st_mode & 07777, 0600);
    snprintf(full, sizeof full, "%s/t/sets", path);
    cr_assert_eq(stat(full, &st), 0);
    cr_expect_eq(st.st_mode & 07777, 0700);
}

Test(store, an_aborted_object_leaves_nothing)
{
    struct rd_sink *sink;
    cr_assert(store->ops->put(store, "t/a", &sink, NULL));
    cr_assert(rd_sink_write(sink, "abc", 3));
    rd_sink_abort(sink);
    cr_expect_not(folder_has(path, "t/a"));
}

Test(store, an_object_is_never_replaced)
{
    struct rd_err err = {0};
    folder_put(store, "t/a", "one");
    cr_expect_not(archive_store_write(store, "t/a", rd_slice_str("two"), &err));
    cr_expect(archive_store_exists(&err), "%s", err.text);
    expect_text("t/a", "one");
}

Test(store, an_object_that_exists_with_the_same_bytes_is_stored)
{
    struct rd_err err = {0};
    folder_put(store, "t/a", "one");
    cr_expect(archive_store_write(store, "t/a", rd_slice_str("one"), &err), "%s", err.text);
    expect_text("t/a", "one");
}

Test(store, an_object_is_compared_by_size_and_digest)
{
    struct archive_store_sum sum;
    struct rd_src *src;
    folder_put(store, "t/a", "one");
    cr_assert(store->ops->get(store, "t/a", &src, NULL));
    cr_assert(archive_store_sum_src(src, &sum, NULL));
    rd_src_close(src);
    cr_expect_eq(sum.bytes, 3);
    folder_put(store, "t/other", "two");
    folder_put(store, "t/longer", "one, two");
    cr_expect_eq(archive_store_prove(store, "t/a", &sum, NULL), ARCHIVE_STORE_SAME);
    cr_expect_eq(archive_store_prove(store, "t/other", &sum, NULL), ARCHIVE_STORE_OTHER);
    cr_expect_eq(archive_store_prove(store, "t/longer", &sum, NULL), ARCHIVE_STORE_OTHER);
    cr_expect_eq(archive_store_prove(store, "t/nothing", &sum, NULL), ARCHIVE_STORE_ABSENT);
    cr_expect_eq(archive_store_prove(store, "t/a/b", &sum, NULL), ARCHIVE_STORE_FAILED);
}

Test(store, what_is_missing_is_reported)
{
    struct archive_object object;
    struct rd_src *src;
    struct rd_err err = {0};
    folder_put(store, "t/a", "four");
    cr_assert(store->ops->stat(store, "t/a", &object, NULL));
    cr_expect(object.there && object.size == 4);
    cr_assert(store->ops->stat(store, "t/b", &object, NULL));
    cr_expect_not(object.there);
    cr_assert(store->ops->stat(store, "u/b/c", &object, NULL));
    cr_expect_not(object.there);
    cr_expect_not(store->ops->get(store, "t/b", &src, &err));
    cr_expect_eq(err.code, RD_ERR_IO);
    cr_expect_str_eq(err.origin, "t/b");
}

Test(store, a_large_object_is_refused_where_a_small_one_is_read)
{
    struct rd_buf buf = {0};
    struct rd_err err = {0};
    folder_put(store, "a", "12345");
    cr_expect_not(archive_store_read(store, "a", 4, &buf, &err));
    cr_expect_eq(err.code, RD_ERR_LIMIT);
    rd_buf_done(&buf);
}

struct names {
    char text[400];
    uint64_t bytes;
};

static void add_name(void *arg, const struct archive_listed *object)
{
    struct names *names = arg;
    size_t len = strlen(names->text);
    snprintf(names->text + len, sizeof names->text - len, "%s ", object->name);
    names->bytes += object->size;
}

Test(store, objects_are_listed_and_removed)
{
    struct names names = {0};
    folder_put(store, "t/sets/1/a", "12");
    folder_put(store, "t/sets/1/b", "345");
    folder_put(store, "u/sets/1/a", "6");
    cr_assert(store->ops->list(store, "t/sets", add_name, &names, NULL));
    cr_expect_eq(names.bytes, 5);
    cr_expect_eq(strlen(names.text), strlen("t/sets/1/a t/sets/1/b "), "%s", names.text);
    cr_assert(store->ops->list(store, "nothing", add_name, &names, NULL));
    cr_expect_eq(names.bytes, 5);
    cr_assert(store->ops->remove(store, "t/sets/1/a", NULL));
    cr_expect_not(folder_has(path, "t/sets/1/a"));
    cr_assert(store->ops->remove(store, "t/sets/1/a", NULL), "again");
    cr_assert(store->ops->remove(store, "x/y/z", NULL), "of a folder that is missing");
    cr_assert(store->ops->remove(store, "t/sets/1/b", NULL));
    cr_expect_not(folder_has(path, "t/sets/1"), "with its last object the folder goes");
}

Test(store, links_are_not_followed)
{
    char full[200];
    struct rd_src *src;
    struct rd_err err = {0};
    folder_put(store, "t/a", "x");
    snprintf(full, sizeof full, "%s/t/link", path);
    cr_assert_eq(symlink("/etc/passwd", full), 0);
    cr_expect_not(store->ops->get(store, "t/link", &src, &err));
    cr_expect_eq(err.code, RD_ERR_IO);
}

Test(store, what_is_not_a_regular_file_is_not_read)
{
    char full[200];
    struct rd_src *src;
    struct archive_object object;
    struct rd_err err = {0};
    folder_put(store, "t/a", "x");
    snprintf(full, sizeof full, "%s/t/fifo", path);
    cr_assert_eq(mkfifo(full, 0600), 0);
    cr_expect_not(store->ops->get(store, "t/fifo", &src, &err));
    cr_expect_eq(err.code, RD_ERR_IO);
    cr_expect_not(store->ops->stat(store, "t/fifo", &object, NULL));
}

Test(store, a_lock_is_held_once_and_names_its_owner)
{
    struct archive_store *other;
    struct rd_err err = {0};
    cr_assert(archive_store_open_posix(&other, path, true, NULL));
    cr_assert(store->ops->lock(store, "t/lock", "backup on host, process 17", NULL));
    cr_expect_not(other->ops->lock(other, "t/lock", "me", &err));
    cr_expect_eq(err.code, RD_ERR_LOCKED);
    cr_expect_not_null(strstr(err.text, "process 17"), "%s", err.text);
    store->ops->unlock(store);
    store->ops->unlock(store);
    cr_expect(other->ops->lock(other, "t/lock", "me", NULL));
    archive_store_close(other);
    cr_expect(store->ops->lock(store, "t/lock", "me", NULL), "closing gives it back");
}

Test(store, a_full_disk_leaves_nothing)
{
    struct rd_err err = {0};
    struct rlimit limit = {.rlim_cur = 1000, .rlim_max = RLIM_INFINITY};
    char text[2001];
    memset(text, 'x', 2000);
    text[2000] = '\0';
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_expect_not(archive_store_write(store, "t/a", rd_slice_str(text), &err));
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    cr_expect_eq(err.code, RD_ERR_IO, "%s", err.text);
    cr_expect_eq(err.sys, EFBIG);
    cr_expect_not(folder_has(path, "t/a"));
}

/* From here on the call fails with this error; openat() only with these flags. Each test is a
 * process of its own. */
static void deny(unsigned call, unsigned flags, unsigned error)
{
    const unsigned nr = offsetof(struct seccomp_data, nr);
    const unsigned third = offsetof(struct seccomp_data, args[2]);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, nr),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, third),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, flags),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, flags, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0), 0);
}

/* FAT, SMB and many file systems of FUSE have neither unnamed files nor links. */
Test(store_denied, a_file_system_without_links)
{
    struct names names = {0};
    struct rd_err err = {0};
    deny(SYS_openat, O_TMPFILE & ~O_DIRECTORY, EOPNOTSUPP);
    deny(SYS_linkat, 0, EPERM);
    folder_put(store, "t/a", "one");
    expect_text("t/a", "one");
    cr_expect_not(archive_store_write(store, "t/a", rd_slice_str("two"), &err));
    cr_expect(archive_store_exists(&err), "%s", err.text);
    expect_text("t/a", "one");
    cr_assert(store->ops->list(store, "t", add_name, &names, NULL));
    cr_expect_str_eq(names.text, "t/a ", "nothing else is left");
}

Test(store_denied, a_file_system_that_cannot_name_an_object_safely)
{
    struct names names = {0};
    struct rd_err err = {0};
    folder_put(store, "t/a", "one");
    deny(SYS_openat, O_TMPFILE & ~O_DIRECTORY, EOPNOTSUPP);
    deny(SYS_linkat, 0, EPERM);
    deny(SYS_renameat2, 0, EINVAL);
    cr_expect_not(archive_store_write(store, "t/b", rd_slice_str("two"), &err));
    cr_expect_eq(err.code, RD_ERR_UNSUPPORTED);
    cr_expect_not_null(strstr(err.text, "hard links"), "%s", err.text);
    cr_assert(store->ops->list(store, "t", add_name, &names, NULL));
    cr_expect_str_eq(names.text, "t/a ");
}

Test(store_denied, a_file_system_without_unnamed_files)
{
    struct names names = {0};
    struct rd_sink *sink;
    struct rd_err err = {0};
    deny(SYS_openat, O_TMPFILE & ~O_DIRECTORY, EOPNOTSUPP);
    folder_put(store, "t/a", "one");
    expect_text("t/a", "one");
    cr_expect_not(archive_store_write(store, "t/a", rd_slice_str("two"), &err));
    cr_expect(archive_store_exists(&err), "%s", err.text);
    cr_assert(store->ops->put(store, "t/b", &sink, NULL));
    cr_assert(rd_sink_write(sink, "abc", 3));
    rd_sink_abort(sink);
    cr_assert(store->ops->list(store, "t", add_name, &names, NULL));
    cr_expect_str_eq(names.text, "t/a ");
}

Test(store_denied, a_disk_that_cannot_sync)
{
    struct rd_err err = {0};
    deny(SYS_fsync, 0, EIO);
    cr_expect_not(archive_store_write(store, "t/a", rd_slice_str("x"), &err));
    cr_expect_eq(err.sys, EIO);
    cr_expect_not(folder_has(path, "t/a"));
}

Test(store_denied, an_object_that_cannot_be_removed)
{
    struct rd_err err = {0};
    folder_put(store, "t/a", "x");
    deny(SYS_unlinkat, 0, EROFS);
    cr_expect_not(store->ops->remove(store, "t/a", &err));
    cr_expect_eq(err.sys, EROFS);
    cr_expect_str_eq(err.origin, "t/a");
    expect_text("t/a", "x");
}

Test(store, a_file_where_a_folder_should_be)
{
    struct rd_err err = {0};
    folder_put(store, "t", "x");
    cr_expect_not(archive_store_write(store, "t/a", rd_slice_str("x"), &err));
    cr_expect_eq(err.sys, ENOTDIR);
    rd_err_reset(&err);
    cr_expect_not(store->ops->lock(store, "t/lock", "me", &err));
    cr_expect_eq(err.sys, ENOTDIR);
    cr_expect_str_eq(err.origin, "t/lock");
}

Test(store, a_repository_that_is_missing_is_made_only_for_writing)
{
    char full[200], deep[220];
    struct archive_store *made;
    struct rd_err err = {0};
    snprintf(full, sizeof full, "%s/new", path);
    cr_expect_not(archive_store_open_posix(&made, full, false, &err));
    cr_expect_eq(err.code, RD_ERR_IO);
    snprintf(deep, sizeof deep, "%s/deep", full);
    cr_expect_not(archive_store_open_posix(&made, deep, true, &err));
    cr_assert(archive_store_open_posix(&made, full, true, NULL));
    archive_store_close(made);
    archive_store_close(NULL);
}

Test(store, names_are_checked)
{
    char max[102];
    memset(max, 'a', 101);
    max[101] = '\0';
    static const char *const good[] = {"a", "dump.rdb", "A-1_b"};
    static const char *const bad[] = {"", ".a", "..", "a/b", "a b", "\xc3\xa4", "a\n"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        cr_expect(archive_name_ok(good[i]), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_not(archive_name_ok(bad[i]), "%s", bad[i]);
    cr_expect_not(archive_name_ok(max));
    cr_expect(archive_name_ok(max + 1));
}

static bool put_and_get(void)
{
    struct archive_store *own;
    struct rd_buf buf = {0};
    if (!archive_store_open_posix(&own, path, false, NULL))
        return false;
    bool ok = own->ops->remove(own, "t/a", NULL) &&
              archive_store_write(own, "t/a", rd_slice_str("abc"), NULL) &&
              archive_store_read(own, "t/a", 100, &buf, NULL);
    ok = ok && rd_slice_is(rd_buf_slice(&buf), "abc");
    rd_buf_done(&buf);
    archive_store_close(own);
    return ok;
}

Test(store, every_failing_allocation_is_survived)
{
    for (size_t n = 1;; n++) {
        alloc_fault_begin(n);
        bool ok = put_and_get();
        struct alloc_fault_result result = alloc_fault_end();
        cr_assert_eq(result.live, 0, "allocation %zu", n);
        cr_assert_eq(ok, !result.failed, "allocation %zu", n);
        if (ok)
            break;
    }
}
