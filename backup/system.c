#include "backup/system.h"

#include "base/pump.h"
#include "base/show.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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

/* The file that names the target to which the stream in a spool belongs. */
static int open_owner(const char *spool, int flags)
{
    char path[BACKUP_PATH_MAX];
    int len = snprintf(path, sizeof path, "%s/.target", spool);
    return len < 0 || (size_t)len >= sizeof path
               ? -1
               : open(path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
}

/* fd: -1 if nobody has the spool. *ret_free: no name is in the file. */
static bool is_owner(int fd, const struct backup_target *target, const char *spool, bool *ret_free,
                     struct rd_err *err)
{
    char name[ARCHIVE_TEXT_MAX];
    ssize_t n = fd >= 0 ? pread(fd, name, sizeof name - 1, 0) : 0;
    name[n > 0 ? n : 0] = '\0';
    name[strcspn(name, "\n")] = '\0';
    *ret_free = n == 0;
    if (n <= 0 || strcmp(name, target->name) == 0)
        return true;
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
               "the spool is that of the target %s: each target needs its own",
               rd_show_quote(rd_slice_str(name)).s);
    rd_err_origin(err, spool);
    return false;
}

bool backup_spool_is_ours(const struct backup_target *target, const char *spool, struct rd_err *err)
{
    bool is_free;
    int fd = open_owner(spool, O_RDONLY);
    bool ok = is_owner(fd, target, spool, &is_free, err);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* A disk that is full keeps nobody from uploading what is in the spool. */
bool backup_spool_claim(const struct backup_target *target, const char *spool, struct rd_err *err)
{
    bool is_free = false;
    int fd = open_owner(spool, O_RDWR | O_CREAT);
    if (fd >= 0)
        flock(fd, LOCK_EX);
    bool ok = is_owner(fd, target, spool, &is_free, err);
    if (fd >= 0 && is_free && dprintf(fd, "%s\n", target->name) < 0 && ftruncate(fd, 0) != 0)
        is_free = false;
    if (fd >= 0)
        close(fd);
    return ok;
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

/* Reads all bytes from fd, or up to the maximum: who prints more gets SIGPIPE. */
static bool read_pipe(int fd, size_t max, struct rd_buf *ret, struct rd_err *err)
{
    uint8_t bytes[4096];
    ssize_t n;
    bool ok = true;
    while (ok && ((n = read(fd, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR))) {
        if (n < 0)
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
