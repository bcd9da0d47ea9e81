/* job.h - one blocking operation at a time on another thread: an fsync, a query to a sentinel.
 *
 *     struct capture_job job;
 *     capture_job_init(&job);
 *     capture_job_start(&job, run, arg);
 *     if (capture_job_ended(&job))         // in each turn of the loop; true once
 *         ...
 *     capture_job_free(&job);
 *
 * Threads: one thread at a time uses a job; `run` is called on another one.
 */
#ifndef CAPTURE_JOB_H
#define CAPTURE_JOB_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/worker.h"

struct capture_job {
    struct rd_worker *worker; /* NULL with a single processor: jobs run synchronously */
    void (*run)(void *arg);
    void *arg;
    bool busy;
    atomic_bool done;
};

void capture_job_init(struct capture_job *job);
void capture_job_start(struct capture_job *job, void (*run)(void *arg), void *arg);
/* Whether the started job has ended; true once per job. */
bool capture_job_ended(struct capture_job *job);
/* Waits for the running job. */
void capture_job_free(struct capture_job *job);

#endif
