#include "base/worker.h"

#include "base/mem.h"
#include "base/thread.h"

#include <stdatomic.h>

/* To wait so long awake costs about what it costs to fall asleep and be woken. */
enum { LOOKS = 1000 };

struct rd_worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*work)(void *arg, unsigned worker);
    void *arg;
    atomic_bool busy; /* the helper has something to do; changed under the lock */
    bool again;       /* … and more came while it was at it */
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

/* Stays awake for a moment, while the helper is busy, or idle: runs follow each other closely. */
static void linger(struct rd_worker *team, bool while_busy)
{
    for (int i = 0; i < LOOKS; i++, relax())
        if (atomic_load_explicit(&team->busy, memory_order_relaxed) != while_busy)
            return;
}

static void *helper(void *ptr)
{
    struct rd_worker *team = ptr;
    pthread_mutex_lock(&team->lock);
    for (;;) {
        while (!team->busy && !team->quit)
            pthread_cond_wait(&team->changed, &team->lock);
        if (team->quit)
            break;
        do {
            team->again = false;
            pthread_mutex_unlock(&team->lock);
            team->work(team->arg, 1);
            pthread_mutex_lock(&team->lock);
        } while (team->again);
        team->busy = false;
        pthread_cond_broadcast(&team->changed);
        pthread_mutex_unlock(&team->lock);
        linger(team, false);
        pthread_mutex_lock(&team->lock);
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

struct rd_worker *rd_worker_new(void)
{
    if (!rd_thread_can_help())
        return NULL;
    struct rd_worker *team = rd_calloc(1, sizeof *team);
    if (team == NULL)
        return NULL;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->changed, NULL);
    if (!rd_thread_start(&team->thread, helper, team)) {
        rd_free(team);
        return NULL;
    }
    return team;
}

void rd_worker_start(struct rd_worker *team, void (*work)(void *arg, unsigned worker), void *arg)
{
    pthread_mutex_lock(&team->lock);
    if (team->busy) {
        team->again = true;
    } else {
        team->arg = arg;
        team->work = work;
        team->busy = true;
    }
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
}

void rd_worker_join(struct rd_worker *team)
{
    team->work(team->arg, 0);
    linger(team, true);
    pthread_mutex_lock(&team->lock);
    while (team->busy)
        pthread_cond_wait(&team->changed, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

void rd_worker_free(struct rd_worker *team)
{
    if (team == NULL)
        return;
    pthread_mutex_lock(&team->lock);
    team->quit = true;
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
    pthread_join(team->thread, NULL);
    pthread_cond_destroy(&team->changed);
    pthread_mutex_destroy(&team->lock);
    rd_free(team);
}
