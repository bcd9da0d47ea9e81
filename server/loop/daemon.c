#include "server/loop/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "server/loop/log.h"
#include "server/settings/text.h"

extern char **environ;

/* ---- the title ---- */

static struct {
    char *room; /* of argv and of environ, if it follows directly */
    size_t size;
    char *name; /* argv[0] */
    char **argv;
} title;

/* The environment is moved, so that its place can be overwritten. */
void daemon_begin(int argc, char **argv)
{
    char *end = argv[0] + strlen(argv[0]) + 1;
    for (int i = 1; i < argc && argv[i] == end; i++)
        end += strlen(argv[i]) + 1;
    size_t n = 0;
    while (environ[n] != NULL) {
        if (environ[n] == end)
            end += strlen(environ[n]) + 1;
        n++;
    }
    title.room = argv[0];
    title.size = (size_t)(end - argv[0]);
    title.name = settings_text_copy(argv[0], strlen(argv[0]));

    char **moved = settings_text_room(n + 1, sizeof *moved);
    for (size_t i = 0; i < n; i++)
        moved[i] = settings_text_copy(environ[i], strlen(environ[i]));
    environ = moved;
    for (int i = 0; i < argc; i++)
        argv[i] = settings_text_copy(argv[i], strlen(argv[i]));
    title.argv = argv;
}

void daemon_config_file(const char *path)
{
    settings_text_replace(&title.argv[1], path);
}

char *const *daemon_argv(void)
{
    return title.argv;
}

void daemon_title(struct loop *loop, const char *what)
{
    struct rd_buf text = {0};
    const struct settings *s = &loop->settings;
    if (title.room == NULL || !s->set_proc_title)
        return;
    if (settings_title(s, loop->config_file, s->proc_title_template,
                       what != NULL ? what : title.name, &text)) {
        memset(title.room, 0, title.size);
        snprintf(title.room, title.size, "%s", (const char *)text.ptr);
    } else {
        log_warning("process title not changed: proc-title-template is invalid");
    }
    rd_buf_done(&text);
}

/* ---- supervisors ---- */

/* One datagram to the socket of systemd; '@' marks an abstract one. */
static bool notify(const char *message)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof addr.sun_path)
        return false;
    memcpy(addr.sun_path, path, strlen(path));
    if (path[0] == '@')
        addr.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    bool ok =
        sendto(fd, message, strlen(message), MSG_NOSIGNAL, (struct sockaddr *)&addr, len) >= 0;
    close(fd);
    return ok;
}

static bool under_upstart(void)
{
    if (getenv("UPSTART_JOB") == NULL) {
        log_warning("upstart supervision requested, but UPSTART_JOB not found!");
        return false;
    }
    log_notice("supervised by upstart, will stop to signal readiness.");
    raise(SIGSTOP);
    unsetenv("UPSTART_JOB");
    return true;
}

static bool under_systemd(void)
{
    log_notice("Supervised by systemd. Please make sure you set appropriate values for "
               "TimeoutStartSec and TimeoutStopSec in your service unit.");
    if (getenv("NOTIFY_SOCKET") == NULL) {
        log_warning("systemd supervision error: NOTIFY_SOCKET not found!");
        return false;
    }
    if (!notify("STATUS=Redis is loading...\n"))
        log_warning("systemd supervision error: cannot send the message: %s", strerror(errno));
    return true;
}

static enum settings_supervised supervisor = SETTINGS_SUPERVISED_NO;

static void enter_supervision(enum settings_supervised mode)
{
    bool automatic = mode == SETTINGS_SUPERVISED_AUTO;
    if (automatic && getenv("UPSTART_JOB") != NULL)
        mode = SETTINGS_SUPERVISED_UPSTART;
    else if (automatic && getenv("NOTIFY_SOCKET") != NULL)
        mode = SETTINGS_SUPERVISED_SYSTEMD;
    if (mode == SETTINGS_SUPERVISED_UPSTART && under_upstart())
        supervisor = mode;
    if (mode == SETTINGS_SUPERVISED_SYSTEMD && under_systemd())
        supervisor = mode;
}

void daemon_enter(struct settings *s)
{
    static const char default_pidfile[] = "/var/run/redis.pid";
    enter_supervision((enum settings_supervised)s->supervised);
    if (supervisor != SETTINGS_SUPERVISED_NO || !s->daemonize)
        return;
    if (fork() != 0)
        _exit(0);
    setsid();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        if (null > STDERR_FILENO)
            close(null);
    }
    if (s->pidfile[0] == '\0')
        settings_text_replace(&s->pidfile, default_pidfile);
}

void daemon_ready(void)
{
    if (supervisor == SETTINGS_SUPERVISED_SYSTEMD)
        notify("STATUS=Ready to accept connections\nREADY=1\n");
}

void daemon_status(const char *fmt, ...)
{
    char text[512] = "STATUS=";
    size_t len = strlen(text);
    va_list args;
    if (supervisor != SETTINGS_SUPERVISED_SYSTEMD)
        return;
    va_start(args, fmt);
    vsnprintf(text + len, sizeof text - len - 1, fmt, args);
    va_end(args);
    strcat(text, "\n");
    notify(text);
}

void daemon_stopping(void)
{
    if (supervisor == SETTINGS_SUPERVISED_SYSTEMD)
        notify("STOPPING=1\n");
}

/* ---- limits ---- */

uint64_t daemon_open_files(uint64_t want, int *ret_errno)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        if (ret_errno != NULL)
            *ret_errno = errno;
        return 1024;
    }
    if (limit.rlim_cur >= want)
        return limit.rlim_cur;
    struct rlimit higher = {want, want > limit.rlim_max ? want : limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &higher) == 0)
        return want;
    if (ret_errno != NULL)
        *ret_errno = errno;
    higher = (struct rlimit){limit.rlim_max, limit.rlim_max};
    return setrlimit(RLIMIT_NOFILE, &higher) == 0 ? limit.rlim_max : limit.rlim_cur;
}

static bool prepare_open_files(struct settings *s)
{
    struct rlimit before;
    int sys = 0;
    uint64_t want = (uint64_t)s->maxclients + DAEMON_FILES_RESERVED;
    if (getrlimit(RLIMIT_NOFILE, &before) != 0)
        before.rlim_cur = 1024;
    uint64_t got = daemon_open_files(want, &sys);
    if (got >= want) {
        if (before.rlim_cur < want)
            log_notice("Increased maximum number of open files to %llu (it was originally set to "
                       "%llu).",
                       (unsigned long long)want, (unsigned long long)before.rlim_cur);
        return true;
    }
    if (got <= DAEMON_FILES_RESERVED) {
        log_warning("Your current 'ulimit -n' of %llu is not enough for the server to start. "
                    "Please increase your open file limit to at least %llu. Exiting.",
                    (unsigned long long)got, (unsigned long long)want);
        return false;
    }
    int64_t asked = s->maxclients;
    s->maxclients = (int64_t)got - DAEMON_FILES_RESERVED;
    log_warning("You requested maxclients of %lld requiring at least %llu max file descriptors.",
                (long long)asked, (unsigned long long)want);
    log_warning("Server can't set maximum open files to %llu because of OS error: %s.",
                (unsigned long long)want, strerror(sys));
    log_warning("Current maximum open files is %llu. maxclients has been reduced to %lld to "
                "compensate for low ulimit. If you need higher maxclients increase 'ulimit -n'.",
                (unsigned long long)got, (long long)s->maxclients);
    return true;
}

/* The value before the server changed it: "relative" is added to it, and it is restored when the
 * setting is turned off. */
static struct {
    bool changed;
    int before;
} oom;

static int wanted_oom_score(const struct settings *s, bool child)
{
    enum {
        MASTER,
        REPLICA,
        CHILD
    } class
        = child                       ? CHILD
          : s->replicaof_host != NULL ? REPLICA
                                      : MASTER;
    int value = oom.before;
    if (s->oom_score_adj == SETTINGS_OOM_ABSOLUTE)
        value = s->oom_score_adj_values[class];
    else if (s->oom_score_adj == SETTINGS_OOM_RELATIVE)
        value += s->oom_score_adj_values[class];
    return value < -1000 ? -1000 : value > 1000 ? 1000 : value;
}

bool daemon_oom_score(const struct settings *s, bool child)
{
    static const char path[] = "/proc/self/oom_score_adj";
    char text[32] = "";
    if (s->oom_score_adj == SETTINGS_OOM_NO && !oom.changed)
        return true;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool ok = fd >= 0;
    if (ok && !oom.changed && read(fd, text, sizeof text - 1) > 0)
        oom.before = atoi(text);
    if (ok) {
        int len = snprintf(text, sizeof text, "%d\n", wanted_oom_score(s, child));
        ok = pwrite(fd, text, (size_t)len, 0) == len;
    }
    if (!ok)
        log_warning("Unable to write oom_score_adj: %s", strerror(errno));
    else
        oom.changed = s->oom_score_adj != SETTINGS_OOM_NO;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* One part of a list: "3", "0-7", "0-7:2". NULL: invalid. */
static const char *cpu_range(const char *at, cpu_set_t *set)
{
    char *end;
    unsigned long first = strtoul(at, &end, 10), last = first, step = 1;
    if (end == at)
        return NULL;
    if (*end == '-') {
        at = end + 1;
        last = strtoul(at, &end, 10);
        if (end == at)
            return NULL;
    }
    if (*end == ':') {
        at = end + 1;
        step = strtoul(at, &end, 10);
        if (end == at || step == 0)
            return NULL;
    }
    if (last >= CPU_SETSIZE || first > last || step > CPU_SETSIZE)
        return NULL;
    for (; first <= last; first += step)
        CPU_SET(first, set);
    return end;
}

void daemon_cpus(const char *list)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (*list == '\0')
        return;
    for (const char *at = list; *at != '\0';) {
        at = cpu_range(at, &set);
        if (at == NULL || (*at != '\0' && *at != ',')) {
            log_warning("cannot parse the CPU list '%s'", list);
            return;
        }
        at += strspn(at, ", ");
    }
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        log_warning("cannot set the CPU affinity to '%s': %s", list, strerror(errno));
}

bool daemon_prepare(struct loop *loop)
{
    struct settings *s = &loop->settings;
    daemon_title(loop, NULL);
    daemon_cpus(s->server_cpulist);
    if (s->disable_thp)
        prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    daemon_oom_score(s, false);
    return prepare_open_files(s);
}
