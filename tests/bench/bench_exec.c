/* bench_exec.c - runs a program and prints its cost.
 *
 *     bench_exec FD PROGRAM [ARGUMENT…]
 *
 * Writes one line to the file descriptor FD: exit status (128 + signal), wall seconds, user
 * seconds, system seconds, peak resident KiB, with a blank between each. The peak of a process
 * includes that of the one it was forked from; that is why this is a small program and not part of
 * the table.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { USAGE = 2, TROUBLE = 3, NOT_RUN = 127 };

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double seconds(struct timeval tv)
{
    return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

static int trouble(const char *what)
{
    fprintf(stderr, "bench_exec: %s: %s\n", what, strerror(errno));
    return TROUBLE;
}

static void become(int report, char **argv)
{
    close(report);
    execvp(argv[0], argv);
    fprintf(stderr, "bench_exec: %s: %s\n", argv[0], strerror(errno));
    _exit(NOT_RUN);
}

int main(int argc, char **argv)
{
    int report = argc < 3 ? 0 : atoi(argv[1]);
    if (report < 3) {
        fprintf(stderr, "usage: bench_exec FD PROGRAM [ARGUMENT…]    FD is 3 or more\n");
        return USAGE;
    }
    double begin = now();
    pid_t child = fork();
    if (child < 0)
        return trouble("fork");
    if (child == 0)
        become(report, argv + 2);
    int status;
    struct rusage used;
    if (wait4(child, &status, 0, &used) < 0)
        return trouble("wait4");
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (dprintf(report, "%d %.6f %.6f %.6f %ld\n", code, now() - begin, seconds(used.ru_utime),
                seconds(used.ru_stime), used.ru_maxrss) < 0)
        return trouble("report");
    return 0;
}
