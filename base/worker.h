/* worker.h - a second thread that helps with work which is split by a counter.
 *
 *     static void work(void *arg, unsigned worker) { while (take the next piece) do it; }
 *     rd_worker_start(worker, work, arg);   // work(arg, 1) is under way over there
 *     ... something else ...
 *     rd_worker_join(worker);               // work(arg, 0) here, until all is done
 *
 * Between runs the helper stays awake for some microseconds, about as long as waking it would take;
 * then it sleeps. So does rd_worker_join() while it waits for the helper.
 */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

#include "base/api.h"
#include "base/slice.h"

enum { RD_TEAM_WORKERS = 2 };

struct rd_worker;

/* NULL when there is one processor only, or no thread to be had. */
RD_API struct rd_worker *rd_worker_new(void);

/* While the helper is still busy it must be the same work: that is then done once more, from its
 * beginning. */
RD_API void rd_worker_start(struct rd_worker *worker, void (*work)(void *arg, unsigned worker),
                            void *arg);
RD_API void rd_worker_join(struct rd_worker *worker);

/* NULL is allowed. */
RD_API void rd_worker_free(struct rd_worker *worker);

#endif
