#include "base/team.h"

#include "base/mem.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

struct rd_team {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*work)(void *arg, unsigned worker); /* the helper's; NULL: nothing to do */
    void (*mine)(void *arg, unsigned worker); /* the same, for the other thread */
    void *arg;
    bool quit;
};

static void *helper(void *ptr)
{
    struct rd_team *team = ptr;
    pthread_mutex_lock(&team->lock);
    while (!team->quit) {
        if (team->work == NULL) {
            pthread_cond_wait(&team->changed, &team->lock);
            continue;
        }
        pthread_mutex_unlock(&team->lock);
        team->work(team->arg, 1);
        pthread_mutex_lock(&team->lock);
        team->work = NULL;
        pthread_cond_broadcast(&team->changed);
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

/* Signals are for the program's own thread. */
static bool start(struct rd_team *team)
{
    sigset_t all;
    sigset_t old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = pthread_create(&team->thread, NULL, helper, team);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return failed == 0;
}

struct rd_team *rd_team_new(void)
{
    if (sysconf(_SC_NPROCESSORS_ONLN) < RD_TEAM_WORKERS)
        return NULL;
    struct rd_team *team = rd_calloc(1, sizeof *team);
    if (team == NULL)
        return NULL;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->changed, NULL);
    if (!start(team)) {
        rd_free(team);
        return NULL;
    }
    return team;
}

void rd_team_start(struct rd_team *team, void (*work)(void *arg, unsigned worker), void *arg)
{
    pthread_mutex_lock(&team->lock);
    team->arg = arg;
    team->work = team->mine = work;
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
}

void rd_team_join(struct rd_team *team)
{
    team->mine(team->arg, 0);
    pthread_mutex_lock(&team->lock);
    while (team->work != NULL)
        pthread_cond_wait(&team->changed, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

void rd_team_free(struct rd_team *team)
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
