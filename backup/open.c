#include "backup/open.h"

#include "archive/catalogue.h"
#include "backup/places.h"
#include "backup/system.h"
#include "chunks/chunks.h"

/* ---- repositories ---- */

static bool open_again(void *ctx, struct archive_store **ret, const atomic_bool *cancel,
                       struct rd_err *err)
{
    const struct backup_again *again = ctx;
    return backup_open_again(ret, again->target, again->where, cancel, err);
}

/* Objects of a remote repository are read over several connections. */
static void set_parallel(struct backup_open *open, size_t i, const char *where, unsigned n)
{
    struct backup_again *again = &open->agains[i];
    if (n < 2 || !open->stores[i]->ops->remote)
        return;
    *again = (struct backup_again){.target = open->target, .where = where};
    again->parallel = (struct archive_parallel){.open = open_again, .ctx = again, .n = n};
    open->repos[i].parallel = &again->parallel;
}

bool backup_open(const struct backup_target *target, enum backup_mode mode, struct backup_open *ret,
                 struct rd_err *err)
{
    const char *where;
    size_t n_open = 0;
    unsigned parallel;
    *ret = (struct backup_open){.target = target};
    if (!backup_get_parallel(target, &parallel, err))
        return false;
    if (mode == BACKUP_LIST ||
        (mode == BACKUP_JUDGE && !backup_keys_open(&ret->keys, target, &ret->keys_err)))
        backup_keys_look(&ret->keys, target);
    else if (mode != BACKUP_JUDGE && !backup_keys_open(&ret->keys, target, err))
        return false;
    for (; ret->n < BACKUP_STORES && (where = backup_repository(target, ret->n)) != NULL;
         ret->n++) {
        size_t i = ret->n;
        ret->repos[i].target = target->name;
        ret->repos[i].ring = &ret->keys.ring;
        ret->repos[i].open_chunks = chunks_open_src;
        if (!backup_open_store(&ret->stores[i], target, where, mode, &ret->errs[i]))
            continue;
        n_open++;
        ret->repos[i].store = ret->stores[i];
        set_parallel(ret, i, where, parallel);
    }
    if (mode != BACKUP_WRITE || n_open > 0 || ret->n == 0)
        return true;
    rd_err_adopt(err, &ret->errs[0]);
    backup_close(ret);
    return false;
}

bool backup_is_open(const struct backup_open *open, size_t i, struct rd_err *err)
{
    if (open->stores[i] == NULL)
        rd_err_adopt(err, &open->errs[i]);
    return open->stores[i] != NULL;
}

void backup_close(struct backup_open *open)
{
    for (size_t i = 0; i < open->n; i++) {
        backup_hold_drop(&open->holds[i], open->stores[i]);
        backup_hold_done(&open->holds[i]);
        archive_store_close(open->stores[i]);
    }
    backup_keys_done(&open->keys);
    *open = (struct backup_open){0};
}

enum { LOCK_WAIT_MS = 30000, LOCK_LOOK_MS = 100, LOCK_LOOK_MAX_MS = 1000 };

/* A holder that was not seen to renew its lock may have ended. Whoever does not want to wait at all
 * does not wait for that either. */
static uint64_t wait_max(const struct backup_hold *hold, uint64_t max_ms)
{
    const struct archive_lock *lock = &hold->lock;
    uint64_t expire_ms = lock->opts.self.expire_ms;
    bool may_expire = max_ms > 0 && !lock->seen_alive && !lock->is_old;
    return may_expire && max_ms <= expire_ms ? expire_ms + LOCK_LOOK_MAX_MS : max_ms;
}

static void say_waiting(const struct rd_watch *watch, const struct backup_hold *hold,
                        uint64_t *waited_ms, uint64_t max_ms)
{
    if (*waited_ms == 0)
        rd_watch_note(watch, "%s: waiting for another run, which has the lock", hold->target->name);
    else if (*waited_ms == max_ms)
        rd_watch_note(watch,
                      "%s: no heartbeat of that run was seen: waiting until its lock expires",
                      hold->target->name);
}

/* Waits while another process has the lock. The time is that of the waits: a clock can be set. */
static bool wait_for_lock(const struct rd_watch *watch, struct backup_hold *hold,
                          struct archive_store *store, uint64_t max_ms, struct rd_err *err)
{
    uint64_t waited_ms = 0, step_ms = LOCK_LOOK_MS;
    struct rd_err refused = {0};
    while (!backup_hold_try(hold, store, &refused)) {
        uint64_t until_ms = wait_max(hold, max_ms);
        if (refused.code != RD_ERR_LOCKED || waited_ms >= until_ms || rd_watch_cancelled(watch)) {
            hold->refused = refused.code == RD_ERR_LOCKED;
            if (hold->refused)
                rd_watch_hint(watch, "redoubt unlock %s shows who has the lock",
                              hold->target->name);
            rd_err_adopt(err, &refused);
            return false;
        }
        say_waiting(watch, hold, &waited_ms, max_ms);
        uint64_t left_ms = (waited_ms < max_ms ? max_ms : until_ms) - waited_ms;
        step_ms = step_ms < left_ms ? step_ms : left_ms;
        backup_wait_ms(step_ms);
        waited_ms += step_ms;
        step_ms = 2 * step_ms < LOCK_LOOK_MAX_MS ? 2 * step_ms : LOCK_LOOK_MAX_MS;
        refused = (struct rd_err){0};
    }
    return true;
}

bool backup_lock(const struct rd_watch *watch, struct backup_open *open, size_t i, const char *tool,
                 struct rd_err *err)
{
    uint64_t max_ms = LOCK_WAIT_MS;
    struct backup_hold *hold = &open->holds[i];
    if (!backup_get_time(open->target, BACKUP_KEY_LOCK_WAIT, &max_ms, err) ||
        !backup_hold_init(hold, open->target, backup_repository(open->target, i), ARCHIVE_LOCK_SETS,
                          tool, err))
        return false;
    if (!wait_for_lock(watch, hold, open->stores[i], max_ms, err)) {
        rd_err_doing(err, "the repository %s", open->stores[i]->origin);
        return false;
    }
    open->repos[i].lock = &hold->lock;
    return true;
}

void backup_find_lost(struct backup_open *open)
{
    for (size_t i = 0; i < open->n; i++) {
        if (open->repos[i].lock == NULL || open->errs[i].code != RD_ERR_OK ||
            !atomic_load(&open->repos[i].lock->lost))
            continue;
        archive_lock_check(open->repos[i].lock, open->stores[i], &open->errs[i]);
        rd_err_doing(&open->errs[i], "the repository %s", open->stores[i]->origin);
    }
}

void backup_explain_lost(struct backup_open *open, struct rd_err *err)
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

void backup_catalogue(const struct rd_watch *watch, struct archive_repo *repo,
                      const struct archive_sets *sets)
{
    struct rd_err err = {0};
    char line[600];
    if (!archive_catalogue_update(repo, sets, &err))
        rd_watch_warn(watch, "%s: the catalogue of the repository is not written: %s", repo->target,
                      rd_err_render(&err, line, sizeof line));
}

bool backup_list(const struct rd_watch *watch, struct archive_repo *repo, struct archive_sets *ret,
                 struct rd_err *err)
{
    if (!archive_repo_list(repo, ret, err))
        return false;
    if (ret->n_gone > 0)
        rd_watch_note(watch, "%s: %zu set%s removed while the sets were listed", repo->target,
                      ret->n_gone, ret->n_gone == 1 ? " was" : "s were");
    return true;
}
