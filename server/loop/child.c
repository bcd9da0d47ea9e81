#include "server/loop/child.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "server/loop/daemon.h"
#include "server/loop/latency.h"
#include "server/loop/log.h"

/* Clients of the server should not have to wait for the child that writes a file. */
enum { CHILD_NICE = 5 };

enum { REPORT_US = 1000 * 1000, LOOK_EVERY = 1024, COW_DUTY = 100, MB = 1024 * 1024 };

static int64_t clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- in the child ---- */

static void on_usr1(int signal)
{
    (void)signal;
    log_from_handler("Received SIGUSR1 in child, exiting now.");
    _exit(CHILD_SILENT);
}

static void reset_signals(void)
{
    const int usual[] = {SIGTERM, SIGCHLD, SIGHUP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t none;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        sigaction(usual[i], &action, NULL);
    action.sa_handler = SIG_IGN; /* ^C at a terminal is meant for the server, which ends its
                                    child */
    sigaction(SIGINT, &action, NULL);
    action.sa_handler = on_usr1;
    sigaction(SIGUSR1, &action, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Clients must see the end of their connection when the server closes it, and ports must become
 * free. */
static void close_between(int low, int high)
{
    if (high > low + 1)
        rd_close_range((unsigned)low + 1, (unsigned)high - 1);
}

static void close_others(int keep, int also)
{
    int low = also < keep && also >= 0 ? also : keep, high = also > keep ? also : keep;
    closelog();
    close_between(STDERR_FILENO, low);
    close_between(low, high);
    rd_close_range((unsigned)high + 1, ~0u);
}

/* "0,2,4-6", with a step: "0-10:2". Invalid parts are skipped. */
static void set_cpus(const char *list)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    for (const char *p = list; *p != '\0';) {
        char *end;
        long from = strtol(p, &end, 10), to = from, step = 1;
        if (end == p)
            break;
        if (*end == '-')
            to = strtol(end + 1, &end, 10);
        if (*end == ':')
            step = strtol(end + 1, &end, 10);
        for (long cpu = from; step > 0 && cpu >= 0 && cpu <= to && cpu < CPU_SETSIZE; cpu += step)
            CPU_SET((size_t)cpu, &cpus);
        p = *end == ',' ? end + 1 : end;
        if (*end != ',' && *end != '\0')
            break;
    }
    if (CPU_COUNT(&cpus) > 0)
        sched_setaffinity(0, sizeof cpus, &cpus);
}

static uint64_t private_dirty(void)
{
    char line[256];
    unsigned long long kb, sum = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Private_Dirty: %llu", &kb) == 1)
            sum += kb;
    fclose(file);
    return sum * 1024;
}

/* Measuring a large process is slow, so it takes at most a hundredth of the time. */
static void look_at_memory(struct child *child, bool last)
{
    int64_t from = clock_us();
    if (!last && child->n_cow > 0 && from - child->cow_at_us < child->cow_cost_us * COW_DUTY)
        return;
    uint64_t cow = private_dirty();
    child->report.cow = cow;
    if (cow > child->report.cow_peak)
        child->report.cow_peak = cow;
    child->cow_sum += cow;
    child->n_cow++;
    child->cow_at_us = clock_us();
    child->cow_cost_us = child->cow_at_us - from;
    if (last || cow > 0)
        (last ? log_notice : log_verbose)(
            "Fork CoW for %s: current %llu MB, peak %llu MB, average %llu MB", child->name,
            (unsigned long long)cow / MB, (unsigned long long)child->report.cow_peak / MB,
            (unsigned long long)(child->cow_sum / child->n_cow) / MB);
}

static void send_report(const struct child *child)
{
    ssize_t n;
    do
        n = write(child->fd, &child->report, sizeof child->report);
    while (n < 0 && errno == EINTR);
    /* A full pipe contains enough reports; without a reader, the server has ended. */
    if (n < 0 && errno == EPIPE)
        _exit(1);
}

void child_progress(struct child *child, uint64_t keys)
{
    child->report.keys = keys;
    if (keys % LOOK_EVERY != 0)
        return;
    int64_t now = clock_us();
    if (now - child->reported_us < REPORT_US)
        return;
    look_at_memory(child, false);
    send_report(child);
    child->reported_us = now;
}

void child_exit(struct child *child, int status)
{
    if (status == 0) {
        look_at_memory(child, true);
        send_report(child);
    }
    _exit(status);
}

static void become_child(struct loop *loop, struct child *child, int fd, const char *cpulist,
                         int keep_fd)
{
    close_others(fd, keep_fd);
    signal(SIGPIPE, SIG_IGN);
    reset_signals();
    log_role('C');
    daemon_oom_score(&loop->settings, true); /* the first process to be killed when memory is
                                               short */
    if (keep_fd < 0)                         /* no replica waits for it */
        setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + CHILD_NICE);
    if (cpulist[0] != '\0')
        set_cpus(cpulist);
    child->pid = 0;
    child->fd = fd;
    child->reported_us = clock_us();
}

/* ---- in the parent ---- */

static void count_fork(struct loop *loop, int64_t us)
{
    loop->stats.forks++;
    loop->stats.fork_us = us;
    latency_add(loop, "fork", us / 1000);
}

int child_fork(struct loop *loop, struct child *child, const char *name, const char *cpulist,
               int keep_fd)
{
    int fds[2];
    sigset_t all, before;
    *child = (struct child){.fd = -1, .name = name};
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        child->error = errno;
        return -1;
    }
    /* Until the child has handlers of its own, those of the loop would write to the loop's pipe. */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    int64_t from = clock_us();
    fflush(NULL);
    int pid = fork();
    if (pid == 0) {
        become_child(loop, child, fds[1], cpulist, keep_fd);
        return 0;
    }
    child->error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(fds[1]);
    if (pid < 0) {
        close(fds[0]);
        return -1;
    }
    child->error = 0;
    child->pid = pid;
    child->fd = fds[0];
    count_fork(loop, clock_us() - from);
    return pid;
}

void child_poll(struct child *child, int64_t mono_us)
{
    struct child_report report;
    while (child->fd >= 0 && read(child->fd, &report, sizeof report) == sizeof report) {
        child->report = report;
        child->reported_us = mono_us;
    }
}

void child_kill(struct child *child)
{
    if (child->pid <= 0)
        return;
    kill(child->pid, SIGUSR1);
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void child_reap(struct child *child, int64_t mono_us)
{
    child_poll(child, mono_us);
    if (child->fd >= 0)
        close(child->fd);
    child->fd = -1;
    child->pid = 0;
}
