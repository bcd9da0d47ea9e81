/* background.h - work for other threads: fsync, closing files that were deleted, freeing.
 *
 *     background_run(srv, fsync_it, when_done, job);
 *
 * `work` runs on another thread and touches nothing of the server; `done` runs in the loop.
 */
#ifndef SERVER_CORE_BACKGROUND_H
#define SERVER_CORE_BACKGROUND_H

#include "server/core/server.h"

typedef void (*background_fn)(void *arg);

/* Jobs of one lane run one after the other, in order; lanes beside each other. */
enum background_lane { BACKGROUND_CLOSE, BACKGROUND_FSYNC, BACKGROUND_FREE, BACKGROUND_LANES };

/* done may be NULL. */
void background_run(struct server *srv, enum background_lane lane, background_fn work,
                    background_fn done, void *arg);

/* Jobs that have not run yet. */
size_t background_pending(enum background_lane lane);

/* Ends the threads wherever they are. For a process that has crashed. */
void background_kill(void);

/* Waits until a lane is empty (its `done` were called). */
void background_drain(struct server *srv, enum background_lane lane);

#endif
