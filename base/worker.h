/* worker.h - a second thread that shares work with the calling thread.
 *
 *     static void work(void *arg, unsigned worker) { while (get the next piece) process it; }
 *     rd_worker_start(worker, work, arg);   // runs work(arg, 1) on the helper thread
 *     ... something else ...
 *     rd_worker_join(worker);               // runs work(arg, 0) here, then waits
 *
 * Between runs the helper spins for a few microseconds, about as long as a wakeup takes, and then
 * sleeps. rd_worker_join() waits for the helper in the same way.
 */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

#include "base/api.h"
#include "base/slice.h"

enum { RD_TEAM_WORKERS = 2 };

struct rd_worker;

/* NULL if the machine has only one processor or no thread can be started. */
struct rd_worker *rd_worker_new(void);

/* If the helper is still busy, `work` and `arg` must be the same as before; the work then runs once
 * more from its beginning. */
void rd_worker_start(struct rd_worker *worker, void (*work)(void *arg, unsigned worker), void *arg);
void rd_worker_join(struct rd_worker *worker);

/* NULL is allowed. */
void rd_worker_free(struct rd_worker *worker);

#endif
