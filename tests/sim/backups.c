#include "tests/sim/backups.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "archive/catalogue.h"
#include "archive/pipe.h"
#include "backup/prune.h"
#include "backup/sweep.h"
#include "backup/system.h"
#include "backup/take.h"
#include "chunks/chunks.h"
#include "tests/sim/bucket.h"
#include "tests/sim/world.h"

enum { STEP_MINUTES = 120 };
#define GRACE "90m"
enum { BUCKETS = 2, STEPS = 25, SETS = STEPS + 2, FILES = 3, BYTES = 3000, A_STEP = 6 };

/* A set that was begun. */
struct known {
    char id[ARCHIVE_ID_MAX];
    uint64_t seed;  /* of its contents */
    bool chunks;    /* the contents are those of a snapshot, which is stored as chunks */
    unsigned parts; /* of a long value of its first file, */
    unsigned turn;  /* of which each part changes with some of the turns */
    unsigned n_files;
    bool stored[BUCKETS]; /* it was reported so, and no rule allows its removal */
};

struct history {
    struct bucket buckets[BUCKETS];
    struct bucket_faults faults;
    struct backup_config config;
    struct known known[SETS];
    size_t n_known;
    bool chunks;
    unsigned parts;
    struct sim_backups *sums;
};

static char failure[400];

static bool wrong(const char *fmt, ...) RD_PRINTF(1, 2);

static bool wrong(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(failure, sizeof failure, fmt, args);
    va_end(args);
    return false;
}

/* ---- contents ---- */

enum { KEYS = 60, PARTS = 6, PART = 256 * 1024, ROOM = BYTES + PARTS * PART };

/* A value that is cut into several pieces: packs get small unneeded parts. */
static size_t long_value(const struct known *known, uint8_t *ret)
{
    enum { LIFE = 8 };
    uint32_t bytes = known->parts * PART;
    size_t len = 0;
    memcpy(ret, "\0\4long\x80", 7);
    for (int shift = 24; shift >= 0; shift -= 8)
        ret[7 + len++] = (uint8_t)(bytes >> shift);
    len += 7;
    for (unsigned part = 0; part < known->parts; part++) {
        struct bucket_faults rng = {.seed = part + PARTS * ((known->turn + part) / LIFE)};
        for (unsigned i = 0; i < PART; i += 8, len += 8) {
            uint64_t word = bucket_draw(&rng, UINT64_MAX);
            memcpy(ret + len, &word, 8);
        }
    }
    return len;
}

/* Snapshots of which most records are the same, in two orders. */
static size_t snapshot(const struct known *known, unsigned file, uint8_t ret[ROOM])
{
    size_t len = 11;
    unsigned n = KEYS - (unsigned)(known->seed % 5), turn = known->seed % 3 == 0 ? 7 : 1;
    memcpy(ret, "REDIS0011\xfe\x00", len);
    for (unsigned i = 0; i < n; i++) {
        unsigned key = i * turn % n;
        bool changed = key % 8 == known->seed % 8;
        len += (size_t)snprintf((char *)ret + len, BYTES - len, "%c%c%u:%03u%c%016llx", 0, 5, file,
                                key, 16, changed ? (unsigned long long)known->seed : key);
    }
    if (file == 0 && known->parts > 0)
        len += long_value(known, ret + len);
    ret[len] = 0xff;
    memset(ret + len + 1, 0, 8);
    return len + 9;
}

static size_t contents(const struct known *known, unsigned file, uint8_t ret[ROOM])
{
    struct bucket_faults rng = {.seed = known->seed + file};
    if (known->chunks)
        return snapshot(known, file, ret);
    size_t len = bucket_draw(&rng, BYTES);
    for (size_t i = 0; i < len; i++)
        ret[i] = (uint8_t)bucket_draw(&rng, i % 3 == 0 ? 256 : 4);
    return len;
}

static bool read_source(void *ctx, struct backup_set *set, struct rd_err *err)
{
    struct history *h = ctx;
    static uint8_t bytes[ROOM];
    struct known *known = &h->known[h->n_known++];
    snprintf(known->id, sizeof known->id, "%s", set->m.id);
    for (unsigned i = 0; i < known->n_files; i++) {
        char name[32];
        snprintf(name, sizeof name, "part-%u.rdb", i);
        if (!backup_set_file_begin(set, name, ARCHIVE_ROLE_RDB, err))
            return false;
        size_t len = contents(known, i, bytes);
        bool good = rd_sink_write(set->sink, bytes, len);
        if (!good)
            rd_err_adopt(err, rd_sink_err(set->sink));
        if (!backup_set_file_end(set, good, err))
            return false;
    }
    return true;
}

/* ---- a process ---- */

static bool open_all(struct history *h, struct backup_open *ret)
{
    *ret = (struct backup_open){.target = &h->config.targets[0], .n = BUCKETS};
    for (size_t i = 0; i < BUCKETS; i++) {
        ret->stores[i] = bucket_open(&h->buckets[i], &h->faults);
        ret->repos[i] = (struct archive_repo){.store = ret->stores[i],
                                              .target = ret->target->name,
                                              .ring = &ret->keys.ring,
                                              .open_chunks = chunks_open_src,
                                              .catalogue_from = 1};
        if (ret->stores[i] == NULL)
            return false;
    }
    return true;
}

static void begin_life(struct history *h, unsigned per_mille, unsigned deaths_per_mille)
{
    h->faults.life++;
    h->faults.per_mille = per_mille;
    h->faults.deaths_per_mille = deaths_per_mille;
}

static void end_life(struct history *h, struct backup_open *open)
{
    backup_close(open);
    for (size_t i = 0; i < BUCKETS; i++)
        bucket_bury(&h->buckets[i], &h->faults);
    h->sums->deaths += h->faults.dead;
    h->faults.dead = false;
    h->faults.per_mille = h->faults.deaths_per_mille = 0;
}

static bool take_set(struct history *h)
{
    const struct backup_job job = {.tool = "sim", .read = read_source, .ctx = h};
    struct backup_open open;
    struct backup_set set = {.open = &open};
    struct rd_err err = {0};
    struct known *known = &h->known[h->n_known];
    *known = (struct known){.seed = bucket_draw(&h->faults, UINT64_MAX),
                            .chunks = h->chunks,
                            .parts = h->parts,
                            .turn = (unsigned)h->n_known,
                            .n_files = 1 + (unsigned)bucket_draw(&h->faults, FILES)};
    bool ok = open_all(h, &open) && backup_take(NULL, &job, &set, &err);
    for (size_t i = 0; ok && i < BUCKETS; i++)
        known->stored[i] = open.errs[i].code == RD_ERR_OK;
    if (ok && !known->stored[0] && !known->stored[1])
        ok = wrong("a set is reported, but no repository has it");
    h->sums->taken += ok;
    h->sums->failed += !ok;
    backup_set_done(&set);
    end_life(h, &open);
    return ok;
}

/* ---- what there is, without faults ---- */

static struct known *find_known(struct history *h, const char *id)
{
    for (size_t i = 0; i < h->n_known; i++)
        if (strcmp(h->known[i].id, id) == 0)
            return &h->known[i];
    return NULL;
}

static bool has_bytes(struct rd_src *src, const uint8_t *want, size_t len)
{
    struct rd_slice s;
    enum rd_src_status status;
    while ((status = rd_src_need(src, 1, &s)) == RD_SRC_OK) {
        if (s.len > len || memcmp(s.ptr, want, s.len) != 0)
            return false;
        want += s.len;
        len -= s.len;
        rd_src_consume(src, s.len);
    }
    return status == RD_SRC_END && len == 0;
}

static bool prove_file(struct backup_open *open, size_t i, const struct archive_set *set,
                       const struct known *known, unsigned file)
{
    static uint8_t want[ROOM];
    struct rd_src *src;
    struct rd_err err = {0};
    size_t len = contents(known, file, want);
    if (!archive_set_open(&open->repos[i], set, &set->m.files[file], &open->keys.ring, &src, &err))
        return wrong("%s, file %u: %s", set->id, file, err.text);
    bool ok = has_bytes(src, want, len);
    rd_src_close(src);
    return ok || wrong("%s, file %u: other bytes", set->id, file);
}

static bool prove_set(struct history *h, struct backup_open *open, size_t i,
                      const struct archive_set *set)
{
    const struct known *known = find_known(h, set->id);
    if (known == NULL || set->m.n_files != known->n_files)
        return wrong("%s: a set that nobody took", set->id);
    for (unsigned file = 0; file < known->n_files; file++)
        if (!prove_file(open, i, set, known, file))
            return false;
    h->sums->proved++;
    return true;
}

static bool is_good(const struct archive_sets *sets, const char *id)
{
    for (size_t i = 0; i < sets->n; i++)
        if (strcmp(sets->sets[i].id, id) == 0)
            return archive_set_good(&sets->sets[i]);
    return false;
}

/* Reading sets takes most of the time: after a step one of `in` is read, at the end all. */
static bool look_at(struct history *h, struct backup_open *open, size_t i, unsigned in)
{
    struct archive_sets sets;
    struct rd_err err = {0};
    bool ok = true;
    if (!archive_repo_list(&open->repos[i], &sets, &err))
        return wrong("cannot list: %s", err.text);
    for (size_t k = 0; k < sets.n; k++)
        h->sums->catalogued += sets.sets[k].catalogued;
    for (size_t k = 0; ok && k < sets.n; k++)
        if (archive_set_good(&sets.sets[k]) && bucket_draw(&h->faults, in) == 0)
            ok = prove_set(h, open, i, &sets.sets[k]);
    for (size_t k = 0; ok && k < h->n_known; k++)
        if (h->known[k].stored[i] && !is_good(&sets, h->known[k].id))
            ok = wrong("%s was stored in repository %zu and is lost", h->known[k].id, i);
    archive_sets_done(&sets);
    return ok;
}

static bool look_at_all(struct history *h, unsigned in)
{
    struct backup_open open;
    bool ok = open_all(h, &open);
    for (size_t i = 0; ok && i < BUCKETS; i++)
        ok = look_at(h, &open, i, in);
    end_life(h, &open);
    return ok;
}

/* ---- prune ---- */

/* Sets that the rules do not keep may disappear from now on, whatever becomes of the run. */
static bool release(struct history *h, const struct archive_retention *rules, int64_t now_ms)
{
    struct backup_open open;
    /* With one that appears later, the run would choose others. */
    for (size_t i = 0; i < BUCKETS; i++)
        bucket_settle(&h->buckets[i], "/" ARCHIVE_MANIFEST_NAME);
    bool ok = open_all(h, &open);
    for (size_t i = 0; ok && i < BUCKETS; i++) {
        struct backup_prune plan;
        struct rd_err err = {0};
        if (!backup_prune_plan(&open.repos[i], rules, now_ms, &plan, &err)) {
            ok = wrong("cannot plan: %s", err.text);
            break;
        }
        for (size_t k = 0; k < plan.sets.n; k++) {
            struct known *known = find_known(h, plan.sets.sets[k].id);
            if (known != NULL && plan.why[k] == 0)
                known->stored[i] = false;
        }
        backup_prune_done(&plan);
    }
    end_life(h, &open);
    return ok;
}

static bool prune_one(struct history *h, struct backup_open *open, size_t i,
                      const struct archive_retention *rules, int64_t now_ms)
{
    struct backup_prune plan;
    struct backup_sweep swept = {0};
    size_t n;
    if (!backup_lock(NULL, open, i, "sim", &open->errs[i]) ||
        !backup_prune_plan(&open->repos[i], rules, now_ms, &plan, &open->errs[i]))
        return false;
    archive_catalogue_update(&open->repos[i], &plan.sets, NULL);
    bool ok = backup_prune_run(&open->repos[i], &plan, &n, &open->errs[i]) &&
              backup_sweep(NULL, open, i, &plan, now_ms, &swept, &open->errs[i]);
    h->sums->packs_removed += swept.n_removed;
    h->sums->packs_rewritten += swept.n_rewritten;
    backup_prune_done(&plan);
    return ok;
}

static bool prune(struct history *h, unsigned per_mille, unsigned deaths)
{
    struct archive_retention rules = {.n = {0}};
    struct backup_open open;
    int64_t now_ms = backup_now_ms();
    rules.n[ARCHIVE_RULE_COUNT] = 1 + bucket_draw(&h->faults, 4);
    if (bucket_draw(&h->faults, 3) == 0)
        rules.n[ARCHIVE_RULE_DAILY] = 1 + bucket_draw(&h->faults, 3);
    if (!release(h, &rules, now_ms))
        return false;
    begin_life(h, per_mille, deaths);
    bool all = open_all(h, &open);
    for (size_t i = 0; all && i < BUCKETS; i++)
        all = prune_one(h, &open, i, &rules, now_ms) && all;
    h->sums->pruned += all;
    h->sums->prunes_failed += !all;
    end_life(h, &open);
    return true;
}

/* ---- a history ---- */

/* A manifest that appears after the next backup has removed the objects cannot be told from that of
 * a set that lost them: the set is damaged. */
static bool came_late(struct history *h, size_t i, const struct archive_set *set)
{
    char name[ARCHIVE_NAME_MAX];
    if (!archive_object_name(name, h->config.targets[0].name, set->id, ARCHIVE_MANIFEST_NAME, NULL))
        return false;
    const struct bucket_object *manifest = bucket_find(&h->buckets[i], name);
    const struct known *known = find_known(h, set->id);
    return manifest != NULL && manifest->late && set->missing > 0 && known != NULL &&
           !known->stored[i];
}

static bool all_good(struct history *h, struct backup_open *open, size_t i)
{
    struct archive_sets sets;
    struct rd_err err = {0};
    bool ok = archive_repo_list(&open->repos[i], &sets, &err) || wrong("cannot list: %s", err.text);
    if (!ok)
        return false;
    for (size_t k = 0; ok && k < sets.n; k++)
        ok = archive_set_good(&sets.sets[k]) || came_late(h, i, &sets.sets[k]) ||
             wrong("%s remains in repository %zu and is not complete", sets.sets[k].id, i);
    archive_sets_done(&sets);
    return ok;
}

/* After a backup without faults, every object is whole and belongs to a good set. */
static bool is_clean(struct history *h)
{
    struct backup_open open;
    for (size_t i = 0; i < BUCKETS; i++)
        for (size_t k = 0; k < h->buckets[i].n; k++)
            if (h->buckets[i].objects[k].partial)
                return wrong("%s remains", h->buckets[i].objects[k].name);
    bool ok = open_all(h, &open);
    for (size_t i = 0; ok && i < BUCKETS; i++)
        ok = all_good(h, &open, i);
    end_life(h, &open);
    return ok;
}

/* A pinned set stays, whatever the rules say. */
static bool pin_one(struct history *h)
{
    struct backup_open open;
    struct rd_err err = {0};
    bool ok = open_all(h, &open);
    for (size_t i = 0; ok && i < BUCKETS && h->n_known > 0; i++) {
        const struct known *known = &h->known[bucket_draw(&h->faults, h->n_known)];
        if (known->stored[i])
            ok = backup_lock(NULL, &open, i, "sim", &err) &&
                 archive_repo_mark(&open.repos[i], known->id, ARCHIVE_MARK_PINNED, true, &err);
    }
    end_life(h, &open);
    return ok || wrong("cannot pin: %s", err.text);
}

static bool step(struct history *h)
{
    static const unsigned rates[] = {0, 5, 30, 200};
    unsigned per_mille = rates[bucket_draw(&h->faults, 4)];
    unsigned deaths = bucket_draw(&h->faults, 3) == 0 ? 20 : 0;
    world.now_us += (int64_t)bucket_draw(&h->faults, STEP_MINUTES) * 60000000;
    if (bucket_draw(&h->faults, 10) == 0 && !pin_one(h))
        return false;
    if (bucket_draw(&h->faults, 4) == 0)
        return prune(h, per_mille, deaths) && look_at_all(h, A_STEP);
    failure[0] = '\0';
    begin_life(h, per_mille, deaths);
    if (!take_set(h) && (failure[0] != '\0' || (per_mille == 0 && deaths == 0)))
        return failure[0] != '\0' ? false : wrong("a backup without faults failed");
    return look_at_all(h, A_STEP);
}

static bool run(struct history *h)
{
    for (unsigned i = 0; i < STEPS; i++)
        if (!step(h))
            return false;
    for (size_t i = 0; i < BUCKETS; i++)
        bucket_settle(&h->buckets[i], "");
    begin_life(h, 0, 0);
    if (!take_set(h))
        return wrong("the last backup failed");
    return look_at_all(h, 1) && is_clean(h);
}

const char *sim_backups_run(uint64_t seed, struct sim_backups *sums)
{
    static struct history h;
    struct rd_err err = {0};
    world = (struct world){.now_us = INT64_C(1800000000000000), .seed = seed};
    h = (struct history){.faults = {.seed = seed, .delays = 8},
                         .chunks = seed % 2 == 1,
                         .parts = seed % 100 == 1 ? PARTS : 0,
                         .sums = sums};
    if (!backup_config_set(&h.config, BACKUP_KEY_REPOSITORY, "/nowhere/1", &err) ||
        !backup_config_set(&h.config, BACKUP_KEY_REPOSITORY, "/nowhere/2", &err) ||
        !backup_config_set(&h.config, BACKUP_KEY_LOCK_WAIT, "0s", &err) ||
        !backup_config_set(&h.config, BACKUP_KEY_STORE, h.chunks ? "chunks" : "file", &err) ||
        !backup_config_set(&h.config, BACKUP_KEY_CHUNK_GRACE, GRACE, &err) ||
        !backup_config_set(&h.config, BACKUP_KEY_SPOOL, "/nowhere/spool", &err) ||
        !backup_config_load(&h.config, NULL, NULL, 0, &err))
        return "no configuration";
    bool ok = run(&h);
    sums->histories++;
    sums->faults += h.faults.n_failed;
    sums->late += h.faults.n_late;
    sums->short_lists += h.faults.n_short;
    for (size_t i = 0; i < BUCKETS; i++)
        bucket_done(&h.buckets[i]);
    backup_config_done(&h.config);
    return ok ? NULL : failure;
}
