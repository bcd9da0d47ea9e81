/* Temporary files: what others can see of them, and what is left when a process is killed. */
#include "base/sink.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/base/system.h"

static char folder[] = "/tmp/redoubt-sink-temp-XXXXXX";
static const char data[] = "what was written before the end";

static void enter_folder(void)
{
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
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

static void leave_folder(int n_files)
{
    DIR *dir = opendir(".");
    struct dirent *entry;
    cr_assert_eq(count_files(), n_files);
    while ((entry = readdir(dir)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlink(entry->d_name);
    closedir(dir);
    cr_assert_eq(chdir("/"), 0);
    rmdir(folder);
}

static void make_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static bool file_is(const char *path, const char *bytes, size_t len)
{
    char contents[100];
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, contents, sizeof contents);
    close(fd);
    return n == (ssize_t)len && memcmp(contents, bytes, len) == 0;
}

/* A process that is killed while it writes; it has written when this returns. */
static void write_and_be_killed(const char *path)
{
    int ready[2];
    char byte;
    cr_assert_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct rd_sink *sink;
        bool ok = rd_sink_open_file(&sink, path, &RD_SINK_OPTS(.replace = true), NULL) &&
                  rd_sink_write(sink, data, sizeof data) && rd_sink_flush(sink);
        if (!ok || write(ready[1], "1", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    cr_assert_eq(read(ready[0], &byte, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

Test(sink_temp, nothing_is_left_of_a_process_that_is_killed)
{
    enter_folder();
    write_and_be_killed("out");
    cr_assert_eq(count_files(), 0);
    leave_folder(0);
}

Test(sink_temp, without_files_that_have_no_name_the_next_one_removes_what_was_left)
{
    struct rd_sink *sink, *other;
    struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true);
    enter_folder();
    system_no_tmpfile = true;
    write_and_be_killed("out");
    make_file(".out.redoubt-0123456789abcdef.tmp", "left by another");
    make_file(".out.redoubt-12-0.tmp", "not ours");
    make_file(".other.redoubt-0123456789abcdef.tmp", "of another file");
    cr_assert_eq(count_files(), 4);
    cr_assert(rd_sink_open_file(&sink, "out", &opts, NULL));
    cr_assert_eq(count_files(), 3);
    cr_assert(rd_sink_open_file(&other, "out", &opts, NULL), "two at a time");
    cr_assert_eq(count_files(), 4, "what is in use is not removed");
    cr_assert(rd_sink_write(sink, "new", 3) && rd_sink_write(other, "last", 4));
    cr_assert(rd_sink_close(sink, NULL));
    cr_assert(file_is("out", "new", 3));
    cr_assert(rd_sink_close(other, NULL));
    cr_assert(file_is("out", "last", 4));
    leave_folder(3);
}

Test(sink_temp, what_was_left_is_removed_also_when_a_file_is_replaced)
{
    struct rd_sink *sink;
    enter_folder();
    make_file(".out.redoubt-0123456789abcdef.tmp", "left");
    cr_assert_eq(mkdir(".out.redoubt-0123456789abcdee.tmp", 0700), 0);
    cr_assert(rd_sink_open_file(&sink, "out", &RD_SINK_OPTS(.replace = true), NULL));
    cr_assert(rd_sink_close(sink, NULL));
    cr_assert_eq(count_files(), 2);
    rmdir(".out.redoubt-0123456789abcdee.tmp");
    leave_folder(1);
}

Test(sink_temp, names_of_temporary_files_are_random)
{
    struct rd_sink *sinks[2];
    struct dirent *entry;
    char first[NAME_MAX + 1] = "";
    int n = 0;
    enter_folder();
    system_no_tmpfile = true;
    for (int i = 0; i < 2; i++)
        cr_assert(rd_sink_open_file(&sinks[i], "out", NULL, NULL));
    DIR *dir = opendir(".");
    while ((entry = readdir(dir)) != NULL) {
        if (strstr(entry->d_name, "redoubt") == NULL)
            continue;
        cr_assert(n == 0 || strncmp(first, entry->d_name, strlen(".out.redoubt-") + 8) != 0);
        memcpy(first, entry->d_name, sizeof first);
        n++;
    }
    closedir(dir);
    cr_assert_eq(n, 2);
    rd_sink_abort(sinks[0]);
    rd_sink_abort(sinks[1]);
    leave_folder(0);
}
