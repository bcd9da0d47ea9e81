#include "backup/keeper.h"

#include "backup/system.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POLL_MS = 20, NOT_STARTED = 127, OPEN_FOLDERS = 8 };

/* What the keeper answers: the folder or an error, later the status of the server. */
struct answer {
    int error;
    int status;
    char folder[BACKUP_KEEPER_PATH];
};

/* ---- the keeper's process ---- */

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    remove(path);
    return 0;
}

static void set_signals(void (*handler)(int))
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        signal(numbers[i], handler);
}

static void make_folder(struct answer *ret)
{
    const char *tmp = backup_env("TMPDIR");
    if (tmp == NULL || tmp[0] != '/')
        tmp = "/tmp";
    int len = snprintf(ret->folder, sizeof ret->folder, "%s/redoubt-verify-XXXXXX", tmp);
    if (len < 0 || (size_t)len >= sizeof ret->folder)
        ret->error = ENAMETOOLONG;
    else if (mkdtemp(ret->folder) == NULL)
        ret->error = errno;
}

static _Noreturn void run_server(const char *folder, const struct backup_keeper_args *args)
{
    char *argv[BACKUP_KEEPER_ARGS + 1] = {NULL};
    struct backup_keeper_args own = *args;
    for (size_t i = 0; i < own.n; i++)
        argv[i] = own.args[i];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    set_signals(SIG_DFL);
    int log = chdir(folder) == 0 ? open("log", O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (log >= 0 && dup2(log, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0)
        execvp(argv[0], argv);
    _exit(NOT_STARTED);
}

static bool read_all(int fd, void *dst, size_t size)
{
    uint8_t *at = dst;
    while (size > 0) {
        ssize_t n = read(fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

/* Until the tool closes the connection. Reports the end of the server meanwhile. */
static void watch(int fd, pid_t server)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct answer end = {0};
    while (poll(&p, 1, server > 0 ? POLL_MS : -1) <= 0)
        if (server > 0 && waitpid(server, &end.status, WNOHANG) == server) {
            server = 0;
            (void)!write(fd, &end, sizeof end);
        }
    if (server > 0) {
        kill(server, SIGKILL);
        waitpid(server, NULL, 0);
    }
}

static _Noreturn void run_keeper(int fd)
{
    struct answer answer = {0};
    static struct backup_keeper_args args;
    int null = open("/dev/null", O_RDWR);
    setsid(); /* signals of the terminal are for the tool */
    set_signals(SIG_IGN);
    for (int i = 0; null >= 0 && i <= STDERR_FILENO; i++)
        dup2(null, i);
    make_folder(&answer);
    (void)!write(fd, &answer, sizeof answer);
    if (answer.error != 0)
        _exit(1);
    if (read_all(fd, &args, sizeof args)) {
        pid_t server = fork();
        if (server == 0)
            run_server(answer.folder, &args);
        watch(fd, server);
    }
    nftw(answer.folder, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

/* ---- the tool's side ---- */

bool backup_keeper_begin(struct backup_keeper *ret, struct rd_err *err)
{
    int fds[2];
    struct answer answer;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return rd_err_sys(err, errno, "cannot start a process");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        run_keeper(fds[1]);
    }
    int why = errno;
    close(fds[1]);
    *ret = (struct backup_keeper){.fd = fds[0], .pid = pid};
    if (pid > 0 && read_all(fds[0], &answer, sizeof answer) && answer.error == 0) {
        memcpy(ret->folder, answer.folder, sizeof ret->folder);
        return true;
    }
    close(fds[0]);
    if (pid < 0)
        return rd_err_sys(err, why, "cannot start a process");
    waitpid(pid, NULL, 0);
    return rd_err_sys(err, answer.error, "cannot create a temporary folder");
}

bool backup_keeper_add(struct backup_keeper_args *args, const char *text, struct rd_err *err)
{
    size_t len = strlen(text);
    if (args->n == BACKUP_KEEPER_ARGS || len >= BACKUP_KEEPER_ARG)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "an argument of the server is too long");
    memcpy(args->args[args->n++], text, len + 1);
    return true;
}

bool backup_keeper_start(struct backup_keeper *keeper, const struct backup_keeper_args *args,
                         struct rd_err *err)
{
    const uint8_t *at = (const void *)args;
    size_t left = sizeof *args;
    while (left > 0) {
        ssize_t n = send(keeper->fd, at, left, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return rd_err_sys(err, errno, "cannot start the server");
        at += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool backup_keeper_ended(struct backup_keeper *keeper, int *ret_status)
{
    struct answer answer;
    struct pollfd p = {.fd = keeper->fd, .events = POLLIN};
    if (poll(&p, 1, 0) <= 0)
        return false;
    *ret_status = read_all(keeper->fd, &answer, sizeof answer) ? answer.status : SIGKILL;
    return true;
}

void backup_keeper_end(struct backup_keeper *keeper)
{
    close(keeper->fd);
    while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}
