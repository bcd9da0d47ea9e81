/* Coverage of processes that do not end with exit(): children that call _exit(), and servers that a
 * test ends. In builds with -Db_coverage only.
 */
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

void __gcov_dump(void);

static volatile sig_atomic_t ending;

/* In place of that of the C library. */
void _exit(int status)
{
    if (!ending) {
        ending = 1;
        __gcov_dump();
    }
    for (;;)
        syscall(SYS_exit_group, status);
}

/* What tests send instead of SIGKILL. */
static void on_end(int signal)
{
    _exit(128 + signal);
}

__attribute__((constructor)) static void prepare(void)
{
    struct sigaction action = {.sa_handler = on_end};
    sigfillset(&action.sa_mask);
    sigaction(SIGRTMAX, &action, NULL);
}
