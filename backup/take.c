#include "backup/take.h"

#include "backup/chunked.h"
#include "backup/heartbeat.h"
#include "backup/hook.h"
#include "backup/metrics.h"
#include "backup/prune.h"
#include "backup/sweep.h"
#include "backup/system.h"
#include "base/num.h"
#include "base/show.h"
#include "base/zstd.h"
#include "chunks/sweep.h"

bool backup_settings(const struct backup_target *target, struct backup_set *set, struct rd_err *err)
{
    static const struct {
        unsigned min, max;
    } levels[ARCHIVE_COMPRESSION_COUNT] = {[ARCHIVE_COMPRESSION_NONE] = {0, RD_ZSTD_LEVEL_MAX},
                                           [ARCHIVE_COMPRESSION_LZ4] = {0, 12},
                                           [ARCHIVE_COMPRESSION_GZIP] = {1, 9},
                                           [ARCHIVE_COMPRESSION_ZSTD] = {1, RD_ZSTD_LEVEL_MAX}};
    const char *word = backup_get(target, BACKUP_KEY_COMPRESS);
    const char *level = backup_get(target, BACKUP_KEY_COMPRESS_LEVEL);
    uint64_t number = 0;
    unsigned i = ARCHIVE_COMPRESSION_LZ4;
    if (word != NULL) {
        i = 0;
        while (i < ARCHIVE_COMPRESSION_COUNT &&
               strcmp(word, archive_compression_word((enum archive_compression)i)) != 0)
            i++;
        if (i == ARCHIVE_COMPRESSION_COUNT)
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                              "compress must be none, lz4, gzip or zstd");
    }
    if (level != NULL && (!rd_num_get_u64(rd_slice_str(level), &number) || number < levels[i].min ||
                          number > levels[i].max))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "compress-level must be a number from %u to %u for %s", levels[i].min,
                          levels[i].max, archive_compression_word((enum archive_compression)i));
    set->compression = (enum archive_compression)i;
    set->level = (int)number;
    set->chunks_level = level != NULL ? (int)number : BACKUP_CHUNKS_LEVEL;
    return backup_chunked_wanted(target, &set->chunks, err);
}

/* Whether nothing but another run, which has the lock, is in the way. */
static bool is_locked_out(const struct backup_open *open)
{
    for (size_t i = 0; i < open->n; i++)
        if (open->errs[i].code != RD_ERR_OK && !open->holds[i].refused)
            return false;
    return true;
}

static bool is_sealed_with(const struct backup_keys *keys, const char *id)
{
    char have[RD_SEAL_ID_HEX];
    for (size_t i = 0; i < keys->n_keys; i++)
        if (strcmp(rd_seal_key_id(&keys->keys[i], have), id) == 0)
            return true;
    return false;
}

/* Which keys a passphrase makes is known only after it was tried. */
static void warn_of_keys(const struct rd_watch *watch, const struct backup_open *open,
                         const struct archive_repo *repo, const struct archive_sets *sets)
{
    const struct archive_set *first = NULL;
    size_t n = 0;
    if (open->keys.passphrase.len > 0)
        return;
    for (size_t k = sets->n; k-- > 0;) {
        const struct archive_set *set = &sets->sets[k];
        if (set->m.key_id[0] == '\0' || is_sealed_with(&open->keys, set->m.key_id))
            continue;
        n++;
        first = set;
    }
    if (n > 0)
        rd_watch_warn(
            watch,
            "%s: %zu set%s in %s cannot be restored with the given keys; the oldest one, %s, "
            "is sealed with the key %s",
            repo->target, n, rd_show_plural(n), repo->store->origin, first->id, first->m.key_id);
}

static bool look_at_sets(const struct rd_watch *watch, struct backup_set *set, size_t i,
                         struct rd_err *err)
{
    struct backup_open *open = set->open;
    struct archive_repo *repo = &open->repos[i];
    struct archive_sets sets;
    if (!backup_list(watch, repo, &sets, err))
        return false;
    warn_of_keys(watch, open, repo, &sets);
    backup_catalogue(watch, repo, &sets);
    bool ok = backup_prune_leftovers(repo, &sets, err) && (!set->chunks || chunks_clean(repo, err));
    if (ok && set->chunks)
        set->sets[i] = sets;
    else
        archive_sets_done(&sets);
    return ok;
}

/* Locks all repositories and removes what interrupted backups have left there. */
static bool prepare(const struct rd_watch *watch, const char *tool, struct backup_set *set,
                    struct rd_err *err)
{
    struct backup_open *open = set->open;
    size_t n = 0;
    for (size_t i = 0; i < open->n; i++) {
        if (open->stores[i] == NULL)
            continue;
        if (backup_lock(watch, open, i, tool, &open->errs[i]) &&
            look_at_sets(watch, set, i, &open->errs[i]))
            n++;
    }
    if (n == 0) {
        for (size_t i = 0; i < open->n; i++)
            rd_err_adopt(err, &open->errs[i]);
        set->locked_out = is_locked_out(open);
    }
    return n > 0;
}

bool backup_take(const struct rd_watch *watch, const struct backup_job *job, struct backup_set *set,
                 struct rd_err *err)
{
    const struct backup_target *target = set->open->target;
    set->cancel = watch != NULL ? watch->cancel : NULL;
    if (!backup_settings(target, set, err) || !prepare(watch, job->tool, set, err) ||
        !backup_hook(target, BACKUP_HOOK_PRE, &set->m, NULL, err) ||
        !backup_set_begin(set, backup_now_ms(), err))
        return false;
    bool ok = job->read(job->ctx, set, err);
    set->m.end_ms = backup_now_ms();
    if (ok && backup_set_commit(set, err))
        return true;
    backup_explain_lost(set->open, err);
    backup_set_abandon(set);
    return false;
}

/* If the target says so, removes the sets that no rule keeps. */
static bool prune_after(const struct backup_target *target, struct backup_open *open,
                        struct rd_err *err)
{
    struct archive_retention rules;
    bool wanted;
    size_t n;
    if (!backup_get_bool(target, BACKUP_KEY_PRUNE, &wanted, err))
        return false;
    if (!wanted)
        return true;
    bool ok = backup_prune_rules(target, &rules, err);
    for (size_t i = 0; ok && i < open->n; i++) {
        struct backup_prune plan;
        struct backup_sweep swept;
        if (open->stores[i] == NULL || open->errs[i].code != RD_ERR_OK)
            continue;
        ok = backup_prune_plan(&open->repos[i], &rules, backup_now_ms(), &plan, err);
        ok = ok && backup_prune_run(&open->repos[i], &plan, &n, err) &&
             backup_sweep(NULL, open, i, &plan, backup_now_ms(), &swept, err);
        backup_prune_done(&plan);
    }
    return ok;
}

void backup_after(const struct backup_target *target, const struct backup_set *set,
                  const struct rd_err *failed, struct backup_after *ret)
{
    struct backup_open *open = set->open;
    bool ok = failed == NULL, everywhere = ok && backup_everywhere(open);
    *ret = (struct backup_after){0};
    if (ok)
        prune_after(target, open, &ret->prune);
    backup_metrics(target, open, everywhere, &ret->metrics);
    backup_hook(target, ok ? BACKUP_HOOK_POST : BACKUP_HOOK_FAILED, &set->m, failed, &ret->hook);
    backup_heartbeat(target, everywhere, &ret->heartbeat);
}
