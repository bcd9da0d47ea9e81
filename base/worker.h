/* worker.h - threads that share work with the calling thread.
 *
 *     static void work(void *arg, unsigned worker) { while (get the next piece) process it; }
 *     struct rd_worker *worker = rd_worker_new(3);
 *     rd_worker_start(worker, work, arg);   // runs work(arg, 1) to work(arg, 3) on the helpers
 *     ... something else ...
 *     rd_worker_join(worker);               // runs work(arg, 0) here, then waits
 *
 * Between runs a helper spins for a few microseconds, about as long as a wakeup takes, and then
 * sleeps. rd_worker_join() waits for the helpers in the same way.
 *
 * Threads: one thread at a time calls these functions for a worker.
 * Ownership: the caller frees the worker. Errors: none; without helpers the caller works alone.
 */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

#include "base/api.h"
#include "base/slice.h"

enum {
    RD_TEAM_WORKERS = 2, /* threads that work with one helper */
    RD_TEAM_MAX = 32     /* and at most */
};

struct rd_worker;

/* Starts this many helpers, at most RD_TEAM_MAX - 1, and fewer if the system has no more threads.
 * NULL: 0 were wanted, there is only one processor, or not a single thread can be started. */
struct rd_worker *rd_worker_new(unsigned helpers);

/* The number of helpers. NULL: 0. */
unsigned rd_worker_helpers(const struct rd_worker *worker);

/* If a helper is still busy, `work` and `arg` must be the same as before; the work then runs once
 * more there, from its beginning. */
void rd_worker_start(struct rd_worker *worker, void (*work)(void *arg, unsigned worker), void *arg);
void rd_worker_join(struct rd_worker *worker);

/* NULL is allowed. */
void rd_worker_free(struct rd_worker *worker);

#endif
