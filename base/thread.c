#include "base/thread.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

bool rd_thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
    sigset_t all;
    sigset_t old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = pthread_create(ret, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return failed == 0;
}

unsigned rd_thread_processors(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned n = online > 0 ? (unsigned)online : 1;
#ifdef __linux__
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
        unsigned count = (unsigned)CPU_COUNT(&allowed);
        n = count < n ? count : n;
    }
#endif
    return n;
}

bool rd_thread_can_help(void)
{
    return rd_thread_processors() > 1;
}
