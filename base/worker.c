#include "base/worker.h"

#include "base/mem.h"
#include "base/thread.h"

#include <stdatomic.h>

/* Spinning for this time costs about as much as sleeping and being woken. */
enum { LOOKS = 1000 };

struct helper {
    struct rd_worker *worker;
    pthread_t thread;
    pthread_cond_t wake;
    unsigned number; /* from 1 */
    unsigned seen;   /* the last round that it took part in; under the lock, as the next one */
    bool sleeps;
};

struct rd_worker {
    pthread_mutex_t lock;
    pthread_cond_t done; /* busy is 0 */
    void (*work)(void *arg, unsigned worker);
    void *arg;
    atomic_uint round; /* how often work was started; changed under the lock */
    atomic_uint busy;  /* helpers that have not done the last round; changed under the lock */
    bool quit;
    unsigned n;
    struct helper helpers[];
};

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Spins for a moment before sleeping, because rounds follow each other closely. */
static void linger(const atomic_uint *value, unsigned old)
{
    for (int i = 0; i < LOOKS; i++, relax())
        if (atomic_load_explicit(value, memory_order_relaxed) != old)
            return;
}

/* Wakes one helper that sleeps and has something to do. It wakes the next one, so that starting a
 * round costs the caller the same with any number of helpers. */
static void wake_one(struct rd_worker *worker)
{
    for (unsigned i = 0; i < worker->n; i++) {
        struct helper *h = &worker->helpers[i];
        if (!h->sleeps || (h->seen == worker->round && !worker->quit))
            continue;
        h->sleeps = false;
        pthread_cond_signal(&h->wake);
        return;
    }
}

static void sleep_until_woken(struct helper *self)
{
    struct rd_worker *worker = self->worker;
    self->sleeps = true;
    while (self->sleeps)
        pthread_cond_wait(&self->wake, &worker->lock);
    wake_one(worker);
}

static void *help(void *ptr)
{
    struct helper *self = ptr;
    struct rd_worker *worker = self->worker;
    pthread_mutex_lock(&worker->lock);
    while (!worker->quit) {
        if (self->seen == worker->round) {
            sleep_until_woken(self);
            continue;
        }
        while (self->seen != worker->round) {
            self->seen = worker->round;
            pthread_mutex_unlock(&worker->lock);
            worker->work(worker->arg, self->number);
            pthread_mutex_lock(&worker->lock);
        }
        if (--worker->busy == 0)
            pthread_cond_signal(&worker->done);
        unsigned round = worker->round;
        pthread_mutex_unlock(&worker->lock);
        linger(&worker->round, round);
        pthread_mutex_lock(&worker->lock);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

struct rd_worker *rd_worker_new(unsigned helpers)
{
    unsigned n = helpers < RD_TEAM_MAX ? helpers : RD_TEAM_MAX - 1;
    if (n == 0 || !rd_thread_can_help())
        return NULL;
    struct rd_worker *worker = rd_calloc(1, sizeof *worker + n * sizeof worker->helpers[0]);
    if (worker == NULL)
        return NULL;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->done, NULL);
    for (struct helper *self = worker->helpers; worker->n < n; worker->n++, self++) {
        *self = (struct helper){.worker = worker, .number = worker->n + 1};
        pthread_cond_init(&self->wake, NULL);
        if (!rd_thread_start(&self->thread, help, self)) {
            pthread_cond_destroy(&self->wake);
            break;
        }
    }
    if (worker->n > 0)
        return worker;
    rd_worker_free(worker);
    return NULL;
}

unsigned rd_worker_helpers(const struct rd_worker *worker)
{
    return worker != NULL ? worker->n : 0;
}

void rd_worker_start(struct rd_worker *worker, void (*work)(void *arg, unsigned worker), void *arg)
{
    pthread_mutex_lock(&worker->lock);
    if (worker->busy == 0) {
        worker->arg = arg;
        worker->work = work;
    }
    worker->round++;
    worker->busy = worker->n;
    wake_one(worker);
    pthread_mutex_unlock(&worker->lock);
}

void rd_worker_join(struct rd_worker *worker)
{
    worker->work(worker->arg, 0);
    unsigned busy = worker->busy;
    if (busy > 0)
        linger(&worker->busy, busy);
    pthread_mutex_lock(&worker->lock);
    while (worker->busy > 0)
        pthread_cond_wait(&worker->done, &worker->lock);
    pthread_mutex_unlock(&worker->lock);
}

void rd_worker_free(struct rd_worker *worker)
{
    if (worker == NULL)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->quit = true;
    wake_one(worker);
    pthread_mutex_unlock(&worker->lock);
    for (unsigned i = 0; i < worker->n; i++) {
        pthread_join(worker->helpers[i].thread, NULL);
        pthread_cond_destroy(&worker->helpers[i].wake);
    }
    pthread_cond_destroy(&worker->done);
    pthread_mutex_destroy(&worker->lock);
    rd_free(worker);
}
