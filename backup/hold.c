/* hold.c - a lock of a repository, and the thread that renews it. */
#include "backup/hold.h"

#include "backup/places.h"
#include "backup/system.h"
#include "base/show.h"
#include "base/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- this process ---- */

/* Process numbers mean something only within one boot of one kernel and one name space. */
static void find_space(char ret[ARCHIVE_LOCK_TEXT])
{
    struct rd_buf boot = {0};
    struct stat ns;
    ret[0] = '\0';
    if (backup_read_file("/proc/sys/kernel/random/boot_id", 64, &boot, NULL) && boot.len > 36 &&
        stat("/proc/self/ns/pid", &ns) == 0)
        snprintf(ret, ARCHIVE_LOCK_TEXT, "%.36s/%llu", (const char *)boot.ptr,
                 (unsigned long long)ns.st_ino);
    rd_buf_done(&boot);
}

static bool is_gone(const struct archive_lock_holder *holder)
{
    char here[ARCHIVE_LOCK_TEXT];
    find_space(here);
    return here[0] != '\0' && strcmp(here, holder->space) == 0 && holder->pid > 0 &&
           holder->pid <= INT32_MAX && kill((pid_t)holder->pid, 0) != 0 && errno == ESRCH;
}

/* ---- the thread ---- */

/* False: it is to end. */
static bool sleep_ms(struct backup_hold *hold, uint64_t ms)
{
    const struct timespec until = backup_after_ms(ms);
    pthread_mutex_lock(&hold->mutex);
    int status = 0;
    while (!atomic_load(&hold->stop) && status == 0)
        status = pthread_cond_timedwait(&hold->changed, &hold->mutex, &until);
    pthread_mutex_unlock(&hold->mutex);
    return !atomic_load(&hold->stop);
}

/* A renewal that fails is repeated sooner, with a new connection. */
static void *renew_always(void *arg)
{
    struct backup_hold *hold = arg;
    struct archive_store *store = NULL;
    uint64_t beat_ms = hold->lock.opts.self.expire_ms / ARCHIVE_LOCK_BEATS, wait_ms = beat_ms;
    while (!atomic_load(&hold->lock.lost) && sleep_ms(hold, wait_ms)) {
        bool ok = store != NULL ||
                  backup_open_again(&store, hold->target, hold->where, &hold->stop, NULL);
        ok = ok && archive_lock_renew(&hold->lock, store, NULL);
        wait_ms = ok ? beat_ms : beat_ms / 4;
        if (!ok) {
            archive_store_close(store);
            store = NULL;
        }
    }
    archive_store_close(store);
    return NULL;
}

static void end_thread(struct backup_hold *hold)
{
    if (!hold->running)
        return;
    pthread_mutex_lock(&hold->mutex);
    atomic_store(&hold->stop, true);
    pthread_cond_broadcast(&hold->changed);
    pthread_mutex_unlock(&hold->mutex);
    pthread_join(hold->thread, NULL);
    hold->running = false;
}

/* ---- the lock ---- */

static void describe_self(struct archive_lock_holder *self, const char *tool)
{
    char host[ARCHIVE_TEXT_MAX];
    backup_host(host);
    snprintf(self->host, sizeof self->host, "%.100s", host);
    self->pid = (uint64_t)getpid();
    find_space(self->space);
    snprintf(self->owner, sizeof self->owner, "redoubt %s, process %ld on %.60s, since %s", tool,
             (long)getpid(), host, rd_show_time(backup_now_ms()).s);
}

static void init_cond(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool backup_hold_init(struct backup_hold *hold, const struct backup_target *target,
                      const char *where, enum archive_lock_kind kind, const char *tool,
                      struct rd_err *err)
{
    struct archive_lock_opts opts = {.now_ms = backup_boot_ms,
                                     .wall_ms = backup_now_ms,
                                     .wait_ms = backup_wait_ms,
                                     .gone = is_gone};
    uint64_t chance;
    if (!backup_get_expiry(target, &opts.self.expire_ms, err) ||
        !backup_random(&chance, sizeof chance, err))
        return false;
    snprintf(opts.self.id, sizeof opts.self.id, "%016" PRIx64, chance);
    describe_self(&opts.self, tool);
    *hold = (struct backup_hold){.target = target, .where = where};
    if (!archive_lock_init(&hold->lock, target->name, kind, &opts, err))
        return false;
    pthread_mutex_init(&hold->mutex, NULL);
    init_cond(&hold->changed);
    hold->inited = true;
    return true;
}

bool backup_hold_try(struct backup_hold *hold, struct archive_store *store, struct rd_err *err)
{
    end_thread(hold);
    if (!archive_lock_try(&hold->lock, store, err))
        return false;
    if (store->ops->lock != NULL)
        return true;
    atomic_store(&hold->stop, false);
    hold->running = rd_thread_start(&hold->thread, renew_always, hold);
    if (hold->running)
        return true;
    archive_lock_drop(&hold->lock, store);
    return rd_err_sys(err, EAGAIN, "cannot start a thread");
}

void backup_hold_drop(struct backup_hold *hold, struct archive_store *store)
{
    if (!hold->inited)
        return;
    end_thread(hold);
    if (store != NULL)
        archive_lock_drop(&hold->lock, store);
}

void backup_hold_done(struct backup_hold *hold)
{
    if (!hold->inited)
        return;
    end_thread(hold);
    archive_lock_done(&hold->lock);
    pthread_mutex_destroy(&hold->mutex);
    pthread_cond_destroy(&hold->changed);
    hold->inited = false;
}
