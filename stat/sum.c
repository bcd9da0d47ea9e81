#include "stat/sum.h"

#include "base/mem.h"
#include "stat/memory.h"

#include <stdlib.h>

static bool init_groups(struct stat_sum *sum, const struct stat_opts *opts, struct rd_err *err)
{
    struct stat_sum *before = opts->before;
    if (before != NULL) {
        sum->prefixes = before->prefixes;
        sum->patterns = before->patterns;
        before->prefixes = (struct stat_prefixes){0};
        before->patterns = (struct stat_patterns){0};
        stat_prefixes_continue(&sum->prefixes);
        if (sum->patterns.rows != NULL)
            stat_patterns_continue(&sum->patterns);
        return true;
    }
    return stat_prefixes_init(&sum->prefixes, opts->separator, opts->depth, opts->details, err) &&
           (!opts->patterns ||
            stat_patterns_init(&sum->patterns, opts->separator, opts->details, err));
}

bool stat_sum_init(struct stat_sum *sum, const struct stat_opts *opts, struct rd_err *err)
{
    *sum = (struct stat_sum){.opts = *opts};
    if (stat_top_init(&sum->by_memory, opts->top, err) &&
        stat_top_init(&sum->by_elements, opts->top, err) && init_groups(sum, opts, err)) {
        sum->dbs = rd_calloc(STAT_DBS_MAX, sizeof *sum->dbs);
        if (sum->dbs == NULL)
            rd_err_nomem(err, STAT_DBS_MAX * sizeof *sum->dbs);
        else if (!opts->details || stat_details_init(&sum->db_details, STAT_DBS_MAX, err))
            return true;
    }
    stat_sum_done(sum);
    return false;
}

void stat_sum_done(struct stat_sum *sum)
{
    stat_top_done(&sum->by_memory);
    stat_top_done(&sum->by_elements);
    stat_prefixes_done(&sum->prefixes);
    stat_patterns_done(&sum->patterns);
    stat_details_done(&sum->db_details);
    rd_free(sum->dbs);
    sum->dbs = NULL;
    sum->n_dbs = 0;
}

/* The keys of a database are consecutive. */
static struct stat_db *db_of(struct stat_sum *sum, uint64_t db)
{
    if (sum->n_dbs > 0 && sum->dbs[sum->last_db].db == db)
        return &sum->dbs[sum->last_db];
    for (size_t i = 0; i < sum->n_dbs; i++) {
        if (sum->dbs[i].db == db) {
            sum->last_db = i;
            return &sum->dbs[i];
        }
    }
    if (sum->n_dbs == STAT_DBS_MAX)
        return NULL;
    sum->last_db = sum->n_dbs++;
    sum->dbs[sum->last_db].db = db;
    sum->dbs[sum->last_db].detail = stat_details_take(&sum->db_details);
    return &sum->dbs[sum->last_db];
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

static void add_loose(struct stat_loose *loose, const struct stat_key *key)
{
    loose->keys++;
    loose->memory += key->memory;
    loose->packed += key->packed;
    loose->elements = key->elements > loose->elements ? key->elements : loose->elements;
    loose->longest = key->largest > loose->longest ? key->largest : loose->longest;
}

static void add_share(struct stat_share *share, const struct stat_key *key)
{
    share->keys++;
    share->memory += key->memory;
}

static void add_counters(struct stat_sum *sum, const struct stat_key *key)
{
    struct stat_counters *counters = &sum->counters;
    enum rdb_kind kind = key->type->kind;
    counters->name_bytes += key->name.len;
    counters->big += key->elements >= STAT_BIG;
    if (key->expire_ms != RDB_NO_EXPIRE) {
        if (key->expire_ms < sum->written_ms)
            add_share(&counters->kept_expired, key);
    } else if (kind == RDB_KIND_STRING && key->largest <= STAT_SMALL_STRING) {
        add_share(&counters->small_strings, key);
        counters->small_bytes += key->largest;
    }
    if (key->packed == 0)
        return;
    if (key->largest <= STAT_PACKED_ELEMENT)
        add_loose(&counters->few[kind], key);
    else if (key->largest <= STAT_LONG_ELEMENT)
        add_loose(&counters->few_long[kind], key);
}

void stat_sum_add(struct stat_sum *sum, const struct stat_key *key)
{
    enum rdb_kind kind = key->type->kind;
    struct stat_noted noted = {.key = key,
                               .expiry = stat_expiry_of(key->expire_ms, sum->opts.now_ms)};
    count_key(&sum->all, key);
    count_key(&sum->types[key->type->id], key);
    count_key(&sum->expiry[noted.expiry], key);
    struct stat_db *db = db_of(sum, key->db);
    count_key(db != NULL ? &db->count : &sum->more_dbs, key);
    if (db != NULL)
        stat_detail_add(&sum->db_details, db->detail, &noted);
    add_counters(sum, key);
    if (kind == RDB_KIND_MODULE)
        count_key(count_of_module(sum, key->module_id), key);
    stat_hist_add(&sum->memory[kind], key->memory, 1);
    stat_top_add(&sum->by_memory, key->memory, key);
    if (kind != RDB_KIND_STRING) {
        stat_hist_add(&sum->elements[kind], key->elements, 1);
        stat_top_add(&sum->by_elements, key->elements, key);
    }
    stat_prefixes_add(&sum->prefixes, &noted);
    if (sum->patterns.rows != NULL)
        stat_patterns_add(&sum->patterns, &noted);
    stat_noted_done(&noted);
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
    if (!sum->opts.continued)
        stat_prefixes_sort(&sum->prefixes);
    bool nomem = sum->by_memory.nomem || sum->by_elements.nomem || sum->prefixes.details.nomem ||
                 sum->db_details.nomem || sum->patterns.details.nomem;
    return !nomem || rd_err_nomem(err, 0);
}

struct stat_count stat_sum_kind(const struct stat_sum *sum, enum rdb_kind kind)
{
    struct stat_count all = {0};
    for (size_t i = 0; i < RDB_TYPE_COUNT; i++)
        if (rdb_type_get((enum rdb_type_id)i)->kind == kind)
            stat_count_merge(&all, &sum->types[i]);
    return all;
}
