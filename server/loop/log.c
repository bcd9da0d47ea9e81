#include "server/loop/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/utf8.h"
#include "server/loop/daemon.h"

enum { LOG_LINE_MAX = 1024, LOG_PATH_MAX = 4096 };

/* Copies, so that signal handlers and threads can log while the settings change. */
static struct {
    char path[LOG_PATH_MAX]; /* "": stdout */
    int level;
    bool to_syslog;
    char role;
    char ident[128];
    bool exit_on_panic;
    /* The offset of local time, if this process looked it up in this quarter of an hour: daylight
     * saving time changes at quarters only. A child must not look it up, because a thread that the
     * child does not have may hold the lock of the C library. */
    int64_t quarter;
    int64_t ahead_s;
    pid_t looked_up_by;
} state = {.level = SETTINGS_LOG_NOTICE, .role = 'C', .quarter = -1};

static int64_t local_seconds(int64_t unix_s)
{
    int64_t quarter = unix_s / 900;
    bool may = state.looked_up_by == 0 || state.looked_up_by == getpid();
    if (quarter != state.quarter && may) {
        struct tm local;
        time_t when = (time_t)unix_s;
        if (localtime_r(&when, &local) != NULL)
            state.ahead_s = local.tm_gmtoff;
        state.quarter = quarter;
        state.looked_up_by = getpid();
    }
    return unix_s + state.ahead_s;
}

/* "22 Nov 2026 01:45:19.131" without the C library, whose calendar functions take locks. */
static void put_time(char *dst, size_t size, const struct timeval *now)
{
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    int64_t seconds = local_seconds(now->tv_sec), days = seconds / 86400, of_day = seconds % 86400;
    /* Years begin in March here, so that the leap day comes last. */
    int64_t z = days + 719468, era = z / 146097, of_era = z % 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153, day = of_year - (153 * month + 2) / 5 + 1;
    year += era * 400 + (month >= 10);
    snprintf(dst, size, "%02d %s %04d %02d:%02d:%02d.%03d", (int)day, months[(month + 2) % 12],
             (int)year, (int)(of_day / 3600), (int)(of_day / 60 % 60), (int)(of_day % 60),
             (int)(now->tv_usec / 1000));
}

void log_setup(const struct settings *settings)
{
    state.exit_on_panic = settings->use_exit_on_panic;
    state.level = settings->loglevel;
    snprintf(state.path, sizeof state.path, "%s", settings->logfile);
    bool open_syslog = settings->syslog_enabled && !state.to_syslog;
    state.to_syslog = settings->syslog_enabled;
    if (open_syslog) {
        snprintf(state.ident, sizeof state.ident, "%s", settings->syslog_ident);
        openlog(state.ident, LOG_PID | LOG_NDELAY | LOG_NOWAIT, settings->syslog_facility);
    }
    tzset();
}

void log_role(char role)
{
    state.role = role;
}

int log_open(void)
{
    if (state.path[0] == '\0')
        return STDOUT_FILENO;
    return open(state.path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

void log_close(int fd)
{
    if (fd != STDOUT_FILENO)
        close(fd);
}

static void put(const char *bytes, size_t len)
{
    int fd = log_open();
    if (fd < 0)
        return;
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno != EINTR)
            break;
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        }
    }
    log_close(fd);
}

/* ---- characters that a terminal would interpret ---- */

/* Names of keys, clients and files, and input of clients, are untrusted. Line ends in the format
 * are the server's own. */
static void escape(char *dst, size_t size, const char *text, bool may_break)
{
    const uint8_t *p = (const uint8_t *)text;
    size_t at = 0;
    while (*p != '\0' && at + 5 <= size) {
        size_t len = rd_utf8_shown(p, strnlen((const char *)p, RD_UTF8_MAX));
        if (*p == '\t' || (*p == '\n' && may_break))
            len = 1;
        if (len > 0) {
            memcpy(dst + at, p, len);
            at += len;
            p += len;
        } else {
            at += (size_t)snprintf(dst + at, size - at, "\\x%02x", *p++);
        }
    }
    dst[at] = '\0';
}

/* One write(2) per line, so that lines of several processes do not mix. */
static void line(int level, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));

static void line(int level, const char *fmt, va_list args)
{
    static const char marks[] = ".-*#";
    static const int priorities[] = {LOG_DEBUG, LOG_INFO, LOG_NOTICE, LOG_WARNING};
    char raw[LOG_LINE_MAX], text[4 * LOG_LINE_MAX], framed[4 * LOG_LINE_MAX + 128], when[64];
    if (level < state.level)
        return;
    vsnprintf(raw, sizeof raw, fmt, args);
    escape(text, sizeof text, raw, strchr(fmt, '\n') != NULL);

    struct timeval now;
    gettimeofday(&now, NULL);
    put_time(when, sizeof when, &now);
    int len = snprintf(framed, sizeof framed, "%d:%c %s %c %s\n", (int)getpid(), state.role, when,
                       marks[level], text);
    put(framed, (size_t)len);
    if (state.to_syslog)
        syslog(priorities[level], "%s", text);
}

void log_debug(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    line(SETTINGS_LOG_DEBUG, fmt, args);
    va_end(args);
}

void log_verbose(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    line(SETTINGS_LOG_VERBOSE, fmt, args);
    va_end(args);
}

void log_notice(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    line(SETTINGS_LOG_NOTICE, fmt, args);
    va_end(args);
}

void log_warning(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    line(SETTINGS_LOG_WARNING, fmt, args);
    va_end(args);
}

/* Digits without printf(), which signal handlers must not use. Returns their start. */
static char *digits(char *end, uint64_t value)
{
    do {
        *--end = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    return end;
}

void log_from_handler(const char *text)
{
    char head[64], tail[96], number[32], *end = number + sizeof number;
    size_t len;
    char *first = digits(end, (uint64_t)getpid());
    len = (size_t)(end - first);
    memcpy(head, first, len);
    memcpy(head + len, ":signal-handler (", 17);
    len += 17;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    first = digits(end, (uint64_t)now.tv_sec);
    memcpy(head + len, first, (size_t)(end - first));
    len += (size_t)(end - first);
    memcpy(head + len, ") ", 2);
    len += 2;

    /* One write if it fits; a longer text takes two. */
    size_t text_len = strlen(text);
    if (len + text_len + 1 <= sizeof tail) {
        memcpy(tail, head, len);
        memcpy(tail + len, text, text_len);
        tail[len + text_len] = '\n';
        put(tail, len + text_len + 1);
    } else {
        put(head, len);
        put(text, text_len);
        put("\n", 1);
    }
}

void log_raw(const char *text)
{
    put(text, strlen(text));
}

void log_panic(const char *why)
{
    log_warning("------------------------------------------------");
    log_warning("!!! Software Failure");
    log_warning("Guru Meditation: %s", why);
    log_warning("------------------------------------------------");
    if (state.exit_on_panic) {
        daemon_remove_pidfile();
        _exit(1);
    }
    abort();
}
