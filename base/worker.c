#include "base/worker.h"

#include "base/mem.h"
#include "base/thread.h"

#include <stdatomic.h>

/* Spinning for this time costs about as much as sleeping and being woken. */
enum { LOOKS = 1000 };

struct rd_worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*work)(void *arg, unsigned worker);
    void *arg;
    atomic_bool busy; /* the helper has work; changed under the lock */
    bool again;       /* more work came while it was busy */
    bool quit;
};

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Spins for a moment before sleeping, because runs follow each other closely. */
static void linger(struct rd_worker *worker, bool while_busy)
{
    for (int i = 0; i < LOOKS; i++, relax())
        if (atomic_load_explicit(&worker->busy, memory_order_relaxed) != while_busy)
            return;
}

static void *helper(void *ptr)
{
    struct rd_worker *worker = ptr;
    pthread_mutex_lock(&worker->lock);
    for (;;) {
        while (!worker->busy && !worker->quit)
            pthread_cond_wait(&worker->changed, &worker->lock);
        if (worker->quit)
            break;
        do {
            worker->again = false;
            pthread_mutex_unlock(&worker->lock);
            worker->work(worker->arg, 1);
            pthread_mutex_lock(&worker->lock);
        } while (worker->again);
        worker->busy = false;
        pthread_cond_broadcast(&worker->changed);
        pthread_mutex_unlock(&worker->lock);
        linger(worker, false);
        pthread_mutex_lock(&worker->lock);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

struct rd_worker *rd_worker_new(void)
{
    if (!rd_thread_can_help())
        return NULL;
    struct rd_worker *worker = rd_calloc(1, sizeof *worker);
    if (worker == NULL)
        return NULL;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->changed, NULL);
    if (!rd_thread_start(&worker->thread, helper, worker)) {
        rd_free(worker);
        return NULL;
    }
    return worker;
}

void rd_worker_start(struct rd_worker *worker, void (*work)(void *arg, unsigned worker), void *arg)
{
    pthread_mutex_lock(&worker->lock);
    if (worker->busy) {
        worker->again = true;
    } else {
        worker->arg = arg;
        worker->work = work;
        worker->busy = true;
    }
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

void rd_worker_join(struct rd_worker *worker)
{
    worker->work(worker->arg, 0);
    linger(worker, true);
    pthread_mutex_lock(&worker->lock);
    while (worker->busy)
        pthread_cond_wait(&worker->changed, &worker->lock);
    pthread_mutex_unlock(&worker->lock);
}

void rd_worker_free(struct rd_worker *worker)
{
    if (worker == NULL)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->quit = true;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->lock);
    rd_free(worker);
}
