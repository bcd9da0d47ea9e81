/* child.h - a copy of the process that writes a file while the server continues.
 *
 *     switch (child_fork(loop, &child, "rdb", cpulist, -1)) {
 *     case 0:
 *         ok = write the file, with child_progress() now and then
 *         child_exit(&child, ok ? 0 : 1);
 *     case -1:
 *         ... child.error is the errno ...
 *     default:
 *         ... child.pid; child_poll() reads its progress; SIGCHLD reports its end ...
 *         child_reap(&child, mono_us);
 *     }
 *
 * The child has none of the server's descriptors except standard output and standard error. Its
 * signals are the default ones, and SIGUSR1 ends it with CHILD_SILENT, which is not an error. If
 * CPUs are scarce, it gets a third of the time of the server, unless it has a descriptor to keep.
 * It must not use the loop, and it has one thread only.
 */
#ifndef SERVER_LOOP_CHILD_H
#define SERVER_LOOP_CHILD_H

#include "server/loop/loop.h"

enum { CHILD_SILENT = 255 };

/* Its progress, sent through a pipe. */
struct child_report {
    uint64_t keys;
    uint64_t cow; /* bytes no longer shared with the server */
    uint64_t cow_peak;
};

struct child {
    int pid;
    int fd; /* this process's end of the pipe; -1: none */
    int error;
    const char *name; /* "RDB", "AOF rewrite" */
    struct child_report report;
    int64_t reported_us; /* monotonic; time of the last report received or sent */
    uint64_t cow_sum, n_cow;
    int64_t cow_cost_us; /* cost of the last measurement, and its time */
    int64_t cow_at_us;
};

/* Returns 0 in the child, -1 after a failure, else the pid. Counts and times the fork: stats,
 * latency "fork". cpulist: CPUs of the child; "": all. keep_fd: a descriptor that the child needs;
 * -1: none. */
int child_fork(struct loop *loop, struct child *child, const char *name, const char *cpulist,
               int keep_fd);

/* In the child: to be called after each key. Sends a report every second. */
void child_progress(struct child *child, uint64_t keys);

/* In the child: sends the last report, with a log line about memory after a success; then exits. */
_Noreturn void child_exit(struct child *child, int status);

/* In the parent: reads the pending reports. */
void child_poll(struct child *child, int64_t mono_us);

/* In the parent: sends SIGUSR1 and waits for the end. */
void child_kill(struct child *child);

/* In the parent, after the child has exited. */
void child_reap(struct child *child, int64_t mono_us);

#endif
