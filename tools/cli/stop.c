#include "tools/cli/stop.h"

#include <stddef.h>

#include "tools/cli/cli.h"

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    stopped = number;
}

const volatile sig_atomic_t *cli_stop_begin(sigset_t *ret_waiting)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal}, old;
    sigset_t blocked;
    sigemptyset(&action.sa_mask);
    sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (sigaction(numbers[i], NULL, &old) != 0 || old.sa_handler == SIG_IGN)
            continue;
        sigaction(numbers[i], &action, NULL);
        sigaddset(&blocked, numbers[i]);
    }
    sigprocmask(SIG_BLOCK, &blocked, ret_waiting);
    return &stopped;
}

int cli_stopped(void)
{
    return stopped;
}

void cli_stop_end(const sigset_t *waiting)
{
    cli_catch_signals();
    sigprocmask(SIG_SETMASK, waiting, NULL);
    if (stopped != 0)
        raise(stopped);
}
