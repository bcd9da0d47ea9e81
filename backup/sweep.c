#include "backup/sweep.h"

#include "backup/system.h"
#include "base/mem.h"
#include "chunks/sweep.h"

#define GRACE_MS ((uint64_t)24 * 3600 * 1000)

static bool sweep(struct backup_open *open, size_t i, const struct chunks_usage *usage,
                  const struct archive_sets *sets, int64_t now_ms, struct backup_sweep *ret,
                  struct rd_err *err)
{
    uint64_t grace_ms = GRACE_MS;
    struct chunks_sweep s = {.repo = &open->repos[i],
                             .usage = usage,
                             .sets = sets,
                             .random = backup_random,
                             .now_ms = now_ms};
    if (!backup_get_time(open->target, BACKUP_KEY_CHUNK_GRACE, &grace_ms, err) ||
        !backup_keys_seal(&open->keys, &s.key, err))
        return false;
    s.grace_ms = (int64_t)grace_ms;
    bool ok = chunks_sweep(&s, err);
    *ret = (struct backup_sweep){s.n_doomed, s.n_removed, s.n_rewritten, s.bytes_removed};
    return ok;
}

/* The sets that the plan removed need nothing. */
static bool *removed_sets(const struct backup_prune *plan)
{
    bool *removed = rd_calloc(plan->sets.n + 1, sizeof *removed);
    for (size_t k = 0; removed != NULL && k < plan->sets.n; k++)
        removed[k] = plan->why[k] == 0;
    return removed;
}

bool backup_sweep(const struct rd_watch *watch, struct backup_open *open, size_t i,
                  struct backup_prune *plan, int64_t now_ms, struct backup_sweep *ret,
                  struct rd_err *err)
{
    struct chunks_usage usage;
    struct rd_err why = {0};
    bool *removed = removed_sets(plan);
    *ret = (struct backup_sweep){0};
    if (removed == NULL)
        return rd_err_nomem(err, plan->sets.n);
    bool ok = chunks_usage_read(&usage, &open->repos[i], &plan->sets, removed, NULL, &why);
    rd_free(removed);
    if (!ok && why.reason.id == RD_SEAL_REASON_KEY) {
        rd_watch_warn(watch, "%s: chunks are kept, because what sets need is not known: %s",
                      open->target->name, why.text);
        return true;
    }
    if (!ok) {
        rd_err_adopt(err, &why);
        return false;
    }
    ok = sweep(open, i, &usage, &plan->sets, now_ms, ret, err);
    chunks_usage_done(&usage);
    return ok;
}
