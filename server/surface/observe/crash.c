#include "server/surface/observe/crash.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os.h"
#include "engine/mem.h"
#include "server/session/client/client.h"
#include "server/surface/observe/crash_details.h"
#include "server/surface/observe/info.h"
#include "server/loop/daemon.h"
#include "server/loop/log.h"
#include "server/session/redact.h"
#include "server/durable/persist/persist.h"

enum { CRASH_STACK = 1024 * 1024, CRASH_MEMORY = 4 * 1024 * 1024 };
enum { CRASH_FRAMES = 100, CRASH_CLIENTS = 64, CRASH_ARGS = 32, CRASH_ARG = 128 };

static struct server *crashed;
static uint8_t memory[CRASH_MEMORY]; /* of the report: the crash may be in malloc() */
static volatile sig_atomic_t reporting;

static void *instruction(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (void *)context->uc_mcontext.gregs[REG_RIP]; /* NOLINT */
#elif defined(__aarch64__)
    return (void *)context->uc_mcontext.pc; /* NOLINT */
#else
    (void)context;
    return NULL;
#endif
}

static void log_stack(void)
{
    void *frames[CRASH_FRAMES];
    int fd = log_open();
    log_raw("\n------ STACK TRACE ------\nBacktrace:\n");
    int n = rd_stack(frames, CRASH_FRAMES);
    if (fd >= 0) {
        rd_stack_write(frames, n, fd);
        log_close(fd);
    }
}

#if defined(__x86_64__)
static void log_registers(const ucontext_t *context)
{
    static const struct {
        const char *name;
        int index;
    } registers[] = {{"RAX", REG_RAX}, {"RBX", REG_RBX}, {"RCX", REG_RCX}, {"RDX", REG_RDX},
                     {"RDI", REG_RDI}, {"RSI", REG_RSI}, {"RBP", REG_RBP}, {"RSP", REG_RSP},
                     {"R8", REG_R8},   {"R9", REG_R9},   {"R10", REG_R10}, {"R11", REG_R11},
                     {"R12", REG_R12}, {"R13", REG_R13}, {"R14", REG_R14}, {"R15", REG_R15},
                     {"RIP", REG_RIP}, {"EFL", REG_EFL}};
    log_raw("\n------ REGISTERS ------\n");
    for (size_t i = 0; i < sizeof registers / sizeof *registers; i++)
        log_warning("%s:%016llx", registers[i].name,
                    (unsigned long long)context->uc_mcontext.gregs[registers[i].index]);
}
#else
static void log_registers(const ucontext_t *context)
{
    (void)context;
}
#endif

/* The report of an out-of-memory error. */
static void log_text(struct rd_buf *text)
{
    if (rd_buf_add_byte(text, '\0'))
        log_raw((const char *)text->ptr);
}

/* The current client and its command. */
static void log_current_client(void)
{
    const struct client *c = crashed->sessions.current;
    struct rd_buf text = {0};
    if (c == NULL)
        return;
    log_raw("\n------ CURRENT CLIENT INFO ------\n");
    client_describe(c, &text);
    rd_buf_add_byte(&text, '\n');
    for (size_t i = 0; i < c->in.argc && i < CRASH_ARGS; i++) {
        const struct rd_slice *arg = &c->in.argv[i];
        bool secret =
            c->last_command != NULL && redact_is_secret(c->last_command, c->in.argc, c->in.argv, i);
        char quoted[CRASH_ARG];
        rd_buf_printf(&text, "argv[%zu]: %s\n", i,
                      secret ? REDACTED : rd_err_quote(quoted, sizeof quoted, *arg));
    }
    log_text(&text);
}

/* Much of this is not safe in signal handlers. It comes last, so that a second crash loses only
 * this part. */
static void log_server(void)
{
    struct rd_buf text = {0};
    if (crashed->sessions.engine == NULL || crashed->sessions.clients == NULL)
        return;
    log_raw("\n------ INFO OUTPUT ------\n");
    info_text(crashed, 0, NULL, &text);
    log_text(&text);
    log_raw("\n------ CLIENT LIST OUTPUT ------\n");
    rd_buf_reset(&text);
    size_t n = 0;
    for (const struct client *c = crashed->sessions.clients->first; c != NULL && n < CRASH_CLIENTS;
         n++) {
        client_describe(c, &text);
        rd_buf_add_byte(&text, '\n');
        c = c->next;
    }
    log_text(&text);
}

static void end_by(int signum)
{
    daemon_remove_pidfile();
    signal(signum, SIG_DFL);
    raise(signum);
}

static void on_crash(int signum, siginfo_t *info, void *opaque)
{
    const ucontext_t *context = opaque;
    if (reporting || !crashed->loop.settings.crash_log_enabled) {
        end_by(signum);
        return;
    }
    reporting = 1;
    rd_mem_from_block(memory, sizeof memory);
    log_raw("\n\n=== REDIS BUG REPORT START: Cut & paste starting from here ===\n");
    log_warning("Redis %s crashed by signal: %d, si_code: %d", SERVER_REDIS_VERSION, signum,
                info->si_code);
    if (signum == SIGSEGV || signum == SIGBUS)
        log_warning("Accessing address: %p", info->si_addr);
    if (info->si_code <= SI_USER && info->si_pid != 0)
        log_warning("Killed by PID: %ld, UID: %d", (long)info->si_pid, (int)info->si_uid);
    log_warning("Crashed running the instruction at: %p", instruction(context));
    log_stack();
    log_registers(context);
    log_server();
    log_current_client();
    log_raw("\n------ MODULES INFO OUTPUT ------\n"); /* modules are not supported */
    crash_config(crashed);
    if (crashed->loop.settings.crash_memcheck_enabled)
        crash_memory_test(crashed);
    crash_code(instruction(context));
    log_raw("\n=== REDIS BUG REPORT END. Make sure to include from START to END. ===\n\n"
            "       This is redoubt-server: send the report to its maintainers.\n\n"
            "  Suspect RAM error? Use redoubt-server --test-memory to verify it.\n\n"
            "  Some other issues could be detected by redoubt-server --check-system\n");
    end_by(signum);
}

/* ---- the watchdog ---- */

static void set_alarm(int64_t ms)
{
    struct itimerval timer = {.it_value = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void on_alarm(int signum, siginfo_t *info, void *opaque)
{
    int before = errno;
    (void)signum;
    (void)opaque;
    log_from_handler(info->si_code <= SI_USER && info->si_pid != 0
                         ? "Received SIGALRM"
                         : "\n--- WATCHDOG TIMER EXPIRED ---");
    log_stack();
    log_from_handler("--------\n");
    errno = before;
}

/* Loading a data set progresses by loading-process-events-interval-bytes. A replica that waits for
 * the rest of a snapshot serves clients meanwhile, but does not progress. */
static bool is_stalled(const struct server *srv)
{
    static uint64_t seen; /* bytes */
    uint64_t read =
        srv->sessions.state == SESSIONS_LOADING ? srv->durable.persist->info.loading_read : 0;
    uint64_t step = (uint64_t)srv->loop.settings.loading_process_events_interval_bytes;
    if (srv->sessions.state == SESSIONS_LOADING && read >= seen && read - seen < step)
        return true;
    seen = read;
    return false;
}

void crash_watchdog(const struct server *srv)
{
    static bool is_set;
    int64_t ms = srv->loop.settings.watchdog_period;
    if (is_stalled(srv) && is_set && ms > 0)
        return;
    if (ms > 0 || is_set)
        set_alarm(ms);
    is_set = ms > 0;
}

/* ---- SIGINT during a report ---- */

static struct sigaction patient; /* the previous handler of SIGINT */
static char unfinished[64];

static void on_insist(int signum)
{
    (void)signum;
    log_from_handler("You insist... exiting now.");
    unlink(unfinished);
    daemon_remove_pidfile();
    _exit(1);
}

void crash_begin_patience(void)
{
    struct sigaction action = {.sa_handler = on_insist};
    snprintf(unfinished, sizeof unfinished, "temp-%ld.rdb", (long)getpid());
    sigaction(SIGINT, &action, &patient);
}

void crash_end_patience(void)
{
    sigaction(SIGINT, &patient, NULL);
}

static void on_exhausted(size_t size)
{
    char why[80];
    log_warning("Out Of Memory allocating %zu bytes!", size);
    snprintf(why, sizeof why, "aborting for OUT OF MEMORY. Allocating %zu bytes!", size);
    log_panic(why);
}

/* A stack that is full has no room for the handler. Pages that are not used need no memory. Without
 * it, only the report of an overflow is missing. */
static void have_own_stack(void)
{
    stack_t stack = {.ss_size = CRASH_STACK};
    stack.ss_sp = mmap(NULL, CRASH_STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack.ss_sp != MAP_FAILED)
        sigaltstack(&stack, NULL);
}

void crash_watch(struct server *srv)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct sigaction action = {.sa_sigaction = on_crash,
                               .sa_flags =
                                   (int)(SA_NODEFER | SA_RESETHAND | SA_SIGINFO | SA_ONSTACK)};
    void *frame;
    crashed = srv;
    /* The first call loads a library, which a handler must not do. */
    rd_stack(&frame, 1);
    have_own_stack();
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
    engine_mem_on_exhausted(on_exhausted);
    action = (struct sigaction){.sa_sigaction = on_alarm, .sa_flags = SA_RESTART | SA_SIGINFO};
    sigaction(SIGALRM, &action, NULL);
}
