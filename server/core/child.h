/* child.h - a copy of the process that writes a file while the server continues.
 *
 *     switch (child_fork(srv, &child, "rdb")) {
 *     case 0:
 *         ok = write the file, with child_progress() now and then
 *         child_exit(&child, ok ? 0 : 1);
 *     case -1:
 *         ... child.error is the errno ...
 *     default:
 *         ... child.pid; child_poll() reads how far it got; SIGCHLD tells its end ...
 *         child_reap(&child);
 *     }
 *
 * The child has none of the server's descriptors but standard output and error, its signals are the
 * default ones, and SIGUSR1 ends it with CHILD_SILENT, which means that nothing went wrong. Where
 * processors are short it gets a third of what the server gets. It must not touch the loop, and no
 * thread but its own is there.
 */
#ifndef SERVER_CORE_CHILD_H
#define SERVER_CORE_CHILD_H

#include "server/core/server.h"

enum { CHILD_SILENT = 255 };

/* How far it got; goes through a pipe. */
struct child_report {
    uint64_t keys;
    uint64_t cow; /* bytes that it does not share with the server any more */
    uint64_t cow_peak;
};

struct child {
    int pid;
    int fd; /* the pipe's end of whoever looks; -1 */
    int error;
    const char *name; /* "RDB", "AOF rewrite" */
    struct child_report report;
    int64_t reported_us; /* monotonic; when the last report came, or went */
    uint64_t cow_sum, n_cow;
    int64_t cow_cost_us; /* of looking, and when it was done last */
    int64_t cow_at_us;
};

/* 0 in the child, -1 where it failed, else the pid. Counts and times it: stats, latency "fork".
 * cpulist: where the child may run; "": anywhere. */
int child_fork(struct server *srv, struct child *child, const char *name, const char *cpulist);

/* In the child: after each key. A report goes out every second. */
void child_progress(struct child *child, uint64_t keys);

/* In the child: a last report, with a log line about memory when it succeeded; then its end. */
_Noreturn void child_exit(struct child *child, int status);

/* In the parent: takes the reports that came. */
void child_poll(struct child *child, int64_t mono_us);

/* In the parent: SIGUSR1, and waits for the end. */
void child_kill(struct child *child);

/* In the parent, when it has ended. */
void child_reap(struct child *child, int64_t mono_us);

#endif
