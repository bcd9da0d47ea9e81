#include "tools/stat/sum.h"

#include "base/mem.h"

#include <stdlib.h>

static const struct {
    const char *words;
    int64_t seconds;
} classes[STAT_EXPIRY_COUNT] = {
#define X(name, words, seconds) {words, seconds},
    STAT_EXPIRY(X)
#undef X
};

const char *stat_expiry_words(enum stat_expiry class)
{
    return classes[class].words;
}

int64_t stat_expiry_seconds(enum stat_expiry class)
{
    return class == STAT_EXPIRY_LATER ? 0 : classes[class].seconds;
}

enum stat_expiry stat_expiry_of(int64_t expire_ms, int64_t now_ms)
{
    if (expire_ms == RDB_NO_EXPIRE)
        return STAT_EXPIRY_NEVER;
    if (expire_ms <= now_ms)
        return STAT_EXPIRY_PASSED;
    uint64_t left = (uint64_t)expire_ms - (uint64_t)now_ms;
    enum stat_expiry class = STAT_EXPIRY_HOUR;
    while (class < STAT_EXPIRY_LATER && left > (uint64_t)classes[class].seconds * 1000)
        class ++;
    return class;
}

bool stat_sum_init(struct stat_sum *sum, const struct stat_opts *opts, struct rd_err *err)
{
    *sum = (struct stat_sum){.opts = *opts};
    if (stat_top_init(&sum->by_memory, opts->top, err) &&
        stat_top_init(&sum->by_elements, opts->top, err) &&
        stat_prefixes_init(&sum->prefixes, opts->separator, opts->depth, err)) {
        sum->dbs = rd_calloc(STAT_DBS_MAX, sizeof *sum->dbs);
        if (sum->dbs != NULL)
            return true;
        rd_err_nomem(err, STAT_DBS_MAX * sizeof *sum->dbs);
    }
    stat_sum_done(sum);
    return false;
}

void stat_sum_done(struct stat_sum *sum)
{
    stat_top_done(&sum->by_memory);
    stat_top_done(&sum->by_elements);
    stat_prefixes_done(&sum->prefixes);
    rd_free(sum->dbs);
    sum->dbs = NULL;
    sum->n_dbs = 0;
}

/* The keys of a database are consecutive. */
static struct stat_count *count_of_db(struct stat_sum *sum, uint64_t db)
{
    if (sum->n_dbs > 0 && sum->dbs[sum->last_db].db == db)
        return &sum->dbs[sum->last_db].count;
    for (size_t i = 0; i < sum->n_dbs; i++) {
        if (sum->dbs[i].db == db) {
            sum->last_db = i;
            return &sum->dbs[i].count;
        }
    }
    if (sum->n_dbs == STAT_DBS_MAX)
        return &sum->more_dbs;
    sum->last_db = sum->n_dbs++;
    sum->dbs[sum->last_db].db = db;
    return &sum->dbs[sum->last_db].count;
}

static inline void count_key(struct stat_count *count, const struct stat_key *key)
{
    count->keys++;
    count->expires += key->expire_ms != RDB_NO_EXPIRE;
    count->elements += key->elements;
    count->memory += key->memory;
    count->stored += key->stored;
}

static struct stat_count *count_of_module(struct stat_sum *sum, uint64_t id)
{
    size_t i = 0;
    id &= ~(uint64_t)STAT_MODULE_VERSION;
    while (i < sum->n_modules && i < STAT_MODULES && sum->modules[i].id != id)
        i++;
    if (i == sum->n_modules) {
        sum->modules[i].id = i < STAT_MODULES ? id : 0;
        sum->n_modules++;
    }
    return &sum->modules[i].count;
}

void stat_sum_add(struct stat_sum *sum, const struct stat_key *key)
{
    enum rdb_kind kind = key->type->kind;
    count_key(&sum->all, key);
    count_key(&sum->types[key->type->id], key);
    count_key(&sum->expiry[stat_expiry_of(key->expire_ms, sum->opts.now_ms)], key);
    count_key(count_of_db(sum, key->db), key);
    if (kind == RDB_KIND_MODULE)
        count_key(count_of_module(sum, key->module_id), key);
    stat_hist_add(&sum->memory[kind], key->memory, 1);
    stat_top_add(&sum->by_memory, key->memory, key);
    if (kind != RDB_KIND_STRING) {
        stat_hist_add(&sum->elements[kind], key->elements, 1);
        stat_top_add(&sum->by_elements, key->elements, key);
    }
    stat_prefixes_add(&sum->prefixes, key);
    sum->passed[kind] += key->largest == RDB_UNKNOWN;
}

void stat_count_merge(struct stat_count *into, const struct stat_count *from)
{
    into->keys += from->keys;
    into->expires += from->expires;
    into->elements += from->elements;
    into->memory += from->memory;
    into->stored += from->stored;
}

static int by_db(const void *va, const void *vb)
{
    const struct stat_db *a = va, *b = vb;
    return (a->db > b->db) - (a->db < b->db);
}

bool stat_sum_end(struct stat_sum *sum, struct rd_err *err)
{
    qsort(sum->dbs, sum->n_dbs, sizeof *sum->dbs, by_db);
    stat_top_sort(&sum->by_memory);
    stat_top_sort(&sum->by_elements);
    stat_prefixes_sort(&sum->prefixes);
    return !(sum->by_memory.nomem || sum->by_elements.nomem) || rd_err_nomem(err, 0);
}

struct stat_count stat_sum_kind(const struct stat_sum *sum, enum rdb_kind kind)
{
    struct stat_count all = {0};
    for (size_t i = 0; i < RDB_TYPE_COUNT; i++)
        if (rdb_type_get((enum rdb_type_id)i)->kind == kind)
            stat_count_merge(&all, &sum->types[i]);
    return all;
}
