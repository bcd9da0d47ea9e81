#include "capture/job.h"

static void run_job(void *arg, unsigned worker)
{
    struct capture_job *job = arg;
    if (worker == 0)
        return;
    job->run(job->arg);
    atomic_store(&job->done, true);
}

void capture_job_init(struct capture_job *job)
{
    *job = (struct capture_job){.worker = rd_worker_new(1)};
}

void capture_job_start(struct capture_job *job, void (*run)(void *arg), void *arg)
{
    job->run = run;
    job->arg = arg;
    job->busy = true;
    atomic_store(&job->done, false);
    if (job->worker != NULL)
        rd_worker_start(job->worker, run_job, job);
    else
        run_job(job, 1);
}

bool capture_job_ended(struct capture_job *job)
{
    if (!job->busy || !atomic_load(&job->done))
        return false;
    if (job->worker != NULL)
        rd_worker_join(job->worker);
    job->busy = false;
    return true;
}

void capture_job_free(struct capture_job *job)
{
    if (job->busy && job->worker != NULL)
        rd_worker_join(job->worker);
    rd_worker_free(job->worker);
    *job = (struct capture_job){.worker = NULL};
}
