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

/* The thread of a lane starts with its first job and ends with the loop. */
struct lane {
    struct background *owner;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    pthread_cond_t idle;
    struct queue todo, finished;
    size_t pending;
    bool running, ends;
    pthread_t thread;
};

struct background {
    struct lane lanes[BACKGROUND_LANES];
    uv_async_t finished;
    const char *cpus; /* bio_cpulist, which cannot change */
};

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

static void *run_lane(void *arg)
{
    struct lane *lane = arg;
    daemon_cpus(lane->owner->cpus);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL); /* background_kill() */
    pthread_mutex_lock(&lane->mutex);
    for (;;) {
        struct job *job = pop(&lane->todo);
        if (job == NULL && lane->ends)
            break;
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
        uv_async_send(&lane->owner->finished);
    }
    pthread_mutex_unlock(&lane->mutex);
    return NULL;
}

void background_kill(struct background *background)
{
    for (size_t i = 0; background != NULL && i < BACKGROUND_LANES; i++) {
        struct lane *lane = &background->lanes[i];
        if (!lane->running || pthread_equal(lane->thread, pthread_self()) ||
            pthread_cancel(lane->thread) != 0)
            continue;
        pthread_join(lane->thread, NULL);
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
    struct background *background = handle->data;
    for (size_t i = 0; i < BACKGROUND_LANES; i++)
        call_done(&background->lanes[i]);
}

static struct lane *lane_of(struct loop *loop, enum background_lane which)
{
    struct background *background = loop->background;
    if (background != NULL)
        return &background->lanes[which];
    background = rd_calloc(1, sizeof *background);
    if (background == NULL)
        log_panic("out of memory");
    for (size_t i = 0; i < BACKGROUND_LANES; i++) {
        struct lane *lane = &background->lanes[i];
        lane->owner = background;
        pthread_mutex_init(&lane->mutex, NULL);
        pthread_cond_init(&lane->wake, NULL);
        pthread_cond_init(&lane->idle, NULL);
    }
    uv_async_init(loop->uv, &background->finished, on_finished);
    uv_unref((uv_handle_t *)&background->finished);
    background->finished.data = background;
    background->cpus = loop->settings.bio_cpulist;
    loop->background = background;
    return &background->lanes[which];
}

static void end_lane(struct lane *lane)
{
    if (lane->running) {
        pthread_mutex_lock(&lane->mutex);
        lane->ends = true;
        pthread_cond_signal(&lane->wake);
        pthread_mutex_unlock(&lane->mutex);
        pthread_join(lane->thread, NULL);
    }
    call_done(lane);
    pthread_cond_destroy(&lane->idle);
    pthread_cond_destroy(&lane->wake);
    pthread_mutex_destroy(&lane->mutex);
}

static void on_closed(uv_handle_t *handle)
{
    rd_free(handle->data);
}

void background_free(struct loop *loop)
{
    struct background *background = loop->background;
    if (background == NULL)
        return;
    loop->background = NULL;
    for (size_t i = 0; i < BACKGROUND_LANES; i++)
        end_lane(&background->lanes[i]);
    uv_close((uv_handle_t *)&background->finished, on_closed);
}

/* Without memory or a thread, the job runs here at once, which is slower. */
static void run_here(background_fn work, background_fn done, void *arg)
{
    work(arg);
    if (done != NULL)
        done(arg);
}

void background_run(struct loop *loop, enum background_lane which, background_fn work,
                    background_fn done, void *arg)
{
    struct lane *lane = lane_of(loop, which);
    struct job *job = rd_alloc(sizeof *job);
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

void background_drain(struct loop *loop, enum background_lane which)
{
    if (loop->background == NULL)
        return;
    struct lane *lane = &loop->background->lanes[which];
    pthread_mutex_lock(&lane->mutex);
    while (lane->pending > 0)
        pthread_cond_wait(&lane->idle, &lane->mutex);
    pthread_mutex_unlock(&lane->mutex);
    call_done(lane);
}
