/* DEBUG subcommands that end the process. */
#include "server/surface/cmd/debug.h"
#include "server/loop/daemon.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FDS_MAX = 4096 };

/* Writes to a read-only page. */
static void sub_segfault(struct dispatch_call *call)
{
    volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)call;
    if (page != MAP_FAILED)
        *page = 'x';
    log_panic("DEBUG SEGFAULT did not fault");
}

static void sub_panic(struct dispatch_call *call)
{
    (void)call;
    log_panic("called by DEBUG PANIC");
}

static void sub_assert(struct dispatch_call *call)
{
    (void)call;
    log_warning("=== ASSERTION FAILED ===");
    log_panic("DEBUG ASSERT: 1 == 2 is not true");
}

static void sub_oom(struct dispatch_call *call)
{
    (void)call;
    log_panic("Out Of Memory allocating: called by DEBUG OOM");
}

static void wait_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&left, NULL);
}

/* Returns only after a failure. */
static void start_again(struct dispatch_call *call, int64_t delay_ms)
{
    char *const *argv = daemon_argv();
    const char *program = call->sessions->loop->executable;
    if (program == NULL)
        program = "/proc/self/exe";
    if (argv != NULL && access(program, X_OK) == 0) {
        wait_ms(delay_ms);
        for (int fd = 3; fd < FDS_MAX; fd++)
            fcntl(fd, F_SETFD, FD_CLOEXEC);
        execv(program, argv);
        log_warning("restart: cannot run the program");
    }
}

static void restart(struct dispatch_call *call, bool in_order)
{
    int64_t delay_ms = 0;
    if (call->argc > 2 &&
        !dispatch_arg_i64(call, call->argv[2], INT64_MIN, INT64_MAX, &delay_ms, NULL))
        return;
    if (!in_order || persist_shutdown(call->sessions->durable, false, false, false))
        start_again(call, delay_ms > 0 ? delay_ms : 0);
    engine_reply_error(call->reply, "ERR failed to restart the server. Check server logs.");
}

static void sub_restart(struct dispatch_call *call)
{
    restart(call, true);
}

static void sub_recover(struct dispatch_call *call)
{
    restart(call, false);
}

const struct cmd_debug_sub cmd_debug_crash_subs[] = {
    {"segfault", 2, 0, sub_segfault},
    {"panic", 2, 0, sub_panic},
    {"assert", 2, 0, sub_assert},
    {"oom", 2, 0, sub_oom},
    {"restart", 2, 3, sub_restart},
    {"crash-and-recover", 2, 3, sub_recover},
    {NULL, 0, 0, NULL},
};
