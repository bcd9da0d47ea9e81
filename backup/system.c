#include "backup/system.h"

#include "base/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *backup_env(const char *name)
{
    return getenv(name);
}

int64_t backup_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The locks of a machine that slept have expired. */
uint64_t backup_boot_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct timespec backup_after_ms(uint64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + ms % 1000 * 1000000;
    until.tv_sec += (time_t)(ms / 1000 + ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    return until;
}

void backup_wait_ms(uint64_t ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

bool backup_random(void *ret, size_t size, struct rd_err *err)
{
    return getrandom(ret, size, 0) == (ssize_t)size ||
           rd_err_sys(err, errno, "cannot get random bytes");
}

bool backup_spool(const struct backup_target *target, char ret[BACKUP_PATH_MAX], struct rd_err *err)
{
    const char *path = backup_get(target, BACKUP_KEY_SPOOL);
    int len = path != NULL ? snprintf(ret, BACKUP_PATH_MAX, "%s", path)
                           : snprintf(ret, BACKUP_PATH_MAX, BACKUP_SPOOL "/%s", target->name);
    if (len < 0 || len >= BACKUP_PATH_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path of the spool is too long");
    if (mkdir(ret, 0700) == 0 || errno == EEXIST)
        return true;
    rd_err_sys(err, errno, "cannot create the spool");
    rd_err_origin(err, ret);
    return false;
}

void backup_host(char ret[ARCHIVE_TEXT_MAX])
{
    if (gethostname(ret, ARCHIVE_TEXT_MAX) != 0)
        ret[0] = '\0';
    ret[ARCHIVE_TEXT_MAX - 1] = '\0';
}

bool backup_read_file(const char *path, size_t max, struct rd_buf *ret, struct rd_err *err)
{
    struct rd_src *src;
    if (!rd_src_open_file(&src, path, NULL, err))
        return false;
    bool ok = rd_pump_to_buf(src, max, ret, err);
    rd_src_close(src);
    if (!ok)
        rd_err_origin(err, path);
    return ok;
}

_Noreturn static void run_child(const char *command, const char *const *env, int out)
{
    for (; env != NULL && env[0] != NULL; env += 2)
        setenv(env[0], env[1], 1);
    dup2(out, STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

/* Reads all bytes from fd; bytes beyond the maximum are dropped. */
static bool read_pipe(int fd, size_t max, struct rd_buf *ret, struct rd_err *err)
{
    uint8_t bytes[4096];
    ssize_t n;
    bool ok = true;
    while ((n = read(fd, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR)) {
        if (!ok || n < 0)
            continue;
        if (ret->len + (size_t)n > max)
            ok = rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "it prints more than %zu bytes", max);
        else if (!rd_buf_add(ret, bytes, (size_t)n))
            ok = rd_err_nomem(err, (size_t)n);
    }
    explicit_bzero(bytes, sizeof bytes);
    return ok;
}

static bool wait_child(pid_t pid, struct rd_err *err)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return rd_err_sys(err, errno, "cannot wait for it");
    if (WIFSIGNALED(status))
        return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ||
           rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "exit status %d", WEXITSTATUS(status));
}

bool backup_run(const char *name, const char *command, const char *const *env, size_t max,
                struct rd_buf *ret, struct rd_err *err)
{
    int pipes[2] = {-1, STDERR_FILENO};
    if (ret != NULL && pipe2(pipes, O_CLOEXEC) != 0)
        return rd_err_sys(err, errno, "cannot make a pipe");
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        run_child(command, env, pipes[1]);
    bool ok = pid > 0 || rd_err_sys(err, errno, "cannot start a process");
    if (ret != NULL) {
        close(pipes[1]);
        ok = ok && read_pipe(pipes[0], max, ret, err);
        close(pipes[0]);
    }
    if (pid > 0)
        ok = wait_child(pid, err) && ok;
    if (!ok)
        rd_err_origin(err, name);
    return ok;
}
