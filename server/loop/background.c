#include "server/loop/background.h"

#include <pthread.h>

#include "base/mem.h"
#include "base/thread.h"
#include "server/loop/daemon.h"
#include "server/loop/log.h"

struct job {
    struct job *next;
    background_fn work, done;
    void *arg;
};

struct queue {
    struct job *first, *last;
};

/* The thread of a lane starts with its first job and ends with the process. */
static struct lane {
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    pthread_cond_t idle;
    struct queue todo, finished;
    size_t pending;
    bool running;
    pthread_t thread;
} lanes[BACKGROUND_LANES] = {
    {.mutex = PTHREAD_MUTEX_INITIALIZER,
     .wake = PTHREAD_COND_INITIALIZER,
     .idle = PTHREAD_COND_INITIALIZER},
    {.mutex = PTHREAD_MUTEX_INITIALIZER,
     .wake = PTHREAD_COND_INITIALIZER,
     .idle = PTHREAD_COND_INITIALIZER},
    {.mutex = PTHREAD_MUTEX_INITIALIZER,
     .wake = PTHREAD_COND_INITIALIZER,
     .idle = PTHREAD_COND_INITIALIZER},
    {.mutex = PTHREAD_MUTEX_INITIALIZER,
     .wake = PTHREAD_COND_INITIALIZER,
     .idle = PTHREAD_COND_INITIALIZER},
};

static uv_async_t finished;
static bool has_async;

static void push(struct queue *queue, struct job *job)
{
    job->next = NULL;
    if (queue->last != NULL)
        queue->last->next = job;
    else
        queue->first = job;
    queue->last = job;
}

static struct job *pop(struct queue *queue)
{
    struct job *job = queue->first;
    if (job == NULL)
        return NULL;
    queue->first = job->next;
    if (queue->first == NULL)
        queue->last = NULL;
    return job;
}

/* ---- the threads ---- */

static const char *cpus = ""; /* bio_cpulist, which cannot change */

static void *run_lane(void *arg)
{
    struct lane *lane = arg;
    daemon_cpus(cpus);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL); /* background_kill() */
    pthread_mutex_lock(&lane->mutex);
    for (;;) {
        struct job *job = pop(&lane->todo);
        if (job == NULL) {
            pthread_cond_wait(&lane->wake, &lane->mutex);
            continue;
        }
        pthread_mutex_unlock(&lane->mutex);
        job->work(job->arg);
        pthread_mutex_lock(&lane->mutex);
        push(&lane->finished, job);
        if (--lane->pending == 0)
            pthread_cond_broadcast(&lane->idle);
        uv_async_send(&finished);
    }
    return NULL;
}

void background_kill(void)
{
    for (size_t i = 0; i < BACKGROUND_LANES; i++) {
        if (!lanes[i].running || pthread_equal(lanes[i].thread, pthread_self()) ||
            pthread_cancel(lanes[i].thread) != 0)
            continue;
        pthread_join(lanes[i].thread, NULL);
        log_warning("Bio thread for job type #%zu terminated", i);
    }
}

/* ---- the loop ---- */

static void call_done(struct lane *lane)
{
    for (;;) {
        pthread_mutex_lock(&lane->mutex);
        struct job *job = pop(&lane->finished);
        pthread_mutex_unlock(&lane->mutex);
        if (job == NULL)
            return;
        if (job->done != NULL)
            job->done(job->arg);
        rd_free(job);
    }
}

static void on_finished(uv_async_t *handle)
{
    (void)handle;
    for (size_t i = 0; i < BACKGROUND_LANES; i++)
        call_done(&lanes[i]);
}

static void need_async(struct server *srv)
{
    if (has_async)
        return;
    uv_async_init(srv->loop, &finished, on_finished);
    uv_unref((uv_handle_t *)&finished);
    has_async = true;
    cpus = srv->settings.bio_cpulist;
}

/* Without memory or a thread, the job runs here at once, which is slower. */
static void run_here(background_fn work, background_fn done, void *arg)
{
    work(arg);
    if (done != NULL)
        done(arg);
}

void background_run(struct server *srv, enum background_lane which, background_fn work,
                    background_fn done, void *arg)
{
    struct lane *lane = &lanes[which];
    struct job *job = rd_alloc(sizeof *job);
    need_async(srv);
    if (job == NULL || (!lane->running && !rd_thread_start(&lane->thread, run_lane, lane))) {
        rd_free(job);
        run_here(work, done, arg);
        return;
    }
    lane->running = true;
    *job = (struct job){.work = work, .done = done, .arg = arg};
    pthread_mutex_lock(&lane->mutex);
    push(&lane->todo, job);
    lane->pending++;
    pthread_cond_signal(&lane->wake);
    pthread_mutex_unlock(&lane->mutex);
}

size_t background_pending(enum background_lane which)
{
    struct lane *lane = &lanes[which];
    pthread_mutex_lock(&lane->mutex);
    size_t n = lane->pending;
    pthread_mutex_unlock(&lane->mutex);
    return n;
}

void background_drain(struct server *srv, enum background_lane which)
{
    struct lane *lane = &lanes[which];
    (void)srv;
    pthread_mutex_lock(&lane->mutex);
    while (lane->pending > 0)
        pthread_cond_wait(&lane->idle, &lane->mutex);
    pthread_mutex_unlock(&lane->mutex);
    call_done(lane);
}
