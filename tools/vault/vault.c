#include "tools/vault/vault.h"

#include "base/buf.h"
#include "base/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- repositories ---- */

const char *vault_repository(const struct vault_target *target, size_t i)
{
    if (i == 0)
        return vault_get(target, VAULT_KEY_REPOSITORY);
    return i <= target->conf.n_more ? target->conf.more[i - 1] : NULL;
}

bool vault_open(const struct vault_target *target, enum vault_mode mode, struct vault_open *ret,
                struct rd_err *err)
{
    const char *where;
    size_t n_open = 0;
    *ret = (struct vault_open){.target = target};
    if (mode == VAULT_LIST ||
        (mode == VAULT_JUDGE && !vault_keys_open(&ret->keys, target, &ret->keys_err)))
        vault_keys_look(&ret->keys, target);
    else if (mode != VAULT_JUDGE && !vault_keys_open(&ret->keys, target, err))
        return false;
    for (; ret->n < VAULT_STORES && (where = vault_repository(target, ret->n)) != NULL; ret->n++) {
        size_t i = ret->n;
        ret->repos[i].target = target->name;
        ret->repos[i].ring = &ret->keys.ring;
        if (vault_open_store(&ret->stores[i], target, where, mode, &ret->errs[i]))
            n_open++;
        ret->repos[i].store = ret->stores[i];
    }
    if (mode != VAULT_WRITE || n_open > 0 || ret->n == 0)
        return true;
    rd_err_adopt(err, &ret->errs[0]);
    vault_close(ret);
    return false;
}

bool vault_is_open(const struct vault_open *open, size_t i, struct rd_err *err)
{
    if (open->stores[i] == NULL)
        rd_err_adopt(err, &open->errs[i]);
    return open->stores[i] != NULL;
}

void vault_close(struct vault_open *open)
{
    for (size_t i = 0; i < open->n; i++) {
        vault_hold_drop(&open->holds[i], open->stores[i]);
        vault_hold_done(&open->holds[i]);
        archive_store_close(open->stores[i]);
    }
    vault_keys_done(&open->keys);
    *open = (struct vault_open){0};
}

enum { LOCK_WAIT_MS = 30000, LOCK_LOOK_MS = 100, LOCK_LOOK_MAX_MS = 1000 };

static bool cancelled(const atomic_bool *cancel)
{
    return cancel != NULL && atomic_load(cancel);
}

/* A holder that was not seen to renew its lock may have ended. Whoever does not want to wait at all
 * does not wait for that either. */
static uint64_t wait_max(const struct vault_hold *hold, uint64_t max_ms)
{
    const struct archive_lock *lock = &hold->lock;
    uint64_t expire_ms = lock->opts.self.expire_ms;
    bool may_expire = max_ms > 0 && !lock->seen_alive && !lock->is_old;
    return may_expire && max_ms <= expire_ms ? expire_ms + LOCK_LOOK_MAX_MS : max_ms;
}

static void say_waiting(struct cli *cli, const struct vault_hold *hold, uint64_t *waited_ms,
                        uint64_t max_ms)
{
    if (*waited_ms == 0)
        cli_note(cli, "%s: waiting for another run, which has the lock", hold->target->name);
    else if (*waited_ms == max_ms)
        cli_note(cli, "%s: no heartbeat of that run was seen: waiting until its lock expires",
                 hold->target->name);
}

/* Waits while another process has the lock. The time is that of the waits: a clock can be set. */
static bool wait_for_lock(struct cli *cli, struct vault_hold *hold, struct archive_store *store,
                          uint64_t max_ms, const atomic_bool *cancel, struct rd_err *err)
{
    uint64_t waited_ms = 0, step_ms = LOCK_LOOK_MS;
    struct rd_err refused = {0};
    while (!vault_hold_try(hold, store, &refused)) {
        uint64_t until_ms = wait_max(hold, max_ms);
        if (refused.code != RD_ERR_LOCKED || waited_ms >= until_ms || cancelled(cancel)) {
            hold->refused = refused.code == RD_ERR_LOCKED;
            if (hold->refused)
                cli_hint(cli, "redoubt unlock %s shows who has the lock", hold->target->name);
            rd_err_adopt(err, &refused);
            return false;
        }
        say_waiting(cli, hold, &waited_ms, max_ms);
        uint64_t left_ms = (waited_ms < max_ms ? max_ms : until_ms) - waited_ms;
        step_ms = step_ms < left_ms ? step_ms : left_ms;
        vault_wait_ms(step_ms);
        waited_ms += step_ms;
        step_ms = 2 * step_ms < LOCK_LOOK_MAX_MS ? 2 * step_ms : LOCK_LOOK_MAX_MS;
        refused = (struct rd_err){0};
    }
    return true;
}

bool vault_lock(struct cli *cli, struct vault_open *open, size_t i, const atomic_bool *cancel,
                struct rd_err *err)
{
    uint64_t max_ms = LOCK_WAIT_MS;
    struct vault_hold *hold = &open->holds[i];
    if (!vault_get_time(open->target, VAULT_KEY_LOCK_WAIT, &max_ms, err) ||
        !vault_hold_init(hold, open->target, vault_repository(open->target, i), ARCHIVE_LOCK_SETS,
                         cli->tool, err))
        return false;
    if (!wait_for_lock(cli, hold, open->stores[i], max_ms, cancel, err)) {
        rd_err_doing(err, "the repository %s", open->stores[i]->origin);
        return false;
    }
    open->repos[i].lock = &hold->lock;
    return true;
}

void vault_find_lost(struct vault_open *open)
{
    for (size_t i = 0; i < open->n; i++) {
        if (open->repos[i].lock == NULL || open->errs[i].code != RD_ERR_OK ||
            !atomic_load(&open->repos[i].lock->lost))
            continue;
        archive_lock_check(open->repos[i].lock, open->stores[i], &open->errs[i]);
        rd_err_doing(&open->errs[i], "the repository %s", open->stores[i]->origin);
    }
}

void vault_explain_lost(struct vault_open *open, struct rd_err *err)
{
    for (size_t i = 0; i < open->n; i++) {
        struct archive_lock *lock = open->repos[i].lock;
        struct rd_err lost = {0};
        if (lock == NULL || archive_lock_confirm(lock, open->stores[i], &lost) ||
            !atomic_load(&lock->lost))
            continue;
        rd_err_doing(&lost, "the repository %s", open->stores[i]->origin);
        rd_err_reset(err);
        rd_err_adopt(err, &lost);
        return;
    }
}

/* ---- the rest ---- */

void vault_wait_ms(uint64_t ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

bool vault_random(void *ret, size_t size, struct rd_err *err)
{
    return getrandom(ret, size, 0) == (ssize_t)size ||
           rd_err_sys(err, errno, "cannot get random bytes");
}

bool vault_spool(const struct vault_target *target, char ret[VAULT_PATH_MAX], struct rd_err *err)
{
    const char *path = vault_get(target, VAULT_KEY_SPOOL);
    int len = path != NULL ? snprintf(ret, VAULT_PATH_MAX, "%s", path)
                           : snprintf(ret, VAULT_PATH_MAX, VAULT_SPOOL "/%s", target->name);
    if (len < 0 || len >= VAULT_PATH_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path of the spool is too long");
    if (mkdir(ret, 0700) == 0 || errno == EEXIST)
        return true;
    rd_err_sys(err, errno, "cannot create the spool");
    rd_err_origin(err, ret);
    return false;
}

void vault_host(char ret[ARCHIVE_TEXT_MAX])
{
    if (gethostname(ret, ARCHIVE_TEXT_MAX) != 0)
        ret[0] = '\0';
    ret[ARCHIVE_TEXT_MAX - 1] = '\0';
}

bool vault_read_file(const char *path, size_t max, struct rd_buf *ret, struct rd_err *err)
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

bool vault_run(const char *name, const char *command, const char *const *env, size_t max,
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
