/* The clock, random numbers, files that fail, children, background jobs and the end of a process.
 * The linker puts these functions in the place of those of the system (--wrap). */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "server/loop/background.h"
#include "tests/sim/servers_impl.h"

enum { US = 1000000, BOOT_S = 1700000000, JOBS_MAX = 64, FILES_MAX = 1024 };

struct sim sim;

/* ---- chance, failures ---- */

uint64_t sim_below(uint64_t n)
{
    return chance_below(&sim.random, n);
}

bool sim_one_of(uint64_t n)
{
    return sim_below(n) == 0;
}

int64_t sim_between(int64_t from, int64_t to)
{
    return from + (int64_t)sim_below((uint64_t)(to - from + 1));
}

void sim_fail(const char *why)
{
    if (sim.failure == NULL)
        sim.failure = why;
    sim_say("FAILS: %s", why);
}

void sim_say(const char *fmt, ...)
{
    va_list args;
    if (!sim.traced)
        return;
    va_start(args, fmt);
    printf("# %12.6f ", (double)(sim.now_us - (int64_t)BOOT_S * US) / US);
    vprintf(fmt, args);
    putchar('\n');
    va_end(args);
}

/* ---- clocks ---- */

int __wrap_clock_gettime(clockid_t which, struct timespec *ret);
int __wrap_clock_gettime(clockid_t which, struct timespec *ret)
{
    int64_t us = sim.now_us - (which == CLOCK_REALTIME ? 0 : (int64_t)BOOT_S * US - US);
    *ret = (struct timespec){us / US, us % US * 1000};
    return 0;
}

int __wrap_gettimeofday(struct timeval *ret, void *zone);
int __wrap_gettimeofday(struct timeval *ret, void *zone)
{
    (void)zone;
    *ret = (struct timeval){sim.now_us / US, sim.now_us % US};
    return 0;
}

time_t __wrap_time(time_t *ret);
time_t __wrap_time(time_t *ret)
{
    if (ret != NULL)
        *ret = sim.now_us / US;
    return sim.now_us / US;
}

int __wrap_usleep(useconds_t us);
int __wrap_usleep(useconds_t us)
{
    sim.now_us += us;
    return 0;
}

/* ---- chance ---- */

ssize_t __wrap_getrandom(void *dst, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *dst, size_t len, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)dst)[i] = (uint8_t)chance_next(&sim.random);
    return (ssize_t)len;
}

/* ---- the end of a process ---- */

_Noreturn static void end(enum sim_end how)
{
    if (sim.in_child || sim.running == NOBODY)
        _exit(3);
    longjmp(sim.ended, (int)how);
}

_Noreturn void __wrap_exit(int status);
_Noreturn void __wrap_exit(int status)
{
    (void)status;
    end(SIM_EXITED);
}

_Noreturn void __wrap_log_panic(const char *why);
_Noreturn void __wrap_log_panic(const char *why)
{
    snprintf(sim.panic, sizeof sim.panic, "%s", why);
    end(SIM_PANICKED);
}

/* ---- files ---- */

ssize_t __real_write(int fd, const void *src, size_t len);
ssize_t __real_read(int fd, void *dst, size_t size);
int __real_rename(const char *from, const char *to);
int __real_close(int fd);
int __real_shutdown(int fd, int how);

/* An operation on a file: whether the process dies in it. */
static bool dies(void)
{
    unsigned *left = &sim.child_dies_in;
    if (!sim.in_child && sim.running == NOBODY)
        return false;
    if (!sim.in_child)
        left = &sim.hosts[sim.running].dies_in;
    return *left != NEVER_DIES && --*left == 0;
}

_Noreturn static void die(void)
{
    if (sim.in_child)
        kill(getpid(), SIGKILL);
    sim.sums->disk_kills++;
    end(SIM_KILLED);
}

static bool disk_is_full(void)
{
    if (sim.running == NOBODY || sim.hosts[sim.running].disk_full_until_us <= sim.now_us)
        return false;
    sim.hosts[sim.running].disk_failed = true;
    return true;
}

/* Whose files are open, so that they, and their locks, end with the process. */
static int8_t owners[FILES_MAX]; /* 1 + the host; 0: nobody's */
static int log_fd = -1; /* of the log lines of a traced run, which is not to be another run */

static int opened(int fd)
{
    if (fd >= 0 && fd < FILES_MAX)
        owners[fd] = (int8_t)(1 + sim.running);
    return fd;
}

int __real_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode)
{
    int fd = opened(__real_open64(path, flags, mode));
    log_fd = strcmp(path, "log") == 0 ? fd : log_fd;
    return fd;
}

int __real_openat64(int folder, const char *path, int flags, mode_t mode);
int __wrap_openat64(int folder, const char *path, int flags, mode_t mode);
int __wrap_openat64(int folder, const char *path, int flags, mode_t mode)
{
    return opened(__real_openat64(folder, path, flags, mode));
}

int __real_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags)
{
    int result = __real_pipe2(fds, flags);
    if (result == 0) {
        opened(fds[0]);
        opened(fds[1]);
    }
    return result;
}

void sim_close_files(int host)
{
    for (int fd = 0; fd < FILES_MAX; fd++)
        if (owners[fd] == 1 + host) {
            owners[fd] = 0;
            __real_close(fd);
        }
}

ssize_t __wrap_write(int fd, const void *src, size_t len);
ssize_t __wrap_write(int fd, const void *src, size_t len)
{
    if (sim_is_socket(fd))
        return sim_net_send(fd, src, len);
    if (fd == log_fd)
        return __real_write(fd, src, len);
    bool last = dies(), full = disk_is_full();
    if (last || full)
        len = len > 0 ? (size_t)sim_below(len) : 0;
    ssize_t n = len > 0 || !full ? __real_write(fd, src, len) : -1;
    if (last)
        die();
    if (full && len == 0)
        errno = ENOSPC;
    return n;
}

/* Nothing here loses power, so nothing waits for the disk. */
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    (void)fd;
    if (dies())
        die();
    return 0;
}

int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
    return __wrap_fsync(fd);
}

int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    bool last = dies();
    if (last && sim_one_of(2))
        die();
    int result = __real_rename(from, to);
    if (last)
        die();
    return result;
}

/* The transfer of a child: it is read as a whole, so that it does not depend on the speed of the
 * child. */
static ssize_t read_whole(int fd, uint8_t *dst, size_t size)
{
    size_t len = 0;
    while (len < size) {
        ssize_t n = __real_read(fd, dst + len, size - len);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            break;
        if (n > 0)
            len += (size_t)n;
        else
            poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
    }
    return (ssize_t)len;
}

ssize_t __wrap_read(int fd, void *dst, size_t size);
ssize_t __wrap_read(int fd, void *dst, size_t size)
{
    if (!sim.in_child && sim.running != NOBODY && fd == sim.hosts[sim.running].transfer_fd)
        return read_whole(fd, dst, size);
    return __real_read(fd, dst, size);
}

/* ---- children ---- */

int __real_socketpair(int domain, int type, int protocol, int fds[2]);
int __real_fork(void);
int __real_waitpid(int pid, int *status, int flags);

int __wrap_socketpair(int domain, int type, int protocol, int fds[2]);
int __wrap_socketpair(int domain, int type, int protocol, int fds[2])
{
    int result = __real_socketpair(domain, type, protocol, fds);
    if (result == 0 && sim.running != NOBODY) {
        opened(fds[0]);
        opened(fds[1]);
        sim.hosts[sim.running].transfer_fd = fds[0];
        sim.next_transfers = true;
    }
    return result;
}

static struct sim_child *child_of(int pid)
{
    for (size_t i = 0; i < sim.n_children; i++)
        if (sim.children[i].pid == pid)
            return &sim.children[i];
    return NULL;
}

static void forget_child(struct sim_child *c)
{
    *c = sim.children[--sim.n_children];
}

int __wrap_fork(void);
int __wrap_fork(void)
{
    siginfo_t info;
    if (sim.running == NOBODY)
        return __real_fork();
    unsigned dies_in = sim_one_of(8) ? 1 + (unsigned)sim_below(12) : NEVER_DIES;
    int64_t takes = sim_one_of(4) ? sim_between(1000, 10 * US) : sim_between(1000, US / 10);
    bool transfers = sim.next_transfers;
    sim.next_transfers = false;
    int pid = __real_fork();
    if (pid == 0) {
        sim.in_child = true;
        sim.child_dies_in = dies_in;
    } else if (pid > 0) {
        sim.sums->children++;
        sim.sums->children_killed += dies_in != NEVER_DIES;
        sim.hosts[sim.running].disk_failed |= dies_in != NEVER_DIES;
        sim.children[sim.n_children++] = (struct sim_child){
            pid, sim.running, transfers, transfers ? SIM_NEVER : sim.now_us + takes};
        if (!transfers)
            waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
    }
    return pid;
}

int __wrap_waitpid(int pid, int *status, int flags);
int __wrap_waitpid(int pid, int *status, int flags)
{
    struct sim_child *c = child_of(pid);
    if (sim.running == NOBODY)
        return __real_waitpid(pid, status, flags);
    if (c == NULL || ((flags & WNOHANG) != 0 && c->due_us > sim.now_us))
        return c == NULL ? -1 : 0;
    forget_child(c);
    return __real_waitpid(pid, status, 0);
}

/* The parent has read the whole transfer: the child ends. */
static void end_transfer(int fd)
{
    struct sim_host *host = sim.running != NOBODY ? &sim.hosts[sim.running] : NULL;
    if (sim.in_child || host == NULL || fd != host->transfer_fd)
        return;
    host->transfer_fd = -1;
    for (size_t i = 0; i < sim.n_children; i++)
        if (sim.children[i].host == sim.running && sim.children[i].transfers &&
            sim.children[i].due_us == SIM_NEVER)
            sim.children[i].due_us = sim.now_us + sim_between(100, 100000);
}

int __wrap_shutdown(int fd, int how);
int __wrap_shutdown(int fd, int how)
{
    int result = __real_shutdown(fd, how);
    end_transfer(fd);
    return result;
}

int __wrap_close(int fd);
int __wrap_close(int fd)
{
    if (sim_is_socket(fd)) {
        sim_net_close(fd);
        return 0;
    }
    end_transfer(fd);
    if (fd >= 0 && fd < FILES_MAX)
        owners[fd] = 0;
    log_fd = fd == log_fd ? -1 : log_fd;
    return __real_close(fd);
}

void sim_end_children(int host)
{
    for (size_t i = sim.n_children; i-- > 0;) {
        struct sim_child *c = &sim.children[i];
        if (c->host != host)
            continue;
        kill(c->pid, SIGKILL);
        __real_waitpid(c->pid, NULL, 0);
        forget_child(c);
    }
}

int64_t sim_child_next(int host)
{
    int64_t next = SIM_NEVER;
    for (size_t i = 0; i < sim.n_children; i++)
        if (sim.children[i].host == host && sim.children[i].due_us < next)
            next = sim.children[i].due_us;
    return next;
}

bool sim_child_due(int host)
{
    return sim_child_next(host) <= sim.now_us;
}

/* ---- background jobs: the work is done at once, and reported later ---- */

static struct job {
    struct loop *loop;
    enum background_lane lane;
    background_fn done;
    void *arg;
    int64_t due_us;
} jobs[JOBS_MAX];
static size_t n_jobs;

void __wrap_background_run(struct loop *loop, enum background_lane lane, background_fn work,
                           background_fn done, void *arg);
void __wrap_background_run(struct loop *loop, enum background_lane lane, background_fn work,
                           background_fn done, void *arg)
{
    work(arg);
    if (done == NULL)
        return;
    if (n_jobs == JOBS_MAX) {
        done(arg);
        return;
    }
    int64_t due_us = sim.now_us + sim_between(10, 50000);
    for (size_t i = 0; i < n_jobs; i++) /* the jobs of a lane end in order */
        if (jobs[i].loop == loop && jobs[i].lane == lane && jobs[i].due_us > due_us)
            due_us = jobs[i].due_us;
    jobs[n_jobs++] = (struct job){loop, lane, done, arg, due_us};
}

static int host_of(const struct loop *loop)
{
    for (int i = 0; i < sim.n_hosts; i++)
        if (sim.hosts[i].srv != NULL && &sim.hosts[i].srv->loop == loop)
            return i;
    return NOBODY;
}

static void report_job(size_t i)
{
    struct job job = jobs[i];
    memmove(&jobs[i], &jobs[i + 1], (--n_jobs - i) * sizeof *jobs);
    job.done(job.arg);
}

void __wrap_background_drain(struct loop *loop, enum background_lane lane);
void __wrap_background_drain(struct loop *loop, enum background_lane lane)
{
    for (size_t i = 0; i < n_jobs;)
        if (jobs[i].loop == loop && jobs[i].lane == lane)
            report_job(i);
        else
            i++;
}

int64_t sim_background_next(int host)
{
    int64_t next = SIM_NEVER;
    for (size_t i = 0; i < n_jobs; i++)
        if (host_of(jobs[i].loop) == host && jobs[i].due_us < next)
            next = jobs[i].due_us;
    return next;
}

void sim_background_done(int host)
{
    for (size_t i = 0; i < n_jobs;)
        if (host_of(jobs[i].loop) == host && jobs[i].due_us <= sim.now_us)
            report_job(i);
        else
            i++;
}

void sim_background_drop(int host)
{
    size_t kept = 0;
    for (size_t i = 0; i < n_jobs; i++)
        if (host_of(jobs[i].loop) != host)
            jobs[kept++] = jobs[i];
    n_jobs = kept;
}
