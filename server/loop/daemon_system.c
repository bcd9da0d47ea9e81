/* Messages about the server and its system at the start. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/resource.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "server/loop/daemon.h"
#include "server/loop/log.h"

/* The first line of a kernel file; false: not available. */
static bool kernel_says(const char *path, char *dst, size_t size)
{
    FILE *file = fopen(path, "re");
    bool ok = file != NULL && fgets(dst, (int)size, file) != NULL;
    if (file != NULL)
        fclose(file);
    if (ok)
        dst[strcspn(dst, "\n")] = '\0';
    return ok;
}

static const char *overcommit_trouble(void)
{
    char text[32];
    bool strict =
        kernel_says("/proc/sys/vm/overcommit_memory", text, sizeof text) && atoi(text) != 1;
    return strict
               ? "Memory overcommit must be enabled! Without it, a background save or an "
                 "allocation of the server can fail when memory is low. Add 'vm.overcommit_memory "
                 "= 1' to /etc/sysctl.conf, or run 'sysctl vm.overcommit_memory=1'."
               : NULL;
}

static const char *huge_pages_trouble(void)
{
    char text[64];
    bool always = kernel_says("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text) &&
                  strstr(text, "[always]") != NULL;
    return always
               ? "Transparent Huge Pages (THP) are enabled for every process. During a background "
                 "save this slows down writes and increases memory usage. Run 'echo madvise > "
                 "/sys/kernel/mm/transparent_hugepage/enabled' as root, and restart the server."
               : NULL;
}

static const char *clock_trouble(void)
{
    char text[64];
    bool xen = kernel_says("/sys/devices/system/clocksource/clocksource0/current_clocksource", text,
                           sizeof text) &&
               strcmp(text, "xen") == 0;
    return xen ? "The clock source of this system is 'xen', so each read of the clock is a system "
                 "call. Use 'tsc' if it is available."
               : NULL;
}

static int64_t us_of(const struct timeval *time)
{
    return (int64_t)time->tv_sec * 1000000 + time->tv_usec;
}

/* Reads the clock for a tenth of a second: if that is a system call, the time is spent in the
 * kernel.
 */
static const char *slow_clock_trouble(void)
{
    enum { LOOK_NS = 100 * 1000 * 1000, SLOW_PERCENT = 10 };
    static char text[256];
    char source[64] = "unknown";
    struct timespec now, end;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    clock_gettime(CLOCK_MONOTONIC, &end);
    int64_t end_ns = (int64_t)end.tv_sec * 1000000000 + end.tv_nsec + LOOK_NS;
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((int64_t)now.tv_sec * 1000000000 + now.tv_nsec < end_ns);
    getrusage(RUSAGE_SELF, &after);
    int64_t system_us = us_of(&after.ru_stime) - us_of(&before.ru_stime);
    int64_t user_us = us_of(&after.ru_utime) - us_of(&before.ru_utime);
    if (system_us * 100 <= (system_us + user_us) * SLOW_PERCENT)
        return NULL;
    kernel_says("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
                sizeof source);
    snprintf(text, sizeof text,
             "Reading the clock spends %lld %% of the time in the kernel: the clock source '%s' is "
             "slow. Use 'tsc' if it is available.",
             (long long)(system_us * 100 / (system_us + user_us)), source);
    return text;
}

static void warn_backlog(const struct settings *s)
{
    char text[32];
    if (!kernel_says("/proc/sys/net/core/somaxconn", text, sizeof text))
        return;
    long max = atol(text);
    if (max > 0 && max < s->tcp_backlog)
        log_warning("WARNING: The TCP backlog setting of %d cannot be enforced because "
                    "/proc/sys/net/core/somaxconn is set to the lower value of %ld.",
                    (int)s->tcp_backlog, max);
}

/* The pid file that this process has written, and its text. A child process has another pid. */
static struct {
    char path[PATH_MAX]; /* absolute: the folder of the process can change */
    char text[16];
    pid_t pid;
} pidfile;

void daemon_remove_pidfile(void)
{
    char text[sizeof pidfile.text];
    if (pidfile.pid != getpid())
        return;
    pidfile.pid = 0;
    int fd = open(pidfile.path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;
    if (fd >= 0)
        close(fd);
    if (n > 0 && (size_t)n == strlen(pidfile.text) && memcmp(text, pidfile.text, (size_t)n) == 0)
        unlink(pidfile.path);
}

/* Written only after the ports are open: a second server started by mistake must not overwrite the
 * file. */
static void write_pidfile(const char *path)
{
    FILE *file = fopen(path, "we");
    snprintf(pidfile.text, sizeof pidfile.text, "%d\n", (int)getpid());
    bool ok = file != NULL && fputs(pidfile.text, file) >= 0;
    if (file != NULL)
        ok = fclose(file) == 0 && ok;
    if (!ok)
        log_warning("Failed to write PID file: %s", strerror(errno));
    if (!ok || realpath(path, pidfile.path) == NULL)
        return;
    pidfile.pid = getpid();
    atexit(daemon_remove_pidfile);
}

/* Programs parse the lines next to the drawing. */
static void show_logo(const struct loop *loop)
{
    const struct settings *s = &loop->settings;
    char text[512];
    snprintf(text, sizeof text,
             "\n    ____\n   /\\___\\     Redoubt, as Redis %s 64 bit\n"
             "  /  \\__/__    Running in %s mode\n"
             " /   /  \\  \\   Port: %d\n"
             " \\  / /\\ \\ /   PID: %ld\n"
             "  \\/_/__\\_V\n\n",
             SERVER_REDIS_VERSION, s->cluster_enabled ? "cluster" : "standalone",
             (int)(s->port != 0 ? s->port : s->tls_port), (long)getpid());
    log_raw(text);
}

void daemon_announce(const struct loop *loop)
{
    const struct settings *s = &loop->settings;
    if (s->pidfile[0] != '\0')
        write_pidfile(s->pidfile);
    bool terminal = s->logfile[0] == '\0' && !s->syslog_enabled && isatty(STDOUT_FILENO);
    if (s->always_show_logo || terminal)
        show_logo(loop);
    else
        log_notice("Running mode=%s, port=%d.",
                   s->sentinel          ? "sentinel"
                   : s->cluster_enabled ? "cluster"
                                        : "standalone",
                   (int)(s->port != 0 ? s->port : s->tls_port));
    warn_backlog(s);
    if (s->sentinel) /* the rest is about data */
        return;
    log_warning("Server initialized");
    const char *troubles[] = {overcommit_trouble(), s->disable_thp ? NULL : huge_pages_trouble(),
                              clock_trouble()};
    for (size_t i = 0; i < sizeof troubles / sizeof *troubles; i++) {
        if (troubles[i] != NULL)
            log_warning("WARNING %s", troubles[i]);
    }
}

int daemon_check_system(void)
{
    static const struct {
        const char *name;
        const char *(*trouble)(void);
    } checks[] = {
        {"slow-clocksource", slow_clock_trouble},
        {"xen-clocksource", clock_trouble},
        {"overcommit", overcommit_trouble},
        {"THP", huge_pages_trouble},
    };
    int status = 0;
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        const char *why = checks[i].trouble();
        printf("[%s]...%s\n", checks[i].name, why != NULL ? "WARNING:" : "OK");
        if (why != NULL) {
            printf("%s\n", why);
            status = 1;
        }
    }
    return status;
}
