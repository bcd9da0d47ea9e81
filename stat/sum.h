/* sum.h - the statistics of a snapshot, in memory that does not grow with its size.
 *
 *     struct stat_sum sum;
 *     if (!stat_sum_init(&sum, &opts, &err))
 *         ...
 *     stat_sum_add(&sum, &key);     // every key
 *     stat_sum_end(&sum, &err);     // now the lists are sorted
 *     stat_sum_done(&sum);
 */
#ifndef STAT_SUM_H
#define STAT_SUM_H

#include "stat/hist.h"
#include "stat/pattern.h"
#include "stat/prefix.h"
#include "stat/top.h"

struct stat_opts {
    size_t top;                /* length of the lists of largest keys */
    struct rd_slice separator; /* borrowed */
    unsigned depth;            /* of prefixes */
    int64_t now_ms;            /* expiry is counted from this time */
    bool patterns;             /* count them */
    bool details;              /* also keep what detail.h describes */
    bool continued;            /* another sum continues the prefixes and patterns of this one */
    struct stat_sum *before;   /* the sum that this one continues, or NULL */
};

struct stat_count {
    uint64_t keys;
    uint64_t expires;
    uint64_t elements;
    uint64_t memory;
    uint64_t stored;
};

struct stat_db {
    uint64_t db;
    uint32_t detail;
    struct stat_count count;
};

/* Collections of one type in tables that would be smaller as packed strings. */
struct stat_loose {
    uint64_t keys;
    uint64_t memory;
    uint64_t packed;   /* memory if they were packed */
    uint64_t elements; /* of the one with the most */
    uint64_t longest;  /* element */
};

enum {
    STAT_BIG = 10000,        /* elements of a big collection */
    STAT_SMALL_STRING = 32,  /* bytes */
    STAT_LONG_ELEMENT = 256, /* the longest element for which packing is suggested */
};

/* What the findings (find.h) need beside the sums. */
struct stat_counters {
    struct stat_loose few[RDB_KIND_COUNT];      /* within the limits of servers */
    struct stat_loose few_long[RDB_KIND_COUNT]; /* but for the length of an element */
    struct stat_share kept_expired;  /* keys that had expired when the file was written */
    struct stat_share small_strings; /* that do not expire */
    uint64_t small_bytes;            /* of their values */
    uint64_t name_bytes;
    uint64_t big; /* keys with STAT_BIG elements */
};

/* The values of one type of a module, whatever their encoding versions. */
struct stat_module {
    uint64_t id; /* without the version; 0: all types beyond STAT_MODULES */
    struct stat_count count;
};

enum { STAT_DBS_MAX = 1024, STAT_MODULES = 32, STAT_MODULE_VERSION = 1023 /* bits of the id */ };

struct stat_sum {
    struct stat_opts opts;
    struct stat_count all;
    struct stat_count types[RDB_TYPE_COUNT]; /* by stored type */
    struct stat_count expiry[STAT_EXPIRY_COUNT];
    struct stat_db *dbs; /* ascending after stat_sum_end() */
    size_t n_dbs, last_db;
    struct stat_details db_details; /* with the index of dbs, by db->detail */
    struct stat_count more_dbs;     /* beyond STAT_DBS_MAX of them */
    /* By kind: lengths of elements, elements of a key, memory of a key. */
    struct stat_hist lengths[RDB_KIND_COUNT];
    struct stat_hist elements[RDB_KIND_COUNT];
    struct stat_hist memory[RDB_KIND_COUNT];
    struct stat_module modules[STAT_MODULES + 1];
    size_t n_modules;
    uint64_t passed[RDB_KIND_COUNT]; /* keys whose elements were not read */
    struct stat_top by_memory, by_elements;
    struct stat_counters counters;
    int64_t written_ms; /* of the file; 0: unknown */
    struct stat_prefixes prefixes;
    struct stat_patterns patterns; /* rows is NULL: not counted */
};

/* With opts->before: takes its prefixes and patterns, in which its figures become those before. */
bool stat_sum_init(struct stat_sum *sum, const struct stat_opts *opts, struct rd_err *err);
void stat_sum_done(struct stat_sum *sum);

/* Adds a key. The caller adds the lengths of its elements. */
void stat_sum_add(struct stat_sum *sum, const struct stat_key *key);

/* Sorts the lists. False if an earlier allocation failed. */
bool stat_sum_end(struct stat_sum *sum, struct rd_err *err);

void stat_count_merge(struct stat_count *into, const struct stat_count *from);
/* Returns the sum of all types of a kind. */
struct stat_count stat_sum_kind(const struct stat_sum *sum, enum rdb_kind kind);

#endif
