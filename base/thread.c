#include "base/thread.h"

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

bool rd_thread_can_help(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN) > 1;
}
