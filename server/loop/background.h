/* background.h - jobs for background threads: fsync, closing deleted files, freeing memory, and
 * checking snapshots.
 *
 *     background_run(loop, BACKGROUND_FSYNC, work, done, job);
 *
 * `work` runs in another thread and must not use the server; `done` runs in the loop.
 */
#ifndef SERVER_LOOP_BACKGROUND_H
#define SERVER_LOOP_BACKGROUND_H

#include "server/loop/loop.h"

typedef void (*background_fn)(void *arg);

/* The jobs of one lane run one after the other, in order; lanes run in parallel. */
enum background_lane {
    BACKGROUND_CLOSE,
    BACKGROUND_FSYNC,
    BACKGROUND_FREE,
    BACKGROUND_CHECK,
    BACKGROUND_LANES
};

/* done may be NULL. */
void background_run(struct loop *loop, enum background_lane lane, background_fn work,
                    background_fn done, void *arg);

/* Ends the threads immediately. For a process that has crashed. */
void background_kill(struct background *background);

/* Ends the threads after the jobs that they have. */
void background_free(struct loop *loop);

/* Waits until a lane is empty and all its `done` functions have run. */
void background_drain(struct loop *loop, enum background_lane lane);

#endif
